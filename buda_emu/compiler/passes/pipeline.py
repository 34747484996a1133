"""The passes in their order, and what the graph may hold behind each."""

from collections.abc import Callable
from dataclasses import dataclass, field

from buda_emu.compiler.graph.graph import Graph
from buda_emu.compiler.graph.spec import CORE, FRONT, check_graph
from buda_emu.compiler.passes.affine import affine
from buda_emu.compiler.passes.apart import apart
from buda_emu.compiler.passes.common import common
from buda_emu.compiler.passes.dead import dead
from buda_emu.compiler.passes.decompose import decompose
from buda_emu.compiler.passes.gelu import gelu
from buda_emu.compiler.passes.host_windows import host_windows
from buda_emu.compiler.passes.integers import integers
from buda_emu.compiler.passes.selected import selected
from buda_emu.compiler.target import Target

Pass = Callable[[Graph], Graph]
Dump = Callable[[str, Graph], None]
EARLY: dict[str, tuple[Pass, str]] = {
    "gelu": (gelu, FRONT),
    "integers": (integers, FRONT),
    "decompose": (decompose, CORE),
    "affine": (affine, CORE),
    "selected": (selected, CORE),
    "apart": (apart, CORE),
}
"""Each with the stage of the graph behind it."""
LATE: dict[str, tuple[Pass, str]] = {"common": (common, CORE), "dead": (dead, CORE)}
"""Behind `windows`, which offers several graphs."""
STEPS = ("import", *EARLY, "windows", *LATE)


def run_passes(graph: Graph, dump: Dump, target: Target | None = None) -> Graph:
    """All of them that the target can do with; the graph is checked after each. Of several kinds of windows those of
    the fewest cycles by themselves."""
    first = offered(graph, dump, target)[0]
    first.tell(dump)
    return first.graph


@dataclass(slots=True)
class Offered:
    """A graph behind all passes, and what it was behind each of the last ones."""

    graph: Graph
    steps: list[tuple[str, Graph]] = field(default_factory=list[tuple[str, Graph]])

    def tell(self, dump: Dump) -> None:
        """What was kept back until it was chosen."""
        for name, graph in self.steps:
            dump(name, graph)


def offered(graph: Graph, dump: Dump, target: Target | None = None) -> list[Offered]:
    """The graphs that the host's windows may make of one, behind all passes."""
    check_graph(graph, FRONT, "import")
    dump("import", graph)
    for name, (run, stage) in EARLY.items():
        if name == "integers" and target is not None and not target.has_int8:
            continue
        graph = _ran(name, run, graph, stage)
        dump(name, graph)
    found: list[Offered] = []
    for offer in host_windows(graph, target or Target.named("wormhole_b0", "Float16_b", "HiFi3")):
        check_graph(offer, CORE, "windows")
        own = Offered(offer, [("windows", offer)])
        for name, (run, stage) in LATE.items():
            own.graph = _ran(name, run, own.graph, stage)
            own.steps.append((name, own.graph))
        found.append(own)
    return found


def _ran(name: str, run: Pass, graph: Graph, stage: str) -> Graph:
    made = run(graph)
    check_graph(made, stage, name)
    return made
