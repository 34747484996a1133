"""`be.perf`: a netlist's cycles as an object."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.sweep import sweep
from example_netlists import DIRECTORY

ATTENTION = DIRECTORY / "attention.yaml"


def test_a_path_and_a_netlist_give_the_same():
    one, two = be.perf(ATTENTION), be.perf(be.load(ATTENTION))
    assert one.to_json() == two.to_json()
    assert one.passed
    assert 0 < one.seconds < 1
    assert f"{one.cycles:,.0f} cycles" in repr(one)
    assert one.inputs_per_second == pytest.approx(1 / one.run.seconds(max(epoch.pace for epoch in one.epochs)))
    assert one.inputs == max(epoch.runs * epoch.timing.inputs for epoch in one.epochs)
    assert one.overall_inputs_per_second == pytest.approx(one.inputs / one.seconds)
    assert one.overall_cycles_per_input == pytest.approx(one.cycles / one.inputs)
    written = one.to_json()
    assert written["overall_inputs_per_second"] == one.overall_inputs_per_second < one.inputs_per_second
    assert written["inputs"] == one.inputs


def test_copies_of_a_graph_have_inputs_of_their_own(tmp_path):
    text = (DIRECTORY / "matmul.yaml").read_text()
    assert text.count("target_device: 0") > 1
    path = tmp_path / "copies.yaml"
    path.write_text(text.replace("target_device: 0", "target_device: [0, 1]"))
    single, copies = be.perf(DIRECTORY / "matmul.yaml"), be.perf(path)
    assert copies.inputs == 2 * single.inputs
    assert be.perf(DIRECTORY / "two_chips.yaml").inputs == 2 * 2  # both chips work on the same ones


def test_the_host_link_counts_where_it_is_slower():
    slow = be.perf(ATTENTION, what_if={"host_gbps": 0.001})
    assert slow.overall_seconds == sum(slow.run.host_seconds().values()) > slow.seconds
    assert slow.overall_inputs_per_second == pytest.approx(slow.inputs / slow.overall_seconds)


@pytest.mark.parametrize("path", sorted(DIRECTORY.glob("*.yaml")), ids=lambda path: path.stem)
def test_an_op_that_sets_the_pace_takes_as_long_everywhere(path):
    """The cycles of an op are rounded once: in its row, in the sentence and in the pace."""
    modelled = be.perf(path)
    costs = {row["op"]: row["cycles"] for row in modelled.op_rows}
    for epoch in modelled.epochs:
        if epoch.bottleneck.kind == "op":
            cycles = costs[epoch.bottleneck.name]
            assert cycles == epoch.bottleneck.cycles
            assert f" works {cycles:,.0f} of the " in epoch.bottleneck.sentence
        for op in epoch.timing.ops:
            assert sum(share for _, share in op.cost.errors) == pytest.approx(op.cost.cycles)


def test_rows_are_plain_and_complete():
    found = be.perf(ATTENTION)
    assert len(found.epoch_rows) == len(found.epochs)
    assert {row["op"] for row in found.op_rows} == set(found.netlist.ops)
    for row in (*found.epoch_rows, *found.op_rows):
        assert all(isinstance(value, str | int | float | None) for value in row.values())
    assert "<table>" in found._repr_html_()


def test_integers_and_a_single_name_are_taken_as_they_are():
    once, thrice = (be.perf(ATTENTION, parameters={"p_loop_count": count}).cycles for count in (1, np.int64(3)))
    assert once < thrice
    assert be.perf(ATTENTION, programs="run_fwd", parameters={"$p_loop_count": "3"}).cycles == thrice


@pytest.mark.parametrize("function", [be.advise, be.debug, be.numerics, be.test])
def test_every_function_takes_parameters_alike(function):
    with pytest.raises(be.HostError, match="expected an integer"):
        function(ATTENTION, parameters={"p_loop_count": 0.5})
    with pytest.raises(be.HostError, match="expected a name or a list of names"):
        function(ATTENTION, programs=5)


def test_a_debugger_takes_integers():
    with be.debug(ATTENTION, parameters={"p_loop_count": np.int32(2)}, programs="run_fwd") as session:
        assert [(name, dict(values)) for name, values in session.programs] == [("run_fwd", {"$p_loop_count": "2"})]


def test_a_sweep_takes_numbers_one_or_several():
    both = sweep(str(ATTENTION), {"p_loop_count": [1, np.int64(2)]})
    assert [point.settings for point in both] == [{"p_loop_count": "1"}, {"p_loop_count": "2"}]
    (second,) = sweep(str(ATTENTION), {"p_loop_count": 2})
    assert second.cycles == both[1].cycles
    with pytest.raises(be.HostError, match="--sweep p_loop_count: no value is given"):
        sweep(str(ATTENTION), {"p_loop_count": []})


def test_conditions_change_the_figures():
    usual = be.perf(ATTENTION)
    assert be.perf(ATTENTION, what_if={"clock": 2000}).seconds < usual.seconds
    assert be.perf(ATTENTION, model="vendor").cycles != usual.cycles
    small = be.perf(ATTENTION, grid=(8, 8))
    assert [epoch.timing.total for epoch in small.epochs] == [epoch.timing.total for epoch in usual.epochs]
    assert small.cycles < usual.cycles  # fewer cores read the blob of an epoch
    assert be.perf(ATTENTION, programs=["run_fwd"]).run.programs().keys() == {"run_fwd"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"programs": ["nope"]}, "no program 'nope'"),
        ({"programs": "nope"}, "no program 'nope'"),
        ({"parameters": {"$p_loop_count": 1.5}}, r"parameter \$p_loop_count is 1\.5: expected an integer"),
        ({"parameters": {"$nope": "1"}}, "no program takes the parameter"),
        ({"what_if": {"speed": 1}}, "not one of clock"),
        ({"harvest": [99]}, "row 99"),
        ({"grid": (99, 1)}, "not within"),
    ],
)
def test_mistakes(arguments, said):
    with pytest.raises(be.HostError, match=said):
        be.perf(ATTENTION, **arguments)


def test_another_chip_than_the_netlist_was_loaded_for():
    netlist = be.load(ATTENTION)
    other = "grayskull" if netlist.arch_name != "grayskull" else "blackhole"
    with pytest.raises(be.HostError, match="load it with"):
        be.perf(netlist, arch=other)
