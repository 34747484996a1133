"""Rules on `test-config`. The parser does not look at it: a netlist that breaks one loads, its test does not run."""

from buda_emu.netlist.rules.rule import rule

RULES = (
    rule(
        "V200",
        "T",
        "unknown field in stimulus-config or comparison-config",
        "The harness knows a fixed list of fields and stops at any other, so that a misspelt tolerance is not lost.",
        "comparison-config: {type: AllClose, check_tile_col_range: [1, 8]}",
        "comparison-config: {type: AllClose, check_tile_cols_range: [1, 8]}",
        "NETLIST 5.1, 5.3",
    ),
    rule(
        "V201",
        "T",
        "a value in `test-config` is of the wrong kind",
        "Bounds and tolerances are numbers, counts whole numbers, ranges pairs of rows or columns from 1 to 32.",
        "stimulus-config: {type: Uniform, set_tile_rows: [0, 31]}",
        "stimulus-config: {type: Uniform, set_tile_rows: [1, 32]}",
        "NETLIST 5.1, 5.3",
    ),
    rule(
        "V202",
        "T",
        "`overrides` is empty",
        "A key that is there promises overrides; the harness stops when there are none.",
        "stimulus-config: {type: Constant, constant_value: 1.0, overrides: }",
        "stimulus-config: {type: Constant, constant_value: 1.0}",
        "NETLIST 5",
    ),
    rule(
        "V203",
        "T",
        "the key of an override is no usable pattern",
        "Keys are names of queues or regular expressions that match a whole name. They are matched by backtracking, so "
        "a group that repeats and holds a repetition could take for ever: it is refused.",
        "overrides: {'.*[weight': {type: Constant, constant_value: 1.0}}",
        "overrides: {'.*weight': {type: Constant, constant_value: 1.0}}",
        "NETLIST 5",
    ),
    rule(
        "V204",
        "T",
        "a stimulus or comparison that cannot be used",
        "An unknown type, a missing bound, a negative tolerance or a check_pcc beyond 1 stops a test when the entry is "
        "used. An override takes nothing from the entry above it: it needs its own type and bounds.",
        "stimulus-config: {type: Uniform, uniform_lower_bound: -1.0}",
        "stimulus-config: {type: Uniform, uniform_lower_bound: -1.0, uniform_upper_bound: 1.0}",
        "NETLIST 5, 5.1, 5.3",
    ),
)
