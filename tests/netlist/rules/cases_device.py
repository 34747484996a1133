"""Cases of the rules on the device's compiler and runtime."""

from netlist.rules import bases as b
from netlist.rules.cases import Case

READER_OF_RD = b.op("c2", "nop", "rd", "mblock: [2, 1], ublock: [1, 1]", grid_loc="[1, 0]")

CASES = (
    Case(
        "V178",
        b.REDUCE,
        (("rd", "ublock_order: r", "ublock_order: c"), ("", "programs:", f"{READER_OF_RD}\nprograms:")),
        "c",
        near=(("rd", "ublock_order: r", "ublock_order: c"),),
    ),
    Case(
        "V179",
        b.ADD,
        (("b", "mblock: [2, 2]", "mblock: [2, 1]"),),
        "b",
        near=(
            ("b", "mblock: [2, 2]", "mblock: [2, 1]"),
            ("ad", "untilize_output", "input_1_tms: [broadcast: {c: 2}], untilize_output"),
        ),
    ),
    Case(
        "V179",
        b.COPY,
        (("cp", "untilize_output", "input_0_tms: [hslice: 3], untilize_output"),),
        "a",
        near=(("cp", "untilize_output", "input_0_tms: [hslice: 2, hstack: 2], untilize_output"),),
    ),
    Case(
        "V179",
        b.COPY,
        (("o", "mblock: [2, 2]", "mblock: [2, 4]"),),
        "[2, 4]",
        near=(
            ("o", "mblock: [2, 2]", "mblock: [2, 4]"),
            ("o", "loc: dram", "input_tms: [broadcast: {c: 2}], loc: dram"),
        ),
    ),
    Case(
        "V179",
        b.COPY,
        (("cp", "untilize_output", "input_0_pad: {rt: 1, ct: 0, pad_value: 0.0}, untilize_output"),),
        "a",
        near=(
            (
                "cp",
                "untilize_output",
                "input_0_unpad: {rt: 1, ct: 0}, input_0_pad: {rt: 1, ct: 0, pad_value: 0.0}, untilize_output",
            ),
        ),
    ),
    Case("V179", b.MATMUL, (("mm", "m_k: 3", "m_k: 2"),), "2"),
    Case("V179", b.MATMUL, (("mm", "broadcast: {r: 2}", "broadcast: {r: 1}"),), "b"),
    Case("V179", b.IDENTITY, (("im", "m_k: 2", "m_k: 1"),), "a"),
    Case(
        "V179",
        b.IDENTITY,
        (("a", "t: 1", "t: 2"), ("im", "m_k: 2", "m_k: 4"), ("im", "identity: true", "identity: true, act_t: 2")),
        "a",
        near=(("a", "t: 1", "t: 2"), ("im", "identity: true", "identity: true, act_t: 2")),
    ),
    Case("V179", b.REDUCE, (("rd", "m_k: 2, u_kt: 2", "m_k: 2, u_kt: 3"),), "3"),
    Case("V179", b.REDUCE_Z, (("rd", "z: 2", "z: 4"),), "a", near=(("rd", ", z: 2", ""),)),
    Case("V179", b.DEPTHWISE, (("w", "mblock: [4, 1]", "mblock: [1, 4]"),), "w"),
    Case("V179", b.TOPK, (("tk", "u_kt: 2", "u_kt: 4"),), "4"),
    Case("V076", b.GRADIENT, (("o", "mblock: [1, 1]", "mblock: [1, 2]"),), "[1, 2]"),
    Case(
        "V077",
        b.UNTILIZE,
        (("o", "mblock: [2, 1]", "mblock: [1, 2]"),),
        "[1, 2]",
        near=(("o", "mblock: [2, 1], ublock: [1", "mblock: [1, 1], ublock: [2"),),
    ),
    Case(
        "V078",
        b.MATMUL,
        (
            ("o", "grid_size: [2", "grid_size: [1"),
            (
                "o",
                "mblock: [1, 2], ublock: [1, 2], loc: dram, dram: [[0, 0x30000000], [1",
                "mblock: [2, 2], ublock: [1, 2], loc: dram, dram: [[0",
            ),
        ),
        "[1, 1]",
        near=(
            ("o", "1]", "2]"),
            (
                "o",
                "2], ublock: [1, 2], loc: dram, dram: [[0, 0x30000000], [1",
                "1], ublock: [1, 2], loc: dram, dram: [[0, 0x30000000], [1, 0x30000000], [2, 0x30000000], [3",
            ),
        ),
    ),
    Case(
        "V079",
        b.COPY,
        (("cp", "in_df: [Float16_b]", "in_df: [Bfp8_b]"),),
        "Bfp8_b",
        near=(
            ("cp", "in_df: [Float16_b]", "in_df: [Bfp8_b]"),
            ("a", "df: Float16_b", "df: Bfp8_b"),
        ),
    ),
    Case("V079", b.COPY, (("cp", "out_df: Float16_b", "out_df: Bfp8_b"),), "Float16_b"),
    Case(
        "V080",
        b.COPY,
        (("cp", "buf_size_mb: 2", "buf_size_mb: 3"),),
        "3",
        near=(("cp", "buf_size_mb: 2", "buf_size_mb: 4"),),
    ),
    Case(
        "V080",
        b.COPY,
        (("cp", "buf_size_mb: 2", "buf_size_mb: 0"),),
        "0",
        near=(("cp", "buf_size_mb: 2", "buf_size_mb: 1"),),
    ),
    Case(
        "V080",
        b.SPLICE,
        (("sp", "buf_size_mb: 2", "buf_size_mb: 6"),),
        "6",
        near=(("sp", "buf_size_mb: 2", "buf_size_mb: 8"),),
    ),
    Case("V082", b.TILIZER, (("a", "loc: dram, dram: [[0, 0x10100000]]", "loc: host, host: [0x1000]"),), "a"),
    Case("V083", b.MATMUL, (("mm", ", bias: true", ""),), "[x, w, b]", near=(("mm", ", bias: true", " , bias: yes"),)),
    Case("V085", b.ADD, (("ad", "b], in_df: [Float16_b", "b, b], in_df: [Float16_b, Float16_b"),), "[a, b, b]"),
    Case(
        "V150",
        b.COPY,
        (("cp", "grid_loc: [0", "grid_loc: [10"),),
        "[10, 0]",
        near=(("cp", "grid_loc: [0, 0]", "grid_loc: [9, 7]"),),
    ),
    Case(
        "V150",
        b.MATMUL,
        (("mm", "0]", "7], grid_transpose: true"),),
        "[0, 7]",
        near=(("mm", "0]", "6], grid_transpose: true"),),
    ),
    Case("V151", b.COPY, (("a", "[[0", "[[6"),), "[6, 0x10100000]", near=(("a", "[[0", "[[5"),)),
    Case(
        "V152",
        b.COPY,
        (("a", "0x10100000]]", "0x7fffff00]]"),),
        "[0, 0x7fffff00]",
        near=(("a", "0x10100000]]", "0x7fff0000]]"),),
    ),
    Case(
        "V154",
        b.ADD,
        (("b", "0x10200000]]", "0x10104000]]"),),
        "[0, 0x10104000]",
        near=(("b", "0x10200000]]", "0x10110000]]"),),
    ),
    Case(
        "V154",
        b.ADD,
        (("b", "0x10200000]]", "0x100fffe0]]"),),
        "[0, 0x10100000]",
        near=(("b", "[[0, 0x10200000]]", "[[1, 0x10100000]]"),),
    ),
    Case(
        "V155",
        b.IN_TURN,
        (
            ("b", "0x10200000]]", "0x10200000]], host: [0x1000]"),
            ("b", "loc: dram", "loc: host"),
            ("", "    - loop", "    - allocate_queue: [b]\n    - loop"),
        ),
        "host",
        near=(("", "    - loop", "    - allocate_queue: [b]\n    - loop"),),
    ),
    Case(
        "V156",
        b.COPY,
        (("a", "loc: dram, dram: [[0, 0x10100000]]", "loc: host, host: [[0, 0x37fff000]]"),),
        "[0, 0x37fff000]",
        near=(("a", "loc: dram, dram: [[0, 0x10100000]]", "loc: host, host: [[1, 0x37fff000]]"),),
    ),
    Case(
        "V156",
        b.COPY,
        (("a", "loc: dram, dram: [[0, 0x10100000]]", "loc: host, host: [[4, 0x1000]]"),),
        "[4, 0x1000]",
        near=(("a", "loc: dram, dram: [[0, 0x10100000]]", "loc: host, host: [[3, 0x1000]]"),),
    ),
    Case(
        "V158",
        b.COPY,
        (("a", "target_device: 0", "target_device: 1"),),
        "[a]",
        near=(("a", "mblock", "mblock"),),
        arch="grayskull",
    ),
    Case(
        "V159",
        b.COPY,
        (
            ("cp", "type: nop", "type: ethernet_datacopy"),
            (
                "cp",
                "untilize_output: false",
                "untilize_output: false, attributes: {ingress_channels: [0, 1], egress_channels: [2]}",
            ),
        ),
        "{ingress_channels: [0, 1], egress_channels: [2]}",
        near=(
            ("cp", "type: nop", "type: ethernet_datacopy"),
            (
                "cp",
                "untilize_output: false",
                "untilize_output: false, attributes: {ingress_channels: [0], egress_channels: [2]}",
            ),
        ),
    ),
    Case(
        "V159",
        b.COPY,
        (
            ("cp", "type: nop", "type: ethernet_datacopy"),
            (
                "cp",
                "untilize_output: false",
                "untilize_output: false, attributes: {ingress_channels: [16], egress_channels: [2]}",
            ),
        ),
        "[16]",
        near=(
            ("cp", "type: nop", "type: ethernet_datacopy"),
            (
                "cp",
                "untilize_output: false",
                "untilize_output: false, attributes: {ingress_channels: [15], egress_channels: [2]}",
            ),
        ),
    ),
    Case(
        "V161",
        b.ADD,
        (("b", "target_device: 0", "target_device: 1"),),
        "true",
        near=(
            ("b", "target_device: 0", "target_device: 1"),
            ("", "prologue: true, rd", "prologue: false, rd"),
        ),
    ),
    Case(
        "V162",
        b.GRADIENT,
        (("", "prologue: true, epilogue: true", "prologue: true, epilogue: false"),),
        "false",
        near=(("", "prologue: true, epilogue: true", "prologue: True, epilogue: $p_n"),),
    ),
    Case(
        "V162",
        b.ADD,
        (("", "prologue: true, rd", "prologue: true, epilogue: true, rd"),),
        "true",
        near=(("", "prologue: true, rd", "prologue: true, epilogue: false, rd"),),
    ),
    Case(
        "V162",
        b.GRADIENT,
        (
            ("o", "type: ram", "type: queue"),
            (
                "",
                "epilogue: true, zero: $z, rd_ptr_global: $z, wr_ptr_global: $z",
                "epilogue: True, zero: $z, rd_ptr_global: $z, rd_ptr_local: $z",
            ),
        ),
        "queue",
    ),
    Case(
        "V164",
        b.COPY,
        (
            ("a", "mblock: [2, 2]", "mblock: [20, 20]"),
            ("cp", "mblock: [2, 2]", "mblock: [20, 20]"),
            ("o", "mblock: [2, 2]", "mblock: [20, 20]"),
        ),
        "2",
        near=(
            ("a", "mblock: [2, 2]", "mblock: [10, 10]"),
            ("cp", "mblock: [2, 2]", "mblock: [10, 10]"),
            ("o", "mblock: [2, 2]", "mblock: [10, 10]"),
        ),
    ),
    Case(
        "V164",
        b.COPY,
        (
            ("a", "mblock: [2, 2]", "mblock: [6, 2]"),
            ("cp", "mblock: [2, 2]", "mblock: [6, 2]"),
            ("o", "mblock: [2, 2]", "mblock: [6, 2]"),
            ("cp", "type: nop", "type: ethernet_datacopy"),
            ("cp", "untilize_output: false", "untilize_output: false, attributes: {dest_device: 1}"),
        ),
        "2",
        near=(
            ("cp", "type: nop", "type: ethernet_datacopy"),
            ("cp", "untilize_output: false", "untilize_output: false, attributes: {dest_device: 1}"),
        ),
    ),
    Case(
        "V125",
        b.COPY,
        (("", "    - varinst: [$gp,", "    - varinst: [$c_one, inc, 0]\n    - varinst: [$gp,"),),
        "varinst",
        near=(
            (
                "",
                "    - varinst: [$c_one, set, 1]\n",
                "    - varinst: [$c_one, set, 1]\n    - varinst: [$c_one, mul, $c_one, $p_n]\n",
            ),
        ),
    ),
    Case("V126", b.TWO_CHIPS, (("", "    - execute:\n        graph_name: g1\n        queue_settings:\n\n", ""),), "g0"),
    Case(
        "V127",
        b.IN_TURN,
        (
            ("", "  g1:\n    target_device: 0\n    input_count: 1\n", ""),
            ("k1", "0]", "1]"),
            ("", "    - execute:\n        graph_name: g1\n        queue_settings:\n", ""),
            (
                "",
                "          b: {rd_ptr_local: $lp, rd_ptr_global: $gp}",
                "          b: {rd_ptr_local: $lp, rd_ptr_global: $gp}",
            ),
        ),
        "b",
        near=(
            ("", "  g1:\n    target_device: 0\n    input_count: 1\n", ""),
            ("k1", "0]", "1]"),
            ("", "    - execute:\n        graph_name: g1\n        queue_settings:\n", ""),
            ("", "    - loop", "    - allocate_queue: [b]\n    - loop"),
        ),
    ),
)
