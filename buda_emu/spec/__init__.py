"""Tables of facts that all other packages derive from: formats, architectures and devices, op types, attributes, TMs,
opcodes and limits. No behaviour, and no imports that cost anything.
"""
