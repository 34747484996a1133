"""What a change costs an op, in the chip's arithmetic."""

from dataclasses import replace

import pytest

from buda_emu.netlist.load import check
from buda_emu.netlist.sourced import evolve
from buda_emu.performance.advice.accuracy import Accuracy
from buda_emu.performance.advice.edits import Edit
from shared_files import ROOT


@pytest.fixture(scope="module")
def netlist():
    return check(ROOT / "netlists/attention.yaml").netlist


def test_lower_fidelity_and_narrower_formats_lose(netlist):
    accuracy = Accuracy()
    low = accuracy.loss(netlist, [Edit("op", "projected", ("math_fidelity",), "LoFi")])
    assert 0 < low.pcc_lost < 1e-3
    assert low.pcc_before > low.pcc_after
    assert low.error > 0
    narrow = accuracy.loss(netlist, [Edit("op", "projected", ("out_df",), "Bfp2_b")])
    assert narrow.pcc_lost > 100 * low.pcc_lost


def test_an_op_that_stays_as_it_is_loses_nothing(netlist):
    same = netlist.ops["exponentials"].attributes.approximate_mode
    found = Accuracy().loss(netlist, [Edit("op", "exponentials", ("attributes", "approximate_mode"), same)])
    assert found.pcc_lost == 0
    assert found.reason == ""


def test_it_does_not_depend_on_what_was_asked_before(netlist):
    edits = [Edit("op", "projected", ("math_fidelity",), "LoFi")]
    used = Accuracy()
    used.loss(netlist, [Edit("op", "exponentials", ("attributes", "approximate_mode"), True)])
    assert used.loss(netlist, edits) == Accuracy().loss(netlist, edits)
    assert Accuracy(1).loss(netlist, edits) != Accuracy().loss(netlist, edits)


def test_what_cannot_be_computed_is_never_taken(netlist, monkeypatch):
    monkeypatch.setattr("buda_emu.performance.advice.accuracy.MOST_PRODUCTS", 1)
    found = Accuracy().loss(netlist, [Edit("op", "projected", ("math_fidelity",), "LoFi")])
    assert found.reason == "it is too large to be computed to see"
    assert found.pcc_lost == float("inf")


def test_relu_behind_an_op_is_part_of_what_is_expected(netlist):
    name = "scaled"
    op = netlist.ops[name]
    graph = netlist.graphs[op.graph]
    attributes = replace(op.attributes, relu_en=True, relu_mode="min", relu_threshold=0.0)
    ops = tuple(evolve(other, attributes=attributes) if other.name == name else other for other in graph.ops)
    with_relu = replace(netlist, graphs={**netlist.graphs, op.graph: evolve(graph, ops=ops)})
    found = Accuracy().loss(with_relu, [Edit("op", name, ("math_fidelity",), "LoFi")])
    assert found.pcc_before > 0.999
