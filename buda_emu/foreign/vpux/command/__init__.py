"""The verbs of `buda-emu vpux`, their arguments and the schemas of their JSON."""
