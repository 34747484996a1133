"""What the device's compiler (N) and runtime (R) refuse beyond the load-time rules (NETLIST 2, tables 2.1 and 2.2)."""

from buda_emu.netlist.rules.rule import rule

RULES = (
    rule(
        "V073",
        "P",
        "a graph belongs to no temporal graph",
        "Every graph is given a temporal graph when the netlist is loaded, so this cannot happen and is not checked.",
        source="NETLIST 1.8, 2",
    ),
    rule(
        "V075",
        "P",
        "a one-entry ram has an input_count above 1",
        "The input_count of a one-entry ram is derived as 1, so this cannot happen and is not checked.",
        source="NETLIST 1.3, 2",
    ),
    rule(
        "V076",
        "N",
        "a gradient op and its queue are blocked differently",
        "The accumulator is read back into the op block by block: grid_size, mblock, ublock and t are equal, and "
        "there are no TMs.",
        "gradient op {grid_size: [2, 1]}, its ram {grid_size: [1, 1]}",
        "gradient op {grid_size: [2, 1]}, its ram {grid_size: [2, 1]}",
    ),
    rule(
        "V077",
        "N",
        "an untilizing op and its queue have different shapes",
        "Rows are written to their place in the whole tensor: tile rows, tile columns and t are equal, and there "
        "are no TMs.",
        "op of 4 x 2 tiles, queue {mblock: [2, 2], ublock: [1, 1]}",
        "op of 4 x 2 tiles, queue {mblock: [4, 2], ublock: [1, 1]}",
    ),
    rule(
        "V078",
        "N",
        "a buffer of a queue would be filled by several cores",
        "Tiles of one buffer come from one core, so that their order is known. Only untilized results are gathered.",
        "op {grid_size: [2, 1]}, queue {grid_size: [1, 1]}",
        "op {grid_size: [2, 1]}, queue {grid_size: [2, 1]}",
    ),
    rule(
        "V079",
        "N",
        "in_df or out_df differs from what the neighbour holds",
        "Tiles travel as they are. in_df says how they are unpacked and must be the format in which they were "
        "packed. Values of the emulator do not depend on it.",
        "queue {df: Float16}, op {in_df: [Float16_b]}",
        "queue {df: Float16_b}, op {in_df: [Float16_b]}",
    ),
    rule(
        "V080",
        "N",
        "buf_size_mb does not divide t",
        "Above one mblock the output buffer is double, so its size is even; half of it holds a number of mblocks "
        "that divides t or is a multiple of it. Operand and result of a copy over Ethernet are the same bytes: one of "
        "their sizes in tiles divides the other.",
        "{t: 3, buf_size_mb: 4}",
        "{t: 4, buf_size_mb: 4}",
    ),
    rule(
        "V081",
        "N",
        "an operand cannot be picked in pieces of its producer's buffer",
        "Pipes move a buffer in pieces of one size. Chains of TMs and blocks that are cut differently may leave none "
        "that fits all readers, or tiles that are no piece.",
        "a queue of 64 KiB tiles",
        "a queue of 32x32 tiles",
    ),
    rule(
        "V082",
        "N",
        "embedding or tilizer operands are not where the device needs them",
        "Both read flat rows from a queue in DRAM; an embedding has a table and indices.",
        "{type: tilizer, inputs: [another_op]}",
        "{type: tilizer, inputs: [queue_in_dram]}",
    ),
    rule(
        "V083",
        "N",
        "a matmul or depthwise has more inputs than its attributes use",
        "A third input is a bias or, with requant or dequant, a scale; a fourth the scale beside a bias. A sparse"
        " matmul has three inputs and a bias.",
        "{type: matmul, inputs: [x, w, b]}",
        "{type: matmul, inputs: [x, w, b], attributes: {bias: true}}",
    ),
    rule(
        "V084",
        "N",
        "a fused op has more than two multicast inputs",
        "Operands of products are sent to whole rows or columns of cores; a core takes part in two such multicasts.",
        "a fused op with two matmul sub-ops on a grid of 2x2 cores",
        "a fused op with one matmul sub-op on a grid of 2x2 cores",
    ),
    rule(
        "V085",
        "N",
        "the number of inputs has no input buffers on the device",
        "Element-wise kernels have buffers for two operands.",
        "{type: add, inputs: [a, b, c]}",
        "{type: add, inputs: [a, b]}",
    ),
    rule(
        "V150",
        "N",
        "an op lies outside the worker grid",
        "grid_loc and grid_size give cores of the chip: 10 x 12 on grayskull, 10 x 8 on wormhole, 10 x 14 on "
        "blackhole (rows x columns, nothing harvested).",
        "{grid_loc: [0, 7], grid_size: [1, 2]} on wormhole_b0",
        "{grid_loc: [0, 6], grid_size: [1, 2]} on wormhole_b0",
        "NETLIST 2, 2.1",
    ),
    rule(
        "V151",
        "N",
        "a DRAM channel that the chip does not have",
        "Grayskull and blackhole have 8 channels, wormhole 6.",
        "dram: [[6, 0x20000000]] on wormhole_b0",
        "dram: [[5, 0x20000000]] on wormhole_b0",
        "NETLIST 2, 2.1",
    ),
    rule(
        "V152",
        "R",
        "a queue buffer lies outside its DRAM channel",
        "Header and all entries of a buffer lie below the end of the channel: 1 GiB on grayskull, 2 GiB on "
        "wormhole, 4 GiB on blackhole.",
        "dram: [[0, 0x7fffffff]] on wormhole_b0",
        "dram: [[0, 0x20000000]] on wormhole_b0",
        "NETLIST 1.9, 2, 2.1",
    ),
    rule(
        "V153",
        "R",
        "a queue buffer lies in memory reserved by the backend",
        "The lowest part of every DRAM channel belongs to the backend. How much depends on its version, so it is "
        "not checked here; addresses from 0x10000000 on are safe.",
        source="NETLIST 2, 10",
    ),
    rule(
        "V154",
        "R",
        "two queue buffers overlap",
        "Buffers that exist at the same time are apart: static queues from all others, dynamic ones from those "
        "allocated with them. A buffer is a header of 32 bytes (64 on blackhole) and all entries. Aliases are "
        "meant to overlap.",
        "q0: {dram: [[0, 0x20000000]]}, q1: {dram: [[0, 0x20000020]]}",
        "q0: {dram: [[0, 0x20000000]]}, q1: {dram: [[0, 0x21000000]]}",
        "NETLIST 1.9, 2",
    ),
    rule(
        "V155",
        "R",
        "a queue cannot be allocated dynamically",
        "allocate_queue gives out DRAM, and not to an alias.",
        "allocate_queue of a queue with loc: host",
        "allocate_queue of a queue with loc: dram",
        "NETLIST 2, 3.6",
    ),
    rule(
        "V156",
        "R",
        "a host buffer lies outside host memory",
        "A host channel is 1 GiB; the last 128 MiB of channel 0 and 256 MiB of channel 3 belong to the backend. "
        "Grayskull has one channel, wormhole and blackhole four.",
        "host: [[0, 0x3ff00000]]",
        "host: [[0, 0x0]]",
        "NETLIST 2",
    ),
    rule(
        "V157",
        "R",
        "a host queue of a chip without host access",
        "Only chips on the host's bus reach host memory. Which they are is no part of a netlist, so it is not "
        "checked here.",
    ),
    rule(
        "V158",
        "R",
        "grayskull cannot reach this queue",
        "Grayskull chips read DRAM of their own only, and write that of another chip through channel 0 from "
        "0x30000000 on.",
        "op on device 0 reads a queue with target_device: 1",
        "op on device 0 reads a queue with target_device: 0",
        "NETLIST 2, 2.1",
    ),
    rule(
        "V159",
        "N",
        "Ethernet channels do not match",
        "An ethernet_datacopy has one channel in and one out for each grid cell, of those that the chip has.",
        "{grid_size: [1, 2], attributes: {ingress_channels: [0], egress_channels: [1]}}",
        "{grid_size: [1, 1], attributes: {ingress_channels: [0], egress_channels: [1]}}",
        "NETLIST 2, 2.1",
    ),
    rule(
        "V160",
        "N",
        "a device that the cluster does not have",
        "The chips of the machine are listed in a cluster file, which is no part of a netlist; it is not checked here.",
    ),
    rule(
        "V161",
        "N",
        "a prologue queue is not local to its reader",
        "With prologue a queue is copied into the cores that read it before the first input; both are on one chip.",
        "prologue: true for a queue on device 1 in a graph on device 0",
        "prologue: true for a queue on device 0 in a graph on device 0",
    ),
    rule(
        "V162",
        "N",
        "prologue or epilogue where it is not available",
        "A gradient op accumulates in one ram, with prologue and epilogue true. Any other queue that an op writes"
        " has neither, and one that is only read has no epilogue.",
        "acc: {prologue: false, epilogue: true} for a gradient op",
        "acc: {prologue: true, epilogue: true} for a gradient op",
        "NETLIST 2, 4.4",
    ),
    rule(
        "V163",
        "N",
        "an entry is too large for one device buffer",
        "Tiles of an entry are numbered in a window whose size is not published; it is not checked here.",
    ),
    rule(
        "V178",
        "N",
        "a reduce's or depthwise's ublock_order is not r though an op reads it",
        "Both kernels produce their ublocks row by row, and the op that reads them must know.",
        "{type: reduce, ublock_order: c} read by another op",
        "{type: reduce, ublock_order: r} read by another op",
        "NETLIST 2, V026",
    ),
    rule(
        "V179",
        "N",
        "an operand or queue has another shape than its op",
        "After unpad, TMs and pad an operand has the t, tile rows and tile columns that the op's own t, mblock, "
        "ublock and grid ask for (a matmul: m_k * u_kt along the inner dimension, which with identity are the tile "
        "rows of one t of the activations, since strips are numbered m_k * t + s); a queue has those of the op "
        "that feeds it. The reference fails when it runs, or computes on without a word.",
        "op {mblock: [2, 2], ublock: [1, 2]} reading a queue {mblock: [2, 1], ublock: [1, 2]}",
        "op {mblock: [2, 2], ublock: [1, 2], input_0_tms: [broadcast: {c: 2}]} reading a queue {mblock: [2, 1], "
        "ublock: [1, 2]}",
        "OPS 2",
    ),
    rule(
        "V164",
        "N",
        "the buffers of an op do not fit L1",
        "A core holds two ublocks of every element-wise operand, two columns and rows of blocks of a matmul's "
        "operands, and buf_size_mb mblocks of the result. The estimate counts only these, against L1 less 216 KiB"
        " that are always taken.",
        "{mblock: [8, 8], ublock: [2, 4], buf_size_mb: 2} in Float32 on wormhole_b0",
        "{mblock: [4, 4], ublock: [2, 4], buf_size_mb: 2} in Float32 on wormhole_b0",
        "NETLIST 2, 2.2",
    ),
)
