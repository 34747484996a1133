"""The verbs of `buda-emu`, one file each with `EXAMPLE`, `add_arguments` and `main`, listed in `cli/main.py`. `about`
and `editing` are groups of them; a verb that has verbs of its own (`gemini`, `vpux`, `darwinn`) is a folder, too.
"""
