"""What a terminal shows of long work."""

import io
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from buda_emu.app.cli import output
from buda_emu.app.cli.output import Progress, bar_text, count_text, duration_text, say
from buda_emu.support.errors import HostError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_says_what_is_done_and_how_long_the_rest_takes() -> None:
    assert bar_text(0, 10, 0.0, "inputs") == f"[{'.' * 30}] 0/10 inputs"
    assert bar_text(4, 10, 8.0, "inputs", "1 bad") == f"[{'#' * 12}{'.' * 18}] 4/10 inputs, 1 bad, 12 s left"
    assert bar_text(10, 10, 8.0, "inputs") == f"[{'#' * 30}] 10/10 inputs"
    assert bar_text(0, 0, 0.0, "inputs") == f"[{'.' * 30}] 0/0 inputs"
    assert bar_text(12, 10, 1.0, "inputs") == f"[{'#' * 30}] 12/10 inputs"


def test_without_a_bar_the_same_is_said_in_words() -> None:
    assert count_text(4, 10, 8.0, "inputs", "1 bad") == "4 of 10 inputs, 1 bad, 12 s left"
    assert count_text(10, 10, 8.0, "inputs") == "10 of 10 inputs"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (3599, "59 min 59 s"), (7500, "2 h 5 min")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_a_line_on_a_terminal_and_nothing_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, quiet, expected in (
        (Terminal(), False, f"\r\x1b[Kinputs\r\x1b[K{bar_text(1, 2, 3, 'inputs')}\r\x1b[K"),
        (Terminal(), True, ""),
        (io.StringIO(), False, ""),
    ):
        monkeypatch.setattr(sys, "stderr", stream)
        progress = Progress(quiet)
        progress.show("inputs")
        progress.bar(1, 2, 3, "inputs")
        progress.bar(2, 2, 3, "inputs")  # too soon after the one before
        progress.clear()
        assert stream.getvalue() == expected


def test_a_dumb_terminal_gets_lines_without_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pseudo terminal of a build has no cursor: what would replace a line is shown as text there."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stderr", Terminal())
    progress = Progress()
    assert not progress.live
    progress.show("inputs")
    progress.clear()
    assert sys.stderr.getvalue() == ""


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("new.json", None, ""),
        ("-", None, ""),
        ("/dev/null", None, ""),
        ("old.json", None, ""),
        ("folder", IsADirectoryError, "folder"),
        ("nowhere/new.json", FileNotFoundError, "nowhere/new.json"),
        ("locked/new.json", PermissionError, "locked/new.json"),
        ("net.YAML", HostError, "--json: net.YAML is a document"),
        ("new.yaml", None, ""),
    ],
)
def test_a_file_of_results_is_refused_before_the_work(tmp_path, monkeypatch, name, error, words) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("folder", "locked"):
        (tmp_path / folder).mkdir()
    for file in ("old.json", "net.YAML"):
        (tmp_path / file).write_text("{}")
    # Root may write anywhere.
    monkeypatch.setattr(output.os, "access", lambda path, _mode: "locked" not in str(path))
    with pytest.raises(error, match=words) if error else nullcontext():
        output.require_writable("--json", Path(name))


class Beat:
    """A heartbeat whose lines come when the test asks for one."""

    def __init__(self, write) -> None:
        self.write = write
        self.text = None

    def show(self, text) -> None:
        self.text = text

    def stop(self) -> None:
        self.text = None

    def line(self) -> None:
        if self.text is not None:
            self.write(self.text if isinstance(self.text, str) else self.text())


@pytest.fixture
def beats(monkeypatch: pytest.MonkeyPatch) -> list[Beat]:
    made: list[Beat] = []
    monkeypatch.setattr(output, "Heartbeat", lambda write: made.append(Beat(write)) or made[-1])
    return made


def test_a_pipe_gets_what_is_shown_whenever_a_line_is_due(beats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress() as progress:
        (beat,) = beats
        beat.line()  # nothing is shown yet
        progress.show("loading net.yaml")
        beat.line()
        progress.bar(1, 4, 3.0, "inputs")
        progress.bar(2, 4, 3.0, "inputs")
        beat.line()
        progress.say_above("a note")
        beat.line()  # goes on after the note
    beat.line()  # the work is over
    assert sys.stderr.getvalue().splitlines() == [
        "buda-emu: loading net.yaml",
        "buda-emu: 2 of 4 inputs, 3 s left",
        "a note",
        "buda-emu: 2 of 4 inputs, 3 s left",
    ]


def test_no_lines_are_made_on_a_terminal_nor_with_quiet(beats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Screen())
    Progress()
    assert not beats
    Progress(live=False)  # lines, on a terminal too
    assert len(beats) == 1
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    Progress(quiet=True).show("hidden")
    assert len(beats) == 1


def test_a_note_stands_above_the_line_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Screen())
    with Progress() as progress:
        progress.show("inputs")
        progress.say_above("a note")
    assert sys.stderr.getvalue() == "\r\x1b[Kinputs\r\x1b[Ka note\n\r\x1b[K"


class Screen(Terminal):
    name = "<screen>"


def test_control_characters_of_names_do_not_reach_a_terminal() -> None:
    text = "queue a\x1b]0;title\x07b\x9b2Jc\rd\u202ee\x1b[31mred\x1b[0m\ttab\nnext"
    escaped = "queue a\\x1b]0;title\\x07b\\x9b2Jc\\rd\\u202ee\x1b[31mred\x1b[0m\ttab\nnext"
    terminal, file = Screen(), io.StringIO()
    say(text, terminal)
    say(text, file)
    assert terminal.getvalue() == escaped + "\n"
    assert file.getvalue() == text + "\n"  # what a program reads is not changed


def test_the_line_that_is_shown_meanwhile_is_no_longer_than_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Screen())
    monkeypatch.setenv("COLUMNS", "60")
    Progress().show("y" * 100)
    assert sys.stderr.getvalue() == "\r\x1b[K" + "y" * 60


def test_the_line_that_is_shown_meanwhile_is_escaped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Screen())
    Progress().show("compiling \x1b]0;x\x07")
    assert sys.stderr.getvalue() == "\r\x1b[Kcompiling \\x1b]0;x\\x07"
