"""Rules on what goes from chip to chip: over the ring of grayskull, over the links of wormhole_b0."""

from buda_emu.netlist.rules.elsewhere.routing import NET2PIPE
from buda_emu.netlist.rules.rule import rule

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
