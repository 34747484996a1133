"""Rules that are checked while pipes and streams are made (`check --strict`, `buda_emu.performance.routing`)."""

from typing import Final

from buda_emu.netlist.rules.registry import rule

NET2PIPE: Final = "net2pipe"
PIPEGEN2: Final = "pipegen2"
"""The programs that refuse a netlist by these rules."""


rule(
    "V337",
    "N",
    "chips that are not neighbours in the ring of grayskull",
    "Over PCIe a chip reaches the one after it and the one before it in the ring, in order of their numbers, "
    "none of which may be left out.",
    "of graphs on chips 0, 1, 2 and 3, one on chip 0 feeds a queue of chip 2",
    "it feeds a queue of chip 1 or of chip 3",
    NET2PIPE,
)
rule(
    "V338",
    "N",
    "a queue on another chip is used in a way that is not made between chips",
    "On wormhole_b0 nothing writes to DRAM of another chip but over "
    "ethernet_datacopy, and a pipe from there brings one whole buffer to one core.",
    "an op of chip 0 feeds a queue with target_device 1",
    "both have the same target_device",
    NET2PIPE,
)
rule(
    "V339",
    "N",
    "a chip whose DRAM is read runs no graph in the epoch",
    "On wormhole_b0 each chip that takes part in an epoch needs a graph, be it without ops.",
    "an op of chip 0 reads a queue of chip 1, which no graph is for",
    "a second graph without ops with target_device 1, executed after the first",
    NET2PIPE,
)
rule(
    "V362",
    "N",
    "the Ethernet links between two chips have no room for all pipes over them",
    "Each pipe from chip to chip takes a stream and a relay at both ends of each link on its way. A channel's core has "
    "7 streams that transfer and 96 kB, and only the ways that a cluster description names are gone.",
    "an op on 64 cores that reads one of another chip, over four links",
    "an ethernet_datacopy on four cores between them",
    NET2PIPE,
)
rule(
    "V363",
    "N",
    "channels of a copy that are not the two ends of a link",
    "Between chips that links connect, a cell's ingress and egress channel are the ends of one of them, between others "
    "each is the end of some link. Where none are named, each chip's channels towards the other are counted by "
    "themselves, so the cluster description decides; of a copy that reads a queue none are found.",
    "ingress_channels: [0], egress_channels: [9] where channel 0 leads to channel 8",
    "ingress_channels: [0], egress_channels: [8]",
    NET2PIPE,
)
rule(
    "V364",
    "N",
    "no core has room for a relay between chips",
    "What several cores send to another chip is gathered on a worker core of theirs, what several cores receive is "
    "multicast from a worker core of theirs. These need streams and L1 as any other pipe does.",
    "ethernet_datacopy to another chip, whose result on two cores an op of the first chip reads on one core",
    "an op between the copy and the way back",
    NET2PIPE,
)
rule(
    "V366",
    "N",
    "a copy between chips without a destination",
    "An ethernet_datacopy runs on cores of Ethernet channels, one on each of its two chips: net2pipe ends where it "
    "does not say which the other one is.",
    "{type: ethernet_datacopy}",
    "{type: ethernet_datacopy, attributes: {dest_device: 1}}",
    NET2PIPE,
)
rule(
    "V367",
    "N",
    "a chip of an epoch of several that no link reaches",
    "Net2pipe looks up the links of each chip that runs a graph of an epoch, be it without ops, and ends where the "
    "cluster description has none; an epoch of one chip needs none.",
    "graphs on chips 0, 1 and 2, and links between 0 and 1 alone",
    "the graph of chip 2 in another epoch",
    NET2PIPE,
)
rule(
    "V368",
    "N",
    "what relays between chips do not do",
    "Ethernet cores have only relays, for tiles of 32 by 32, and keep no queue. What an op reads from "
    "another chip is padded there, not on arrival. A pipe is gathered on one Ethernet core: cells of a copy that "
    "get stacked pieces in turn need one channel.",
    "tile_dim: [16, 32] of an op that one of another chip reads",
    "tile_dim: [32, 32]",
    NET2PIPE,
)


rule(
    "V340",
    "N",
    "a core needs more streams than it has, not counting those of operands",
    "A core has 24 streams for what gathers, forks and reads from DRAM. An output that is read by ops that are cut "
    "differently takes one for each pipe, a gather up to three.",
    "one op that 30 ops on different grids read",
    "one op that 30 ops read through nops with a few readers each",
    f"{NET2PIPE}, {PIPEGEN2}",
)
rule(
    "V342",
    "N",
    "too many pipes of a core read from DRAM",
    "A core has 8 streams that read from DRAM.",
    "a fused op with 9 queues as inputs",
    "a fused op with 8 queues as inputs",
    f"{NET2PIPE}, {PIPEGEN2}",
)
rule(
    "V343",
    "N",
    "too many pipes of a core write to DRAM",
    "A core has 8 streams that write to DRAM.",
    "an op that feeds 9 queues",
    "an op that feeds 8 queues",
    f"{NET2PIPE}, {PIPEGEN2}",
)
rule(
    "V344",
    "N",
    "too many pipes multicast from a core",
    "A core has streams for 4 multicasts; gathers from several cores that serve several others in turn count, too.",
    "5 multicasts that begin on one core",
    "4 multicasts that begin on one core",
    f"{NET2PIPE}, {PIPEGEN2}",
)
rule(
    "V350",
    "N",
    "a queue has too many readers",
    "The header of a queue in DRAM tells at most 255 readers apart.",
    "a queue of one buffer that ops on 300 cores read",
    "a queue of two buffers, each read by 150 cores",
    PIPEGEN2,
)
rule(
    "V351",
    "N",
    "a core has too many kernel operands",
    "The data-movement processor of a core serves 24 streams that feed its kernel, and 24 that its kernel feeds.",
    "an op whose output is forked 25 times",
    "an op whose output is forked 24 times",
    PIPEGEN2,
)
rule(
    "V352",
    "N",
    "a core needs more Ethernet streams than it has",
    "7 streams of an Ethernet core can send or receive between chips.",
    "8 copies between chips through one channel",
    "8 copies between chips through two channels",
    PIPEGEN2,
)
rule(
    "V353",
    "N",
    "two operands of a core need the same stream",
    "Each operand of a kernel has the stream of its own number.",
    "two ops on one core",
    "two ops on two cores",
    PIPEGEN2,
)
rule(
    "V354",
    "N",
    "tiles of an operand cannot be counted in phases",
    "A phase of a stream has at most 2048 tiles, and a multiple of the tiles that are sent and cleared at a time.",
    "rounds of 3001 tiles that are read in one piece",
    "rounds of 3000 tiles",
    PIPEGEN2,
)
rule(
    "V355",
    "N",
    "the buffers of a core exceed L1",
    "Operands, results, tile headers of each size of tile, relays and the descriptions of streams share what "
    "firmware leaves of L1.",
    "{mblock: [8, 8], ublock: [4, 4], buf_size_mb: 2} in Float32",
    "{mblock: [4, 4], ublock: [4, 4], buf_size_mb: 2} in Float32",
    PIPEGEN2,
)
rule(
    "V356",
    "N",
    "pipes that streams cannot carry out",
    "The pipes of an epoch follow from the netlist; some combinations have no streams: an intermediate buffer that "
    "shares L1 with an output that nothing reads, a table's rows that exceed the operand's buffer, circles.",
    source=PIPEGEN2,
)


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


rule(
    "V336",
    "N",
    "nothing reads the result of an op",
    "Its output buffer would fill and never be emptied. Only a drainer has no readers.",
    "a nop that neither an op reads nor a queue",
    "a nop and a queue with its name as input",
    NET2PIPE,
)
rule(
    "V345",
    "N",
    "an epoch without ops",
    "On grayskull an epoch must have something to do; graphs without ops are for chips of wormhole_b0.",
    "a graph without ops, executed on grayskull",
    "the same with an op",
    NET2PIPE,
)
rule(
    "V346",
    "N",
    "a graph has a name of one character",
    "net2pipe asks for two at least.",
    "graphs: {g: ...}",
    "graphs: {g0: ...}",
    NET2PIPE,
)
rule(
    "V347",
    "N",
    "a graph that is executed comes after one that is not",
    "Epochs are numbered without gaps: graphs that no program executes may only come after all others.",
    "of graphs first, second and third, programs execute first and third",
    "programs execute first and second",
    NET2PIPE,
)
rule(
    "V348",
    "N",
    "executes of a graph differ in what its prologue or epilogue keeps",
    "Pipes of a graph are made once: its queues either pass or are kept in L1.",
    "execute of a graph with {prologue: true}, then with {prologue: false} of the same queue",
    "both with {prologue: true}",
    NET2PIPE,
)


rule(
    "V357",
    "W",
    "a result has many readers",
    "For each core of an op net2pipe counts the cores that it sends to, reader by reader, and recommends no more "
    "than 16. More are taken as long as the core has streams for them (V340).",
    "17 nops of one core that read another's result",
    "16 nops of one core that read another's result",
    NET2PIPE,
)
rule(
    "V358",
    "W",
    "the tiles that an op receives and sends take many phases",
    "Each change of the core that an operand comes from is two phases, each piece of a result that goes elsewhere "
    "one, or two where its buffer is double. Net2pipe recommends no more than 1800 of a core, as their "
    "descriptions take L1.",
    "input_0_tms: [transpose] of 32 x 32 tiles between two cores",
    "input_0_tms: [transpose] of 16 x 16 tiles between two cores",
    NET2PIPE,
)
rule(
    "V359",
    "W",
    "pipes were not checked",
    "Pipes are made for grayskull and wormhole_b0; what goes over Ethernet other than by copies (ethernet_datacopy) "
    "whose channels are named follows from a cluster description (`--cluster FILE`). The rest has to be compared with "
    "the vendor's programs.",
    source=NET2PIPE,
)
rule(
    "V360",
    "W",
    "an op reads queues at many places",
    "Each piece of a queue's entry that a core reads separately is one place of its pipe. Net2pipe recommends no "
    "more than 2000 of a core.",
    "input_0_tms: [transpose] of a queue of 64 x 64 tiles in one buffer",
    "input_0_tms: [transpose] of a queue of 32 x 32 tiles in one buffer",
    NET2PIPE,
)
