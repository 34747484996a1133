"""Lowering, formats, slices and placement, as texts before and after."""

from dataclasses import replace

from buda_emu.compiler.mixed import Rule
from buda_emu.compiler.pipeline import DEFAULT, Context
from buda_emu.compiler.target import L1_RESERVED, Precision, Target
from compiler.pass_pairs import becomes, stays

FEEDS = """
    tile "g":
      input x {label: "x", shape: (1, 1, 2), view: (1, 8, 64)}
      constant w {values: float32[1, 64, 32] = 0.5}
"""
PRODUCT = '      p = matmul(x, w) : [1, 1, 1] with {inner: 2, source: "p"}\n'
EXP = '      y = exp(p) : [1, 1, 1] with {source: "y"}\n'
OUT = '      output out {label: "y", op: "y", view: (1, 8, 32), host_shape: (8, 32), dtype: "float32"}\n'
BLOCKS = Context(Target.from_names("wormhole_b0", "Bfp8_b", "HiFi3"))


def test_a_product_and_a_function_are_lowered():
    becomes(
        "lower",
        """
        core "g":
          x = input {label: "x"} : float32[8, 64] from "x"
          w = constant {value: float32[64, 32] = 0.5} : float32[64, 32]
          p = matmul(x, w) : float32[8, 32] from "layer"
          y = exp(p) : float32[8, 32]
          output "y" = y : float32
    """,
        """
        tile "g":
          input x {label: "x", shape: (1, 1, 2), view: (1, 8, 64)}
          constant p.weights {values: float32[1, 64, 32] = 0.5}
          p.matmul = matmul(x, p.weights) : [1, 1, 1] with {inner: 2, source: "p"}
          y.1 = exp(p.matmul) : [1, 1, 1] with {source: "y"}
          y.output_nop = nop(y.1) {untilize: true} : [1, 1, 1] with {source: "y"}
          output y {label: "y", op: "y.output_nop", view: (1, 8, 32), host_shape: (8, 32), dtype: "float32"}
          value p = p.matmul Layout(dims: "8r, 32c", extent: (1, 32, 32))
          value y = y.1 Layout(dims: "8r, 32c", extent: (1, 32, 32))
    """,
    )


def test_a_rule_gives_the_ops_that_it_names_formats():
    coarse = PRODUCT.replace('"p"}', '"p", precision: Precision(df: "Bfp8_b", fidelity: "LoFi")}')
    rules = Context(rules=(Rule("p", Precision("Bfp8_b", "", "LoFi")),))
    becomes("mixed_formats", FEEDS + PRODUCT + EXP + OUT, FEEDS + coarse + EXP + OUT, rules)


MASK = "      constant mask {values: float32[1, 32, 32] = -10000.0}\n"
MASKED = '      a = add(p, mask) : [1, 1, 1] with {source: "a"}\n' + EXP.replace("(p)", "(a)")


def test_a_sum_with_a_mask_has_16_bits_and_what_is_small_again_has_not():
    apart = MASKED.replace('"a"}', '"a", precision: Precision(df: "Float16_b")}')
    becomes("masks", FEEDS + MASK + PRODUCT + MASKED + OUT, FEEDS + MASK + PRODUCT + apart + OUT, BLOCKS)


def test_small_constants_are_no_masks():
    stays("masks", FEEDS + MASK.replace("-10000.0", "-8.0") + PRODUCT + MASKED + OUT, BLOCKS)


def test_what_writes_a_state_has_its_format():
    state = """      state s {label: "s", host_shape: (8, 32), dtype: "float32", layout: Layout(dims: "8r, 32c", \
extent: (1, 32, 32)), held: float32[1, 32, 32] = 0.0, df: "Float32"}
"""
    added = '      y = add(p, s) : [1, 1, 1] with {source: "y"}\n'
    wide = added.replace('"y"}', '"y", precision: Precision(df: "Float32")}')
    store = '      store s {op: "y", accumulate: true}\n'
    becomes(
        "state_formats", FEEDS + state + PRODUCT + added + OUT + store, FEEDS + state + PRODUCT + wide + OUT + store
    )


TALL = """
    tile "g":
      input x {label: "x", shape: (1, 8, 2), view: (1, 256, 64)}
      constant w {values: float32[1, 64, 32] = 0.5}
      p = matmul(x, w) : [1, 8, 1] with {inner: 2, source: "p"}
      y = exp(p) : [1, 8, 1] with {source: "y"}
      output out {label: "y", op: "y", view: (1, 256, 32), host_shape: (256, 32), dtype: "float32"}
"""


def test_rows_that_no_core_has_room_for_run_in_slices():
    small = replace(DEFAULT, arch=replace(DEFAULT.arch, grid=(1, 1), l1_bytes=L1_RESERVED + (32 << 10)))
    sliced = TALL.replace("matmul(x, w) : [1, 8, 1]", "matmul(x <vslice 4>, w <broadcast z 4>) : [4, 2, 1]")
    becomes("stream_rows", TALL, sliced.replace("exp(p) : [1, 8, 1]", "exp(p) : [4, 2, 1]"), Context(small))
    stays("stream_rows", TALL)


PLACED = """
    placed "g":
      rounds {epochs: 1, microbatch: 1, ids: (), copies: 1, step: 1}
      input x {label: "x", shape: (1, 1, 2), view: (1, 8, 64)}
      constant w {values: float32[1, 64, 32] = 0.5}
      p = matmul(x, w) : [1, 1, 1] with {inner: 2, source: "p"}
        at (0, 0) {blocks: Blocks(grid: (1, 1), t: 1, mblock: (1, 1), ublock: (1, 1), m_k: 1, u_kt: 2), epoch: 0}
      y = exp(p) : [1, 1, 1] with {source: "y"}
        at (0, 1) {blocks: Blocks(grid: (1, 1), t: 1, mblock: (1, 1), ublock: (1, 1)), epoch: 0}
      output out {label: "y", op: "y", view: (1, 8, 32), host_shape: (8, 32), dtype: "float32"}
      queue x {input: "HOST", role: "input", blocks: Blocks(grid: (1, 1), t: 1, mblock: (1, 2), ublock: (1, 1)), \
df: "Float16_b", type: "queue", entries: 2, loc: "dram", addresses: ((0, 268435456))}
      queue w {input: "HOST", role: "constant", blocks: Blocks(grid: (1, 1), t: 1, mblock: (2, 1), ublock: (1, 1)), \
df: "Float16_b", type: "ram", entries: 1, loc: "dram", addresses: ((1, 268435456)), tensor: "w"}
      queue out {input: "y", role: "output", blocks: Blocks(grid: (1, 1), t: 1, mblock: (1, 1), ublock: (1, 1)), \
df: "Float16_b", type: "queue", entries: 2, loc: "host", addresses: ((0, 0))}
      held w of p = w
"""


def test_two_ops_are_placed_beside_each_other():
    becomes("search", FEEDS + PRODUCT + EXP + OUT, PLACED)


FORK = """
    placed "g":
      rounds {epochs: 1, microbatch: 1, ids: (), copies: 1, step: 1}
      input x {label: "x", shape: (6, 2, 2), view: (6, 64, 64)}
      e = exp(x) : [6, 2, 2] with {source: "e"}
        at (0, 0) {blocks: Blocks(grid: (1, 1), t: 6, mblock: (1, 1), ublock: (2, 2)), epoch: 0}
      m = reduce(e) {dim: "z", type: "max", z: 6} : [1, 2, 2] with {source: "m"}
        at (0, 1) {blocks: Blocks(grid: (1, 1), t: 1, mblock: (1, 1), ublock: (2, 2)), epoch: 0}
      y = subtract(e, m <broadcast z 6>) : [6, 2, 2] with {source: "y"}
        at (0, 2) {blocks: Blocks(grid: (1, 1), t: 6, mblock: (1, 1), ublock: (2, 2)), epoch: 0}
      output out {label: "y", op: "y", view: (6, 64, 64), host_shape: (6, 64, 64), dtype: "float32"}
      queue x {input: "HOST", role: "input", blocks: Blocks(grid: (1, 1), t: 6, mblock: (2, 2), ublock: (1, 1)), \
df: "Float16_b", type: "queue", entries: 2, loc: "dram", addresses: ((0, 268435456))}
      queue out {input: "y", role: "output", blocks: Blocks(grid: (1, 1), t: 6, mblock: (1, 1), ublock: (2, 2)), \
df: "Float16_b", type: "queue", entries: 2, loc: "host", addresses: ((0, 0))}
"""


def test_the_short_branch_beside_a_maximum_over_all_slices_gets_room():
    """Of the six slices four are kept beyond the two that the operand's own buffer holds."""
    becomes("fork_room", FORK, FORK.replace("subtract(e,", "subtract(e <buffer 16>,"))
    stays("fork_room", FORK.replace("subtract(e,", "subtract(e <buffer 16>,"))
