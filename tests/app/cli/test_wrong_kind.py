"""A verb for netlists that is given a file of another kind says what the file is and which command serves it."""

import re
import zipfile

import numpy as np
import pytest

from buda_emu.app.cli.main import VERBS, build_parser, main
from buda_emu.app.documents.kinds import KINDS, files_below, kind_of, require_netlists
from buda_emu.foreign.darwinn.container import CUSTOM_CODE
from buda_emu.support.errors import HostError

VERBS_FOR_NETLISTS = ("run", "perf", "test", "graph", "debug", "numerics", "advise", "route", "fmt")


@pytest.fixture
def files(root, tmp_path):
    """A file of each kind by words of the message."""
    package = tmp_path / "two.tflite"
    package.write_bytes(b"\x1c\0\0\0TFL3" + bytes(100) + CUSTOM_CODE.encode())
    uncompiled = tmp_path / "float.tflite"
    uncompiled.write_bytes(b"\x1c\0\0\0TFL3" + bytes(100))
    return {
        "a Gemini schedule": root / "examples/gemini/halo.json",
        "a network (front-end IR)": root / "examples/gemini/halo.frontend.json",
        "a VPUX program": root / "examples/vpux/clamp.mlir",
        "an Edge TPU package": package,
        "a TensorFlow Lite model that was not compiled for the Edge TPU": uncompiled,
    }


@pytest.mark.parametrize("verb", VERBS_FOR_NETLISTS)
def test_the_message_names_the_kind_and_a_command_that_exists(files, verb, capsys):
    for words, path in files.items():
        before = path.read_bytes()
        assert main([verb, str(path)]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith(f"buda-emu: {path} is {words}, not a netlist: ")
        command = re.search(r"`buda-emu ([^`]+)`", said.err)
        assert command is not None
        name, *rest = command[1].split()
        assert name in VERBS
        below = build_parser(name).below[name].below
        assert not below or rest[0] in below
        assert path.read_bytes() == before


def test_every_kind_with_commands_of_its_own_has_one_for_other_verbs():
    for kind in KINDS:
        assert bool(kind.verb) == bool(dict(kind.commands).get("")), kind.name
        assert all(verb in ("", *VERBS) for verb, _ in kind.commands)


@pytest.mark.parametrize("name", ["net.onnx", "model.pt2", "UPPER.ONNX"])
def test_a_model_is_compiled(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(np.arange(100, dtype=np.uint8).tobytes())
    with pytest.raises(HostError, match=r"is a model, not a netlist: `buda-emu compile .* makes a netlist of it"):
        require_netlists("run", [str(path)])


@pytest.mark.parametrize("name", ["net.onnx", "model.pt2"])
def test_a_check_of_a_model_says_so(tmp_path, name, capsys):
    """A .pt2 is an archive as an image is, and an .onnx binary: neither is read as what it is not."""
    path = tmp_path / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data/weights/weight_0", "0")
    assert main(["check", str(path)]) == 2
    said = capsys.readouterr().out
    assert f"{path}:1:1: error[V000]: this is a model, not a netlist: `buda-emu compile` makes a netlist of it" in said


def test_a_comparison_names_both_files(root, tmp_path, capsys):
    first = root / "examples/gemini/halo.json"
    second = tmp_path / "second.json"
    second.write_bytes(first.read_bytes())
    assert main(["diff", str(first), str(second)]) == 2
    assert capsys.readouterr().err.endswith(f"not a netlist: `buda-emu gemini diff {first} {second}`\n")


def test_mlir_text_is_recognised_by_its_content(root, tmp_path, capsys):
    path = tmp_path / "dump.txt"
    path.write_bytes((root / "examples/vpux/clamp.mlir").read_bytes())
    assert main(["check", str(path)]) == 0
    assert main(["run", str(path)]) == 2
    assert capsys.readouterr().err == f"buda-emu: {path} is a VPUX program, not a netlist: `buda-emu vpux run {path}`\n"
    # A search of folders takes the name: a page of docs may quote such a text.
    with pytest.raises(HostError, match="no document that can be checked in this folder"):
        files_below([str(tmp_path)])


def test_netlists_images_folders_and_what_is_not_there_pass(root, tmp_path):
    image = tmp_path / "x.tti"
    image.write_bytes(b"")
    require_netlists("run", [str(root / "netlists/matmul.yaml"), str(image), str(root), "-", "nowhere.json"])


@pytest.mark.parametrize("words", ["check", "run"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.verb], ids=lambda kind: kind.verb)
def test_a_verb_of_one_kind_names_the_kind_of_any_other_file(files, root, kind, words, capsys):
    others = {**files, "a BUDA netlist": root / "netlists/matmul.yaml"}
    article = "an" if kind.words[0] == "E" else "a"
    refused = 0
    for description, path in others.items():
        if kind_of(str(path)) is kind:
            continue
        refused += 1
        assert main([kind.verb, words, str(path)]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith(f"buda-emu: {path} is {description}, not {article} {kind.words}: ")
        command = re.search(r"`buda-emu (\w+)", said.err)
        assert command is not None
        assert command[1] in VERBS
    assert refused >= 3


def test_a_verb_of_one_kind_says_itself_what_is_wrong_with_a_file_of_none(tmp_path, capsys):
    path = tmp_path / "notes"
    path.write_text("hello")
    assert main(["gemini", "check", str(path)]) == 2
    assert "error[G001]" in capsys.readouterr().out
