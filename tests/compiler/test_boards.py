"""Models compiled for a board stay on its cores, and are timed at its clock."""

import pytest

import buda_emu as be
from buda_emu.compiler.compile import compile_until
from buda_emu.compiler.ir.text import parse_file, print_file

torch = pytest.importorskip("torch")


class Wide(torch.nn.Module):
    """Products that want all rows of a chip."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(320, 640), torch.nn.ReLU(), torch.nn.Linear(640, 320))

    def forward(self, x):
        return self.layers(x)


INPUTS = (torch.randn(640, 320),)


def compiled(**words):
    return be.compile(Wide().eval(), INPUTS, **words)


def rows(model):
    return max(placed.at[0] + placed.blocks.grid[0] for placed in model.placement.ops.values())


@pytest.mark.parametrize(("board", "most"), [("n150", 9), ("n300", 8), ("e75", 8), ("p150-120", 10)])
def test_no_core_is_used_that_the_board_does_not_have(board, most):
    model = compiled(board=board, chips=1)
    assert rows(model) <= most
    assert model.check() == ()
    assert be.perf(model.netlist, board=board).run.chip.board == board


def test_a_whole_chip_has_room_that_a_board_has_not():
    whole = compiled(arch="wormhole_b0", effort="low")
    assert rows(whole) > 8
    with pytest.raises(be.HostError, match="the chip of n300 has 8x8"):
        be.perf(whole.netlist, board="n300")


def test_the_board_is_named_in_netlist_summary_and_figures():
    model = compiled(board="n150", effort="low")
    assert "n150 (wormhole_b0)" in model.text.splitlines()[0]
    assert "n150 (wormhole_b0)" in repr(model)
    assert model.perf().run.chip.grid == (9, 8)
    assert not model.perf().run.assumed  # a board is not hypothetical


def test_the_clock_is_the_board_s():
    slow, fast = compiled(board="e75", effort="low"), compiled(board="e150", effort="low")
    assert (slow.perf().run.clock, fast.perf().run.clock) == (1000, 1200)


def test_a_board_of_two_chips_uses_both():
    assert compiled(board="n300").placement.chips == 2
    with pytest.raises(be.HostError, match="3 chips are more than the 2 of board n300"):
        compiled(board="n300", chips=3)


def test_a_board_and_a_file_of_a_cluster_exclude_each_other(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(
        "chips: {0: [0, 0, 0, 0], 1: [1, 0, 0, 0]}\nethernet_connections: [[{chip: 0, chan: 0}, {chip: 1, chan: 0}]]\n"
    )
    with pytest.raises(be.HostError, match="board n300 says what its chips are"):
        compiled(board="n300", chips=path)


def test_a_board_of_another_architecture_is_refused():
    with pytest.raises(be.HostError, match="n150 has chips of wormhole_b0, not of grayskull"):
        compiled(board="n150", arch="grayskull")


def test_p100_uses_the_memory_that_it_has():
    model = compiled(board="p100", effort="low")
    channels = {
        buffer.channel for queue in model.netlist.queues.values() if queue.loc == "dram" for buffer in queue.buffers
    }
    assert max(channels) < 7


def test_the_board_stays_with_the_ir():
    file = compile_until(Wide().eval(), INPUTS, stop_after="lower", board="n150")
    text, arrays = print_file(file)
    assert parse_file(text, arrays).target == file.target
    assert file.target.board == "n150"
