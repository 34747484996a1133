"""Topologies and plans of a netlist, for all machines that run it: they do not depend on data."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from buda_emu.netlist.for_each import ForEach
from buda_emu.netlist.model import Netlist, TemporalGraph
from buda_emu.runtime.graph.plan import build_plan
from buda_emu.runtime.graph.schedule import HostEnds, host_ends
from buda_emu.runtime.graph.steps import Plan, Run
from buda_emu.runtime.graph.topology import Topology, topology

if TYPE_CHECKING:
    from buda_emu.tensix.words import Core


class Planned:
    """What was worked out of the temporal graphs of one netlist so far."""

    def __init__(self, _netlist: Netlist) -> None:
        self._topologies: dict[int, Topology] = {}  # by the number of the temporal graph
        self._ends: dict[int, HostEnds] = {}
        # By temporal graph and precision: for each set of labels that its sources had so far, which are few.
        self._plans: dict[tuple[object, ...], list[tuple[Mapping[str, str], Plan]]] = {}

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
        plans = self._plans.setdefault((temporal.id, quantised, core), [])
        for known, plan in plans:
            if known == labels:
                return plan
        plan = build_plan(netlist, self.topology(netlist, temporal), labels, quantised, core)
        plans.append((dict(labels), plan))
        return plan

    def forget_operands(self) -> None:
        """Let go of what ops have worked out of their operands: whoever needs it again works it out again."""
        for plans in list(self._plans.values()):
            for _, plan in list(plans):
                for step in plan.steps:
                    if isinstance(step, Run):
                        step.call.memo.clear()


PLANNED: Final = ForEach(Planned)
