"""Pictures of runs as traces."""

import json
from itertools import pairwise

import pytest

from buda_emu.performance.timeline import Live
from buda_emu.performance.timeline.picture import Flow, Lane, Memory, Slice, Stretch, TimelinePicture
from buda_emu.report.machine_readable.trace import trace
from report.drawn import pipeline


@pytest.fixture(scope="module")
def drawn():
    return pipeline()


@pytest.fixture(scope="module")
def events(drawn):
    return json.loads(json.dumps(trace(drawn), allow_nan=False))["traceEvents"]


def select_events(events, *kinds):
    return [event for event in events if event["ph"] in kinds]


def test_every_slice_stands_in_its_lane(drawn, events):
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    groups = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    slices = select_events(events, "X")
    assert len(slices) == len(drawn.slices)
    for event, item in zip(slices, drawn.slices, strict=True):
        lane = drawn.lanes[item.lane]
        assert (names[event["pid"], event["tid"]], groups[event["pid"]]) == (lane.name, lane.group)
        assert event["ts"] == item.start / 1000
        assert event["dur"] == pytest.approx((item.end - item.start) / 1000)
        assert event["args"] == dict(item.details)


def test_lanes_add_up_to_the_time_that_units_work(drawn, events):
    total = sum(event["dur"] for event in select_events(events, "X"))
    assert total * 1000 == pytest.approx(sum(item.end - item.start for item in drawn.slices))


def test_arrows_name_both_of_their_slices(drawn, events):
    places = {(e["pid"], e["tid"], e["ts"]) for e in select_events(events, "X")}
    begins, ends = select_events(events, "s"), select_events(events, "f")
    assert [e["id"] for e in begins] == [e["id"] for e in ends] == list(range(len(drawn.flows)))
    assert {(e["pid"], e["tid"], e["ts"]) for e in begins + ends} <= places
    assert {e["name"] for e in begins} <= {f"{word} core {n}" for n in range(4) for word in ("data for", "room in")}
    assert drawn.flows


def test_a_memory_counts_its_bytes_and_shows_its_tensors():
    lives = [Live("x", 0, 100, 0, 10, "a"), Live("x", 100, 50, 5, 20, "b")]
    made = trace(TimelinePicture("t", [Lane("u")], [Slice(0, 0, 20, "s")], memories=[Memory("L1", lives)]))
    events = made["traceEvents"]
    assert [(e["ts"], e["args"]["bytes"]) for e in select_events(events, "C")] == [
        (0, 100),
        (5, 150),
        (10, 50),
        (20, 0),
    ]
    assert [(e["ph"], e["name"], e["ts"]) for e in select_events(events, "b", "e")] == [
        ("b", "a", 0),
        ("e", "a", 10),
        ("b", "b", 5),
        ("e", "b", 20),
    ]
    assert len({e["id"] for e in select_events(events, "b")}) == 2


def test_counters_and_facts(drawn, events):
    (counter,) = drawn.counters
    values = [event["args"]["bytes a cycle"] for event in select_events(events, "C") if event["name"] == "DRAM"]
    assert values == list(counter.values)
    assert trace(drawn)["otherData"] == {"clock_mhz": 1000, "notes": ["This is a model."]}


def test_an_empty_run_and_a_flow_to_itself():
    assert trace(TimelinePicture("t", [], []))["traceEvents"] == []
    made = trace(TimelinePicture("t", [Lane("u")], [Slice(0, 0, 0, "s")], [Flow(0, 0)]))
    assert [event["ph"] for event in made["traceEvents"]][-2:] == ["s", "f"]


def test_a_stretch_is_a_slice_above_its_group():
    made = trace(
        TimelinePicture(
            "t",
            [Lane("u", "cores"), Lane("v", "memory")],
            [Slice(0, 0, 20, "s")],
            stretches=[Stretch(5, 15, "steady state", "cores")],
        )
    )["traceEvents"]
    (process,) = [e["pid"] for e in made if e["name"] == "process_name" and e["args"]["name"] == "cores"]
    (found,) = [e for e in select_events(made, "X") if e["cat"] == "stretch"]
    assert (found["name"], found["pid"], found["tid"], found["ts"], found["dur"]) == ("steady state", process, 0, 5, 10)
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in made if e["name"] == "thread_name"}
    assert threads[process, 0] == "stretches"


def test_times_are_short_and_touching_slices_stay_apart():
    ends = [0, 100, 233, 234, 1_000_001]
    slices = [Slice(0, a, b, "s") for a, b in pairwise(ends)]
    made = select_events(trace(TimelinePicture("t", [Lane("u")], slices, per_microsecond=1200.0))["traceEvents"], "X")
    assert all(len(str(event[key])) <= 9 for event in made for key in ("ts", "dur"))
    for one, other in pairwise(made):
        assert one["ts"] + one["dur"] == pytest.approx(other["ts"], abs=1e-9)
