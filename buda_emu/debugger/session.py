"""`be.debug(netlist)`: a run that is stopped, looked at, changed, and run backwards (docs/debug.md)."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

import numpy as np

from buda_emu.debugger.backwards import BACK, before_here
from buda_emu.debugger.breakpoints import Breakpoint, BreakpointSet
from buda_emu.debugger.engine import Change, Engine
from buda_emu.debugger.expressions.evaluate import evaluate
from buda_emu.debugger.expressions.parse import parse, tensor
from buda_emu.debugger.expressions.tree import Ideal, Tensor, calls
from buda_emu.debugger.filled import filled
from buda_emu.debugger.goal import Goal, Kind, Moment
from buda_emu.debugger.history import DEFAULT_LIMIT
from buda_emu.debugger.names import Names
from buda_emu.debugger.places import place
from buda_emu.debugger.position import START, STORED, Position
from buda_emu.debugger.scope import MomentScope
from buda_emu.debugger.stop import Stop
from buda_emu.debugger.tensors import Found, here, newest
from buda_emu.device.host_processors import usable_processors
from buda_emu.errors import HostError
from buda_emu.image.opened import Opened, open_file
from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.netlist.testing.config import read_test_config
from buda_emu.runtime.emulator import Emulator
from buda_emu.spec.precision import Precision
from buda_emu.verify.inputs.entries import chosen_programs, default_parameters, known_parameters
from buda_emu.verify.inputs.feed import Feed
from buda_emu.verify.inputs.of_image import host_copies, image_args, is_archive_of_inputs, lent
from buda_emu.verify.inputs.push import push
from buda_emu.verify.inputs.reference import DirectoryFiles
from buda_emu.verify.preflight import require_runnable
from buda_emu.verify.room import foreseen, require_room

IDEAL: Final = "ideal"


class Session:
    """All programs of a netlist or image, run once each in file order, under a debugger.

    `precision`, `programs`, `parameters`, `inputs`, `seed`, `threads` and `memory_limit` are those of `buda-emu run`:
    without `inputs` they are made up as it makes them up. `history_limit`: bytes of checkpoints. Use it as a context
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
        seed: int = 0,
        threads: int = 1,
        memory_limit: int | None = None,
        history_limit: int = DEFAULT_LIMIT,
    ) -> None:
        self.netlist: Netlist = opened.to_run
        self.image = opened.image
        self.precision: Precision = precision
        self.names = Names(self.netlist, opened.image)
        netlist = self.netlist
        bodies = chosen_programs(netlist, programs)
        config = read_test_config(netlist.path, netlist.sections)
        args = {**image_args(opened.image), **config.args}
        values = {**default_parameters(bodies, args), **known_parameters(bodies, parameters or {})}
        require_runnable(netlist, bodies)
        steps = foreseen(netlist, bodies, values)
        limit = require_room(
            netlist, steps, memory_limit, rams=inputs is None, as_bits=precision == "device",
            beside=host_copies(opened.image), lent=lent(opened.image),
        )  # fmt: skip
        archive = inputs if inputs is not None and is_archive_of_inputs(inputs) else None
        folder = inputs if archive is None else None
        files = DirectoryFiles.for_netlist(folder, netlist.path, limit) if folder is not None else None
        self.feed = Feed(netlist, config, bodies, values, seed, files, archive, opened.image, limit)
        self.programs = [(body.name, values) for body in bodies]
        self._threads, self._limit, self._history_limit = threads, limit, history_limit
        self.changes: list[Change] = []
        self.breakpoints = BreakpointSet(self.names, self._scope)
        self._shadow: Engine | None = None
        self._goal: Goal | None = None
        self.engine = self._engine(precision)

    def _engine(self, precision: Precision) -> Engine:
        emulator = Emulator(self.netlist, precision, self._threads, memory_limit=self._limit)
        try:
            return Engine(
                emulator, self.programs, lambda machine: push(machine, self.feed.blocks()), self.changes,
                history_limit=self._history_limit,
            )  # fmt: skip
        except BaseException:
            emulator.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the run and free the machine."""
        self.engine.close()
        if self._shadow is not None:
            self._shadow.close()

    # ------------------------------------------------------------------------------------------------------ going
    @property
    def stop(self) -> Stop:
        """Where it stands, and why."""
        return self.engine.stop

    def go(self, kind: Kind, count: int = 1, index: int | None = None) -> Stop:
        """Forward, `count` times or until a breakpoint or the end. `index`: of kind "until", the instruction of the
        program to reach."""
        self.engine.breaks = self.breakpoints if self.breakpoints.enabled else None
        stop = self.stop
        for _ in range(count):
            self._goal = Goal(kind, self.engine.moment("instruction"), None, index)
            stop = self.engine.go(self._goal)
            if stop.reason != "step":
                break
        self._drop_temporary(stop)
        return stop

    def resume(self) -> Stop:
        """Go on with what an interrupt stopped, of `go`."""
        self.engine.breaks = self.breakpoints if self.breakpoints.enabled else None
        stop = self.engine.go(self._goal) if self._goal is not None else self.stop
        self._drop_temporary(stop)
        return stop

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
        """Stand at any position; changes made after one that is gone back to are undone."""
        if position < self.stop.position:
            self._undo_after(position)
        return self.engine.seek(position)

    def back(self, kind: Literal["step", "next", "input", "epoch", "finish"] = "next", count: int = 1) -> Stop:
        """As `go`, backwards. At the start it stays there."""
        if kind not in BACK:
            raise HostError(f"back goes by one of: {', '.join(BACK)}")
        for _ in range(count):
            self.seek(before_here(self.engine, kind))
        return self.stop

    def reverse_continue(self) -> Stop:
        """Back to the last moment at which a breakpoint stops, or to the start."""
        start = self.stop.position
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
            return self.stop
        target = found[0] if found is not None else START
        self._undo_after(target)
        stop = self.engine.seek(target)
        if found is not None:
            stop = Stop("breakpoint", target, found[2], found[1])
            self.engine.restore_stop(stop)
            self._drop_temporary(stop)
        return stop

    def interrupt(self) -> None:
        """From another thread, or a handler of signals: stop at the next step."""
        self.engine.interrupt()

    def _undo_after(self, position: Position) -> None:
        if self.engine.forget_changes_after(position) and self._shadow is not None:
            self._shadow.changed(position)

    def _drop_temporary(self, stop: Stop) -> None:
        for number in stop.breakpoints:
            if self.breakpoints.items[number].temporary:
                del self.breakpoints.items[number]

    # --------------------------------------------------------------------------------------------------- stopping
    def break_at(self, where: str, condition: str = "", *, temporary: bool = False, ignore: int = 0) -> Breakpoint:
        """A breakpoint: `where` as `place` reads it, "" for a condition alone."""
        parsed = self._condition(condition) if condition else None
        more: dict[str, Any] = {"temporary": temporary, "ignore": ignore}
        if parsed is not None:
            more |= {"condition": parsed, "condition_text": condition.strip()}
        if not where:
            if parsed is None:
                raise HostError("break WHERE, break WHERE if CONDITION, or break if CONDITION")
            return self.breakpoints.add("if", f"if {condition.strip()}", **more)
        spot = place(where, self.names, self.engine)
        return self.breakpoints.add(spot.kind, spot.text, name=spot.name, index=spot.index, **more)

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

    def _known(self, which: Tensor) -> Queue | Op:
        if which.kind == "op":
            return self.names.op(which.name)
        return self.names.queue(which.name) if which.kind == "queue" else self.names.either(which.name)

    def _scope(self, engine: Engine, now: Moment) -> MomentScope:
        """At an event of the run, on its thread."""

        def find(which: Tensor, ideal: bool) -> Found:
            if not ideal:
                return here(engine, self.names, which)
            shadow = self._ideal()
            shadow.seek(now.position)
            return shadow.call(lambda: here(shadow, self.names, which))

        return MomentScope(engine, self.names, find)

    def _ideal(self) -> Engine:
        """The same run in precision "ideal", made when somebody asks for it: it takes as much memory again."""
        if self._shadow is None:
            self._shadow = self._engine(IDEAL)
        return self._shadow

    # ---------------------------------------------------------------------------------------------------- looking
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
            engine = self._ideal()
            item = self._known(which)
            if isinstance(item, Queue) and which.slot is None:  # the same entry as here
                which = Tensor(item.name, "queue", self.engine.call(lambda: newest(self.engine, item.name)))
            engine.seek(self.stop.position)
        item = self._known(which)
        if isinstance(item, Queue) or item.name in engine.values:
            return engine.call(lambda: here(engine, self.names, which))
        return self._again(engine, item, which)

    def _again(self, engine: Engine, op: Op, which: Tensor) -> Found:
        """Go to where the op ran last, take what it gave, and come back."""
        stop = engine.stop
        target = self._ran_at(engine, op)
        if target is None:
            raise HostError(f"op {op.name} has not run yet")
        engine.seek(target)
        try:
            return engine.call(lambda: here(engine, self.names, which))
        finally:
            engine.seek(stop.position)
            engine.restore_stop(stop)

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

    # --------------------------------------------------------------------------------------------------- changing
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
            from buda_emu.checker.suggest import near

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
        array = filled(values, shape, found.values() if found is not None else None, tile, item)
        text = f"{item.name}[{slot}]{where} written"

        def make(machine: Engine) -> None:
            machine.history.before_write(machine.channels[item.name].view.store, position)
            machine.emulator.put(item.name, array[np.newaxis], slot)

        position = self.stop.position
        self._change(text, make)

    def _write_op(self, op: Op, found: Found, values: object, tile: tuple[int, int, int] | None, where: str) -> None:
        position = self.stop.position
        if position.step % 2 == 0 or self.engine.op_now is None or self.engine.op_now.name != op.name:
            raise HostError(f"what op {op.name} gave can be changed right after it ran: break if, on its result")
        if self.engine.put is None:
            raise HostError(f"op {op.name} passes on what it reads, or adds to a sum: write its queue instead")
        t, rows, columns = found.shape
        height, width = found.tile_dim
        if (height, width) != (32, 32):
            raise HostError(f"op {op.name} has tiles of {height} x {width}: write its queue instead")
        array = filled(values, (t, rows * 32, columns * 32), found.values(), tile, op)
        tiles = array.reshape(t, rows, 32, columns, 32).transpose(0, 1, 3, 2, 4).reshape(1, -1, 1024)

        def make(machine: Engine) -> None:
            assert machine.put is not None
            machine.put(tiles.astype(np.float32))

        self._change(f"result of op {op.name}{where} written", make)

    def skip(self) -> str:
        """Do not run the op that is about to run: its result is zero. Returns its name."""
        op, position = self.engine.op_now, self.stop.position
        if op is None or position.step % 2 or position.step == STORED:
            raise HostError("skip: no op is about to run; `next` or `break` goes to one")
        if op.gradient_op:
            raise HostError(f"op {op.name} adds to a sum, which its ram keeps: it cannot be skipped")
        self._change(f"op {op.name} skipped in input {position.input + 1}", lambda machine: machine.skip())
        return op.name

    def _change(self, text: str, make: Callable[[Engine], None]) -> None:
        change = Change(self.stop.position, text, make)
        self.engine.change(change)
        if self._shadow is not None:
            self._shadow.changed(change.position)


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
        opened, precision=precision, programs=programs, parameters=parameters,
        inputs=Path(inputs) if inputs is not None else None, seed=seed, threads=threads or usable_processors(),
        memory_limit=memory_limit, history_limit=history_limit,
    )  # fmt: skip
