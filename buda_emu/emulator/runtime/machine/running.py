"""A running program as its caller sees it: how far it is, how it ended, and a way to stop it."""

from collections.abc import Callable
from typing import Self

from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostTimeoutError, RunCancelledError
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run. `epoch_inputs` of `epoch_input_count` inputs of the running, or last, epoch are done."""

    instructions: int = 0  # begun, in each round of a loop again
    epochs: int = 0  # run to their end
    inputs: int = 0  # of all epochs so far
    epoch_inputs: int = 0
    epoch_input_count: int = 0


ProgressCallback = Callable[[Progress], None]


class Run:
    """One run of a program, made by `Emulator.run_async`. Its methods may be called from any thread."""

    def __init__(self, program: str, wait: float, callback: ProgressCallback | None, wake: Callable[[], None]) -> None:
        self.program = program
        self.wait = wait
        self.cancelled = False
        self._callback = callback
        self._wake = wake
        self._instructions = self._epochs = self._inputs = self._epoch_inputs = self._epoch_input_count = 0

    def __repr__(self) -> str:
        return f"<Run of program {self.program}: {self._state_text()}>"

    def _state_text(self) -> str:
        """Return in words how far the run is, or how it ended, for `repr`."""
        if not hasattr(self, "_ended") or not self.done():  # without `with_end` nobody asks how it ended
            if not self._instructions:
                return "not begun"
            return f"running, {plural(self._inputs, 'input')} done"
        error = self._ended.exception()
        if error is None:
            return f"done, {plural(self._inputs, 'input')}"
        if self.cancelled and isinstance(error, RunCancelledError):
            return "cancelled"
        return f"failed, {type(error).__name__}"

    def with_end(self) -> Self:
        """Prepare the run for callers on other threads who ask how it ended, and return it. Without it `done`,
        `cancel`, `result`, `exception` and `add_done_callback` raise AttributeError."""
        from concurrent.futures import Future  # with all that it imports

        self._ended: Future[None] = Future()
        return self

    @property
    def progress(self) -> Progress:
        """The progress at this moment."""
        return Progress(
            instructions=self._instructions,
            epochs=self._epochs,
            inputs=self._inputs,
            epoch_inputs=self._epoch_inputs,
            epoch_input_count=self._epoch_input_count,
        )

    def done(self) -> bool:
        """Return whether the run has ended, well or not."""
        return self._ended.done()

    def cancel(self) -> bool:
        """Ask the run to stop: before its next instruction or chunk of inputs, in its wait for the host, or before its
        turn. Returns True at once, without waiting for that, or False when the run has ended already."""
        if self.done():
            return False
        self.cancelled = True
        self._wake()
        return True

    def result(self, timeout: float | None = None) -> None:
        """Wait for the end of the run, at most `timeout` seconds (None: without limit). Raises what the program raised,
        RunCancelledError when it was cancelled, HostTimeoutError when it still runs."""
        error = self.exception(timeout)
        if error is not None:
            raise error

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait as `result` does, and return what it would raise, None when the run ended well. Raises HostTimeoutError
        when it still runs after `timeout` seconds."""
        try:
            return self._ended.exception(timeout)
        except TimeoutError:  # of the futures, too, since Python 3.11
            raise HostTimeoutError(f"program {self.program} still runs after {timeout} s") from None

    def add_done_callback(self, call: Callable[["Run"], object]) -> None:
        """Call `call(run)` once the run has ended, on the thread that it ran on, or at once when it has ended
        already."""
        self._ended.add_done_callback(lambda _: call(self))

    # -------------------------------------------------------------------------------------- for the running program
    def check(self) -> None:
        """Raise RunCancelledError once the run has been cancelled."""
        if self.cancelled:
            raise RunCancelledError(f"the run of program {self.program} was cancelled")

    def instruction(self) -> None:
        """Count an instruction that is about to begin. Raises RunCancelledError once the run has been cancelled."""
        self.check()
        self._instructions += 1

    def epoch(self, input_count: int) -> None:
        """Begin to count the inputs of an epoch that has `input_count` of them."""
        self._epoch_inputs = 0
        self._epoch_input_count = input_count

    def chunk(self, inputs: int) -> None:
        """Count `inputs` more inputs as done, and the epoch once all of its inputs are, then call the callback with the
        progress."""
        self._inputs += inputs
        self._epoch_inputs += inputs
        self._epochs += self._epoch_inputs == self._epoch_input_count
        if self._callback is not None:
            self._callback(self.progress)

    def end(self, error: BaseException | None) -> None:
        """Record that the run has ended, with its error if it has one, for `result` and the done callbacks."""
        if error is None:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(error)
