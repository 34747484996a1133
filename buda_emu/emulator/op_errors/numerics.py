"""Measures why the chip's result differs: for each op the error of precision "device" against "ideal", split by cause.

Both precisions run side by side. When an op is seen for the first time, it is run again by itself, on the operands that
the ideal run gave it: as it stands, without each cause of error, and with what a netlist could change."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from queue import Empty, Queue
from threading import Condition, Thread
from typing import TYPE_CHECKING, Final, Unpack

import numpy as np

from buda_emu.arithmetic.jit.kernel import announce
from buda_emu.arithmetic.jit.reporting import with_sent_kernels
from buda_emu.arithmetic.tensix.registers import core_of
from buda_emu.emulator.inputs.feed import push
from buda_emu.emulator.inputs.prepared import RunChoice, prepare_run
from buda_emu.emulator.memory.host import thread_count
from buda_emu.emulator.op_errors.numerics_result import Numerics, OpNumerics
from buda_emu.emulator.op_errors.op_apart import Elements, ErrorSum, OpAnalysis, OpFindings
from buda_emu.emulator.op_errors.op_variants import Ideal
from buda_emu.emulator.ops.base import Parallel, Tiles, serial
from buda_emu.emulator.options import Machine
from buda_emu.emulator.runtime.emulator import Emulator, Precision
from buda_emu.emulator.runtime.graph.plan import build_plan
from buda_emu.emulator.runtime.graph.steps import Run, topology
from buda_emu.emulator.runtime.graph.threads import WorkerPool
from buda_emu.emulator.runtime.machine.listeners import Listener
from buda_emu.netlist.model import Netlist, Op
from buda_emu.support.checker.suggest import hint_in_parentheses
from buda_emu.support.errors import HostError, InternalError
from buda_emu.support.progress import Activity, Report, SendKernel, do_nothing
from buda_emu.support.workers.job import Job, Workers
from buda_emu.support.workers.spread import spread

if TYPE_CHECKING:
    from buda_emu.emulator.image.device_image import DeviceImage


Key = tuple[str, str]  # "op" or "queue", and its name
Look = Callable[[Key, Tiles, Tiles], None]
_WAIT_SECONDS: Final = 0.5  # how long a wait is deaf to Ctrl-C on platforms where it is


class PartnerFailedError(Exception):
    """Raised in a run whose partner has failed; the partner's error is the one to report."""


class Rendezvous:
    """The meeting of side 0 and side 1. `look` is called with the key and both tensors while both sides wait."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._condition = Condition()
        self._offers: dict[int, tuple[Key, Tiles]] = {}
        self._gone: set[int] = set()
        self._failed = False

    def meet(self, side: int, key: Key, tiles: Tiles) -> None:
        """Bring a side's tensor to the meeting, wait for the other side's tensor of the same key, and let `look`
        compare both. Raises PartnerFailedError when the other side has failed, InternalError when it comes to another
        key or has ended."""
        with self._condition:
            self._check()
            other = self._offers.get(1 - side)
            if other is None:
                self._offers[side] = key, tiles
                while side in self._offers:
                    if 1 - side in self._gone:
                        raise InternalError(f"two runs of one netlist differ: only one of them came to {key}")
                    self._condition.wait(_WAIT_SECONDS)
                    self._check()
                return
            if other[0] != key:
                raise InternalError(f"two runs of one netlist differ: one is at {key}, the other at {other[0]}")
            pair = (tiles, other[1]) if side == 0 else (other[1], tiles)
            self._look(key, *pair)
            self._offers.clear()
            self._condition.notify_all()

    def leave(self, side: int, *, failed: bool) -> None:
        """Record that this side brings no more tensors, as its run has ended or `failed`, and wake the other side."""
        with self._condition:
            self._gone.add(side)
            self._failed = self._failed or failed
            self._condition.notify_all()

    def _check(self) -> None:
        """Raise PartnerFailedError once a side has failed."""
        if self._failed:
            raise PartnerFailedError


class Side(Listener):
    """A listener that takes the results of ops of one run to the meeting, as side 0 or 1."""

    def __init__(self, meeting: Rendezvous, side: int) -> None:
        self._meeting = meeting
        self._side = side

    def op_value(self, op: Op, tiles: Tiles, inputs: int) -> None:  # noqa: ARG002 - always 1 here
        """Bring an op's result for one input to the meeting, and wait there for that of the other run. Raises
        PartnerFailedError."""
        self._meeting.meet(self._side, ("op", op.name), tiles)


def run_both(first: Callable[[], None], second: Callable[[], None], meeting: Rendezvous) -> None:
    """Run side 0 (`first`) on a thread of its own and side 1 (`second`) on the caller's, to the end of both; they
    compare results at `meeting`. Raises the error of a side that failed. Where both failed by themselves it is an
    interruption if one is, else the error of side 0."""
    errors: dict[int, BaseException] = {}

    def run(side: int, work: Callable[[], None]) -> None:
        """Do the work of a side, keep its error, and leave the meeting at the end."""
        failed = True
        try:
            work()
            failed = False
        except BaseException as error:  # noqa: BLE001 - handed to the caller below
            errors[side] = error
        finally:
            meeting.leave(side, failed=failed)

    thread = Thread(target=run, args=(0, first), name="expected run")
    thread.start()
    run(1, second)
    thread.join()
    failed_sides = [side for side, error in errors.items() if not isinstance(error, PartnerFailedError)]
    if failed_sides:
        raise errors[min(failed_sides, key=lambda side: (isinstance(errors[side], Exception), side))]


OpTask = tuple[str, Tiles, list[Ideal] | None, Elements | None]
"""The name of an op, its result in the ideal run, its operands there, and which numbers of the result are elements."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The ops to analyse and the numbers of their results that count. `only` is the one op, None for all; `elements`
    returns which numbers of an op's result are elements, None where padding cannot be told from them."""

    only: str | None = None
    elements: Callable[[str], Elements | None] = lambda _: None

    def takes(self, name: str) -> bool:
        """Return whether the op of that name is analysed."""
        return self.only is None or name == self.only


_ALL: Final = Selection()
_PENDING: Final = OpFindings(())


def explain(
    netlist: Netlist,
    programs: Sequence[str] = (),
    parameters: Mapping[str, str] | None = None,
    *,
    image: "DeviceImage | None" = None,
    inputs: Path | None = None,
    seed: int = 0,
    only: str | None = None,
    workers: Workers | None = None,
    progress: Report = do_nothing,
    **machine: Unpack[Machine],
) -> Numerics:
    """Run these programs, or all, in precisions "device" and "ideal" side by side, and return the errors of their ops.
    `inputs` is a directory or one .npz file of tensors; others are generated. `image` is the one that the netlist is
    of. `parameters` that are not given are as the harness gives them. The memory of `machine` is for both runs
    together. `workers` analyse ops while both run. Raises what a run raises, and HostError for an op `only` that is not
    there."""
    choice = RunChoice(programs=programs, parameters=parameters or {}, machine=machine, image=image)
    ready = prepare_run(netlist, choice, machines=2, progress=progress)
    feed = ready.feed(inputs, seed)
    if image is None or image.model is None:
        counted = Selection(only)
    else:
        counted = Selection(only, image.model.elements_of)
    ops = op_numerics(
        netlist,
        lambda emulator: push(emulator, feed.blocks()),
        ready.programs,
        counted=counted,
        workers=workers,
        progress=progress,
        **ready.machine,
    )
    return Numerics(
        netlist=netlist.path,
        arch=netlist.arch_name,
        programs=tuple(body.name for body in ready.bodies),
        parameters=ready.values,
        seed=seed,
        ops=ops,
    )


def op_numerics(
    netlist: Netlist,
    fill: Callable[[Emulator], object],
    programs: Sequence[tuple[str, Mapping[str, str]]],
    *,
    counted: Selection = _ALL,
    workers: Workers | None = None,
    progress: Report = do_nothing,
    **machine: Unpack[Machine],
) -> tuple[OpNumerics, ...]:
    """Run the programs in precisions "device" and "ideal" side by side on the inputs that `fill` pushes into a machine,
    and return the errors of their ops in the order of their first run. `counted` is the selection of ops and elements;
    `workers` analyse ops while both run, and change no figure. `machine` has the options of each of both
    machines. Raises HostError for an op that is not there, and what a run raises."""
    if counted.only is not None and counted.only not in netlist.ops:
        names = {op.name for op in netlist.ops.values()}
        hint = hint_in_parentheses(counted.only, names)
        raise HostError(f"no op {counted.only!r} in {netlist.path}{hint}")
    pool = WorkerPool(thread_count(machine))
    looking = _Analysis(netlist, counted, pool, progress)
    meeting = Rendezvous(looking.look)

    def side(number: int, precision: Precision) -> Callable[[], None]:
        """Return the work of side `number`: a run in this precision that takes its results to the meeting."""

        def work() -> None:
            """Fill a machine and run all programs on it."""
            watch = (_Watch(meeting, looking, number),)
            with Emulator(netlist, precision, **machine, listeners=watch, inputs_at_once=1) as emulator:
                fill(emulator)
                for name, parameters in programs:
                    emulator.run(name, parameters)

        return work

    def run() -> None:
        """Run the ideal side and the device side to their ends."""
        run_both(side(0, "ideal"), side(1, "device"), meeting)

    try:
        if workers is None or workers.alone:
            run()
        else:
            _with_workers(run, looking, netlist, workers)
    finally:
        pool.close()
    return looking.results()


def _with_workers(run: Callable[[], None], looking: "_Analysis", netlist: Netlist, workers: Workers) -> None:
    """Call `run`, which runs both sides, on a thread of its own, while the workers analyse the ops that it sends; it
    waits while they have two ops each to do. Gives their findings to the analysis `looking`. Raises what `run` or a
    worker raises."""
    looking.sent = sent = Queue[OpTask | None](2 * workers.count)
    failed: list[BaseException] = []
    names: list[str] = []

    def produce() -> None:
        """Run both sides; hand their error over, and end the tasks of the workers."""
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)
        finally:
            sent.put(None)

    def items() -> Iterator[OpTask]:
        """Yield the tasks as the runs send them, and record their ops' names."""
        while (task := sent.get()) is not None:
            names.append(task[0])
            yield task

    thread = Thread(target=produce, name="numerics")
    thread.start()
    try:
        job = Job("buda_emu.emulator.op_errors.numerics:analyse_op_job", netlist, reports=True)
        with closing(spread(job, items(), workers, on_report=lambda _, kernel: announce(*kernel))) as results:
            for number, parts in results:
                looking.parts[names[number]] = parts
    finally:
        looking.stopped = True
        while thread.is_alive():
            with suppress(Empty):
                sent.get(timeout=0.1)
        thread.join()
    if failed:
        raise failed[0]


def analyse_op_job(netlist: Netlist, report: SendKernel = do_nothing) -> Callable[[OpTask], OpFindings]:
    """Return a function that analyses one op, the work of a worker process. `report` gets the kernels that it compiles,
    so that other processes need not."""
    looking = _Analysis(netlist, _ALL, serial, do_nothing)

    def work(task: OpTask) -> OpFindings:
        """Analyse the op that a task names."""
        name, expected, ideal, elements = task
        return looking.analyse_alone(netlist.ops[name], expected, ideal, elements)

    return with_sent_kernels(work, report)


class _Watch(Side):
    """A side that also hands the operands of the ideal run to the analysis."""

    def __init__(self, meeting: Rendezvous, looking: "_Analysis", side: int) -> None:
        super().__init__(meeting, side)
        self._looking = looking

    def epoch_start(self, graphs: tuple[str, ...], inputs: int) -> None:  # noqa: ARG002
        """On the ideal side, begin another temporal graph in the analysis; on the device side do nothing."""
        if self._side == 0:
            self._looking.epoch(graphs)

    def queue_value(self, queue: str, tiles: Tiles, inputs: int) -> None:  # noqa: ARG002 - always 1 here
        """On the ideal side, give an entry that is read to the analysis to keep; on the device side do nothing."""
        if self._side == 0:
            self._looking.keep(queue, tiles)


class _Analysis:
    """The errors of all ops, and ideal tensors as long as an op of the epoch needs them."""

    def __init__(self, netlist: Netlist, counted: Selection, parallel: Parallel, progress: Report) -> None:
        self._netlist = netlist
        self._counted = counted
        self._parallel = parallel
        self._progress = progress
        self._op_count = 1 if counted.only is not None else len(netlist.ops)
        self.parts: dict[str, OpFindings] = {}
        self.sent: Queue[OpTask | None] | None = None  # to workers, who analyse ops instead
        self.stopped = False  # nobody waits for more
        self._totals: dict[str, ErrorSum] = {}
        self._steps: dict[str, Run] = {}
        self._open: set[str] = set()  # ops of this epoch that have not been looked at
        self._values: dict[str, Tiles] = {}

    def epoch(self, graphs: tuple[str, ...]) -> None:
        """Begin another temporal graph: forget the tensors of the one before, and note which of its ops are to be
        analysed."""
        self._values.clear()
        ops = chain.from_iterable(self._netlist.graphs[graph].ops for graph in graphs)
        names = {op.name for op in ops if self._counted.takes(op.name)}
        self._open = names - self.parts.keys()

    def keep(self, name: str, tiles: Tiles) -> None:
        """Keep the first input's tensor of the queue or op `name` in the ideal run, if ops of the epoch are still to be
        analysed."""
        if self._open:
            self._values[name] = tiles[:1].copy()

    def look(self, key: Key, expected: Tiles, observed: Tiles) -> None:
        """Add the error of an op's result to its totals, and analyse the op when it is seen for the first time.
        `expected` is the result in the ideal run, `observed` that in the device run. Raises PartnerFailedError once
        nobody waits for results."""
        if self.stopped:
            raise PartnerFailedError
        op = self._netlist.ops[key[1]]
        if self._counted.takes(op.name):
            if op.name not in self._totals:
                self._totals[op.name] = ErrorSum(op, elements=self._counted.elements(op.name))
            self._totals[op.name].add(expected, observed)
            if op.name in self._open:
                self._progress(Activity(f"op {op.name}", "ops", len(self.parts), self._op_count))
                self._analyse(op, expected[:1], self._ideal_operands(op))
                self._open.discard(op.name)
                if not self._open:
                    self._values.clear()
        self.keep(op.name, expected)

    def _analyse(self, op: Op, expected: Tiles, ideal: list[Ideal] | None) -> None:
        """Analyse an op by itself, and record the findings; where there are workers, send it to them and record that
        its findings are pending. `expected` is the op's result in the ideal run, `ideal` the operands that it had
        there, None if one of them was not kept."""
        elements = self._counted.elements(op.name)
        if self.sent is None:
            self.parts[op.name] = self.analyse_alone(op, expected, ideal, elements)
            return
        if ideal is None:
            copies = None
        else:
            copies = [replace(operand, values=operand.values.copy()) for operand in ideal]
        self.sent.put((op.name, expected.copy(), copies, elements))
        self.parts[op.name] = _PENDING

    def results(self) -> tuple[OpNumerics, ...]:
        """Return the errors and findings of all ops, in the order of their first run."""
        owner = {op.name: graph.name for graph in self._netlist.graphs.values() for op in graph.ops}
        results: list[OpNumerics] = []
        for index, (name, total) in enumerate(self._totals.items()):
            op = self._netlist.ops[name]
            parts = self.parts[name]
            results.append(
                OpNumerics(
                    index=index,
                    name=name,
                    type=op.type,
                    graph=owner[name],
                    in_df=parts.in_df,
                    out_df=op.out_df,
                    total=total.result(),
                    local=parts.local,
                    without=parts.without,
                    cause=parts.cause,
                    repair=parts.repair,
                    note=parts.note,
                    operands=self._operand_error(op),
                    largest=parts.largest,
                    beyond=parts.beyond,
                )
            )
        return tuple(results)

    def _operand_error(self, op: Op) -> float | None:
        """Return the largest relative error among the operands of an op that other ops computed, None where there is
        none."""
        queues = self._netlist.queues
        makers = {queues[name].input if name in queues else name for name in op.inputs}
        errors = [self._totals[name].result().rms for name in makers if name in self._totals]
        return max((error for error in errors if error is not None), default=None)

    def _ideal_operands(self, op: Op) -> list[Ideal] | None:
        """Return the operands that an op had in the ideal run; None where one of them was not kept."""
        operands = [self._ideal_operand(name) for name in op.inputs]
        available = [operand for operand in operands if operand is not None]
        if len(available) == len(operands):
            return available
        return None

    def analyse_alone(
        self, op: Op, expected: Tiles, ideal: Sequence[Ideal] | None, elements: Elements | None
    ) -> OpFindings:
        """Analyse an op by itself on the operands that it had in the ideal run, None if one of them was not kept.

        `expected`, float32[1, tiles, 1024], is its result in that run, and `elements` the mask of what counts of it,
        None for all."""
        step = self._planned_step(op)
        call = step.device
        assert call is not None
        if ideal is None:
            return OpFindings(call.dfs, note="its operand is read as row-major data")
        if op.gradient_op:  # one product, without the sum that it is added to
            if op.attributes.relu_en:
                return OpFindings(call.dfs, note="a gradient op with relu")
            expected = np.empty_like(expected)
            step.implementation.run(step.call, [operand.values for operand in ideal], expected, self._parallel)
        return OpAnalysis(
            op=op,
            call=call,
            ideal=ideal,
            expected=expected,
            parallel=self._parallel,
            elements=elements,
        ).parts()

    def _ideal_operand(self, name: str) -> Ideal | None:
        """Return the tensor of a queue or op in the ideal run, for a queue that was not read the result of the op that
        feeds it; None where neither was kept."""
        tiles = self._values.get(name)
        queue = self._netlist.queues.get(name)
        if tiles is None and queue is not None:
            tiles = self._values.get(queue.input)
        if tiles is None:
            return None
        return Ideal(tiles, queue is not None and queue.host_fed)

    def _planned_step(self, op: Op) -> Run:
        """Return the op as planned for precision "device". Raises UnsupportedError, ProgramError."""
        if op.name not in self._steps:
            netlist = self._netlist
            labels = {queue.name: queue.df for queue in netlist.queues.values()}
            for temporal in netlist.temporal_graphs:
                if any(
                    other is op for other in chain.from_iterable(netlist.graphs[name].ops for name in temporal.graphs)
                ):
                    plan = build_plan(netlist, topology(netlist, temporal), labels, True, core_of(netlist.arch_name))
                    self._steps.update({step.op.name: step for step in plan.steps if isinstance(step, Run)})
        return self._steps[op.name]
