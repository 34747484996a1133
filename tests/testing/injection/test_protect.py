"""Protection: codes do what their distance says, ranges leave clean runs alone and make failures fewer."""

import numpy as np
import pytest

from buda_emu.testing.injection.protect import Ranges, in_memory
from buda_emu.testing.injection.result import FAILURES, Campaign
from buda_emu.testing.injection.sites import name_of
from faults_bench import bench


def effects(count=150, precision="format", name="attention", **settings):
    found = bench(name, precision, **settings)
    return found, [found.effect(number) for number in range(count)]


@pytest.mark.parametrize(
    ("bits", "parity", "ecc"), [(1, "detected", "corrected"), (2, None, "detected"), (3, "detected", None)]
)
def test_codes_see_what_their_distance_lets_them_see(bits, parity, ecc):
    _, made = effects(60, protect=("parity", "ecc"), burst=bits, places=("dram", "l1"))
    whole = [item for item in made if len(item.fault.bits) == bits]
    assert len(whole) > 30
    assert {item.after.get("parity") for item in whole} == {parity}
    assert {item.after.get("ecc") for item in whole} == {ecc}


def test_codes_protect_memory_alone():
    _, made = effects(60, protect=("parity", "ecc"), places=("operand",))
    assert not any(item.after for item in made)
    _, made = effects(60, protect=("ecc",), kinds=("core", "packet", "format"))
    assert not any(item.after for item in made)


def test_a_burst_is_detected():
    found, made = effects(20, protect=("ecc",), kinds=("burst",), places=("dram",))
    left = [item.after.get("ecc") for item in made]  # a word passes with an odd number of flips, so 1 in 256 does
    assert left.count("detected") >= 18
    assert "corrected" not in left
    assert in_memory("parity", made[0].fault, found._noise_seed(made[0].fault)) == "detected"


@pytest.mark.parametrize("precision", ["format", "device"])
def test_ranges_leave_clean_runs_alone_and_make_failures_fewer(precision):
    found, made = effects(150, precision, protect=("range",), places=("l1", "operand"))
    ranges = Ranges([found.trace])
    for node in found.trace.nodes:
        if node.step is not None:
            assert ranges.clip(node, node.value) is node.value
    before = sum(item.failed for item in made)
    after = sum(item.after.get("range", item.outcome) in FAILURES for item in made)
    assert before >= 5
    assert after <= before / 2


def test_nan_becomes_the_bound_nearest_to_zero():
    found = bench("attention")
    node = next(node for node in found.trace.nodes if node.step is not None and node.df == "Float16_b")
    value = node.value.copy()
    value[0, 0, :3] = np.nan, np.inf, -np.inf
    clean = node.value
    every = [other.value for other in found.trace.nodes if name_of(other) == name_of(node)]
    low, high = min(item.min() for item in every), max(item.max() for item in every)
    inside = Ranges([found.trace]).clip(node, value)
    assert inside[0, 0, :3].tolist() == [min(max(0.0, low), high), high, low]
    assert np.array_equal(inside[0, 0, 3:], clean[0, 0, 3:])


def test_an_op_that_never_gave_a_number_has_no_bounds():
    found = bench("attention")
    node = next(node for node in found.trace.nodes if node.step is not None)
    ranges = Ranges([found.trace])
    value = node.value * 1e6
    assert ranges.clip(node, value) is not value
    del ranges._of[name_of(node)]
    assert ranges.clip(node, value) is value


def test_costs():
    found, made = effects(30, protect=("parity", "ecc", "range"))
    costs = found.costs()
    assert costs["parity"].share == 1 / 32
    assert costs["ecc"].bits == pytest.approx(7 * costs["parity"].bits, abs=7)
    assert 1 < costs["parity"].time < costs["ecc"].time < 1 + 7 / 32
    assert 1 <= costs["range"].time < 2
    campaign = Campaign("", "", "", 0, {}, tuple(made), 0.0, True, {}, costs)
    rows = {item.name: item for item in campaign.protection()}
    assert all(sum(item.counts.values()) == 30 for item in rows.values())
    assert rows["ecc"].failures <= rows["ecc"].before
