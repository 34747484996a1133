"""The verbs of `buda-emu gemini`, their arguments and the schemas of their JSON."""
