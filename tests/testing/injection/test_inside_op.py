"""Faults inside of ops: the watched units have the bits of the kernels, and a flip in a unit does what it must."""

from dataclasses import replace

import numpy as np
import pytest

from buda_emu.emulator.runtime.graph.steps import Run
from buda_emu.support.errors import HostError
from buda_emu.testing.injection.corrupt import spoils
from buda_emu.testing.injection.fault import Fault
from buda_emu.testing.injection.inside_op import WatchedUnits
from buda_emu.testing.injection.sites import name_of
from faults_bench import bench
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

B = "Float16_b"
NAMES = ("attention", "softmax", "training", "eltwise_tms", "matmul", "two_chips")


def runs(found):
    return [node for node in found.trace.nodes if isinstance(node.step, Run)]


@pytest.mark.parametrize("name", NAMES)
def test_watched_units_have_the_bits_of_the_machine(name):
    found = bench(name, "device")
    arithmetic = found.trace.arithmetic
    for node in runs(found):
        units = WatchedUnits(arithmetic.core)
        assert arithmetic.equal(found.trace.recompute(node.number, units), node.value), name_of(node)
        tiles = [visit.tiles for visit in units.visits if visit.place == "packer"]
        if node.step.op.type != "ethernet_datacopy":  # it moves tiles, and computes nothing
            assert sum(tiles) >= node.value.shape[1], name_of(node)


def chain(tmp_path):
    """x + y, then exp, on bfloat16."""
    path = tmp_path / "net.yaml"
    path.write_text(
        text(
            [queue("x", df=B), queue("y", df=B), queue("z", "power", df=B)],
            [graph("g", op("sum", "add", ["x", "y"], df=B), op("power", "exp", ["sum"], df=B, loc=(0, 1)))],
            [program("run", "var: {$c_zero: 0}", execute("g", fifo_settings("x"), fifo_settings("y")))],
        )
    )
    return str(path)


def spoilt(found, fault):
    """The op's result before and after, as bits of its datums."""
    fault = found._draw.resolve(fault)
    (node,) = fault.nodes
    value = spoils(fault, found.trace, 0)[node](found.trace.nodes[node].value)
    return found.trace.nodes[node].value.datums.reshape(-1), value.datums.reshape(-1)


def test_a_sign_that_flips_in_dst_is_a_negation(tmp_path):
    found = bench(chain(tmp_path), "device", places=("dst",))
    fault = Fault(0, "flip", "dst", "sum", "", "Float16_b", entry=0, tile=0, datum=77, bits=(15,))
    before, after = spoilt(found, fault)
    assert np.flatnonzero(before != after).tolist() == [77]
    assert after[77] == before[77] ^ 0x8000


def test_what_flips_in_the_packer_flips_in_l1(tmp_path):
    found = bench(chain(tmp_path), "device")
    inside = Fault(0, "flip", "packer", "power", "", "Float16_b", entry=0, tile=0, datum=5, bits=(7, 8))
    _, one = spoilt(found, inside)
    before, other = spoilt(found, replace(inside, place="l1"))
    assert np.array_equal(one, other)
    assert np.flatnonzero(before != one).tolist() == [5]


def test_registers_of_the_vector_unit(tmp_path):
    """The last instruction writes the result: its sign is that of the datum. Bits of an earlier one reach that datum
    alone, and one that nobody reads any more changes nothing."""
    found = bench(chain(tmp_path), "device", places=("sfpu",))
    (site,) = found.sites.places["sfpu"].items
    assert site.steps > 5
    fault = Fault(0, "flip", "sfpu", "power", "", "Float32", entry=0, tile=0, datum=9, bits=(31,), step=site.steps - 1)
    before, after = spoilt(found, fault)
    assert np.flatnonzero(before != after).tolist() == [9]
    assert after[9] == before[9] ^ 0x8000
    lost = spoilt(found, replace(fault, bits=(0,)))  # below the bits that Dst keeps of a bfloat16
    assert np.array_equal(*lost)
    for step in range(site.steps):
        before, after = spoilt(found, replace(fault, bits=(30,), step=step))
        assert set(np.flatnonzero(before != after).tolist()) <= {9}


def test_places_inside_are_those_of_precision_device(tmp_path):
    with pytest.raises(HostError, match="precision device"):
        bench(chain(tmp_path), "format", places=("dst",))


@pytest.mark.parametrize("place", ["dst", "sfpu", "packer"])
def test_every_place_is_drawn(place):
    found = bench("attention", "device", places=(place,))
    effects = [found.effect(number) for number in range(40)]
    assert {item.fault.place for item in effects} == {place}
    assert any(item.outcome != "masked" for item in effects)
    where = {item.fault.where for item in effects}
    assert where <= {"exponentials", "inverses"} if place == "sfpu" else len(where) > 3
