"""The passes in their order, and what the graph may hold behind each."""

from collections.abc import Callable

from buda_emu.compiler.graph.graph import Graph
from buda_emu.compiler.graph.spec import CORE, FRONT, check_graph
from buda_emu.compiler.passes.affine import affine
from buda_emu.compiler.passes.common import common
from buda_emu.compiler.passes.dead import dead
from buda_emu.compiler.passes.decompose import decompose
from buda_emu.compiler.passes.gelu import gelu
from buda_emu.compiler.passes.host_windows import host_windows
from buda_emu.compiler.passes.integers import integers
from buda_emu.compiler.passes.probabilities import probabilities
from buda_emu.compiler.target import Target

Pass = Callable[[Graph], Graph]
PASSES: dict[str, tuple[Pass, str]] = {
    "gelu": (gelu, FRONT),
    "probabilities": (probabilities, FRONT),
    "integers": (integers, FRONT),
    "decompose": (decompose, CORE),
    "affine": (affine, CORE),
    "windows": (host_windows, CORE),
    "common": (common, CORE),
    "dead": (dead, CORE),
}
"""Each with the stage of the graph behind it."""
STEPS = ("import", *PASSES)


def run_passes(graph: Graph, dump: Callable[[str, Graph], None], target: Target | None = None) -> Graph:
    """All of them that the target can do with; the graph is checked after each."""
    check_graph(graph, FRONT, "import")
    dump("import", graph)
    for name, (run, stage) in PASSES.items():
        if name == "integers" and target is not None and not target.has_int8:
            continue
        graph = run(graph)
        check_graph(graph, stage, name)
        dump(name, graph)
    return graph
