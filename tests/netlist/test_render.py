import json

from buda_emu.netlist.diagnostics import Diagnostic
from buda_emu.netlist.load import check_text
from buda_emu.netlist.render import MAX_SOURCE, as_github, as_json, render, render_one, summary
from netlist.netlist_texts import edited


def finding(line: str = "  q1: {type: qeue}", start: str = "qeue", **changes: object) -> Diagnostic:
    column = line.index(start) + 1
    values = {
        "path": "net.yaml", "line": 5, "column": column, "rule": "V013", "severity": "error",
        "message": "queue q1: unknown type 'qeue'", "end_column": column + len(start), "source_line": line,
        "hint": "did you mean 'queue'?",
    }  # fmt: skip
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
        "path": "net.yaml", "line": 5, "column": 14, "end_column": 18, "rule": "V013", "severity": "error",
        "message": "queue q1: unknown type 'qeue'", "hint": "did you mean 'queue'?",
    }  # fmt: skip


def test_github_annotations_escape_their_values() -> None:
    line = as_github([finding(path="a,b:c.yaml", message="50%\nmore", hint="")])
    assert line == "::error file=a%2Cb%3Ac.yaml,line=5,col=14,endColumn=18,title=V013::50%25%0Amore"


def test_real_findings_render() -> None:
    text = render(check_text(edited("type: queue", "type: qeue"), "net.yaml").diagnostics)
    assert "error[V013]: queue src: unknown type 'qeue'" in text
    assert "^^^^" in text
