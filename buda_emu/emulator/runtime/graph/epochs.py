"""The bookkeeping of `execute` around the data: settings, pending subgraphs, pointer propagation (NETLIST 4.3)."""

from collections.abc import Callable, Mapping
from itertools import chain

from buda_emu.emulator.memory.channel import Fifo, Ram
from buda_emu.emulator.runtime.machine.listeners import SETTINGS
from buda_emu.emulator.runtime.machine.memory import Memory, Watchers
from buda_emu.netlist.model import Execute, Netlist, QueueSettings, TemporalGraph
from buda_emu.netlist.program.interpreter import GatheredExecutes, Pending
from buda_emu.netlist.program.settings import EvaluatedSettings, PreparedSettings, Variables
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import ProgramError

RunGraph = Callable[[TemporalGraph, list[Fifo]], None]
EpochsState = tuple[Pending, Mapping[str, PreparedSettings], Mapping[tuple[str, str], ProgramError]]
"""Executes that are pending, settings of the queues seen in this run, pointers that left the slots of their rams."""


class Epochs:
    """An implementation of `program.interpreter.Machine`: it collects settings, and runs a temporal graph once all its
    graphs were executed."""

    def __init__(
        self, netlist: Netlist, memory: Memory, run_graph: RunGraph, watched: Watchers, *, late_checks: bool = False
    ) -> None:
        self._netlist = netlist
        self._memory = memory
        self._run_graph = run_graph
        self._watched = watched
        self._gathered = GatheredExecutes(netlist)
        self._seen: dict[str, PreparedSettings] = {}
        self._late_checks = late_checks
        self._astray: dict[tuple[str, str], ProgramError] = {}  # by ram and field: pointers that left the slots

    def begin_run(self) -> None:
        """Forget which graphs and queue settings an earlier run of a program left waiting; pointers of queues
        persist."""
        self._gathered.begin_run()
        self._seen.clear()

    def state(self) -> "EpochsState":
        """Return a copy of what the run has gathered so far, for a snapshot."""
        return self._gathered.state(), dict(self._seen), dict(self._astray)

    def set_state(self, state: "EpochsState") -> None:
        """Continue from a state that the method `state` returned."""
        pending, seen, astray = state
        self._gathered.set_state(pending)
        self._seen = dict(seen)
        self._astray = dict(astray)

    def execute(self, instruction: Execute, variables: Variables) -> None:
        """Evaluate the queue settings of an execute and, once every graph of its temporal graph was executed, apply
        them, run the inputs of the epoch, and reset local read pointers (NETLIST 4.3 steps 1 to 6). Raises
        ProgramError."""
        epoch = self._gathered.add(instruction, variables)
        if epoch is None:
            return
        channels = self._memory.channels
        popping: list[Fifo] = []
        for name, (prepared, settings) in epoch.settings.items():
            channel = channels[name]
            self._apply(channel, prepared, settings, epoch.input_count)
            if isinstance(channel, Fifo):
                popping.append(channel)
        if self._astray:
            self._require_pointers(epoch.temporal)
        self._run_graph(epoch.temporal, popping)
        for prepared in epoch.last.prepared:
            channel = channels[prepared.queue]
            if isinstance(channel, Fifo):
                channel.ring.local = channel.ring.local_base

    def follow_variable(self, text: str, variables: Variables) -> None:
        """After a varinst has changed the variable `text`, set the pointers and steps of those queues of this run whose
        settings name that variable (NETLIST 4.3). Raises ProgramError for a pointer that is out of range."""
        channels = self._memory.channels
        for name, prepared in self._seen.items():
            if text in prepared.texts:
                self._follow(channels[name], prepared.source, text, variables)

    def _move(self, channel: Ram, field: str, place: Callable[[int], None], pointer: int, *, at_once: bool) -> None:
        """Set the pointer `field` of a ram by calling `place`. A pointer beyond the slots raises ProgramError; with
        late checks, and without `at_once`, only when a graph uses it (NETLIST 12)."""
        try:
            place(pointer)
        except ProgramError as error:
            if at_once or not self._late_checks:
                raise
            self._astray[channel.name, field] = error
        else:
            if self._astray:
                self._astray.pop((channel.name, field), None)

    def _require_pointers(self, temporal: TemporalGraph) -> None:
        """Raise the ProgramError noted for a ram pointer beyond its slots, if the ops of these graphs read or write by
        it."""
        for (name, field), error in self._astray.items():
            ops = list(chain.from_iterable(self._netlist.graphs[graph].ops for graph in temporal.graphs))
            queue = self._netlist.queues[name]
            reads = any(name in op.inputs for op in ops)
            writes = any(queue.input == op.name for op in ops)
            if (field == "rd_ptr_global" and reads) or (field == "wr_ptr_global" and writes):
                raise error

    def allocate(self, queue: str) -> None:
        """Do the instruction allocate_queue: take the byte ranges of a dynamic queue, pointers to 0. Raises
        ProgramError where they are taken."""
        self._memory.allocate(queue)

    def deallocate(self, queue: str) -> None:
        """Do the instruction deallocate_queue: give the byte ranges of a dynamic queue back. Raises ProgramError where
        it is not allocated."""
        self._memory.deallocate(queue)

    def _apply(
        self, channel: Fifo | Ram, prepared: PreparedSettings, settings: EvaluatedSettings, input_count: int
    ) -> None:
        """Apply the evaluated settings of one queue: flags, zeroing, pointers and steps (NETLIST 4.3 steps 3c to 3f).
        Raises ProgramError for a pointer out of range, and where `input_count` does not divide the entries of a
        streamed queue."""
        streamed = not (settings.prologue or settings.epilogue or settings.global_rdptr_autoinc)
        if isinstance(channel, Fifo) and streamed and settings.rd_ptr_autoinc:
            entries = channel.ring.entries
            if input_count > entries or entries % input_count:
                raise ProgramError(
                    f"input_count {input_count} does not divide the {plural(entries, 'entry')} of streamed "
                    f"{channel.describe()}",
                    kind="settings",
                    queue=settings.queue,
                )
        channel.prologue = settings.prologue
        channel.epilogue = settings.epilogue
        channel.zero = settings.zero
        if settings.zero:
            channel.view.store.zero_entries(channel.view)
            self._memory.held_entries.note_zeros(channel.name)
        first = prepared.queue not in self._seen
        self._seen[prepared.queue] = prepared
        if first:
            self._place(channel, settings)
        else:
            self._propagate(channel, settings)

    def _place(self, channel: Fifo | Ram, settings: EvaluatedSettings) -> None:
        """Set pointers and steps at the first use of a queue in this run (NETLIST 4.3 step 3e)."""
        if isinstance(channel, Ram):
            channel.global_rdptr_autoinc = max(settings.global_rdptr_autoinc, 0)
            channel.global_wrptr_autoinc = max(settings.global_wrptr_autoinc, 0)
            if self._astray or channel.wr != settings.wr_ptr_global:
                self._move(channel, "wr_ptr_global", channel.place_write, settings.wr_ptr_global, at_once=True)
            if self._astray or channel.rd != settings.rd_ptr_global:
                self._move(channel, "rd_ptr_global", channel.place_read, settings.rd_ptr_global, at_once=True)
            return
        ring = channel.ring
        channel.rd_ptr_autoinc = settings.rd_ptr_autoinc
        channel.global_rdptr_autoinc = settings.global_rdptr_autoinc
        ring.place_local(_not_negative(settings.rd_ptr_local, "rd_ptr_local", channel))
        ring.place_read(_not_negative(settings.rd_ptr_global, "rd_ptr_global", channel))

    def _propagate(self, channel: Fifo | Ram, settings: EvaluatedSettings) -> None:
        """Set pointers and steps at later uses of a queue in this run; a moved global read pointer pops entries
        (NETLIST 4.3 step 3f)."""
        if isinstance(channel, Ram):
            channel.global_wrptr_autoinc = max(settings.global_wrptr_autoinc, 0)
            if not settings.read_only:
                self._move(channel, "wr_ptr_global", channel.place_write, settings.wr_ptr_global, at_once=True)
            self._move(channel, "rd_ptr_global", channel.place_read, settings.rd_ptr_global, at_once=True)
            return
        channel.rd_ptr_autoinc = settings.rd_ptr_autoinc
        channel.global_rdptr_autoinc = settings.global_rdptr_autoinc
        channel.ring.place_local(_not_negative(settings.rd_ptr_local, "rd_ptr_local", channel))
        self._pop_to(channel, settings.rd_ptr_global)

    def _follow(self, channel: Fifo | Ram, texts: QueueSettings, text: str, variables: Variables) -> None:
        """Set those fields of a queue to the new value of a variable that were written as this variable (`text`).
        `texts`: the settings of the queue as written."""
        value = variables.value(text)
        if isinstance(channel, Ram):
            if texts.global_wrptr_autoinc == text:
                channel.global_wrptr_autoinc = max(value, 0)
            if texts.global_rdptr_autoinc == text:
                channel.global_rdptr_autoinc = max(value, 0)
            if texts.wr_ptr_global == text and not variables.value(texts.read_only):
                self._move(channel, "wr_ptr_global", channel.place_write, value, at_once=False)
            if texts.rd_ptr_global == text:
                self._move(channel, "rd_ptr_global", channel.place_read, value, at_once=False)
            return
        if texts.rd_ptr_autoinc == text:
            channel.rd_ptr_autoinc = value
        if texts.global_rdptr_autoinc == text:
            channel.global_rdptr_autoinc = value
        if texts.rd_ptr_local == text:
            channel.ring.place_local(_not_negative(value, "rd_ptr_local", channel))
        if texts.rd_ptr_global == text:
            self._pop_to(channel, value)

    def _pop_to(self, channel: Fifo, pointer: int) -> None:
        """Move the global read pointer of a queue forward to `pointer`, and report the entries that this frees. Raises
        ProgramError for a negative pointer."""
        freed = channel.ring.pop_to(_not_negative(pointer, "rd_ptr_global", channel))
        if freed > 0:
            self._watched.pop(channel.name, SETTINGS, freed)


def _not_negative(value: int, field: str, channel: Fifo) -> int:
    """Return a pointer's value. Raises ProgramError, naming field and queue, for a negative one."""
    if value < 0:
        raise ProgramError(f"{field} is {value} for {channel.describe()}", kind="pointer", queue=channel.name)
    return value
