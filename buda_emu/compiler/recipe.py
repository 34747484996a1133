"""How a model becomes netlist ops on cores: all that a caller chose, and the steps in their order."""

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike

from buda_emu.compiler.cluster import Chips, chips_of
from buda_emu.compiler.fuse.fuse import fuse as fuse_ops
from buda_emu.compiler.fuse.integers import use_integers
from buda_emu.compiler.graph.graph import Graph
from buda_emu.compiler.lower.lower import lower
from buda_emu.compiler.lower.tiles import TileGraph
from buda_emu.compiler.masks import keep_apart
from buda_emu.compiler.mixed import Mixed, Rule, assign, read_rules, widen
from buda_emu.compiler.passes.pipeline import offered, run_passes
from buda_emu.compiler.place.fork_room import give_room
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.place.streamed import streamed
from buda_emu.compiler.search.placer import place, place_best
from buda_emu.compiler.target import Aim, Target


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a graph becomes a placed one: all that a caller chose. `dump` is given each pass and the graph behind it."""

    device: Target
    aim: Aim
    rules: tuple[Rule, ...]
    fuse: bool
    name: str
    dump: Callable[[str, Graph], None]

    @staticmethod
    def named(
        *, arch: str = "wormhole_b0", df: str = "Float16_b", fidelity: str = "HiFi3", acc_df: str = "",
        mixed: Mixed = None, fuse: bool = True, name: str = "", dump: Callable[[str, Graph], None] | None = None,
        effort: str = "default", objective: str = "throughput",
        chips: int | str | PathLike[str] = 1, microbatch: int | None = None,
    ) -> "Recipe":  # fmt: skip
        """From the words of `compile`. Raises HostError for a wrong one."""
        device = Target.named(arch, df, fidelity, acc_df)
        given = chips_of(chips, arch)
        if isinstance(given, Chips):
            aim = Aim.named(effort, objective, len(given.ids), microbatch, given.ids)
            device = device.harvested(given.harvested)
        else:
            aim = Aim.named(effort, objective, given, microbatch)
        return Recipe(device, aim, tuple(read_rules(mixed, device)), fuse, name, dump or _nothing)

    def placed(self, graph: Graph, *, entries: int = 2) -> tuple[Graph, Placement, str]:
        """The graph behind all passes, its netlist ops on cores, and a title. Of several kinds of windows those with
        which the whole model is quickest."""
        graph.name = self.name or graph.name
        offers = offered(graph, self.dump, self.device)
        chosen = offers[0]
        try:
            tiles = [self._tiles(offer.graph) for offer in (offers[:1] if self.aim.effort == "low" else offers)]
            number, placement = place_best(tiles, self.device, self.aim, entries=entries)
            chosen = offers[number]
        finally:
            chosen.tell(self.dump)
        return self._finished(chosen.graph, placement)

    def prepared(self, graph: Graph) -> Graph:
        """The graph behind all passes, of several kinds of windows with those of the fewest cycles by themselves."""
        graph.name = self.name or graph.name
        return run_passes(graph, self.dump, self.device)

    def lowered(self, graph: Graph, *, entries: int = 2) -> tuple[Graph, Placement, str]:
        """The same of a graph behind all passes."""
        return self._finished(graph, place(self._tiles(graph), self.device, self.aim, entries=entries))

    def _finished(self, graph: Graph, placement: Placement) -> tuple[Graph, Placement, str]:
        give_room(placement)
        return graph, placement, _title(graph, self.device)

    def _tiles(self, graph: Graph) -> TileGraph:
        tiles = use_integers(lower(graph, self.device))
        if self.fuse:
            fuse_ops(tiles, self.device)
        assign(tiles, self.rules)
        keep_apart(tiles, self.device)
        widen(tiles)
        return streamed(tiles, self.device)


def _nothing(name: str, graph: Graph) -> None:
    del name, graph


def _title(graph: Graph, target: Target) -> str:
    formats = f"{target.activation_df}, sums in {target.acc_df}, {target.fidelity}"
    return f"Model {graph.name} by buda-emu compile: {target.arch.name}, {formats}. Names are the model's own."
