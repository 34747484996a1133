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
