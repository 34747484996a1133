"""`buda-emu info`: what any file is; and `check` of several kinds in one call."""

import json

import pytest

from buda_emu.app.cli.main import main
from shared_files import ROOT
from vpux_documents import buffer, function, module

NETLIST, SCHEDULE, VPUX = (
    str(ROOT / name) for name in ("netlists/matmul.yaml", "examples/gemini/halo.json", "examples/vpux/clamp.mlir")
)


def test_info_names_the_kind_of_each_file(capsys):
    assert main(["info", NETLIST, SCHEDULE]) == 0
    first, second = capsys.readouterr().out.split("\n\n")
    assert first.startswith(f"{NETLIST}: BUDA netlist, accepted\n  arch ")
    assert f"{SCHEDULE}: Gemini schedule, accepted\n  dialect    A\n  mesh       2x1\n" in second


def test_refused_and_unknown_files(tmp_path, capsys):
    (tmp_path / "net.yaml").write_text("devices: {arch: grayskull}\nqueues: {q: {type: qeue}}\n")
    (tmp_path / "x.json").write_text('{"-1": 3}')
    (tmp_path / "notes").write_text("hello")
    assert main(["info", *(str(tmp_path / name) for name in ("net.yaml", "x.json", "notes"))]) == 2
    shown = capsys.readouterr().out
    assert "net.yaml: BUDA netlist, refused, " in shown
    assert "x.json: Gemini schedule, refused, " in shown
    assert "notes: of no kind that is known here; read as a BUDA netlist, refused, 1 error; `buda-emu check" in shown


def test_a_file_of_another_stage_of_a_tool_chain_is_named(root, capsys):
    network = str(root / "examples/gemini/halo.frontend.json")
    assert main(["info", network]) == 2
    assert capsys.readouterr().out.startswith(f"{network}: a network (front-end IR), which has no rules of its own: ")
    assert main(["info", network, "--json"]) == 2
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert (file["kind"], file["stage"], file["accepted"]) == ("schedule", "a network (front-end IR)", False)
    assert main(["info", SCHEDULE, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["stage"] is None


def test_a_model_before_the_edge_tpu_compiler_is_no_package(tmp_path, capsys):
    model = tmp_path / "model.tflite"
    model.write_bytes(b"\x1c\0\0\0TFL3" + bytes(64))
    words = "a TensorFlow Lite model that was not compiled for the Edge TPU"
    assert main(["info", str(model)]) == 2
    assert capsys.readouterr().out.startswith(f"{model}: {words}, which has no rules of its own: `python -m tf2onnx")
    assert main(["run", str(model)]) == 2
    assert f"{model} is {words}, not a netlist: `python -m tf2onnx" in capsys.readouterr().err


@pytest.mark.parametrize(("content", "rule"), [(b"", "D001"), (b"\x1c\0\0\0XXXX" + bytes(64), "D01")])
def test_a_damaged_package_is_known_by_its_name(content, rule, tmp_path, capsys):
    package = tmp_path / "a_edgetpu.tflite"
    package.write_bytes(content)
    assert main(["check", str(package)]) == 2
    assert f"[{rule}" in capsys.readouterr().out
    assert main(["info", str(package)]) == 2
    assert f"{package}: Edge TPU package, refused, " in capsys.readouterr().out


@pytest.mark.parametrize("name", ["m.onnx", "m.pt2"])
def test_a_model_is_named_with_its_command(name, tmp_path, capsys):
    model = tmp_path / name
    model.write_bytes(b"\x08\x08\x9c")
    assert main(["info", str(model)]) == 2
    words = f"{model}: a model, not a document: `buda-emu compile {model}` makes a netlist of it\n"
    assert capsys.readouterr().out == words


@pytest.mark.parametrize(
    ("option", "name", "words"),
    [
        ("--timeline", "a.png", "it writes .json or .json.gz or .html, not .png"),
        ("--timeline", "a.csv.gz", "it writes .json or .json.gz or .html, not .gz"),
        ("--json", "a.html", "it writes .json or .json.gz, not .html"),
    ],
)
def test_a_name_of_another_format_is_refused_before_any_work(option, name, words, tmp_path, capsys):
    verb = ["info", VPUX] if option == "--timeline" else ["vpux", "run", VPUX]
    path = tmp_path / name
    assert main([*verb, option, str(path)]) == 2
    shown = capsys.readouterr()
    assert f"{option}: {path}: {words}" in shown.err
    assert shown.out == ""
    assert not path.exists()


def test_a_name_that_tells_no_format_is_taken(tmp_path):
    for name in ("trace", "trace.perfetto"):
        assert main(["info", VPUX, "--timeline", str(tmp_path / name)]) == 0
        assert "traceEvents" in json.loads((tmp_path / name).read_text())


def test_the_timeline_of_any_kind(tmp_path, capsys):
    for number, file in enumerate((NETLIST, SCHEDULE, VPUX)):
        trace = tmp_path / f"{number}.json"
        assert main(["info", file, "--timeline", str(trace)]) == 0
        assert any(event["ph"] == "X" for event in json.loads(trace.read_text())["traceEvents"])
    assert main(["info", NETLIST, VPUX, "--timeline", str(tmp_path / "t.html")]) == 2
    assert "--timeline is of one document, not of 2 documents" in capsys.readouterr().err


def test_check_takes_kinds_mixed(tmp_path, capsys):
    bad = tmp_path / "bad.json"
    bad.write_text('{"-1": 3}')
    assert main(["check", NETLIST, SCHEDULE, VPUX, str(bad), "--arch", "wormhole_b0", "--json"]) == 2
    content = json.loads(capsys.readouterr().out)
    assert [(file["kind"], file["accepted"]) for file in content["files"]] == [
        ("netlist", True),
        ("schedule", True),
        ("vpux", True),
        ("schedule", False),
    ]


@pytest.mark.parametrize("room", ["gemini", "vpux", "darwinn"])
@pytest.mark.parametrize("form", ["sarif", "github", "json"])
def test_every_room_has_every_form(room, form, tmp_path, capsys):
    bad = tmp_path / ("bad.mlir" if room == "vpux" else "bad.json")
    bad.write_text("{" if room != "vpux" else "func.func @main(")
    assert main([room, "check", str(bad), "--format", form]) == 2
    text = capsys.readouterr().out
    rule = {"gemini": "G001", "vpux": "X001", "darwinn": "D001"}[room]
    if form == "sarif":
        assert json.loads(text)["runs"][0]["results"][0]["ruleId"] == rule
    elif form == "json":
        assert json.loads(text)["diagnostics"][0]["rule"] == rule
    else:
        assert text.startswith("::error file=")


def test_warnings_are_errors_with_strict(tmp_path, capsys):
    """Of VPUX programs as of images; the same for both commands."""
    path = tmp_path / "w.mlir"
    path.write_text(module(function(f"{buffer('%c', 2 * 1024 * 1024 - 8)}\nreturn")))
    for words in (["vpux", "check"], ["check"]):
        assert main([*words, str(path)]) == 0
        assert "warning[X032]" in capsys.readouterr().out
        assert main([*words, str(path), "--strict"]) == 2
        assert "error[X032]" in capsys.readouterr().out
