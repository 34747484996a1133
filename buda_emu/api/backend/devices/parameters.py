"""What the backend tells a front end about an architecture: texts by key `<arch>-<scope>-<name>` (NETLIST 7.3)."""

from collections.abc import Mapping
from functools import cache
from typing import Final

from buda_emu.api.backend.devices.soc import label
from buda_emu.spec.archs import ARCHS, GIB
from buda_emu.spec.devices import device

MIB: Final = 1 << 20
KIB: Final = 1 << 10

DRAM_RESERVED: Final = 256 * MIB
"""Nothing of the backend lies above, on any chip (V153: "about 0x10000000 is safely above")."""

_HOST_RESERVED: Final = {0: 128 * MIB, 3: 256 * MIB}
"""Top of each host channel that queues may not use (V156, LAYOUT 6)."""

_NET2PIPE, _PIPEGEN = 56 * KIB, 200 * KIB  # of each core's L1 (NETLIST 2.2)
_BLOCKS: Final = {"grayskull": 1, "wormhole_b0": 2}  # GDDR channels behind a DRAM channel (PERF 1)


@cache
def of_arch(arch: str) -> Mapping[str, str]:
    """Every parameter of an architecture, by lower-case key. Raises HostError for one without a device table."""
    chip = device(arch)
    scopes = {
        "sysmem": _sysmem(arch),
        "dram": _dram(arch),
        "eth": _eth(arch),
        "t6": _t6(arch),
        "noc": _noc(arch),
        "aiclk": {"freq_ghz": f"{chip.clock / 1000:g}"},
        # NETLIST 7.3
        "param": {
            "max_bytes_per_phase": "38",
            "max_dram_in_queues": str(chip.dram_input_queues),
            "max_dram_out_queues": str(chip.dram_output_queues),
            "max_fan_out_streams": str(chip.fan_out_streams),
            "backend_reserved_in_queues": "1",
        },
    }
    return {f"{arch}-{scope}-{name}": value for scope, own in scopes.items() for name, value in own.items()}


def host_channel_bytes(channel: int) -> int:
    """Bytes of a host channel that queues may use."""
    return GIB - _HOST_RESERVED.get(channel, 0)


def _sysmem(arch: str) -> dict[str, str]:
    channels = ARCHS[arch].host_channels
    found = {"host_region_range_start": "0", "host_region_num_channels": str(channels)}
    for channel in range(channels):
        size = host_channel_bytes(channel)
        found[f"host_region_range_size_chan{channel}"] = str(size)
        found[f"backend_reserved_range_start_chan{channel}"] = str(size)
        found[f"backend_reserved_range_size_chan{channel}"] = str(GIB - size)
    return found


def _dram(arch: str) -> dict[str, str]:
    chip = device(arch)
    found = {
        "num_channels": str(chip.dram_channels),
        "channel_capacity": str(chip.dram_channel_bytes),
        "bandwidth_per_block_theoretical": f"{chip.dram_theoretical:g}",
        "bandwidth_per_block_measured": f"{chip.dram_measured:g}",
        "backend_reserved_max": str(DRAM_RESERVED),
        # LAYOUT 6
        "host_mmio_range_channel": "0",
        "host_mmio_range_start": str(0x30000000),
        "host_mmio_range_size": str(256 * MIB),
    }
    if arch in _BLOCKS:
        found["num_blocks_per_channel"] = str(_BLOCKS[arch])
        found["block_capacity"] = str(chip.dram_channel_bytes // _BLOCKS[arch])
    for channel, cores in enumerate(chip.dram_cores):
        found[f"backend_reserved_chan{channel}"] = str(DRAM_RESERVED)
        found[f"core_xy_chan{channel}"] = label(cores[0])
        if len(cores) > 1:
            found |= {f"core_xy_chan{channel}_subchan{n}": label(core) for n, core in enumerate(cores)}
    return found


def _eth(arch: str) -> dict[str, str]:
    chip = device(arch)
    found = {"num_cores": str(len(chip.eth_cores)), "l1_size": str(chip.eth_l1_bytes)}
    return found | {f"core_xy_chan{channel}": label(core) for channel, core in enumerate(chip.eth_cores)}


def _t6(arch: str) -> dict[str, str]:
    chip = device(arch)
    rows, columns = chip.grid
    return {
        "num_cores": str(rows * columns),
        "grid_size": f"{columns}-{rows}",
        "l1_size": str(chip.l1_bytes),
        "dst_size": str(chip.dst_size_alignment),
        "l1_runtime_blob_size": str(chip.l1_data_start),
        "l1_pipegen_blob_size": str(_PIPEGEN),
        "l1_backend_reserved_size": str(chip.l1_data_start + _NET2PIPE + _PIPEGEN),
    }


def _noc(arch: str) -> dict[str, str]:
    chip = device(arch)
    return {
        "bw_gbps": f"{chip.noc_bytes_per_clock * chip.clock / 1000:g}",
        "num_rings": str(chip.nocs),
        "num_vcs": str(chip.noc_virtual_channels),
    }
