"""Printing and writing of results: lines that survive a closed pipe, progress while work goes on, and output files, `-`
being standard output."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from errno import EACCES, EISDIR, ENOENT
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final, Self

from buda_emu.support.errors import HostError
from buda_emu.support.progress import Activity, Heartbeat, duration_text
from buda_emu.support.screen import as_it_is, escape_controls, harmless, has_cursor, plain, screen_of
from buda_emu.support.version import RESULT_VERSION

if TYPE_CHECKING:
    from buda_emu.performance.timeline.picture import TimelinePicture

_BAR_WIDTH = 30  # characters, so that counts and rest fit a line of 80
_LEAST_SECONDS = 0.1  # between two pictures of a bar


_TO_STDOUT = "-"
_DOCUMENT_SUFFIXES: Final = (".yaml", ".yml", ".tti", ".mlir", ".tflite", ".onnx", ".pt2")
_FORMAT_SUFFIXES: Final = frozenset(
    (".bmp", ".csv", ".dot", ".gif", ".gz", ".htm", ".html", ".jpeg", ".jpg", ".json", ".md", ".npy", ".npz", ".pdf",
     ".png", ".sarif", ".svg", ".tsv", ".webp", ".xml", ".zip", *_DOCUMENT_SUFFIXES)
)  # fmt: skip
"""Endings of names that tell the format of a file."""
_words_to_stderr = False  # whether `say` prints to standard error, because standard output is for results


def keep_stdout_for_results(options: Iterable[object]) -> None:
    """Print words to standard error if one of the options is the output file `-`, so that standard output holds the
    result alone."""
    print_words_to_stderr(any(str(option) == _TO_STDOUT and isinstance(option, os.PathLike) for option in options))


def print_words_to_stderr(enabled: bool = True) -> None:
    """Choose whether `say` prints to standard error, because standard output is for results."""
    global _words_to_stderr
    _words_to_stderr = enabled


def word_stream() -> IO[str]:
    """Return the stream to which `say` prints."""
    return sys.stderr if _words_to_stderr else sys.stdout


def say(text: str = "", stream: IO[str] | None = None, end: str = "\n") -> None:
    """Print text for the user, in place of `print`: to `stream`, or to the stream of words (`word_stream`). A terminal
    gets no control characters. If the reader of a pipe has gone (`| head`), further output is dropped and the work goes
    on. Raises OSError if nothing can be written for another reason."""
    target = stream if stream is not None else word_stream()
    try:
        if _is_terminal(target):
            text = escape_controls(text)
        print(text, end=end, file=target, flush=True)
    except BrokenPipeError:
        _discard_output(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, target.name) from None


def require_open(verb: str, *streams: str) -> None:
    """Raise HostError for the first of the standard streams `stdin` and `stdout` that the caller closed. The null
    device stands in for a closed stream, so code that only prints need not ask."""
    for name in streams:
        if getattr(getattr(sys, name), "name", "") == os.devnull:
            words = {"stdin": "input", "stdout": "output"}[name]
            raise HostError(f"{verb}: standard {words} is closed")


def say_lines(lines: Iterable[str]) -> None:
    """Print each of these lines."""
    for line in lines:
        say(line)


def say_data(text: str, end: str = "\n") -> None:
    """Print text for another program without escaping anything: a netlist, a script, annotations of a code forge."""
    say(text, as_it_is(word_stream()), end)


def _is_terminal(stream: IO[str] | None) -> bool:
    """Return whether a stream exists and is a terminal."""
    return stream is not None and stream.isatty()


def _discard_output(stream: IO[str]) -> None:
    # What is still buffered would raise again when the interpreter closes the stream.
    """Redirect a stream whose reader is gone to the null device, since what is still buffered would raise again when
    the interpreter closes the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def complain(text: str) -> None:
    """Print a line to standard error. An OSError in doing so is ignored, since it cannot be reported."""
    with suppress(OSError):
        say(text, sys.stderr)


def write_output(path: "str | os.PathLike[str]", write: Callable[[IO[bytes]], object]) -> int:
    """Write an output that the command line names, `-` being standard output, and return the number of bytes; 0 if the
    reader of a pipe is gone. Raises OSError."""
    from buda_emu.support.files import write_file, write_forward

    if str(path) != _TO_STDOUT:
        return write_file(path, write)
    try:
        size = write_forward(sys.stdout.buffer, write)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output(sys.stdout)
        return 0
    except OSError as error:
        raise OSError(error.errno, error.strerror, sys.stdout.name) from None
    return size


def require_writable(option: str, path: "str | os.PathLike[str]") -> None:
    """Check, before any work is done, that a file of results can be written and is no document: some verbs take
    `--json` alone, others with a FILE, so what follows may be another argument. Raises OSError with the reason of the
    system, HostError for a document. `option` names the option in the message."""
    from buda_emu.support.output_places import resolve_output

    name = os.fspath(path)
    if name == _TO_STDOUT:
        return
    folder = os.path.dirname(resolve_output(name))  # noqa: PTH120 - of the file that a link leads to
    if os.path.isdir(name):  # noqa: PTH112
        raise OSError(EISDIR, os.strerror(EISDIR), name)
    if not os.path.isdir(folder):  # noqa: PTH112
        raise OSError(ENOENT, f"there is no folder {os.path.dirname(name)}", name)  # noqa: PTH120
    exists = os.path.exists(name)  # noqa: PTH110
    if exists and name.lower().endswith(_DOCUMENT_SUFFIXES):
        raise HostError(f"{option}: {name} is a document, which results are not written over")
    # A regular file is replaced, which takes its folder; a device is written to.
    if not os.access(folder if not exists or os.path.isfile(name) else name, os.W_OK):  # noqa: PTH113
        raise OSError(EACCES, os.strerror(EACCES), name)


def require_suffix(option: str, path: "str | os.PathLike[str]", suffixes: tuple[str, ...]) -> None:
    """Raise HostError for a file of results whose name has the ending of a known format that is not among `suffixes`,
    those that `option` writes. An ending of no known format passes."""
    name = os.fspath(path).lower()
    suffix = os.path.splitext(name)[1]  # noqa: PTH122 - the package's own quick start does without pathlib
    if suffix in _FORMAT_SUFFIXES and not name.endswith(suffixes):
        raise HostError(f"{option}: {path}: it writes {' or '.join(suffixes)}, not {suffix}")


def write_text(path: "str | os.PathLike[str]", text: str) -> None:
    """Write text as UTF-8 to an output (`write_output`)."""
    write_output(path, lambda stream: stream.write(text.encode("utf-8", "replace")))


def write_printable(path: "str | os.PathLike[str]", text: str) -> None:
    """Write text as UTF-8 to an output (`write_output`), with control characters escaped if that is standard output,
    which may be the log of a build. For formats in which an escaped character means the same, and for text that people
    read."""
    if str(path) == _TO_STDOUT:
        text = harmless(plain(text))
    write_text(path, text)


def write_json(path: "str | os.PathLike[str]", content: Any, *, compact: bool = False) -> None:
    """Write strict JSON (no NaN) to an output (`write_output`), without white space if `compact`. A file whose name
    ends in .gz is compressed reproducibly."""
    import json

    if compact:
        text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    else:
        text = json.dumps(content, allow_nan=False, indent=1)
    text += "\n"
    if not str(path).endswith(".gz"):
        write_printable(path, text)
        return
    import gzip

    packed = gzip.compress(text.encode("utf-8", "replace"), mtime=0)
    write_output(path, lambda stream: stream.write(packed))


def say_json(content: Mapping[str, Any]) -> None:
    """Print a result as strict JSON with the version of its schema; figures that are not finite become null."""
    import json

    from buda_emu.support.strict_json import strict

    say(json.dumps({"schema_version": RESULT_VERSION, **strict(dict(content))}, indent=1, allow_nan=False))


def write_picture(path: "str | os.PathLike[str]", picture: "TimelinePicture", page: bool | None = None) -> None:
    """Write a picture of a run: an HTML page that needs nothing else if the name ends in .html, else a trace as JSON
    for ui.perfetto.dev. `page` chooses between them whatever the name."""
    if page is None:
        page = str(path).lower().endswith(".html")
    if page:
        import shlex

        from buda_emu.report.pages.timeline import timeline_page

        write_text(path, timeline_page(picture, shlex.join(["buda-emu", *sys.argv[1:]])))
        return
    from buda_emu.report.machine_readable.trace import trace

    write_json(path, trace(picture), compact=True)


def write_live(text: str) -> None:
    """Write to a terminal's standard error, cursor movements included. Names in the text must have passed through
    `escape_controls`."""
    print(text, end="", file=as_it_is(sys.stderr), flush=True)


class Progress:
    """The display on standard error of what is going on: on a terminal a line that is replaced, elsewhere a line every
    ten seconds. Leaving its context removes the line and ends the others."""

    def __init__(self, quiet: bool = False, *, live: bool = True) -> None:
        """Show nothing if `quiet`. With `live` False show lines on a terminal, too, not one that is replaced."""
        self.shown = not quiet
        self.live = live and self.shown and has_cursor(sys.stderr)
        self._heartbeat: Heartbeat | None = None
        if self.shown and not self.live:
            self._heartbeat = Heartbeat(_print_heartbeat)
        self._drawn = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, text: str) -> None:
        """Replace the line by as much of the text as fits; if there is no line, keep the text for the next one."""
        if self.live:
            write_live(f"\r\x1b[K{escape_controls(text)[: screen_of(sys.stderr).columns]}")
        elif self._heartbeat is not None:
            self._heartbeat.show(text)

    def report(self, activity: Activity) -> None:
        """Show an activity, with how many of its units are done of how many."""
        count = ""
        if activity.total > 1:
            count = f", {activity.done} of {activity.total}"
        self.show(f"{activity}{count}")

    def bar(self, done: int, count: int, seconds: float, unit: str) -> None:
        """Show `bar_text`, at most ten times a second, so that quick work is not slowed down."""
        if self._heartbeat is not None:
            self._heartbeat.show(partial(count_text, done, count, seconds, unit))
            return
        current_time = time.monotonic()
        if self.live and current_time - self._drawn >= _LEAST_SECONDS:
            self._drawn = current_time
            self.show(bar_text(done, count, seconds, unit))

    def say_above(self, text: str) -> None:
        """Print a line to standard error that stays there, above the line of progress."""
        if self.live:
            self.show("")
        complain(text)

    def clear(self) -> None:
        """Remove the line from the terminal; elsewhere write no more until something is shown again."""
        if self._heartbeat is not None:
            self._heartbeat.stop()
        else:
            self.show("")


def _print_heartbeat(text: str) -> None:
    """Print a line on what is going on to standard error."""
    complain(f"buda-emu: {text}")


def bar_text(done: int, count: int, seconds: float, unit: str, note: str = "") -> str:
    """Return a bar such as `[####......] 4/10 inputs, note, 6 s left`. The time left assumes that the rest goes at the
    rate of the `done` units that took `seconds`."""
    filled = _BAR_WIDTH * min(done, count) // max(count, 1)
    rest = _note_and_time_left(done, count, seconds, note)
    return f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {done}/{count} {unit}{rest}"


def count_text(done: int, count: int, seconds: float, unit: str, note: str = "") -> str:
    """Return `bar_text` without the bar: `4 of 10 inputs, note, 6 s left`."""
    return f"{done} of {count} {unit}{_note_and_time_left(done, count, seconds, note)}"


def _note_and_time_left(done: int, count: int, seconds: float, note: str) -> str:
    """Return the note and the time left, each after a comma; "" if there is neither."""
    text = f", {note}" if note else ""
    if 0 < done < count:
        text += f", {duration_text(seconds * (count - done) / done)} left"
    return text
