"""All fusions of netlist ops, as the compiler's passes make them."""

from buda_emu.compiler.graph.graph import Graph
from buda_emu.compiler.ir.text import TILE, Ir
from buda_emu.compiler.pipeline import PASSES, Context


def fuse(tiles, target):
    """The graph after the passes that put netlist ops together, but for what writes caches."""
    forms = [Ir(TILE, Graph("fused"), tiles)]
    for step in PASSES:
        if step.name.startswith("fuse_") and step.before == TILE and step.name != "fuse_stores":
            forms = step.run(forms, Context(target))
    return forms[0].tiles
