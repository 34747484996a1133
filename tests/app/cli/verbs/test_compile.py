"""`buda-emu compile` of strangers' files: a plain error, the documented exit code, and nothing half-written."""

import signal
import subprocess
import sys

import numpy as np
import pytest

import buda_emu.compiler.compiled
from buda_emu.app.cli.main import main
from buda_emu.compiler.search_record import SearchRecord

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402 - only where onnx is

HELD = np.ones((2, 3), np.float32)


def model(op="Relu", label="x", result="z", external=""):
    """x plus what is held, and an operator."""
    info = helper.make_tensor_value_info
    held = numpy_helper.from_array(HELD, "held")
    if external:
        held.ClearField("raw_data")
        held.data_location = TensorProto.EXTERNAL
        held.external_data.add(key="location", value=external)
    nodes = [helper.make_node("Add", [label, "held"], ["sum"]), helper.make_node(op, ["sum"], [result])]
    graph = helper.make_graph(
        nodes, "g", [info(label, TensorProto.FLOAT, [2, 3])], [info(result, TensorProto.FLOAT, [2, 3])], [held]
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return made.SerializeToString()


def without_outputs():
    made = onnx.ModelProto.FromString(model())
    del made.graph.output[:]
    return made.SerializeToString()


FILES = {
    "junk": (b"junk", 2, "is not an ONNX model"),
    "empty": (b"", 2, "is not an ONNX model: it has no graph"),
    "truncated": (model()[:-20], 2, "is not an ONNX model"),
    "no outputs": (without_outputs(), 2, "the model has no outputs"),
    "unknown operator": (model("NoSuch"), 3, "not supported: NoSuch (ONNX has no such operator): 1 time"),
    "attribute": (
        model("Softmax").replace(b"Softmax", b"Soft\x1bax"),
        3,
        r"not supported: Soft\u{1b}ax (ONNX has no such operator): 1 time",
    ),
    "data outside": (model(external="../held.bin"), 2, "'held' in file '../held.bin': outside of the model's folder"),
    "data missing": (model(external="held.bin"), 2, "'held' in file 'held.bin': No such file"),
    "data too short": (model(external="m.onnx"), 2, "which takes 24"),
    "names": (model("x" * 10_000), 3, "not supported: xxx"),
}


@pytest.mark.parametrize(("data", "code", "said"), FILES.values(), ids=FILES)
def test_a_plain_error_and_no_folder(data, code, said, tmp_path, capsys):
    (tmp_path / "held.bin").write_bytes(HELD.tobytes())
    (tmp_path / "models").mkdir()
    path = tmp_path / "models" / "m.onnx"
    path.write_bytes(data)
    assert main(["compile", str(path), "-o", str(tmp_path / "out")]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.startswith("buda-emu: compile: ")
    assert err.removesuffix("\n").isprintable()
    assert len(err) < 1_000
    assert not (tmp_path / "out").exists()


def test_messages_about_strange_names_are_clean(tmp_path, capsys):
    path = tmp_path / "m.onnx"
    path.write_bytes(model(label="\x1b[31m" + "x" * 10_000, result="../../z\n"))
    assert main(["compile", str(path), "-o", str(tmp_path / "out"), "--effort", "low"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.isprintable() and len(line) < 1_000 for line in lines)
    assert lines[1].startswith(r"  input \u{1b}[31mxxx")
    assert lines[2] == r"  output ../../z\u{a}: [2, 3] float32 -> queue z"
    image = str(tmp_path / "out" / "model.tti")
    assert main(["run", image, "--outputs", str(tmp_path / "a" / "b" / "c"), "-q"]) == 0
    assert sorted(found.name for found in tmp_path.rglob("*.npy")) == ["z.npy"]
    assert (tmp_path / "a" / "b" / "c" / "z.npy").exists()


def test_an_image_that_cannot_be_written_leaves_what_was_there(tmp_path, monkeypatch, capsys):
    path, out = tmp_path / "m.onnx", tmp_path / "out"
    path.write_bytes(model())
    out.mkdir()
    (out / "model.yaml").write_text("old text")
    (out / "model.tti").write_text("old image")

    def full(stream, contents):
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(buda_emu.compiler.compiled, "write_image", full)
    assert main(["compile", str(path), "-o", str(out), "--effort", "low", "-q"]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert {found.name: found.read_text() for found in out.iterdir()} == {
        "model.yaml": "old text",
        "model.tti": "old image",
    }


@pytest.mark.parametrize(("times", "code", "said"), [(1, 0, "the search was ended by Ctrl-C, with the best so far"),
                                                     (2, 130, "buda-emu: interrupted")])  # fmt: skip
def test_ctrl_c_ends_the_search_and_then_the_command(times, code, said, tmp_path, monkeypatch, capsys):
    def report_epoch(record, *_):
        for _ in range(0 if record.ended else times):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(SearchRecord, "report_epoch", report_epoch)
    (tmp_path / "m.onnx").write_bytes(model())
    assert main(["compile", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out")]) == code
    printed = capsys.readouterr()
    assert said in printed.out + printed.err
    assert (tmp_path / "out").exists() == (code == 0)


def test_a_folder_that_is_a_file(tmp_path, capsys):
    path = tmp_path / "m.onnx"
    path.write_bytes(model())
    (tmp_path / "out").write_text("mine")
    assert main(["compile", str(path), "-o", str(tmp_path / "out"), "--effort", "low", "-q"]) == 2
    assert capsys.readouterr().err.startswith("buda-emu: ")
    assert (tmp_path / "out").read_text() == "mine"


def test_without_the_onnx_package(tmp_path, child_environment):
    (tmp_path / "m.onnx").write_bytes(model())
    code = (
        "import sys; sys.modules['onnx'] = None; from buda_emu.app.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    line = [sys.executable, "-c", code, "compile", str(tmp_path / "m.onnx")]
    done = subprocess.run(line, env=child_environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"buda-emu: compile: {tmp_path / 'm.onnx'} needs the package onnx: pip install 'buda-emu[onnx]'\n"
    )


def test_the_help_says_its_own_default_of_the_architecture(capsys):
    with pytest.raises(SystemExit):
        main(["compile", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "blackhole, jawbridge; default: wormhole_b0, or that of --board --board" in text


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (
            "a_edgetpu.tflite",
            b"\x1c\0\0\0TFL3" + bytes(64) + b"edgetpu-custom-op",
            "an Edge TPU package, not an ONNX or PyTorch model: `buda-emu darwinn inspect",
        ),
        (
            "a.tflite",
            b"\x1c\0\0\0TFL3" + bytes(64),
            "a TensorFlow Lite model that was not compiled for the Edge TPU, not an ONNX or PyTorch model: `python -m",
        ),
        ("a.json", b'{"0": []}', "a Gemini schedule, not an ONNX or PyTorch model: `buda-emu gemini run"),
        ("a.mlir", b"module {}", "a VPUX program, not an ONNX or PyTorch model: `buda-emu vpux run"),
        (
            "a.yaml",
            b"devices: {}\nqueues: {}\ngraphs: {}\nprograms: []\n",
            "a BUDA netlist, not an ONNX or PyTorch model: `buda-emu run",
        ),
        ("a.tti", b"", "a device image, not an ONNX or PyTorch model: `buda-emu run"),
    ],
    ids=["package", "uncompiled", "schedule", "program", "netlist", "image"],
)
def test_documents_of_every_kind_are_named_with_the_command_that_takes_them(name, content, says, tmp_path, capsys):
    (tmp_path / name).write_bytes(content)
    assert main(["compile", str(tmp_path / name)]) == 2
    assert f"{name} is {says}" in capsys.readouterr().err
