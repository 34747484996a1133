"""tilizer: row-major data of a flat queue into tiles. It reads what was pushed, before the queue rounds it."""
