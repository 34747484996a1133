"""Whatever names files and ops have, nothing that the command prints steers a terminal or the log of a build."""

import io
import json
import random
import re
import subprocess
import sys
import unicodedata
from contextlib import suppress
from dataclasses import replace

import pytest

import buda_emu as be
from buda_emu.app.cli.main import main
from buda_emu.app.cli.output import say, say_data, write_json
from buda_emu.report.pages.engine import render
from buda_emu.report.pictures.grid_svg import grid_svg
from buda_emu.report.terminal.text import table
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.render import as_github
from buda_emu.support.screen import (
    CleanStream,
    Screen,
    clean_streams,
    escape_controls,
    harmless,
    lines_of,
    note_names,
    on_one_line,
    plain,
    printing_on,
)
from shared_files import ROOT

SOFTMAX = (ROOT / "netlists/softmax.yaml").read_text(encoding="utf-8")
PIECES = (
    "\n::error file=x::injected", "\n  ::set-output name=a::b", "\n\u3000::warning::", "::error::", "##[error]x",
    "##vso[task.x]y", "##teamcity[a]", "\nsection_start:1:a\r\x1b[0K", "\x1b]0;pwned\x07", "\x1b[2J", "\x9b2J", "\r",
    "\x08", "\u2028", "\u2029", "\x85", "\u202e", "\u2066", "\u061c", "\x0b", "%0A::error::x", "\n", "\t", "a", "é",
    "#", ":", " ", "b.c",
)  # fmt: skip
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
COMMAND = re.compile(r"(?m)^[^\S\n]*(::|section_(start|end):)|##\w*\[")


def drawn_name(draw):
    return "".join(draw.choice(PIECES) for _ in range(draw.randrange(1, 7)))


def find_control_sequences(text):
    """What must not be in a log."""
    return CONTROLS.findall(text) + [found[0] for found in COMMAND.finditer(text)]


BIDI = re.compile("LEFT-TO-RIGHT|RIGHT-TO-LEFT|DIRECTIONAL|ISOLATE|ARABIC LETTER MARK")


def test_whatever_turns_the_direction_of_writing_is_escaped():
    invisible = (chr(code) for code in range(0x80, 0x3000) if unicodedata.category(chr(code)) == "Cf")
    turning = [character for character in invisible if BIDI.search(unicodedata.name(character))]
    assert len(turning) == 12  # as many as Unicode lists under Bidi_Control
    for character in turning:
        for clean in (escape_controls, plain, on_one_line):
            assert clean(f"a{character}b") == f"a\\u{ord(character):04x}b"


LINE_ENDS = ("\x0b", "\x0c", "\r", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u2028", "\u2029")


@pytest.mark.parametrize("columns", [None, 40, 80])
@pytest.mark.parametrize("kind", [{}, {"prose": (0,)}, {"whole": (0,)}, {"right": (0,)}])
@pytest.mark.parametrize("end", LINE_ENDS)
def test_a_name_makes_no_rows_of_a_table(end, kind, columns):
    with printing_on(Screen(columns)):
        drawn = table(("name", "n"), [(f"a{end}b", "1"), ("c", "2")], **kind)
    rows = drawn.split("\n")
    assert len(rows) == 3
    assert len(drawn.splitlines()) == 3
    assert f"a{end.encode('unicode_escape').decode()}b" in rows[1]
    assert len(rows[1]) == len(rows[2])
    assert rows[1].endswith("1")


@pytest.mark.parametrize("end", LINE_ENDS)
def test_line_feeds_alone_end_lines(end):
    assert lines_of(f"a{end}b\nc\n") == [f"a{end}b", "c"]
    assert lines_of(f"{end}") == [end]
    assert lines_of("a\n\nb") == ["a", "", "b"]
    assert lines_of("") == []


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 40))])
def test_drawn_texts_are_clean_however_they_are_split(seed):
    draw = random.Random(seed)
    for _ in range(100):
        text = "".join(drawn_name(draw) for _ in range(3))
        stream = io.StringIO()
        clean = CleanStream(stream)
        begin = 0
        while begin < len(text):
            end = begin + draw.randrange(1, 12)
            clean.write(text[begin:end])
            begin = end
        assert not find_control_sequences(stream.getvalue()), repr(text)
        assert not find_control_sequences(on_one_line(text))
        assert "\n" not in on_one_line(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: b",
        "a::b",
        "  : c",
        "# title",
        "## a",
        "### [x]",
        "a\n:b\n",
        "std::vector",
        "tab\there",
        "section: 3",
        "é ü 漢",
    ],
)
def test_ordinary_text_stays_as_it_is(text):
    stream = io.StringIO()
    CleanStream(stream).write(text)
    assert stream.getvalue() == text


def test_escapes_name_the_character():
    assert harmless("::error::x") == "\\u003a:error::x"
    assert harmless("a ##[error]") == "a \\u0023#[error]"
    assert harmless(":error", ":") == "\\u003aerror"
    assert harmless("[error]", "##") == "\\u005berror]"
    assert harmless("city[a]", "##team") == "\\u0063ity[a]"


def test_colours_are_printed_where_a_screen_has_some():
    for colour, expected in ((True, "\x1b[31mred\x1b[0m\\x1b]0;x\\x07"), (False, "\\x1b[31mred\\x1b[0m\\x1b]0;x\\x07")):
        stream = io.StringIO()
        with printing_on(Screen(colour=colour)):
            CleanStream(stream).write("\x1b[31mred\x1b[0m\x1b]0;x\x07")
        assert stream.getvalue() == expected


def test_a_name_is_on_one_line(capsys):
    with clean_streams(["a\nb"]):
        note_names(["c\r\nd"])
        say("a\nb and c\r\nd\nend")
        print("a\nb", file=sys.stderr)
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("a\\nb and c\\r\\nd\nend\n", "a\\nb\n")


def test_data_is_printed_to_the_character(capsys):
    with clean_streams():
        say_data("::notice::a\r", end="")
        say("::notice::a\r", end="")
    assert capsys.readouterr().out == "::notice::a\r\\u003a:notice::a\\r"


def test_json_on_standard_output_keeps_its_values(capfdbinary):
    value = {"name": "##[error]\n::error::", "é": ["##vso[x"]}
    write_json("-", value)
    printed = capfdbinary.readouterr().out.decode()
    assert json.loads(printed) == value
    assert not find_control_sequences(printed)


@pytest.mark.parametrize("seed", range(20))
def test_annotations_are_one_command_each(seed):
    draw = random.Random(seed)
    found = [Diagnostic(drawn_name(draw), "V001", "error", drawn_name(draw), 1, 2) for _ in range(5)]
    lines = as_github(found).split("\n")
    assert len(lines) == 5
    for line, item in zip(lines, found, strict=True):
        assert line.startswith("::error file=")
        assert not CONTROLS.search(line)
        head, _, message = line[2:].partition("::")
        assert re.fullmatch(r"error file=[^:,]*,line=1,col=2,endColumn=2,title=V001", head)
        assert message.count("%") == sum(item.message.count(one) for one in "%\r\n")


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 20))])
def test_pictures_and_pages_show_no_name_as_it_is(seed):
    draw = random.Random(seed)
    netlist = be.load(ROOT / "netlists/softmax.yaml")
    for _ in range(5):
        name = f"{drawn_name(draw)}\u202e{drawn_name(draw)}\u061c.yaml"
        page = render("base.html", title=name, facts=name)
        picture = grid_svg(replace(netlist, path=name))
        for shape in (str(page)[: page.index("<style>")], str(page)[page.index("<main>") :], picture):
            assert not CONTROLS.search(shape), repr(name)


# ----------------------------------------------------------------------------------------------------- whole commands
def hostile_file(folder, draw, text=SOFTMAX):
    name = drawn_name(draw).replace("/", "_") + "\n::error file=x::y\x1b[2J##[error]\u2028.yaml"
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def hostile_ops(draw):
    """A netlist whose op and queue have such names; they are quoted as YAML asks for."""
    name = "".join(f"\\u{ord(character):04x}" for character in drawn_name(draw) + "\n::error::op\x1b[2J")
    return re.sub(r"\bnormal_mean\b", lambda _: f'"{name}"', SOFTMAX)


VERBS = (
    ("check", "{file}"),
    ("check", "{folder}"),
    ("check", "{ops}"),
    ("info", "{file}"),
    ("fmt", "--check", "{file}"),
    ("fmt", "--diff", "{folder}"),
    ("perf", "{file}"),
    ("perf", "{file}", "--csv", "-"),
    ("run", "{file}", "-q"),
    ("run", "{file}", "--program", "{name}"),
    ("run", "{missing}"),
    ("test", "{file}", "-n", "1", "--no-cache", "--program", "{name}"),
    ("test", "{missing}"),
    ("numerics", "{missing}"),
    ("debug", "{file}", "--batch", "-e", "print {name}"),
    ("debug", "{missing}", "--batch"),
    ("route", "{missing}"),
    ("advise", "{missing}"),
    ("graph", "{missing}"),
    ("graph", "{file}", "-o", "-"),
    ("diff", "{file}", "{ops}"),
    ("faults", "{missing}"),
    ("reduce", "{missing}", "--check", "false"),
    ("pack", "{missing}", "-o", "{folder}/x.tti"),
    ("compile", "{missing}"),
    ("opcycles", "{file}"),
    ("new", "{name}"),
    ("new", "4x64x128", "{name}"),
    ("explain", "{name}"),
    ("ops", "{name}"),
    ("schema", "{name}"),
    ("gemini", "check", "{file}"),
    ("gemini", "run", "{missing}"),
    ("vpux", "check", "{file}"),
    ("vpux", "run", "{missing}"),
    ("darwinn", "check", "{missing}"),
    ("darwinn", "inspect", "{file}"),
    ("{name}",),
    ("run", "{file}", "--{name}"),
    ("run", "{file}", "--config", "{missing}"),
)


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_names_steer_nothing(words, seed, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(f"{seed} {words}")
    folder = tmp_path / "nets"
    folder.mkdir()
    places = {
        "folder": "nets",
        "file": str(hostile_file(folder, draw).relative_to(tmp_path)),
        "ops": str(hostile_file(tmp_path, draw, hostile_ops(draw)).relative_to(tmp_path)),
        "missing": drawn_name(draw).strip("-") + "\n::error::missing.yaml",
        "name": "x" + drawn_name(draw) + "\n::error::name",
    }
    with suppress(SystemExit):
        main([word.format(**places) for word in words])
    printed = capfd.readouterr()
    for text in (printed.out, printed.err):
        assert not find_control_sequences(text.replace("\x1b[0K", "")), text
    assert "Traceback" not in printed.err


@pytest.mark.slow
def test_tests_of_hostile_files_are_clean_in_every_form(tmp_path, child_environment):
    draw = random.Random(1)
    folder = tmp_path / "nets"
    folder.mkdir()
    for _ in range(2):
        hostile_file(folder, draw)
    for form in (("-v",), ("--format", "github"), ("--format", "json"), ("--format", "sarif"), ("--junitxml", "-")):
        command = [sys.executable, "-m", "buda_emu", "test", "nets", "-n", "1", "--no-cache", *form]
        done = subprocess.run(command, cwd=tmp_path, env=child_environment, capture_output=True, check=False)
        assert done.returncode == 0
        for printed in (done.stdout, done.stderr):
            assert not find_control_sequences(printed.decode()), printed


def test_an_internal_error_shows_no_name_as_it_is(monkeypatch, capfd):
    def fails(*_args, **_named):
        raise RuntimeError("a\n::error::b\x1b[2J##[error]")

    monkeypatch.setattr("buda_emu.app.cli.main.build_parser", fails)
    assert main(["run", "a"]) == 101
    printed = capfd.readouterr().err
    assert "Traceback" in printed
    assert not find_control_sequences(printed)
