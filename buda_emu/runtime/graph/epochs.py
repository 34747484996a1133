"""What an `execute` does around the data: settings, pending subgraphs, pointer propagation (NETLIST 4.3)."""

from collections.abc import Callable

from buda_emu.device.channel import Fifo, Ram
from buda_emu.errors import ProgramError
from buda_emu.netlist.model import Execute, Netlist, TemporalGraph
from buda_emu.program.settings import AllSettings, EvaluatedSettings, PreparedSettings
from buda_emu.program.values import Variables
from buda_emu.runtime.machine.journal import SETTINGS
from buda_emu.runtime.machine.memory import Memory, Watched

RunGraph = Callable[[TemporalGraph, list[Fifo]], None]


class Epochs:
    """The `program.interpreter.Machine`: collects settings, runs a temporal graph when all its graphs were executed."""

    def __init__(
        self, netlist: Netlist, memory: Memory, run_graph: RunGraph, watched: Watched, *, late_checks: bool = False
    ) -> None:
        self._netlist = netlist
        self._memory = memory
        self._run_graph = run_graph
        self._watched = watched
        self._settings = AllSettings(netlist)
        self._temporal = {name: temporal for temporal in netlist.temporal_graphs for name in temporal.graphs}
        self._pending: dict[int, dict[str, EvaluatedSettings]] = {}
        self._done: dict[int, set[str]] = {}
        self._seen: dict[str, PreparedSettings] = {}
        self._late_checks = late_checks
        self._astray: dict[tuple[str, str], ProgramError] = {}  # by ram and field: pointers that left the slots

    def begin_run(self) -> None:
        """Forget what an earlier run_program left pending; pointers persist."""
        self._pending.clear()
        self._done.clear()
        self._seen.clear()

    def execute(self, instruction: Execute, variables: Variables) -> None:
        """NETLIST 4.3 steps 1 to 6. Raises ProgramError."""
        temporal = self._temporal.get(instruction.graph)
        if temporal is None:
            raise ProgramError(f"execute of graph {instruction.graph!r}, which is not defined")
        pending = self._pending.setdefault(temporal.id, {})
        own: list[str] = []
        for source in instruction.queue_settings:
            settings = self._settings.of(source).evaluate(variables)
            other = pending.get(source.queue)
            if other is not None and other != settings:
                raise ProgramError(
                    f"execute of {instruction.graph}: settings of queue {source.queue} differ from those that another "
                    "graph of the same temporal graph gave",
                    kind="settings", queue=source.queue,
                )  # fmt: skip
            pending[source.queue] = settings
            own.append(source.queue)
        done = self._done.setdefault(temporal.id, set())
        if instruction.graph in done:
            raise ProgramError(
                f"execute of {instruction.graph} twice before the other graphs of its temporal graph "
                f"({', '.join(temporal.graphs)}) were executed",
                kind="settings",
            )
        done.add(instruction.graph)
        if len(done) < len(temporal.graphs):
            return
        input_count = self._netlist.graphs[instruction.graph].input_count
        for settings in pending.values():
            self._apply(settings, input_count)
        self._require_pointers(temporal)
        popping = [channel for name in pending if isinstance(channel := self._memory.channels[name], Fifo)]
        self._run_graph(temporal, popping)
        for name in own:
            channel = self._memory.channels[name]
            if isinstance(channel, Fifo):
                channel.ring.local = channel.ring.local_base
        done.clear()
        pending.clear()

    def variable_written(self, text: str, variables: Variables) -> None:
        """Propagation of a varinst to queues seen in this run, by equality of texts (NETLIST 4.3)."""
        for name, settings in self._seen.items():
            if text in settings.texts:
                self._propagate(self._memory.channels[name], settings.evaluate(variables), text)

    def _move(self, channel: Ram, field: str, place: Callable[[int], None], pointer: int, *, now: bool) -> None:
        """Set a ram's pointer. One that leaves the slots is an error: `now`, or when a graph uses it (NETLIST 12)."""
        key = (channel.name, field)
        try:
            place(pointer)
        except ProgramError as error:
            if now or not self._late_checks:
                raise
            self._astray[key] = error
        else:
            self._astray.pop(key, None)

    def _require_pointers(self, temporal: TemporalGraph) -> None:
        """Raise for a pointer outside of its ram that these graphs read or write by."""
        for (name, field), error in self._astray.items():
            ops = [op for graph in temporal.graphs for op in self._netlist.graphs[graph].ops]
            queue = self._netlist.queues[name]
            reads, writes = any(name in op.inputs for op in ops), any(queue.input == op.name for op in ops)
            if (field == "rd_ptr_global" and reads) or (field == "wr_ptr_global" and writes):
                raise error

    def allocate(self, queue: str) -> None:
        """allocate_queue."""
        self._memory.allocate(queue)

    def deallocate(self, queue: str) -> None:
        """deallocate_queue."""
        self._memory.deallocate(queue)

    def _apply(self, settings: EvaluatedSettings, input_count: int) -> None:
        """NETLIST 4.3 step 3 for one queue."""
        channel = self._memory.channels[settings.queue]
        if settings.zero and not settings.prologue:
            raise ProgramError(f"zero without prologue on {channel.describe()}", kind="settings", queue=settings.queue)
        if isinstance(channel, Ram):
            if settings.global_wrptr_autoinc and (settings.prologue or settings.epilogue or settings.zero):
                raise ProgramError(
                    f"global_wrptr_autoinc together with prologue, epilogue or zero on {channel.describe()}",
                    kind="settings", queue=settings.queue,
                )  # fmt: skip
        elif not (settings.prologue or settings.epilogue or settings.global_rdptr_autoinc) and settings.rd_ptr_autoinc:
            entries = channel.ring.entries
            if input_count > entries or entries % input_count:
                raise ProgramError(
                    f"input_count {input_count} does not divide the {entries} entries of streamed {channel.describe()}",
                    kind="settings", queue=settings.queue,
                )  # fmt: skip
        channel.prologue, channel.epilogue, channel.zero = settings.prologue, settings.epilogue, settings.zero
        if settings.zero:
            channel.view.store.zero_entries(channel.view)
        first = settings.queue not in self._seen
        self._seen[settings.queue] = self._settings.of(settings.source)
        if first:
            self._place(channel, settings)
        else:
            self._propagate(channel, settings, None)

    def _place(self, channel: Fifo | Ram, settings: EvaluatedSettings) -> None:
        """First use of a queue in this run (step 3e)."""
        if isinstance(channel, Ram):
            channel.global_rdptr_autoinc = max(settings.global_rdptr_autoinc, 0)
            channel.global_wrptr_autoinc = max(settings.global_wrptr_autoinc, 0)
            self._move(channel, "wr_ptr_global", channel.place_write, settings.wr_ptr_global, now=True)
            self._move(channel, "rd_ptr_global", channel.place_read, settings.rd_ptr_global, now=True)
            return
        channel.rd_ptr_autoinc = settings.rd_ptr_autoinc
        channel.global_rdptr_autoinc = settings.global_rdptr_autoinc
        channel.ring.place_local(_not_negative(settings.rd_ptr_local, "rd_ptr_local", channel))
        channel.ring.place_read(_not_negative(settings.rd_ptr_global, "rd_ptr_global", channel))

    def _propagate(self, channel: Fifo | Ram, settings: EvaluatedSettings, text: str | None) -> None:
        """Step 3f (`text` None: every field) or a varinst (only fields written with that text)."""
        source = settings.source

        def match(field_text: str) -> bool:
            return text is None or field_text == text

        if isinstance(channel, Ram):
            if match(source.global_wrptr_autoinc):
                channel.global_wrptr_autoinc = max(settings.global_wrptr_autoinc, 0)
            if text is not None and match(source.global_rdptr_autoinc):
                channel.global_rdptr_autoinc = max(settings.global_rdptr_autoinc, 0)
            if match(source.wr_ptr_global) and not settings.read_only:
                self._move(channel, "wr_ptr_global", channel.place_write, settings.wr_ptr_global, now=text is None)
            if match(source.rd_ptr_global):
                self._move(channel, "rd_ptr_global", channel.place_read, settings.rd_ptr_global, now=text is None)
            return
        if match(source.rd_ptr_autoinc):
            channel.rd_ptr_autoinc = settings.rd_ptr_autoinc
        if match(source.global_rdptr_autoinc):
            channel.global_rdptr_autoinc = settings.global_rdptr_autoinc
        if match(source.rd_ptr_local):
            channel.ring.place_local(_not_negative(settings.rd_ptr_local, "rd_ptr_local", channel))
        if match(source.rd_ptr_global):
            before = channel.ring.occupancy
            channel.ring.pop_to(_not_negative(settings.rd_ptr_global, "rd_ptr_global", channel))
            if channel.ring.occupancy < before:
                self._watched.pop(channel.name, SETTINGS, before - channel.ring.occupancy)


def _not_negative(value: int, field: str, channel: Fifo) -> int:
    if value < 0:
        raise ProgramError(f"{field} is {value} for {channel.describe()}", kind="pointer", queue=channel.name)
    return value
