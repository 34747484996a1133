"""Requests: the cache against a model of five lines, bytes by kind, times by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.foreign.darwinn import build, load, replay
from buda_emu.foreign.darwinn.assumptions import assume
from buda_emu.foreign.darwinn.command.running import REPLAY
from buda_emu.foreign.darwinn.picture import replay_picture
from buda_emu.foreign.darwinn.replaying import residence
from buda_emu.foreign.darwinn.report import replay_lines
from buda_emu.support.errors import HostError, PackageError, UnsupportedError
from foreign.darwinn import example_trees as ex


def package(token=5, caching_token=None, kinds=("EXECUTION_ONLY", "PARAMETER_CACHING"), edit=ex.unchanged, of=ex.EDGES):
    tree = ex.tree(of)
    ex.main(tree)["parameter_caching_token"] = token
    ex.caching(tree)["parameter_caching_token"] = token if caching_token is None else caching_token
    first, second = tree["executables"]
    made = {"EXECUTION_ONLY": first, "PARAMETER_CACHING": second, "STAND_ALONE": {**first, "type": "STAND_ALONE"}}
    tree["executables"] = [made[kind] for kind in kinds]
    edit(tree)
    return load(build(tree))


ALL = ("EXECUTION_ONLY", "PARAMETER_CACHING", "STAND_ALONE")
POOL = [
    package(5), package(5), package(6), package(0, 5), package(7, 5), package(6, of=ex.SPOTS),
    package(0, kinds=ALL[2:]), package(5, kinds=ALL), package(5, kinds=ALL[:1]),
]  # fmt: skip


def plain_cache(packages, requests):
    """The driver's parameter cache (DARWINN 4)."""
    token, cached, events, resets, resident = 0, [], [], [], []
    for request, number in enumerate(requests):
        p = packages[number]
        if not p.main.parameter_caching_token or p.main.parameter_caching_token != token:
            resets += [request] if cached else []
            token, cached = 0, []
        if p.caching is not None and number not in cached:
            token, cached = p.caching.parameter_caching_token, [*cached, number]
            events.append((request, number, "caching"))
        events.append((request, number, "inference"))
        resident.append(sum(packages[n].caching.parameter_bytes for n in cached))
    return events, resets, resident


@settings(deadline=None)
@given(st.lists(st.integers(0, len(POOL) - 1), max_size=12))
def test_the_cache_is_the_drivers(requests):
    found = replay(POOL, requests)
    assert (
        [event[:3] for event in found.events],
        list(found.resets),
        [outcome.resident for outcome in found.outcomes],
    ) == plain_cache(POOL, requests)
    assert len(found.outcomes) == len(requests)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(0, len(POOL) - 1), max_size=6), st.sampled_from([None, "usb2", "usb3", 1000]),
    st.sampled_from([None, "low", "max"]), st.booleans(),
)  # fmt: skip
def test_times_are_in_order_and_complete(requests, link, clock, overlap):
    found = replay(POOL, requests, link=link, frequency_hz=clock, overlap=overlap)
    ends = [outcome.end for outcome in found.outcomes]
    assert ends == sorted(ends)
    assert all(event.start <= event.end for event in found.events)
    assert found.timeline.timing.makespan == max(ends, default=0)
    if not overlap:
        for before, after in zip(found.events, found.events[1:], strict=False):
            assert after.start >= before.end
    if clock is None:
        assert found.unknown_compute == len(found.events)


def test_one_request_by_hand():
    found = replay([package()], [0], link=1_000_000_000, frequency_hz=1_000_000_000)
    # a header of 8 bytes before each transfer to the device; a byte and a cycle take a nanosecond
    cached = 512 + 8 + 5440 + 8
    moved_in = 4096 + 8 + 2 * (384 + 8)
    assert found.events[0].end == cached
    assert [outcome.end for outcome in found.outcomes] == [cached + moved_in + 6000 + 512 + 12]
    assert found.unknown_compute == 1  # the compiler estimates no cycles of caching
    assert found.bytes == {
        "instructions": 4608,
        "input": 768,
        "output": 524,
        "parameters_cached": 5440,
        "parameters_streamed": 0,
        "scratch_in": 0,
        "scratch_out": 0,
        "headers": 40,
    }


def test_overlap_lets_the_next_request_begin():
    both = replay([package()], [0, 0], link="usb3", frequency_hz="low")
    apart = replay([package()], [0, 0], link="usb3", frequency_hz="low", overlap=False)
    assert both.events[2].start < both.events[1].end
    assert apart.events[2].start >= apart.events[1].end
    assert both.outcomes[1].end < apart.outcomes[1].end


def test_evictions_name_the_packages():
    found = replay([package(5), package(5), package(6)], [0, 1, 2])
    assert [(item.request, item.packages) for item in found.evictions] == [(2, (0, 1))]


def test_more_than_the_assumed_sram_is_warned_of():
    assert replay([package()], [0], sram_bytes=5440).warnings == ()
    (warning,) = replay([package()], [0], sram_bytes=5439).warnings
    assert "5,440" in warning
    assert "assumed 5,439" in warning


def test_pcie_says_what_it_does_not_see():
    found = replay([package()], [0], transport="pcie", link="pcie")
    assert found.bytes["input"] == 0
    assert "only the instructions" in found.warnings[0]


@pytest.mark.parametrize(("transport", "header"), [("usb", 8), ("pcie", 0)])
def test_only_usb_sends_headers_at_a_rate_of_ones_own(transport, header):
    link = assume(transport, True, 1000, None, 1).link
    assert link is not None
    assert (link.bytes_per_second, link.header) == (1000, header)


def test_every_assumption_is_named():
    lines = "\n".join(replay([package()], [0], link="usb2", frequency_hz="high").assumptions.lines())
    for word in ("usb2", "53,248,000", "250,000,000", "8,388,608", "overlap"):
        assert word in lines
    lines = "\n".join(replay([package()], [0]).assumptions.lines())
    assert "no link assumed" in lines
    assert "no clock assumed" in lines


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"link": "wifi"}, "usb2, usb3, pcie"), ({"link": 0}, "link"), ({"frequency_hz": "turbo"}, "low, medium, high"),
        ({"frequency_hz": -1}, "frequency_hz"), ({"sram_bytes": 0}, "sram_bytes"), ({"transport": "i2c"}, "usb, pcie"),
    ],
)  # fmt: skip
def test_what_is_no_assumption_is_refused(options, says):
    with pytest.raises(HostError, match=says):
        replay([package()], [0], **options)


@pytest.mark.parametrize("requests", [[1], [-1]])
def test_requests_are_numbers_of_packages(requests):
    with pytest.raises(HostError, match="counted from 0"):
        replay([package()], requests)


@pytest.mark.parametrize(
    ("edit", "rule"),
    [
        (lambda tree: ex.caching(tree).update(parameter_caching_token=0), "D030"),
        (lambda tree: ex.main(tree).update(instruction_bitstreams=[]), "D032"),
        (lambda tree: ex.chunk(tree).update(bitstream=b""), "D033"),
        (lambda tree: ex.main(tree).update(dma_hints=None), "D050"),
        (lambda tree: ex.hint(tree, 1).update(size_in_bytes=-1), "D053"),
    ],
)
def test_a_request_that_fails_is_an_error(edit, rule):
    with pytest.raises(PackageError, match=rule):
        replay([package(edit=edit)], [0])


def scratch(*steps):
    """An edit: the main executable's list is its chunk, then scratch in and out, fences and an output."""

    def edit(tree):
        made = {
            "in": {"any_hint_type": "DmaDescriptorHint", "direction": "INFEED"},
            "out": {"any_hint_type": "DmaDescriptorHint", "direction": "OUTFEED"},
            "fence": {"any_hint_type": "FenceHint", "any_hint": {}},
        }
        for name in ("in", "out"):
            made[name]["any_hint"] = {"meta": {"desc": "BASE_ADDRESS_SCRATCH"}, "size_in_bytes": 64}
        hints = ex.hints(tree)
        ex.main(tree)["scratch_size_bytes"] = 64
        ex.main(tree)["dma_hints"]["hints"] = [hints[0], *(made[name] for name in steps), *hints[1:]]

    return edit


def kinds_of(found):
    return [(item.kind, item.space.partition(" of ")[0], item.size) for item in found.hazards()]


def test_what_is_ordered_by_fences_is_no_hazard():
    apart = replay([package(edit=scratch("out", "fence", "in"))], [0, 0], link="usb3", overlap=False)
    assert kinds_of(apart) == []


def test_scratch_that_is_read_before_it_is_written():
    found = replay([package(edit=scratch("in", "fence", "out"))], [0], link="usb3")
    assert kinds_of(found) == [("unwritten", "scratch", 64)]


def test_scratch_that_nothing_orders_races():
    assert ("race", "scratch", 64) in kinds_of(replay([package(edit=scratch("out", "in"))], [0], link="usb3"))
    both = replay([package(edit=scratch("out", "fence", "in"))], [0, 0], link="usb3")
    assert kinds_of(both) == []  # a request's outputs are after its computing, which is after its scratch


def test_requests_of_the_examples_have_no_hazards():
    assert replay([package(), package(of=ex.SPOTS), package(6)], [0, 1, 0, 2, 1], link="usb2").hazards() == []


def test_more_tasks_than_can_be_checked_are_said_not_to_be():
    found = replay([package()], [0] * 9000)
    with pytest.raises(UnsupportedError, match="50,000"):
        found.hazards()
    assert any("not checked" in line for line in replay_lines(found))
    assert REPLAY.document(found)["hazards"] is None


def test_only_requests_that_cache_are_said_to():
    (table,) = (text for text in replay_lines(replay([package()], [0, 0])) if text.startswith("request"))
    _, first, second = table.splitlines()
    assert "yes" in first
    assert "yes" not in second


def test_parameters_that_are_cached_together_lie_one_above_the_other():
    found = replay([package(5), package(5)], [0, 1, 0], link="usb3", frequency_hz="max")
    (memory,) = replay_picture(found).memories
    together = [live for live in memory.lives if live.end == found.timeline.timing.makespan]
    assert sorted(live.address for live in together) == [0, together[0].size]


def test_the_picture_of_a_replay():
    found = replay([package(5), package(6)], [0, 1, 0], link="usb3", frequency_hz="max")
    drawn = replay_picture(found)
    assert [lane.name for lane in drawn.lanes] == ["host to device", "device to host", "tpu"]
    assert len(drawn.slices) == len(found.timeline.timing.start)
    assert {"caching: parameters", "inference: output", "inference: compute"} <= {
        item.category for item in drawn.slices
    }
    (memory,) = drawn.memories
    spans = [(live.start, live.end) for live in memory.lives]
    starts = {event.request: event.start for event in found.events if event.kind == "caching"}
    assert spans == [(starts[0], starts[1]), (starts[1], starts[2]), (starts[2], found.timeline.timing.makespan)]
    text = " ".join(drawn.notes)
    for words in ("not public", "usb3", "500,000,000 Hz", "never measured", "drawn as 0"):
        assert words in text


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, len(POOL) - 1), max_size=8))
def test_packages_are_cached_as_long_as_the_cache_says(requests):
    found = replay(POOL, requests, link="usb3", overlap=False)
    held = {number: [] for number in range(len(POOL))}
    for number, start, end in residence(found.events, found.evictions, found.timeline.timing.makespan):
        held[number].append((start, end))
    for event in found.events:
        if event.kind == "inference" and POOL[event.package].caching is not None:
            assert any(start <= event.start < end or start == end for start, end in held[event.package])
