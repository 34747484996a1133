"""What may lie elsewhere in DRAM."""

from buda_emu.netlist.load import check_bytes
from buda_emu.netlist.sizes import buffer_bytes
from buda_emu.performance.advice.evaluate import Variant
from buda_emu.performance.advice.moves.buffers import Channels, may_move
from shared_files import ROOT

TEXT = (ROOT / "netlists/matmul.yaml").read_text()


def variant(text=TEXT):
    netlist = check_bytes(text.encode(), "net.yaml").netlist
    return Variant(netlist, (), (), ())


def test_a_queue_of_its_own_memory_may_move():
    here = variant()
    assert all(may_move(here, queue) for queue in here.netlist.queues.values())


def test_queues_that_share_bytes_stay_where_they_are():
    here = variant(TEXT.replace("dram: [[2, 0x10000000]]", "dram: [[1, 0x10000100]]"))  # the bias inside of the weights
    assert {name for name, queue in here.netlist.queues.items() if not may_move(here, queue)} == {"weights", "bias"}


def test_room_is_given_out_once_and_behind_everything():
    here = variant()
    queue = here.netlist.queues["weights"]
    size = buffer_bytes(queue, here.netlist)
    room = Channels(here, 0, 6)
    first, second = room.place(queue, 1), room.place(queue, 1)
    assert first.address >= 0x10000000 + size
    assert second.address >= first.address + size
    assert room.place(queue, 5).address == 0x10000000
