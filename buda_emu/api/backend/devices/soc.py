"""The file that describes one chip, and BackendDeviceDesc, which points to it (NETLIST 7.2, 7.3, 12)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from buda_emu.api.backend.devices.yaml_files import write_map
from buda_emu.api.backend.enums import BackendDevice
from buda_emu.errors import BudaError
from buda_emu.spec.devices import device, rows_of_mask

if TYPE_CHECKING:
    from buda_emu.spec.devices import Device

OUT_DIR: Final = "./tt_build"
"""Where files about devices go unless another folder is given."""


@dataclass(slots=True)
class BackendDeviceDesc:
    """One device: architecture, the file that describes it, whether the host reaches it, rows that are out of use."""

    arch: BackendDevice = BackendDevice.Invalid
    soc_desc_yaml: str = ""
    mmio: bool = False
    harvesting_mask: int = 0


def get_custom_device_desc(
    arch: BackendDevice = BackendDevice.Invalid,
    mmio: bool = False,
    harvesting_mask: int = 0,
    grid_dim: Sequence[int] = (0, 0),
    out_dir: str = OUT_DIR,
) -> BackendDeviceDesc:
    """Describe a chip of that architecture with fewer rows, or cut to a grid of (x, y) = (columns, rows), in a file
    `<out_dir>/device_descs/<arch>_<mask>_<x>x<y>.yaml`. (0, 0) is the whole grid. A file that is there is used.

    Raises RuntimeError for an architecture without a table, rows that cannot be harvested, a grid that is too large.
    """
    columns, rows = (int(value) for value in grid_dim)
    name = f"{arch.to_string()}_{int(harvesting_mask)}_{columns}x{rows}.yaml"
    path = Path(out_dir) / "device_descs" / name
    try:
        if not path.exists():
            write_map(str(path), _content(arch.to_string(), int(harvesting_mask), rows, columns))
    except (BudaError, OSError, RuntimeError) as error:
        raise RuntimeError(f"get_custom_device_desc: {error}") from error
    return BackendDeviceDesc(arch, str(path), bool(mmio), int(harvesting_mask))


def _content(arch: str, harvesting_mask: int, rows: int, columns: int) -> dict[str, Any]:
    """The file of a chip, in the keys that such files have. Raises HostError or UnsupportedError."""
    whole = device(arch)
    chip = whole.harvested(rows_of_mask(harvesting_mask))
    if rows or columns:
        chip = chip.with_grid(rows, columns)
    return {
        "arch_name": chip.name.upper(),
        "grid": {"x_size": chip.noc_grid[0], "y_size": chip.noc_grid[1]},
        "arc": [label(chip.arc)],
        "pcie": [label(chip.pcie)],
        "dram": [[label(core) for core in channel] for channel in chip.dram_cores],
        "eth": [label(core) for core in chip.eth_cores],
        "functional_workers": [label((x, y)) for y in chip.worker_rows for x in chip.worker_columns],
        "harvested_workers": [label(core) for core in _unused(chip, whole)],
        "worker_l1_size": chip.l1_bytes,
        "dram_bank_size": chip.dram_channel_bytes,
        "eth_l1_size": chip.eth_l1_bytes,
    }


def _unused(chip: "Device", whole: "Device") -> list[tuple[int, int]]:
    workers = {(x, y) for x in chip.worker_columns for y in chip.worker_rows}
    return sorted({(x, y) for x in whole.worker_columns for y in whole.worker_rows} - workers)


def label(core: Sequence[int]) -> str:
    """As the files of device descriptors name a core."""
    return f"{core[0]}-{core[1]}"
