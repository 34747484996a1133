"""Rules on what a core and a queue have too little of for streams."""

from buda_emu.netlist.rules.elsewhere.routing import NET2PIPE, PIPEGEN2
from buda_emu.netlist.rules.rule import rule

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
