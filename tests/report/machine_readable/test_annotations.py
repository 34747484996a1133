"""Results of tests for code forges and editors."""

import json

import pytest

from buda_emu.app.cli.main import main
from shared_files import ROOT

EXACT = "test-config:\n  comparison-config: {type: Exact}\n"


@pytest.fixture
def nets(tmp_path, monkeypatch):
    """One netlist that passes, one whose output does not hold, one that is refused."""
    text = (ROOT / "netlists" / "two_chips.yaml").read_text()
    (tmp_path / "good.yaml").write_text(text)
    (tmp_path / "coarse.yaml").write_text(text.partition("\ntest-config:")[0] + f"\n{EXACT}")
    (tmp_path / "wrong.yaml").write_text(text.replace("type: queue", "type: qeue", 1))
    monkeypatch.chdir(tmp_path)
    return text


def run(capsys, form):
    code = main(["test", "good.yaml", "coarse.yaml", "wrong.yaml", "-n", "1", "--no-cache", "--format", form])
    assert code == 1
    shown = capsys.readouterr()
    assert "== 1 failed, 1 passed, 1 rejected in" in shown.err or "1 failed, 1 rejected, 1 passed in" in shown.err
    return shown.out


def test_github(nets, capsys):
    lines = run(capsys, "github").splitlines()
    place = next(number for number, line in enumerate(nets.splitlines(), 1) if line.startswith("  out:"))
    assert len(lines) == 2
    assert lines[0].startswith(f"::error file=coarse.yaml,line={place},")
    assert "title=test-failed::out: PCC" in lines[0]
    assert "; Exact, " in lines[0]  # the reason, a sentence of its own
    assert lines[1].startswith("::error file=wrong.yaml,line=")
    assert "title=V013::" in lines[1]


def test_sarif(nets, capsys):
    (log,) = json.loads(run(capsys, "sarif"))["runs"]
    assert [rule["id"] for rule in log["tool"]["driver"]["rules"]] == ["V013", "test-failed"]
    assert [item["ruleId"] for item in log["results"]] == ["test-failed", "V013"]


def test_json(nets, capsys):
    content = json.loads(run(capsys, "json"))
    assert [case["status"] for case in content["cases"]] == ["passed", "failed", "rejected"]


def test_a_program_that_stops_is_annotated_at_its_instruction(nets, tmp_path, capsys):
    text = (ROOT / "netlists" / "matmul.yaml").read_text()
    execute = "      - execute: {graph_name: multiply"
    step = "      - varinst: [$read, incwrap, 2, 4]\n"
    looped = text.replace(execute, f"      - loop: 3\n{execute}").replace(step, f"{step}      - endloop\n")
    (tmp_path / "stops.yaml").write_text(looped)
    assert main(["test", "stops.yaml", "-n", "1", "--format", "github"]) == 4
    (line,) = capsys.readouterr().out.splitlines()
    number = text.splitlines().index(next(line for line in text.splitlines() if line.startswith(execute))) + 2
    assert line.startswith(f"::error file=stops.yaml,line={number},col=9,")
    assert "; likely cause: " in line


def test_an_accepted_netlist_prints_nothing(nets, capsys):
    assert main(["test", "good.yaml", "-n", "1", "--format", "github", "-q"]) == 0
    assert capsys.readouterr().out == ""
