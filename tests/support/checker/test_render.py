import json
import os
import re
from dataclasses import replace
from urllib.parse import unquote_to_bytes

import pytest

from buda_emu.support.checker import Diagnostic, Rule
from buda_emu.support.checker.render import (
    MAX_SOURCE,
    as_github,
    as_json,
    as_sarif,
    render,
    render_one,
    summary,
    with_source_lines,
)
from buda_emu.support.screen import Screen


def finding(line: str = "  q1: {type: qeue}", start: str = "qeue", **changes: object) -> Diagnostic:
    column = line.index(start) + 1
    values = {
        "path": "net.yaml",
        "line": 5,
        "column": column,
        "rule": "V013",
        "severity": "error",
        "message": "queue q1: unknown type 'qeue'",
        "end_column": column + len(start),
        "source_line": line,
        "hint": "did you mean 'queue'?",
    }
    return Diagnostic(**{**values, **changes})  # type: ignore[arg-type]


def test_a_finding_shows_its_line_and_carets() -> None:
    assert render_one(finding()) == (
        "net.yaml:5:14: error[V013]: queue q1: unknown type 'qeue' (did you mean 'queue'?)\n"
        "  5 |   q1: {type: qeue}\n"
        "    |              ^^^^"
    )


def test_without_a_line_only_the_message_is_shown() -> None:
    assert render_one(finding(source_line="", hint="")) == "net.yaml:5:14: error[V013]: queue q1: unknown type 'qeue'"


def test_tabs_keep_the_carets_in_place() -> None:
    assert render_one(finding("\tq1:\tqeue")).splitlines()[2] == "    | \t   \t^^^^"


def test_of_a_long_line_the_surroundings_are_shown() -> None:
    line = "x" * 400 + " qeue " + "y" * 400
    _, shown, carets = render_one(finding(line)).splitlines()
    assert len(shown) < MAX_SOURCE + 20
    assert shown.index("qeue") == carets.index("^^^^")
    assert shown.endswith("...")
    assert "| ..." in shown


def test_a_third_of_what_is_shown_of_a_long_line_stands_before_the_place() -> None:
    line = "x" * 400 + "qeue" + "y" * 400
    _, shown, _ = render_one(finding(line)).splitlines()
    before, _, after = shown.partition("qeue")
    assert before == "  5 | ..." + "x" * (MAX_SOURCE // 3)
    assert after == "y" * (MAX_SOURCE - MAX_SOURCE // 3 - 4) + "..."
    at_the_end = render_one(finding("x" * 400 + "qeue")).splitlines()[1]
    assert at_the_end == "  5 | ..." + "x" * (MAX_SOURCE - 4) + "qeue"
    exactly = "x" * (MAX_SOURCE - 4) + "qeue"
    assert render_one(finding(exactly)).splitlines()[1] == "  5 | " + exactly


def test_a_place_behind_the_end_of_the_line_gets_one_caret() -> None:
    assert render_one(finding(column=60, end_column=60)).splitlines()[2].count("^") == 1


def test_the_last_line_counts() -> None:
    assert summary([]) == "no findings"
    assert summary([finding()]) == "1 error; `buda-emu explain V013` tells more"
    both = [finding(), finding(severity="warning"), finding(severity="warning")]
    assert summary(both).startswith("1 error, 2 warnings;")
    assert render(both).splitlines()[-1] == summary(both)


def test_json_is_versioned_plain_data() -> None:
    content = json.loads(json.dumps(as_json([finding(), finding(severity="warning")])))
    assert (content["schema_version"], content["errors"], content["warnings"]) == (1, 1, 1)
    assert content["diagnostics"][0] == {
        "path": "net.yaml",
        "line": 5,
        "column": 14,
        "end_column": 18,
        "rule": "V013",
        "severity": "error",
        "message": "queue q1: unknown type 'qeue'",
        "hint": "did you mean 'queue'?",
    }


def test_github_annotations_escape_their_values() -> None:
    line = as_github([finding(path="a,b:c.yaml", message="50%\nmore", hint="")])
    assert line == "::error file=a%2Cb%3Ac.yaml,line=5,col=14,endColumn=18,title=V013::50%25%0Amore"


POINTED = Diagnostic("net.json", "G041", "note", "they overlap", pointer="0/3/buffer/1/address")
AT_BYTE = Diagnostic("m.tflite", "D053", "error", "it ends outside", offset=8000, element="DmaHint.size_in_bytes")


def test_other_places_stand_where_line_and_column_do() -> None:
    assert render_one(POINTED) == "net.json:0/3/buffer/1/address: note[G041]: they overlap"
    assert render_one(AT_BYTE) == "m.tflite:0x1f40 DmaHint.size_in_bytes: error[D053]: it ends outside"
    assert render_one(replace(AT_BYTE, offset=None, element="")) == "m.tflite: error[D053]: it ends outside"
    assert summary([POINTED, AT_BYTE]).startswith("1 error, 1 note;")


def test_json_has_what_is_known_of_a_place() -> None:
    pointed, at_byte = as_json([POINTED, AT_BYTE])["diagnostics"]
    assert (pointed["pointer"], pointed["line"], "offset" in pointed) == ("0/3/buffer/1/address", 0, False)
    assert (at_byte["offset"], at_byte["element"], "pointer" in at_byte) == (8000, "DmaHint.size_in_bytes", False)
    assert as_json([POINTED])["notes"] == 1


def test_github_has_no_place_below_a_line() -> None:
    assert as_github([POINTED]) == ("::notice file=net.json,title=G041::0/3/buffer/1/address: they overlap")


def test_sarif_holds_place_rule_and_fix() -> None:
    rules = {
        "V013": Rule("V013", "error", "unknown type", "Types are words.", source="NETLIST 2", fix="write queue"),
        "G041": Rule("G041", "note", "bytes are shared"),
    }
    log = json.loads(json.dumps(as_sarif([finding(), POINTED, AT_BYTE], rules, "1.2.3")))
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    assert run["tool"]["driver"]["semanticVersion"] == "1.2.3"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["G041", "V013"]
    assert run["tool"]["driver"]["rules"][1]["help"]["text"].endswith("write queue")
    text, pointed, at_byte = run["results"]
    assert text["message"]["text"] == "queue q1: unknown type 'qeue' (did you mean 'queue'?)"
    assert text["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "net.yaml"},
        "region": {"startLine": 5, "startColumn": 14, "endColumn": 18, "snippet": {"text": "  q1: {type: qeue}"}},
    }
    assert pointed["level"] == "note"
    assert pointed["locations"][0]["logicalLocations"] == [{"fullyQualifiedName": "0/3/buffer/1/address"}]
    assert at_byte["locations"][0]["physicalLocation"]["region"] == {"byteOffset": 8000}


def test_paths_are_urls_in_sarif() -> None:
    (result,) = as_sarif([replace(POINTED, path="a b/c#d.json")], {}, "1")["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b/c%23d.json"


@pytest.mark.parametrize("name", [b"\xff.yaml", b"a\x80/\xc3\xa9\xc3.yaml", bytes(range(1, 256))])
def test_paths_that_are_no_utf_8_are_urls_of_their_bytes_in_sarif(name: bytes) -> None:
    (result,) = as_sarif([replace(POINTED, path=os.fsdecode(name))], {}, "1")["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.isascii()
    assert unquote_to_bytes(uri) == name


def test_excerpts_are_cropped_to_the_terminal_around_the_carets() -> None:
    line = "x" * 100 + "\tqeue" + "y" * 100
    for columns in (40, 80, 120):
        _, shown, carets = render_one(finding(line), Screen(columns)).splitlines()
        assert len(shown) <= columns
        assert len(carets) <= columns
        assert shown.index("qeue") == carets.index("^^^^")
        assert shown.endswith("...")
        assert "| ..." in shown
        assert "\t" not in shown  # nobody knows how wide it would be
    fits = "  q1: {type: qeue, " + "y" * 15
    assert render_one(finding(fits), Screen(40)).splitlines()[1] == f"  5 | {fits}"


def test_colours_of_findings_can_be_taken_off_again() -> None:
    shown = render([finding(), finding(severity="warning")], Screen(None, colour=True))
    assert "\x1b[1;31m^^^^\x1b[0m" in shown
    assert "\x1b[1;33m^^^^\x1b[0m" in shown
    assert "[\x1b[1mV013\x1b[0m]" in shown
    assert re.sub(r"\x1b\[[\d;]*m", "", shown) == render([finding(), finding(severity="warning")])


def test_each_finding_gets_the_line_that_it_names_where_there_is_one() -> None:
    lines = ["one", "two", "three"]
    given = [replace(finding(), line=number, source_line="") for number in (0, 1, 3, 4)]
    assert [item.source_line for item in with_source_lines(given, lines)] == ["", "one", "three", ""]


def test_findings_without_an_offset_come_before_the_first_byte() -> None:
    whole, first = (replace(finding(), line=0, column=0, offset=offset) for offset in (None, 0))
    assert whole.order < first.order


def test_a_name_with_line_feeds_makes_no_lines_of_its_own() -> None:
    text = render_one(finding(message="op a\n::warning::b\x1b[8m: unknown type"))
    head, *excerpt = text.splitlines()
    assert r"op a\n::warning::b\x1b[8m: unknown type" in head
    assert len(excerpt) == 2
