"""A program that runs, as the one who started it sees it: how far it is, how it ended, and a way to stop it."""

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass

from buda_emu.errors import HostTimeoutError, RunCancelledError


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. `epoch_inputs` of `epoch_input_count` inputs of the running epoch are done."""

    instructions: int = 0  # begun, each round of a loop anew
    epochs: int = 0  # run to their end
    inputs: int = 0  # of all epochs so far
    epoch_inputs: int = 0
    epoch_input_count: int = 0


ProgressCallback = Callable[[Progress], None]


class Run:
    """One run of a program, made by `Emulator.run_async`. All methods may be called from any thread."""

    def __init__(self, program: str, wait: float = 0.0, callback: ProgressCallback | None = None) -> None:
        self.program = program
        self.wait = wait
        self._callback = callback
        self._progress = Progress()
        self._cancelled = False
        self._ended: Future[None] = Future()

    @property
    def progress(self) -> Progress:
        """How far it is now."""
        return self._progress

    def done(self) -> bool:
        """Has it ended, well or not?"""
        return self._ended.done()

    def cancel(self) -> bool:
        """Stop it before its next instruction or chunk of inputs, or while it waits. False when it has ended."""
        self._cancelled = True
        return not self.done()

    def result(self, timeout: float | None = None) -> None:
        """Wait for its end, at most `timeout` seconds. Raises what the program raised, RunCancelledError when it was
        cancelled, HostTimeoutError when it still runs."""
        try:
            self._ended.result(timeout)
        except FutureTimeoutError:
            if not self.done():
                raise HostTimeoutError(f"program {self.program} still runs after {timeout} s") from None
            raise

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The same, but what `result` would raise for an ended run is returned; None when it ended well."""
        try:
            return self._ended.exception(timeout)
        except FutureTimeoutError:
            raise HostTimeoutError(f"program {self.program} still runs after {timeout} s") from None

    def add_done_callback(self, call: Callable[["Run"], object]) -> None:
        """Call `call(run)` once it has ended, on the thread that it ran on, or at once when it has ended already."""
        self._ended.add_done_callback(lambda _: call(self))

    def check(self) -> None:
        """Raises RunCancelledError once it has been cancelled."""
        if self._cancelled:
            raise RunCancelledError(f"the run of program {self.program} was cancelled")
