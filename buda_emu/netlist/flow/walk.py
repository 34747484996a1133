"""The walk: every instruction once, loops again as long as their rounds and the budget last, then what is widened.

A program has no branches and its loops run at least once (NETLIST 3.4), so what the first passage of an instruction
meets is certain. Where a loop's rounds are not known or too many, all that its body changes is unknown after it.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from buda_emu.netlist.flow.epochs import EpochQueues, Surroundings
from buda_emu.netlist.flow.variables import (
    IMPOSSIBLE,
    KnownSettings,
    Note,
    Notes,
    Value,
    Variables,
    differ,
    evaluated,
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
WRAP = "V286"
LEAVES = "V287"
KEPT = "V290"
SKIPS = "V292"
_LOOKED_AT = 64  # inputs of one epoch whose entries are looked for
_MOST_SLOTS = 4096  # of a queue of which they are remembered


class Channels:
    """The queues and rams of a machine in the first run of a program."""

    def __init__(self, around: Surroundings, program: str, notes: Notes) -> None:
        self._queues = around.netlist.queues
        self._around = around
        self._program = program
        self._blind = False
        self._notes = notes
        self._rings: dict[str, RingPointers | None] = {}  # of queues that ops feed; None: not known
        self._written: dict[str, int] = {}  # of each ring that is known: a bit for each slot that holds anything
        self._seen: dict[str, KnownSettings] = {}  # the latest settings of each in this run
        self._bound: dict[str, dict[str, None]] = {}  # by the text of a variable: those whose settings name it

    def ring(self, name: str) -> RingPointers | None:
        """Pointers of a queue whose entries can be told."""
        if self._blind:
            return None
        if name not in self._rings:
            queue = self._queues[name]
            known = queue.entries > 0 and self._around.begins_empty(queue, self._program)
            self._rings[name] = RingPointers(queue.entries) if known else None
        return self._rings[name]

    @property
    def count(self) -> int:
        """How many were executed."""
        return len(self._seen)

    def forget_all(self) -> None:
        """No pointer is known any more."""
        self._blind = True
        self.forget(frozenset(self._seen))

    def forget(self, names: frozenset[str]) -> None:
        """The pointers and settings of these cannot be said any longer."""
        self._rings.update(dict.fromkeys(names))
        for name in names & self._seen.keys():
            self._seen[name] = self._seen[name].forgotten()

    def bound_to(self, texts: frozenset[str]) -> frozenset[str]:
        """Queues and rams that follow one of these variables."""
        return frozenset(name for text in texts for name in self._bound.get(text, ()))

    def reset(self, name: str) -> None:
        """allocate_queue: pointers at 0."""
        ring = self.ring(name)
        if ring is not None:
            ring.reset()

    def place(self, settings: KnownSettings) -> None:
        """A queue's settings where an epoch begins (NETLIST 4.3 steps 3e and 3f)."""
        name = settings.queue
        before = self._seen.get(name)
        for text in before.texts if before is not None else ():
            del self._bound[text][name]
        for text in settings.texts:
            self._bound.setdefault(text, {})[name] = None
        self._seen[name] = settings
        queue = self._queues[name]
        if queue.is_ram:
            self._require_slots(queue, settings, first=before is None)
            return
        for field in ("rd_ptr_local", "rd_ptr_global"):
            value = settings.number(field)
            if value is not None and value < 0:
                self._notes.add(REFUSED_SETTINGS, settings.source.at(field), f"{field} of {name} is {value}")
        ring = self.ring(name)
        local = settings.number("rd_ptr_local")
        read = settings.number("rd_ptr_global")
        if ring is None or local is None or read is None or local < 0 or read < 0:
            self._rings[name] = None
            return
        ring.place_local(local)
        if before is None:
            ring.place_read(read)
        else:
            ring.pop_to(read)

    def follow(self, step: VarInst, value: Value, moved: tuple[Value, Value]) -> None:
        """A varinst wrote a variable (NETLIST 4.3 "Propagation"); `moved`: increment and modulus of inc and incwrap."""
        text = step.out
        (by, wrap) = moved
        for name in self._bound.get(text, ()):
            self._seen[name] = settings = self._seen[name].changed(text, value)
            queue = self._queues[name]
            self._require_reach(queue, settings, text, value, step.at())
            if queue.is_ram:
                continue
            ring = self.ring(name)
            source = settings.source
            if by is not None and by > 1 and settings.still and source.rd_ptr_local == text:
                what = f"moves on by {by} entries of {name}, but an execute reads one: prologue or epilogue is set"
                self._notes.add(SKIPS, operand_mark(step, 2), what, about=name)
            moves = [field for field in ("rd_ptr_local", "rd_ptr_global") if getattr(source, field) == text]
            if ring is not None and moves:
                self._move(ring, name, moves, value)
            if wrap is not None and wrap > 0 and source.rd_ptr_global == text and wrap % (2 * queue.entries):
                what = f"{text} is wrapped at {wrap}, the pointers of {name} run modulo {2 * queue.entries}"
                self._notes.add(WRAP, operand_mark(step, 3), what, "wrap at twice the entries", name)

    def _require_reach(self, queue: Queue, settings: KnownSettings, text: str, value: Value, place: Mark) -> None:
        """The pointers that follow a variable stay where they may be."""
        pointers = ("rd_ptr_global", "wr_ptr_global" if queue.is_ram else "rd_ptr_local")
        for field in (field for field in pointers if getattr(settings.source, field) == text):
            if value is None or (field == "wr_ptr_global" and settings.flag("read_only") is not False):
                continue
            if queue.is_ram and not 0 <= value < queue.entries:
                what = f"moves {field} of ram {queue.name} to {value}, its slots are 0 to {queue.entries - 1}"
                self._notes.add(LEAVES, place, what, "use incwrap, with the entries of the ram", queue.name)
            elif not queue.is_ram and value < 0:
                self._notes.add(REFUSED_SETTINGS, place, f"moves {field} of {queue.name} to {value}", about=queue.name)

    def _move(self, ring: RingPointers, name: str, fields: list[str], value: Value) -> None:
        if value is None or value < 0:
            self._rings[name] = None
            return
        if "rd_ptr_local" in fields:
            ring.place_local(value)
        if "rd_ptr_global" in fields:
            ring.pop_to(value)

    def _require_slots(self, ram: Queue, settings: KnownSettings, *, first: bool) -> None:
        for field in ("rd_ptr_global", "wr_ptr_global"):
            value = settings.number(field)
            stays = field == "wr_ptr_global" and not first and settings.flag("read_only") is not False
            if value is not None and not stays and not 0 <= value < ram.entries:
                what = f"{field} of ram {ram.name} is {value}, its slots are 0 to {ram.entries - 1}"
                self._notes.add(REFUSED_SETTINGS, settings.source.at(field), what)

    def run(self, epoch: EpochQueues, step: Execute, popping: frozenset[str]) -> None:
        """An epoch runs: reads, writes and pops of all its inputs (NETLIST 4.3 step 4). `popping`: queues in its
        settings."""
        place = step.at("graph_name")
        for name in sorted(epoch.reads - epoch.local):
            self._read(name, epoch.input_count, place, pops=name in popping)
        for name in sorted(epoch.writes):
            if not self._queues[name].is_ram:
                self._write(name, epoch, place, pops=name in popping)

    def end(self, names: frozenset[str]) -> None:
        """The execute is over: local pointers back to where the settings placed them (step 5)."""
        for name in names:
            ring = self._rings.get(name)
            if ring is not None:
                ring.local = ring.local_base

    def _steps(self, name: str, *, pops: bool) -> tuple[Value, Value]:
        """How far one input moves the local pointer, and how many entries it pops."""
        settings = self._seen.get(name)
        if settings is None:
            return 1, 0  # NETLIST 4.1: what a queue does that no setting mentions
        still = settings.still
        local = settings.number("rd_ptr_autoinc")
        popped = settings.number("global_rdptr_autoinc") if pops else 0
        return (None if still is None else 0 if still else local), popped

    def _read(self, name: str, inputs: int, place: Mark, *, pops: bool) -> None:
        ring = self.ring(name)
        move, popped = self._steps(name, pops=pops)
        if ring is None or move is None or popped is None or move < 0 or popped < 0:
            self._rings[name] = None
            return
        problem = ""
        if ring.empty:
            problem = f"reads queue {name}, which is empty"
        elif popped * inputs > ring.occupancy:
            problem = f"pops {popped * inputs} entries of queue {name}, which holds {ring.occupancy}"
        elif not _holds(ring, inputs, move, popped):
            problem = f"reads queue {name} beyond what it holds: {ring.occupancy} of {ring.entries} entries"
        elif (slot := self._unwritten(name, ring, inputs, move)) is not None:
            problem = _from_nowhere(name, slot)
        if problem:
            self._notes.add(UNREAD, place, problem, about=name)
            self._rings[name] = None
            return
        ring.advance_read(popped * inputs)
        ring.local = (ring.local + move * inputs) % ring.limit

    def _unwritten(self, name: str, ring: RingPointers, inputs: int, move: int) -> int | None:
        """A slot that is read before anything was written to it."""
        if ring.entries > _MOST_SLOTS:
            return None
        written = self._written.get(name, 0)
        slots = (ring.slot(ring.local + number * move) for number in range(min(inputs, _LOOKED_AT)))
        return next((slot for slot in slots if not written >> slot & 1), None)

    def _write(self, name: str, epoch: EpochQueues, place: Mark, *, pops: bool) -> None:
        ring = self.ring(name)
        inputs = epoch.input_count
        move, popped = self._steps(name, pops=pops) if name in epoch.local else (0, 0)
        if ring is None or move is None or popped not in (0, 1) or move < 0:
            self._rings[name] = None
            return
        most = 1 if popped else inputs
        if ring.occupancy + most > ring.entries:
            if name in self._around.read_by_ops:  # else the host takes entries out meanwhile
                left = ring.entries - ring.occupancy
                what = f"writes {most} {'entry' if most == 1 else 'entries'} to queue {name}"
                what += f", which has {left} of {ring.entries} entries free"
                self._notes.add(FULL, place, what, about=name)
            self._rings[name] = None
            return
        if ring.entries <= _MOST_SLOTS:
            for number in range(min(inputs, ring.entries)):
                self._written[name] = self._written.get(name, 0) | 1 << ring.slot(ring.wr + number)
        ring.wr = (ring.wr + inputs) % ring.limit
        slot = self._unwritten(name, ring, inputs, move) if name in epoch.local else None
        if slot is not None:
            self._notes.add(UNREAD, place, _from_nowhere(name, slot), about=name)
        ring.advance_read(popped * inputs)
        ring.local = (ring.local + move * inputs) % ring.limit


def _from_nowhere(name: str, slot: int) -> str:
    return f"reads queue {name} in slot {slot}, which nothing was written to"


def _holds(ring: RingPointers, inputs: int, move: int, popped: int) -> bool:
    """Are the entries that the inputs read among those held: as `device.Fifo.holds_next_read` asks."""
    for number in range(min(inputs, _LOOKED_AT)):
        local = ring.local + number * move
        read = ring.rd + number * popped
        pushed = 1 <= (ring.wr - local) % ring.limit <= ring.entries
        if not pushed and not (local - read) % ring.entries < ring.occupancy - number * popped:
            return False
    return True


PASSED_AGAIN = 4_000
WIDENED = 100_000
"""Instructions and queue settings that are passed again in loops, and that are looked at where a loop is widened, in
all programs of a netlist: a check takes no longer than its document is long."""
_MANY = 1 << 62  # rounds; more are not counted


def notes_of(netlist: Netlist) -> Mapping[str, Sequence[Note]]:
    """What the walks of a netlist's programs notice, by program. The netlist is one that loads."""
    around = Surroundings(netlist)
    again = Budget(PASSED_AGAIN)
    widened = Budget(WIDENED)
    return {name: _Walk(around, program, again, widened).run() for name, program in netlist.programs.items()}


@dataclass(slots=True)
class Budget:
    """How much may still be done."""

    left: int

    def take(self, count: int) -> bool:
        """Is so much left? If so it is taken."""
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
    """Of one program, in its first run."""

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
        self._kept: set[str] = set()  # of which it was told
        self._ends = _ends(program.instructions)
        self._costs = [0, *accumulate(map(_cost, program.instructions))]  # of all instructions before each

    def run(self) -> Sequence[Note]:
        """Walk to the end."""
        counter = 0
        while counter < len(self._instructions):
            counter = self._step(counter, self._instructions[counter])
        for loop in self._loops:
            self._notes.add(NO_END, loop.source.at(), "a loop without an endloop: its body is run once")
        return self._notes.all()

    def _step(self, counter: int, step: Instruction) -> int:
        """One instruction; the index of the next."""
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
        """By how much inc and incwrap move a variable, and where incwrap wraps it."""
        values: list[Value] = [None, None]
        if step.opcode in ("inc", "incwrap"):
            for index, text in enumerate(step.args[:2]):
                values[index] = self._variables.value(text, operand_mark(step, index + 2))
        return values[0], values[1]

    def _execute(self, step: Execute) -> None:
        """NETLIST 4.3."""
        epoch = self._around.epoch_of.get(step.graph)
        if epoch is None:
            self._notes.add(IMPOSSIBLE, step.at("graph_name"), f"executes graph '{step.graph}', which does not exist")
            return
        number = epoch.temporal.id
        pending = self._pending.setdefault(number, {})
        for source in step.queue_settings:
            queue = self._queues[source.queue]
            settings = evaluated(source, queue, self._variables, self._notes)
            if queue.name in self._around.kept and queue.name not in self._kept:
                self._kept.add(queue.name)
                what = f"no entry of {queue.name} is ever popped: it fills up"
                self._notes.add(KEPT, source.at("rd_ptr_global"), what)
            known = pending.get(source.queue)
            if known is not None and differ(known, settings):
                what = f"settings of {source.queue} differ from those of another graph that runs at the same time"
                self._notes.add(REFUSED_SETTINGS, source.at(), what, "write the same in both")
            pending[source.queue] = settings
        executed = self._executed.setdefault(number, {})
        if executed.get(step.graph) is step:  # what occurs twice V126 sees without a walk
            others = ", ".join(name for name in epoch.temporal.graphs if name not in executed)
            what = f"executes {step.graph} again in a loop, before {others}, which run at the same time"
            self._notes.add(ALONE, step.at("graph_name"), what)
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
        place = step.source.mark if step.source is not None else step.at()
        rounds = self._variables.value(step.count, place)
        if rounds is not None and rounds < 1:
            self._notes.add(NO_ROUND, place, f"loop count {_shown(step.count, rounds)}; a loop runs at least once")
            rounds = 1
        # The rounds that a variable gives may change from round to round of the loops around.
        around = self._loops[-1].every if self._loops and not is_variable(step.count) else 1
        every = min(around * (rounds or 1), _MANY)
        self._loops.append(_RunningLoop(step, counter + 1, None if rounds is None else rounds - 1, every))
        end = self._ends.get(counter)
        least = every * (end - counter) if end is not None else 0  # inner loops count once
        if least > DEFAULT_STEP_LIMIT:
            what = f"takes {least:,} instructions at least, a run is given {DEFAULT_STEP_LIMIT:,}"
            self._notes.add(ENDLESS, place, what, "count less, or give --step-limit")

    def _endloop(self, counter: int, step: EndLoop) -> int:
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
        """A loop runs on, nobody knows how often: what it changes is unknown."""
        texts: set[str] = set()
        queues = {name for epoch in self._around.executed(body) for name in (*epoch.reads, *epoch.writes)}
        for step in body:
            match step:
                case VarInst():
                    texts.add(step.out)
                case Declare(kind="var"):
                    what = "is declared inside a loop: a second round fails"
                    for name, _ in step.variables:
                        self._notes.add(
                            AGAIN, name_mark(step, name), f"{name} {what}", "declare it before the loop", name
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
    """Index of the endloop of each loop."""
    found: dict[int, int] = {}
    open_loops: list[int] = []
    for index, step in enumerate(instructions):
        if isinstance(step, Loop):
            open_loops.append(index)
        elif isinstance(step, EndLoop) and open_loops:
            found[open_loops.pop()] = index
    return found


def _cost(step: Instruction) -> int:
    return 1 + len(step.queue_settings) if isinstance(step, Execute) else 1


def _shown(text: str, value: int) -> str:
    return f"{text} is {value}" if is_variable(text) else f"is {value}"
