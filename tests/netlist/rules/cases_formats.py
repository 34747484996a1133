"""Cases of the rules on data formats."""

from netlist.rules import bases as b
from netlist.rules.cases import Case

CASES = (
    Case("V029", b.UNTILIZE, (("un", "ublock_order: r", "ublock_order: c"),), "c"),
    Case(
        "V030",
        b.UNTILIZE,
        (
            ("un", "out_df: Float16_b", "out_df: Bfp8_b"),
            ("o", "df: Float16_b", "df: Bfp8_b"),
        ),
        "Bfp8_b",
        near=(
            ("un", "out_df: Float16_b", "out_df: Int8"),
            ("o", "df: Float16_b", "df: Int8"),
        ),
    ),
    Case(
        "V031",
        b.GRADIENT,
        (("gm", "type: multiply", "type: add"),),
        "true",
        near=(("gm", "type: multiply", "type: multiply, type: multiply"),),
        arch="grayskull",
    ),
    Case(
        "V039",
        b.REDUCE,
        (
            ("rd", "in_df: [Float16_b]", "in_df: [Float16]"),
            ("a", "df: Float16_b", "df: Float16"),
            ("rd", "acc_df: Float16_b", "acc_df: Float32"),
        ),
        "Float16",
        near=(("rd", "acc_df: Float16_b", "acc_df: Float32"),),
    ),
    Case(
        "V071",
        b.UNTILIZE,
        (
            (
                "o",
                (
                    "grid_size: [1, 1], t: 1, df: Float16_b, target_device: 0, mblock: [2, 1], ublock: [1, 1], "
                    "loc: dram, dram: [[0"
                ),
                (
                    "grid_size: [2, 1], t: 1, df: Float16_b, target_device: 0, mblock: [1, 1], ublock: [1, 1], "
                    "loc: dram, dram: [[0, 0x10f00000], [1"
                ),
            ),
        ),
        "[2, 1]",
    ),
    Case("V071", b.UNTILIZE, (("o", "input: un", "input: HOST"),), "true"),
    Case(
        "V072",
        b.UNTILIZE,
        (
            (
                "",
                "programs:",
                (
                    "    c2: {type: nop, inputs: [o], in_df: [Float16_b], mblock: [2, 1], ublock: [1, 1], "
                    "grid_loc: [4, 4], grid_size: [1, 1], t: 1, out_df: Float16_b, intermed_df: Float16_b, "
                    "acc_df: Float16_b, math_fidelity: HiFi4, ublock_order: r, buf_size_mb: 2}\nprograms:"
                ),
            ),
        ),
        "o",
        near=(
            (
                "",
                "programs:",
                (
                    "    c2: {type: nop, inputs: [a], in_df: [Float16_b], mblock: [2, 1], ublock: [1, 1], "
                    "grid_loc: [4, 4], grid_size: [1, 1], t: 1, out_df: Float16_b, intermed_df: Float16_b, "
                    "acc_df: Float16_b, math_fidelity: HiFi4, ublock_order: r, buf_size_mb: 2}\nprograms:"
                ),
            ),
        ),
    ),
    Case(
        "V090",
        b.COPY,
        (("cp", "acc_df: Float16_b", "acc_df: Float32"),),
        "Float32",
        near=(("cp", "acc_df: Float16_b", "acc_df: Float16"),),
        arch="grayskull",
    ),
    Case(
        "V090",
        b.MATMUL,
        (("mm", "out_df: Float16_b", "out_df: Float16"),),
        "Float16_b",
        near=(("mm", "out_df: Float16_b", "out_df: Float32"),),
        arch="grayskull",
    ),
    Case(
        "V091",
        b.MATMUL,
        (("mm", "intermed_df: Float16_b", "intermed_df: Bfp4_b"),),
        "Bfp4_b",
        near=(("mm", "intermed_df: Float16_b", "intermed_df: Bfp8_b"),),
    ),
    Case(
        "V092",
        b.MATMUL,
        (
            ("mm", "acc_df: Float16_b", "acc_df: Float32"),
            ("mm", "bias: true", "bias: true, l1_acc: true"),
        ),
        "Float16_b",
        near=(
            ("mm", "acc_df: Float16_b", "acc_df: Float32"),
            ("mm", "intermed_df: Float16_b", "intermed_df: Float32"),
            ("mm", "bias: true", "bias: true, l1_acc: true"),
        ),
    ),
    Case(
        "V093",
        b.COPY,
        (("cp", "acc_df: Float16_b", "acc_df: Float32"),),
        "Float16_b",
        near=(
            ("cp", "acc_df: Float16_b", "acc_df: Float32"),
            ("cp", "in_df: [Float16_b]", "in_df: [Float32]"),
            ("a", "df: Float16_b", "df: Float32"),
        ),
        arch="wormhole",
    ),
    Case(
        "V094",
        b.COPY,
        (
            ("cp", "untilize_output: false", "untilize_output: false, attributes: {stoch_rnd_mode: fpu}"),
            ("cp", "acc_df: Float16_b", "acc_df: Float32"),
        ),
        "fpu",
        near=(
            ("cp", "untilize_output: false", "untilize_output: false, attributes: {stoch_rnd_mode: pack}"),
            ("cp", "acc_df: Float16_b", "acc_df: Float32"),
        ),
    ),
    Case(
        "V094",
        b.COPY,
        (
            ("cp", "untilize_output: false", "untilize_output: false, attributes: {stoch_rnd_mode: all}"),
            ("cp", "intermed_df: Float16_b", "intermed_df: Bfp8_b"),
        ),
        "all",
        near=(
            ("cp", "untilize_output: false", "untilize_output: false, attributes: {srnd_fpu_en: true}"),
            ("cp", "intermed_df: Float16_b", "intermed_df: Bfp8_b"),
        ),
    ),
    Case("V095", b.GRADIENT, (("gm", "intermed_df: Float16_b", "intermed_df: Float32"),), "Float32"),
    Case(
        "V095",
        b.GRADIENT,
        (("gm", "acc_df: Float16_b", "acc_df: Int32"),),
        "Int32",
        near=(("gm", "acc_df: Float16_b", "acc_df: Float32"),),
    ),
    Case(
        "V095",
        b.GRADIENT,
        (("gm", "type: multiply", "type: maximum"),),
        "true",
        near=(("gm", "type: multiply", "type: add"),),
    ),
    Case(
        "V095",
        b.GRADIENT,
        (("gm", "gradient_op: true", "gradient_op: true, input_0_tms: [transpose]"),),
        "[transpose]",
        near=(("gm", "gradient_op: true", "gradient_op: true, input_0_tms: [broadcast: {r: 1}]"),),
    ),
    Case("V096", b.REDUCE_Z, (("rd", "untilize_output: false", "untilize_output: true"),), "z"),
    Case("V097", b.REDUCE_Z, (("rd", "intermed_df: Float16_b", "intermed_df: Float32"),), "[Float16_b]"),
    Case("V098", b.SPLICE, (("sp", "Float16_b]", "Float16]"),), "Float16"),
    Case(
        "V099",
        b.MATMUL,
        (
            ("mm", "bias: true", "bias: true, l1_acc: true"),
            ("mm", "intermed_df: Float16_b", "intermed_df: Float16"),
        ),
        "Float16",
        near=(("mm", "bias: true", "bias: true, l1_acc: true"),),
    ),
    Case(
        "V100",
        b.COPY,
        (
            ("cp", "in_df: [Float16_b]", "in_df: [UInt16]"),
            ("a", "df: Float16_b", "df: UInt16"),
        ),
        "UInt16",
        near=(
            ("cp", "in_df: [Float16_b]", "in_df: [RawUInt16]"),
            ("a", "df: Float16_b", "df: RawUInt16"),
        ),
    ),
    Case("V100", b.COPY, (("cp", "out_df: Float16_b", "out_df: UInt16"),), "UInt16"),
    Case("V100", b.COPY, (("cp", "intermed_df: Float16_b", "intermed_df: UInt16"),), "UInt16"),
    Case(
        "V100",
        b.TOPK,
        (("tk", "sort: max", "sort: argmax"),),
        "Float16_b",
        near=(
            ("tk", "sort: max", "sort: argmax"),
            ("tk", "out_df: Float16_b", "out_df: UInt16"),
            ("o", "df: Float16_b", "df: UInt16"),
        ),
    ),
    Case(
        "V100",
        b.TOPK,
        (("tk", "acc_df: Float16_b", "acc_df: Float32"),),
        "Float32",
        near=(
            ("tk", "acc_df: Float16_b", "acc_df: Float32"),
            ("tk", "UInt16]", "RawUInt32]"),
            ("i", "df: UInt16", "df: RawUInt32"),
        ),
    ),
    Case(
        "V101",
        b.DEQUANTIZATION,
        (
            ("dq", "in_df: [Int8", "in_df: [UInt8"),
            ("a", "df: Int8", "df: UInt8"),
        ),
        "UInt8",
        near=(
            ("dq", "in_df: [Int8", "in_df: [Int32"),
            ("a", "df: Int8", "df: Int32"),
        ),
    ),
    Case("V102", b.INT_ADD, (("ad", "math_fidelity: HiFi4", "math_fidelity: HiFi3"),), "HiFi3"),
    Case("V102", b.INT_ADD, (("ad", "acc_df: Int32", "acc_df: Float32"),), "Float32"),
    Case(
        "V102",
        b.INT_ADD,
        (("ad", "intermed_df: Int8", "intermed_df: Float16_b"),),
        "Float16_b",
        near=(("ad", "intermed_df: Int8", "intermed_df: Int32"),),
    ),
    Case(
        "V102",
        b.INT_ADD,
        (
            ("ad", "out_df: Int32", "out_df: Float16_b"),
            ("ad", "relu_mode: min", "relu_mode: max"),
            ("o", "df: Int32", "df: Float16_b"),
        ),
        "Float16_b",
    ),
    Case("V102", b.INT_ADD, (("ad", "type: add", "type: subtract"),), "Int32"),
    Case("V102", b.INT_ADD, (("ad", "relu_mode: min", "relu_mode: max"),), "max"),
    Case(
        "V102",
        b.INT_ADD,
        (("ad", "relu_mode: min", "relu_mode: min, relu_threshold: 2"),),
        "2",
        near=(("ad", "relu_mode: min", "relu_mode: min, relu_threshold: 0.0"),),
    ),
    Case(
        "V102",
        b.COPY,
        (("cp", "acc_df: Float16_b", "acc_df: Int32, type: datacopy"),),
        "Int32",
        near=(("cp", "acc_df: Float16_b", "acc_df: Int32"),),
    ),
    Case("V102", b.INT_MATMUL, (("mm", "requant: true", "requant: true, dequant: true"),), "true"),
    Case(
        "V102",
        b.INT_MATMUL,
        (("mm", "requant: true", "requant: true, min_buffer_input: 1"),),
        "1",
        near=(("mm", "requant: true", "requant: true, min_buffer_input: 0"),),
    ),
    Case(
        "V102",
        b.INT_MATMUL,
        (
            ("mm", "Float32]", "Int32]"),
            ("s", "df: Float32", "df: Int32"),
        ),
        "Int32",
    ),
    Case(
        "V102",
        b.INT_MATMUL,
        (
            ("mm", "Int32", "Int8"),
            ("c", "df: Int32", "df: Int8"),
        ),
        "Int8",
    ),
    Case(
        "V102",
        b.INT_MATMUL,
        (
            ("mm", "in_df: [Int8", "in_df: [Int32"),
            ("a", "df: Int8", "df: Int32"),
        ),
        "Int32",
        near=(
            ("mm", "in_df: [Int8", "in_df: [UInt8"),
            ("a", "df: Int8", "df: UInt8"),
        ),
    ),
    Case(
        "V102",
        b.MATMUL,
        (("mm", "bias: true", "bias: true, dequant: true"),),
        "true",
        near=(("mm", "bias: true", "bias: true, dequant: false"),),
    ),
    Case("V103", b.QUANTIZATION, (("qn", "out_df: Int8", "out_df: Int32"),), "Int32"),
    Case(
        "V103",
        b.QUANTIZATION,
        (
            ("qn", "Float32]", "Float16_b]"),
            ("s", "df: Float32", "df: Float16_b"),
        ),
        "Float16_b",
    ),
    Case("V103", b.DEQUANTIZATION, (("dq", "out_df: Float32", "out_df: Float16_b"),), "Float16_b"),
)
