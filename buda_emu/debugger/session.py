"""`be.debug(netlist)`: a run that is stopped, looked at, changed, and run backwards (docs/run/debug.md)."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, Self

from buda_emu.debugger.breakpoints import Breakpoint, BreakpointSet
from buda_emu.debugger.changing import Changing
from buda_emu.debugger.machine.backwards import BACK, before_here
from buda_emu.debugger.machine.engine import Engine
from buda_emu.debugger.machine.goal import Goal, Kind
from buda_emu.debugger.machine.history import DEFAULT_LIMIT
from buda_emu.debugger.machine.interrupts import Interrupt
from buda_emu.debugger.machine.position import START, Position
from buda_emu.debugger.machine.steps import Change
from buda_emu.debugger.machine.stop import Stop
from buda_emu.debugger.names import Names
from buda_emu.debugger.places import place
from buda_emu.device.host_processors import usable_processors
from buda_emu.errors import HostError
from buda_emu.image.opened import Opened, open_file
from buda_emu.netlist.model import Netlist
from buda_emu.runtime.emulator import Emulator
from buda_emu.spec.precision import Precision
from buda_emu.verify.inputs.push import push
from buda_emu.verify.prepared import Chosen, prepared


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
        ready = prepared(
            self.netlist,
            Chosen(programs, parameters or {}, memory_limit, opened.image),
            rams=inputs is None,
            as_bits=precision == "device",
        )
        self.feed = ready.feed(inputs, seed)
        self.programs = ready.programs
        self._threads, self._limit, self._history_limit = threads, ready.limit, history_limit
        self.changes: list[Change] = []
        self.breakpoints = BreakpointSet(self.names, self._scope)
        self._interrupted = Interrupt()
        self._unfinished: Callable[[], Stop] = lambda: self.stop
        self.engine = self._engine(precision)

    def _engine(self, precision: Precision) -> Engine:
        emulator = Emulator(self.netlist, precision, self._threads, memory_limit=self._limit)
        try:
            return Engine(
                emulator,
                self.programs,
                lambda machine: push(machine, self.feed.blocks()),
                self.changes,
                self._interrupted,
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
