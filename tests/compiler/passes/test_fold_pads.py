"""Zeros around what a convolution reads become its own padding."""

import numpy as np
import pytest

import buda_emu as be
from compiler.pass_pairs import becomes, stays

WEIGHTS = "w = constant {value: float32[1, 1, 2, 2] = [1.0, 2.0, 3.0, 4.0]} : float32[1, 1, 2, 2]"


def sparse(rows, inputs, shape, weight="1.0"):
    """A matrix in the text of the IR."""
    columns, count = list(range(inputs)), inputs
    return (
        f"Sparse(shape: {shape}, row: int64[{count}] = {rows}, col: int64[{count}] = {columns}, "
        f"weight: float32[{count}] = {[float(weight)] * count})"
    )


def padded(matrix, dim, sizes, out, pads="((0, 0), (0, 0))"):
    """A convolution of what a matrix along one dimension gives."""
    return f"""
        core "g":
          {WEIGHTS}
          x = input {{label: "x"}} : float32[1, 1, 2, 3] from "x"
          a = linear(x) {{dim: {dim}, matrix: {matrix}}} : float32{sizes}
          c = conv(a, w) {{strides: (1, 1), pads: {pads}, dilations: (1, 1), groups: 1}} : float32{out}
          output "c" = c : float32
    """


def test_zeros_before_and_after_are_added_to_what_there_is():
    matrix = sparse([1, 2], 2, (5, 2))
    becomes(
        "fold_pads",
        padded(matrix, 2, [1, 1, 5, 3], [1, 1, 4, 3], "((0, 0), (1, 0))"),
        f"""
        core "g":
          {WEIGHTS}
          x = input {{label: "x"}} : float32[1, 1, 2, 3] from "x"
          c = conv(x, w) {{strides: (1, 1), pads: ((1, 2), (1, 0)), dilations: (1, 1), groups: 1}} : float32[1, 1, 4, 3]
          output "c" = c : float32
    """,
    )


@pytest.mark.parametrize(
    "matrix", [sparse([1, 0], 2, (3, 2)), sparse([0, 2], 2, (3, 2)), sparse([1, 2], 2, (3, 2), "2")]
)
def test_what_moves_or_scales_anything_stays(matrix):
    stays("fold_pads", padded(matrix, 2, [1, 1, 3, 3], [1, 1, 2, 2]))


def test_the_host_lays_out_what_a_padded_first_convolution_sees():
    """As models in the manner of TensorFlow have it: only the last row and column are padded."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    first, second = torch.nn.Conv2d(3, 32, 3, 2), torch.nn.Conv2d(32, 32, 3, 2, groups=32)

    class Padded(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = first, second

        def forward(self, x):
            x = torch.relu(self.first(torch.nn.functional.pad(x, (0, 1, 0, 1))))
            return self.second(torch.nn.functional.pad(x, (1, 2, 0, 1)))

    x = torch.randn(1, 3, 16, 16)
    compiled = be.compile(Padded().eval(), (x,), effort="low")
    assert compiled.placement.tiles.inputs["x"].shape != (1, 8, 3)
    assert not any("pad" in name for name in compiled.placement.ops)
    found = compiled(x.numpy(), precision="ideal")[0]
    assert np.abs(found - Padded()(x).detach().numpy()).max() < 1e-5
