"""`buda-emu vpux`: what its arguments may be."""

from pathlib import Path

import numpy as np
import pytest

from buda_emu.app.cli.main import main
from shared_files import ROOT

CLAMP = str(ROOT / "examples" / "vpux" / "clamp.mlir")


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("1x2xa", "1x2xa"),
        ("1xx2", "1xx2"),
        ("-1x2", "-1x2"),
        ("1x" + "9" * 12, "expected numbers"),
        ("", "expected numbers"),
    ],
)
def test_shapes_that_are_none(shape, said, capsys):
    assert main(["vpux", "layout", f"--shape={shape}"]) == 2
    assert said in capsys.readouterr().err


def test_a_shape_and_an_index(capsys):
    assert main(["vpux", "layout", "--shape", "1x16x49x1", "--order", "NHWC", "--index", "0, 3,7,0"]) == 0
    assert capsys.readouterr().out


def broken_files():
    whole = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f2', 'fortran_order': False, 'shape': (4,), }".ljust(117) + b"\n"
    data = np.zeros(4, np.float16).tobytes()
    yield "empty", b""
    yield "no array", b"text"
    yield "half a header", whole[:40]
    yield "half the data", whole + data[:5]
    yield "objects", whole.replace(b"<f2", b"|O8") + data
    yield "a header that is not Python", whole.replace(b"(4,)", b"(4(,") + data


@pytest.mark.parametrize(("what", "content"), [pytest.param(*item, id=item[0]) for item in broken_files()])
@pytest.mark.parametrize("room", ["vpux", "darwinn"])
def test_inputs_that_are_no_arrays(room, what, content, tmp_path, capsys):
    file = tmp_path / "in.npy"
    file.write_bytes(content)
    if room == "vpux":
        words = ["vpux", "run", CLAMP, "--quiet", "--input", f"0={file}"]
    else:
        from buda_emu.foreign.darwinn.example import example_files

        package = tmp_path / "edges_edgetpu.tflite"
        package.write_bytes(example_files()[package.name])
        words = ["darwinn", "run", str(package), "--reference", str(package), "--input", f"x={file}"]
    assert main(words) == 2
    assert f"{file} is not a numpy array file" in capsys.readouterr().err


def test_a_file_of_several_functions_says_which_one_runs(capsys):
    for words, said in (((), True), (("--split", "1"), False), (("--function", "main"), False), (("-q",), False)):
        assert main(["vpux", "run", CLAMP, *words]) == 0
        assert ("@main of split 0, one of 2 functions" in capsys.readouterr().out) == said


def test_functions_of_other_names_have_to_be_chosen(tmp_path, capsys):
    source = tmp_path / "several.mlir"
    text = Path(CLAMP).read_text()
    source.write_text(text.replace("func.func @main(", "func.func @first(", 1).replace("@main(", "@second("))
    assert main(["vpux", "run", str(source)]) == 2
    assert "choose one (--function NAME): first, second" in capsys.readouterr().err
    assert main(["vpux", "run", str(source), "--function", "second", "-q"]) == 0


@pytest.mark.parametrize(
    ("task", "said"),
    [("9", "there is no task 9: there are 3, counted from 0; tasks that call one: 1"), ("0", "task 0 calls no kernel")],
)
def test_a_task_without_a_kernel_is_told_from_one_that_is_not_there(task, said, capsys):
    assert main(["vpux", "args", CLAMP, "--split", "0", "--task", task]) == 2
    assert said in capsys.readouterr().err
