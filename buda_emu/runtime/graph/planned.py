"""Topologies and plans of a netlist, for all machines that run it: they do not depend on data."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from buda_emu.netlist.for_each import ForEach
from buda_emu.netlist.model import Netlist, TemporalGraph
from buda_emu.runtime.graph.plan import Plan, Run, build_plan
from buda_emu.runtime.graph.schedule import HostEnds, host_ends
from buda_emu.runtime.graph.topology import Topology, topology

if TYPE_CHECKING:
    from buda_emu.tensix.words import Core


class Planned:
    """What was worked out of the temporal graphs of one netlist so far."""

    def __init__(self, _netlist: Netlist) -> None:
        self._topologies: dict[int, Topology] = {}  # by the number of the temporal graph
        self._ends: dict[int, HostEnds] = {}
        self._plans: dict[tuple[object, ...], Plan] = {}  # by all that decides a plan

    def topology(self, netlist: Netlist, temporal: TemporalGraph) -> Topology:
        """That of a temporal graph."""
        found = self._topologies.get(temporal.id)
        if found is None:
            found = self._topologies[temporal.id] = topology(netlist, temporal)
        return found

    def host_ends(self, netlist: Netlist, temporal: TemporalGraph) -> HostEnds:
        """Its queues that the host fills or empties."""
        found = self._ends.get(temporal.id)
        if found is None:
            found = self._ends[temporal.id] = host_ends(netlist, self.topology(netlist, temporal))
        return found

    def plan(
        self, netlist: Netlist, temporal: TemporalGraph, labels: Mapping[str, str], quantised: bool, core: "Core | None"
    ) -> Plan:
        """As `build_plan`."""
        key = (temporal.id, quantised, core, *sorted(labels.items()))
        found = self._plans.get(key)
        if found is None:
            made = build_plan(netlist, self.topology(netlist, temporal), labels, quantised, core)
            found = self._plans.setdefault(key, made)
        return found

    def forget_operands(self) -> None:
        """Let go of what ops have worked out of their operands: whoever needs it again works it out again."""
        for plan in list(self._plans.values()):
            for step in plan.steps:
                if isinstance(step, Run):
                    step.call.memo.clear()


PLANNED: Final = ForEach(Planned)
