"""Cycles of collectives: bounds, order, ways of the pieces, and refusals."""

import random
from dataclasses import replace
from math import inf

import pytest

from buda_emu.performance.timing import Collective, collective_cycles, collective_interval
from buda_emu.performance.timing.transfers.collectives import (
    COLLECTIVES,
    SMALL,
    collective_cost,
    cycles_of,
    link_share,
)
from buda_emu.performance.timing.transfers.rates import speed
from buda_emu.spec.devices import device
from buda_emu.support.errors import HostError, UnsupportedError

CHIPS = ("wormhole_b0", "blackhole")
GATHER = Collective(kind="all_gather", chips=4, size=1 << 26)


def drawn(random_numbers):
    """A random collective of at least two chips."""
    chips = random_numbers.randrange(2, 17)
    return Collective(
        kind=random_numbers.choice(COLLECTIVES),
        chips=chips,
        size=int(2 ** random_numbers.uniform(0, 34)),
        layout=random_numbers.choice(("line", "ring")) if chips > 2 else "line",
        links=random_numbers.randrange(1, 7),
    )


def least_bytes(collective):
    """What some link has to carry in one direction, by a cut that no way around it avoids: at the end of a line or
    around one chip of a ring, or through the middle."""
    chips = collective.chips
    hops = 2 if collective.layout == "ring" else 1
    piece = collective.size / chips / collective.links
    if collective.kind == "all_to_all":
        return (chips // 2) * (chips - chips // 2) * piece / hops
    passes = 2 if collective.kind == "all_reduce" else 1
    return passes * (chips - 1) * piece / hops


@pytest.mark.parametrize("chip", CHIPS)
def test_no_collective_is_faster_than_the_bytes_of_its_links(chip):
    rate = speed(device(chip), {}).rates().ethernet / device(chip).neighbour_links
    random_numbers = random.Random(59)
    for _ in range(300):
        collective = drawn(random_numbers)
        assert collective_cycles(collective, chip) > least_bytes(collective) / rate, collective


@pytest.mark.parametrize("chip", CHIPS)
def test_more_bytes_never_take_less_and_more_links_never_take_longer(chip):
    random_numbers = random.Random(60)
    for _ in range(300):
        collective = drawn(random_numbers)
        cycles = collective_cycles(collective, chip)
        larger = replace(collective, size=collective.size + random_numbers.randrange(1, 1 << 24))
        assert collective_cycles(larger, chip) > cycles, collective
        assert collective_cycles(replace(collective, links=collective.links + 1), chip) < cycles, collective


@pytest.mark.parametrize("chip", [*CHIPS, "grayskull", "p100"])
@pytest.mark.parametrize("kind", COLLECTIVES)
def test_one_chip_alone_takes_no_time(kind, chip):
    alone = Collective(kind=kind, chips=1, size=1 << 30)
    assert collective_cycles(alone, chip) == 0
    assert (collective_interval(alone, chip).low, collective_interval(alone, chip).high) == (0, 0)


def ways(start, end, collective):
    """The hops (left chip, direction) of all shortest ways from a chip to another."""
    chips = collective.chips
    if collective.layout == "line":
        if start < end:
            return [[(chip, 1) for chip in range(start, end)]]
        return [[(chip, -1) for chip in range(end, start)]]
    right, left = (end - start) % chips, (start - end) % chips
    shortest = []
    if right <= left:
        shortest.append([((start + step) % chips, 1) for step in range(right)])
    if left <= right:
        shortest.append([((end + step) % chips, -1) for step in range(left)])
    return shortest


def fullest(collective):
    """The share of the array that the fullest hop carries, counted piece by piece. Pieces that all chips get pass each
    hop once, and half of them goes each way around."""
    chips = collective.chips
    loads = {}
    for start in range(chips):
        crossed = {}
        for end in range(chips):
            possible = ways(start, end, collective) if start != end else []
            if collective.kind == "all_to_all":
                possible = possible[:1]
            for way in possible:
                for hop in way:
                    crossed.setdefault(hop, []).append(1 / len(possible))
        for hop, shares in crossed.items():
            pieces = sum(shares) if collective.kind == "all_to_all" else max(shares)
            loads[hop] = loads.get(hop, 0) + pieces / chips
    return max(loads.values())


@pytest.mark.parametrize("layout", ["line", "ring"])
@pytest.mark.parametrize("kind", ["all_gather", "all_to_all"])
def test_the_fullest_hop_carries_what_pieces_on_their_shortest_ways_add_up_to(kind, layout):
    for chips in range(2 if layout == "line" else 3, 12):
        collective = Collective(kind=kind, chips=chips, size=1, layout=layout)
        assert link_share(collective) == pytest.approx(fullest(collective)), collective


@pytest.mark.parametrize("chip", CHIPS)
def test_an_all_reduce_is_sums_and_then_a_gather(chip):
    parts = [collective_cycles(replace(GATHER, kind=kind), chip) for kind in ("reduce_scatter", "all_gather")]
    assert collective_cycles(replace(GATHER, kind="all_reduce"), chip) == sum(parts)


def test_a_single_sender_does_not_fill_a_link_of_wormhole():
    pair, row = (collective_cycles(replace(GATHER, chips=chips, links=1)) for chips in (2, 4))
    assert 1.5 < pair / (row * (1 / 2) / (3 / 4)) < 2.2
    cost = collective_cost("wormhole_b0")
    alone = cycles_of(replace(GATHER, chips=2, links=1), replace(cost, gather_core=inf), device("wormhole_b0"))
    assert alone < 0.6 * pair


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kind", COLLECTIVES)
def test_sizes_below_a_tile_take_their_start_and_a_step_for_each_chip(kind, chip):
    cost = collective_cost(chip)
    ring = [collective_cycles(Collective(kind=kind, chips=chips, size=1, layout="ring"), chip) for chips in (3, 4, 8)]
    passes = 2 if kind == "all_reduce" else 1
    assert ring[1] - ring[0] == pytest.approx(passes * cost.step, abs=1)
    assert ring[2] - ring[1] == pytest.approx(4 * passes * cost.step, abs=1)
    line = collective_cycles(Collective(kind=kind, chips=8, size=1), chip)
    sums = kind in ("reduce_scatter", "all_reduce")
    assert line - ring[2] == pytest.approx(6 * cost.inside if sums else 0, abs=1)


def test_ethernet_does_not_follow_the_clock_of_the_chip():
    fast = replace(device("wormhole_b0"), clock=2 * device("wormhole_b0").clock)
    assert collective_cycles(GATHER, fast) == pytest.approx(2 * collective_cycles(GATHER), rel=0.02)


@pytest.mark.parametrize(("board", "arch", "links"), [("n300", "wormhole_b0", 4), ("p150", "blackhole", 2)])
def test_without_a_number_the_links_between_neighbours_are_used(board, arch, links):
    assert collective_cycles(GATHER, board) == collective_cycles(replace(GATHER, links=links), board)
    assert collective_cycles(GATHER, board) == collective_cycles(GATHER, arch)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("size", [1, SMALL - 1, SMALL, 1 << 34])
def test_an_interval_holds_its_figure(chip, size):
    for kind in COLLECTIVES:
        collective = replace(GATHER, kind=kind, size=size)
        interval = collective_interval(collective, chip)
        assert interval.low < collective_cycles(collective, chip) < interval.high


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "broadcast"}, "kind 'broadcast' is not one of all_gather, reduce_scatter, all_reduce, all_to_all"),
        ({"layout": "mesh"}, "layout 'mesh' is not one of line, ring"),
        ({"size": 0}, "0 bytes on 4 chips; both must be at least 1"),
        ({"chips": 0}, "both must be at least 1"),
        ({"links": 0}, "0 links; there must be at least 1"),
        ({"chips": 2, "layout": "ring"}, "a ring has at least 3 chips; 2 chips are a line"),
    ],
)
def test_what_is_no_collective_is_refused(change, words):
    with pytest.raises(HostError, match=words):
        replace(GATHER, **change)


@pytest.mark.parametrize(("chips", "most", "neighbours"), [(2, 16, 1), (3, 8, 2), (8, 8, 2)])
def test_no_more_links_than_the_chip_has_are_used(chips, most, neighbours):
    collective = replace(GATHER, chips=chips, links=most)
    assert collective_cycles(collective) > 0
    words = f"{most + 1} links of each hop; wormhole_b0 has at most {most} to each of {neighbours} neighbours"
    with pytest.raises(HostError, match=words):
        collective_cycles(replace(collective, links=most + 1))


@pytest.mark.parametrize(("chip", "title"), [("grayskull", "grayskull"), ("e150", "e150"), ("p100", "p100")])
def test_a_chip_without_links_is_refused_by_name(chip, title):
    with pytest.raises(UnsupportedError, match=f"{title}.* has no Ethernet links to other chips"):
        collective_cycles(GATHER, chip)
