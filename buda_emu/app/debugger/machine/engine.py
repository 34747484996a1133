"""A machine whose programs run one after the other, can be stopped between any two steps, and can be brought back to
any moment.

The state at a position is a function of the inputs, the changes that a user made, and the position: bits do not depend
on how many inputs run together, so a moment is reached again by running from a checkpoint before it.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, Literal, TypeVar

from buda_emu.app.debugger.machine.history import DEFAULT_LIMIT, History
from buda_emu.app.debugger.machine.steps import Hit, Steps, UserChange
from buda_emu.app.debugger.machine.stop import (
    START,
    STORED,
    Event,
    Goal,
    Interrupt,
    Moment,
    Position,
    Stop,
    StoppedShortError,
    ctrl_c,
)
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.support.errors import BudaError, HostError
from buda_emu.support.records import dataclass

T = TypeVar("T")
_POLL_SECONDS: Final = 0.1
"""Seconds after which a waiting thread wakes up, to handle a signal that came just before it began to wait."""
_GO: Final = "go"
_ABANDON: Final = "abandon"
_CLOSE: Final = "close"


class AbandonedError(BaseException):
    """Unwinds a program because the run goes back to another moment. It is no error, and a BaseException so that no
    handler of errors catches it."""


@dataclass(frozen=True, slots=True)
class _Reply:
    """The result of a request, or the error that it raised."""

    value: Any = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """Work for the thread, or an order for the program. Each request has its own queue for the reply: a caller that
    stopped waiting for one never receives its reply in place of another's."""

    work: Callable[[], Any] | Literal["go", "abandon", "close"]
    replies: SimpleQueue[_Reply]


class Worker:
    """A thread that runs programs and, while they are held, other work. `run` begins or resumes programs, and returns
    how they ended."""

    def __init__(self, run: Callable[[], Stop]) -> None:
        self._run = run
        self._requests: SimpleQueue[_Request] = SimpleQueue()
        self._thread = Thread(target=self._work, name="buda-emu debug", daemon=True)
        self._thread.start()
        self.held = False  # a program is between two of its steps

    # --------------------------------------------------------------------------- for the thread that gives commands
    def call(self, work: Callable[[], T]) -> T:
        """Run `work` on the thread, between two steps of a program, and return its result. Blocks while a program runs.
        Raises what `work` raises."""
        return self._ask(work)

    def go(self) -> Stop:
        """Begin the programs, or resume the one that is held, and block until one is held at a step or all have ended.
        Return the stop. Raises an error that `run` raises."""
        return self._ask(_GO)

    def abandon(self) -> None:
        """End a program that is held between two steps; nothing happens if none is."""
        if self.held:
            self._ask(_ABANDON)

    def close(self) -> None:
        """Abandon the program and end the thread. Blocks while a program runs, until it is held at a step or ends; a
        second call does nothing."""
        if self._thread.is_alive():
            self._ask(_CLOSE)
            self._thread.join()

    def _ask(self, work: Any) -> Any:
        """Send a request to the thread, wait for the reply, and return its value or raise its error. `work` is a
        function, or an order for the program."""
        request = _Request(work, SimpleQueue())
        self._requests.put(request)
        reply = None
        while reply is None:
            with suppress(Empty):
                reply = request.replies.get(timeout=_POLL_SECONDS)
        if reply.error is not None:
            raise reply.error
        return reply.value

    # ------------------------------------------------------------------------------------------- on the thread
    def hold(self, stop: Stop) -> None:
        """Hold the program at its present step: report the stop to the caller of `go`, and do the work of `call` until
        the next `go`. Raises AbandonedError if the program is to end instead."""
        self.held = True
        self._now.replies.put(_Reply(stop))
        self._now = self._serve()
        self.held = False
        if self._now.work != _GO:
            raise AbandonedError

    def _serve(self) -> _Request:
        """Do the work of requests until one is an order for the program (go, abandon, close), and return that."""
        while True:
            request = self._requests.get()
            if isinstance(request.work, str):
                return request
            try:
                reply = _Reply(request.work())
            except BaseException as error:  # noqa: BLE001 - it comes out of `call`
                reply = _Reply(error=error)
            request.replies.put(reply)

    def _work(self) -> None:
        """Serve requests until one closes the thread; the thread's main function."""
        closing = False
        while not closing:
            self._now = self._serve()
            reply = _Reply()
            if self._now.work == _GO:
                try:
                    reply = _Reply(self._run())
                except AbandonedError:
                    pass
                except BaseException as error:  # noqa: BLE001 - it comes out of `go`
                    reply = _Reply(error=error)
            closing = self._now.work == _CLOSE
            self._now.replies.put(reply)


class Engine(Steps):
    """One machine and the thread of its programs.

    Methods of the first part are for the thread that gives commands, those of the second run on the program's thread.
    `fill` pushes the inputs; `programs` are names with their parameters, in order.
    """

    def __init__(
        self,
        emulator: Emulator,
        programs: Sequence[tuple[str, Mapping[str, str]]],
        fill: Callable[[Emulator], object],
        changes: list[UserChange],
        interrupted: Interrupt,
        *,
        history_limit: int = DEFAULT_LIMIT,
    ) -> None:
        super().__init__(emulator, changes, interrupted)
        self.programs = tuple(programs)
        self._begin_at: int = 0  # the first program of the next run; the machine may stand within it
        self._resume = False
        self.pending: Callable[[], bool] = lambda: False  # whether a request waits for the program to be held
        self._starts: dict[int, int] = {}  # the first instruction of each program
        self.stop = Stop("start", START)
        self._worker = Worker(self._run_programs)
        try:
            self._worker.call(lambda: fill(emulator))
            self.history = History(emulator.checkpoints(), history_limit)
            self._worker.call(lambda: self.history.take(START, 0, running=False))
        except BaseException:
            self._worker.close()
            raise
        self._state = self.history.before(START)
        emulator.stepper = self

    def close(self) -> None:
        """End the program, interrupting it if it runs, its thread and the machine."""
        self.interrupt()
        self._worker.close()
        self.emulator.close()

    # ============================================================================== for the thread that gives commands
    @property
    def ended(self) -> bool:
        """True when all programs have run, or one has failed."""
        return self.stop.reason in ("end", "error")

    def call(self, work: Callable[[], T]) -> T:
        """Run `work`, which reads or changes the machine, on the program's thread while no program runs, and return its
        result."""
        return self._worker.call(work)

    def go(self, goal: Goal, *, breaking: bool = True) -> Stop:
        """Run to the goal, with `breaking` only to the next breakpoint, or to the end of the programs, and return the
        stop. Raises HostError if they have already ended, and any error of a program that is no BudaError."""
        if self.ended:
            raise HostError("all programs have run: `back` goes back, `run` begins again")
        self._set_goal(goal, breaking)
        if breaking and not self._seeking and self.pending():  # a request came before the program ran
            self.interrupted.wanted = True
        self.history.start_clock()
        try:
            with ctrl_c(self.interrupt):
                self.stop = self._worker.go()
        finally:
            self.history.stop_clock()
        if self.stop.reason == "interrupted":
            self.interrupted.wanted = False
        return self.stop

    def seek(self, target: Position) -> Stop:
        """Bring the machine to a position, forward or back, without stopping at breakpoints, and return the stop. An
        interrupt ends the move before the position, with the reason "interrupted"."""
        current = self.stop
        if target == current.position:
            return current
        if target < current.position or self.ended:
            self._back_to(target)
        if target <= self.stop.position:
            return self.stop
        stop = self.go(Goal("position", self.moment("instruction"), target), breaking=False)
        if stop.reason == "step":
            self.stop = Stop("step", stop.position)
        return self.stop

    def look_at(self, target: Position, look: Callable[[], T]) -> T:
        """Return what `look()` finds at another position; afterwards the machine stands again where it stood, for the
        same reason. Raises StoppedShortError if an interrupt ends the way there."""
        stop = self.stop
        try:
            if self.seek(target).position < target:
                raise StoppedShortError
            return self.call(look)
        finally:
            back = self.seek(stop.position)
            if back.reason != "interrupted" or back.position >= stop.position:
                self.stop = stop

    def last_hit(self, before: Position) -> Hit | None:
        """Run again up to a position to find the last moment before it at which a breakpoint stops, and return that, or
        None. The machine then stands elsewhere: the caller has to `seek`."""
        end = before
        while True:
            saved = self.history.before(Position(max(0, end.instruction - (not end.in_epoch))))
            self._back_to(saved.position)
            self._last_hit = None
            self._seeking = True
            try:
                self.go(Goal("position", self.moment("instruction"), end))
            finally:
                self._seeking = False
            hit = self._last_hit
            if self.stop.reason == "interrupted" or saved.position == START or (hit and hit[0] > saved.position):
                return hit
            # A hit at the checkpoint itself depends on the event before it: it is tested coming from an earlier one.
            end = saved.position._replace(step=1)

    def moment(self, event: Event) -> Moment:
        """Return the current moment, as if `event` had just happened there; goals are tested against it."""
        return Moment(
            event=event, position=self.stop.position, program=self.program, index=self.index, loops=self.loops
        )

    def change(self, change: UserChange) -> None:
        """Make a change of the user at the current position, remember it for later runs over this position, and delete
        the checkpoints of later moments, which are those of an unchanged run."""
        self._worker.call(lambda: change.make(self))
        self.changes.append(change)
        self.history.forget_after(change.position)

    def follow_change(self, position: Position) -> None:
        """Take account of a change that another machine of the same run made at a position: this one shares the list of
        changes, and goes back before it."""
        self.history.forget_after(position)
        if self.stop.position >= position:
            self._back_to(position)

    def forget_changes_after(self, position: Position) -> list[UserChange]:
        """Remove the user's changes that were made after a position, with the checkpoints that have them, and return
        them."""
        dropped = [change for change in self.changes if change.position > position]
        if dropped:
            self.changes[:] = [change for change in self.changes if change.position <= position]
            self.history.forget_after(position)
        return dropped

    @property
    def program_start(self) -> Position:
        """The position before the first instruction of the program that runs, or ran last."""
        return Position(self._starts.get(self._running, 0))

    def stopped_by(self, stop: Stop) -> None:
        """Set the stop at which the run stands; for a breakpoint to which the machine was brought by `seek`."""
        self.stop = stop

    def interrupt(self) -> None:
        """Hold the program at its next step, or where none runs at the first step of the next move. The request stays
        until it has stopped something. May be called from any thread, and from signal handlers."""
        self.interrupted.wanted = True
        self.ops = True

    def _back_to(self, target: Position) -> None:
        """Restore the last checkpoint at or before a position, with the changes at the start; the caller goes on from
        there."""
        self._worker.abandon()
        saved = self.history.before(target)
        self._worker.call(lambda: self.history.restore(saved))
        self.log.back_to(saved.position)
        instruction = saved.position.instruction
        self._reset(Position(max(0, instruction - 1)))
        self._begin_at = saved.program
        self._resume = saved.state.standing is not None
        self._state = saved
        self.stop = Stop(
            "start" if instruction == 0 else "step",
            START if instruction == 0 else Position(instruction - 1, STORED, STORED),
        )
        if instruction == 0:
            self._worker.call(lambda: self._make_changes(START))
        if self.breaks is not None:
            self.breaks.forget()

    # ============================================================================== on the program's thread
    def _run_programs(self) -> Stop:
        """Run the programs from the restored one on, and return how they ended."""
        first = self._begin_at
        resume = self._resume
        self._resume = False
        try:
            for number, (name, parameters) in enumerate(self.programs):
                if number < first:
                    continue
                self._running = number
                standing = self._state.state.standing
                if resume and number == first and standing is not None:
                    self.emulator.resume(standing)
                else:
                    self._starts[number] = self.count + 1
                    self.emulator.run(name, parameters)
        except BudaError as error:
            return Stop("error", self._error_position(), str(error), error=error)
        self._leave_epoch()
        self.program = ""
        self.index = -1
        self.instruction_now = None
        self.variables = None
        self.count += 1
        position = Position(self.count)
        self._make_changes(position)
        return Stop("end", position)

    def _error_position(self) -> Position:
        """Return the position at which a program failed: after everything that was run; an input that failed counts as
        begun."""
        if not self.graphs:
            return Position(self.count, 0, 0)
        return Position(self.count, self.done, STORED)

    def _hold(self, stop: Stop) -> None:
        """Hold the machine's thread at this stop until the debugger lets it go on."""
        self._worker.hold(stop)
