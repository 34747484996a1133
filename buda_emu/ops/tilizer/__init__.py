"""tilizer: row-major data of a flat queue into tiles."""
