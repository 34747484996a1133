"""Slices of every schedule, from each layer to each later one: they check clean, run, and keep their bits."""

import pytest

from buda_emu import HostError
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.slice import choose_layers, slice_layers
from buda_emu.support.errors import ScheduleError
from gemini_schedules import NAMES, drop, edited, network, schedule


def layers_of(ir):
    return list(dict.fromkeys(work.layer_name for work in sorted(ir.workloads(), key=lambda work: work.workload_id)))


@pytest.mark.parametrize("name", [*NAMES, "b"])
def test_every_range_of_layers(name):
    ir = gemini.load(schedule(name))
    known = layers_of(ir)
    for first in range(len(known)):
        for last in range(first, len(known)):
            small = slice_layers(ir, known[first : last + 1])
            assert {work.layer_name for work in small.workloads()} == set(known[first : last + 1])
            assert [item for item in small.check() if item.severity == "error"] == []
            assert gemini.simulate(small).total > 0
            if name != "b":
                assert gemini.execute(small, network(name), seed=1).ok


def test_all_layers_are_the_schedule_but_for_its_order():
    ir = gemini.load(schedule("ring_wrap"))
    assert gemini.simulate(slice_layers(ir, layers_of(ir))).total == gemini.simulate(ir).total


def test_choosing_layers():
    ir = gemini.load(schedule("ring_wrap"))
    assert choose_layers(ir, ["c1..a1", "fc"]) == ["c1", "c2", "a1", "fc"]
    with pytest.raises(HostError, match=r"no layer 'c3' \(did you mean|no layer 'c3' \(it has"):
        choose_layers(ir, ["c3"])
    with pytest.raises(HostError, match="no layer is chosen"):
        slice_layers(ir, [])
    with pytest.raises(ScheduleError, match="breaks rules"):
        slice_layers(gemini.load(edited(schedule("ring_wrap"), drop("0/5/buffer/2"))), ["c1"])
