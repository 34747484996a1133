"""What net2pipe takes but recommends less of, and what is not judged."""

from buda_emu.netlist.rules.elsewhere.routing import NET2PIPE
from buda_emu.netlist.rules.rule import rule

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
