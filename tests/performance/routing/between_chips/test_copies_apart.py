"""Copies between chips that no link connects, and what relays between chips do not do: verdicts, pipes and streams are
those of the vendor's programs."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import yaml

from buda_emu.performance.routing.checking import check_text
from buda_emu.performance.routing.pipes.links import Links
from buda_emu.spec.boards import Cluster, cluster_of
from performance.routing.between_chips.random_chips import Link, cluster, copied, padded, to_itself
from performance.routing.between_chips.test_chips import agree, errors_of, hold, links_of
from performance.routing.texts import ONE, Size, netlist, op, queue
from vendor_router import needs_vendor_router, refusal

WORMHOLE: Final = "wormhole_b0"
ROW: Final[list[Link]] = [(0, 0, 1, 8), (0, 1, 1, 9), (1, 0, 2, 8), (1, 1, 2, 9)]
LONG_ROW: Final[list[Link]] = [*ROW, (2, 0, 3, 8)]
FIRST_TWO: Final = ROW[:2]


def _send(source: str, words: str, grid: Size = ONE, mblock: Size = ONE, more: str = "") -> str:
    made = op("send", "ethernet_datacopy", [source], grid, mblock=mblock, attributes=words, more=more)
    return made.replace("grid_loc: [0, 0], ", "")


def _copy(
    to: int, channels: str = "", grid: Size = ONE, *, mblock: Size = ONE, more: str = "", through: int = 0
) -> str:
    """From a nop of chip 0 to one of another chip; graphs without ops on the chips between and up to `through`."""
    words = f"dest_device: {to}{channels}"
    sent = grid[0] * mblock[0], grid[1] * mblock[1]
    queues = [queue("a", mblock=ONE if "pad" in more else sent), queue("o", "second", grid, mblock=mblock, chip=to)]
    first = op("first", "nop", ["a"], mblock=ONE if "pad" in more else sent)
    second = op("second", "nop", ["send"], grid, mblock=mblock)
    others = {chip: [second] if chip == to else [] for chip in range(1, max(to, through) + 1)}
    return netlist(queues, [first, _send("first", words, grid, mblock, more)], others=others)


def _back(mblock: Size) -> str:
    """A copy that leaves chip 0 and comes back over the same channel, of what four cores of it make; another chip reads
    it."""
    queues = [queue("a", mblock=mblock), queue("o", "second", mblock=mblock, chip=1)]
    own = mblock[0], mblock[1] // 4
    ops = [
        op("first", "nop", ["a"], (1, 4), mblock=own),
        _send("first", f"dest_device: 0{_named(0, 0)}", mblock=mblock),
    ]
    return netlist(queues, ops, others={1: [op("second", "nop", ["send"], mblock=mblock)]})


def _of_queue(channels: str = "", *, kept: bool = False) -> str:
    """A copy that reads a queue."""
    queues = [queue("a"), queue("o", "second", chip=1)]
    text = netlist(queues, [_send("a", f"dest_device: 1{channels}")], others={1: [op("second", "nop", ["send"])]})
    return text.replace("a: {prologue: false", "a: {prologue: true") if kept else text


def _small(text: str) -> str:
    for kind in ("nop", "ethernet_datacopy", "queue"):
        text = text.replace(f"type: {kind}, ", f"type: {kind}, tile_dim: [16, 32], ")
    return text


def _read(more: str = "", rows: int = 1, *, through: int = 1) -> str:
    """A nop of chip 0, which one of chip 1 reads."""
    queues = [queue("a"), queue("o", "second", mblock=(rows, 1), chip=1)]
    reader = op("second", "nop", ["first"], mblock=(rows, 1), more=more)
    return netlist(queues, [op("first", "nop", ["a"])], others={1: [reader], **{n: [] for n in range(2, through + 1)}})


def _known(links: list[Link]) -> Cluster:
    """Four chips in a row, which need not be connected."""
    return cluster_of(yaml.safe_load(cluster(4, links)), "cluster.yaml")


def _named(near: int, far: int) -> str:
    return f", ingress_channels: [{near}], egress_channels: [{far}]"


PADDED: Final = ", input_0_pad: {rt: 1, ct: 0, pad_value: 0.0}"
CASES: Final = {
    "two hops": (_copy(2), ROW, ""),
    "two hops, two cells": (_copy(2, grid=(1, 2)), ROW, ""),
    "two hops, channels that are named": (_copy(2, _named(0, 8)), ROW, ""),
    "two hops, of other links": (_copy(2, _named(0, 9)), ROW, ""),
    "two hops, large blocks": (_copy(2, mblock=(4, 2)), ROW, ""),
    "three hops": (_copy(3), LONG_ROW, ""),
    "a channel without a link": (_copy(2, _named(0, 3)), ROW, "V363"),
    "a chip without links": (_copy(2), FIRST_TWO, "V367"),
    "a third chip without links": (_copy(1, through=2), FIRST_TWO, "V367"),
    "a third chip without links, and no copy": (_read(through=2), FIRST_TWO, "V367"),
    "pairs": (_copy(1, through=3), [*FIRST_TWO, (2, 0, 3, 8)], ""),
    "pairs, from one to the other": (_copy(3), [*FIRST_TWO, (2, 0, 3, 8)], "V362"),
    "a queue": (_of_queue(_named(0, 8)), FIRST_TWO, ""),
    "a queue, without channels": (_of_queue(), FIRST_TWO, "V363"),
    "a queue that is kept": (_of_queue(_named(0, 8), kept=True), FIRST_TWO, "V368"),
    "channels of one chip alone": (_copy(1, ", ingress_channels: [0]"), FIRST_TWO, "V363"),
    "too few channels": (_copy(1, _named(0, 8), (1, 2)), FIRST_TWO, "V159"),
    "back over the one link, which is full": (_back((1, 8)), [(0, 0, 1, 8)], "V362"),
    "back over one of two links": (_back((1, 8)), FIRST_TWO, ""),
    "back over the one link, and over it again": (_back((1, 4)), [(0, 0, 1, 8)], "V356"),
    "padded": (_copy(1, _named(1, 9), mblock=(2, 1), more=PADDED), FIRST_TWO, ""),
    "small tiles": (_small(_copy(1)), FIRST_TWO, "V368"),
    "small tiles without a copy": (_small(_read()), FIRST_TWO, "V368"),
    "padding on an Ethernet core": (_copy(1, _named(0, 8), mblock=(2, 1), more=PADDED), FIRST_TWO, "V368"),
    "padding after the way": (_read(PADDED, 2), FIRST_TWO, "V368"),
}


@needs_vendor_router
@pytest.mark.parametrize(("text", "links", "rule"), CASES.values(), ids=CASES)
def test_what_is_taken_and_what_is_refused(text: str, links: list[Link], rule: str, tmp_path: Path) -> None:
    """The vendor's programs say the same, and where they take it pipes and streams are theirs."""
    said = refusal(text, WORMHOLE, tmp_path, cluster=cluster(4, links))
    known = _known(links)
    assert errors_of(text, known) == ([rule] if rule else []), said
    assert bool(said) == bool(rule), said
    if not rule:
        hold(text, known, tmp_path)


def test_a_copy_over_two_links_has_a_relay_at_each_end_of_both() -> None:
    assert links_of(_copy(2), _known(ROW)) == [((0, 0), (1, 8)), ((1, 0), (2, 8))]


def test_channels_follow_from_where_chips_stand_not_from_their_numbers() -> None:
    """Chip 2 stands between the others."""
    links: list[Link] = [(0, 0, 2, 8), (2, 0, 1, 8)]
    known = cluster_of(yaml.safe_load(cluster(3, links, [(0, 0), (2, 0), (1, 0)])), "cluster.yaml")
    assert links_of(_copy(1, through=2), known) == [((0, 0), (2, 8)), ((2, 0), (1, 8))]


@pytest.mark.parametrize(("sides", "channel"), [("lrd", 0), ("rd", 1), ("d", 2), ("lru", 3)])
def test_a_copy_to_where_no_link_leads_goes_left_first(sides: str, channel: int) -> None:
    """Then right, then down; towards the other chip, which is up, wherever there is a link."""
    places = {"l": (0, 1), "r": (2, 1), "d": (1, 0), "u": (1, 2)}
    links: list[Link] = [(0, "lrdu".index(side), number, 8) for number, side in enumerate(sides, 1)]
    other = len(sides) if "u" in sides else len(sides) + 1
    stands = [(1, 1), *(places[side] for side in sides), *([] if "u" in sides else [places["u"]])]
    if "u" not in sides:
        links.append((1, 4, other, 9))
    known = Links(cluster_of(yaml.safe_load(cluster(other + 1, links, stands)), "cluster.yaml"))
    assert known.of_copy(0, other, 1)[0] == [channel]


def test_a_copy_to_the_same_place_of_another_rack_goes_left_first() -> None:
    """Neither chip lies in a direction from the other, so the link between them leads nowhere."""
    places = {0: (1, 0, 0, 0), 1: (1, 0, 1, 0), 2: (0, 0, 0, 0), 3: (0, 0, 1, 0)}
    known = Links(Cluster(places, {}, (((0, 0), (1, 8)), ((0, 1), (2, 8)), ((1, 1), (3, 8))), (0,), {}))
    assert known.of_copy(0, 1, 1) == ([1], [1])


def test_pieces_and_padding_for_more_cores_than_there_are() -> None:
    """They are refused, as net2pipe refuses them, not followed to cores that the op does not have."""
    queues = [queue("a", t=2, mblock=(2, 2)), queue("o", "second", (3, 1), mblock=(2, 2))]
    words = ", input_0_tms: [vstack: 2], input_0_pad: {rt: 2, ct: 0, pad_value: 0.0}"
    reader = op("second", "nop", ["first"], (3, 1), mblock=(2, 2), at=(2, 0), more=words)
    text = netlist(queues, [op("first", "nop", ["a"], (1, 2), 2, (2, 1)), reader])
    assert [one.rule for one in check_text(text, arch=WORMHOLE).diagnostics if one.severity == "error"] == ["V324"]


@needs_vendor_router
@pytest.mark.parametrize(
    "seed", [*range(10), 459, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 600) if seed != 459)]
)
def test_random_copies(seed: int, tmp_path: Path) -> None:
    """Over any links, from any chip to any other one. (Of 459 more pipes cross than a stable sort leaves in order.)"""
    agree(*copied(seed), tmp_path)


@needs_vendor_router
@pytest.mark.parametrize("make", [to_itself, padded])
@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 300))])
def test_random_copies_back_and_padded(make: Callable[[int], tuple[str, str]], seed: int, tmp_path: Path) -> None:
    agree(*make(seed), tmp_path)
