"""`performance-check`: what is read, what is wrong with it, when a figure passes (NETLIST 6, PERF 4)."""

import pytest

from buda_emu.netlist.test_config import Bound, read_performance_checks
from buda_emu.netlist.test_config import performance_findings as findings
from buda_emu.netlist.yaml_reader import read_tree
from buda_emu.support.errors import NetlistError


def sections(text):
    return {key: value for key, _, value in read_tree("performance-check:\n" + text).items()}


def read(text):
    return read_performance_checks("net.yaml", sections(text))


def rules(text, strict=False):
    return [(item.rule, item.severity, item.line) for item in findings("net.yaml", sections(text), strict=strict)]


def test_every_field():
    (check,) = read(
        "  config-0:\n    graph-name: g\n    program-name: p\n    target-cores: [1-1, 2-3]\n    target-ops: [a]\n"
        "    target-inputs: [0, -1]\n    test-group: 'group'\n    test-name: name\n"
        "    cycles-per-tensor: {expected: 35500, rtol: 0.1}\n    math-utilization: {min_bound: 59.9}\n    note: mine\n"
    )
    assert (check.name, check.graph, check.program) == ("config-0", "g", "p")
    assert (check.target_cores, check.target_ops, check.target_inputs) == (("1-1", "2-3"), ("a",), (0, -1))
    assert (check.test_group, check.test_name) == ("group", "name")
    assert check.of("epoch") == (Bound("cycles-per-tensor", 35500.0, 0.1),)
    assert check.of("core") == (Bound("math-utilization", min_bound=59.9),)
    assert check.of("run") == ()


def test_defaults():
    (check,) = read("  x: {total-runtime: {expected: 7}}\n")
    assert check.bounds == (Bound("total-runtime", 7.0, 0.01),)
    assert (check.graph, check.target_inputs, check.target_cores) == ("", (0,), ())
    assert read("  x:\n")[0].bounds == ()
    assert read_performance_checks("net.yaml", {}) == ()


def test_a_bound_by_hand():
    near = Bound("cycles-per-tensor", 1000.0, 0.1)
    assert [near.holds(value) for value in (900.0, 900.1, 1000.0, 1099.9, 1100.0)] == [False, True, True, True, False]
    least = Bound("tensors-per-second", min_bound=10.0)
    assert [least.holds(value) for value in (9.99, 10.0, 1e9)] == [False, True, True]
    assert Bound("total-runtime", -100.0, 0.1).holds(-95.0)
    assert str(near) == "1000 within 10 %"
    assert str(least) == "at least 10"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  x: {cycles-per-tensor: {expected: many}}\n", [("V205", 2), ("V206", 2)]),
        ("  x: 3\n", [("V205", 2)]),
        ("  x: {target-inputs: [a]}\n", [("V205", 2)]),
        ("  x: {target-ops: a}\n", [("V205", 2)]),
        ("  x: {output-bw: {expected: 1, min_bound: 2}}\n", [("V206", 2)]),
        ("  x: {output-bw: {rtol: 0.1, min_bound: 2}}\n", [("V206", 2)]),
        ("  x: {output-bw: {rtol: 0.1}}\n", [("V206", 2)]),
        ("  x:\n    cycle-per-tensor: {expected: 1}\n", [("V207", 3)]),
        ("  x: {anything: 1}\n", []),
    ],
)
def test_what_is_wrong(text, expected):
    assert [(rule, line) for rule, _, line in rules(text)] == expected
    assert {severity for _, severity, _ in rules(text)} <= {"warning"}
    errors = [rule for rule, severity, _ in rules(text, strict=True) if severity == "error"]
    assert errors == [rule for rule, _ in expected if rule != "V207"]
    if errors:
        with pytest.raises(NetlistError, match=errors[0]):
            read(text)


def test_sections_of_real_netlists_are_fine(corpus):
    from buda_emu.netlist.load import check

    path = corpus / "netlists/verif/graph_tests/netlists/netlist_bert_base.yaml"
    netlist = check(path).netlist
    checks = read_performance_checks(netlist.path, netlist.sections)
    assert [check.graph for check in checks] == [f"fwd_{i}" for i in range(6)]
    assert all(check.bounds[0].metric == "tensors-per-second" for check in checks)


def test_an_expected_of_0_states_nothing():
    bound = Bound("execution-cycles", expected=0.0)
    assert not bound.stated
    assert bound.holds(5.0)
    assert str(bound) == "not stated"
    assert Bound("execution-cycles", min_bound=0.0).stated
