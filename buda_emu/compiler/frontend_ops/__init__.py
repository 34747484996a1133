"""Front-end ops, the words of the compiler's graph: one declaration each with its shape rule, its numpy definition,
and either a decomposition into other front-end ops or, for a core op, a lowering in the room `lower`. The tables
of docs/compile-ops.md are made from them.
"""
