"""Descriptions of devices: without hardware, those of the tables and of files (NETLIST 7.2, 7.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buda_emu.api.backend.enums import BackendDevice, BackendType
from buda_emu.errors import BudaError

if TYPE_CHECKING:
    from buda_emu.spec.devices import Device


class DeviceGrid:
    """Rows and columns of worker cores."""

    def __init__(self, size: Sequence[int]) -> None:
        self.r, self.c = (int(value) for value in size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceGrid) and (self.r, self.c) == (other.r, other.c)

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it changes

    def __repr__(self) -> str:
        return f"DeviceGrid(({self.r}, {self.c}))"


@dataclass(slots=True)
class BackendDeviceDesc:
    """One device: architecture, the file that describes it, whether the host reaches it, rows that are out of use."""

    arch: BackendDevice = BackendDevice.Invalid
    soc_desc_yaml: str = ""
    mmio: bool = False
    harvesting_mask: int = 0


def detect_available_silicon_devices(only_detect_mmio: bool = True) -> list[BackendDevice]:
    """The devices of this computer: none, it is an emulator that asks."""
    del only_detect_mmio
    return []


def get_device_descs_for_available_devices(out_dir: str = "") -> list[BackendDeviceDesc]:
    """Their descriptions: none."""
    del out_dir
    return []


def get_device_cluster_yaml(out_dir: str = "") -> str:
    """The file that describes a cluster of Wormhole chips: "", there is none."""
    del out_dir
    return ""


def get_custom_device_desc(
    arch: BackendDevice,
    mmio: bool = False,
    harvesting_mask: int = 0,
    grid_dim: Sequence[int] | DeviceGrid = (0, 0),
    out_dir: str = "",
) -> BackendDeviceDesc:
    """Describe a chip of that architecture with fewer rows, or cut to a grid of (rows, columns), in a file
    `<out_dir>/device_descs/<arch>_<mask>_<rows>x<columns>.yaml`. (0, 0) is the whole grid.

    Raises RuntimeError for an architecture without a table, rows that cannot be harvested, a grid that is too large.
    """
    from buda_emu.spec.devices import device, rows_of_mask

    rows, columns = (grid_dim.r, grid_dim.c) if isinstance(grid_dim, DeviceGrid) else grid_dim
    try:
        whole = device(arch.to_string())
        chip = whole.harvested(rows_of_mask(harvesting_mask))
        if rows or columns:
            chip = chip.with_grid(rows, columns)
        name = f"{arch.to_string()}_{harvesting_mask}_{chip.grid[0]}x{chip.grid[1]}.yaml"
        path = Path(out_dir) / "device_descs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_soc_text(chip, whole), encoding="utf-8")
    except (BudaError, OSError) as error:
        raise RuntimeError(f"get_custom_device_desc: {error}") from error
    return BackendDeviceDesc(arch, str(path), bool(mmio), int(harvesting_mask))


def _soc_text(chip: "Device", whole: "Device") -> str:
    """The file of a chip, in the keys that such files have."""
    import yaml

    workers = {(x, y) for x in chip.worker_columns for y in chip.worker_rows}
    unused = sorted({(x, y) for x in whole.worker_columns for y in whole.worker_rows} - workers)
    content = {
        "arch_name": chip.name.upper(),
        "grid": {"x_size": chip.noc_grid[0], "y_size": chip.noc_grid[1]},
        "arc": [_label(chip.arc)],
        "pcie": [_label(chip.pcie)],
        "dram": [[_label(core) for core in channel] for channel in chip.dram_cores],
        "eth": [_label(core) for core in chip.eth_cores],
        "functional_workers": [_label((x, y)) for y in chip.worker_rows for x in chip.worker_columns],
        "harvested_workers": [_label(core) for core in unused],
        "worker_l1_size": chip.l1_bytes,
        "dram_bank_size": chip.dram_channel_bytes,
        "eth_l1_size": chip.eth_l1_bytes,
    }
    return yaml.safe_dump(content, sort_keys=False)


def _label(core: Sequence[int]) -> str:
    return f"{core[0]}-{core[1]}"


class DeviceConfig:
    """What a front end's placer asks about the devices it compiles for.

    `device_yaml`, `cluster_yaml`: files as `get_custom_device_desc` and the vendor's tools write them, "" for the
    architecture's own table and a single chip. `runtime_params_yaml`: parameters that outrank the table, as `store_db`
    (a path) writes them. The last argument is a list of chip ids, or of places (x, y, rack, shelf) of the cluster file.

    Raises RuntimeError for an unknown architecture, a file that cannot be read, a chip that the cluster does not have.
    """

    def __init__(
        self,
        arch_name: str,
        device_yaml: str = "",
        cluster_yaml: str = "",
        runtime_params_yaml: str = "",
        backend_type: BackendType = BackendType.Golden,
        store_db: str = "",
        chip_ids: Sequence[int] | Sequence[Sequence[int]] = (),
    ) -> None:
        from buda_emu.api.backend import parameters

        self.arch_name = arch_name.lower()
        self.arch = BackendDevice.from_string(arch_name)
        self.device_yaml = device_yaml
        self.cluster_config_yaml = cluster_yaml
        self.backend_type = backend_type
        if self.arch == BackendDevice.Invalid:
            raise RuntimeError(f"DeviceConfig: no architecture {arch_name!r}; there are {', '.join(_archs())}")
        self._cluster = _read(cluster_yaml) if cluster_yaml else {}
        self._parameters = dict(parameters.of_arch(self.arch_name))
        if runtime_params_yaml:
            self._parameters |= load_cached_sys_param(runtime_params_yaml)
        self.grid_size = self._grid(_read(device_yaml) if device_yaml else {})
        self.chip_ids = self._chips(chip_ids)
        if store_db:
            _write(store_db, self._parameters)

    def get_harvested_cfg(self) -> list[int]:
        """The harvesting mask of each chip."""
        found: Any = self._cluster.get("harvesting") or {}
        return [int(found[chip]["harvest_mask"]) if chip in found else 0 for chip in self.chip_ids]

    def get_ethernet_connections(self) -> dict[int, dict[int, tuple[int, int]]]:
        """Chip and channel at the other end, by chip and channel."""
        found: dict[int, dict[int, tuple[int, int]]] = {}
        links: Any = self._cluster.get("ethernet_connections") or []
        for link in links:
            ends = [(int(end["chip"]), int(end["chan"])) for end in link]
            for (chip, channel), other in (ends, ends[::-1]):
                found.setdefault(chip, {})[channel] = other
        return found

    def get_dram_backend_reserved_max(self) -> int:
        """The first DRAM address that no channel's reserved part reaches."""
        return self._number("dram-backend_reserved_max")

    def get_dram_num_channels(self) -> int:
        """DRAM channels of a chip."""
        return self._number("dram-num_channels")

    def get_dram_channel_capacity(self) -> int:
        """Bytes of a DRAM channel."""
        return self._number("dram-channel_capacity")

    def get_host_memory_channel_start_address(self) -> int:
        """The first address of a host channel that queues may use."""
        return self._number("sysmem-host_region_range_start")

    def get_host_memory_num_channels(self) -> int:
        """Host channels of a chip."""
        return self._number("sysmem-host_region_num_channels")

    def get_host_memory_channel_size(self, channel: int) -> int:
        """Bytes of a host channel that queues may use. Raises RuntimeError for a channel that is not there."""
        return self._number(f"sysmem-host_region_range_size_chan{channel}")

    def _number(self, name: str) -> int:
        key = f"{self.arch_name}-{name}"
        if key not in self._parameters:
            raise RuntimeError(f"DeviceConfig: no parameter {key}")
        return int(self._parameters[key])

    def _grid(self, soc: Mapping[str, Any]) -> DeviceGrid:
        cores: Any = soc.get("functional_workers") or []
        workers = [str(core).partition("-") for core in cores]
        if workers:
            return DeviceGrid((len({y for _, _, y in workers}), len({x for x, _, _ in workers})))
        columns, _, rows = self._parameters[f"{self.arch_name}-t6-grid_size"].partition("-")
        return DeviceGrid((int(rows), int(columns)))

    def _chips(self, given: Sequence[Any]) -> list[int]:
        places: Mapping[Any, Any] = self._cluster.get("chips") or {}
        if not given:
            return sorted(int(chip) for chip in places) or [0]
        by_place = {tuple(place): int(chip) for chip, place in places.items()}
        found: list[int] = []
        for chip in given:
            known = chip if isinstance(chip, int) else by_place.get(tuple(chip))
            if known is None or (places and known not in places):
                raise RuntimeError(f"DeviceConfig: chip {chip} is not in {self.cluster_config_yaml or 'any cluster'}")
            found.append(known)
        return found


def load_cached_sys_param(path: str) -> dict[str, str]:
    """The parameters of a file that `DeviceConfig(store_db=...)` wrote. Raises RuntimeError."""
    return {str(key): str(value) for key, value in _read(path).items()}


def _archs() -> list[str]:
    return [device.to_string() for device in BackendDevice.__members__.values() if device != BackendDevice.Invalid]


def _read(path: str) -> dict[str, Any]:
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        raise RuntimeError(f"{path}: {error}") from error
    if not isinstance(content, dict):
        raise RuntimeError(f"{path}: not a map")
    return content  # pyright: ignore[reportUnknownVariableType]


def _write(path: str, content: Mapping[str, str]) -> None:
    import yaml

    try:
        Path(path).write_text(yaml.safe_dump(dict(content)), encoding="utf-8")
    except OSError as error:
        raise RuntimeError(f"{path}: {error}") from error
