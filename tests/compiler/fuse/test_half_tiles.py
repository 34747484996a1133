"""What is one number for each row is computed on half of each tile, and spread by who reads it."""

from textwrap import dedent

import numpy as np
import pytest
import torch

import buda_emu as be
from buda_emu.compiler.fuse.columns import fuse_half_tiles
from buda_emu.compiler.ir.text import parse_ir, print_ir
from compiler.pass_pairs import becomes, stays

FEEDS = """
    tile "g":
      input x {label: "x", shape: (1, 1, 2), view: (1, 8, 64)}
      constant ones {values: float32[1, 64, 32] = 1.0, kind: "picker"}
      constant eps {values: float32[1, 32, 32] = 0.5}
"""
SUM = '      s = matmul(x, ones) : [1, 1, 1] with {inner: 2, source: "s"}\n'
ROOT = '      r = reciprocal(s) : [1, 1, 1] with {source: "r"}\n'
HALF = '      r = reciprocal(s) {vector: "c"} : [1, 1, 1] with {source: "r"}\n'
READ = '      y = multiply(x, r <broadcast c 2>) : [1, 1, 2] with {source: "y"}\n'
SPREAD = """      y = fused_op(x, r <broadcast c 2>) : [1, 1, 2] with {source: "y"}
        step y = multiply(input0, input1) : output {spread: "c"}
"""
OUT = '      output out {label: "y", op: "y", view: (1, 8, 64), host_shape: (8, 64), dtype: "float32"}\n'


def test_a_reciprocal_of_sums_is_one_of_half_tiles():
    becomes("fuse_half_tiles", FEEDS + SUM + ROOT + READ + OUT, FEEDS + SUM + HALF + SPREAD + OUT)


def test_what_is_multiplied_from_the_left_changes_sides():
    turned = READ.replace("x, r <broadcast c 2>", "r <broadcast c 2>, x")
    spread = SPREAD.replace("x, r <broadcast c 2>", "r <broadcast c 2>, x").replace("input0, input1", "input1, input0")
    becomes("fuse_half_tiles", FEEDS + SUM + ROOT + turned + OUT, FEEDS + SUM + HALF + spread + OUT)


def test_steps_of_the_vector_unit_are_those_of_half_tiles():
    steps = """      r = fused_op(s, eps) : [1, 1, 1] with {source: "r"}
        step a = add(input0, input1) : dest
        step b = sqrt(dest) : dest
        step r = reciprocal(dest) : output
"""
    half = steps.replace("(dest) :", '(dest) {vector: "c"} :')
    becomes("fuse_half_tiles", FEEDS + SUM + steps + READ + OUT, FEEDS + SUM + half + SPREAD + OUT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (READ, READ.replace("multiply(x, r <broadcast c 2>)", "subtract(r <broadcast c 2>, x)")),  # only its right side
        (READ, READ.replace("multiply", "maximum")),  # spreads nothing
        (OUT, OUT + OUT.replace("out {", "more {").replace('op: "y"', 'op: "r"')),  # the host reads it
    ],
)
def test_what_needs_whole_tiles_stays(old, new):
    stays("fuse_half_tiles", (FEEDS + SUM + ROOT + READ + OUT).replace(old, new))


def test_a_product_of_unlike_columns_stays():
    given = parse_ir(dedent(FEEDS + SUM + ROOT + READ + OUT).strip())
    given.tiles.constants["ones"].values[0, 3, 4] = 2
    before = print_ir(given)
    fuse_half_tiles(given.tiles)
    assert print_ir(given) == before


class Softmax(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1) * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-3)


@pytest.mark.parametrize("arch", ["wormhole_b0", "grayskull"])
@pytest.mark.parametrize("precision", ["ideal", "format", "device"])
def test_values_are_right_in_every_precision(arch, precision):
    rng = np.random.default_rng(0)
    given = rng.standard_normal((2, 40, 70)).astype(np.float32)
    made = be.compile(Softmax(), (torch.zeros(2, 40, 70),), arch=arch, effort="low")
    assert made.text.count("vector: c") == 3  # the sum's reciprocal, the root and its reciprocal
    assert [item for item in made.check(strict=True) if item.severity == "error"] == []
    (found,) = made(given, precision=precision)
    expected = Softmax()(torch.as_tensor(given)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5 if precision == "ideal" else 0.1, atol=1e-6)
