"""One pass over a plan's steps for the inputs of one chunk: what every precision has in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from buda_emu.device.channel import Ram
from buda_emu.device.store import TILE_ELEMENTS, EntryView, consecutive
from buda_emu.errors import HostError, ProgramError
from buda_emu.netlist.model import Netlist
from buda_emu.ops.base import Parallel
from buda_emu.program.steps import StepBudget
from buda_emu.records import dataclass
from buda_emu.runtime.graph.buffers import BufferPool
from buda_emu.runtime.graph.late import Late
from buda_emu.runtime.graph.plan_part import Duties, duties
from buda_emu.runtime.graph.schedule import Chunk
from buda_emu.runtime.graph.steps import Convert, Plan, Push, Read, Run, Same, Step, uses
from buda_emu.runtime.machine.gate import Gate
from buda_emu.runtime.machine.listeners import read_only
from buda_emu.runtime.machine.memory import Memory, Watched
from buda_emu.runtime.machine.part import Part
from buda_emu.runtime.machine.stepper import Stepper

if TYPE_CHECKING:
    from buda_emu.ops.on_device.kernel_units import KernelUnits
    from buda_emu.tensix.words import Core

TILE_BYTES = 4 * TILE_ELEMENTS
Tensor = NDArray[np.float32]
Recorder = Callable[[Plan, Chunk], object]
V = TypeVar("V", bound=Any)
"""What holds a tensor [w, tiles]: float32 tiles, or the bits of a format."""


@dataclass(slots=True)
class Context:
    """What every epoch of one machine shares. `quantised` is precision "format" (OPS 4.2)."""

    netlist: Netlist
    memory: Memory
    parallel: Parallel
    quantised: bool
    watched: Watched
    steps: StepBudget
    inputs_at_once: int | None
    gate: Gate
    core: "Core | None" = None  # whose arithmetic the ops have: precision "device"
    recorder: "Recorder | None" = None  # told of each chunk before it runs
    units: "Callable[..., KernelUnits] | None" = None  # makes the units that an op of precision "device" runs on
    pool: BufferPool = field(default_factory=BufferPool)
    part: Part | None = None  # of several machines that run the netlist together
    late: Late | None = None  # what such a machine puts off in the epoch that runs
    gradients: dict[str, Tensor] = field(default_factory=dict[str, Tensor])  # results of gradient ops that no ram keeps

    known_duties: dict[int, Duties] = field(default_factory=dict[int, Duties])  # of plans, which live as long

    def duties(self, plan: Plan, part: Part, late: Late) -> Duties:
        """What the machine does of a plan."""
        found = self.known_duties.get(id(plan))
        if found is None:
            found = self.known_duties[id(plan)] = duties(plan, part, late.queues)
        return found

    def free(self) -> None:
        """Let go of all tensors."""
        self.pool.free()
        self.gradients.clear()


class ChunkRun(ABC, Generic[V]):
    """The steps for the inputs of one chunk: `compute`, `store`, `tell`."""

    def __init__(self, context: Context, plan: Plan, chunk: Chunk, give_back: Callable[[V], None]) -> None:
        """`give_back`: nobody uses the memory of a tensor any more."""
        self._context = context
        self._watched = context.watched
        self._is_watched = bool(context.watched.listeners) or context.watched.stepper is not None
        self._give_back = give_back
        self._plan = plan
        self._chunk = chunk
        self._values: dict[int, V] = {}
        self._owned: set[int] = set()
        part, late = context.part, context.late
        self._duties = None if part is None or late is None else context.duties(plan, part, late)
        self._direct = self._places()

    def _places(self) -> dict[int, tuple[str, V]]:
        """A queue with free slots that a result may be computed into: nobody reads them while the chunk runs."""
        found: dict[int, tuple[str, V]] = {}
        for step in self._plan.direct:
            if self._duties is not None and step.value not in self._duties.computed:
                continue
            slots = self._chunk.writes[step.queue]
            busy = self._chunk.reads.get(step.queue)
            if step.value not in found and consecutive(slots) and not (busy and set(slots).intersection(busy)):
                view = self._context.memory.channels[step.queue].view
                found[step.value] = step.queue, self._block(view, slots[0], len(slots))
        return found

    def compute(self) -> None:
        """Every step. Tensors are given back after their last use."""
        if self._duties is None and not self._context.memory.lends:
            self._compute_alone()
        else:
            self._compute_with_others()

    def _compute_alone(self) -> None:
        """Every step, of tensors that all lie here."""
        values, owned = self._values, self._owned
        run = self._op if self._is_watched else self._compute_op
        for step, freed in zip(self._plan.steps, self._plan.releases, strict=True):
            match step:
                case Run():
                    run(step)
                case Read():
                    self._read(step)
                case Convert():
                    self._convert(step)
                case Same():
                    self._same(step)
            for value in freed:
                array = values.pop(value)
                if value in owned:
                    self._give_back(array)

    def _compute_with_others(self) -> None:
        """Every step that this machine has, sending and receiving what others have; what is lent is made when it is
        needed, not all at once."""
        later: dict[int, Read] = {}
        part, duties, late = self._context.part, self._duties, self._context.late
        for number, (step, freed) in enumerate(zip(self._plan.steps, self._plan.releases, strict=True)):
            if part is None or duties is None or late is None or duties.source[number] == part.number:
                if later:
                    for value in later.keys() & uses(step):
                        self._read(later.pop(value))
                self._step(step, freed, later)
            elif duties.source[number] >= 0:
                source = duties.source[number]
                if step.value in duties.late:
                    most_bytes = self._chunk.inputs * self._plan.tiles[step.value] * TILE_BYTES
                    late.put_off(source, most_bytes, partial(self._store_late, step.value))
                else:
                    self._values[step.value] = self._from_arrays(step.value, late.receive(source))
            if part is not None and duties is not None:
                for other in duties.targets[number]:
                    if step.value in later:
                        self._read(later.pop(step.value))
                    part.send(other, self._arrays(self._values[step.value]))
            for value in freed:
                array = self._values.pop(value, None)  # None: another machine has it
                if array is not None and value in self._owned:
                    self._give_back(array)
        for step in later.values():  # which a push alone needs
            self._read(step)

    def _step(self, step: Step, freed: tuple[int, ...], later: dict[int, Read]) -> None:
        match step:
            case Run():
                if self._context.part is not None:
                    self._context.part.at(step.op.name)
                self._op(step)
            case Read():
                if self._is_lent(step) and step.value not in freed:
                    later[step.value] = step
                else:
                    self._read(step)
            case Convert():
                self._convert(step)
            case Same():
                self._same(step)

    def _is_lent(self, step: Read) -> bool:
        return not step.flat and self._context.memory.channels[step.queue].view.store.source is not None

    def _store_late(self, value: int, arrays: list[NDArray[Any]]) -> None:
        """A value that was put off, into the queues and rams where `store` has noted it."""
        self._values[value] = self._from_arrays(value, arrays)
        for number, push in enumerate(self._plan.pushes):
            if push.value == value and self._duties is not None and self._duties.pushes[number]:
                self._push(push)
        del self._values[value]

    def store(self) -> None:
        """Results into queues and rams."""
        # What this chunk writes is not seen by it (the scheduler saw to that), so views of read entries were safe
        # till here.
        duties = self._duties
        for number, push in enumerate(self._plan.pushes):
            if duties is None or (duties.pushes[number] and push.value not in duties.late):
                self._push(push)
            else:
                self._context.memory.channels[push.queue].view.note(self._chunk.writes[push.queue], push.label)
        for value, array in self._values.items():
            if value in self._owned:
                self._give_back(array)
        self._values.clear()

    def tell(self) -> None:
        """Those who watch, of each entry written."""
        queues, watched, writes = self._context.netlist.queues, self._context.watched, self._chunk.writes
        for push in self._plan.pushes:
            watched.pushes(push.queue, queues[push.queue].input, writes[push.queue])

    def _new(self, value: int, entries: int) -> V:
        """Where an op's result goes: into free slots of a queue, or into memory of the chunk."""
        if value in self._direct:
            _, place = self._direct[value]
            if len(place) == entries:
                self._values[value] = place
                return place
        array = self._values[value] = self._take(value, entries)
        self._owned.add(value)
        return array

    def _slots_to_read(self, step: Read) -> list[int]:
        slots = self._chunk.reads[step.queue]
        if len(slots) == 1:
            return slots
        return slots[:1] if slots.count(slots[0]) == len(slots) else slots  # one entry serves every input

    def _op(self, step: Run) -> None:
        """An op, of which those who watch are told."""
        if self._tell_start(step):
            self._compute_op(step)
        else:
            self._skip(step)
        self._tell_result(step, may_put=not step.op.gradient_op)

    def _compute_op(self, step: Run) -> None:
        inputs = list(map(self._values.__getitem__, step.inputs))
        try:
            if step.op.gradient_op:
                each = bool(self._watched.listeners)
                self._values[step.value] = self._accumulated(step, inputs, each=each)
            else:
                entries = len(inputs[0])
                if entries < self._chunk.inputs:  # one entry serves every input
                    entries = max(map(len, inputs))
                self._run(step, inputs, self._new(step.value, entries))
        except ProgramError as error:
            error.belongs_to(step.op.name)
            raise

    def _same(self, step: Same) -> None:
        if not self._is_watched:
            return
        if not self._tell_start(step):
            raise HostError(f"op {step.op.name} passes on the tensor that it reads: it takes no work to skip")
        self._tell_result(step, may_put=False)

    @property
    def _stepper(self) -> Stepper | None:
        """Who wants to be called around ops."""
        stepper = self._watched.stepper
        return stepper if stepper is not None and stepper.ops else None

    def _skip(self, step: Run) -> None:
        if step.op.gradient_op:
            raise HostError(f"op {step.op.name} adds to a sum, which its ram keeps: it cannot be skipped")
        out = self._new(step.value, self._chunk.inputs)
        self._put(out, np.zeros((1, 1, TILE_ELEMENTS), np.float32))

    def _tell_start(self, step: Run | Same) -> bool:
        """Whether the op is to be computed."""
        for listener in self._watched.listeners:
            listener.op_start(step.op, self._chunk.inputs)
        stepper = self._stepper
        return stepper is None or stepper.op(step.op, self._chunk.inputs)

    def _tell_result(self, step: Run | Same, *, may_put: bool) -> None:
        array = self._values[step.value]
        for listener in self._watched.listeners:
            listener.op_value(step.op, read_only(self._seen(array)), self._chunk.inputs)
            listener.op_end(step.op, self._chunk.inputs)
        if (stepper := self._stepper) is not None:
            put = partial(self._put, array) if may_put else None
            stepper.result(step.op, read_only(self._seen(array)), put, self._chunk.inputs)

    def _tell_read(self, queue: str, tiles: Tensor) -> None:
        for listener in self._watched.listeners:
            listener.queue_value(queue, read_only(tiles), self._chunk.inputs)
        if (stepper := self._stepper) is not None:
            stepper.read(queue, read_only(tiles), self._chunk.inputs)

    def _gradient_slots(self, step: Run) -> tuple[Ram | None, list[int], bool]:
        """The ram that keeps the sums of a gradient op, its slot for each input, and whether the sum starts again."""
        ram: Ram | None = None
        slots = [0] * self._chunk.inputs
        zeroed = False
        for queue in step.fed:
            candidate = self._context.memory.channels[queue]
            if candidate.zero:
                candidate.zero, zeroed = False, True  # consumed by this op, counts for the first input only
            if ram is None and isinstance(candidate, Ram):
                ram, slots = candidate, self._chunk.writes[queue]
        return ram, slots, zeroed

    def _kept_sum(self, step: Run) -> Tensor | None:
        """float32[tiles, 1024]: the sum of a gradient op that no ram keeps."""
        previous = self._context.gradients.get(step.op.name)
        if previous is not None and len(previous) != self._plan.tiles[step.value]:
            raise HostError(f"op {step.op.name}: the sum in the restored snapshot has another size")
        return previous

    @abstractmethod
    def _arrays(self, value: V) -> list[NDArray[Any]]:
        """A tensor as it goes to another machine."""

    @abstractmethod
    def _from_arrays(self, value: int, arrays: list[NDArray[Any]]) -> V:
        """The tensor again."""

    @abstractmethod
    def _block(self, view: EntryView, slot: int, count: int) -> V:
        """Consecutive entries of a queue, writable."""

    @abstractmethod
    def _take(self, value: int, entries: int) -> V:
        """Memory for a tensor of the plan."""

    @abstractmethod
    def _read(self, step: Read) -> None:
        """The entries that a step reads."""

    @abstractmethod
    def _convert(self, step: Convert) -> None:
        """A tensor truncated to a format."""

    @abstractmethod
    def _run(self, step: Run, inputs: list[V], out: V) -> None:
        """An op that does not accumulate gradients."""

    @abstractmethod
    def _accumulated(self, step: Run, inputs: list[V], *, each: bool) -> V:
        """A gradient op, input by input; `each`: the sum after every input is wanted."""

    @abstractmethod
    def _push(self, step: Push) -> None:
        """A result into its queue or ram."""

    @abstractmethod
    def _put(self, array: V, tiles: Tensor) -> None:
        """Values float32[w or 1, tiles or 1, 1024] into a tensor, rounded to what it can hold."""

    @abstractmethod
    def _seen(self, array: V) -> Tensor:
        """What listeners are shown: float32[w, tiles, 1024]."""
