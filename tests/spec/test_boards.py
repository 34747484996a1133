"""The table of boards holds to PERF 5.3, to the tables of chips, and says where each figure comes from."""

from dataclasses import replace

import pytest

from buda_emu.performance.timing.transfers.rates import speed
from buda_emu.spec.archs import ARCHS
from buda_emu.spec.boards import BOARDS, agreed_arch, board
from buda_emu.spec.devices import device
from buda_emu.support.errors import HostError


@pytest.mark.parametrize("name", BOARDS)
def test_figures_say_where_they_come_from(name):
    found = board(name)
    assert {"grid", "clock", "dram", "dram_channels", "dram_gbps", "host", "links"} <= set(found.sources)
    assert not found.between or "between" in found.sources


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_has_no_more_than_its_chips(name):
    found, whole = board(name), device(board(name).arch)
    assert found.grid[0] <= whole.grid[0]
    assert found.grid[1] <= whole.grid[1]
    assert found.dram_channels <= ARCHS[found.arch].dram_channels
    assert set(found.on_host) <= set(range(found.chips))


@pytest.mark.parametrize(
    ("name", "chips", "cores", "clock"),
    [
        ("e75", 1, 96, 1000),
        ("e150", 1, 120, 1200),
        ("n150", 1, 72, 1000),
        ("n300", 2, 64, 1000),
        ("p100", 1, 120, 1350),
        ("p150", 1, 140, 1350),
        ("p150-120", 1, 120, 1350),
    ],
)
def test_cores_and_clocks_are_those_of_the_facts(name, chips, cores, clock):  # PERF 5.3, BLACKHOLE 1
    found = board(name)
    assert (found.chips, found.cores, found.clock) == (chips, cores, clock)
    assert (found.chip.grid, found.chip.clock) == (found.grid, clock)


def test_wormhole_boards_lack_the_last_rows():  # PERF 1, Harvesting
    assert board("n150").chip.worker_rows == device("wormhole_b0").worker_rows[:9]
    assert board("n300").chip.worker_rows == device("wormhole_b0").worker_rows[:8]


def test_a_chip_is_called_by_its_board():
    assert board("n150").chip.title == "n150 (wormhole_b0)"
    assert device("wormhole_b0").title == "wormhole_b0"


def test_several_boards_in_a_row():
    row = board("n300x4")
    assert (row.name, row.chips, row.on_host, row.cores) == ("n300x4", 8, (0, 2, 4, 6), 64)
    assert board("N150x4").on_host == (0, 1, 2, 3)
    assert board("n150x1") is board("n150")


def test_memory_of_blackhole_boards():  # BLACKHOLE 1, 2
    assert {name: board(name).dram_channels for name in ("p100", "p150", "p150-120")} == {
        "p100": 7,
        "p150": 8,
        "p150-120": 8,
    }
    rates = speed(board("p150").chip, {}).rates()
    assert rates.dram == pytest.approx(46.3, rel=0.01)  # of a reader beside its channel
    assert rates.link / 2 == pytest.approx(31.8, rel=0.1)  # of two that share a link on their way to two channels


def test_links_between_blackhole_boards():  # BLACKHOLE 1: 25 GB/s each
    row = board("p150x2")
    assert (row.chips, row.between) == (2, 2)
    assert speed(row.chip, {}).ethernet == pytest.approx(2 * 25e9, rel=0.01)


def test_links_between_chips_bound_the_way_between_them():
    chip = board("n300").chip
    assert chip.neighbour_links == 4
    assert speed(replace(chip, neighbour_links=2), {}).ethernet == speed(chip, {}).ethernet / 2 > 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("n15", "did you mean 'n150'"),
        ("n150x", "no board 'n150x'"),
        ("Grayskull", r"no board 'Grayskull' \(grayskull is an architecture; boards with it: e75, e150\); boards: "),
        ("wormhole", r"\(wormhole is an architecture; boards with it: n150, n300\)"),
        ("n150xfour", "no board"),
        ("", "no board ''; boards: e75, e150"),
        ("n150x0", "1 to 16 are possible"),
        ("n150x99", "1 to 16 are possible"),
        ("e150x2", r"no links between e150 boards are known \(PERF 1: no Ethernet cores\)"),
        ("p100x2", r"no links between p100 boards are known \(BLACKHOLE 1 \[isa\]: a p100 has no Ethernet links\)"),
    ],
)
def test_what_is_no_board_is_refused_by_name(name, words):
    with pytest.raises(HostError, match=words):
        board(name)


def test_board_and_architecture_have_to_agree():
    assert agreed_arch("e75", None) == "grayskull"
    assert agreed_arch(None, "blackhole") == "blackhole"
    assert agreed_arch(None, None) is None
    with pytest.raises(HostError, match="e75 has chips of grayskull, not of wormhole_b0: leave out one"):
        agreed_arch("e75", "wormhole_b0")
