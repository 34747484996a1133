"""L1 and DRAM that a netlist takes."""

from buda_emu.netlist.load import load
from buda_emu.netlist.sizes import buffer_bytes
from buda_emu.performance.timing.result import dram_use, l1_use
from buda_emu.spec.devices import device


def test_channels_of_an_example(root):
    netlist = load(root / "netlists/matmul.yaml")
    found = dram_use(netlist, device("wormhole_b0"))
    assert [(use.chip, use.channel) for use in found] == [(0, channel) for channel in range(5)]
    assert found[0].used == buffer_bytes(netlist.queues["activations"], netlist)
    assert 0 < found[0].share < 1


def test_l1_of_an_example(root):
    netlist = load(root / "netlists/matmul.yaml")
    used, capacity = l1_use(netlist.ops["product"], netlist, device("wormhole_b0"))
    # activations 2 * 1 * 2 * 2 tiles and bfp weights 2 * 3 * 2 * 2, result 2 mblocks of 12 tiles
    assert used == 8 * 2080 + 24 * 1120 + 24 * 2080
    assert used < capacity == 1290240
