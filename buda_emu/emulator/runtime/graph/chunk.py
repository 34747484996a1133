"""One pass over a plan's steps for the inputs of one chunk: what every precision has in common."""

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Set
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.memory.channel import Ram
from buda_emu.emulator.memory.memory_pool import POOL, memory_of
from buda_emu.emulator.memory.store import TILE_ELEMENTS, EntryView, consecutive
from buda_emu.emulator.ops.base import Parallel
from buda_emu.emulator.runtime.graph.schedule import Chunk
from buda_emu.emulator.runtime.graph.steps import Convert, Plan, Push, Read, Run, Same, Step, Topology, reads_of, uses
from buda_emu.emulator.runtime.machine.gate import BUFFERED_BYTES, Gate, Part, Stepper
from buda_emu.emulator.runtime.machine.listeners import read_only
from buda_emu.emulator.runtime.machine.memory import Memory, Watched
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.program.interpreter import StepBudget
from buda_emu.support.errors import HostError, ProgramError
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from buda_emu.arithmetic.tensix.registers import Core
    from buda_emu.emulator.ops.on_device.kernel_units import KernelUnits


_KEEP_BYTES = 512 << 20


class BufferPool:
    """Hands out float32 arrays and takes them back; a fresh one is made when none fits well.

    Of one machine: whoever runs its program, and nobody else at the same time.
    """

    def __init__(self) -> None:
        self._most = _KEEP_BYTES
        # By floats of its memory: what nobody uses, those given back last at the end, with the number of the giving.
        self._free: dict[int, list[tuple[int, NDArray[np.float32]]]] = {}
        self._given = 0
        self._kept = 0  # bytes

    def take(self, entries: int, tiles: int) -> NDArray[np.float32]:
        """An array float32[entries, tiles, 1024] with undefined contents."""
        shape = (entries, tiles, TILE_ELEMENTS)
        count = entries * tiles * TILE_ELEMENTS
        pieces = self._free.get(count)
        if pieces:
            self._kept -= 4 * count
            _, array = pieces.pop()
        else:
            array = self._other(count)
        return array if array.shape == shape else array.reshape(shape)

    def lend(self, count: int) -> NDArray[np.float32]:
        """float32[count] with undefined contents, to be given back."""
        pieces = self._free.get(count)
        if pieces:
            self._kept -= 4 * count
            return pieces.pop()[1].reshape(-1)
        return self._other(count)

    def _other(self, count: int) -> NDArray[np.float32]:
        """float32[count] where none of that size is here: of the smallest that fits and is not twice as large, or
        fresh."""
        size = min((size for size, pieces in self._free.items() if pieces and count < size <= 2 * count), default=0)
        if not size:
            return POOL.take(count)
        self._kept -= 4 * size
        return self._free[size].pop()[1].reshape(-1)[:count]

    def give_back(self, array: NDArray[Any]) -> None:
        """As `MemoryPool.give`; who wants an array of the same shape next gets this very one."""
        memory = memory_of(array)
        if memory is None or memory.nbytes > self._most:
            return
        size = memory.size
        if array.size != size or array.dtype is not memory.dtype:
            array = memory
        self._given += 1
        pieces = self._free.get(size)
        if pieces is None:
            pieces = self._free[size] = []
        pieces.append((self._given, array))
        self._kept += 4 * size
        if self._kept > self._most:
            self._keep(self._most)

    def leave(self, most: int) -> None:
        """Hold `most` bytes at most that nobody uses, this pool and what closed machines left together."""
        self._most = min(most, _KEEP_BYTES)
        self._keep(self._most)
        POOL.shrink(most - self._kept)

    def _keep(self, most: int) -> None:
        """Let go of those given back first."""
        while self._kept > most:
            pieces = min((pieces for pieces in self._free.values() if pieces), key=lambda pieces: pieces[0][0])
            _, array = pieces.pop(0)
            self._kept -= array.nbytes

    def free(self) -> None:
        """Let go of all that nobody uses: the next machine may have it."""
        free = self._free
        self._free = {}
        self._kept = 0
        for _, array in sorted((piece for pieces in free.values() for piece in pieces), key=lambda piece: piece[0]):
            POOL.give(array)


_NOBODY = -1


@dataclass(frozen=True, slots=True)
class Duties:
    """Of each step: `source`, whose value it is (its own number: it does the step; -1: it has nothing to do with it),
    and `targets`, to whom it gives the value. `pushes`: which of the plan's pushes it stores. `computed`: values that
    it computes itself. `late`: values of others that it only stores, in queues that may be written late."""

    source: tuple[int, ...]
    targets: tuple[tuple[int, ...], ...]
    pushes: tuple[bool, ...]
    computed: frozenset[int]
    late: frozenset[int]


def duties(plan: Plan, part: Part, queues: Set[str]) -> Duties:
    """Those of one machine. `queues`: those that may be written late."""
    needed: list[set[int]] = [set() for _ in plan.tiles]
    for push in plan.pushes:
        needed[push.value] |= part.keepers(push.queue)
    source: list[int] = []
    targets: list[tuple[int, ...]] = []
    own = part.number
    for step in reversed(plan.steps):
        who = needed[step.value]
        making = False
        match step:
            case Run():
                having = frozenset({part.owner(step.op.name)})
                making = own in having
                for value in step.inputs:
                    needed[value] |= having
            case Read():
                having = part.keepers(step.queue)
            case Convert():  # whoever needs it makes it of what it is made of
                needed[step.source] |= who
                having = frozenset(who)
            case Same():  # it makes nothing, and nobody watches
                source.append(_NOBODY)
                targets.append(())
                continue
        giver = min(having, default=_NOBODY)
        without = who - having
        making = making or (own in having and (own in who or (own == giver and bool(without))))
        source.append(own if making else giver if own in without else _NOBODY)
        targets.append(tuple(sorted(without)) if own == giver else ())
    source.reverse()
    targets.reverse()
    runs = (step.value for step, who in zip(plan.steps, source, strict=True) if who == own and isinstance(step, Run))
    pushes = tuple(own in part.keepers(push.queue) for push in plan.pushes)
    late = {step.value for step, who in zip(plan.steps, source, strict=True) if who not in (own, _NOBODY)}
    for step, who in zip(plan.steps, source, strict=True):
        if who == own:
            late.difference_update(reads_of(step))
    late.difference_update(push.value for push in plan.pushes if push.queue not in queues)
    return Duties(
        source=tuple(source), targets=tuple(targets), pushes=pushes, computed=frozenset(runs), late=frozenset(late)
    )


LATE_BYTES: Final = BUFFERED_BYTES // 2
"""Of values put off from one machine, at most. They stay below what may wait here, so that machine is never kept from
sending what this one, or any other, needs first."""
_Store = Callable[[list[NDArray[Any]]], None]


class Late:
    """What is put off in one epoch. Values from a machine come in the order in which it sends them, so what was put
    off is taken before the next that is needed at once."""

    def __init__(self, part: Part, memory: Memory, topology: Topology) -> None:
        def memory_of(queue: str) -> int:
            return id(memory.channels[queue].view.store)

        uses = Counter(map(memory_of, (*topology.reads, *topology.local, *topology.writes)))
        self.queues: Final = frozenset(queue for queue in topology.writes if uses[memory_of(queue)] == 1)
        """Those that may be written late: nothing else of the epoch reads or writes their memory."""
        self._part = part
        self._waiting: dict[int, deque[tuple[int, _Store]]] = {}
        self._held: Counter[int] = Counter()

    def receive(self, source: int) -> list[NDArray[Any]]:
        """The value that another machine gives at this step."""
        while self._waiting.get(source):
            self._take(source)
        return self._part.receive(source)

    def put_off(self, source: int, most_bytes: int, store: _Store) -> None:
        """Let the value of this step be stored later; one of more bytes than may wait, now."""
        while self._waiting.get(source) and self._held[source] + most_bytes > LATE_BYTES:
            self._take(source)
        self._waiting.setdefault(source, deque()).append((most_bytes, store))
        self._held[source] += most_bytes
        if most_bytes > LATE_BYTES:
            self._take(source)

    def take_all(self) -> None:
        """Store everything that was put off."""
        for source, waiting in self._waiting.items():
            while waiting:
                self._take(source)

    def _take(self, source: int) -> None:
        count, store = self._waiting[source].popleft()
        self._held[source] -= count
        store(self._part.receive(source))


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
        part = context.part
        late = context.late
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
        values = self._values
        owned = self._owned
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
        part = self._context.part
        duties = self._duties
        late = self._context.late
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
        queues = self._context.netlist.queues
        watched = self._context.watched
        writes = self._chunk.writes
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
                ram = candidate
                slots = self._chunk.writes[queue]
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
