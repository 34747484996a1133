"""One pass over a plan's steps for the inputs of one chunk: the part that all precisions have in common."""

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Sequence, Set
from dataclasses import field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.memory.channel import Ram
from buda_emu.emulator.memory.memory_pool import POOL, memory_of
from buda_emu.emulator.memory.store import EntryView, consecutive
from buda_emu.emulator.ops.base import Parallel
from buda_emu.emulator.runtime.graph.schedule import Chunk
from buda_emu.emulator.runtime.graph.steps import Convert, Plan, Push, Read, Run, Same, Step, Topology, reads_of, uses
from buda_emu.emulator.runtime.machine.gate import BUFFERED_BYTES, Gate, Part, Stepper
from buda_emu.emulator.runtime.machine.listeners import read_only
from buda_emu.emulator.runtime.machine.memory import Memory, Watchers
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.program.interpreter import StepBudget
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.support.errors import HostError, ProgramError
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from buda_emu.arithmetic.tensix.registers import Core
    from buda_emu.emulator.ops.on_device.kernel_units import KernelUnits


_KEEP_BYTES = 512 << 20  # of arrays that nobody uses, less where the memory limit leaves less room


class BufferPool:
    """A pool of float32 arrays of one machine; a fresh array is made when none fits well. Only the thread that runs the
    machine's program uses it."""

    def __init__(self) -> None:
        self._most = _KEEP_BYTES
        # By floats of its memory: what nobody uses, those given back last at the end, with the number of the giving.
        self._free: dict[int, list[tuple[int, NDArray[np.float32]]]] = {}
        self._given = 0
        self._unused_bytes = 0

    def take(self, entries: int, tiles: int) -> NDArray[np.float32]:
        """Return an array float32[entries, tiles, 1024] with undefined contents, which the caller returns by
        `give_back`."""
        shape = (entries, tiles, TILE_ELEMENTS)
        count = entries * tiles * TILE_ELEMENTS
        pieces = self._free.get(count)
        if pieces:
            self._unused_bytes -= 4 * count
            _, array = pieces.pop()
        else:
            array = self._take_from_larger(count)
        if array.shape == shape:
            return array
        return array.reshape(shape)

    def lend(self, count: int) -> NDArray[np.float32]:
        """Return float32[count] with undefined contents, which the caller returns by `give_back`."""
        pieces = self._free.get(count)
        if pieces:
            self._unused_bytes -= 4 * count
            return pieces.pop()[1].reshape(-1)
        return self._take_from_larger(count)

    def _take_from_larger(self, count: int) -> NDArray[np.float32]:
        """Return float32[count] if the pool has no piece of that size: the beginning of the smallest larger piece, if
        it is at most twice as large, or else fresh memory."""
        size = min((size for size, pieces in self._free.items() if pieces and count < size <= 2 * count), default=0)
        if not size:
            return POOL.take(count)
        self._unused_bytes -= 4 * size
        return self._free[size].pop()[1].reshape(-1)[:count]

    def give_back(self, array: NDArray[Any]) -> None:
        """Take back an array that nobody uses any more; the next request for the same number of floats gets this very
        array. Ignores an array whose memory is no pool memory or larger than the pool may keep."""
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
        self._unused_bytes += 4 * size
        if self._unused_bytes > self._most:
            self._free_oldest(self._most)

    def leave(self, byte_limit: int) -> None:
        """Let this pool keep at most `byte_limit` bytes of unused arrays (and never more than 512 MiB) from now on, and
        free those beyond, also of the pool of the process. Called before each chunk of inputs, with the room that its
        tensors leave."""
        self._most = min(byte_limit, _KEEP_BYTES)
        self._free_oldest(self._most)
        POOL.shrink(byte_limit - self._unused_bytes)

    def _free_oldest(self, byte_limit: int) -> None:
        """Free the unused arrays that were given back first, until at most `byte_limit` bytes of them are left."""
        while self._unused_bytes > byte_limit:
            pieces = min((pieces for pieces in self._free.values() if pieces), key=lambda pieces: pieces[0][0])
            _, array = pieces.pop(0)
            self._unused_bytes -= array.nbytes

    def free(self) -> None:
        """Give all unused arrays to the pool of the process, where the next machine finds them."""
        free = self._free
        self._free = {}
        self._unused_bytes = 0
        for _, array in sorted(chain.from_iterable(free.values()), key=lambda piece: piece[0]):
            POOL.give(array)


_NOBODY = -1  # no chunk has this number


@dataclass(frozen=True, slots=True)
class Duties:
    """The share of one machine in the steps of a plan.

    `source` of a step is the machine whose value it is (its own number: it does the step; -1: it takes no part), and
    `targets` are the machines that it sends the value to. `pushes`: which of the plan's pushes it stores. `computed`:
    values that it computes itself. `late`: values of other machines that it only stores, in queues that may be written
    late."""

    source: tuple[int, ...]
    targets: tuple[tuple[int, ...], ...]
    pushes: tuple[bool, ...]
    computed: frozenset[int]
    late: frozenset[int]


def _owners_of_step(
    step: Run | Read | Convert, part: Part, readers: Set[int], needed: list[set[int]]
) -> frozenset[int]:
    """Return the machines that can do a step by themselves. Adds to `needed`, which has for each value the machines
    that need it, those that need the step's inputs. `readers`: the machines that need the step's own value."""
    match step:
        case Run():
            owners = frozenset({part.owner(step.op.name)})
            for value in step.inputs:
                needed[value] |= owners
            return owners
        case Read():
            return part.keepers(step.queue)
        case Convert():  # each reader converts the source by itself, which is less to send
            needed[step.source] |= readers
            return frozenset(readers)


def _late_values(
    plan: Plan, number: int, source: Sequence[int], own_steps: Sequence[Step], queues: Set[str]
) -> frozenset[int]:
    """Return the values of other machines that machine `number` only stores, in `queues` that may be written late.
    `source`: for each step the machine whose value it is; `own_steps`: the steps that this machine does."""
    late = {step.value for step, origin in zip(plan.steps, source, strict=True) if origin not in (number, _NOBODY)}
    for step in own_steps:
        late.difference_update(reads_of(step))
    late.difference_update(push.value for push in plan.pushes if push.queue not in queues)
    return frozenset(late)


def assign_duties(plan: Plan, part: Part, queues: Set[str]) -> Duties:
    """Return the share of the machine of `part` in a plan: which values it computes, sends, receives and stores.
    `queues` are those that may be written later than their chunk."""
    needed: list[set[int]] = [set() for _ in plan.tiles]
    for push in plan.pushes:
        needed[push.value] |= part.keepers(push.queue)
    source: list[int] = []
    targets: list[tuple[int, ...]] = []
    number = part.number
    for step in reversed(plan.steps):
        if isinstance(step, Same):  # computes nothing, and parts have no listeners
            source.append(_NOBODY)
            targets.append(())
            continue
        readers = needed[step.value]
        owners = _owners_of_step(step, part, readers, needed)
        giver = min(owners, default=_NOBODY)
        receivers = readers - owners
        has_use = number in readers or (number == giver and bool(receivers))
        if number in owners and (has_use or isinstance(step, Run)):
            source.append(number)
        elif number in receivers:
            source.append(giver)
        else:
            source.append(_NOBODY)
        targets.append(tuple(sorted(receivers)) if number == giver else ())
    source.reverse()
    targets.reverse()
    own_steps = [step for step, origin in zip(plan.steps, source, strict=True) if origin == number]
    return Duties(
        source=tuple(source),
        targets=tuple(targets),
        pushes=tuple(number in part.keepers(push.queue) for push in plan.pushes),
        computed=frozenset(step.value for step in own_steps if isinstance(step, Run)),
        late=_late_values(plan, number, source, own_steps, queues),
    )


LATE_BYTES: Final = BUFFERED_BYTES // 2
"""Upper bound for the bytes of values put off from one machine. It is below what may wait here, so that machine can
always send the values that this one, or any other, needs first."""
_Store = Callable[[list[NDArray[Any]]], None]


class Late:
    """The values that a machine stores later in one epoch than the chunk that they belong to. Values from one machine
    arrive in the order in which it sends them, so those put off are received before the next one that is needed at
    once."""

    def __init__(self, part: Part, memory: Memory, topology: Topology) -> None:
        def memory_of(queue: str) -> int:
            """Return the identity of the memory that a queue lies in, which dual views share."""
            return id(memory.channels[queue].view.store)

        uses = Counter(map(memory_of, (*topology.reads, *topology.local, *topology.writes)))
        self.queues: Final = frozenset(queue for queue in topology.writes if uses[memory_of(queue)] == 1)
        """Queues that may be written late: nothing else of the epoch reads or writes their memory."""
        self._part = part
        self._waiting: dict[int, deque[tuple[int, _Store]]] = {}
        self._held: Counter[int] = Counter()

    def receive(self, source: int) -> list[NDArray[Any]]:
        """Return the value that machine `source` sends for this step. First receives and stores the values of that
        machine that were put off. Raises HostError when the machine is lost."""
        while self._waiting.get(source):
            self._receive_oldest(source)
        return self._part.receive(source)

    def put_off(self, source: int, most_bytes: int, store: _Store) -> None:
        """Leave the value that `source` sends for this step to be received later and passed to `store`. `most_bytes` is
        the upper bound of its size: earlier values are received now if all that wait would exceed LATE_BYTES, and so is
        this value if it exceeds that alone."""
        while self._waiting.get(source) and self._held[source] + most_bytes > LATE_BYTES:
            self._receive_oldest(source)
        self._waiting.setdefault(source, deque()).append((most_bytes, store))
        self._held[source] += most_bytes
        if most_bytes > LATE_BYTES:
            self._receive_oldest(source)

    def take_all(self) -> None:
        """Receive and store every value that was left for later, from all machines."""
        for source, waiting in self._waiting.items():
            while waiting:
                self._receive_oldest(source)

    def _receive_oldest(self, source: int) -> None:
        """Receive the oldest value of a machine that was left for later, and store it."""
        count, store = self._waiting[source].popleft()
        self._held[source] -= count
        store(self._part.receive(source))


TILE_BYTES = 4 * TILE_ELEMENTS
Tensor = NDArray[np.float32]
Recorder = Callable[[Plan, Chunk], object]
V = TypeVar("V", bound=Any)
"""The type that holds a tensor [w, tiles]: float32 tiles, or the bits of a format."""


@dataclass(slots=True)
class Context:
    """The objects that every epoch of one machine shares. `quantised` is precision "format" (OPS 4.2)."""

    netlist: Netlist
    memory: Memory
    parallel: Parallel
    quantised: bool
    watched: Watchers
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

    def duties_of(self, plan: Plan, part: Part, late: Late) -> Duties:
        """Return the duties of the machine for a plan, computed at the first call and kept. `late` names the queues
        that may be written late."""
        duties = self.known_duties.get(id(plan))
        if duties is None:
            duties = self.known_duties[id(plan)] = assign_duties(plan, part, late.queues)
        return duties

    def free(self) -> None:
        """Give the unused arrays to the pool of the process, and forget the sums of gradient ops."""
        self.pool.free()
        self.gradients.clear()


class ChunkRun(ABC, Generic[V]):
    """The execution of a plan for the inputs of one chunk: `compute`, `store`, then `tell`."""

    def __init__(self, context: Context, plan: Plan, chunk: Chunk, give_back: Callable[[V], None]) -> None:
        """Prepare the run. `give_back` is called with tensors whose memory nobody uses any more."""
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
        if part is None or late is None:
            self._duties = None
        else:
            self._duties = context.duties_of(plan, part, late)
        self._direct = self._direct_places()

    def _direct_places(self) -> dict[int, tuple[str, V]]:
        """Return, by value, the queue and its free slots into which a result may be computed without a later copy,
        because nobody reads them while the chunk runs."""
        places: dict[int, tuple[str, V]] = {}
        for step in self._plan.direct:
            if self._duties is not None and step.value not in self._duties.computed:
                continue
            slots = self._chunk.writes[step.queue]
            busy = self._chunk.reads.get(step.queue)
            if step.value not in places and consecutive(slots) and not (busy and set(slots).intersection(busy)):
                view = self._context.memory.channels[step.queue].view
                places[step.value] = step.queue, self._writable_entries(view, slots[0], len(slots))
        return places

    def compute(self) -> None:
        """Do every step of the plan that is this machine's. Tensors are given back after their last use; results stay
        for `store`. Raises ProgramError naming the op."""
        if self._duties is None and not self._context.memory.lends:
            self._compute_alone()
        else:
            self._compute_with_others()

    def _compute_alone(self) -> None:
        """Do every step of the plan: this is the only machine, and no tensor lies in a file."""
        values = self._values
        owned = self._owned
        run = self._run_with_watchers if self._is_watched else self._compute_op
        for step, freed in zip(self._plan.steps, self._plan.releases, strict=True):
            match step:
                case Run():
                    run(step)
                case Read():
                    self._read(step)
                case Convert():
                    self._convert(step)
                case Same():
                    self._announce_same(step)
            for value in freed:
                array = values.pop(value)
                if value in owned:
                    self._give_back(array)

    def _compute_with_others(self) -> None:
        """Do the steps of this machine, and send and receive values where several machines run the netlist. Entries of
        queues that lie in files are read when an op needs them, not all at once."""
        later: dict[int, Read] = {}
        part = self._context.part
        duties = self._duties
        late = self._context.late
        for number, (step, freed) in enumerate(zip(self._plan.steps, self._plan.releases, strict=True)):
            if part is None or duties is None or late is None or duties.source[number] == part.number:
                if later:
                    for value in later.keys() & uses(step):
                        self._read(later.pop(value))
                self._do_step(step, freed, later)
            elif duties.source[number] >= 0:
                self._receive_value(step.value, duties.source[number], duties, late)
            if part is not None and duties is not None:
                for other in duties.targets[number]:
                    if step.value in later:
                        self._read(later.pop(step.value))
                    part.send(other, self._to_arrays(self._values[step.value]))
            for value in freed:
                array = self._values.pop(value, None)  # None: another machine has it
                if array is not None and value in self._owned:
                    self._give_back(array)
        for step in later.values():  # which a push alone needs
            self._read(step)

    def _receive_value(self, value: int, source: int, duties: Duties, late: Late) -> None:
        """Receive a value that machine `source` computes; where this machine only stores it, leave that for later."""
        if value in duties.late:
            most_bytes = self._chunk.inputs * self._plan.tiles[value] * TILE_BYTES
            late.put_off(source, most_bytes, partial(self._store_late, value))
        else:
            self._values[value] = self._from_arrays(value, late.receive(source))

    def _do_step(self, step: Step, freed: tuple[int, ...], later: dict[int, Read]) -> None:
        """Do one step. A read of entries that lie in a file is put into `later` instead, to be done when its value is
        used, unless the value is freed after this very step (`freed`)."""
        match step:
            case Run():
                if self._context.part is not None:
                    self._context.part.at(step.op.name)
                self._run_with_watchers(step)
            case Read():
                if self._is_lent(step) and step.value not in freed:
                    later[step.value] = step
                else:
                    self._read(step)
            case Convert():
                self._convert(step)
            case Same():
                self._announce_same(step)

    def _is_lent(self, step: Read) -> bool:
        """Return whether a read takes tiles of a queue that refers to an array of the host (often in a file) instead of
        a copy."""
        return not step.flat and self._context.memory.channels[step.queue].view.store.source is not None

    def _store_late(self, value: int, arrays: list[NDArray[Any]]) -> None:
        """Store a value that arrives after its chunk, as the arrays of its transfer, in the queues and rams whose
        entries `store` has already marked as written."""
        self._values[value] = self._from_arrays(value, arrays)
        for number, push in enumerate(self._plan.pushes):
            if push.value == value and self._duties is not None and self._duties.pushes[number]:
                self._push(push)
        del self._values[value]

    def store(self) -> None:
        """Store the results in queues and rams, mark entries whose data comes late or lies on another machine as
        written, and give all tensors back."""
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
        """Report each entry that the chunk wrote to the journal and the listeners."""
        queues = self._context.netlist.queues
        watched = self._context.watched
        writes = self._chunk.writes
        for push in self._plan.pushes:
            watched.pushes(push.queue, queues[push.queue].input, writes[push.queue])

    def _allocate_result(self, value: int, entries: int) -> V:
        """Return memory for a tensor of `entries` entries that a step makes, and enter it as the tensor `value`: free
        slots of its queue where possible, or memory of the pool."""
        if value in self._direct:
            _, place = self._direct[value]
            if len(place) == entries:
                self._values[value] = place
                return place
        array = self._values[value] = self._take_memory(value, entries)
        self._owned.add(value)
        return array

    def _slots_to_read(self, step: Read) -> list[int]:
        """Return the slots that a read takes: one for each input of the chunk, or a single one where all inputs read
        the same slot."""
        slots = self._chunk.reads[step.queue]
        if len(slots) == 1:
            return slots
        # one entry serves every input
        if slots.count(slots[0]) == len(slots):
            return slots[:1]
        return slots

    def _run_with_watchers(self, step: Run) -> None:
        """Run an op, and call listeners and stepper before and after it. An op that the stepper skips has zeros as its
        result."""
        if self._tell_start(step):
            self._compute_op(step)
        else:
            self._skip(step)
        self._tell_result(step, may_put=not step.op.gradient_op)

    def _compute_op(self, step: Run) -> None:
        """Run an op on the tensors of its inputs, and enter its result. Raises ProgramError naming the op."""
        inputs = list(map(self._values.__getitem__, step.inputs))
        try:
            if step.op.gradient_op:
                every_sum = bool(self._watched.listeners)
                self._values[step.value] = self._accumulate(step, inputs, every_sum=every_sum)
            else:
                entries = len(inputs[0])
                if entries < self._chunk.inputs:  # one entry serves every input
                    entries = max(map(len, inputs))
                self._run(step, inputs, self._allocate_result(step.value, entries))
        except ProgramError as error:
            error.belongs_to(step.op.name)
            raise

    def _announce_same(self, step: Same) -> None:
        """Call listeners and stepper for an op whose result is the tensor that it reads. Raises HostError for a stepper
        that wants to skip it."""
        if not self._is_watched:
            return
        if not self._tell_start(step):
            raise HostError(f"op {step.op.name} passes on the tensor that it reads: it takes no work to skip")
        self._tell_result(step, may_put=False)

    @property
    def _op_stepper(self) -> Stepper | None:
        """The stepper if it wants to be called around ops; None without one, or where it does not."""
        stepper = self._watched.stepper
        if stepper is not None and stepper.ops:
            return stepper
        return None

    def _skip(self, step: Run) -> None:
        """Enter zeros as the result of an op that the stepper skips. Raises HostError for a gradient op."""
        if step.op.gradient_op:
            raise HostError(f"op {step.op.name} adds to a sum, which its ram keeps: it cannot be skipped")
        out = self._allocate_result(step.value, self._chunk.inputs)
        self._overwrite(out, np.zeros((1, 1, TILE_ELEMENTS), np.float32))

    def _tell_start(self, step: Run | Same) -> bool:
        """Announce an op to listeners and stepper, and return whether it is to be computed: False where the stepper
        skips it."""
        for listener in self._watched.listeners:
            listener.op_start(step.op, self._chunk.inputs)
        stepper = self._op_stepper
        return stepper is None or stepper.op(step.op, self._chunk.inputs)

    def _tell_result(self, step: Run | Same, *, may_put: bool) -> None:
        """Show an op's result to listeners and stepper. With `may_put` the stepper is given a function that replaces
        it."""
        array = self._values[step.value]
        for listener in self._watched.listeners:
            listener.op_value(step.op, read_only(self._as_tiles(array)), self._chunk.inputs)
            listener.op_end(step.op, self._chunk.inputs)
        if (stepper := self._op_stepper) is not None:
            put = partial(self._overwrite, array) if may_put else None
            stepper.result(step.op, read_only(self._as_tiles(array)), put, self._chunk.inputs)

    def _tell_read(self, queue: str, tiles: Tensor) -> None:
        """Show the entries read from a queue or ram to listeners and stepper."""
        for listener in self._watched.listeners:
            listener.queue_value(queue, read_only(tiles), self._chunk.inputs)
        if (stepper := self._op_stepper) is not None:
            stepper.read(queue, read_only(tiles), self._chunk.inputs)

    def _begin_sums(self, step: Run) -> tuple[Ram | None, list[int], bool]:
        """Return the ram that keeps the sums of a gradient op (None where there is none), the slot of the sum for each
        input, and whether the sum starts again at zero. Clears the zero flag of the op's destinations, as the op
        consumes it."""
        ram: Ram | None = None
        slots = [0] * self._chunk.inputs
        zeroed = False
        for queue in step.fed:
            candidate = self._context.memory.channels[queue]
            if candidate.zero:
                candidate.zero = False
                zeroed = True  # consumed by this op, counts for the first input only
            if ram is None and isinstance(candidate, Ram):
                ram = candidate
                slots = self._chunk.writes[queue]
        return ram, slots, zeroed

    def _stored_sum(self, step: Run) -> Tensor | None:
        """Return the sum that a gradient op without a ram has reached so far, float32[tiles, 1024], None where it
        begins. Raises HostError where a restored snapshot has a sum of another size."""
        previous = self._context.gradients.get(step.op.name)
        if previous is not None and len(previous) != self._plan.tiles[step.value]:
            raise HostError(f"op {step.op.name}: the sum in the restored snapshot has another size")
        return previous

    @abstractmethod
    def _to_arrays(self, value: V) -> list[NDArray[Any]]:
        """Return the arrays in which a tensor is sent to another machine."""

    @abstractmethod
    def _from_arrays(self, value: int, arrays: list[NDArray[Any]]) -> V:
        """Return the tensor of number `value` in the plan, made of the arrays in which another machine has sent it: the
        reverse of `_to_arrays`."""

    @abstractmethod
    def _writable_entries(self, view: EntryView, slot: int, count: int) -> V:
        """Return `count` consecutive entries of a queue from `slot` on, as a writable view of its memory."""

    @abstractmethod
    def _take_memory(self, value: int, entries: int) -> V:
        """Return memory of the pool with undefined contents for `entries` entries of the plan's tensor `value`."""

    @abstractmethod
    def _read(self, step: Read) -> None:
        """Enter the entries of a queue or ram as the tensor of the step, and show them to those who watch. Raises
        ProgramError where a tilizer finds no row-major data."""

    @abstractmethod
    def _convert(self, step: Convert) -> None:
        """Enter a copy of the step's source, truncated to the step's format, as its tensor."""

    @abstractmethod
    def _run(self, step: Run, inputs: list[V], out: V) -> None:
        """Run an op that does not accumulate gradients, on `inputs` into `out`."""

    @abstractmethod
    def _accumulate(self, step: Run, inputs: list[V], *, every_sum: bool) -> V:
        """Run a gradient op, input by input, on top of the sum stored so far, and return the sums. With `every_sum`,
        for listeners, there is one after each input; without it an implementation may return the last alone."""

    @abstractmethod
    def _push(self, step: Push) -> None:
        """Store a result in its queue or ram, for all inputs of the chunk, and mark the slots as written."""

    @abstractmethod
    def _overwrite(self, array: V, tiles: Tensor) -> None:
        """Write values float32[w or 1, tiles or 1, 1024] into a tensor, rounded to what it can hold."""

    @abstractmethod
    def _as_tiles(self, array: V) -> Tensor:
        """Return a tensor as listeners see it: float32[w, tiles, 1024]."""
