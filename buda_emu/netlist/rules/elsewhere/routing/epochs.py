"""Rules on the graphs of an epoch and on what reads a result."""

from buda_emu.netlist.rules.elsewhere.routing import NET2PIPE
from buda_emu.netlist.rules.rule import rule

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
