"""The verbs of `buda-emu gemini`: their arguments, their work, and the schemas of what they print."""
