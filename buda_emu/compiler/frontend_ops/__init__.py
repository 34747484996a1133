"""Front-end ops, the vocabulary of the compiler's graph: one declaration each with its shape rule, its numpy
definition, and either a decomposition into other front-end ops or, for a core op, a lowering in `lower`. The
tables of docs/compile/compile-ops.md are made from them.
"""

from importlib import import_module

FAMILIES = ("core", "elementwise", "compare", "reduce", "normalise", "convolution", "moves", "scatter", "order",
            "quantise")  # fmt: skip
"""The modules that declare ops. All are imported with the room, so that tables have one order whoever imports it."""

for family in FAMILIES:
    import_module(f"{__name__}.{family}")
