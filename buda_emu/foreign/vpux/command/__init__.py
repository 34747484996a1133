"""The verbs of `buda-emu vpux`: their arguments, their work, and the schemas of what they print."""
