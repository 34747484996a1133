"""Rules on tiles other than 32x32 (NETLIST 2, tile-dim rules; OPS 9.1)."""

from buda_emu.netlist.rules.rule import rule

RULES = (
    rule(
        "V055",
        "P",
        "a 1x32 tile on an operand that cannot take it",
        "1x32 tiles go into every input of a dense matmul, input 1 of an identity matmul, and copies, binary, "
        "sfpu ops and tilizer.",
        "a reduce of a queue with tile_dim: [1, 32]",
        "a nop of a queue with tile_dim: [1, 32]",
        "NETLIST 2, 11.1 A15",
    ),
    rule(
        "V056",
        "P",
        "a small tile on an operand that cannot take it",
        "2x32, 4x32, 8x32, 16x32 and 32x16 tiles go into input 0 and 1 of a dense matmul, input 1 of an identity "
        "matmul, and copies, binary, sfpu ops and tilizer; the bias of a matmul has 32x32 or 1x32.",
        "a matmul whose bias has tile_dim: [16, 32]",
        "a matmul whose input 0 has tile_dim: [16, 32]",
        "NETLIST 2, 11.1 A15",
    ),
    rule(
        "V057",
        "P",
        "a tile's size in memory is not a multiple of the alignment",
        "Tiles with their header are rounded up to the alignment, so this cannot happen and is not checked. The "
        "rule stands for the block formats whose small tiles would not fill a unit of their own.",
        "",
        "",
        "NETLIST 1.9, 2",
    ),
    rule(
        "V058",
        "P",
        "a small tile together with an integer format",
        "Int8 and Int32 are computed on 32x32 tiles only.",
        "{in_df: [Int8, Int8], tile_dim: [16, 32]}",
        "{in_df: [Int8, Int8], tile_dim: [32, 32]}",
    ),
    rule(
        "V059",
        "P",
        "the vector mode does not cover the input tile",
        "The SFPU works on rows (r), columns (c) or whole tiles (rc). A tile of less than 32 rows needs r, a "
        "32x16 tile c. It is the tile of input 0 that counts; without `vector` the right mode is taken.",
        "an exp of 16x32 tiles with vector: rc",
        "an exp of 16x32 tiles with vector: r",
        "NETLIST 1.5, 11.1 A2",
    ),
    rule(
        "V060",
        "P",
        "the two operands of a binary op have different tiles",
        "Tiles are combined element by element.",
        "add of 16x32 and 32x32 tiles",
        "add of 16x32 and 16x32 tiles",
    ),
    rule(
        "V061",
        "P",
        "a 32x16 tile on one side of the op only",
        "Element-wise ops and tilizer may drop rows of a tile, but not columns.",
        "a nop of 32x16 tiles that writes 32x32",
        "a nop of 32x16 tiles that writes 32x16",
        "NETLIST 2, 11.1 A15",
    ),
    rule(
        "V062",
        "P",
        "a gradient copy changes the tile",
        "The copy is added to what the accumulator holds, tile by tile.",
        "{type: nop, gradient_op: true} of 16x32 tiles that writes 32x32",
        "{type: nop, gradient_op: true, tile_dim: [16, 32]} of 16x32 tiles",
        "NETLIST 2, 11.1 A15",
    ),
    rule(
        "V063",
        "P",
        "a small-tile matmul has sfpu_op or gradient_op",
        "The kernel for small tiles only multiplies. An unknown sfpu_op counts as none.",
        "a matmul of 16x32 tiles with sfpu_op: gelu",
        "a matmul of 16x32 tiles, then a gelu op",
        "NETLIST 2, 11.2 B1",
    ),
    rule(
        "V064",
        "P",
        "a 32x16 tile on one side of a matmul only",
        "The columns of the result are those of input 1.",
        "a matmul whose input 1 has 32x16 tiles that writes 32x32",
        "a matmul whose input 1 has 32x16 tiles that writes 32x16",
    ),
    rule(
        "V065",
        "P",
        "a reduce cannot produce this tile",
        "A reduce over r writes rows of full width, a reduce over c columns of full height.",
        "{type: reduce, attributes: {dim: r, type: max}, tile_dim: [32, 16]}",
        "{type: reduce, attributes: {dim: r, type: max}, tile_dim: [1, 32]}",
    ),
    rule(
        "V066",
        "P",
        "a transpose of a tile that a matmul cannot transpose",
        "The matmul transposes tiles of 32x32 and 16x32 as it reads them.",
        "input_1_tms: [transpose] on a queue with tile_dim: [32, 16]",
        "input_1_tms: [transpose] on a queue with tile_dim: [16, 32]",
        "NETLIST 2, OPS 7.4",
    ),
)
