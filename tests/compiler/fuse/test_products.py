"""A product goes into the element-wise op that reads it."""

import pytest

from compiler.pass_pairs import becomes, stays

FEEDS = """
    tile "g":
      input x {label: "x", shape: (1, 1, 4), view: (1, 32, 128)}
      input r {label: "r", shape: (1, 1, 2), view: (1, 32, 64)}
      constant w {values: float32[1, 128, 64] = 2.0}
      constant row {values: float32[1, 32, 64] = 0.5}
"""
PRODUCT = '      p = matmul(x, w) : [1, 1, 2] with {inner: 4, source: "p"}\n'
SUM = '      y = add(r, p) : [1, 1, 2] with {source: "y"}\n'
OUT = '      output out {label: "y", op: "y", view: (1, 32, 64), host_shape: (32, 64), dtype: "float32"}\n'


def test_what_is_added_to_a_product_is_added_where_it_is_made():
    fused = """
      y = fused_op(r, x, w) : [1, 1, 2] with {source: "y", made_of: ("p", "y")}
        step p = matmul(input1, input2) : intermed0 {inner: 4}
        step y = add(input0, intermed0) : output {pop: ("intermed0")}
"""
    becomes("fuse_products", FEEDS + PRODUCT + SUM + OUT, FEEDS + fused + OUT)


def test_a_constant_bias_is_added_on_the_way():
    biased = PRODUCT.replace("(x, w)", "(x, w, row) {bias: true}")
    fused = """
      y = fused_op(r, x, w, row) : [1, 1, 2] with {source: "y", made_of: ("p", "y")}
        step p.sum = matmul(input1, input2) : intermed0 {inner: 4}
        step p = add(intermed0, input3) : intermed0 {pop: ("intermed0")}
        step y = add(input0, intermed0) : output {pop: ("intermed0")}
"""
    becomes("fuse_products", FEEDS + biased + SUM + OUT, FEEDS + fused + OUT)


def test_two_products_are_added_in_one_op():
    second = '      q = matmul(x, w) : [1, 1, 2] with {inner: 4, source: "q"}\n'
    fused = """
      y = fused_op(x, w, x, w) : [1, 1, 2] with {source: "y", made_of: ("q", "p", "y")}
        step q = matmul(input0, input1) : intermed0 {inner: 4}
        step p = matmul(input2, input3) : intermed1 {inner: 4}
        step y = add(intermed0, intermed1) : output {pop: ("intermed0", "intermed1")}
"""
    both = SUM.replace("(r, p)", "(q, p)")
    becomes("fuse_products", FEEDS + PRODUCT + second + both + OUT, FEEDS + fused + OUT)


LATER = '      z = exp(r) : [1, 1, 2] with {source: "z"}\n'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SUM, LATER + SUM.replace("(r, p)", "(z, p)")),  # it would wait for what is added
        ("matmul(x, w)", 'matmul(x, w) {relu_en: true, relu_mode: "min", relu_threshold: 0.0}'),
        ("add(r, p)", "add(r, p <vslice 1>)"),  # not read as it is
        (OUT, OUT + OUT.replace("out {", "more {").replace('op: "y"', 'op: "p"')),  # the host reads it
        (SUM, SUM.replace("add(r, p)", "sigmoid(p)")),  # the vector unit takes longer than the way
    ],
)
def test_what_gains_nothing_stays(old: str, new: str):
    stays("fuse_products", (FEEDS + PRODUCT + SUM + OUT).replace(old, new))
