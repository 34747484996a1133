"""The compiler's IR as text and back (docs/compile/pipeline.md): printer and parser for all levels, and the verifier,
which checks the IR against the rules of its level: shapes, operands, types, attributes, order.
"""
