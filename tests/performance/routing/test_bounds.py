"""What no chip has is refused, and what would take too much memory is said not to be made, before it is."""

from types import SimpleNamespace

import pytest

from buda_emu.netlist.load import check_text as loaded
from buda_emu.performance.routing.checking import check_text
from buda_emu.performance.routing.epochs import route_netlist
from buda_emu.performance.routing.pipes import build, edge
from buda_emu.performance.routing.streams import phases
from buda_emu.performance.routing.streams import phases as flow
from buda_emu.support.errors import UnsupportedError
from performance.routing.texts import netlist, op, queue


def _routed(text: str, arch: str = "wormhole_b0"):
    found = loaded(text, arch=arch).netlist
    assert found is not None
    return [refusal for epoch in route_netlist(found) for refusal in epoch.routed.refusals]


def _repeated(times: int, readers: int = 1, inputs: int = 1) -> str:
    """A tile that each of `readers` ops repeats along z; another op takes the largest of the repeats."""
    queues, ops = [queue("a")], list[str]()
    for one in range(readers):
        more = f", input_0_tms: [broadcast: {{z: {times}}}]"
        queues.append(queue(f"o{one}", f"sum{one}"))
        ops.append(op(f"repeat{one}", "nop", ["a"], t=times, at=(one, 0), more=more))
        total = f"dim: z, type: max, z: {times}"
        ops.append(op(f"sum{one}", "reduce", [f"repeat{one}"], at=(one, 1), attributes=total))
    return netlist(queues, ops, count=inputs)


def _said(text: str) -> list[str]:
    assert loaded(text, strict=True).ok
    return [one.message for one in check_text(text).diagnostics if one.rule == "V359"]


def test_an_operand_of_too_many_tiles_is_not_made():
    assert _said(_repeated(1 << 12)) == []
    found = _said(_repeated(1 << 30))
    assert found == [
        "graph main: op repeat0, input 0: 1,073,741,824 tiles are read: pipes are made of no more than 4,194,304"
    ]
    with pytest.raises(UnsupportedError, match="op repeat0, input 0: 1,073,741,824 tiles are read"):
        _routed(_repeated(1 << 30))


def test_an_epoch_of_too_many_tiles_is_not_made(monkeypatch):
    monkeypatch.setattr(build, "MOST_TILES", 1 << 13)
    assert _said(_repeated(1 << 11)) == []
    (found,) = _said(_repeated(1 << 11, readers=5))
    assert "pipes are made of no more than 8,192" in found


def test_padding_counts():
    wide = op(
        "first", "nop", ["a"], ublock=(1, 1), mblock=(1, 1), more=", input_0_pad: {rt: 4096, ct: 4096, pad_value: 0.0}"
    )
    with pytest.raises(UnsupportedError, match=r"op first, input 0: 16,785,409 tiles are read"):
        _routed(netlist([queue("a"), queue("o", "first")], [wide]))


def test_only_small_edges_are_kept():
    edge._edge_map.cache_clear()  # other tests may have filled it
    kept = edge._edge_map.cache_info
    assert _said(_repeated(1 << 15)) == []  # the small edges of both are kept from here on
    before = kept().currsize
    assert _said(_repeated((1 << 15) + 32)) == []
    assert kept().currsize == before
    assert _said(_repeated(1 << 10)) == []
    assert kept().currsize > before


@pytest.mark.parametrize(
    ("grid", "at"), [((1, 9), (0, 0)), ((11, 1), (0, 0)), ((1, 1), (10, 0)), ((2, (1 << 31) - 1), (0, 0))]
)
def test_cores_that_the_chip_does_not_have_are_refused(grid, at):
    text = netlist([queue("a"), queue("o", "first")], [op("first", "nop", ["a"], grid, at=at)])
    (found,) = _routed(text)
    assert found.what == "V150"
    assert found.message.startswith("first: is on cores up to")
    assert found.message.endswith("the last one of wormhole_b0 is [9, 7]")


def test_an_op_of_a_graph_that_is_not_executed_beside_its_reader_is_refused():
    def one(name: str, source: str) -> list[str]:
        return [op(name, "nop", [source])]

    text = netlist([queue("a"), queue("o", "second", chip=1)], one("first", "a"), others={1: one("second", "first")})
    both = [line for line in text.splitlines() if "execute" in line]
    assert len(both) == 2
    (found,) = _routed(text.replace(both[0] + "\n", ""))
    assert (found.what, found.message) == (
        "V126",
        "second: first is an op of a graph that is not executed together with this one",
    )


def test_chips_far_apart_form_no_ring():
    text = netlist([queue("a"), queue("o", "first", chip=2**31 - 1)], [op("first", "nop", ["a"])], "grayskull")
    found = _routed(text, "grayskull")[0]
    assert found.what == "V337"
    assert "chips 0, 2147483647 form no ring" in found.message


def test_an_epoch_of_billions_of_tiles_is_routed_or_said_not_to_be():
    assert _routed(_repeated(1, inputs=2**31 - 1)) == []
    with pytest.raises(UnsupportedError, match="repeat0: 6,442,450,941 tiles in an epoch: streams of no more than"):
        _routed(_repeated(3, inputs=2**31 - 1))


def test_phases_by_the_million_are_not_made(monkeypatch):
    monkeypatch.setattr(phases, "MOST_PHASES", 10)
    found = loaded(_repeated(1 << 16)).netlist
    assert found is not None
    with pytest.raises(UnsupportedError, match=r"phases in an iteration: no more than 10 are followed"):
        list(route_netlist(found, phases=True))


@pytest.mark.parametrize("tiles", [30_719, 32_768, 32_771, 65_536, 98_304, 92_160, 30_030 * 4, 131_071])
@pytest.mark.parametrize("at_once", [1, 2, 3, 12, 77])
def test_iterations_are_the_divisor_that_comes_first(tiles, at_once, monkeypatch):
    """Downward from what phases of 2,048 tiles make of 15 phases an iteration, then upward from there."""
    monkeypatch.setattr(flow, "_iteration_unit", lambda *_: at_once)
    root = SimpleNamespace(buffer=SimpleNamespace(buffer=SimpleNamespace(epoch_tiles=tiles)))
    ideal = tiles // (2048 * 15)
    tried = [*range(ideal, 1, -1), *range(ideal + 1, tiles)]
    fitting = [one for one in tried if tiles % one == 0 and tiles // one % at_once == 0]
    expected = 1 if tiles // 2048 <= 15 else fitting[0] if fitting else tiles
    assert flow._single_source_iterations(root, [None]) == expected
