"""What is computed row by row, with the maxima and sums of the rows, becomes one fused op."""

import time
from pathlib import Path

import numpy as np
import pytest
import torch

import buda_emu as be
from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.fuse.rows import fuse_rows
from buda_emu.compiler.lower.tiles import InputQueue, TileGraph, TileOp, Use
from buda_emu.compiler.target import Target
from compiler.pass_pairs import becomes, stays
from vendor_router import needs_vendor_router, refusal

FEEDS = """
    tile "g":
      input x {label: "x", shape: (8, 1, 4), view: (8, 32, 128)}
      constant ones {values: float32[1, 128, 32] = 1.0, kind: "picker"}
"""
LARGEST = '      m = reduce(x) {dim: "c", type: "max"} : [8, 1, 1] with {inner: 4, source: "m"}\n'
TO_E = """      d = subtract(x, m <broadcast c 4>) : [8, 1, 4] with {source: "d"}
      e = exp(d) : [8, 1, 4] with {source: "e"}
"""
SUM = """      s = matmul(e, ones <broadcast z 8>) : [8, 1, 1] with {inner: 4, source: "s"}
      r = reciprocal(s) : [8, 1, 1] with {source: "r"}
"""
LAST = '      y = multiply(e, r <broadcast c 4>) : [8, 1, 4] with {source: "y"}\n'
OUT = '      output out {label: "y", op: "y", view: (8, 32, 128), host_shape: (8, 32, 128), dtype: "float32"}\n'
SOFTMAX = LARGEST + TO_E + SUM + LAST
FUSED = """
      y = fused_op(x, ones <broadcast z 8>) : [8, 1, 4] with {source: "y", made_of: ("m", "d", "e", "s", "r", "y")}
        step m = reduce(input0) {dim: "c", type: "max"} : intermed0 {columns: 1, inner: 4}
        step d = subtract(input0, intermed0) : dest {pop: ("intermed0"), spread: "c", columns: 4, across: 4}
        step e = exp(dest) : intermed0 {columns: 4}
        step s = matmul(intermed0, input1) : intermed1 {columns: 1, inner: 4}
        step r = reciprocal(intermed1) {vector: "c"} : intermed2 {pop: ("intermed1"), columns: 1}
        step y = multiply(intermed0, intermed2) : output {LAST_STEP}
""".replace("LAST_STEP", 'pop: ("intermed0", "intermed2"), spread: "c", columns: 4, across: 4')


def test_a_softmax_is_one_op():
    becomes("fuse_rows", FEEDS + SOFTMAX + OUT, FEEDS + FUSED + OUT)


def test_all_its_slices_stand_below_each_other():
    stacked = FUSED.replace("fused_op(x, ones <broadcast z 8>) : [8, 1, 4]", "fused_op(x <vstack 8>, ones) : [1, 8, 4]")
    cut = '      z = matmul(y{}, w) : [8, 1, 1] with {{inner: 4, source: "z"}}\n'
    feeds = FEEDS + "      constant w {values: float32[8, 128, 32] = 2.0}\n"
    out = OUT.replace('op: "y", view: (8, 32, 128)', 'op: "z", view: (8, 32, 32)').replace(
        "host_shape: (8, 32, 128)", "host_shape: (8, 32, 32)"
    )
    becomes("stack_rows", feeds + FUSED + cut.format("") + out, feeds + stacked + cut.format(" <vslice 8>") + out)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OUT, OUT + OUT.replace("out {", "more {").replace('op: "y"', 'op: "e"')),  # the host reads what is between
        (LAST, LAST.replace("multiply(e, r <broadcast c 4>)", "subtract(r <broadcast c 4>, e)")),  # spread on the left
    ],
)
def test_what_is_not_one_op_stays(old: str, new: str):
    stays("fuse_rows", (FEEDS + SOFTMAX + OUT).replace(old, new))


def test_a_sum_of_what_comes_from_elsewhere_is_an_op_of_its_own():
    text = FEEDS + SUM.replace("matmul(e", "matmul(x") + LAST.replace("(e,", "(x,") + OUT
    stays("fuse_rows", text)


BEFORE = """      p = reciprocal(FROM) : [8, 1, 1] with {source: "p"}
      d = multiply(x, p <broadcast c 4>) : [8, 1, 4] with {source: "d"}
      e = exp(d) : [8, 1, 4] with {source: "e"}
"""


def test_a_number_made_of_what_another_op_hands_on_is_spread_by_who_reads_it():
    handed_on = '      k = matmul(x, ones <broadcast z 8>) : [8, 1, 1] with {inner: 4, source: "k"}\n'
    fused = """
      y = fused_op(k, x, ones <broadcast z 8>) : [8, 1, 4] with {source: "y", made_of: ("p", "d", "e", "s", "r", "y")}
        step p = reciprocal(input0) {vector: "c"} : intermed0 {columns: 1}
        step d = multiply(input1, intermed0) : dest {pop: ("intermed0"), spread: "c", columns: 4, across: 4}
        step e = exp(dest) : intermed0 {columns: 4}
        step s = matmul(intermed0, input2) : intermed1 {columns: 1, inner: 4}
        step r = reciprocal(intermed1) {vector: "c"} : intermed2 {pop: ("intermed1"), columns: 1}
        step y = multiply(intermed0, intermed2) : output {LAST_STEP}
""".replace("LAST_STEP", 'pop: ("intermed0", "intermed2"), spread: "c", columns: 4, across: 4')
    out = OUT + OUT.replace("out {", "more {").replace("128", "32").replace('op: "y"', 'op: "k"')
    text = FEEDS + handed_on + BEFORE.replace("FROM", "k") + SUM + LAST + out
    becomes("fuse_rows", text, FEEDS + handed_on + fused + out)


def test_a_whole_tile_that_is_repeated_is_no_number():
    feeds = FEEDS.replace(
        "      constant", '      input u {label: "u", shape: (8, 1, 1), view: (8, 32, 32)}\n      constant'
    )
    stays("fuse_rows", feeds + BEFORE.replace("FROM", "u") + SUM + LAST + OUT)


def test_as_many_slices_stand_below_each_other_as_there_are_grids_for():
    """Of 6 slices of 2 rows in blocks of 8 tiles: 12 rows of 6 columns have no grid, 6 rows have one."""
    feeds = FEEDS.replace("(8, 1, 4)", "(6, 2, 6)").replace("(8, 32, 128)", "(6, 64, 192)").replace("128", "192")
    fused = FUSED.replace("[8, 1, 4]", "[6, 2, 6]").replace("z 8", "z 6").replace(": 4", ": 6")
    stacked = fused.replace("x, ones <broadcast z 6>) : [6, 2, 6]", "x <vstack 3>, ones <broadcast z 2>) : [2, 6, 6]")
    product = '      z = matmul(y{}, w) : [6, 2, 1] with {{inner: 6, source: "z"}}\n'
    feeds += "      constant w {values: float32[6, 192, 32] = 2.0}\n"
    out = OUT.replace("(8, 32, 128)", "(6, 64, 32)").replace('op: "y"', 'op: "z"')
    becomes(
        "stack_rows", feeds + fused + product.format("") + out, feeds + stacked + product.format(" <vslice 3>") + out
    )


def test_wide_exponentials_are_divided_over_columns_of_cores_and_stay():
    wide = (FEEDS + SOFTMAX + OUT).replace("(8, 1, 4)", "(8, 1, 12)").replace("128", "384").replace("c 4>", "c 12>")
    stays("fuse_rows", wide.replace("[8, 1, 4]", "[8, 1, 12]").replace("inner: 4", "inner: 12"))


class Attention(torch.nn.Module):
    """Of 4 heads, and what a layer has before and after."""

    def __init__(self, width: int):
        super().__init__()
        self.first, self.last = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        heads = self.qkv(self.first(x)).reshape(x.shape[0], x.shape[1], 3, 4, -1).permute(2, 0, 3, 1, 4)
        q, k, v = heads[0], heads[1], heads[2]
        mixed = torch.softmax(q @ k.transpose(2, 3) / 4, -1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        return x + self.down(torch.relu(self.up(self.last(x))))


@pytest.mark.parametrize("arch", ["grayskull", "wormhole_b0"])
@pytest.mark.parametrize(("width", "length"), [(128, 64), (512, 96)])  # norms of one block, and of several
def test_values_are_those_of_separate_ops(arch: str, width: int, length: int):
    torch.manual_seed(0)
    model, x = Attention(width).eval(), torch.randn(1, length, width)
    words = {"arch": arch, "microbatch": 1, "objective": "latency", "effort": "low"}
    fused: CompiledModel = be.compile(model, (x,), **words)
    apart = be.compile(model, (x,), fuse=False, **words)
    sums = [placed.op for placed in fused.placement.ops.values() if placed.op.has_sums]
    assert sum(op.sums_rows for op in sums) >= 3, "a softmax and two norms"
    assert any(not op.sums_rows for op in sums), "a product and what is added to it"
    assert len(fused.placement.ops) < 0.6 * len(apart.placement.ops)
    assert fused.check(strict=True) == ()
    expected = model(x).detach().numpy()
    np.testing.assert_allclose(np.asarray(fused(x)[0]), expected, atol=2e-4)
    for precision, most in (("format", 0.05), ("device", 0.15)):
        found, other = (np.asarray(made.run({"x": x.numpy()}, precision=precision)[0]) for made in (fused, apart))
        assert np.abs(found - other).max() < most, precision


@pytest.mark.parametrize("words", [{"match": "*", "df": "Float32"}, {"match": "*softmax*", "acc_df": "Float32"}])
def test_ops_that_rules_give_longer_formats_have_room(words: dict[str, str]):
    torch.manual_seed(0)
    model, x = Attention(192).eval(), torch.randn(1, 200, 192)
    target = {"arch": "wormhole_b0", "df": "Bfp8_b", "microbatch": 1, "objective": "latency", "effort": "low"}
    made = be.compile(model, (x,), mixed=[words], **target)
    assert any(placed.op.has_sums for placed in made.placement.ops.values())
    assert made.check(strict=True) == ()


class Shifted(torch.nn.Module):
    """A norm of wide rows that may be masks, and what it takes."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = x + torch.full((1024,), 1e4)
        return torch.nn.functional.layer_norm(x, (1024,)), x


def test_ops_that_get_16_bits_for_masks_have_room():
    """On grayskull in eight bits the whole norm had room, in 16 it has not."""
    words = {"arch": "grayskull", "df": "Bfp8_b", "microbatch": 1, "objective": "latency", "effort": "low"}
    made = be.compile(Shifted().eval(), (torch.randn(1, 64, 1024),), **words)
    assert made.check(strict=True) == ()


@needs_vendor_router
@pytest.mark.parametrize("arch", ["grayskull", "wormhole_b0"])
def test_the_vendors_programs_take_them(arch: str, tmp_path: Path):
    torch.manual_seed(0)
    made = be.compile(Attention(256).eval(), (torch.randn(1, 96, 256),), arch=arch, microbatch=1, objective="latency")
    assert any(placed.op.sums_rows and placed.blocks.grid[0] > 1 for placed in made.placement.ops.values())
    assert refusal(made.text, arch, tmp_path) == ""


def test_thousands_of_ops_that_follow_each_other_are_looked_through_quickly():
    """More than one fused op has: neither too deep, nor each with all before it."""
    graph = TileGraph(inputs={"x": InputQueue("x", "x", (1, 1, 2), (1, 32, 64))})
    for n in range(3000):
        graph.ops[f"a{n}"] = TileOp(f"a{n}", "exp", [Use(f"a{n - 2}" if n > 1 else "x")], (1, 1, 2))
        if n % 2:
            graph.ops[f"m{n}"] = TileOp(f"m{n}", "add", [Use(f"a{n}"), Use(f"a{n - 1}")], (1, 1, 2))
    begin = time.process_time()
    target = Target.from_names("wormhole_b0", "Float16_b", "HiFi3")
    assert len(fuse_rows(graph, lambda _: target).ops) == 4500
    assert time.process_time() - begin < 10
