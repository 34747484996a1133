"""How the command prints and writes: plain tables, no complaint when a pipe is closed, outputs to files and `-`."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from buda_emu.support.errors import HostError
from buda_emu.support.screen import as_it_is, escape_controls, harmless, plain, screen_of
from buda_emu.support.version import RESULT_VERSION

if TYPE_CHECKING:
    from buda_emu.performance.timeline.picture import TimelinePicture

_BAR_WIDTH = 30
_LEAST_SECONDS = 0.1


_TO_STDOUT = "-"
_apart = False  # results go to standard output, so words do not


def keep_stdout_for_results(options: Iterable[object]) -> None:
    """Where one of them is the output file `-`, what is said goes to standard error."""
    speak_apart(any(str(option) == _TO_STDOUT and isinstance(option, os.PathLike) for option in options))


def speak_apart(apart: bool = True) -> None:
    """Whether what is said goes to standard error, because standard output is for results."""
    global _apart
    _apart = apart


def stream_for_words() -> IO[str]:
    """Where `say` prints."""
    return sys.stderr if _apart else sys.stdout


def say(text: str = "", stream: IO[str] | None = None, end: str = "\n") -> None:
    """Print a line. When the reader of a pipe is gone (`| head`) the rest is dropped and the work goes on. Raises
    OSError where nothing can be written for another reason."""
    target = stream if stream is not None else stream_for_words()
    try:
        print(escape_controls(text) if _is_terminal(target) else text, end=end, file=target, flush=True)
    except BrokenPipeError:
        _drop(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, target.name) from None


def require_open(verb: str, *streams: str) -> None:
    """Raises HostError for the first of the standard streams, `stdin` or `stdout`, that the caller closed. The null
    device stands in for it, so what only prints needs not ask."""
    for name in streams:
        if getattr(getattr(sys, name), "name", "") == os.devnull:
            words = {"stdin": "input", "stdout": "output"}[name]
            raise HostError(f"{verb}: standard {words} is closed")


def say_lines(lines: Iterable[str]) -> None:
    """Print each."""
    for line in lines:
        say(line)


def say_data(text: str, end: str = "\n") -> None:
    """Print what another program reads, to the character: a netlist, a script, annotations of a code forge."""
    say(text, as_it_is(stream_for_words()), end)


def _is_terminal(stream: IO[str] | None) -> bool:
    return stream is not None and stream.isatty()


def _drop(stream: IO[str]) -> None:
    # What is still buffered would raise again when the interpreter closes the stream.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def complain(text: str) -> None:
    """Print a line to standard error. There is nobody to tell when that fails."""
    with suppress(OSError):
        say(text, sys.stderr)


def write_output(path: "str | os.PathLike[str]", write: Callable[[IO[bytes]], object]) -> int:
    """Write an output that the command line names, `-` being standard output; the number of bytes. Raises OSError."""
    from buda_emu.support.files import write_file, write_forward

    if str(path) != _TO_STDOUT:
        return write_file(path, write)
    try:
        size = write_forward(sys.stdout.buffer, write)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop(sys.stdout)
        return 0
    return size


def write_text(path: "str | os.PathLike[str]", text: str) -> None:
    """Write UTF-8 as `write_output` does."""
    write_output(path, lambda stream: stream.write(text.encode("utf-8", "replace")))


def write_printable(path: "str | os.PathLike[str]", text: str) -> None:
    """Write UTF-8 as `write_output` does; on standard output, which may be the log of a build, as clean as what is
    said. For forms in which an escaped character stands for itself, or is read by people."""
    write_text(path, harmless(plain(text)) if str(path) == _TO_STDOUT else text)


def write_json(path: "str | os.PathLike[str]", content: Any, *, compact: bool = False) -> None:
    """Write strict JSON (no NaN) as `write_output` does, without white space where it is for programs alone; packed
    where the name ends in .gz, to the same bytes."""
    import json

    layout: dict[str, Any] = {"separators": (",", ":")} if compact else {"indent": 1}
    text = json.dumps(content, allow_nan=False, **layout) + "\n"
    if not str(path).endswith(".gz"):
        write_printable(path, text)
        return
    import gzip

    packed = gzip.compress(text.encode("utf-8", "replace"), mtime=0)
    write_output(path, lambda stream: stream.write(packed))


def say_json(content: Mapping[str, Any]) -> None:
    """Print a result as strict JSON with the version of its form; figures that are not numbers become null."""
    import json

    from buda_emu.report.machine_readable.strict import strict

    say(json.dumps({"schema_version": RESULT_VERSION, **strict(dict(content))}, indent=1, allow_nan=False))


def write_picture(path: "str | os.PathLike[str]", picture: "TimelinePicture", page: bool | None = None) -> None:
    """Write a run: a page that needs nothing else where the name ends in .html, else a trace (`write_json`); `page`:
    which of them, whatever the name."""
    if str(path).lower().endswith(".html") if page is None else page:
        import shlex

        from buda_emu.report.pages.timeline import timeline_page

        write_text(path, timeline_page(picture, shlex.join(["buda-emu", *sys.argv[1:]])))
        return
    from buda_emu.report.machine_readable.trace import trace

    write_json(path, trace(picture), compact=True)


def write_live(text: str) -> None:
    """To a terminal's standard error, with what moves its cursor; names in it pass through `escape_controls`."""
    print(text, end="", file=as_it_is(sys.stderr), flush=True)


class Progress:
    """One line on a terminal's standard error that says what is going on; nothing where it is not a terminal."""

    def __init__(self, quiet: bool = False) -> None:
        self.live = not quiet and sys.stderr.isatty()
        self._shown = 0.0

    def show(self, text: str) -> None:
        """Replace the line, by as much of the text as a line has room for."""
        if self.live:
            write_live(f"\r\x1b[K{escape_controls(text)[: screen_of(sys.stderr).columns]}")

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
