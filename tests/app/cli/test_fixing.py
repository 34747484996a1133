import json

import pytest

from buda_emu.app.cli.main import main
from shared_files import ROOT

GOOD = (ROOT / "netlists/matmul.yaml").read_text()


@pytest.fixture
def faulty_netlist(tmp_path):
    path = tmp_path / "net.yaml"
    path.write_text(GOOD.replace("type: queue", "type: qeue", 1))
    return path


def test_fix_writes_and_checks_again(faulty_netlist, capsys):
    assert main(["check", "--fix", str(faulty_netlist)]) == 0
    said = capsys.readouterr()
    assert said.err == "1 finding fixed in 1 file\n"
    assert said.out == "1 file: no findings\n"
    assert faulty_netlist.read_text() == GOOD


def test_diff_shows_and_writes_nothing(faulty_netlist, capsys):
    before = faulty_netlist.read_text()
    assert main(["check", "--diff", str(faulty_netlist)]) == 1
    assert any(line.startswith("+") and "type: queue" in line for line in capsys.readouterr().out.splitlines())
    assert faulty_netlist.read_text() == before


def test_the_summary_says_what_could_be_fixed(faulty_netlist, capsys):
    assert main(["check", str(faulty_netlist)]) == 2
    assert capsys.readouterr().out.splitlines()[-1].endswith("; fixable: 1 with --fix")


def test_unsafe_fixes_alone_are_refused(faulty_netlist, capsys):
    assert main(["check", "--unsafe-fixes", str(faulty_netlist)]) == 2
    assert "goes with --fix or --diff" in capsys.readouterr().err


def test_rules_that_are_not_reported_are_not_fixed(tmp_path):
    path = tmp_path / "net.yaml"
    path.write_text(GOOD.replace("df: Float16_b", "df: Float16", 1))
    before = path.read_text()
    main(["check", "--fix", "--unsafe-fixes", "--ignore", "V079", str(path)])
    assert path.read_text() == before
    main(["check", "--fix", "--unsafe-fixes", str(path)])
    assert path.read_text() != before


def test_json_and_sarif_carry_the_edits(faulty_netlist, capsys):
    assert main(["check", "--json", str(faulty_netlist)]) == 2
    (finding,) = json.loads(capsys.readouterr().out)["diagnostics"]
    fix = finding["fix"]
    assert (fix["title"], fix["safe"]) == ("did you mean 'queue'?", True)
    (edit,) = fix["edits"]
    line = faulty_netlist.read_text().splitlines()[edit["line"] - 1]
    assert line[edit["column"] - 1 : edit["end_column"] - 1] == "qeue"
    assert edit["text"] == "queue"
    assert main(["check", "--format", "sarif", str(faulty_netlist)]) == 2
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    (change,) = result["fixes"][0]["artifactChanges"]
    (replacement,) = change["replacements"]
    assert replacement["insertedContent"] == {"text": "queue"}
    assert replacement["deletedRegion"]["startLine"] == edit["line"]


@pytest.mark.parametrize("command", [["check", "--fix"], ["fmt"]])
def test_a_folder_means_the_files_in_it(tmp_path, command):
    """A link to a file outside is left alone there, and followed if it is named itself."""
    text = GOOD.replace("type: queue", "type:   qeue", 1)
    folder = tmp_path / "folder"
    folder.mkdir()
    outside = tmp_path / "outside.yaml"
    inside = folder / "inside.yaml"
    for path in (outside, inside):
        path.write_text(text)
    link = folder / "link.yaml"
    link.symlink_to(outside)
    (folder / "again.yaml").symlink_to(inside)
    main([*command, str(folder)])
    assert inside.read_text() != text
    assert outside.read_text() == text
    main([*command, str(link)])
    assert outside.read_text() != text
    assert link.is_symlink()
