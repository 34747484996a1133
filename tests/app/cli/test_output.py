"""What a terminal shows of long work."""

import io
import sys

import pytest

from buda_emu.app.cli.output import Progress, bar_text, duration_text, say


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_says_what_is_done_and_how_long_the_rest_takes() -> None:
    assert bar_text(0, 10, 0.0, "inputs") == f"[{'.' * 30}] 0/10 inputs"
    assert bar_text(4, 10, 8.0, "inputs", "1 bad") == f"[{'#' * 12}{'.' * 18}] 4/10 inputs, 1 bad, 12 s left"
    assert bar_text(10, 10, 8.0, "inputs") == f"[{'#' * 30}] 10/10 inputs"
    assert bar_text(0, 0, 0.0, "inputs") == f"[{'.' * 30}] 0/0 inputs"
    assert bar_text(12, 10, 1.0, "inputs") == f"[{'#' * 30}] 12/10 inputs"


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
