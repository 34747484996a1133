"""What a user sees on a terminal of 80 columns: no table of any verb is wider, colours come where they are wanted."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from rich.cells import cell_len

from buda_emu.app.cli.main import VERBS, main
from buda_emu.foreign.darwinn.example import example_files
from buda_emu.report.terminal import drawn_table, plain_table
from shared_files import ROOT

COLUMNS = 80
GEMINI = ROOT / "examples" / "gemini"
HALO, NETWORK = GEMINI / "halo.json", GEMINI / "halo.frontend.json"
CLAMP = ROOT / "examples" / "vpux" / "clamp.mlir"
ATTENTION, SOFTMAX = (ROOT / "netlists" / name for name in ("attention.yaml", "softmax.yaml"))
EDGES, SPOTS = "edges_edgetpu.tflite", "spots_edgetpu.tflite"  # in the folder of the test
SWEEP = ("--sweep", "grid=8x8,4x4,1x1", "--sweep", "dram_gbps=1,10")
COMMANDS = [
    ("run", SOFTMAX),
    ("test", SOFTMAX, "-n", "1", "--per-op", "--perf"),
    ("numerics", SOFTMAX),
    ("perf", ATTENTION),
    ("perf", ATTENTION, *SWEEP),
    ("perf", ATTENTION, "--against", SOFTMAX),
    ("route", SOFTMAX),
    ("faults", ATTENTION, "--count", "40", "--kind", "flip,core,entry"),
    ("reduce", SOFTMAX, "--check", "false", "-o", "reduced.yaml"),
    ("compile", "--ops"),
    ("advise", ATTENTION, "--tries", "8"),
    ("gemini", "run", HALO),
    ("gemini", "stats", HALO),
    ("gemini", "sweep", HALO, "--dram-gibps", "4,16", "--buffersize", "4K,8K"),
    ("gemini", "diff", HALO, GEMINI / "unplaced.json"),
    ("vpux", "run", CLAMP),
    ("darwinn", "inspect", EDGES),
    ("darwinn", "run", EDGES, SPOTS, "--requests", "0,1,0", "--link", "usb3"),
    ("diff", ROOT / "netlists/matmul.yaml", ROOT / "netlists/softmax.yaml"),
    ("explain",),
    ("explain", "vpux"),
    ("explain", "image"),
    ("explain", "transpose"),
    ("ops",),
    ("ops", "--precision", "device"),
    ("ops", "matmul"),
    ("formats",),
    ("cache",),
]
NO_TABLES = {
    "check",
    "completion",
    "debug",
    "fmt",
    "generate",
    "graph",
    "info",
    "lsp",
    "new",
    "opcycles",
    "pack",
    "schema",
}
"""Verbs that print findings, files, CSV, JSON or a script."""


@pytest.fixture
def tables(monkeypatch):
    """Every table that is drawn."""
    found = []

    def noted(draw):
        def drawn(*given, **named):
            text = draw(*given, **named)
            if text is not None:
                found.append(text)
            return text

        return drawn

    monkeypatch.setattr(drawn_table, "draw_table", noted(drawn_table.draw_table))
    monkeypatch.setattr(plain_table, "plain", noted(plain_table.plain))
    return found


def test_every_verb_is_looked_at():
    assert {command[0] for command in COMMANDS} | NO_TABLES == set(VERBS)


def command_id(command):
    return " ".join(str(word).rpartition("/")[2] for word in command)


@pytest.mark.parametrize("command", COMMANDS, ids=command_id)
def test_no_table_is_wider_than_the_terminal(command, tables, tmp_path, monkeypatch, capsys):
    for name, data in example_files().items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    assert main(list(map(str, command))) == (1 if command[0] == "diff" else 0)
    shown = capsys.readouterr().out
    if command[0] != "cache":  # which may keep nothing yet
        assert tables
    for text in tables:
        assert max(map(cell_len, text.splitlines())) <= COLUMNS
        assert text in shown


@pytest.mark.parametrize("verb", VERBS)
def test_help_fits(verb, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    with pytest.raises(SystemExit) as leaving:
        main([verb, "--help"])
    assert leaving.value.code == 0
    for line in capsys.readouterr().out.splitlines()[1:]:  # the example is one line that can be pasted
        assert len(line) <= COLUMNS


def test_on_a_real_terminal(child_environment):
    """As a shell starts it: the width comes from the terminal, and so do the colours."""
    ours, theirs = pty.openpty()
    environment = {name: text for name, text in child_environment.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    command = [sys.executable, "-m", "buda_emu", "formats"]
    with subprocess.Popen(command, stdout=theirs, env={**environment, "TERM": "xterm"}) as process:
        os.close(theirs)
        data = b""
        try:
            while part := os.read(ours, 65536):
                data += part
        except OSError:  # the other end is gone
            pass
    os.close(ours)
    assert process.returncode == 0
    text = data.decode().replace("\r\n", "\n")
    assert "\x1b[1m" in text
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert "Bfp8_b" in plain
    assert max(map(len, plain.splitlines())) <= COLUMNS


@pytest.mark.parametrize(
    ("words", "environment", "coloured"),
    [
        ((), {}, False),
        (("--color", "always"), {}, True),
        ((), {"FORCE_COLOR": "1"}, True),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_of_findings(words, environment, coloured, tmp_path, monkeypatch, capsys):
    path = tmp_path / "net.yaml"
    path.write_text("devices: {arch: wormhole_c7}\n")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main(["check", str(path), *words]) == 2
    assert ("\x1b[" in capsys.readouterr().out) is coloured


def test_an_excerpt_fits_the_terminal(tmp_path, monkeypatch, capsys):
    path = tmp_path / "net.yaml"
    path.write_text(f"devices: {{{', '.join(f'a{n}: 1' for n in range(90))}}}\n")
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    main(["check", str(path)])
    excerpts = [line for line in capsys.readouterr().out.splitlines() if re.match(r" *\d* +\|", line)]
    assert excerpts
    assert max(map(len, excerpts)) <= COLUMNS
