"""Rules on programs: single instructions, the notes of a walk through them, and likely mistakes."""
