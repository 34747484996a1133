"""Cases of the rules on small tiles."""

from netlist.rules import bases as b
from netlist.rules.cases import Case

CASES = (
    Case(
        "V055",
        b.REDUCE,
        (("a", "input: HOST,", "input: HOST, tile_dim: [1, 32],"),),
        "a",
        near=(("a", "input: HOST,", "input: HOST, tile_dim: [32, 32],"),),
    ),
    Case(
        "V055",
        b.IDENTITY,
        (("s", "input: HOST,", "input: HOST, tile_dim: [1, 32],"),),
        "s",
        near=(("a", "input: HOST,", "input: HOST, tile_dim: [1, 32],"),),
    ),
    Case("V056", b.REDUCE, (("a", "input: HOST,", "input: HOST, tile_dim: [16, 32],"),), "a"),
    Case(
        "V056",
        b.MATMUL,
        (("b", "input: HOST,", "input: HOST, tile_dim: [16, 32],"),),
        "b",
        near=(("b", "input: HOST,", "input: HOST, tile_dim: [1, 32],"),),
    ),
    Case(
        "V058",
        b.SMALL_MATMUL,
        (
            ("mm", "in_df: [Float16_b, Float16_b]", "in_df: [Int8, Int8]"),
            ("a", "df: Float16_b", "df: Int8"),
            ("b", "df: Float16_b", "df: Int8"),
            ("mm", "acc_df: Float16_b", "acc_df: Int32"),
            ("mm", "out_df: Float16_b", "out_df: Int8"),
            ("mm", "intermed_df: Float16_b", "intermed_df: Int8"),
        ),
        "[16, 32]",
    ),
    Case(
        "V059",
        b.SMALL_EXP,
        (("ex", "vector: r", "vector: rc"),),
        "rc",
        near=(("ex", "vector: r", "approximate_mode: true"),),
    ),
    Case("V059", b.SMALL_EXP, (("ex", "vector: r", "vector: c"),), "c"),
    Case(
        "V060",
        b.ADD,
        (("a", "input: HOST,", "input: HOST, tile_dim: [16, 32],"),),
        "[a, b]",
        near=(
            ("a", "input: HOST,", "input: HOST, tile_dim: [16, 32],"),
            ("b", "input: HOST,", "input: HOST, tile_dim: [16, 32],"),
        ),
    ),
    Case(
        "V061",
        b.COPY,
        (("a", "input: HOST,", "input: HOST, tile_dim: [32, 16],"),),
        "cp",
        near=(("a", "input: HOST,", "input: HOST, tile_dim: [16, 32],"),),
    ),
    Case(
        "V062",
        b.COPY,
        (
            ("a", "input: HOST,", "input: HOST, tile_dim: [16, 32],"),
            ("cp", "grid_loc", "gradient_op: true, grid_loc"),
            ("o", "type: queue", "type: ram"),
            (
                "",
                "          a:",
                "          o: {prologue: true, epilogue: true, rd_ptr_global: $z, wr_ptr_global: $z}\n          a:",
            ),
        ),
        "cp",
        near=(
            ("cp", "grid_loc", "gradient_op: true, grid_loc"),
            ("o", "type: queue", "type: ram"),
            (
                "",
                "          a:",
                "          o: {prologue: true, epilogue: true, rd_ptr_global: $z, wr_ptr_global: $z}\n          a:",
            ),
        ),
    ),
    Case(
        "V063",
        b.SMALL_MATMUL,
        (("mm", "u_kt: 1", "u_kt: 1, sfpu_op: gelu"),),
        "gelu",
        near=(("mm", "u_kt: 1", "u_kt: 1, sfpu_op: invalid"),),
    ),
    Case("V064", b.MATMUL, (("w", "input: HOST,", "input: HOST, tile_dim: [32, 16],"),), "mm"),
    Case(
        "V065",
        b.REDUCE,
        (
            ("rd", "grid_loc", "tile_dim: [16, 32], grid_loc"),
            ("o", "input: rd,", "input: rd, tile_dim: [16, 32],"),
        ),
        "[16, 32]",
        near=(
            ("rd", "dim: c", "dim: r"),
            ("rd", "grid_loc", "tile_dim: [1, 32], grid_loc"),
            ("o", "input: rd,", "input: rd, tile_dim: [1, 32],"),
        ),
    ),
    Case(
        "V065",
        b.REDUCE,
        (
            ("rd", "dim: c", "dim: r"),
            ("rd", "grid_loc", "tile_dim: [32, 16], grid_loc"),
            ("o", "input: rd,", "input: rd, tile_dim: [32, 16],"),
        ),
        "[32, 16]",
    ),
    Case(
        "V066",
        b.SMALL_MATMUL,
        (
            ("b", "32]", "16]"),
            ("mm", "}", "}, input_1_tms: [transpose]"),
        ),
        "[transpose]",
        near=(("mm", "}", "}, input_1_tms: [transpose]"),),
    ),
)
