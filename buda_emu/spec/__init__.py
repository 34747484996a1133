"""Tables of facts: formats, architectures, op types, attributes, TMs, and what a program computes with.

Every other room derives from them.
"""
