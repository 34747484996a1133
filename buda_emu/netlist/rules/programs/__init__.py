"""Rules on programs: single instructions, what a walk through them notices, and what hardly anybody means."""
