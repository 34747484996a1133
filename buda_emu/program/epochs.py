"""Which `execute` completes an epoch: the graphs of a temporal graph run as one, when all were executed (NETLIST 4.3).

The one walker of epochs: what runs a program, what times it and what counts its inputs ask it, so all refuse the same.
"""

from collections.abc import Mapping
from typing import NamedTuple

from buda_emu.errors import ProgramError
from buda_emu.netlist.model import Execute, Netlist, Queue, TemporalGraph
from buda_emu.program.settings import ALL_SETTINGS, Evaluated, EvaluatedSettings, ExecuteSettings
from buda_emu.program.values import Variables


class CompleteEpoch(NamedTuple):
    """A temporal graph whose graphs were all executed.

    `executes`: of each graph; `settings`: of each queue that one of them names; `last`: those of the last execute.
    """

    temporal: TemporalGraph
    input_count: int
    executes: Mapping[str, Execute]
    settings: Mapping[str, Evaluated]
    last: ExecuteSettings


Pending = tuple[Mapping[int, Mapping[str, Execute]], Mapping[int, Mapping[str, Evaluated]]]
"""Executes and settings of each temporal graph of which others are still to be executed."""


class GatheredExecutes:
    """The executes of one run of a program, gathered by temporal graph."""

    __slots__ = ("_executes", "_netlist", "_prepared", "_settings", "_temporal")

    def __init__(self, netlist: Netlist) -> None:
        self._netlist = netlist
        self._prepared = ALL_SETTINGS.of(netlist)
        self._temporal = {name: temporal for temporal in netlist.temporal_graphs for name in temporal.graphs}
        self._executes: dict[int, dict[str, Execute]] = {}  # of each temporal graph, since it ran last
        self._settings: dict[int, dict[str, Evaluated]] = {}

    def begin_run(self) -> None:
        """Forget what an earlier run left pending."""
        self._executes.clear()
        self._settings.clear()

    def state(self) -> "Pending":
        """A copy of what is pending."""
        executes = {number: dict(of) for number, of in self._executes.items()}
        return executes, {number: dict(of) for number, of in self._settings.items()}

    def set_state(self, pending: "Pending") -> None:
        """Replace what is pending by what `state` gave."""
        executes, settings = pending
        self._executes = {number: dict(of) for number, of in executes.items()}
        self._settings = {number: dict(of) for number, of in settings.items()}

    def add(self, instruction: Execute, variables: Variables) -> CompleteEpoch | None:
        """One more execute; the epoch that it completes (NETLIST 4.3 steps 1 to 3b).

        Raises ProgramError for a graph that is not defined or was executed already, for settings that differ from those
        of another graph of the epoch, that cannot be evaluated, or that exclude each other.
        """
        graph = instruction.graph
        temporal = self._temporal.get(graph)
        if temporal is None:
            raise ProgramError(f"execute of graph {graph!r}, which is not defined")
        pending = self._settings.get(temporal.id)
        if pending is None:
            pending = self._settings[temporal.id] = {}
        own = self._prepared.of(instruction)
        for evaluated in own.evaluated(variables):
            name = evaluated[0].queue
            if name in pending and pending[name][1] != evaluated[1]:
                raise ProgramError(
                    f"execute of {graph}: settings of queue {name} differ from those that another "
                    "graph of the same temporal graph gave",
                    kind="settings",
                    queue=name,
                )
            pending[name] = evaluated
        executes = self._executes.get(temporal.id)
        if executes is None:
            executes = self._executes[temporal.id] = {}
        if graph in executes:
            raise ProgramError(
                f"execute of {graph} twice before the other graphs of its temporal graph "
                f"({', '.join(temporal.graphs)}) were executed",
                kind="settings",
            )
        executes[graph] = instruction
        if len(executes) < len(temporal.graphs):
            return None
        del self._executes[temporal.id], self._settings[temporal.id]
        for name, (_, settings) in pending.items():
            _require_sense(self._netlist.queues[name], settings)
        return CompleteEpoch(temporal, self._netlist.graphs[graph].input_count, executes, pending, own)


def _require_sense(queue: Queue, settings: EvaluatedSettings) -> None:
    """NETLIST 4.3 steps 3a and 3b, which the device's loader holds, too (4.1)."""
    kind = "ram" if queue.is_ram else "queue"
    if settings.zero and not settings.prologue:
        raise ProgramError(f"zero without prologue on {kind} {queue.name}", kind="settings", queue=queue.name)
    if queue.is_ram and settings.global_wrptr_autoinc and (settings.prologue or settings.epilogue or settings.zero):
        what = f"global_wrptr_autoinc together with prologue, epilogue or zero on ram {queue.name}"
        raise ProgramError(what, kind="settings", queue=queue.name)
