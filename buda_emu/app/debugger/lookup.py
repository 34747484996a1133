"""Lookup of tensors and evaluation of expressions for a run: now, at an earlier moment, and in precision "ideal"."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Final

from numpy.typing import NDArray

from buda_emu.app.debugger.expressions import (
    Ideal,
    Pieces,
    Tensor,
    calls_in,
    evaluate,
    parse,
    parse_pieces,
    parse_tensor,
)
from buda_emu.app.debugger.machine.engine import Engine
from buda_emu.app.debugger.machine.steps import Steps
from buda_emu.app.debugger.machine.stop import Moment, Position, Stop, StoppedShortError
from buda_emu.app.debugger.names import Names
from buda_emu.app.debugger.tensors import TensorValue, find_tensor, newest_slot
from buda_emu.emulator.memory.channel import Ram
from buda_emu.netlist.model import Op, Queue
from buda_emu.spec.precision import Precision
from buda_emu.support.errors import HostError, ProgramError
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class MomentScope:
    """Names of an expression at a moment of a machine; implements `expressions.Scope`. `find` returns a tensor of the
    run or, with True, that of precision "ideal"."""

    engine: Steps
    names: Names
    find: Callable[[Tensor, bool], TensorValue]

    def tensor(self, reference: Tensor, *, ideal: bool = False) -> NDArray[Any]:
        """Return the values of a tensor at this moment; with `ideal` those of a run without rounding to formats."""
        return self.find(reference, ideal).values()

    def pointer(self, queue: Tensor, name: str) -> int:
        """Return the pointer `name` (rd, wr, local or occupancy) of a queue at this moment. Raise HostError for an
        unknown queue, and for a ram if the pointer is not rd or wr."""
        channel = self.engine.channels[self.names.queue(queue.name).name]
        if isinstance(channel, Ram):
            pointers = {"rd": channel.rd, "wr": channel.wr}
            if name not in pointers:
                raise HostError(f"{name}({queue.name}): a ram has rd and wr only")
            return pointers[name]
        ring = channel.ring
        return {"rd": ring.rd, "wr": ring.wr, "local": ring.local, "occupancy": ring.occupancy}[name]

    def variable(self, name: str) -> int:
        """Return the value of a program variable at this moment. Raise HostError if no program runs or the variable
        is not defined."""
        if self.engine.variables is None:
            raise HostError(f"{name}: no program runs")
        try:
            return self.engine.variables.value(name)
        except ProgramError as error:
            raise HostError(str(error)) from None

    def word(self, name: str) -> int:
        """Return the number behind a word of the expression language: `input`, counted from 1 and 0 between epochs;
        `inputs` of the epoch; `instruction`, the number begun so far."""
        engine = self.engine
        words = {
            "input": engine.done + 1 if engine.graphs else 0,
            "inputs": engine.input_count,
            "instruction": engine.count,
        }
        return words[name]


IDEAL: Final = "ideal"


class Lookup:
    """The part of a session that looks up tensors and evaluates expressions. `engine` is the machine that runs, `names`
    are those of its netlist."""

    engine: Engine
    names: Names
    _shadow: Engine | None = None

    @abstractmethod
    def _make_engine(self, precision: Precision) -> Engine:
        """Return another machine for the same run in this precision."""

    @property
    def stop(self) -> Stop:
        """The position at which the run stands, and the reason for it."""
        return self.engine.stop

    def evaluate(self, text: str) -> float:
        """Return the value of an expression at the current moment. Raises HostError."""
        node = self._parse_condition(text)
        scope = MomentScope(self.engine, self.names, lambda reference, ideal: self._find(reference, ideal=ideal))
        return evaluate(node, scope)

    def tensor(self, text: str, *, ideal: bool = False) -> TensorValue:
        """Return `QUEUE[slot]`, `QUEUE` (its newest entry) or `op:NAME` (its last result) at the current moment;
        `ideal` selects the tensor of precision "ideal". The result of an op that is no longer held is computed again.
        Raises HostError."""
        return self._find(parse_tensor(text), ideal=ideal)

    def _find(self, reference: Tensor, *, ideal: bool) -> TensorValue:
        """Return the tensor that a reference names at the current moment, or with `ideal` in precision "ideal"; the
        result of an op that is not in memory any more is computed again. Raises HostError."""
        engine = self.engine
        if ideal:
            source = self._resolve(reference)
            if isinstance(source, Queue) and reference.slot is None:  # the same entry as here
                reference = Tensor(
                    source.name, "queue", self.engine.call(lambda: newest_slot(self.engine, source.name))
                )
            engine = self._ideal_engine_at(self.stop.position)
        source = self._resolve(reference)
        if isinstance(source, Queue) or source.name in engine.values:
            return engine.call(lambda: find_tensor(engine, self.names, reference))
        return self._rerun(engine, source, reference)

    def _rerun(self, engine: Engine, op: Op, reference: Tensor) -> TensorValue:
        """Compute the last result of an op again: go back to where the op ran, take the tensor, and return to the
        current moment. Raises HostError if the op has not run yet."""
        target = self._last_run_position(engine, op)
        if target is None:
            raise HostError(f"op {op.name} has not run yet")
        return engine.look_at(target, lambda: find_tensor(engine, self.names, reference))

    def _last_run_position(self, engine: Engine, op: Op) -> Position | None:
        """Return the position just after the last run of an op before the current moment; None if it has not run."""
        after = 2 * engine.order(op.graph)[op.name] + 1
        position = engine.stop.position
        if position.in_epoch and op.graph in engine.graphs:
            if position.step >= after:
                return Position(position.instruction, position.input, after)
            if position.input > 0:
                return Position(position.instruction, position.input - 1, after)
        chunk = engine.log.epoch_before(position.instruction, op.graph)
        if chunk is None:
            return None
        return Position(chunk.instruction, chunk.first + chunk.count - 1, after)

    # ------------------------------------------------------------------------------------------- parsing of names
    def _parse_condition(self, text: str) -> Any:
        """Parse an expression and check that every name in it exists; if it uses `ideal`, make the machine of precision
        "ideal" now. Raises HostError."""
        node = parse(text)
        for call in calls_in(node):
            for argument in call.arguments:
                if isinstance(argument, Tensor):
                    self._resolve(argument)
            if any(isinstance(argument, Ideal) for argument in call.arguments):
                self._ideal_engine()
        return node

    def _parse_log_text(self, text: str) -> Pieces:
        """Parse the text of a log point and check that every name in it exists. Raises HostError."""
        pieces = parse_pieces(text, self._parse_condition)
        for piece in pieces:
            if isinstance(piece, Tensor):
                self._resolve(piece)
        return pieces

    def _resolve(self, reference: Tensor) -> Queue | Op:
        """Return the queue or op that a reference names. Raises HostError."""
        return self.names.resolve(reference.kind, reference.name)

    def _scope(self, engine: Steps, moment: Moment) -> MomentScope:
        """Return the scope in which a breakpoint's expressions are evaluated at an event, on the program's thread."""

        def find(reference: Tensor, ideal: bool) -> TensorValue:
            """Return the tensor at this moment; with `ideal` from the shadow engine, which runs without rounding,
            moved to the same position."""
            if not ideal:
                return find_tensor(engine, self.names, reference)
            shadow = self._ideal_engine_at(moment.position)
            return shadow.call(lambda: find_tensor(shadow, self.names, reference))

        return MomentScope(engine, self.names, find)

    def _ideal_engine(self) -> Engine:
        """Return the machine of the same run in precision "ideal". It is made at the first call, because it takes as
        much memory again."""
        if self._shadow is None:
            self._shadow = self._make_engine(IDEAL)
        return self._shadow

    def _ideal_engine_at(self, position: Position) -> Engine:
        """Return the machine of precision "ideal", brought to a position. Raises StoppedShortError where the user
        interrupts it on the way."""
        shadow = self._ideal_engine()
        if shadow.seek(position).reason == "interrupted" and shadow.stop.position < position:
            raise StoppedShortError
        return shadow
