"""The memory of a compilation: said and held before the passes, while parameters are read, and after each pass."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.cli.main import main
from buda_emu.arithmetic.tensor.referenced import reference_to
from buda_emu.compiler import memory_watch
from buda_emu.compiler.graph.graph import Graph, Node
from buda_emu.compiler.memory_watch import BESIDE, READ, MemoryWatch
from buda_emu.compiler.pipeline import Observer
from buda_emu.support.errors import UnsupportedError

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402 - only where onnx is

SIDE = 512
BYTES = 4 * SIDE * SIDE


@pytest.fixture
def resident(monkeypatch):
    """What the process is said to have: one number, to be changed."""
    have = [0]
    monkeypatch.setattr(memory_watch, "resident_memory", lambda: have[0])
    return have


def model():
    """A product by a weight of BYTES."""
    info = helper.make_tensor_value_info
    weight = numpy_helper.from_array(np.ones((SIDE, SIDE), np.float32), "weight")
    nodes = [helper.make_node("MatMul", ["x", "weight"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [info("x", TensorProto.FLOAT, [32, SIDE])], [info("y", TensorProto.FLOAT, [32, SIDE])], [weight]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def compiled(limit, **words):
    return be.compile(model(), effort="low", memory_limit=limit, **words)


def test_what_is_needed_is_said_before_the_first_pass(resident):
    said = []
    observer = Observer(foreseen=lambda words: said.append((words, dict(observer.seconds))))
    compiled(1 << 30, observer=observer)
    ((words, seconds),) = said
    assert "of 1.0 GiB: 1.0 MiB of parameters are in memory, 0 B (as float32) stay in their files" in words
    assert not seconds


def test_more_than_the_limit_is_refused_before_the_first_pass(resident):
    observer = Observer()
    with pytest.raises(
        UnsupportedError, match=r"needs about .* of 128\.0 MiB: .* The largest: weight 1\.0 MiB\. .*--m"
    ):
        compiled(BESIDE, observer=observer)
    assert not observer.seconds
    resident[0] = 1 << 30
    with pytest.raises(UnsupportedError, match="needs about 1"):
        compiled(1 << 30)


def test_views_of_one_array_count_once():
    array = np.ones((256, 1024), np.float32)

    def said(*values):
        nodes = {f"c{n}": Node(f"c{n}", "constant", (), {"value": item}, item.shape) for n, item in enumerate(values)}
        return MemoryWatch(1 << 40).before_passes(Graph("g", nodes))

    assert "1.0 MiB of parameters" in said(array, array.T, array[:3])
    assert "2.0 MiB of parameters" in said(array, array.copy())
    mapped = reference_to(array, "m in file")
    assert "0 B of parameters are in memory, 1.0 MiB (as float32) stay" in said(mapped, mapped)


def test_what_is_computed_with_needs_room(resident):
    """A parameter by reference that no step gives box by box is read as a whole: where there is room for it."""
    mapped = reference_to(np.ones((SIDE, SIDE), np.float32), "weight in w.safetensors")
    with MemoryWatch(BYTES).counting():
        assert float(np.exp(mapped)[0, 0]) > 2
    resident[0] = 1
    with (
        MemoryWatch(BYTES, given=True).counting(),
        pytest.raises(UnsupportedError, match=r"weight in w\.safetensors, .* takes 1\.0 MiB more, .*--memory-limit"),
    ):
        np.exp(mapped)
    with MemoryWatch(BYTES).counting():
        assert mapped.transpose().shape == (SIDE, SIDE)  # by reference


def test_a_file_is_not_read_where_its_copies_have_no_room(tmp_path, resident):
    path = tmp_path / "m.onnx"
    path.write_bytes(model().SerializeToString())
    with pytest.raises(UnsupportedError, match=r"reading .*m\.onnx takes .* more"):
        be.compile(path, memory_limit=READ * path.stat().st_size - 1)
    with MemoryWatch(READ * path.stat().st_size).reading(path):
        pass


def test_a_pass_that_takes_more_is_named(resident):
    """What was not foreseen ends the compilation, too."""

    class Growing(Observer):
        def look(self, name, forms, arch):
            if name == "cse":
                resident[0] = 2 << 30
            super().look(name, forms, arch)

    with pytest.raises(UnsupportedError, match=r"after dce the process has 2\.0 GiB, the memory limit is 1\.0 GiB"):
        compiled(1 << 30, observer=Growing())


def test_the_limit_never_changes_a_netlist():
    assert compiled(1 << 40).text == compiled(None).text


def test_the_command_says_what_it_needs_and_keeps_the_limit(tmp_path, capsys):
    path, out = tmp_path / "m.onnx", tmp_path / "out"
    path.write_bytes(model().SerializeToString())
    assert main(["compile", str(path), "--memory-limit", "16M", "-o", str(out)]) == 3
    assert "more, the process has" in capsys.readouterr().err
    assert not out.exists()
    assert main(["compile", str(path), "--memory-limit", "64G", "-o", str(out), "--effort", "low"]) == 0
    assert "buda-emu compile: needs about " in capsys.readouterr().err
