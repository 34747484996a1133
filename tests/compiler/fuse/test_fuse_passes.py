"""Netlist ops that are put together, as texts."""

from compiler.pass_pairs import becomes, stays

FEEDS = """
    tile "g":
      input x {label: "x", shape: (1, 1, 2), view: (1, 8, 64)}
      constant w {values: float32[1, 64, 32] = 0.5}
      constant row {values: float32[1, 32, 32] = 2.0}
"""
PRODUCT = '      p = matmul(x, w) : [1, 1, 1] with {inner: 2, source: "p"}\n'
OUT = '      output out {label: "y", op: "y", view: (1, 8, 32), host_shape: (8, 32), dtype: "float32"}\n'


def test_a_row_becomes_the_bias_of_the_product():
    added = '      y = add(p, row) : [1, 1, 1] with {source: "y"}\n'
    biased = '      y = matmul(x, w, row) {bias: true} : [1, 1, 1] with {inner: 2, source: "y", made_of: ("p", "y")}\n'
    becomes("fuse_bias", FEEDS + PRODUCT + added + OUT, FEEDS + biased + OUT)


def test_a_product_that_is_read_twice_has_no_bias():
    added = """      a = add(p, row) : [1, 1, 1] with {source: "a"}
      y = add(p, a) : [1, 1, 1] with {source: "y"}
"""
    stays("fuse_bias", FEEDS + PRODUCT + added + OUT)


def test_gelu_goes_into_the_product():
    after = '      y = gelu(p) : [1, 1, 1] with {source: "y"}\n'
    one = '      y = matmul(x, w) {sfpu_op: "gelu"} : [1, 1, 1] with {inner: 2, source: "y", made_of: ("p", "y")}\n'
    becomes("fuse_activation", FEEDS + PRODUCT + after + OUT, FEEDS + one + OUT)


def test_a_clamp_becomes_the_packers():
    clamp = '{relu_en: true, relu_threshold: 0.0, relu_mode: "min"}'
    after = f'      y = nop(p) {clamp} : [1, 1, 1] with {{source: "y"}}\n'
    one = f'      y = matmul(x, w) {clamp} : [1, 1, 1] with {{inner: 2, source: "y", made_of: ("p", "y")}}\n'
    becomes("fuse_relu", FEEDS + PRODUCT + after + OUT, FEEDS + one + OUT)


def test_a_chain_becomes_one_op():
    chain = """      a = add(p, row) : [1, 1, 1] with {source: "a"}
      y = multiply(a, row) : [1, 1, 1] with {source: "y"}
"""
    one = """      y = fused_op(p, row) : [1, 1, 1] with {source: "y", made_of: ("a", "y")}
        step a = add(input0, input1) : dest
        step y = multiply(dest, input1) : output
"""
    becomes("fuse_chains", FEEDS + PRODUCT + chain + OUT, FEEDS + PRODUCT + one + OUT)


def test_a_product_of_what_was_8_bits_is_one_of_integers():
    """x is 1/32 of an integer, the weights 3/4 of one: the sum counts in units of 3/128."""
    feeds = """
    tile "g":
      input x {label: "x", shape: (1, 1, 2), view: (1, 8, 64)}
      constant factor {values: float32[1, 32, 32] = 32.0, kind: "scale"}
"""
    scale = '      constant scale {values: float32[1, 32, 32] = 0.03125, kind: "scale"}\n'
    weights = "      constant w {values: float32[1, 64, 32] = 0.75}\n"
    rounded = """      r = quantization(x, factor <broadcast c 2>) {zero_point: 0.0} : [1, 1, 2] with {source: "r", \
precision: Precision(df: "Int8", acc_df: "Int32", fidelity: "HiFi4")}
"""
    scaled = """      d = dequantization(r, scale <broadcast c 2>) {zero_point: 0.0} : [1, 1, 2] with {source: "d", \
precision: Precision(df: "Float32", acc_df: "Int32", fidelity: "HiFi4")}
      y = matmul(d, w) : [1, 1, 1] with {inner: 2, source: "y"}
"""
    integers = """      constant y.codes {values: float32[1, 64, 32] = 1.0, kind: "codes"}
      constant y.terms {values: float32[1, 32, 32] = -0.0, kind: "sums"}
      constant y.scale {values: float32[1, 32, 32] = 0.0234375, kind: "scale"}
"""
    product = """      y = matmul(r, y.codes, y.terms, y.scale) {bias: true, dequant: true} : [1, 1, 1] with \
{inner: 2, source: "y", precision: Precision(acc_df: "Int32", fidelity: "HiFi4")}
"""
    before = feeds + scale + weights + rounded + scaled + OUT
    becomes("integer_products", before, feeds + integers + rounded + product + OUT)
