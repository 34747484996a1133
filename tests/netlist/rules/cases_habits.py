"""Cases of what nothing refuses and hardly anybody means."""

from netlist.rules import bases as b
from netlist.rules.cases import Case

INPUTS = "inputs: [x, sp]"
WRAP = ("", "[$gp, incwrap, $c_one, 4]", "[$gp, incwrap, $c_one, 6]")
LOCAL_WRAP = ("", "[$lp, incwrap, $c_one, 4]", "[$lp, incwrap, $c_one, 6]")
BLOCK = ("rc", "out_df: Float16_b", "out_df: Bfp8_b")
READ_BLOCK = ("sp", "in_df: [Float16_b, Float16_b]", "in_df: [Bfp8_b, Float16_b]")
LAST_STEP = (
    ("r2", "type: subtract, inputs: [input0, intermed0]", "type: reciprocal, inputs: [intermed0]"),
    ("r2", "mblock: [2, 2], ublock: [1, 2]", "mblock: [2, 1], ublock: [1, 1]"),
    ("", ", input_1_tms: [broadcast: {c: 4}, tile_broadcast: c]", ""),
)
LOG = ("rc", "reciprocal", "log")
END = "untilize_output: false}"
A_ADDRESS = "0x10100000"
O_ADDRESS = "0x10f00000"
EMPTY = ("", "devices:", "buda-emu:\ndevices:")
OWN = ("", "devices:", "buda-emu: {undefined: stop}\ndevices:")

TWO_INPUTS = (("", "input_count: 1", "input_count: 2"), ("", "[$c_one, set, 1]", "[$c_one, set, 2]"))

CASES: tuple[Case, ...] = (
    Case(  # a result queue
        "V208", b.COPY, (*TWO_INPUTS, ("o", "entries: 2", "entries: 1")), "1",
        near=(("", "input_count: 1", "input_count: 2"),),
    ),
    Case(  # a streamed queue: batches of 2 do not divide 3 entries
        "V208", b.COPY, (*TWO_INPUTS, ("a", "entries: 2", "entries: 3"), WRAP, LOCAL_WRAP), "3",
        near=(
            ("", "input_count: 1", "input_count: 2"), ("a", "entries: 2", "entries: 3"), WRAP,
            ("", "a: {rd_ptr_local", "a: {prologue: true, rd_ptr_local"),
        ),
    ),
    Case(
        "V221", b.COPY, (("o", "  o: {", f"{b.queue('lonely', at='[4, 0x10000000]')}\n  o: {{"),), "lonely",
        near=(("o", "  o: {", f"{b.queue('lonely', 'cp', b.BLOCK, at='[4, 0x10000000]')}\n  o: {{"),),
    ),
    Case("V211", b.COPY, (("a", "entries: 2", "entries: 4, entries: 2"),), "entries"),
    Case(
        "V211", b.COPY, (("o", "entries: 2", "grid_size: [2, 2], entries: 2"),), "grid_size",
        near=(("o", "entries: 2", "entries: 2, layout: tilized"),),
    ),
    Case("V209", b.SOFTMAX, (("mu", INPUTS, "inputs: [x, rd]"),), "rd"),
    Case("V209", b.SOFTMAX, (("mu", INPUTS, "inputs: [rd, x]"),), "rd", near=(("mu", INPUTS, "inputs: [rc, rd]"),)),
    Case(  # through an op that leaves every element in its place
        "V209", b.SOFTMAX, (("mu", INPUTS, "inputs: [x, rc]"),), "rc", near=(("mu", INPUTS, "inputs: [x, b]"),),
    ),
    Case(  # zeros beside the column become 1/0
        "V212", b.SOFTMAX, (BLOCK, READ_BLOCK), "Bfp8_b",
        near=(BLOCK, READ_BLOCK, ("rd", "dim: c", "dim: r")),
    ),
    Case("V212", b.SOFTMAX, (BLOCK, READ_BLOCK, LOG), "Bfp8_b", near=(LOG,)),
    Case(  # of 0 these are 0
        "V212", b.SOFTMAX, (BLOCK, READ_BLOCK), "Bfp8_b", near=(BLOCK, READ_BLOCK, ("rc", "reciprocal", "sqrt")),
    ),
    Case(  # the last step of a fused op, of what it reduced itself
        "V212", b.FUSED_REDUCE,
        (
            *((name, "mblock: [2, 2], ublock: [1, 2]", "mblock: [2, 1], ublock: [1, 1]") for name in ("o", "fz")),
            ("fz", "out_df: Float16_b", "out_df: Bfp8_b"), ("o", "df: Float16_b", "df: Bfp8_b"), *LAST_STEP,
        ),
        "Bfp8_b",
        near=(
            *((name, "mblock: [2, 2], ublock: [1, 2]", "mblock: [2, 1], ublock: [1, 1]") for name in ("o", "fz")),
            *LAST_STEP,
        ),
    ),
    Case(  # a word that counts as none
        "V214", b.MATMUL, (("mm", "m_k: 3", "m_k: 3, sfpu_op: relu"),), "relu",
        near=(("mm", "m_k: 3", "m_k: 3, sfpu_op: invalid"),),
    ),
    Case(
        "V214", b.MATMUL, (("mm", "m_k: 3", "vector: rows, m_k: 3"),), "rows",
        near=(("mm", "m_k: 3", "sfpu_op: gelu, vector: r, m_k: 3"),),
    ),
    Case(  # on an op type that does not look at it
        "V214", b.ADD, (("ad", END, "untilize_output: false, attributes: {sfpu_op: gelu}}"),), "gelu",
        near=(("ad", END, "untilize_output: false, attributes: {relu_en: true, relu_mode: min, bias: false}}"),),
    ),
    Case("V214", b.ADD, (("ad", END, "untilize_output: false, attributes: {bias: true}}"),), "true"),
    Case("V214", b.ADD, (("ad", END, "untilize_output: false, attributes: {zero_point: 3.0}}"),), "3.0"),
    Case(  # details of a relu that is not there
        "V214", b.ADD, (("ad", END, "untilize_output: false, attributes: {relu_threshold: 0.5}}"),), "0.5",
        near=(("ad", END, "untilize_output: false, attributes: {relu_en: false, relu_threshold: 0.5}}"),),
    ),
    Case(
        "V215", b.MATMUL, (("mm", "m_k: 3", "m_k: 3, sfpu_op: tanh"),), "tanh",
        near=(("mm", "m_k: 3", "m_k: 3, sfpu_op: gelu"),),
    ),
    Case(  # beside an address with 0x
        "V217", b.COPY, (("a", A_ADDRESS, "11000000"),), "11000000", near=(("a", A_ADDRESS, "32"),),
    ),
    Case("V217", b.COPY, (("a", A_ADDRESS, "01100000"),), "01100000"),
    Case(
        "V219",
        b.COPY,
        (
            ("cp", "type: nop", "type: ethernet_datacopy"),
            ("cp", "untilize_output: false", "untilize_output: false, attributes: {dest_device: 0}"),
        ),
        "0",
        near=(
            ("cp", "type: nop", "type: ethernet_datacopy"),
            ("cp", "untilize_output: false", "untilize_output: false, attributes: {dest_device: 1}"),
        ),
    ),
    Case(  # round
        "V217", b.COPY, (("a", A_ADDRESS, "11000000"), ("o", O_ADDRESS, "1048576")), "11000000",
        near=(("a", A_ADDRESS, "268435456"), ("o", O_ADDRESS, "1048576")),
    ),
    Case("V213", b.COPY, (("", "devices:", "buda-emu: {undefined: nil}\ndevices:"),), "nil", near=(OWN,)),
    Case("V213", b.COPY, (("", "devices:", "buda-emu: {undefine: nan}\ndevices:"),), "undefine"),
    Case("V213", b.COPY, (("", "devices:", "buda-emu: nan\ndevices:"),), "nan", near=(EMPTY,)),
    Case(  # times a constant all is well, until it is repeated over the columns
        "V209", b.SOFTMAX,
        (
            ("mu", INPUTS, "inputs: [w, rd], input_1_tms: [broadcast: {c: 2}]"),
            *((name, "ublock: [1, 1]", "ublock: [1, 2]") for name in ("mu", "o", "w", "pl", "q")),
        ),
        "rd",
        near=(("mu", INPUTS, "inputs: [b, rd]"),),
    ),
)  # fmt: skip
