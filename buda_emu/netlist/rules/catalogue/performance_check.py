"""Rules on `performance-check`. The parser does not look at it: a netlist that breaks one loads, its figures are not
checked."""

from buda_emu.netlist.rules.rule import rule

RULES = (
    rule(
        "V205",
        "T",
        "a value in `performance-check` is of the wrong kind",
        "Expected figures, tolerances and bounds are numbers, target inputs whole numbers, target ops and cores lists.",
        "cycles-per-tensor: {expected: 35500 cycles, rtol: 0.1}",
        "cycles-per-tensor: {expected: 35500, rtol: 0.1}",
        "NETLIST 6",
    ),
    rule(
        "V206",
        "T",
        "a metric of `performance-check` that cannot be checked",
        "A metric is held against `expected` within `rtol`, or against `min_bound`; the backend stops at both.",
        "tensors-per-second: {expected: 1500, min_bound: 1400}",
        "tensors-per-second: {min_bound: 1400}",
        "NETLIST 6",
    ),
    rule(
        "V207",
        "W",
        "a key of `performance-check` that looks like a misspelt metric",
        "Unknown keys are ignored, so a misspelt metric is never checked.",
        "cycle-per-tensor: {expected: 35500}",
        "cycles-per-tensor: {expected: 35500}",
        "NETLIST 6",
    ),
)
