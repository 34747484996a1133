"""The verbs of `buda-emu darwinn`: their arguments, their work, and the schemas of what they print."""
