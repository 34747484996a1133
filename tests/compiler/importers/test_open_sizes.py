"""Sizes that a model leaves open: by name, by place, by example; and what nobody gave."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.cli.main import main

onnx = pytest.importorskip("onnx")


def relu(*shape):
    """An ONNX model of one op."""
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])


@pytest.mark.parametrize(
    ("shape", "sizes"), [(("N", 3), {"N": 2}), (("N", 3), {"x.0": 2}), ((None, "L"), {"x.0": 2, "L": 3})]
)
def test_sizes_of_an_onnx_model_are_given_by_name_or_place(shape, sizes):
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    compiled = be.compile(relu(*shape), sizes=sizes)
    np.testing.assert_allclose(compiled(x)[0], np.maximum(x, 0))


def test_a_size_that_nobody_gave_is_named_with_how_to_give_it():
    with pytest.raises(be.UnsupportedError, match=r"open size L \(give it: --size L=1, in Python sizes=.'L': 1.*at x"):
        be.compile(relu("N", "L"), sizes={"N": 2})
    with pytest.raises(be.HostError, match=r"size 'M': open are N, x\.0"):
        be.compile(relu("N", 3), sizes={"N": 2, "M": 2})
    with pytest.raises(be.HostError, match="size 'N': no size of it is open"):
        be.compile(relu(2, 3), sizes={"N": 2})
    with pytest.raises(be.HostError, match="size N=0: less than 1"):
        be.compile(relu("N", 3), sizes={"N": 0})


def test_the_command_takes_sizes(tmp_path, capsys):
    path = tmp_path / "m.onnx"
    onnx.save(relu("N", 3), path)
    assert main(["compile", str(path), "--size", "N=2", "-o", str(tmp_path / "out"), "--quiet"]) == 0
    assert main(["compile", str(path)]) == 3
    assert "--size N=1" in capsys.readouterr().err


def test_open_sizes_of_an_exported_program():
    torch = pytest.importorskip("torch")

    class Rows(torch.nn.Module):
        def forward(self, X, y):  # noqa: N803 - torch writes the name small
            return (X @ y.transpose(0, 1)).reshape(X.shape[0] * y.shape[0], -1)

    batch, other = torch.export.Dim("batch", max=64), torch.export.Dim("other")
    example = torch.randn(2, 5), torch.randn(3, 5)
    program = torch.export.export(Rows(), example, dynamic_shapes=({0: batch}, {0: other}))
    given = torch.randn(4, 5), torch.randn(7, 5)
    want = Rows()(*given).numpy()
    for compiled in (be.compile(program, sizes={"X.0": 4, "y.0": 7}), be.compile(program, given)):
        np.testing.assert_allclose(compiled(*given)[0], want, rtol=1e-3, atol=1e-4)
    with pytest.raises(be.UnsupportedError, match=r"the open size other \(give it: --size other=1"):
        be.compile(program, sizes={"X.0": 4})
    assert be.compile(program, sizes={"batch": 4, "y.0": 7}, effort="low").io.inputs[0].shape == (4, 5)
    with pytest.raises(be.HostError, match=r"size 'bach': open are X\.0, batch, other, y\.0 \(x\.0 is the first"):
        be.compile(program, sizes={"bach": 4})
    with pytest.raises(be.HostError, match=r"X\.0=65: the program takes \d+ to 64"):
        be.compile(program, sizes={"X.0": 65, "y.0": 7})
    with pytest.raises(be.HostError, match="compile_programs: sizes"):
        be.compile_programs(be.Program(Rows(), example), sizes={"X.0": 4})
