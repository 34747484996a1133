"""One file for each verb, with `EXAMPLE`, `add_arguments` and `main`; a folder where it has verbs of its own."""
