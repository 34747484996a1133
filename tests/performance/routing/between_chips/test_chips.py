"""Ops that read each other over Ethernet links: pipes, streams and verdicts are those of the vendor's programs."""

from pathlib import Path

import pytest
import yaml

from buda_emu.netlist.load import check_text as loaded
from buda_emu.performance.routing.checking import check_text
from buda_emu.performance.routing.epochs import RoutedEpoch, route_netlist
from buda_emu.performance.routing.pipes.library_order import sort_as_vendor
from buda_emu.performance.routing.pipes.links import Links
from buda_emu.spec.boards import Cluster, cluster_of
from performance.routing.between_chips.random_chips import Link, chips, cluster
from performance.routing.canonical import differences
from performance.routing.texts import ONE, Size, netlist, op, queue
from pipe_reading import read
from vendor_router import needs_vendor_router, refusal, stream_counts

WORMHOLE = "wormhole_b0"
WHOLE_L1 = 256 << 10
FOUR: list[Link] = [(0, channel, 1, 8 + channel) for channel in range(4)]


def _cluster(links: list[Link], count: int = 2) -> Cluster:
    return cluster_of(yaml.safe_load(cluster(count, links)), "cluster.yaml")


def _epoch(text: str, links: Cluster) -> RoutedEpoch:
    found = loaded(text, arch=WORMHOLE).netlist
    assert found is not None
    return next(route_netlist(found, cluster=links))


def _two(grid: Size = ONE, tiles: Size = ONE, *, kind: str = "nop", more: str = "", first: Size = ONE) -> str:
    """A nop of chip 0, and an op of chip 1 on `grid` that reads it."""
    cut = tiles[0] // grid[0], tiles[1] // grid[1]
    own = tiles[0] // first[0], tiles[1] // first[1]
    queues = [queue("a", mblock=tiles), queue("o", "second", grid, mblock=cut, chip=1)]
    inputs = ["first", "first"] if kind == "matmul" else ["first"]
    ops = {1: [op("second", kind, inputs, grid, mblock=cut, attributes=more)]}
    return netlist(queues, [op("first", "nop", ["a"], first, mblock=own)], others=ops)


def links_of(text: str, links: Cluster) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The ends of the links that pipes of a netlist take."""
    return _links_of(_epoch(text, links))


def _links_of(epoch: RoutedEpoch) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    assert epoch.pipes is not None
    ends = {one.id: (one.chip, one.ethernet_chan) for one in epoch.pipes.buffers}
    return [(ends[one.inputs[0]], ends[one.outputs[0][0]]) for one in epoch.pipes.pipes if one.ethernet_pipe]


def errors_of(text: str, links: Cluster) -> list[str]:
    """The rules of its errors."""
    found = check_text(text, arch=WORMHOLE, cluster=links).diagnostics
    return [one.rule for one in found if one.severity == "error"]


def test_a_pipe_to_another_chip_has_a_relay_at_each_end_of_a_link() -> None:
    epoch = _epoch(_two(), _cluster(FOUR))
    assert epoch.pipes is not None
    relays = [one for one in epoch.pipes.buffers if one.buffer_type == "ethernet_relay"]
    assert [(one.chip, one.row, one.column, one.ethernet_chan, one.operand) for one in relays] == [
        (0, 0, 2, 3, 33),
        (1, 6, 2, 11, 33),
    ]
    assert epoch.routed.refusals == ()


def test_pipes_take_the_links_with_the_fewest_buffers_in_turn() -> None:
    found = _links_of(_epoch(_two((1, 4), (1, 4)), _cluster(FOUR)))
    assert sorted(found) == [((0, channel), (1, 8 + channel)) for channel in range(4)]


def test_what_several_cores_receive_crosses_once_and_is_multicast_there() -> None:
    epoch = _epoch(_two((1, 4), (4, 4), kind="matmul", more="m_k: 4, u_kt: 1"), _cluster(FOUR))
    assert epoch.pipes is not None
    relays = [one for one in epoch.pipes.buffers if one.buffer_type == "relay" and one.chip == 1]
    assert len(relays) == 1  # of the left operand, which all four cores share
    assert len(_links_of(epoch)) == 5  # and the right one, core by core


def test_chips_that_no_link_connects_are_reached_over_others() -> None:
    text = _two().replace("chip1", "chip2").replace("target_device: 1", "target_device: 2")
    row = _cluster([(0, 0, 1, 8), (1, 0, 2, 8)], 3)
    assert _links_of(_epoch(text, row)) == [((0, 0), (1, 8)), ((1, 0), (2, 8))]
    apart = _cluster([(0, 0, 1, 8)], 3)
    assert errors_of(text, apart) == ["V367"]


def test_links_have_room_for_seven_pipes_each() -> None:
    assert errors_of(_two((1, 7), (1, 7)), _cluster(FOUR[:1])) == []
    assert errors_of(_two((1, 8), (1, 8)), _cluster(FOUR[:1])) == ["V362"]


def test_a_copy_without_channels_has_those_of_links_in_turn() -> None:
    queues = [queue("a", mblock=(1, 3)), queue("o", "second", (1, 3), chip=1)]
    send = op("send", "ethernet_datacopy", ["first"], (1, 3), attributes="dest_device: 1")
    ops = [op("first", "nop", ["a"], mblock=(1, 3)), send.replace("grid_loc: [0, 0], ", "")]
    text = netlist(queues, ops, others={1: [op("second", "nop", ["send"], (1, 3))]})
    links = _cluster([(0, 5, 1, 8), (0, 2, 1, 9)])
    assert _links_of(_epoch(text, links)) == [((0, 5), (1, 8)), ((0, 2), (1, 9)), ((0, 5), (1, 8))]
    named = text.replace("dest_device: 1", "dest_device: 1, ingress_channels: [5, 2, 5], egress_channels: [8, 8, 8]")
    assert errors_of(named, links) == ["V363"]


def test_a_copy_of_a_copy_has_channels_of_the_chip_where_that_one_begins() -> None:
    """Which are none of the link that it goes over."""
    queues = [queue("a"), queue("o", "last", chip=1)]
    send, back = (
        op(name, "ethernet_datacopy", [source], attributes=f"dest_device: {to}").replace("grid_loc: [0, 0], ", "")
        for name, source, to in (("send", "two", 0), ("back", "send", 1))
    )
    others = [op("two", "nop", ["one"]), send, op("last", "nop", ["back"], at=(0, 1))]
    text = netlist(queues, [op("one", "nop", ["a"]), back], others={1: others})
    assert errors_of(text, _cluster(FOUR)) == ["V363"]


def test_nothing_is_gathered_on_an_ethernet_core_for_the_way_back() -> None:
    queues = [queue("a", mblock=(2, 1)), queue("o", "back", mblock=(2, 1))]
    send = op("send", "ethernet_datacopy", ["first"], (2, 1), attributes="dest_device: 1")
    ops = [op("first", "nop", ["a"], mblock=(2, 1)), send.replace("grid_loc: [0, 0], ", "")]
    back = op("back", "nop", ["send"], mblock=(2, 1), at=(0, 1))
    assert errors_of(netlist(queues, [*ops, back], others={1: []}), _cluster(FOUR)) == ["V364"]
    through = [op("there", "nop", ["send"], mblock=(2, 1))]
    back = back.replace("[send]", "[there]")
    assert errors_of(netlist(queues, [*ops, back], others={1: through}), _cluster(FOUR)) == []


def test_a_copy_has_a_destination() -> None:
    queues = [queue("a"), queue("o", "second", chip=1)]
    send = op("send", "ethernet_datacopy", ["first"]).replace("grid_loc: [0, 0], ", "")
    ops = {1: [op("second", "nop", ["send"])]}
    text = netlist(queues, [op("first", "nop", ["a"]), send], others=ops)
    found = check_text(text, arch=WORMHOLE).diagnostics
    assert [one.rule for one in found if one.severity == "error"] == ["V366"]


def test_chips_must_be_of_the_cluster() -> None:
    text = _two().replace("chip1", "chip2").replace("target_device: 1", "target_device: 2")
    assert "V160" in errors_of(text, _cluster(FOUR))


def _stacked(tm: str, grid: Size) -> str:
    """Two t of an op of chip 0, which an op of chip 1 reads stacked."""
    shape = (4, 2) if tm == "vstack" else (2, 4)
    cut = shape[0] // grid[0], shape[1] // grid[1]
    queues = [queue("a", t=2, mblock=(2, 2)), queue("o", "second", grid, mblock=cut, chip=1)]
    reader = op("second", "nop", ["first"], grid, mblock=cut, more=f", input_0_tms: [{tm}: 2]")
    return netlist(queues, [op("first", "nop", ["a"], (1, 2), 2, (2, 1))], others={1: [reader]})


@needs_vendor_router
@pytest.mark.parametrize(("tm", "grid"), [("vstack", (2, 1)), ("vstack", (2, 2)), ("hstack", (1, 2))])
def test_pieces_for_several_cores_in_turn(tm: str, grid: Size, tmp_path: Path) -> None:
    text = _stacked(tm, grid)
    assert refusal(text, WORMHOLE, tmp_path, cluster=cluster(2, FOUR)) == ""
    hold(text, _cluster(FOUR), tmp_path)


def test_the_example_of_two_chips_is_taken_with_its_links() -> None:
    text = (Path(__file__).parents[4] / "netlists/two_chips.yaml").read_text()
    assert errors_of(text, _cluster(FOUR)) == []
    begin = text.index("    send:")
    large = text[:begin] + text[begin:].replace("mblock: [2, 4], ublock: [1, 2]", "mblock: [1, 4], ublock: [2, 2]", 1)
    assert errors_of(large, _cluster(FOUR)) == ["V355"]


def test_the_order_of_a_table_of_channels() -> None:
    links = Links(_cluster([(0, 15, 1, 8), (1, 9, 0, 1), (0, 2, 1, 10)]))
    assert links.between(0, 1) == [(1, 9), (2, 10), (15, 8)]  # 15 and 2 share a bucket of 13
    assert links.between(1, 0) == [(10, 2), (9, 1), (8, 15)]


def test_the_vendors_sort_exchanges_equals() -> None:
    assert sort_as_vendor(range(16), lambda _: 0) == list(range(16))
    assert sort_as_vendor(range(17), lambda _: 0) == [8, 16, 15, 14, 13, 12, 11, 10, 9, 0, 7, 6, 5, 4, 3, 2, 1]
    numbers = [number * 7919 % 101 for number in range(200)]
    assert sort_as_vendor(numbers, int) == sorted(numbers)


@pytest.mark.parametrize(
    ("factor", "kinds", "expected"),
    [
        (1, 3, "18 3 6 15 9 0 12 10 19 17 16 14 13 11 8 7 5 4 2 1"),
        (1, 5, "15 0 5 10 20 16 14 19 11 9 21 6 4 1 18 22 23 17 13 12 8 7 3 2"),
        (3, 7, "28 21 7 0 14 15 29 27 22 20 13 6 1 8 9 16 19 5 23 26 2 12 10 17 18 11 4 24 25 3"),
    ],
)
def test_the_vendors_sort_of_few_kinds(factor: int, kinds: int, expected: str) -> None:
    """As `std::sort` of libstdc++ orders them."""
    order = list(map(int, expected.split()))
    assert sort_as_vendor(range(len(order)), lambda one: one * one * factor % kinds) == order


def hold(text: str, links: Cluster, folder: Path) -> None:
    """Pipes and streams are those that the vendor's programs left in a folder."""
    pipes = folder / "out/temporal_epoch_0/overlay/pipegen.yaml"
    ours = _epoch(text, links)
    assert ours.pipes is not None
    assert differences(ours.pipes, read(pipes.read_text(), str(pipes))) == []
    assert {core.place: len(core.streams) for core in ours.routed.cores} == stream_counts(pipes, WORMHOLE)


def agree(text: str, description: str, folder: Path) -> None:
    """Verdicts are the vendor's, and so are pipes and streams where it has none to refuse."""
    links = cluster_of(yaml.safe_load(description), "cluster.yaml")
    said = refusal(text, WORMHOLE, folder, cluster=description)
    found = check_text(text, arch=WORMHOLE, cluster=links).diagnostics
    errors = [one.rule for one in found if one.severity == "error"]
    assert not [one for one in found if one.rule == "V359"]
    if said:
        assert errors, said
        return
    if errors == ["V355"] and _beyond_all_l1(text, links):
        return
    if any("leads to no other chip" in one.message for one in found):  # net2pipe reads past its table, and may go on
        return
    assert errors == []
    hold(text, links, folder)


def _beyond_all_l1(text: str, links: Cluster) -> bool:
    """Whether an Ethernet core needs more than its whole L1, where pipegen2's addresses pass zero."""
    cores = _epoch(text, links).routed.cores
    return any(core.place.ethernet and core.stream_bytes + core.tile_header_bytes > WHOLE_L1 for core in cores)


@needs_vendor_router
@pytest.mark.parametrize("seed", [*range(16), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(16, 600))])
def test_random_netlists_of_several_chips(seed: int, tmp_path: Path) -> None:
    agree(*chips(seed), tmp_path)


@needs_vendor_router
@pytest.mark.parametrize(("name", "accepted"), [("a.1", False), ("a.2", True), ("b.1", True)])
def test_names_of_copies(name: str, accepted: bool, tmp_path: Path) -> None:
    queues = [queue("a"), queue(name), queue("o", "sum")]
    text = netlist(queues, [op("sum", "add", ["a", name])]).replace("target_device: 0", "target_device: [0, 1]")
    assert (refusal(text, WORMHOLE, tmp_path, cluster=cluster(2, FOUR)) == "") == accepted
    assert errors_of(text, _cluster(FOUR)) == ([] if accepted else ["V365"])
