"""Tensors and expressions of a run: now, at an earlier moment, and in precision "ideal"."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Final

from numpy.typing import NDArray

from buda_emu.app.debugger.expressions import Ideal, Pieces, Tensor, calls, evaluate, parse, pieces_of, tensor
from buda_emu.app.debugger.machine.engine import Engine
from buda_emu.app.debugger.machine.steps import Steps
from buda_emu.app.debugger.machine.stop import Moment, Position, Stop, StoppedShortError
from buda_emu.app.debugger.names import Names
from buda_emu.app.debugger.tensors import Found, here, newest
from buda_emu.emulator.memory.channel import Ram
from buda_emu.netlist.model import Op, Queue
from buda_emu.spec.precision import Precision
from buda_emu.support.errors import HostError, ProgramError
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class MomentScope:
    """Is an `expressions.evaluate.Scope`. `find`: a tensor, of the run, or as precision "ideal" has it."""

    engine: Steps
    names: Names
    find: Callable[[Tensor, bool], Found]

    def tensor(self, which: Tensor, *, ideal: bool = False) -> NDArray[Any]:
        return self.find(which, ideal).values()

    def pointer(self, queue: Tensor, which: str) -> int:
        channel = self.engine.channels[self.names.queue(queue.name).name]
        if isinstance(channel, Ram):
            if which not in ("rd", "wr"):
                raise HostError(f"{which}({queue.name}): a ram has rd and wr only")
            return channel.rd if which == "rd" else channel.wr
        ring = channel.ring
        return {"rd": ring.rd, "wr": ring.wr, "local": ring.local, "occupancy": ring.occupancy}[which]

    def variable(self, name: str) -> int:
        if self.engine.variables is None:
            raise HostError(f"{name}: no program runs")
        try:
            return self.engine.variables.value(name)
        except ProgramError as error:
            raise HostError(str(error)) from None

    def word(self, name: str) -> int:
        engine = self.engine
        own = {
            "input": engine.done + 1 if engine.graphs else 0,
            "inputs": engine.input_count,
            "instruction": engine.count,
        }
        return own[name]


IDEAL: Final = "ideal"


class Lookup:
    """What a session finds. `engine`: the machine that runs; `names`: of the netlist."""

    engine: Engine
    names: Names
    _shadow: Engine | None = None

    @abstractmethod
    def _engine(self, precision: Precision) -> Engine:
        """Another machine of the same run."""

    @property
    def stop(self) -> Stop:
        """Where it stands, and why."""
        return self.engine.stop

    def evaluate(self, text: str) -> float:
        """An expression, here."""
        node = self._condition(text)
        scope = MomentScope(self.engine, self.names, lambda which, ideal: self._find(which, ideal=ideal))
        return evaluate(node, scope)

    def tensor(self, text: str, *, ideal: bool = False) -> Found:
        """`QUEUE[slot]`, `QUEUE` (its newest entry) or `op:NAME` (its last result), here; `ideal`: as precision "ideal"
        has it. What an op gave is computed again where it is not held any more."""
        return self._find(tensor(text), ideal=ideal)

    def _find(self, which: Tensor, *, ideal: bool) -> Found:
        engine = self.engine
        if ideal:
            item = self._known(which)
            if isinstance(item, Queue) and which.slot is None:  # the same entry as here
                which = Tensor(item.name, "queue", self.engine.call(lambda: newest(self.engine, item.name)))
            engine = self._ideal_at(self.stop.position)
        item = self._known(which)
        if isinstance(item, Queue) or item.name in engine.values:
            return engine.call(lambda: here(engine, self.names, which))
        return self._again(engine, item, which)

    def _again(self, engine: Engine, op: Op, which: Tensor) -> Found:
        """Go to where the op ran last, take what it gave, and come back."""
        target = self._ran_at(engine, op)
        if target is None:
            raise HostError(f"op {op.name} has not run yet")
        return engine.look_at(target, lambda: here(engine, self.names, which))

    def _ran_at(self, engine: Engine, op: Op) -> Position | None:
        """After the last time that an op ran, before here."""
        after = 2 * engine.order(op.graph)[op.name] + 1
        now = engine.stop.position
        if now.in_epoch and op.graph in engine.graphs:
            if now.step >= after:
                return Position(now.instruction, now.input, after)
            if now.input > 0:
                return Position(now.instruction, now.input - 1, after)
        chunk = engine.log.epoch_before(now.instruction, op.graph)
        return None if chunk is None else Position(chunk.instruction, chunk.first + chunk.count - 1, after)

    # ------------------------------------------------------------------------------------------- what is asked for
    def _condition(self, text: str) -> Any:
        """Parsed, with every name known."""
        node = parse(text)
        for call in calls(node):
            for item in call.arguments:
                if isinstance(item, Tensor):
                    self._known(item)
            if any(isinstance(item, Ideal) for item in call.arguments):
                self._ideal()
        return node

    def _pieces(self, text: str) -> Pieces:
        """Of a log point's text, with every name known."""
        found = pieces_of(text, self._condition)
        for piece in found:
            if isinstance(piece, Tensor):
                self._known(piece)
        return found

    def _known(self, which: Tensor) -> Queue | Op:
        if which.kind == "op":
            return self.names.op(which.name)
        return self.names.queue(which.name) if which.kind == "queue" else self.names.either(which.name)

    def _scope(self, engine: Steps, now: Moment) -> MomentScope:
        """At an event of the run, on its thread."""

        def find(which: Tensor, ideal: bool) -> Found:
            if not ideal:
                return here(engine, self.names, which)
            shadow = self._ideal_at(now.position)
            return shadow.call(lambda: here(shadow, self.names, which))

        return MomentScope(engine, self.names, find)

    def _ideal(self) -> Engine:
        """The same run in precision "ideal", made when somebody asks for it: it takes as much memory again."""
        if self._shadow is None:
            self._shadow = self._engine(IDEAL)
        return self._shadow

    def _ideal_at(self, position: Position) -> Engine:
        """Raises StoppedShortError where somebody interrupts it on its way there."""
        shadow = self._ideal()
        if shadow.seek(position).reason == "interrupted" and shadow.stop.position < position:
            raise StoppedShortError
        return shadow
