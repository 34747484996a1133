"""`be.debug(netlist)`: a run that is stopped, looked at, changed, and run backwards (docs/run/debug.md)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from buda_emu.app.debugger.breakpoints import Breakpoint, BreakpointSet, place
from buda_emu.app.debugger.expressions import tensor
from buda_emu.app.debugger.lookup import Lookup
from buda_emu.app.debugger.machine.backwards import BACK, before_here
from buda_emu.app.debugger.machine.engine import Engine
from buda_emu.app.debugger.machine.history import DEFAULT_LIMIT
from buda_emu.app.debugger.machine.steps import Steps, UserChange
from buda_emu.app.debugger.machine.stop import START, STORED, Goal, Interrupt, Kind, Position, Stop
from buda_emu.app.debugger.names import Names
from buda_emu.app.debugger.tensors import Found, newest
from buda_emu.emulator.image.opened import Opened, open_file
from buda_emu.emulator.inputs.feed import push
from buda_emu.emulator.inputs.prepared import RunChoice, prepare_run
from buda_emu.emulator.memory.host import usable_processors
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.precision import Precision
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.unmasked import refuse_masked_arrays


def filled(
    values: object, shape: tuple[int, int, int], before: Found | None, tile: tuple[int, int, int] | None, of: Queue | Op
) -> Any:
    """All elements [t, rows, columns], of which `values` may give one tile alone, of the tensor as it is `before`."""
    refuse_masked_arrays(values, of.name)
    given: Any = np.asarray(values)
    if tile is not None:
        assert before is not None
        return before.with_tile(tile, given).values()
    if given.ndim and given.size != int(np.prod(shape)):
        raise HostError(f"{of.name} takes {' x '.join(map(str, shape))} elements, not {given.shape}")
    return np.array(np.broadcast_to(given, shape) if not given.ndim else given.reshape(shape))


class Changing(Lookup):
    """What a session changes; going back before a change undoes it."""

    changes: list[UserChange]

    @property
    def changed(self) -> list[str]:
        """What was changed before here, in words."""
        return [change.text for change in self.changes if change.position <= self.stop.position]

    def set_variable(self, name: str, value: int) -> None:
        """Of the running program, as a varinst: queue settings that name it follow."""
        engine = self.engine
        if engine.variables is None:
            raise HostError("no program runs: a variable is set between two instructions of one")
        text = name if name.startswith("$") else f"${name}"
        known = engine.call(engine.variables.snapshot)
        if text not in known:
            raise HostError(f"no variable {text} ({near(text, known) or ', '.join(known) or 'there is none'})")
        self._change(f"{text} set to {value}", lambda machine: machine.set_variable(text, value))

    def write(self, target: str, values: object, tile: tuple[int, int, int] | None = None) -> None:
        """Change an entry of a queue or ram, or what the op gave that has just run: `values` an array [t, rows,
        columns] or a number for every element; `tile`: (t, row, column) of one tile alone."""
        which = tensor(target)
        item = self._known(which)
        found = self._find(which, ideal=False) if tile is not None or isinstance(item, Op) else None
        where = f" tile {','.join(map(str, tile))}" if tile is not None else ""
        if isinstance(item, Op):
            assert found is not None
            self._write_op(item, found, values, tile, where)
            return
        slot = which.slot
        if slot is None:
            slot = self.engine.call(lambda: newest(self.engine, item.name))
        shape = item.blocking.element_shape
        array = filled(values, shape, found, tile, item)
        text = f"{item.name}[{slot}]{where} written"

        def make(machine: Steps) -> None:
            machine.history.before_write(machine.channels[item.name].view.store, position)
            machine.emulator.put(item.name, array[np.newaxis], slot)

        position = self.stop.position
        self._change(text, make)

    def read_bytes(self, target: str) -> bytes:
        """An entry of a queue or ram as it lies in the device's memory, all buffers of its grid one after the other; of
        what an op gave the float32 tiles."""
        found = self.tensor(target)
        emulator = self.engine.emulator
        name = found.of.name
        slot = found.slot
        if slot is None:
            return found.tiles.astype("<f4").tobytes()
        return b"".join(image.tobytes() for image in self.engine.call(lambda: emulator.memory_image(name, slot)))

    def write_bytes(self, target: str, offset: int, data: bytes) -> None:
        """Change some of the bytes that `read_bytes` gives, of an op right after it ran."""
        found = self.tensor(target)
        if isinstance(found.of, Op):
            whole = bytearray(self.read_bytes(target))
            if not 0 <= offset <= offset + len(data) <= len(whole):
                raise HostError(f"what op {found.name} gave has bytes 0..{len(whole) - 1}")
            whole[offset : offset + len(data)] = data
            changed = replace(found, tiles=np.frombuffer(whole, "<f4").astype(np.float32).reshape(found.tiles.shape))
            self._write_op(found.of, found, changed.values(), None, f" at byte {offset}")
            return
        name = found.of.name
        slot = found.slot
        position = self.stop.position
        assert slot is not None

        def make(machine: Steps) -> None:
            machine.history.before_write(machine.channels[name].view.store, position)
            machine.emulator.put_bytes(name, slot, offset, data)

        self._change(f"{found.name} written at byte {offset}", make)

    def _write_op(self, op: Op, found: Found, values: object, tile: tuple[int, int, int] | None, where: str) -> None:
        position = self.stop.position
        if position.step % 2 == 0 or self.engine.op_now is None or self.engine.op_now.name != op.name:
            raise HostError(f"what op {op.name} gave can be changed right after it ran: break if, on its result")
        if self.engine.put is None:
            raise HostError(f"op {op.name} passes its operand on, or adds to a sum: write its queue instead")
        t, rows, columns = found.shape
        height, width = found.tile_dim
        if (height, width) != (32, 32):
            raise HostError(f"op {op.name} has tiles of {height} x {width}: write its queue instead")
        array = filled(values, (t, rows * 32, columns * 32), found, tile, op)
        tiles = array.reshape(t, rows, 32, columns, 32).transpose(0, 1, 3, 2, 4).reshape(1, -1, TILE_ELEMENTS)

        def make(machine: Steps) -> None:
            assert machine.put is not None
            machine.put(tiles.astype(np.float32))

        self._change(f"result of op {op.name}{where} written", make)

    def skip(self) -> str:
        """Do not run the op that is about to run: its result is zero. Returns its name."""
        op = self.engine.op_now
        position = self.stop.position
        if op is None or position.step % 2 or position.step == STORED:
            raise HostError("skip: no op is about to run; `next` or `break` goes to one")
        if op.gradient_op:
            raise HostError(f"op {op.name} adds to a sum, which its ram keeps: it cannot be skipped")
        self._change(f"op {op.name} skipped in input {position.input + 1}", lambda machine: machine.skip())
        return op.name

    def _change(self, text: str, make: Callable[[Steps], None]) -> None:
        change = UserChange(self.stop.position, text, make)
        self.engine.change(change)
        if self._shadow is not None:
            self._shadow.changed(change.position)


class Session(Changing):
    """All programs of a netlist or image, run once each in file order, under a debugger.

    `precision`, `programs`, `parameters`, `inputs`, `seed`, `threads` and `memory_limit` are those of `buda-emu run`:
    without `inputs` they are generated as it does. `history_limit`: bytes of checkpoints. Use it as a context
    manager, or call `close`. Every method raises HostError for what is not there or cannot be done here.
    """

    def __init__(
        self,
        opened: Opened,
        *,
        precision: Precision = "format",
        programs: Sequence[str] = (),
        parameters: Mapping[str, str] | None = None,
        inputs: Path | None = None,
        seed: int,
        threads: int,
        memory_limit: int | None = None,
        history_limit: int = DEFAULT_LIMIT,
    ) -> None:
        self.netlist: Netlist = opened.to_run
        self.image = opened.image
        self.precision: Precision = precision
        self.names = Names(self.netlist, opened.image)
        ready = prepare_run(
            self.netlist,
            RunChoice(programs, parameters or {}, memory_limit, opened.image),
            rams=inputs is None,
            as_bits=precision == "device",
        )
        self.feed = ready.feed(inputs, seed)
        self.programs = ready.programs
        self._threads = threads
        self._limit = ready.limit
        self._history_limit = history_limit
        self.changes: list[UserChange] = []
        self.breakpoints = BreakpointSet(self.names, self._scope)
        self._interrupted = Interrupt()
        self._unfinished: Callable[[], Stop] = lambda: self.stop
        self.engine = self._engine(precision)

    def _engine(self, precision: Precision) -> Engine:
        emulator = Emulator(self.netlist, precision, self._threads, memory_limit=self._limit)
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the run and free the machine."""
        self.engine.close()
        if self._shadow is not None:
            self._shadow.close()

    # ------------------------------------------------------------------------------------------------------ going
    def go(self, kind: Kind, count: int = 1, index: int | None = None) -> Stop:
        """Forward, `count` times or until a breakpoint or the end. `index`: of kind "until", the instruction of the
        program to reach."""
        stop = self.stop
        for _ in range(count):
            stop = self._go(Goal(kind, self.engine.moment("instruction"), None, index))
            if stop.reason != "step":
                break
        return stop

    def _go(self, goal: Goal) -> Stop:
        self.engine.breaks = self.breakpoints if self.breakpoints.enabled else None
        self._unfinished = lambda: self._go(goal)
        stop = self.engine.go(goal)
        self._drop_temporary(stop)
        return stop

    def resume(self) -> Stop:
        """Go on with the move, forward or backward, that an interrupt stopped."""
        return self._unfinished()

    def step(self, count: int = 1) -> Stop:
        """To the next instruction."""
        return self.go("step", count)

    def next(self, count: int = 1) -> Stop:
        """To the next op, or instruction where none runs an epoch."""
        return self.go("next", count)

    def input(self, count: int = 1) -> Stop:
        """To the first op of the next input of an epoch."""
        return self.go("input", count)

    def epoch(self, count: int = 1) -> Stop:
        """To the first op of the next epoch."""
        return self.go("epoch", count)

    def finish(self) -> Stop:
        """To the end of the epoch, outside of one of the innermost loop, else of the program."""
        return self.go("finish")

    def until(self, index: int | None = None) -> Stop:
        """To a later instruction than this one, so that a loop runs to its end; or to the one of that index."""
        return self.go("until", 1, index)

    def cont(self) -> Stop:
        """To the next breakpoint, or the end."""
        return self.go("continue")

    def run(self) -> Stop:
        """From the start to the first breakpoint, or the end. Changes are undone."""
        self.seek(START)
        return self.cont()

    def seek(self, position: Position) -> Stop:
        """Stand at any position, reason "interrupted" where an interrupt stopped it on its way; changes made after one
        that is gone back to are undone."""
        if position < self.stop.position:
            self._undo_after(position)
        self._unfinished = lambda: self.seek(position)
        return self.engine.seek(position)

    def back(self, kind: Literal["step", "next", "input", "epoch", "finish"] = "next", count: int = 1) -> Stop:
        """As `go`, backwards. At the start it stays there."""
        if kind not in BACK:
            raise HostError(f"back goes by one of: {', '.join(BACK)}")
        for _ in range(count):
            target = before_here(self.engine, kind)
            if self.seek(target).position < target:
                break
        return self.stop

    def reverse_continue(self) -> Stop:
        """Back to the last moment at which a breakpoint stops, or to the start."""
        return self._reverse_from(self.stop.position)

    def _reverse_from(self, start: Position) -> Stop:
        self._unfinished = lambda: self._reverse_from(start)
        self.engine.breaks = self.breakpoints if self.breakpoints.enabled else None
        found = None
        if self.engine.breaks is not None:
            self.breakpoints.counting = False
            try:
                found = self.engine.last_hit(start)
            finally:
                self.breakpoints.counting = True
                self.breakpoints.forget()
            if self.stop.reason == "interrupted":
                self._undo_after(self.stop.position)
                return self.stop
        target = found[0] if found is not None else START
        self._undo_after(target)
        stop = self.engine.seek(target)
        if found is not None and stop.position >= target:
            stop = Stop("breakpoint", target, found[2], found[1])
            self.engine.stopped_by(stop)
            self._drop_temporary(stop)
        return stop

    def interrupt(self) -> None:
        """From another thread, or a handler of signals: stop what runs, forward, backward or beside, at its next step;
        where nothing runs, what runs next."""
        for engine in (self.engine, self._shadow):
            if engine is not None:
                engine.interrupt()

    def clear_interrupt(self) -> None:
        """An interrupt that found nothing to stop is no more."""
        self._interrupted.wanted = False

    def _undo_after(self, position: Position) -> None:
        if self.engine.forget_changes_after(position) and self._shadow is not None:
            self._shadow.changed(position)

    def _drop_temporary(self, stop: Stop) -> None:
        for number in stop.breakpoints:
            if self.breakpoints.items[number].temporary:
                del self.breakpoints.items[number]

    # --------------------------------------------------------------------------------------------------- stopping
    def break_at(
        self, where: str, condition: str = "", *, temporary: bool = False, ignore: int = 0, log: str = ""
    ) -> Breakpoint:
        """A breakpoint: `where` as `place` reads it, "" for a condition alone. `log`: stop nowhere, but give this text,
        with the values of `{expressions}` in it, to `breakpoints.on_log`."""
        parsed = self._condition(condition) if condition else None
        more: dict[str, Any] = {"temporary": temporary, "ignore": ignore}
        if log:
            more |= {"log": self._pieces(log), "log_text": log}
        if parsed is not None:
            more |= {"condition": parsed, "condition_text": condition.strip()}
        if not where:
            if parsed is None:
                raise HostError("break WHERE, break WHERE if CONDITION, or break if CONDITION")
            return self.breakpoints.add("if", f"if {condition.strip()}", **more)
        location = place(where, self.names, self.engine)
        return self.breakpoints.add(location.kind, location.text, name=location.name, index=location.index, **more)

    def watch(self, queue: str) -> Breakpoint:
        """Stop when an entry of a queue or ram is written, or a pointer of it moves."""
        found = self.names.queue(queue)
        return self.breakpoints.add("watch", f"watch {found.name}", name=found.name)

    def set_condition(self, number: int, condition: str) -> Breakpoint:
        """Of a breakpoint; "" for none."""
        found = self.breakpoints.of(number)
        if found.kind == "if" and not condition:
            raise HostError(f"breakpoint {number} is its condition: delete it instead")
        found.condition = self._condition(condition) if condition else None
        found.condition_text = condition.strip()
        return found


def debug(
    source: str | PathLike[str] | Netlist,
    *,
    precision: Precision = "format",
    programs: Sequence[str] = (),
    parameters: Mapping[str, str] | None = None,
    inputs: str | PathLike[str] | None = None,
    arch: str | None = None,
    seed: int = 0,
    threads: int | None = None,
    memory_limit: int | None = None,
    history_limit: int = DEFAULT_LIMIT,
) -> Session:
    """A session on a netlist, or the path of one or of a device image; see `Session`. It stands before the first
    program. Raises what loading and feeding raise."""
    opened = Opened(source) if isinstance(source, Netlist) else open_file(fspath(source), arch)
    return Session(
        opened,
        precision=precision,
        programs=programs,
        parameters=parameters,
        inputs=Path(inputs) if inputs is not None else None,
        seed=seed,
        threads=threads or usable_processors(),
        memory_limit=memory_limit,
        history_limit=history_limit,
    )
