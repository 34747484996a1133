"""The walk through a program: every instruction once, loops again while their rounds and the budget last.

A program has no branches and its loops run at least once (NETLIST 3.4), so the first passage of an instruction is
certain. Where the rounds of a loop are unknown or too many, the loop is widened: all that its body changes is
unknown after it.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from buda_emu.netlist.flow.epochs import EpochQueues, Surroundings
from buda_emu.netlist.flow.pointers import Moves
from buda_emu.netlist.flow.variables import (
    IMPOSSIBLE,
    KnownSettings,
    Note,
    Notes,
    Value,
    Variables,
    differ,
    evaluate_settings,
    name_mark,
    operand_mark,
    require_sense,
)
from buda_emu.netlist.model import (
    Allocate,
    Declare,
    EndLoop,
    Execute,
    Instruction,
    Loop,
    Netlist,
    Param,
    Program,
    Queue,
    QueueSettings,
    VarInst,
)
from buda_emu.netlist.nodes import Mark
from buda_emu.spec.precision import DEFAULT_STEP_LIMIT
from buda_emu.spec.ring import RingPointers
from buda_emu.spec.varinst import is_variable
from buda_emu.support.records import dataclass

ALONE = "V126"
NO_LOOP = "V273"
NO_ROUND = "V274"
REFUSED_SETTINGS = "V275"
NO_END = "V276"
UNREAD = "V282"
FULL = "V283"
ENDLESS = "V284"
AGAIN = "V285"
LEAVES = "V287"
KEPT = "V290"
_LOOKED_AT = 64  # inputs of one epoch whose entries are checked
_MOST_SLOTS = 4096  # entries of the largest queue whose written slots are remembered


class Channels:
    """The pointers of queues and the settings of queues and rams, as far as they are known in the first run of a
    program."""

    def __init__(self, around: Surroundings, program: str, notes: Notes) -> None:
        self._queues = around.netlist.queues
        self._around = around
        self._program = program
        self._blind = False
        self._notes = notes
        self._moves = Moves(notes)
        self._rings: dict[str, RingPointers | None] = {}  # by queue that ops feed; None if not known
        self._written: dict[str, int] = {}  # by queue with a known ring: a bit for each slot that was written
        self._seen: dict[str, KnownSettings] = {}  # the latest settings of each queue and ram in this run
        self._bound: dict[str, dict[str, None]] = {}  # by the text of a variable: the queues whose settings name it

    def ring(self, name: str) -> RingPointers | None:
        """Return the pointers of a queue, None if they are not known, as always after `forget_all`. A queue that is met
        for the first time has known pointers if it is empty when the program begins."""
        if self._blind:
            return None
        if name not in self._rings:
            queue = self._queues[name]
            self._rings[name] = None
            if queue.entries > 0 and self._around.begins_empty(queue, self._program):
                self._rings[name] = RingPointers(queue.entries)
        return self._rings[name]

    @property
    def count(self) -> int:
        """Return the number of queues and rams that had settings in an execute."""
        return len(self._seen)

    def forget_all(self) -> None:
        """Make all pointers and settings unknown, also those of queues that are met later."""
        self._blind = True
        self.forget(frozenset(self._seen))

    def forget(self, names: frozenset[str]) -> None:
        """Make the pointers and settings of these queues and rams unknown."""
        self._rings.update(dict.fromkeys(names))
        for name in names & self._seen.keys():
            self._seen[name] = self._seen[name].without_values()

    def bound_to(self, texts: frozenset[str]) -> frozenset[str]:
        """Return the queues and rams that follow one of these variables."""
        names: set[str] = set()
        for text in texts:
            names.update(self._bound.get(text, ()))
        return frozenset(names)

    def reset(self, name: str) -> None:
        """Set the pointers of a queue to 0, if they are known, as allocate_queue does."""
        ring = self.ring(name)
        if ring is not None:
            ring.reset()

    def place(self, settings: KnownSettings) -> None:
        """Place the pointers of a queue by its settings, where an epoch begins (NETLIST 4.3 steps 3e and 3f). Pointers
        that are negative, or lie outside a ram's slots, are noted."""
        name = settings.queue
        before = self._seen.get(name)
        self._bind(settings, before)
        queue = self._queues[name]
        if queue.is_ram:
            self._require_slots(queue, settings, first=before is None)
            return
        for field in ("rd_ptr_local", "rd_ptr_global"):
            value = settings.number(field)
            if value is not None and value < 0:
                self._notes.add(REFUSED_SETTINGS, settings.source.at(field), f"{field} of {name} is {value}")
        self._place_ring(name, settings, first=before is None)

    def _bind(self, settings: KnownSettings, before: KnownSettings | None) -> None:
        """Let a queue follow the variables of its settings instead of those of the settings before."""
        name = settings.queue
        if before is not None:
            for text in before.texts:
                del self._bound[text][name]
        for text in settings.texts:
            self._bound.setdefault(text, {})[name] = None
        self._seen[name] = settings

    def _place_ring(self, name: str, settings: KnownSettings, *, first: bool) -> None:
        """Place the pointers of a queue by its settings. In the first settings of a run rd_ptr_global places the
        read pointer; later it pops the entries up to there. The pointers become unknown where a value is not known
        or negative.
        """
        ring = self.ring(name)
        local = settings.number("rd_ptr_local")
        read = settings.number("rd_ptr_global")
        if ring is None or local is None or read is None or local < 0 or read < 0:
            self._rings[name] = None
            return
        ring.place_local(local)
        if first:
            ring.place_read(read)
        else:
            ring.pop_to(read)

    def follow(self, step: VarInst, value: Value, moved: tuple[Value, Value]) -> None:
        """Move the pointers that follow a variable to which a varinst wrote `value` (NETLIST 4.3 "Propagation").
        `moved` holds increment and modulus of inc and incwrap, None where they are not known or the opcode has
        none.
        """
        text = step.out
        for name in self._bound.get(text, ()):
            self._seen[name] = settings = self._seen[name].with_variable(text, value)
            queue = self._queues[name]
            self._require_reach(queue, settings, text, value, step.at())
            if queue.is_ram:
                continue
            ring = self.ring(name)
            source = settings.source
            self._moves.note(step, queue, settings, moved)
            moves = [field for field in ("rd_ptr_local", "rd_ptr_global") if getattr(source, field) == text]
            if ring is not None and moves:
                self._move(ring, name, moves, value)

    def _require_reach(self, queue: Queue, settings: KnownSettings, text: str, value: Value, place: Mark) -> None:
        """Note pointers of a queue or ram that follow the variable `text` out of their range: slots of a ram, not
        negative for a queue. `value` is the variable's new value, `place` the varinst that writes it.
        """
        if value is None:
            return
        for field in _pointers_at(queue, settings, text):
            if queue.is_ram and not 0 <= value < queue.entries:
                message = f"moves {field} of ram {queue.name} to {value}, its slots are 0 to {queue.entries - 1}"
                self._notes.add(LEAVES, place, message, "use incwrap, with the entries of the ram", queue.name)
            elif not queue.is_ram and value < 0:
                self._notes.add(REFUSED_SETTINGS, place, f"moves {field} of {queue.name} to {value}", about=queue.name)

    def _move(self, ring: RingPointers, name: str, fields: list[str], value: Value) -> None:
        """Move the pointers `fields` of a queue, which follow one variable, to its new value; unknown or negative
        values make all pointers of the queue unknown.
        """
        if value is None or value < 0:
            self._rings[name] = None
            return
        if "rd_ptr_local" in fields:
            ring.place_local(value)
        if "rd_ptr_global" in fields:
            ring.pop_to(value)

    def _require_slots(self, ram: Queue, settings: KnownSettings, *, first: bool) -> None:
        """Note pointers in the settings of a ram that lie outside its slots. The write pointer counts in the first
        settings of a run, and later only where the ram is not read_only.
        """
        for field in ("rd_ptr_global", "wr_ptr_global"):
            value = settings.number(field)
            stays = field == "wr_ptr_global" and not first and settings.flag("read_only") is not False
            if value is not None and not stays and not 0 <= value < ram.entries:
                message = f"{field} of ram {ram.name} is {value}, its slots are 0 to {ram.entries - 1}"
                self._notes.add(REFUSED_SETTINGS, settings.source.at(field), message)

    def run(self, epoch: EpochQueues, step: Execute, popping: frozenset[str]) -> None:
        """Move the pointers as an epoch reads, writes and pops queues for all its inputs (NETLIST 4.3 step 4). Reads of
        entries that nothing was written to, and writes without room, are noted. `popping` holds the queues that have
        settings."""
        place = step.at("graph_name")
        for name in epoch.reads:
            self._moves.read(name, epoch.input_count)
        for name in sorted(epoch.reads - epoch.local):
            self._read(name, epoch.input_count, place, pops=name in popping)
        for name in sorted(epoch.writes):
            if not self._queues[name].is_ram:
                self._write(name, epoch, place, pops=name in popping)

    def end(self, names: frozenset[str]) -> None:
        """End an execute: the local pointers of these queues return to where the settings placed them (NETLIST 4.3
        step 5).
        """
        for name in names:
            ring = self._rings.get(name)
            if ring is not None:
                ring.local = ring.local_base

    def _steps_per_input(self, name: str, *, pops: bool) -> tuple[Value, Value]:
        """Return by how much one input moves the local pointer of a queue, and how many entries it pops, None where
        it is not known. `pops` tells whether the running epoch has settings of the queue: without them nothing is
        popped.
        """
        settings = self._seen.get(name)
        if settings is None:
            return 1, 0  # NETLIST 4.1: a queue without settings
        if pops:
            popped = settings.number("global_rdptr_autoinc")
        else:
            popped = 0
        if settings.still is None:
            return None, popped
        if settings.still:
            return 0, popped
        return settings.number("rd_ptr_autoinc"), popped

    def _read_problem(self, name: str, ring: RingPointers, inputs: int, steps: tuple[int, int]) -> str:
        """Return why an epoch of `inputs` inputs cannot read and pop a queue whose pointers are `ring`, "" if it can.
        `steps`: for each input the entries by which the local pointer moves on, and those that are popped."""
        move, popped = steps
        if ring.empty:
            return f"reads queue {name}, which is empty"
        if popped * inputs > ring.occupancy:
            return f"pops {popped * inputs} entries of queue {name}, which holds {ring.occupancy}"
        if not _holds(ring, inputs, move, popped):
            return f"reads queue {name} beyond what it holds: {ring.occupancy} of {ring.entries} entries"
        slot = self._unwritten_slot(name, ring, inputs, move)
        if slot is None:
            return ""
        return _from_nowhere(name, slot)

    def _read(self, name: str, inputs: int, place: Mark, *, pops: bool) -> None:
        """Move the pointers of a queue as the inputs of an epoch read and pop it. An entry that is read or popped
        without having been written is a note at `place`, and makes the pointers unknown. `pops` tells whether the
        running epoch has settings of the queue: without them nothing is popped.
        """
        ring = self.ring(name)
        move, popped = self._steps_per_input(name, pops=pops)
        if ring is None or move is None or popped is None or move < 0 or popped < 0:
            self._rings[name] = None
            return
        problem = self._read_problem(name, ring, inputs, (move, popped))
        if problem:
            self._notes.add(UNREAD, place, problem, about=name)
            self._rings[name] = None
            return
        ring.advance_read(popped * inputs)
        ring.local = (ring.local + move * inputs) % ring.limit

    def _unwritten_slot(self, name: str, ring: RingPointers, inputs: int, move: int) -> int | None:
        """Return a slot that the inputs read before anything was written to it, or None. `move` is the step of the
        local pointer from input to input.
        """
        if ring.entries > _MOST_SLOTS:
            return None
        written = self._written.get(name, 0)
        slots = (ring.slot(ring.local + number * move) for number in range(min(inputs, _LOOKED_AT)))
        return next((slot for slot in slots if not written >> slot & 1), None)

    def _note_full(self, name: str, ring: RingPointers, count: int, place: Mark) -> None:
        """Note that an epoch writes `count` entries to a queue without room for them, if an op reads the queue: the
        host may take entries out of any other meanwhile."""
        if name not in self._around.read_by_ops:
            return
        free = ring.entries - ring.occupancy
        noun = "entry" if count == 1 else "entries"
        message = f"writes {count} {noun} to queue {name}, which has {free} of {ring.entries} entries free"
        self._notes.add(FULL, place, message, about=name)

    def _mark_written(self, name: str, ring: RingPointers, inputs: int) -> None:
        """Record that an epoch writes slots of a queue, one for each of its inputs from the write pointer on. Of a
        queue of more than `_MOST_SLOTS` slots nothing is recorded."""
        if ring.entries > _MOST_SLOTS:
            return
        for number in range(min(inputs, ring.entries)):
            self._written[name] = self._written.get(name, 0) | 1 << ring.slot(ring.wr + number)

    def _write(self, name: str, epoch: EpochQueues, place: Mark, *, pops: bool) -> None:
        """Move the pointers of a queue as the ops of an epoch fill it and, for a queue that the same epoch reads,
        as they read and pop it. Missing room is a note at `place` if an op reads the queue. `pops` tells
        whether the running epoch has settings of the queue: without them nothing is popped.
        """
        ring = self.ring(name)
        inputs = epoch.input_count
        move, popped = self._steps_per_input(name, pops=pops) if name in epoch.local else (0, 0)
        if ring is None or move is None or popped not in (0, 1) or move < 0:
            self._rings[name] = None
            return
        peak = 1 if popped else inputs  # an entry that is popped at once leaves room for the next
        if ring.occupancy + peak > ring.entries:
            self._note_full(name, ring, peak, place)
            self._rings[name] = None
            return
        self._mark_written(name, ring, inputs)
        ring.wr = (ring.wr + inputs) % ring.limit
        if name in epoch.local:
            slot = self._unwritten_slot(name, ring, inputs, move)
        else:
            slot = None
        if slot is not None:
            self._notes.add(UNREAD, place, _from_nowhere(name, slot), about=name)
        ring.advance_read(popped * inputs)
        ring.local = (ring.local + move * inputs) % ring.limit


def _pointers_at(queue: Queue, settings: KnownSettings, text: str) -> Iterator[str]:
    """Yield the fields of a queue's settings with pointers that the variable `text` moves. The write pointer of a ram
    is one of them if the ram may be written."""
    if settings.source.rd_ptr_global == text:
        yield "rd_ptr_global"
    if not queue.is_ram:
        if settings.source.rd_ptr_local == text:
            yield "rd_ptr_local"
    elif settings.source.wr_ptr_global == text and settings.flag("read_only") is False:
        yield "wr_ptr_global"


def _from_nowhere(name: str, slot: int) -> str:
    """Return the message about a read of a slot that nothing was written to."""
    return f"reads queue {name} in slot {slot}, which nothing was written to"


def _holds(ring: RingPointers, inputs: int, move: int, popped: int) -> bool:
    """Return whether a queue holds the entries that the inputs read, by the test of the runtime's queues. Each
    input moves the local pointer by `move` and pops `popped` entries.
    """
    for number in range(min(inputs, _LOOKED_AT)):
        local = ring.local + number * move
        read = ring.rd + number * popped
        pushed = 1 <= (ring.wr - local) % ring.limit <= ring.entries
        if not pushed and not (local - read) % ring.entries < ring.occupancy - number * popped:
            return False
    return True


PASSED_AGAIN = 4_000
WIDENED = 100_000
"""Bounds on the instructions and queue settings that are passed again in loops, and that are visited where a loop is
widened, in all programs of a netlist: so the time of a check grows only with the length of its document."""
_MANY = 1 << 62  # rounds; more are not counted


def notes_of(netlist: Netlist) -> Mapping[str, Sequence[Note]]:
    """Walk through all programs of a netlist that loads; return the notes by program."""
    around = Surroundings(netlist)
    again = Budget(PASSED_AGAIN)
    widened = Budget(WIDENED)
    return {name: _Walk(around, program, again, widened).run() for name, program in netlist.programs.items()}


@dataclass(slots=True)
class Budget:
    """An amount of work that may still be done."""

    left: int

    def take(self, count: int) -> bool:
        """Take `count` units of work if so many are left; return whether they were."""
        if count > self.left:
            return False
        self.left -= count
        return True


@dataclass(slots=True)
class _RunningLoop:
    source: Loop
    first: int  # index of the first instruction of the body
    left: Value
    every: int  # rounds of its body in all, as far as they and those of the loops around it are known


class _Walk:
    """The walk through one program in its first run."""

    def __init__(self, around: Surroundings, program: Program, again: Budget, widened: Budget) -> None:
        self._around = around
        self._queues = around.netlist.queues
        self._instructions = program.instructions
        self._again = again
        self._widened = widened
        self._notes = Notes()
        self._variables = Variables(program, self._notes)
        self._channels = Channels(around, program.name, self._notes)
        self._loops: list[_RunningLoop] = []
        self._executed: dict[int, dict[str, Execute]] = {}  # by graph, those of each temporal graph, since it ran last
        self._pending: dict[int, dict[str, KnownSettings]] = {}
        self._reported: set[str] = set()  # queues that were noted as never popped
        self._ends = _ends(program.instructions)
        self._costs = [0, *accumulate(map(_budget_units, program.instructions))]  # of all instructions before each

    def run(self) -> Sequence[Note]:
        """Walk to the end of the program; return the notes."""
        counter = 0
        while counter < len(self._instructions):
            counter = self._step(counter, self._instructions[counter])
        for loop in self._loops:
            self._notes.add(NO_END, loop.source.at(), "a loop without an endloop: its body is run once")
        return self._notes.all()

    def _step(self, counter: int, step: Instruction) -> int:
        """Pass the instruction at index `counter`; return the index of the next."""
        match step:
            case Execute():
                self._execute(step)
            case VarInst():
                self._channels.follow(step, self._variables.calculate(step), self._operands(step))
            case Loop():
                self._loop(counter, step)
            case EndLoop():
                return self._endloop(counter, step)
            case Declare():
                for name, text in step.variables:
                    place = name_mark(step, name)
                    self._variables.declare(name, step.kind, self._variables.value(text, place), place)
            case Param():
                for name in step.names:
                    self._variables.declare(name, "param", None, name_mark(step, name))
            case Allocate():
                for name in step.queues:
                    self._channels.reset(name)
            case _:
                pass  # deallocate_queue leaves pointers and data
        return counter + 1

    def _operands(self, step: VarInst) -> tuple[Value, Value]:
        """Return by how much inc and incwrap move a variable, and where incwrap wraps it; None if not known."""
        values: list[Value] = [None, None]
        if step.opcode in ("inc", "incwrap"):
            for index, text in enumerate(step.args[:2]):
                values[index] = self._variables.value(text, operand_mark(step, index + 2))
        return values[0], values[1]

    def _evaluate_settings_into(self, source: QueueSettings, pending: dict[str, KnownSettings]) -> None:
        """Evaluate the settings of a queue at an execute and store them in `pending`, which holds those of all graphs
        that run at the same time. Settings that differ from the ones stored there are noted, and a queue that is never
        popped."""
        queue = self._queues[source.queue]
        settings = evaluate_settings(source, queue, self._variables, self._notes)
        if queue.name in self._around.never_popped and queue.name not in self._reported:
            self._reported.add(queue.name)
            message = f"no entry of {queue.name} is ever popped: it fills up"
            self._notes.add(KEPT, source.at("rd_ptr_global"), message)
        earlier = pending.get(source.queue)
        if earlier is not None and differ(earlier, settings):
            message = f"settings of {source.queue} differ from those of another graph that runs at the same time"
            self._notes.add(REFUSED_SETTINGS, source.at(), message, "write the same in both")
        pending[source.queue] = settings

    def _execute(self, step: Execute) -> None:
        """Pass an execute; the last one of a temporal graph runs the epoch (NETLIST 4.3)."""
        epoch = self._around.epoch_of.get(step.graph)
        if epoch is None:
            self._notes.add(IMPOSSIBLE, step.at("graph_name"), f"executes graph '{step.graph}', which does not exist")
            return
        number = epoch.temporal.id
        pending = self._pending.setdefault(number, {})
        for source in step.queue_settings:
            self._evaluate_settings_into(source, pending)
        executed = self._executed.setdefault(number, {})
        if executed.get(step.graph) is step:  # what occurs twice V126 sees without a walk
            others = ", ".join(name for name in epoch.temporal.graphs if name not in executed)
            message = f"executes {step.graph} again in a loop, before {others}, which run at the same time"
            self._notes.add(ALONE, step.at("graph_name"), message)
        executed[step.graph] = step
        if len(executed) < len(epoch.temporal.graphs):
            return
        executed.clear()
        del self._pending[number]
        for name, settings in pending.items():
            require_sense(settings, self._queues[name], self._notes, sums=name in self._around.accumulators)
            self._channels.place(settings)
        self._channels.run(epoch, step, frozenset(pending))
        self._channels.end(frozenset(source.queue for source in step.queue_settings))

    def _loop(self, counter: int, step: Loop) -> None:
        """Begin a loop. A count below 1 is a note, and so is a loop whose rounds take more instructions than a run
        is given.
        """
        if step.source is not None:
            place = step.source.mark
        else:
            place = step.at()
        rounds = self._variables.value(step.count, place)
        if rounds is not None and rounds < 1:
            self._notes.add(
                NO_ROUND, place, f"loop count {_describe_count(step.count, rounds)}; a loop runs at least once"
            )
            rounds = 1
        # The rounds that a variable gives may change from round to round of the loops around.
        if self._loops and not is_variable(step.count):
            outer_rounds = self._loops[-1].every
        else:
            outer_rounds = 1
        every = min(outer_rounds * (rounds or 1), _MANY)
        self._loops.append(_RunningLoop(step, counter + 1, None if rounds is None else rounds - 1, every))
        end = self._ends.get(counter)
        steps = every * (end - counter) if end is not None else 0  # inner loops count once
        if steps > DEFAULT_STEP_LIMIT:
            message = f"takes {steps:,} instructions at least, a run is given {DEFAULT_STEP_LIMIT:,}"
            self._notes.add(ENDLESS, place, message, "count less, or give --step-limit")

    def _endloop(self, counter: int, step: EndLoop) -> int:
        """Pass the end of a loop; return the index of the next instruction. The body is passed again while rounds
        and budget are left; a loop with more rounds, or an unknown number of them, is widened (module docstring).
        """
        if not self._loops:
            self._notes.add(NO_LOOP, step.at(), "endloop without a loop")
            return counter + 1
        loop = self._loops[-1]
        if loop.left == 0:
            self._loops.pop()
            return counter + 1
        cost = 1 + self._costs[counter] - self._costs[loop.first]
        if loop.left is not None and self._again.take(cost):
            loop.left -= 1
            return loop.first
        self._loops.pop()
        if self._widened.take(cost + self._channels.count):
            self._widen(self._instructions[loop.first : counter])
        else:  # loops in loops in loops: from here on nothing is known
            self._variables.forget_all()
            self._channels.forget_all()
        return counter + 1

    def _widen(self, body: Sequence[Instruction]) -> None:
        """Make all that the body of a loop changes unknown: it runs on for an unknown number of rounds."""
        texts: set[str] = set()
        queues = set[str]()
        for epoch in self._around.epochs_in(body):
            queues.update(epoch.reads, epoch.writes)
        for step in body:
            match step:
                case VarInst():
                    texts.add(step.out)
                case Declare(kind="var"):
                    message = "is declared inside a loop: a second round fails"
                    for name, _ in step.variables:
                        self._notes.add(
                            AGAIN, name_mark(step, name), f"{name} {message}", "declare it before the loop", name
                        )
                case Allocate():
                    queues.update(step.queues)
                case Execute():
                    queues.update(source.queue for source in step.queue_settings)
                case _:
                    pass
        self._variables.forget(frozenset(texts))
        self._channels.forget(frozenset(queues) | self._channels.bound_to(frozenset(texts)))


def _ends(instructions: Sequence[Instruction]) -> dict[int, int]:
    """Return the index of the endloop of each loop that has one, by the index of the loop."""
    ends: dict[int, int] = {}
    open_loops: list[int] = []
    for index, step in enumerate(instructions):
        if isinstance(step, Loop):
            open_loops.append(index)
        elif isinstance(step, EndLoop) and open_loops:
            ends[open_loops.pop()] = index
    return ends


def _budget_units(step: Instruction) -> int:
    """Return the work of passing an instruction, as it is taken from a budget: 1, and 1 more for each queue setting of
    an execute."""
    if isinstance(step, Execute):
        return 1 + len(step.queue_settings)
    return 1


def _describe_count(text: str, value: int) -> str:
    """Return the part of a message that states a loop count, with the variable that it comes from if it is one."""
    if is_variable(text):
        return f"{text} is {value}"
    return f"is {value}"
