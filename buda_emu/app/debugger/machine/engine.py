"""A machine whose programs run one after the other, can be stopped between any two steps, and can be brought back to
any moment.

Everything is a function of the inputs, the changes that a user made, and a position: bits do not depend on how many
inputs run together, so a moment is reached again by running from a checkpoint before it.
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
_AWAKE: Final = 0.1
"""Seconds after which who waits looks up: a signal that came just before it began to wait is handled then."""
_GO: Final = "go"
_ABANDON: Final = "abandon"
_CLOSE: Final = "close"


class AbandonedError(BaseException):
    """Ends a program from inside, because another moment is going back to. No error: nobody catches it."""


@dataclass(frozen=True, slots=True)
class _Reply:
    value: Any = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """`work`: something to do, or what the program is to do. Each has its own way back: who stops waiting for one never
    takes its reply for another's."""

    work: Callable[[], Any] | Literal["go", "abandon", "close"]
    replies: SimpleQueue[_Reply]


class Worker:
    """`run` is what begins or resumes programs, and returns how they ended."""

    def __init__(self, run: Callable[[], Stop]) -> None:
        self._run = run
        self._requests: SimpleQueue[_Request] = SimpleQueue()
        self._thread = Thread(target=self._work, name="buda-emu debug", daemon=True)
        self._thread.start()
        self.held = False  # a program is between two of its steps

    # ------------------------------------------------------------------------------------- for who gives commands
    def call(self, work: Callable[[], T]) -> T:
        """Do something on the thread, while nothing runs. Raises what it raises."""
        return self._ask(work)

    def go(self) -> Stop:
        """Let the program go on, or begin, until it is held or ends."""
        return self._ask(_GO)

    def abandon(self) -> None:
        """End a program that is held."""
        if self.held:
            self._ask(_ABANDON)

    def close(self) -> None:
        """End the program, at the latest when it is held, and the thread."""
        if self._thread.is_alive():
            self._ask(_CLOSE)
            self._thread.join()

    def _ask(self, work: Any) -> Any:
        request = _Request(work, SimpleQueue())
        self._requests.put(request)
        reply = None
        while reply is None:
            with suppress(Empty):
                reply = request.replies.get(timeout=_AWAKE)
        if reply.error is not None:
            raise reply.error
        return reply.value

    # ------------------------------------------------------------------------------------------- on the thread
    def hold(self, stop: Stop) -> None:
        """Tell that the program stands here, and do what is asked until it may go on. Raises AbandonedError."""
        self.held = True
        self._now.replies.put(_Reply(stop))
        self._now = self._serve()
        self.held = False
        if self._now.work != _GO:
            raise AbandonedError

    def _serve(self) -> _Request:
        """Do what is asked; returns the request that ends this."""
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
    """One machine. Methods of the first part are for the thread that gives commands, those of the second run on the
    program's. `fill` pushes the inputs; `programs`: names with their parameters, in order."""

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
        self.pending: Callable[[], bool] = lambda: False  # does somebody wait for the program to be held?
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
        """End the program, be it running, and the machine."""
        self.interrupt()
        self._worker.close()
        self.emulator.close()

    # ============================================================================== for who gives commands
    @property
    def ended(self) -> bool:
        """Have all programs run, or has one failed?"""
        return self.stop.reason in ("end", "error")

    def call(self, work: Callable[[], T]) -> T:
        """Look at the machine, or change it, while nothing runs."""
        return self._worker.call(work)

    def go(self, goal: Goal, *, breaking: bool = True) -> Stop:
        """Run on until the goal, a breakpoint where `breaking`, or the end. Raises what ends a program and is no
        ProgramError."""
        if self.ended:
            raise HostError("all programs have run: `back` goes back, `run` begins again")
        self._set_goal(goal, breaking)
        if breaking and not self._seeking and self.pending():  # somebody wanted in before
            self.interrupted.wanted = True
        self.history.goes_on()
        try:
            with ctrl_c(self.interrupt):
                self.stop = self._worker.go()
        finally:
            self.history.stands()
        if self.stop.reason == "interrupted":
            self.interrupted.wanted = False
        return self.stop

    def seek(self, target: Position) -> Stop:
        """Stand at a position, wherever that is; before it where somebody interrupts, reason "interrupted"."""
        here = self.stop
        if target == here.position:
            return here
        if target < here.position or self.ended:
            self._back_to(target)
        if target <= self.stop.position:
            return self.stop
        stop = self.go(Goal("position", self.moment("instruction"), target), breaking=False)
        if stop.reason == "step":
            self.stop = Stop("step", stop.position)
        return self.stop

    def look_at(self, target: Position, look: Callable[[], T]) -> T:
        """What there is to be seen at another moment; then it stands again where it stood, for the same reason. Raises
        StoppedShortError where somebody interrupts the way there."""
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
        """The last position before one at which a breakpoint stops."""
        end = before
        while True:
            kept = self.history.before(Position(max(0, end.instruction - (not end.in_epoch))))
            self._back_to(kept.position)
            self._last_hit = None
            self._seeking = True
            try:
                self.go(Goal("position", self.moment("instruction"), end))
            finally:
                self._seeking = False
            hit = self._last_hit
            if self.stop.reason == "interrupted" or kept.position == START or (hit and hit[0] > kept.position):
                return hit
            # At the checkpoint itself, what changed since the event before it is seen by who comes from there.
            end = kept.position._replace(step=1)

    def moment(self, event: Event) -> Moment:
        """As it stands, for goals."""
        return Moment(
            event=event, position=self.stop.position, program=self.program, index=self.index, loops=self.loops
        )

    def change(self, change: UserChange) -> None:
        """Make a change here; what was kept of a later moment is of another run."""
        self._worker.call(lambda: change.make(self))
        self.changes.append(change)
        self.history.forget_after(change.position)

    def changed(self, position: Position) -> None:
        """Another machine of the same run was changed there: this one, which has its list of changes, goes back."""
        self.history.forget_after(position)
        if self.stop.position >= position:
            self._back_to(position)

    def forget_changes_after(self, position: Position) -> list[UserChange]:
        """Take back what was changed later: it was a run that is no more."""
        dropped = [change for change in self.changes if change.position > position]
        if dropped:
            self.changes[:] = [change for change in self.changes if change.position <= position]
            self.history.forget_after(position)
        return dropped

    @property
    def program_start(self) -> Position:
        """Before the first instruction of the program that runs, or ran last."""
        return Position(self._starts.get(self._running, 0))

    def stopped_by(self, stop: Stop) -> None:
        """It stands where a breakpoint stopped, which was found on another way."""
        self.stop = stop

    def interrupt(self) -> None:
        """From any thread, and from handlers of signals: hold the program at its next step, or where none runs at the
        first of the next move. Wanted until that has stopped something."""
        self.interrupted.wanted = True
        self.ops = True

    def _back_to(self, target: Position) -> None:
        """To the last checkpoint at or before a position."""
        self._worker.abandon()
        kept = self.history.before(target)
        self._worker.call(lambda: self.history.restore(kept))
        self.log.back_to(kept.position)
        at = kept.position.instruction
        self._reset(Position(max(0, at - 1)))
        self._begin_at = kept.program
        self._resume = kept.state.standing is not None
        self._state = kept
        self.stop = Stop("start" if at == 0 else "step", START if at == 0 else Position(at - 1, STORED, STORED))
        if at == 0:
            self._worker.call(lambda: self._make_changes(START))
        if self.breaks is not None:
            self.breaks.forget()

    # ============================================================================== on the program's thread
    def _run_programs(self) -> Stop:
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
        """After everything that was run; the input that failed counts as begun."""
        return Position(self.count, self.done, STORED) if self.graphs else Position(self.count, 0, 0)

    def _hold(self, stop: Stop) -> None:
        self._worker.hold(stop)
