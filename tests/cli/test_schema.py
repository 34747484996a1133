"""Schemas say what documents are: what is written holds them, and nothing of it is left unsaid."""

import json

import pytest
from jsonschema import Draft202012Validator

from buda_emu.cli.main import main
from buda_emu.cli.schema import SCHEMAS
from shared_files import ROOT

NETLIST = str(ROOT / "netlists" / "two_chips.yaml")
CHECKED = """
performance-check:
  config-0: {graph-name: multiply, program-name: run_fwd, target-ops: [product], target-inputs: [0],
             cycles-per-tensor: {min_bound: 1}, execution-cycles: {min_bound: 1}}
"""


def schema(name, capsys):
    assert main(["schema", name]) == 0
    found = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(found)
    return found


def holds(form, content):
    assert [error.message for error in Draft202012Validator(form).iter_errors(content)] == []
    assert set(form["properties"]) >= set(content)


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_is_a_schema(name, capsys):
    assert schema(name, capsys)["type"] == "object"


def test_files_of_the_project_are_what_is_printed(capsys):
    for name, file in (("netlist", "netlist"), ("test", "report")):
        assert json.loads((ROOT / "schemas" / f"{file}.schema.json").read_text()) == schema(name, capsys), (
            f"buda-emu schema {name} > schemas/{file}.schema.json"
        )


def test_run(capsys, tmp_path):
    assert main(["run", NETLIST, "-q", "--json", str(tmp_path / "r.json")]) == 0
    holds(schema("run", capsys), json.loads((tmp_path / "r.json").read_text()))


@pytest.mark.parametrize("name", ["two_chips", "attention", "checked"])
def test_perf(name, capsys, tmp_path):
    path = ROOT / "netlists" / f"{name}.yaml"
    if name == "checked":
        path = tmp_path / "checked.yaml"
        path.write_text((ROOT / "netlists" / "matmul.yaml").read_text() + CHECKED)
    assert main(["perf", str(path), "-q", "--what-if", "clock=1200", "--json", str(tmp_path / "r.json")]) == 0
    capsys.readouterr()
    form, content = schema("perf", capsys), json.loads((tmp_path / "r.json").read_text())
    holds(form, content)
    assert bool(content["performance_check"]) is (name == "checked")
    assert set(form["$defs"]["Epoch"]["properties"]) == set(content["epochs"][0])
    assert set(form["$defs"]["OpFigures"]["properties"]) == set(content["epochs"][0]["ops"][0])


def test_check(capsys, tmp_path):
    path = tmp_path / "net.yaml"
    path.write_text("devices: {arch: wormhole_c7}\n")
    main(["check", str(path), str(ROOT / "examples/gemini/halo.json"), "--format", "json"])
    content = json.loads(capsys.readouterr().out)
    assert content["diagnostics"]
    form = schema("check", capsys)
    holds(form, content)
    for item in content["diagnostics"]:
        assert set(item) <= set(form["$defs"]["finding"]["properties"])


def test_an_unknown_name(capsys):
    with pytest.raises(SystemExit):
        main(["schema", "netlst"])
    assert "invalid choice: 'netlst'" in capsys.readouterr().err
