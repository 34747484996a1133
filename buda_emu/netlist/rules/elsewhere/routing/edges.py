"""Rules on what an op reads and how it is cut: TMs, stacks, padding, operands that are kept."""

from buda_emu.netlist.rules.elsewhere.routing import NET2PIPE
from buda_emu.netlist.rules.rule import rule

rule(
    "V320",
    "N",
    "broadcast along z of an operand whose t is not 1",
    "Tiles are repeated along z by reading the one slice again; of several slices pipes cannot do so.",
    "input_1_tms: [broadcast: {z: 4}] of a queue with t: 4",
    "input_1_tms: [broadcast: {z: 4}] of a queue with t: 1",
    NET2PIPE,
)
rule(
    "V321",
    "N",
    "TMs after a stack whose pieces come one after the other",
    "Where the producer's output buffer does not hold all slices that are stacked, pieces go out in phases. Then "
    "hstack and vstack come last, each at most once, and one pad after them.",
    "input_0_tms: [vstack: 4, transpose] of an op with t: 4, buf_size_mb: 2",
    "input_0_tms: [transpose, vstack: 4] of an op with t: 4, buf_size_mb: 2",
    NET2PIPE,
)
rule(
    "V322",
    "N",
    "stacked pieces do not come in whole slices or buffers of the producer",
    "Pieces that go out in phases repeat evenly only where the stack factor and the slices that come of one t of "
    "the producer divide each other, and so for the mblocks that its output buffer holds.",
    "input_0_tms: [hslice: 4, vstack: 6]",
    "input_0_tms: [hslice: 4, vstack: 8]",
    NET2PIPE,
)
rule(
    "V323",
    "N",
    "padding after a stack is not a whole number of pieces",
    "If stacked pieces come in phases, padding has its own phases.",
    "input_0_tms: [vstack: 4] of pieces of 2 tile rows, input_0_pad: {rt: 1}",
    "input_0_tms: [vstack: 4] of pieces of 2 tile rows, input_0_pad: {rt: 2}",
    NET2PIPE,
)
rule(
    "V324",
    "N",
    "stacked pieces do not divide over the rows or columns of cores",
    "Where stacked pieces come in phases, each goes to whole cores, or several to one.",
    "input_0_tms: [vstack: 4] of an op with grid_size: [3, 1]",
    "input_0_tms: [vstack: 4] of an op with grid_size: [2, 1]",
    NET2PIPE,
)
rule(
    "V325",
    "N",
    "stacked pieces and the blocks that are read do not divide each other",
    "If stacked pieces come in phases, a piece is a multiple of the mblocks and ublocks of its reader, or "
    "these are multiples of pieces.",
    "pieces of 2 tile columns, read in ublock: [1, 9]",
    "pieces of 3 tile columns, read in ublock: [1, 9]",
    NET2PIPE,
)
rule(
    "V326",
    "N",
    "stacked pieces within a ublock do not follow its tiles",
    "Tiles in a ublock are read row by row, so pieces smaller than one come side by side, a tile row each, "
    "or are as wide as it and come downward.",
    "pieces of 2x2 tiles, hstack, read in ublock: [2, 4]",
    "pieces of 1x2 tiles, hstack, read in ublock: [1, 4]",
    NET2PIPE,
)
rule(
    "V327",
    "N",
    "stacked pieces within an mblock do not follow ublock_order",
    "Ublocks are read along rows or down columns; pieces that come in phases have to come in the same order, one "
    "ublock high or wide.",
    "input_0_tms: [vstack: 2, hstack: 2] with ublock_order: r",
    "input_0_tms: [hstack: 2, vstack: 2] with ublock_order: r",
    NET2PIPE,
)
rule(
    "V328",
    "N",
    "kernel_broadcast or prologue of an operand that comes in phases",
    "The tiles that a core keeps have to come once, as a whole: from a producer with t 1 that buffers one "
    "mblock, or again for each t with kernel_broadcast_per_t, and not from a stack whose pieces come one "
    "after the other.",
    "kernel_broadcast: {input_1: 1} of a producer with t: 4",
    "kernel_broadcast_per_t: {input_1: 1} of a producer with t: 4",
    NET2PIPE,
)
rule(
    "V329",
    "N",
    "the operand does not repeat the tiles that kernel_broadcast keeps",
    "The kernel reads the first tiles over and over: all others of the operand have to be the same, in that order.",
    "kernel_broadcast: {input_1: 2} with input_1_tms: [broadcast: {c: 4}] of a 2x1 tensor",
    "kernel_broadcast: {input_1: 2} with input_1_tms: [broadcast: {r: 4}] of a 2x1 tensor read in ublock: [2, 1]",
    NET2PIPE,
)
rule(
    "V330",
    "N",
    "an embedding's table or a tilizer's queue is cut within a ublock or buffer",
    "Flat rows go to cores by whole mblocks: the grid is a multiple of the queue's, and columns of cores divide "
    "the columns of mblocks of each buffer, for a tilizer in row order rows those of rows.",
    "{type: embedding, grid_size: [1, 4]} of a table with grid_size: [1, 1], mblock: [8, 1], ublock: [1, 8]",
    "{type: embedding, grid_size: [1, 4]} of a table with grid_size: [1, 1], mblock: [8, 8], ublock: [1, 1]",
    NET2PIPE,
)
rule(
    "V331",
    "N",
    "a reduce along a dimension that the device does not reduce",
    "It reduces r, c or z, in a fused op r or c.",
    "{type: reduce, attributes: {dim: rc}}",
    "{type: reduce, attributes: {dim: r}}, then {type: reduce, attributes: {dim: c}}",
    NET2PIPE,
)
rule(
    "V332",
    "N",
    "stacked pieces in phases would go to a queue",
    "A queue's buffer is filled by one pipe, in order.",
    "a queue with input_tms: [vstack: 4] of an op with t: 4, buf_size_mb: 2, over a grid of 4 rows",
    "a queue of a nop with input_0_tms: [vstack: 4]",
    NET2PIPE,
)
rule(
    "V333",
    "N",
    "acc_df is Float32 on grayskull",
    "Its accumulators have 16 bits.",
    "{acc_df: Float32} with arch: grayskull",
    "{acc_df: Float16_b} with arch: grayskull",
    NET2PIPE,
)
rule(
    "V334",
    "N",
    "num_nz_strips has no entry for a core",
    "A buffer op writes as many strips as the attribute says, for each core of its grid.",
    "{type: buffer, grid_size: [1, 2], attributes: {num_nz_strips: [4]}}",
    "{type: buffer, grid_size: [1, 2], attributes: {num_nz_strips: [4, 4]}}",
    NET2PIPE,
)
rule(
    "V335",
    "N",
    "a core would be sent padding alone",
    "A pipe needs a producer: each core of the op reads at least one tile of it.",
    "{grid_size: [2, 1], mblock: [2, 1]} reads 2 tile rows with input_0_pad: {rt: 2}",
    "{grid_size: [2, 1], mblock: [2, 1]} reads 3 tile rows with input_0_pad: {rt: 1}",
    NET2PIPE,
)
rule(
    "V361",
    "N",
    "an operand that nothing of the op reads",
    "A core has a buffer for each operand of a fused op that one of its sub-ops reads, and for the one operand of "
    "a reduce or tilizer; net2pipe ends at others.",
    "a fused op with three inputs whose definition reads input0 and input1",
    "a fused op with two inputs whose definition reads input0 and input1",
    NET2PIPE,
)
