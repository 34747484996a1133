"""Time: fixtures worked by hand, laws, deadlocks, and the L2 accesses of what is legal."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu import HostError, ProgramError
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.figures import l2_accesses, l2_races, run_figures
from gemini_schedules import EXPECTED, NAMES, drop, edited, put, schedule

ALL = (*NAMES, "b")


@pytest.mark.parametrize("name", NAMES)
def test_times_bytes_and_links(name):
    timeline = gemini.simulate(gemini.load(schedule(name)))
    want = EXPECTED[name]
    assert timeline.total == want["total"]
    assert [[*key, *span] for key, span in sorted(timeline.workloads.items())] == want["workloads"]
    assert [[d.kind, d.transfer_id, d.bytes, d.start, d.end] for d in timeline.dram] == want["dram"]
    assert sorted([n.transfer_id, n.start, n.end] for n in timeline.noc) == sorted(want["noc"])
    assert [[list(a), list(b), size] for (a, b), size in sorted(timeline.links.items())] == want["links"]
    assert gemini.simulate(gemini.load(schedule(name)), dram_gibps=8).total == want["total_at_8_gibps"]


def test_third_tile_waits_for_the_loads_of_its_snapshot():
    # facts GEMINI 5.3: the weights of workload 2 end at 10 017, the load with its gate at 11 110
    timeline = gemini.simulate(gemini.load(schedule("third_tile")))
    assert timeline.workloads[0, 2] == (10017, 11650)


def test_with_two_tiles_the_weights_do_not_wait_for_the_loads_of_their_snapshot():
    two = edited(schedule("third_tile"), *(drop(f"0/2/tile_info/tile_num_{number}") for number in (2, 3)))
    start, end = gemini.simulate(gemini.load(two)).workloads[0, 2]
    assert (start, end < 11110) == (10017, True)


def test_dialect_b_by_hand():
    timeline = gemini.simulate(gemini.load(schedule("b")))
    order = [(item.kind, item.transfer_id) for item in timeline.dram]
    assert order == [("weight", 0), ("load", 1), ("load", 2), ("store", 6), ("weight", 3), ("load", 7), ("store", 8)]
    # weight 0: 216 bytes, x = 12.57, 20 + 13; load 1: 36 bytes, x = 2.1, 20 + 3; load 2 the same
    assert [(item.start, item.end) for item in timeline.dram[:3]] == [(0, 33), (33, 56), (56, 79)]
    assert timeline.workloads[1, 0] == (56, 356)
    assert timeline.workloads[2, 1] == (79, 379)
    # 64 bytes go one hop: 1 + 2 cycles
    assert [(n.transfer_id, n.start, n.end) for n in timeline.noc] == [(5, 379, 382)]
    assert timeline.workloads[1, 2] == (382, 432)
    assert timeline.links == {((1, 0), (0, 0)): 64}


@given(st.sampled_from(ALL), st.floats(0.25, 64), st.floats(1.01, 8), st.floats(0.25, 4))
@settings(max_examples=60, deadline=None)
def test_less_bandwidth_never_shortens(name, gibps, factor, ghz):
    ir = gemini.load(schedule(name))
    slow = gemini.simulate(ir, dram_gibps=gibps, freq_ghz=ghz).total
    fast = gemini.simulate(ir, dram_gibps=gibps * factor, freq_ghz=ghz).total
    assert fast <= slow


@given(st.sampled_from(ALL), st.floats(0.25, 64), st.floats(1, 256))
@settings(max_examples=60, deadline=None)
def test_total_is_at_least_each_core_and_the_queue(name, gibps, noc):
    ir = gemini.load(schedule(name))
    timeline = gemini.simulate(ir, dram_gibps=gibps, noc_bytes_per_cycle=noc)
    queue = sum(item.end - item.start for item in timeline.dram)
    works = [sum(work.time for work in core) for core in ir.cores.values()]
    assert timeline.total >= max(queue, *works)
    assert all(a.end <= b.start for a, b in zip(timeline.dram, timeline.dram[1:], strict=False))


@pytest.mark.parametrize("name", ALL)
def test_times_of_cores_add_up(name):
    ir = gemini.load(schedule(name))
    figures = run_figures(ir, gemini.simulate(ir))
    for core in figures.cores:
        assert core.compute + sum(core.waits.values()) + core.rest == figures.total
    assert sum(item.cycles for item in figures.layers) == sum(core.compute for core in figures.cores)


def test_deadlock_names_who_waits_for_whom():
    swapped = [
        put(f"0/{place}/tensor_order", order)
        for place, order in (("0/buffer/0", 2), ("1/buffer/0", 2), ("1/buffer/2", 0), ("2/buffer/0", 0))
    ]
    broken = edited(schedule("third_tile"), *swapped)
    ir = gemini.load(broken)
    assert [item.rule for item in ir.check() if item.severity == "error"] == []
    with pytest.raises(ProgramError, match="deadlock") as error:
        gemini.simulate(ir)
    assert error.value.kind == "deadlock"
    text = str(error.value)
    assert "weight of transfer 2 to core 0 waits for 1 of the end of core 0 workload 0 (q)" in text
    assert "comes after" in text
    assert "closes the circle" in text


def test_a_piece_that_is_not_sent_is_named():
    broken = edited(schedule("two_cores"), drop("0/0/ofmap/1/destination/0"))
    with pytest.raises(ProgramError, match="transfer 13, which its maker does not send"):
        gemini.simulate(gemini.load(broken))


def test_a_store_that_never_starts_is_named():
    broken = edited(schedule("fp16_dram"), put("0/6/buffer/2/start_send", False))
    with pytest.raises(ProgramError, match="start_send of tensor 9 of core 0"):
        gemini.simulate(gemini.load(broken))


def test_a_direct_weight_without_origin_is_named():
    edits = [put("0/2/wl1_buffer/0/transfer_id", [99]), put("0/3/wl1_buffer/0/transfer_id", [99])]
    with pytest.raises(ProgramError, match=r"0/2/wl1_buffer/0: nothing leaves DRAM as transfers \[99\]"):
        gemini.simulate(gemini.load(edited(schedule("fp16_dram"), *edits)))


@pytest.mark.parametrize(
    "rates", [{"dram_gibps": 0}, {"freq_ghz": -1}, {"noc_bytes_per_cycle": float("nan")}, {"dram_gibps": "x"}]
)
def test_rates_are_above_zero(rates):
    with pytest.raises(HostError, match=next(iter(rates))):
        gemini.simulate(gemini.load(schedule("ring_wrap")), **rates)


@pytest.mark.parametrize("name", NAMES)
def test_legal_schedules_have_no_race_in_any_order_of_waits(name):
    timeline = gemini.simulate(gemini.load(schedule(name)))
    assert l2_accesses(timeline)
    assert l2_races(timeline) == []


def test_a_result_on_a_tensor_that_is_still_loaded_is_a_race():
    # tensor 7 (weights of fc, loaded in snapshot 4) is put where tensor 6 is read
    moved = [put("0/4/buffer/1/address", 6272), put("0/5/buffer/0/address", 6272)]
    races = l2_races(gemini.simulate(gemini.load(edited(schedule("ring_wrap"), *moved))))
    assert races
    assert all(item.kind == "race" and item.space == "L2 of core 0" for item in races)
