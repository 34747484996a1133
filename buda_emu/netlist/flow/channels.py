"""Queues and rams as a program moves their pointers, as far as these are known (NETLIST 4.1, 4.3)."""

from buda_emu.netlist.flow.epochs import EpochQueues, Surroundings
from buda_emu.netlist.flow.variables import KnownSettings, Notes, Value, operand_mark
from buda_emu.netlist.model import Execute, Queue, VarInst
from buda_emu.netlist.nodes import Mark
from buda_emu.spec.ring import RingPointers

OUTSIDE, UNREAD, FULL, WRAP, LEAVES, SKIPS = "V275", "V282", "V283", "V286", "V287", "V292"
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
                self._notes.add(OUTSIDE, settings.source.at(field), f"{field} of {name} is {value}")
        ring = self.ring(name)
        local, read = settings.number("rd_ptr_local"), settings.number("rd_ptr_global")
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
        text, (by, wrap) = step.out, moved
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
                self._notes.add(OUTSIDE, place, f"moves {field} of {queue.name} to {value}", about=queue.name)

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
                self._notes.add(OUTSIDE, settings.source.at(field), what)

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
        local, read = ring.local + number * move, ring.rd + number * popped
        pushed = 1 <= (ring.wr - local) % ring.limit <= ring.entries
        if not pushed and not (local - read) % ring.entries < ring.occupancy - number * popped:
            return False
    return True
