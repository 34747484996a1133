"""Why the chip's answer differs: of each op the error of precision "device" against "ideal", split by cause.

Both precisions run side by side. When an op is seen for the first time, it is run again by itself, on the operands that
the ideal run gave it: as it stands, without each cause of error, and with what a netlist could change.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from buda_emu.errors import HostError
from buda_emu.netlist.model import Netlist, Op
from buda_emu.ops.base import Parallel, Tiles
from buda_emu.runtime.emulator import Emulator, Precision
from buda_emu.runtime.graph.plan import Run, build_plan
from buda_emu.runtime.graph.threads import WorkerPool
from buda_emu.runtime.graph.topology import topology
from buda_emu.runtime.machine.listeners import Listener
from buda_emu.tensix.words import core_of
from buda_emu.verify.inputs.push import push
from buda_emu.verify.op_by_op.lockstep import Key, Rendezvous, run_both
from buda_emu.verify.op_by_op.numerics_result import Numerics, OpNumerics
from buda_emu.verify.op_by_op.op_apart import Apart, ErrorSum, Parts
from buda_emu.verify.op_by_op.op_variants import Ideal
from buda_emu.verify.prepared import Chosen, prepared

if TYPE_CHECKING:
    from buda_emu.image.device_image import DeviceImage


def explain(
    netlist: Netlist,
    names: Sequence[str] = (),
    given: Mapping[str, str] | None = None,
    *,
    image: "DeviceImage | None" = None,
    inputs: Path | None = None,
    seed: int = 0,
    only: str | None = None,
    threads: int = 1,
    memory_limit: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Numerics:
    """The programs of these names, or all, on tensors of `inputs` (a directory, or one .npz file) and on made-up ones.

    `image`: the one that the netlist is of. `given`: parameters, the rest as the harness gives them. `memory_limit`:
    bytes of both runs. Raises what a run and `op_numerics` raise.
    """
    ready = prepared(netlist, Chosen(names, given or {}, memory_limit, image), machines=2, progress=progress)
    feed = ready.feed(inputs, seed)
    ops = op_numerics(
        netlist, lambda emulator: push(emulator, feed.blocks()), ready.programs,
        threads=threads, only=only, memory_limit=ready.limit, progress=progress,
    )  # fmt: skip
    return Numerics(netlist.path, netlist.arch_name, tuple(body.name for body in ready.bodies), ready.values, seed, ops)


def op_numerics(
    netlist: Netlist,
    fill: Callable[[Emulator], object],
    programs: Sequence[tuple[str, Mapping[str, str]]],
    *,
    threads: int = 1,
    only: str | None = None,
    memory_limit: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[OpNumerics, ...]:
    """Run the programs in "device" and "ideal" side by side on the inputs that `fill` pushes.

    `only`: the one op that is looked at. `memory_limit`: bytes of each run. Raises HostError for an op that is not
    there, and what a run raises.
    """
    if only is not None and only not in netlist.ops:
        raise HostError(f"no op {only!r} in {netlist.path}")
    pool = WorkerPool(threads)
    looking = _Looking(netlist, only, pool, progress)
    meeting = Rendezvous(looking.look)

    def side(number: int, precision: Precision) -> Callable[[], None]:
        def work() -> None:
            watch = (_Watch(meeting, looking, number),)
            with Emulator(
                netlist, precision, threads, memory_limit=memory_limit, listeners=watch, inputs_at_once=1
            ) as emulator:
                fill(emulator)
                for name, parameters in programs:
                    emulator.run(name, parameters)

        return work

    try:
        run_both(side(0, "ideal"), side(1, "device"), meeting)
    finally:
        pool.close()
    return looking.results()


class _Watch(Listener):
    """Takes results to the meeting, and operands of the ideal run to who looks at them."""

    def __init__(self, meeting: Rendezvous, looking: "_Looking", side: int) -> None:
        self._meeting = meeting
        self._looking = looking
        self._side = side

    def epoch_start(self, graphs: tuple[str, ...], inputs: int) -> None:  # noqa: ARG002
        if self._side == 0:
            self._looking.epoch(graphs)

    def queue_value(self, queue: str, tiles: Tiles, inputs: int) -> None:  # noqa: ARG002 - always 1 here
        if self._side == 0:
            self._looking.keep(queue, tiles)

    def op_value(self, op: Op, tiles: Tiles, inputs: int) -> None:  # noqa: ARG002 - always 1 here
        self._meeting.meet(self._side, ("op", op.name), tiles)


class _Looking:
    """The figures of all ops, and ideal tensors as long as an op of the epoch needs them."""

    def __init__(self, netlist: Netlist, only: str | None, parallel: Parallel, progress: Callable[[str], None]) -> None:
        self._netlist = netlist
        self._only = only
        self._parallel = parallel
        self._progress = progress
        self._totals: dict[str, ErrorSum] = {}
        self._parts: dict[str, Parts] = {}
        self._steps: dict[str, Run] = {}
        self._open: set[str] = set()  # ops of this epoch that have not been looked at
        self._values: dict[str, Tiles] = {}

    def epoch(self, graphs: tuple[str, ...]) -> None:
        """Another temporal graph starts."""
        self._values.clear()
        names = {op.name for graph in graphs for op in self._netlist.graphs[graph].ops if self._wanted(op.name)}
        self._open = names - self._parts.keys()

    def keep(self, name: str, tiles: Tiles) -> None:
        """A tensor of the ideal run."""
        if self._open:
            self._values[name] = tiles[:1].copy()

    def look(self, key: Key, expected: Tiles, observed: Tiles) -> None:
        """Both sides of one result (`Rendezvous`)."""
        op = self._netlist.ops[key[1]]
        if self._wanted(op.name):
            self._totals.setdefault(op.name, ErrorSum(op)).add(expected, observed)
            if op.name in self._open:
                self._progress(f"op {op.name}")
                self._parts[op.name] = self._taken_apart(op, expected)
                self._open.discard(op.name)
                if not self._open:
                    self._values.clear()
        self.keep(op.name, expected)

    def results(self) -> tuple[OpNumerics, ...]:
        """In the order of their first run."""
        owner = {op.name: graph.name for graph in self._netlist.graphs.values() for op in graph.ops}
        found: list[OpNumerics] = []
        for index, (name, total) in enumerate(self._totals.items()):
            op, parts = self._netlist.ops[name], self._parts[name]
            found.append(
                OpNumerics(
                    index, name, op.type, owner[name], parts.in_df, op.out_df, total.result(), parts.local,
                    parts.without, parts.cause, parts.repair, parts.note, self._brought(op), parts.largest,
                    parts.beyond,
                )
            )  # fmt: skip
        return tuple(found)

    def _brought(self, op: Op) -> float | None:
        """The largest error among its operands, where other ops made them."""
        queues = self._netlist.queues
        makers = {queues[name].input if name in queues else name for name in op.inputs}
        errors = [self._totals[name].result().rms for name in makers if name in self._totals]
        return max((error for error in errors if error is not None), default=None)

    def _wanted(self, name: str) -> bool:
        return self._only is None or name == self._only

    def _taken_apart(self, op: Op, expected: Tiles) -> Parts:
        step = self._step(op)
        call = step.device
        assert call is not None
        operands = [self._operand(name) for name in op.inputs]
        if any(operand is None for operand in operands):
            return Parts(call.dfs, note="its operand is read as row-major data")
        ideal = [operand for operand in operands if operand is not None]
        expected = expected[:1]
        if op.gradient_op:  # one product, without the sum that it is added to
            if op.attributes.relu_en:
                return Parts(call.dfs, note="a gradient op with relu")
            expected = np.empty_like(expected)
            step.implementation.run(step.call, [operand.values for operand in ideal], expected, self._parallel)
        return Apart(op, call, ideal, expected, self._parallel).parts()

    def _operand(self, name: str) -> Ideal | None:
        """A queue that was read, or the op that feeds it."""
        found, queue = self._values.get(name), self._netlist.queues.get(name)
        if found is None and queue is not None:
            found = self._values.get(queue.input)
        return None if found is None else Ideal(found, queue is not None and queue.host_fed)

    def _step(self, op: Op) -> Run:
        """The op as planned for the device."""
        if op.name not in self._steps:
            netlist = self._netlist
            labels = {queue.name: queue.df for queue in netlist.queues.values()}
            for temporal in netlist.temporal_graphs:
                if any(item is op for graph in temporal.graphs for item in netlist.graphs[graph].ops):
                    plan = build_plan(netlist, topology(netlist, temporal), labels, True, core_of(netlist.arch_name))
                    self._steps.update({step.op.name: step for step in plan.steps if isinstance(step, Run)})
        return self._steps[op.name]
