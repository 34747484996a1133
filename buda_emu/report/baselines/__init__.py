"""What is known already of some files: its file, its items, and the verdict on what is new or worse."""
