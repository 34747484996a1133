"""`be.perf`: a netlist's cycles as an object."""

import pytest

import buda_emu as be
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
