"""Front-end ops: one declaration each."""
