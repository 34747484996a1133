"""Programs that run one after the other in parallel to their caller, as on a device."""

import threading
from collections import deque
from collections.abc import Callable, Mapping


class ProgramThread:
    """Runs `run(program, parameters)` for each submitted program in turn, on a daemon thread.

    `run` deals with its own errors. After `close` nothing more is begun.
    """

    def __init__(self, run: Callable[[str, Mapping[str, str]], None]) -> None:
        self._run = run
        self._waiting: deque[tuple[str, Mapping[str, str]]] = deque()
        self._changed = threading.Condition()
        self._busy = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def submit(self, program: str, parameters: Mapping[str, str]) -> None:
        """Run it once those before it have run."""
        with self._changed:
            if self._closed:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="buda-emu-device", daemon=True)
                self._thread.start()
            self._waiting.append((program, parameters))
            self._changed.notify_all()

    def wait(self) -> None:
        """Return when everything that was submitted has run, or the thread was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not (self._waiting or self._busy))

    def close(self) -> None:
        """Drop what waits. What runs goes on: stopping it is the owner's part."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closed or self._waiting)
                if self._closed:
                    return
                self._busy = True
                program, parameters = self._waiting.popleft()
            self._run(program, parameters)
