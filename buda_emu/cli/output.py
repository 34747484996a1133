"""How the command prints and writes: plain tables, no complaint when a pipe is closed, files never half written."""

import os
import sys
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path  # with what it imports, a twentieth of the time that `check` takes

_BAR_WIDTH = 30
_LEAST_SECONDS = 0.1


def say(text: str = "", stream: IO[str] | None = None) -> None:
    """Print a line. When the reader of a pipe is gone (`| head`) the rest is dropped and the work goes on."""
    target = sys.stdout if stream is None else stream
    try:
        print(text, file=target, flush=True)
    except BrokenPipeError:
        # What is still buffered would raise again when the interpreter closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), target.fileno())


def complain(text: str) -> None:
    """Print a line to standard error."""
    say(text, sys.stderr)


def write_file(path: "Path", write: Callable[[IO[bytes]], object]) -> None:
    """Write a file beside its place and move it there when it is whole. Raises OSError."""
    import tempfile

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)  # noqa: PTH101 - mkstemp gives a name and makes it private
        os.replace(name, path)  # noqa: PTH105
    except BaseException:
        os.unlink(name)  # noqa: PTH108
        raise


def write_json(path: "Path", content: Any) -> None:
    """Write strict JSON (no NaN) as `write_file` does."""
    import json

    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    write_file(path, lambda stream: stream.write(text.encode()))


class Progress:
    """One line on a terminal's standard error that says what is going on; nothing where it is not a terminal."""

    def __init__(self, quiet: bool = False) -> None:
        self.live = not quiet and sys.stderr.isatty()
        self._shown = 0.0

    def show(self, text: str) -> None:
        """Replace the line."""
        if self.live:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def bar(self, done: int, count: int, seconds: float, what: str) -> None:
        """Replace the line by `bar_text`; at most ten times a second, so that quick work is not slowed by it."""
        now = time.monotonic()
        if self.live and now - self._shown >= _LEAST_SECONDS:
            self._shown = now
            self.show(bar_text(done, count, seconds, what))

    def clear(self) -> None:
        """Take the line away."""
        self.show("")


def bar_text(done: int, count: int, seconds: float, what: str, note: str = "") -> str:
    """`[####......] 4/10 inputs, note, 6 s left`: `done` took `seconds`, and the rest takes so long at that rate."""
    filled = _BAR_WIDTH * min(done, count) // max(count, 1)
    parts = [f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {done}/{count} {what}"]
    parts += [note] if note else []
    parts += [f"{duration(seconds * (count - done) / done)} left"] if 0 < done < count else []
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """`12 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
