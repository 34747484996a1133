"""Rules on `test-config` and `performance-check`, found where they are read (`buda_emu.netlist.testing`).
The parser does not look at them: a netlist that breaks one loads, but its test does not run, or its figures are not
checked."""

from buda_emu.netlist.rules.rule import rule

rule(
    "V200",
    "T",
    "unknown field in stimulus-config or comparison-config",
    "The harness knows a fixed list of fields and stops at any other, so that a misspelt tolerance is not lost.",
    "comparison-config: {type: AllClose, check_tile_col_range: [1, 8]}",
    "comparison-config: {type: AllClose, check_tile_cols_range: [1, 8]}",
    "NETLIST 5.1, 5.3",
)
rule(
    "V201",
    "T",
    "a value in `test-config` is of the wrong kind",
    "Bounds and tolerances are numbers, counts integers, ranges pairs of rows or columns from 1 to 32.",
    "stimulus-config: {type: Uniform, set_tile_rows: [0, 31]}",
    "stimulus-config: {type: Uniform, set_tile_rows: [1, 32]}",
    "NETLIST 5.1, 5.3",
)
rule(
    "V202",
    "T",
    "`overrides` is empty",
    "The key says that there are overrides; the harness stops if there are none.",
    "stimulus-config: {type: Constant, constant_value: 1.0, overrides: }",
    "stimulus-config: {type: Constant, constant_value: 1.0}",
    "NETLIST 5",
)
rule(
    "V203",
    "T",
    "the key of an override is not a usable pattern",
    "Keys are names of queues or regular expressions that match a whole name. They are matched by backtracking, so "
    "a group that repeats and holds a repetition could take for ever: it is refused.",
    "overrides: {'.*[weight': {type: Constant, constant_value: 1.0}}",
    "overrides: {'.*weight': {type: Constant, constant_value: 1.0}}",
    "NETLIST 5",
)
rule(
    "V204",
    "T",
    "a stimulus or comparison that cannot be used",
    "An unknown type, a missing bound, a negative tolerance or a check_pcc beyond 1 stops a test when the entry is "
    "used. An override takes nothing from the entry above it: it needs its own type and bounds.",
    "stimulus-config: {type: Uniform, uniform_lower_bound: -1.0}",
    "stimulus-config: {type: Uniform, uniform_lower_bound: -1.0, uniform_upper_bound: 1.0}",
    "NETLIST 5, 5.1, 5.3",
)
rule(
    "V205",
    "T",
    "a value in `performance-check` is of the wrong kind",
    "Expected figures, tolerances and bounds are numbers, target inputs integers, target ops and cores lists.",
    "cycles-per-tensor: {expected: 35500 cycles, rtol: 0.1}",
    "cycles-per-tensor: {expected: 35500, rtol: 0.1}",
    "NETLIST 6",
)
rule(
    "V206",
    "T",
    "a metric of `performance-check` that cannot be checked",
    "A metric is compared with `expected` within `rtol`, or with `min_bound`; the backend stops if both are given.",
    "tensors-per-second: {expected: 1500, min_bound: 1400}",
    "tensors-per-second: {min_bound: 1400}",
    "NETLIST 6",
)
rule(
    "V207",
    "W",
    "a key of `performance-check` that looks like a misspelt metric",
    "Unknown keys are ignored, so a misspelt metric is never checked.",
    "cycle-per-tensor: {expected: 35500}",
    "cycles-per-tensor: {expected: 35500}",
    "NETLIST 6",
)
