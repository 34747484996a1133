"""`be.debug(netlist)`: a run that is stopped, looked at, changed, and run backwards (docs/run/debug.md)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import numpy as np

from buda_emu.app.api.sources import compiled_of, open_source
from buda_emu.app.debugger.breakpoints import Breakpoint, BreakpointSet, locate
from buda_emu.app.debugger.expressions import parse_tensor
from buda_emu.app.debugger.lookup import Lookup
from buda_emu.app.debugger.machine.backwards import BACK_STEPS, position_before
from buda_emu.app.debugger.machine.engine import Engine
from buda_emu.app.debugger.machine.history import DEFAULT_LIMIT
from buda_emu.app.debugger.machine.steps import Steps, UserChange
from buda_emu.app.debugger.machine.stop import START, STORED, Goal, Interrupt, Kind, Position, Stop
from buda_emu.app.debugger.names import Names
from buda_emu.app.debugger.tensors import TensorValue, newest_slot
from buda_emu.emulator.image.opened import Opened
from buda_emu.emulator.inputs.feed import push
from buda_emu.emulator.inputs.prepared import RunChoice, prepare_run
from buda_emu.emulator.options import Machine, Programs, Seed, arch_word
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.precision import Precision
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.options import document_path, with_options
from buda_emu.support.unmasked import refuse_masked_arrays

if TYPE_CHECKING:
    from buda_emu.app.api.sources import Source


def fill_elements(
    values: object,
    shape: tuple[int, int, int],
    before: TensorValue | None,
    tile: tuple[int, int, int] | None,
    of: Queue | Op,
) -> Any:
    """Return all elements [t, rows, columns] that an entry or result has after a write to `of`. `values` are a number
    for every element, or all elements; with `tile` (t, row, column) they are for this tile only, and the others are
    those of `before`. Raises HostError for another size, and for masked arrays."""
    refuse_masked_arrays(values, of.name)
    array: Any = np.asarray(values)
    if tile is not None:
        assert before is not None
        return before.with_tile(tile, array).values()
    if not array.ndim:
        return np.full(shape, array)
    if array.size != int(np.prod(shape)):
        raise HostError(f"{of.name} takes {' x '.join(map(str, shape))} elements, not {array.shape}")
    return np.array(array.reshape(shape))


class ChangeableRun(Lookup):
    """The part of a session that changes the run. Going back before a change undoes it."""

    changes: list[UserChange]

    @property
    def changed(self) -> list[str]:
        """Descriptions of the changes that were made at or before the current position."""
        return [change.text for change in self.changes if change.position <= self.stop.position]

    def set_variable(self, name: str, value: int) -> None:
        """Set a variable of the running program, with or without its `$`, as a varinst does: queue settings that name
        it follow. Raises HostError if no program runs, or it has no such variable."""
        engine = self.engine
        if engine.variables is None:
            raise HostError("no program runs: a variable is set between two instructions of one")
        text = name if name.startswith("$") else f"${name}"
        variables = engine.call(engine.variables.snapshot)
        if text not in variables:
            raise HostError(f"no variable {text} ({near(text, variables) or ', '.join(variables) or 'there is none'})")
        self._change(f"{text} set to {value}", lambda machine: machine.set_variable(text, value))

    def write(self, target: str, values: object, tile: tuple[int, int, int] | None = None) -> None:
        """Change an entry of a queue or ram, or the result of the op that has just run; `target` is a reference such as
        `q[0]` or `op:exp`. `values` are an array [t, rows, columns] or a number for every element; `tile` (t, row,
        column) restricts the change to one tile. Raises HostError."""
        reference = parse_tensor(target)
        source = self._resolve(reference)
        tensor = self._find(reference, ideal=False) if tile is not None or isinstance(source, Op) else None
        place = f" tile {','.join(map(str, tile))}" if tile is not None else ""
        if isinstance(source, Op):
            assert tensor is not None
            self._write_op(source, tensor, values, tile, place)
            return
        slot = reference.slot
        if slot is None:
            slot = self.engine.call(lambda: newest_slot(self.engine, source.name))
        shape = source.blocking.element_shape
        array = fill_elements(values, shape, tensor, tile, source)
        text = f"{source.name}[{slot}]{place} written"

        def write_slot(machine: Steps) -> None:
            """Write the array to the slot, after checkpoints that share the slot's memory got their own copy."""
            machine.history.before_write(machine.channels[source.name].view.store, position)
            machine.emulator.put(source.name, array[np.newaxis], slot)

        position = self.stop.position
        self._change(text, write_slot)

    def read_bytes(self, target: str) -> bytes:
        """Return an entry of a queue or ram as it lies in the device's memory, all buffers of its grid one after the
        other; for the result of an op, its tiles as little-endian float32. Raises HostError."""
        tensor = self.tensor(target)
        emulator = self.engine.emulator
        name = tensor.of.name
        slot = tensor.slot
        if slot is None:
            return tensor.tiles.astype("<f4").tobytes()
        return b"".join(image.tobytes() for image in self.engine.call(lambda: emulator.memory_image(name, slot)))

    def write_bytes(self, target: str, offset: int, data: bytes) -> None:
        """Change some of the bytes that `read_bytes` returns, from `offset` on; those of an op only right after it ran.
        Raises HostError."""
        tensor = self.tensor(target)
        if isinstance(tensor.of, Op):
            contents = bytearray(self.read_bytes(target))
            if not 0 <= offset <= offset + len(data) <= len(contents):
                raise HostError(f"what op {tensor.name} gave has bytes 0..{len(contents) - 1}")
            contents[offset : offset + len(data)] = data
            changed = replace(
                tensor, tiles=np.frombuffer(contents, "<f4").astype(np.float32).reshape(tensor.tiles.shape)
            )
            self._write_op(tensor.of, tensor, changed.values(), None, f" at byte {offset}")
            return
        name = tensor.of.name
        slot = tensor.slot
        position = self.stop.position
        assert slot is not None

        def write_bytes_to_slot(machine: Steps) -> None:
            """Write the bytes to the slot from `offset` on, after checkpoints that share the slot's memory got their
            own copy."""
            machine.history.before_write(machine.channels[name].view.store, position)
            machine.emulator.put_bytes(name, slot, offset, data)

        self._change(f"{tensor.name} written at byte {offset}", write_bytes_to_slot)

    def _write_op(
        self, op: Op, tensor: TensorValue, values: object, tile: tuple[int, int, int] | None, place: str
    ) -> None:
        """Replace the result `tensor` of the op that has just run, or one tile of it; `place` is text on which part.
        Raises HostError if that op did not just run, or its result cannot be replaced."""
        position = self.stop.position
        if position.step % 2 == 0 or self.engine.op_now is None or self.engine.op_now.name != op.name:
            raise HostError(f"what op {op.name} gave can be changed right after it ran: break if, on its result")
        if self.engine.put is None:
            raise HostError(f"op {op.name} passes its operand on, or adds to a sum: write its queue instead")
        t, rows, columns = tensor.shape
        height, width = tensor.tile_dim
        if (height, width) != (32, 32):
            raise HostError(f"op {op.name} has tiles of {height} x {width}: write its queue instead")
        array = fill_elements(values, (t, rows * 32, columns * 32), tensor, tile, op)
        tiles = array.reshape(t, rows, 32, columns, 32).transpose(0, 1, 3, 2, 4).reshape(1, -1, TILE_ELEMENTS)

        def replace_result(machine: Steps) -> None:
            """Replace the result of the op that has just run by the new tiles."""
            assert machine.put is not None
            machine.put(tiles.astype(np.float32))

        self._change(f"result of op {op.name}{place} written", replace_result)

    def skip(self) -> str:
        """Skip the op that is about to run, so that its result is zero, and return its name. Raises HostError."""
        op = self.engine.op_now
        position = self.stop.position
        if op is None or position.step % 2 or position.step == STORED:
            raise HostError("skip: no op is about to run; `next` or `break` goes to one")
        if op.gradient_op:
            raise HostError(f"op {op.name} adds to a sum, which its ram keeps: it cannot be skipped")
        self._change(f"op {op.name} skipped in input {position.input + 1}", lambda machine: machine.skip())
        return op.name

    def _change(self, text: str, make: Callable[[Steps], None]) -> None:
        """Make a change at the current position on this machine, remember it for later runs over this position, and
        send the machine of precision "ideal", if there is one, back before it."""
        change = UserChange(self.stop.position, text, make)
        self.engine.change(change)
        if self._shadow is not None:
            self._shadow.follow_change(change.position)


class Session(ChangeableRun):
    """A run under a debugger: all programs of a netlist or image, once each in file order.

    `precision`, `programs`, `parameters`, `inputs`, `seed` and `machine` are those of `buda-emu run`: without `inputs`
    they are generated as it does. `history_limit` is in bytes of checkpoints. Use the session as a context manager, or
    call `close`. Every method raises HostError for names that do not exist, and for moves and changes that are
    impossible at the current moment.
    """

    def __init__(
        self,
        opened: Opened,
        *,
        precision: Precision = "format",
        programs: Sequence[str] = (),
        parameters: Mapping[str, str] | None = None,
        inputs: Path | None = None,
        seed: int = 0,
        history_limit: int | None = None,
        **machine: Unpack[Machine],
    ) -> None:
        self.netlist: Netlist = opened.to_run
        self.image = opened.image
        self.precision: Precision = precision
        self.names = Names(self.netlist, opened.image)
        ready = prepare_run(
            self.netlist,
            RunChoice(programs, parameters or {}, machine, opened.image),
            rams=inputs is None,
            as_bits=precision == "device",
        )
        self.feed = ready.feed(inputs, seed)
        self.programs = ready.programs
        self._machine = ready.machine
        self._history_limit = DEFAULT_LIMIT if history_limit is None else history_limit
        self.changes: list[UserChange] = []
        self.breakpoints = BreakpointSet(self.names, self._scope)
        self._interrupted = Interrupt()
        self._repeat_move: Callable[[], Stop] = lambda: self.stop
        self.engine = self._make_engine(precision)

    def _make_engine(self, precision: Precision) -> Engine:
        """Make a machine that runs the session's programs in this precision, and push the inputs to it."""
        emulator = Emulator(self.netlist, precision, **self._machine)
        try:
            return Engine(
                emulator=emulator,
                programs=self.programs,
                fill=lambda machine: push(machine, self.feed.blocks()),
                changes=self.changes,
                interrupted=self._interrupted,
                history_limit=self._history_limit,
            )
        except BaseException:
            emulator.close()
            raise

    def __repr__(self) -> str:
        return f"<Session of {self.netlist.path}, precision {self.precision}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the run and free the machines."""
        self.engine.close()
        if self._shadow is not None:
            self._shadow.close()

    # ------------------------------------------------------------------------------------------------------ going
    def go(self, kind: Kind, count: int = 1, index: int | None = None) -> Stop:
        """Run forward by `count` steps of a kind, or to a breakpoint or the end before that. `index` is the instruction
        that kind "until" is to reach."""
        stop = self.stop
        for _ in range(count):
            stop = self._go(Goal(kind, self.engine.moment("instruction"), None, index))
            if stop.reason != "step":
                break
        return stop

    def _go(self, goal: Goal) -> Stop:
        """Run forward to one goal, delete temporary breakpoints that stopped there, and return the stop."""
        self._arm_breakpoints()
        self._repeat_move = lambda: self._go(goal)
        stop = self.engine.go(goal)
        self._drop_temporary(stop)
        return stop

    def _arm_breakpoints(self) -> None:
        """Let the engine test the breakpoints in the next move, unless none is enabled."""
        self.engine.breaks = None
        if self.breakpoints.enabled:
            self.engine.breaks = self.breakpoints

    def resume(self) -> Stop:
        """Make again the last move, forward or backward, which an interrupt stopped before its end."""
        return self._repeat_move()

    def step(self, count: int = 1) -> Stop:
        """Run to the next instruction, `count` times."""
        return self.go("step", count)

    def next(self, count: int = 1) -> Stop:
        """Run to the next op, or outside of epochs to the next instruction, `count` times."""
        return self.go("next", count)

    def input(self, count: int = 1) -> Stop:
        """Run to the first op of the next input of an epoch, `count` times."""
        return self.go("input", count)

    def epoch(self, count: int = 1) -> Stop:
        """Run to the first op of the next epoch, `count` times."""
        return self.go("epoch", count)

    def finish(self) -> Stop:
        """Run to the end of the epoch; outside of one to the end of the innermost loop, or else of the program."""
        return self.go("finish")

    def until(self, index: int | None = None) -> Stop:
        """Run to a later instruction than the current one, so that a loop runs to its end, or to the instruction
        `index`."""
        return self.go("until", 1, index)

    def cont(self) -> Stop:
        """Continue to the next breakpoint, or to the end."""
        return self.go("continue")

    def run(self) -> Stop:
        """Begin again, and run to the first breakpoint or the end. Changes are undone."""
        self.seek(START)
        return self.cont()

    def seek(self, position: Position) -> Stop:
        """Go to a position, forward or backward, without stopping at breakpoints, and return the stop. It has the
        reason "interrupted" if an interrupt ended the move early. Changes that were made after the position are
        undone."""
        if position < self.stop.position:
            self._undo_after(position)
        self._repeat_move = lambda: self.seek(position)
        return self.engine.seek(position)

    def back(self, kind: Literal["step", "next", "input", "epoch", "finish"] = "next", count: int = 1) -> Stop:
        """Go back by `count` steps of a kind, as `go` goes forward, at most to the start."""
        if kind not in BACK_STEPS:
            raise HostError(f"back goes by one of: {', '.join(BACK_STEPS)}")
        for _ in range(count):
            target = position_before(self.engine, kind)
            if self.seek(target).position < target:
                break
        return self.stop

    def reverse_continue(self) -> Stop:
        """Go back to the last moment at which a breakpoint stops, or to the start."""
        return self._reverse_from(self.stop.position)

    def _reverse_from(self, start: Position) -> Stop:
        """Go back from a position to the last one before it at which a breakpoint stops, or to the start, and return
        the stop. Changes that were made after that are undone."""
        self._repeat_move = lambda: self._reverse_from(start)
        self._arm_breakpoints()
        hit = None
        if self.engine.breaks is not None:
            self.breakpoints.counting = False
            try:
                hit = self.engine.last_hit(start)
            finally:
                self.breakpoints.counting = True
                self.breakpoints.forget()
            if self.stop.reason == "interrupted":
                self._undo_after(self.stop.position)
                return self.stop
        if hit is None:
            self._undo_after(START)
            return self.engine.seek(START)
        target, numbers, text = hit
        self._undo_after(target)
        stop = self.engine.seek(target)
        if stop.position >= target:
            stop = Stop("breakpoint", target, text, numbers)
            self.engine.stopped_by(stop)
            self._drop_temporary(stop)
        return stop

    def interrupt(self) -> None:
        """Stop the current move at its next step, or where none is under way, the next one. May be called from another
        thread or a signal handler."""
        for engine in (self.engine, self._shadow):
            if engine is not None:
                engine.interrupt()

    def clear_interrupt(self) -> None:
        """Withdraw an interrupt that has not stopped anything, so that it does not stop the next move."""
        self._interrupted.wanted = False

    def _undo_after(self, position: Position) -> None:
        """Undo the changes that were made after a position, to which the run goes back."""
        if self.engine.forget_changes_after(position) and self._shadow is not None:
            self._shadow.follow_change(position)

    def _drop_temporary(self, stop: Stop) -> None:
        """Delete the temporary breakpoints that have stopped the run."""
        for number in stop.breakpoints:
            if self.breakpoints.items[number].temporary:
                del self.breakpoints.items[number]

    # --------------------------------------------------------------------------------------------------- stopping
    def break_at(
        self, where: str, condition: str = "", *, temporary: bool = False, ignore: int = 0, log: str = ""
    ) -> Breakpoint:
        """Set a breakpoint and return it. `where` is parsed by `breakpoints.locate`, and "" means a condition alone.
        With `log` the breakpoint does not stop, but gives this text, with the values of its `{expressions}`, to
        `breakpoints.on_log`. Raises HostError."""
        fields: dict[str, Any] = {"temporary": temporary, "ignore": ignore}
        if condition:
            fields |= {"condition": self._parse_condition(condition), "condition_text": condition.strip()}
        if log:
            fields |= {"log": self._parse_log_text(log), "log_text": log}
        if where:
            target = locate(where, self.names, self.engine)
            return self.breakpoints.add(target.kind, target.text, name=target.name, index=target.index, **fields)
        if not condition:
            raise HostError("break WHERE, break WHERE if CONDITION, or break if CONDITION")
        return self.breakpoints.add("if", f"if {condition.strip()}", **fields)

    def watch(self, queue: str) -> Breakpoint:
        """Set a breakpoint that stops when an entry of a queue or ram is written, or a pointer of it moves."""
        source = self.names.queue(queue)
        return self.breakpoints.add("watch", f"watch {source.name}", name=source.name)

    def set_condition(self, number: int, condition: str) -> Breakpoint:
        """Set the condition of a breakpoint, or remove it with "", and return the breakpoint. Raises HostError for a
        number or an expression that is not valid, and for removing the condition of a breakpoint that has nothing
        else."""
        point = self.breakpoints.get(number)
        if point.kind == "if" and not condition:
            raise HostError(f"breakpoint {number} is its condition: delete it instead")
        point.condition = self._parse_condition(condition) if condition else None
        point.condition_text = condition.strip()
        return point


class DebugOptions(Programs, Seed, Machine, total=False):
    """The options of `debug` that other functions have, too."""


@with_options
def debug(
    source: "Source",
    *,
    precision: Precision = "format",
    inputs: str | PathLike[str] | None = None,
    arch: str | None = None,
    history_limit: int = DEFAULT_LIMIT,
    **options: Unpack[DebugOptions],
) -> Session:
    """Open a debugging session on a netlist, image or loaded model, or the path of a netlist or image; see `Session`.
    The session stands before the first program. Raises the errors of loading the netlist and its inputs, and HostError
    for a compiled model, whose netlist has no parameters."""
    if compiled_of(source) is not None:
        raise HostError("debug: a netlist without the model's parameters: save the model, and give the image")
    if inputs is not None:
        inputs = document_path(inputs, "debug: inputs")
    return Session(
        open_source(source, arch_word(arch), function="debug"),
        precision=precision,
        inputs=Path(inputs) if inputs is not None else None,
        history_limit=history_limit,
        **options,
    )
