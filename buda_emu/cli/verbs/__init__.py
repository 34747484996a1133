"""What the verbs of `buda-emu` do, one file each with `main`, imported when the verb is called. `about` and `editing`
are groups of them; a verb that has verbs of its own (`gemini`, `vpux`, `darwinn`) is a folder, too.
"""
