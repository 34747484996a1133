"""Reading a test-config: fields, merging, look-up, findings (NETLIST 5)."""

import re

import pytest

from buda_emu.netlist import test_config as performance_check
from buda_emu.netlist.load import check_text
from buda_emu.netlist.test_config import findings, merge_defaults, read_defaults, read_test_config
from buda_emu.netlist.yaml_reader import read_tree
from buda_emu.spec.test_config import Comparison, Stimulus
from buda_emu.support.errors import NetlistError
from netlist.netlist_texts import NETLIST


def sections_of(text):
    return {key: value for key, _, value in read_tree(text).items()}


def config(text):
    return read_test_config("net.yaml", sections_of(text), text)


def defaults(text):
    return read_defaults("defaults.yaml", text.encode())


def test_a_netlist_without_one_has_the_vendors_default():
    empty = config("queues: {}")
    assert empty.default_stimulus == Stimulus("uniform", 0.001, 2.0)
    assert (empty.args, empty.inputs, empty.outputs) == ({}, (), ())
    assert empty.named_stimulus("q") is None
    assert empty.comparison("q") == Comparison("AllCloseHw", atol=0.01, rtol=0.15, check_pct=0.0, check_pcc=0.98)
    assert empty.comparison("determinism_test") == Comparison("Exact")
    assert not empty.has_default_stimulus


def test_fields_are_read():
    read = config(
        "test-config: {test-args: {microbatch_count: 0x4}, io-config: {inputs: [a, b], outputs: [c], other: [d]}, "
        "stimulus-config: {type: NORMAL, normal_mean: 1, "
        "normal_stddev: 1e-3, set_tile_rows: [1, 1], overrides: {q: {type: Constant, constant_value: -2}}}, "
        "comparison-config: {type: allclose, atol: 1, rtol: .5, check_pct: 0.5, check_pcc: -0.5, verbosity: VERBOSE, "
        "method: tilizedtensor, check_tile_rows_range: [1, 16], check_tile_cols_range: [2, 2], lhs_header: A, "
        "rhs_header: B}}"
    )
    assert read.args == {"microbatch_count": "0x4"}
    assert (read.inputs, read.outputs) == (("a", "b"), ("c",))
    assert read.default_stimulus == Stimulus("normal", normal_mean=1.0, normal_stddev=0.001, set_tile_rows=(1, 1))
    assert read.named_stimulus("q") == Stimulus("constant", constant_value=-2.0)
    assert read.comparison("c") == Comparison(
        "allclose", "VERBOSE", "tilizedtensor", 1.0, 0.5, 0.5, -0.5, (1, 16), (2, 2), "A", "B"
    )


def test_an_override_does_not_inherit():
    read = config("test-config: {stimulus-config: {type: Step, set_tile_cols: [2, 3], overrides: {q: {type: Step}}}}")
    assert read.named_stimulus("q") == Stimulus("step")


def test_look_up_prefers_exact_names_then_the_first_full_match():
    read = config(
        "test-config: {stimulus-config: {overrides: "
        "{'.*a.*': {type: Step}, 'b.*': {type: StepRowwise}, qa: {type: StepColumnwise}}}}"
    )

    def kind(*names):
        found = read.named_stimulus(*names)
        return found and found.type

    assert kind("qa") == "stepcolumnwise"
    assert kind("xay") == "step"
    assert kind("ba") == "step"
    assert kind("bx") == "steprowwise"
    assert kind("xb") is None  # a part is not a match
    assert kind("xb", "bx") == "steprowwise"


def test_comparisons_are_looked_up_alike():
    read = config(
        "test-config: {comparison-config: {type: Exact, overrides: "
        "{out: {type: AllClose}, 'out.*': {type: AllCloseHw}}}}"
    )
    assert [read.comparison(name).type for name in ("out", "out2", "other")] == ["AllClose", "AllCloseHw", "Exact"]


def test_a_netlist_wins_key_by_key_over_the_defaults():
    own = config("test-config: {test-args: {a: 1}, stimulus-config: {overrides: {q: {type: Step}}}}")
    other = defaults(
        "test-config: {test-args: {a: 2, b: 3}, stimulus-config: {type: StepRowwise, overrides: "
        "{q: {type: StepColumnwise}, r: {type: StepColumnwise}}}, comparison-config: {type: Exact}}"
    )
    both = merge_defaults(own, other)
    assert both.args == {"a": "1", "b": "3"}
    assert both.default_stimulus == Stimulus("steprowwise")
    assert both.named_stimulus("q") == Stimulus("step")
    assert both.named_stimulus("r") == Stimulus("stepcolumnwise")
    assert both.comparison("q") == Comparison("Exact")
    assert both.inputs == own.inputs


def test_a_defaults_file_has_the_section():
    with pytest.raises(NetlistError, match=r"defaults.yaml: .* test-config"):
        defaults("queues: {}")
    with pytest.raises(NetlistError, match=r"defaults.yaml:1"):
        defaults("test-config: {")


@pytest.mark.parametrize(
    ("section", "rule", "message"),
    [
        ("stimulus-config: {colour: red}", "V200", "unknown field 'colour'"),
        ("stimulus-config: {type: Step, step_strat: 1}", "V200", "did you mean 'step_start'"),
        ("comparison-config: {type: Exact, check_tile_col_range: [1, 2]}", "V200", "check_tile_cols_range"),
        ("stimulus-config: {uniform_lower_bound: low}", "V201", "uniform_lower_bound is a number"),
        ("stimulus-config: {nz_tiles: 1.5}", "V201", "nz_tiles is an integer"),
        ("stimulus-config: {set_tile_rows: [0, 3]}", "V201", "set_tile_rows is a pair"),
        ("stimulus-config: {set_tile_rows: [1, 33]}", "V201", "set_tile_rows is a pair"),
        ("stimulus-config: {set_tile_rows: [4, 3]}", "V201", "set_tile_rows is a pair"),
        ("stimulus-config: {set_tile_rows: 3}", "V201", "set_tile_rows is a pair"),
        ("stimulus-config: {type: [Uniform]}", "V201", "type is a word"),
        ("stimulus-config: [Uniform]", "V201", "stimulus-config is a map"),
        ("io-config: {outputs: a}", "V201", "outputs is a list"),
        ("stimulus-config: {type: Step, overrides: }", "V202", "overrides is empty"),
        ("stimulus-config: {type: Step, overrides: {}}", "V202", "overrides is empty"),
        ("stimulus-config: {overrides: {'a[': {type: Step}}}", "V203", "not a regular expression"),
        ("stimulus-config: {overrides: {'(a+)+b': {type: Step}}}", "V203", "for ever"),
    ],
)
def test_wrong_sections_are_refused_at_their_place(section, rule, message):
    with pytest.raises(NetlistError) as caught:
        config(f"test-config:\n  {section}\n")
    assert message in str(caught.value)
    (finding,) = caught.value.diagnostics
    assert (finding.rule, finding.line, finding.severity) == (rule, 2, "error")
    assert finding.source_line.strip() == section


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("type: Unifrom, uniform_lower_bound: 0, uniform_upper_bound: 1", "did you mean 'Uniform'"),
        ("uniform_lower_bound: 0, uniform_upper_bound: 1", "type is not given"),
        ("type: Uniform, uniform_lower_bound: 0", "needs uniform_upper_bound"),
        ("type: Normal, normal_mean: 0", "needs normal_stddev"),
        ("type: Constant", "needs constant_value"),
        ("type: DebugTileId, debug_tile_id_base: 1", "needs debug_tile_id_step"),
        ("type: sparse_encoding_nz_counts, nz_strips: 1, nz_ublocks: 1", "needs nz_tiles"),
    ],
)
def test_a_stimulus_that_cannot_be_used_is_refused_on_use(fields, message):
    read = config(f"test-config: {{stimulus-config: {{type: Step, overrides: {{q: {{{fields}}}}}}}}}")
    assert read.default_stimulus.type == "step"
    assert read.named_stimulus("other") is None
    with pytest.raises(NetlistError, match=r"net.yaml:1:.*V204") as caught:
        read.named_stimulus("q")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("type: Eksact", "did you mean 'Exact'"),
        ("atol: 0", "type is not given"),
        ("type: Exact, verbosity: Loud", "unknown verbosity"),
        ("type: Exact, method: Flat", "unknown method"),
        ("type: AllClose, atol: -1", "atol is a tolerance"),
        ("type: AllClose, rtol: -.1", "rtol is a tolerance"),
        ("type: AllClose, rtol: .nan", "rtol is a tolerance"),
        ("type: AllCloseHw, check_pcc: 1.1", "check_pcc lies"),
        ("type: AllCloseHw, check_pcc: -1.1", "check_pcc lies"),
    ],
)
def test_a_comparison_that_cannot_be_used_is_refused_on_use(fields, message):
    read = config(f"test-config: {{comparison-config: {{{fields}}}}}")
    with pytest.raises(NetlistError, match="V204") as caught:
        read.comparison("q")
    assert message in str(caught.value)


@pytest.mark.parametrize("fields", ["atol: 0", "check_pcc: 1", "check_pcc: -1", "check_pct: 0"])
def test_values_at_the_bounds_are_fine(fields):
    config(f"test-config: {{comparison-config: {{type: AllClose, {fields}}}}}").comparison("q")


def test_check_warns_and_is_strict_on_demand():
    text = NETLIST + "\ntest-config: {stimulus-config: {type: Step, colour: 1, overrides: {q: {type: Nothing}}}}\n"
    found = check_text(text)
    assert found.ok
    assert [(item.rule, item.severity) for item in found.diagnostics if item.rule[:2] == "V2"] == [
        ("V200", "warning"),
        ("V216", "warning"),
        ("V204", "warning"),
    ]
    assert not check_text(text, strict=True).ok


NUMBERS = {
    "stimulus-config: {type: Uniform, uniform_lower_bound: 0, uniform_upper_bound: 1, %}":
        ("uniform_lower_bound", "uniform_upper_bound", "normal_mean", "debug_tile_id_base", "step_start"),
    "stimulus-config: {type: Normal, normal_mean: 0, normal_stddev: 1, %}": ("normal_mean", "normal_stddev"),
    "stimulus-config: {type: DebugTileId, debug_tile_id_base: 0, debug_tile_id_step: 1, %}":
        ("debug_tile_id_base", "debug_tile_id_step"),
    "stimulus-config: {type: StepRowwise, step_start: 0, step_increment: 1, %}": ("step_start", "step_increment"),
    "stimulus-config: {type: sparse_encoding, %}": ("zero_strip_freq", "zero_ublock_freq", "zero_tile_freq"),
    "comparison-config: {type: AllClose, %}": ("atol", "rtol", "check_pct", "check_pcc"),
}  # fmt: skip


@pytest.mark.parametrize("value", [".inf", "-.inf", ".INF"])
@pytest.mark.parametrize(("section", "name"), [(section, name) for section, names in NUMBERS.items() for name in names])
def test_an_infinite_number_is_a_finding_at_its_place(section, name, value):
    """numpy warned of it, or nobody did."""
    text = f"test-config:\n  {section.replace('%', '')}".replace(", }", "}")
    written = re.sub(rf", {name}: [^,}}]*", "", text)[:-1] + f", {name}: {value}}}"
    (found,) = findings("net.yaml", sections_of(written), strict=False)
    assert found.rule == "V204"
    assert found.message.startswith(
        (f"{section.partition(':')[0]}: {name}", f"{section.partition(':')[0]}: a stimulus")
    )
    assert written.split("\n")[found.line - 1][found.column - 1 : found.end_column - 1] == value


@pytest.mark.parametrize("name", ["expected", "rtol", "min_bound"])
@pytest.mark.parametrize("value", [".inf", ".nan", "1e400"])
def test_so_is_one_of_a_performance_check(name, value):
    metric = f"{{{name}: {value}}}" if name != "rtol" else f"{{expected: 1, rtol: {value}}}"
    text = f"performance-check: {{a: {{cycles-per-tensor: {metric}}}}}"
    found = performance_check.performance_findings("net.yaml", sections_of(text), strict=False)
    assert [item.rule for item in found if item.message.endswith(f"{name} is a finite number")] == ["V205"]
    assert text[found[0].column - 1 : found[0].end_column - 1] == value


def test_a_number_that_is_none_is_named_where_it_stands():
    text = "test-config:\n  stimulus-config: {type: Constant, constant_value: .nan}"
    (found,) = findings("net.yaml", sections_of(text), strict=False)
    assert (found.line, found.column) == (2, 53)
    assert found.message == "stimulus-config: a stimulus of type constant needs constant_value"


def test_after_a_thousand_findings_no_more_are_looked_for():
    text = "test-config: {comparison-config: {" + ", ".join(f"k{n}: 1" for n in range(3000)) + "}}"
    found = findings("net.yaml", sections_of(text), strict=False)
    assert len(found) == 1001
    assert found[-1].message == "there are more than 1,000 findings: nothing after this one is looked for"
    with pytest.raises(NetlistError, match="more than 1,000 findings"):
        config(text)
