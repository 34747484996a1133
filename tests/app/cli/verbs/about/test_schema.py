"""Schemas say what documents are: what is written holds them, and nothing of it is left unsaid."""

import json

import pytest
from jsonschema import Draft202012Validator

from buda_emu.app.cli.main import main
from buda_emu.app.cli.verbs.about.schema import SCHEMAS
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


def assert_has_fields(form, content):
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
    assert_has_fields(schema("run", capsys), json.loads((tmp_path / "r.json").read_text()))


@pytest.mark.parametrize("name", ["two_chips", "attention", "checked"])
def test_perf(name, capsys, tmp_path):
    path = ROOT / "netlists" / f"{name}.yaml"
    if name == "checked":
        path = tmp_path / "checked.yaml"
        path.write_text((ROOT / "netlists" / "matmul.yaml").read_text() + CHECKED)
    assert main(["perf", str(path), "-q", "--what-if", "clock=1200", "--json", str(tmp_path / "r.json")]) == 0
    capsys.readouterr()
    form, content = schema("perf", capsys), json.loads((tmp_path / "r.json").read_text())
    assert_has_fields(form, content)
    assert bool(content["performance_check"]) is (name == "checked")
    epoch = form["properties"]["epochs"]["items"]["properties"]
    assert set(epoch) == set(content["epochs"][0])
    assert set(epoch["ops"]["items"]["properties"]) == set(content["epochs"][0]["ops"][0])


def test_check(capsys, tmp_path):
    path = tmp_path / "net.yaml"
    path.write_text("devices: {arch: wormhole_c7}\n")
    main(["check", str(path), str(ROOT / "examples/gemini/halo.json"), "--format", "json"])
    content = json.loads(capsys.readouterr().out)
    assert content["diagnostics"]
    form = schema("check", capsys)
    assert_has_fields(form, content)
    for item in content["diagnostics"]:
        assert set(item) <= set(form["$defs"]["finding"]["properties"])


def forbid_other_fields(form):
    """The same schema, by which nothing may be there that it does not name."""
    if isinstance(form, list):
        return [forbid_other_fields(item) for item in form]
    if not isinstance(form, dict):
        return form
    found = {key: forbid_other_fields(value) for key, value in form.items()}
    return {"additionalProperties": False, **found} if isinstance(form.get("properties"), dict) else found


GEMINI = ROOT / "examples/gemini"
PRINTED = {
    "gemini-run": ["gemini", "run", str(GEMINI / "halo.json"), "--json"],
    "gemini-exec": [
        "gemini", "exec", str(GEMINI / "halo.json"), "--frontend", str(GEMINI / "halo.frontend.json"), "--json",
    ],
    "gemini-stats": ["gemini", "stats", str(GEMINI / "halo.json"), "--json"],
    "gemini-diff": ["gemini", "diff", str(GEMINI / "halo.json"), str(GEMINI / "halo.json"), "--json"],
    "vpux-args": ["vpux", "args", str(ROOT / "examples/vpux/clamp.mlir"), "--json"],
    "vpux-serialize": ["vpux", "serialize", str(ROOT / "examples/vpux/clamp.mlir")],
    "vpux-layout": ["vpux", "layout", "--shape", "1x16x49x1", "--order", "NHWC", "--index", "0,1,2,0", "--json"],
    "debug": ["debug", NETLIST, "--json", "--batch", "-e", "next"],
    "info": ["info", NETLIST, str(ROOT / "examples/vpux/clamp.mlir"), "edges_edgetpu.tflite", "--json"],
    "darwinn-inspect": ["darwinn", "inspect", "edges_edgetpu.tflite", "--json"],
    "darwinn-check": ["darwinn", "check", ".", "--json"],
    "darwinn-run": ["darwinn", "run", "edges_edgetpu.tflite", "spots_edgetpu.tflite", "--link", "usb3", "--json"],
    "darwinn-verify": ["darwinn", "verify", "edges_edgetpu.tflite", "--source", "edges.tflite", "--json"],
    "darwinn-link": ["darwinn", "link", "edges_edgetpu.tflite", "-o", "linked", "--json"],
    "darwinn-relayout": [
        "darwinn", "relayout", "edges_edgetpu.tflite", "--layer", "grid", "--in", "grid.bin", "-o", "g.npy", "--json",
    ],
    "darwinn-extract": ["darwinn", "extract", "edges_edgetpu.tflite", "-o", "parts", "--json"],
}  # fmt: skip
WRITTEN = {
    "numerics": ["numerics", str(ROOT / "netlists/matmul.yaml"), "-q"],
    "advise": ["advise", str(ROOT / "netlists/attention.yaml"), "-q", "--tries", "30"],
    "faults": ["faults", NETLIST, "-q", "--count", "20"],
    "reduce": ["reduce", NETLIST, "-q", "--check", "false", "-o", "reduced.yaml"],
    "vpux-run": ["vpux", "run", str(ROOT / "examples/vpux/clamp.mlir"), "--quiet"],
    "perf-against": ["perf", str(ROOT / "netlists/attention.yaml"), "-q", "--against", NETLIST],
    "perf-sweep": ["perf", NETLIST, "-q", "--sweep", "clock=800,1000", "--sweep", "grid=1x1,8x8"],
}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages")
    assert main(["darwinn", "example", "-o", str(folder)]) == 0
    (folder / "grid.bin").write_bytes(bytes(512))
    return folder


@pytest.mark.parametrize("name", [*PRINTED, *WRITTEN])
def test_what_a_verb_prints_is_what_its_schema_says(name, packages, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(packages)
    capsys.readouterr()
    if name in PRINTED:
        assert main(PRINTED[name]) in (0, 1)
        content = json.loads(capsys.readouterr().out)
    else:
        assert main([*WRITTEN[name], "--json", str(tmp_path / "r.json")]) == 0
        content = json.loads((tmp_path / "r.json").read_text())
    capsys.readouterr()
    form = forbid_other_fields(schema(name, capsys))
    assert [
        f"{'/'.join(map(str, error.path))}: {error.message[:200]}"
        for error in Draft202012Validator(form).iter_errors(content)
    ] == []
    missing = {**content}
    del missing["schema_version"]
    assert not Draft202012Validator(form).is_valid(missing)


def test_every_verb_that_prints_json_has_a_schema():
    named = {name for name in SCHEMAS if name not in ("netlist", "check", "run", "test", "perf", "config")}
    assert named == {*PRINTED, *WRITTEN, "baseline"}  # a baseline: test_baseline.py


def test_an_unknown_name(capsys):
    with pytest.raises(SystemExit):
        main(["schema", "netlst"])
    assert "invalid choice: 'netlst'" in capsys.readouterr().err
