"""What is printed on: width and colours, and who decides about them."""

import io

import pytest

from buda_emu.support.screen import LEAST_COLUMNS, Screen, current, printing_on, screen_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("terminal", "when", "environment", "expected"),
    [
        (False, "auto", {}, Screen(None, False)),
        (True, "auto", {}, Screen(80, True)),  # a terminal that does not know its width
        (True, "auto", {"NO_COLOR": "1"}, Screen(80, False)),
        (True, "auto", {"NO_COLOR": ""}, Screen(80, True)),
        (True, "auto", {"TERM": "dumb"}, Screen(80, False)),
        (True, "never", {"FORCE_COLOR": "1"}, Screen(80, False)),
        (False, "auto", {"FORCE_COLOR": "1"}, Screen(None, True)),
        (False, "auto", {"FORCE_COLOR": "0"}, Screen(None, False)),
        (False, "auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, Screen(None, False)),
        (False, "always", {"NO_COLOR": "1"}, Screen(None, True)),
        (False, "auto", {"COLUMNS": "100"}, Screen(100, False)),
        (True, "auto", {"COLUMNS": "7"}, Screen(LEAST_COLUMNS, True)),
        (True, "auto", {"COLUMNS": "wide"}, Screen(80, True)),
    ],
)
def test_who_decides(terminal, when, environment, expected, monkeypatch):
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert screen_of(Terminal() if terminal else io.StringIO(), when) == expected


def test_a_closed_stream_is_no_terminal(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert screen_of(None) == Screen()


def test_paint():
    assert Screen(colour=True).paint("x", "bold", "red") == "\x1b[1;31mx\x1b[0m"
    assert Screen(colour=True).paint("", "bold") == ""
    assert Screen().paint("x", "bold", "red") == "x"


def test_printing_on_ends():
    found = []

    def fails():
        with printing_on(Screen(50)):
            found.append(current())
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fails()
    assert found == [Screen(50)]
    assert current() == Screen()
