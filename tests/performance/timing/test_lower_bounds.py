"""No epoch is faster than its work allows, from first principles: MACs, unpack, pack, DRAM, ports, links, loads."""

from collections import defaultdict

from buda_emu.emulator.inputs.entries import default_parameters
from buda_emu.netlist.load import check, load
from buda_emu.performance.timing.model import model_netlist
from buda_emu.performance.timing.op.cost import ideal_threads
from buda_emu.performance.timing.op.table import calls_of
from buda_emu.spec.archs import GIB
from buda_emu.spec.devices import device

_ROUNDED = 64  # cycles: each part of an input takes whole ones, and the pace is that of a stretch
_STEADY = 0.004


def of_ops(netlist, epoch):
    """What a core's unpackers, math and packers work at full rate (PERF 1.3), by op; a part of a fused op after the
    other."""
    for item in epoch.timing.ops:
        parts = [ideal_threads(call) for call in calls_of(netlist, netlist.ops[item.op])]
        for name, cycles in zip(("unpack", "math", "pack"), map(sum, zip(*parts, strict=True)), strict=True):
            yield f"{name} of {item.op}", cycles


def of_memory(epoch, chip):
    """What each channel reads and writes, at its measured rate (PERF 1)."""
    rate = chip.dram_measured * GIB / (chip.clock * 1e6)
    channels = defaultdict(float)
    for edge in epoch.edges:
        if edge.memory == "dram" and not edge.once:
            for channel, size in edge.memory_bytes.items():
                channels[edge.chip, channel] += size
    for place, size in channels.items():
        yield f"DRAM {place}", size / rate


def of_ports(netlist, epoch, chip):
    """What a core takes in for one input, and what an op's cores send on the average, each reader by itself, what a row
    or column of its cores shares once (PERF 5.2)."""
    taken, sent = defaultdict(float), defaultdict(float)
    for edge in epoch.edges:
        op = netlist.ops[edge.source if edge.operand < 0 else edge.target]
        placed = len(op.grid_loc) == 2
        if edge.once or edge.crosses or not placed or edge.memory == "host":
            continue
        if edge.operand >= 0:
            taken[op.name] += edge.core_bytes
        producer = netlist.ops.get(edge.source) if edge.source not in netlist.queues else None
        if edge.operand >= 0 and producer is not None and len(producer.grid_loc) == 2:
            rows, columns = op.blocking.grid_size
            product = op.type in ("matmul", "depthwise")
            whole = edge.operand in {*dict(op.attributes.kernel_broadcast), *dict(op.attributes.kernel_broadcast_per_t)}
            groups = 1 if whole else rows if product and edge.operand == 0 else op.blocking.cells
            groups = columns if product and edge.operand == 1 and not whole else groups
            sent[producer.name] += edge.core_bytes * groups / producer.blocking.cells
    for name, size in taken.items():
        yield f"into {name}", size / chip.core_port_rate
    for name, size in sent.items():
        yield f"out of {name}", size / chip.core_port_rate


def of_links(epoch, chip):
    """What crosses each link of a NoC, at the bytes a cycle that it carries."""
    carried = defaultdict(float)
    for edge, path in zip(epoch.edges, epoch.paths, strict=True):
        if not edge.once:
            for link, size in path.links.items():
                carried[link] += size
    for link, size in carried.items():
        yield str(link), size / chip.link_rate


def check_epoch(netlist, epoch, path):
    chip = device(netlist.arch_name)
    bounds = [*of_ops(netlist, epoch), *of_memory(epoch, chip), *of_ports(netlist, epoch, chip)]
    bounds += of_links(epoch, chip)
    assert bounds, path
    inputs = epoch.timing.inputs
    for name, cycles in bounds:
        least = cycles * (1 - _STEADY) - _ROUNDED
        what = path, epoch.graphs, name, cycles, epoch.pace, epoch.timing.total, inputs
        assert epoch.timing.total >= least * inputs, what
        if epoch.timing.run.inputs < inputs:  # else output buffers may hold all that the pace leaves to be written
            assert epoch.pace >= least, what
    rows, columns = chip.grid
    kernels = {(op.grid_loc, op.target_device) for op in map(netlist.ops.get, (op.op for op in epoch.timing.ops))}
    chips = {netlist.graphs[name].target_device for name in epoch.graphs}
    rate = chip.dram_measured * GIB / (chip.clock * 1e6) * chip.dram_channels
    blobs = rows * columns * 65_536
    assert epoch.load.cycles >= (blobs + 57_344 * len(kernels) / len(chips)) / rate, path
    assert epoch.cycles >= epoch.load.cycles + max(cycles for _, cycles in bounds) * (1 - _STEADY) - _ROUNDED


def modelled(netlist):
    bodies = list(netlist.programs.values())
    return model_netlist(netlist, bodies, default_parameters(bodies, {}))


def test_no_epoch_of_an_example_is_below_its_bounds(root):
    for path in sorted((root / "netlists").rglob("*.yaml")):
        netlist = load(path)
        for epoch in modelled(netlist).epochs:
            check_epoch(netlist, epoch, path)


def test_no_epoch_of_a_public_netlist_is_below_its_bounds(corpus):
    """All of them are modelled in seconds, the biggest among them."""
    epochs = 0
    for path in sorted((corpus / "netlists").rglob("*.yaml")):
        netlist = check(path).netlist
        if netlist is None:
            continue
        run = modelled(netlist)
        for epoch in run.epochs:
            assert epoch.timing.total >= epoch.timing.first_input > 0, path
            check_epoch(netlist, epoch, path)
            epochs += 1
        runs = sum(epoch.runs * epoch.cycles for epoch in run.epochs)
        assert sum(run.programs().values()) >= runs * (1 - 1e-9)
    assert epochs > 300
