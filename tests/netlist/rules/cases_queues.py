"""Cases of the rules on queues, rams and aliases."""

from netlist.rules import bases as b
from netlist.rules.cases import Case

CASES = (
    Case("V012", b.COPY, (("a", "entries: 2", "entries: 0"),), "0", near=(("a", "entries: 2", "entries: 1"),)),
    Case("V012", b.COPY, (("a", "entries: 2, ", ""),), "a", near=(("a", "entries: 2", "entries: 0x2"),)),
    Case("V012", b.COPY, (("a", "t: 1", "t: 0"),), "0", near=(("a", "t: 1", "t: 2, t: 1"),)),
    Case("V012", b.COPY, (("a", "2]", "0]"),), "[2, 0]", near=(("a", "2]", "1]"),)),
    Case(
        "V012",
        b.COPY,
        (("a", "ublock: [1", "ublock: [-1"),),
        "[-1, 2]",
        near=(("a", "mblock: [2", "ublock_order: c, mblock: [2"),),
    ),
    Case("V012", b.COPY, (("a", "target_device: 0", "target_device: -1"),), "-1"),
    Case(
        "V013",
        b.COPY,
        (("a", "type: queue", "type: qeue"),),
        "qeue",
        near=(("a", "type: queue", "type: ram, type: queue"),),
    ),
    Case(
        "V013",
        b.COPY,
        (("a", "type: queue,", "type: queue, layout: Flat,"),),
        "Flat",
        near=(("a", "type: queue,", "type: queue, layout: flat,"),),
    ),
    Case(
        "V013",
        b.COPY,
        (("a", "df: Float16_b, ", ""),),
        "a",
        near=(("a", "df: Float16_b", "df: Bfp8_b, df: Float16_b"),),
    ),
    Case("V014", b.COPY, (("a", "grid_size: [1", "grid_size: [0"),), "[0, 1]"),
    Case(
        "V015",
        b.COPY,
        (("a", "grid_size: [1", "grid_size: [2"),),
        "[[0, 0x10100000]]",
        near=(("a", "t: 1", "grid_size: [1, 1], t: 1"),),
    ),
    Case("V015", b.COPY, (("a", "loc: dram", "loc: DRAM"),), "DRAM"),
    Case("V016", b.COPY, (("o", "input: cp", "input: cq"),), "cq", near=(("o", "input: cp", "input: HOST"),)),
    Case("V016", b.COPY, (("a", "input: HOST", "input: Host"),), "Host"),
    Case("V016", b.COPY, (("a", "input: HOST, ", ""),), "a", near=(("a", "input: HOST", "input: net2net_a"),)),
    Case(
        "V016",
        b.ON_DEVICES,
        (("o", "loc: dram, dram: [[0, 0x10f00000]]", "loc: host, host: [0x1000]"),),
        "k0",
        near=(("o", "0x10f00000]]", "0x10f00000]]"),),
    ),
    Case(
        "V365",
        b.COPIES,
        (
            ("  b", "  b:", "  a.1:"),
            ("k0", "inputs: [a, b]", "inputs: [a, a.1]"),
            ("          b", "          b:", "          a.1:"),
        ),
        "a.1",
        near=(
            ("  b", "  b:", "  a.2:"),
            ("k0", "inputs: [a, b]", "inputs: [a, a.2]"),
            ("          b", "          b:", "          a.2:"),
        ),
    ),
    Case(
        "V018",
        b.COPY,
        (("o", "input: cp,", "input: cp, input_tms: [transpose],"),),
        "transpose",
        near=(("o", "input: cp,", "input: cp, input_tms: [hslice: 1, vstack: 1],"),),
    ),
    Case("V067", b.SMALL_EXP, (("o", "tile_dim: [16", "tile_dim: [8"),), "[8, 32]"),
    Case(
        "V070",
        b.ON_DEVICES,
        (("o", "target_device: [0, 1]", "target_device: 0"),),
        "k0",
        near=(
            (
                "o",
                "input: k0, type: queue, entries: 2, grid_size: [1, 1], t: 1, df: Float16_b, target_device: [0, 1]",
                "input: k0.1, type: queue, entries: 2, grid_size: [1, 1], t: 1, df: Float16_b, target_device: 1",
            ),
        ),
    ),
    Case("V104", b.IN_TURN, (("d", "alias: c", "alias: d"),), "d"),
    Case("V105", b.IN_TURN, (("d", "alias: c", "alias: cc"),), "cc"),
    Case(
        "V106",
        b.IN_TURN,
        (
            ("d", "alias: c", "alias: c"),
            ("c", ", ", ", alias: f, "),
            (
                "",
                "  a: {input",
                (
                    "  f: {input: HOST, type: ram, entries: 4, grid_size: [1, 1], t: 1, df: Float16_b, "
                    "target_device: 0, mblock: [1, 1], ublock: [1, 1], loc: dram, dram: [[2, "
                    "0x30000000]]}\n  a: {input"
                ),
            ),
        ),
        "c",
        near=(
            ("d", "alias: c", "alias: f"),
            ("c", ", ", ", alias: f, "),
            (
                "",
                "  a: {input",
                (
                    "  f: {input: HOST, type: ram, entries: 4, grid_size: [1, 1], t: 1, df: Float16_b, "
                    "target_device: 0, mblock: [1, 1], ublock: [1, 1], loc: dram, dram: [[2, "
                    "0x30000000]]}\n  a: {input"
                ),
            ),
        ),
    ),
    Case("V107", b.IN_TURN, (("d", "alias: c", "alias: a"),), "a"),
    Case(
        "V108",
        b.IN_TURN,
        (("", "dram: [[2, 0x30000000]]}\ngraphs", "dram: [[2, 0x30000040]]}\ngraphs"),),
        "[[2, 0x30000040]]",
    ),
    Case(
        "V108",
        b.IN_TURN,
        (("", "dram: [[2, 0x30000000]]}\ngraphs", "dram: [[1, 0x30000000]]}\ngraphs"),),
        "[[1, 0x30000000]]",
    ),
    Case("V109", b.IN_TURN, (("d", "entries: 4", "entries: 3"),), "c"),
    Case(
        "V109",
        b.IN_TURN,
        (
            ("d", "entries: 4, grid_size: [1, 1], t: 1", "entries: 6, grid_size: [1, 1], t: 2"),
            ("c", "t: 1", "t: 3"),
        ),
        "4",
        near=(
            ("d", "entries: 4, grid_size: [1, 1], t: 1", "entries: 6, grid_size: [1, 1], t: 2"),
            ("c", "entries: 4, grid_size: [1, 1], t: 1", "entries: 3, grid_size: [1, 1], t: 4"),
        ),
    ),
)
