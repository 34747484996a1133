"""The verbs of `buda-emu`, one file each with `EXAMPLE`, `add_arguments` and `main`, listed in `cli/main.py`. A verb
that has verbs of its own (`gemini`, `vpux`, `darwinn`) is a folder.
"""
