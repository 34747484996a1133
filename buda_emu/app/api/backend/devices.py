"""What the backend tells a front end about its devices: DeviceConfig, system parameters, clusters, the YAML files that
describe chips (NETLIST 7).
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from buda_emu.app.api.backend.enums import BackendDevice, BackendType
from buda_emu.spec.archs import ARCHS, GIB
from buda_emu.spec.boards import Cluster, cluster_of, read_cluster
from buda_emu.spec.devices import device, rows_of_mask
from buda_emu.support.errors import BudaError, HostError
from buda_emu.support.files import read_yaml

if TYPE_CHECKING:
    from buda_emu.spec.devices import Device


_END = "-"
Links = dict[int, dict[int, tuple[int, int]]]
"""Chip and channel at the other end, by chip and channel."""
Place = tuple[int, ...]  # x, y, rack, shelf


def system_parameters(cluster: Cluster) -> dict[str, str]:
    """The parameters of a cluster."""
    found = {
        "system-device-number_of_chips": str(len(cluster.places)),
        "system-device-chips_with_mmio": "".join(f"{chip}{_END}" for chip in cluster.mmio),
        "system-device-num_mmio_devices": str(len(cluster.mmio)),
        "system-device-chip_locations": _joined((chip, *place) for chip, place in cluster.places.items()),
        "system-device-ethernet_connections": _joined(
            (*near, *far) for link in cluster.links for near, far in (link, link[::-1])
        ),
    }
    for chip, arch in cluster.archs.items():
        found[f"system-device{chip}-type"] = arch.upper()
    for chip in cluster.places:
        mask = cluster.masks.get(chip, 0)
        found[f"system-device{chip}-harvesting_mask"] = str(mask)
        found[f"system-device{chip}-num_harvested_rows"] = str(mask.bit_count())
    return found


def places_of(parameters: Mapping[str, str]) -> dict[int, Place]:
    """Place of each chip."""
    rows = _split(parameters.get("system-device-chip_locations", ""))
    return {chip: tuple(place) for chip, *place in rows}


def links_of(parameters: Mapping[str, str]) -> Links:
    """Ethernet connections, both ways."""
    found: Links = {}
    for chip, channel, other, far in _split(parameters.get("system-device-ethernet_connections", "")):
        found.setdefault(chip, {})[channel] = (other, far)
    return found


def mask_of(parameters: Mapping[str, str], chip: int) -> int:
    """Harvesting mask of a chip; 0 where nothing is said."""
    return int(parameters.get(f"system-device{chip}-harvesting_mask", "0"), 0)


def _joined(rows: Iterable[Iterable[Any]]) -> str:
    """`1,2,3,-4,5,6,-`, as such parameters are written."""
    return "".join("".join(f"{value}," for value in row) + _END for row in rows)


def _split(text: str) -> list[list[int]]:
    """The inverse of `_joined`. Raises RuntimeError."""
    try:
        return [[int(value) for value in row.rstrip(",").split(",")] for row in text.split(_END) if row]
    except ValueError as error:
        raise RuntimeError(f"system parameter {text!r}: {error}") from error


def read_map(path: str) -> dict[str, Any]:
    """A file that holds a map. Raises RuntimeError."""
    try:
        content = read_yaml(path, "a map")
    except HostError as error:
        raise RuntimeError(str(error)) from error
    if not isinstance(content, dict):
        raise RuntimeError(f"{path}: not a map")
    return content  # pyright: ignore[reportUnknownVariableType]


def write_map(path: str, content: Mapping[str, Any]) -> None:
    """Write a map, and the folders above it. Raises RuntimeError."""
    import yaml

    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(yaml.safe_dump(dict(content), sort_keys=False), encoding="utf-8")
    except OSError as error:
        raise RuntimeError(f"{path}: {error}") from error


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


MIB: Final = 1 << 20
KIB: Final = 1 << 10

DRAM_RESERVED: Final = 256 * MIB
"""Nothing of the backend lies above, on any chip (V153: "about 0x10000000 is safely above")."""

_HOST_RESERVED: Final = {0: 128 * MIB, 3: 256 * MIB}
"""Top of each host channel that queues may not use (V156, LAYOUT 6)."""

_NET2PIPE, _PIPEGEN = 56 * KIB, 200 * KIB  # of each core's L1 (NETLIST 2.2)
_BLOCKS: Final = {"grayskull": 1, "wormhole_b0": 2}  # GDDR channels behind a DRAM channel (PERF 1)

_STATED: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    "blackhole": {
        "aiclk": {"freq_ghz": "1"},
        "dram": {"bandwidth_per_block_theoretical": "24", "bandwidth_per_block_measured": "19"},
        "noc": {"bw_gbps": "32"},
    }
}
"""What the vendor's backend states of a chip where silicon measured something else since (NETLIST 7.3, PERF 1)."""


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
    for scope, stated in _STATED.get(arch, {}).items():
        scopes[scope] |= stated
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


VARIABLE: Final = "BUDA_EMU_DEVICES"
_CLUSTERED: Final = (BackendDevice.Wormhole, BackendDevice.Wormhole_B0)  # chips that Ethernet joins
_CHANNELS: Final = ((8, 0), (9, 1))  # of a chip and of the next one


@dataclass(frozen=True, slots=True)
class PresentedDevice:
    """One emulated device. The host reaches it directly, or, without `mmio`, through another one's Ethernet."""

    arch: BackendDevice
    harvesting_mask: int
    mmio: bool


_given: list[str | None] = [None]


def present_devices(devices: str | None) -> None:
    """Show these devices to front ends from now on: architectures between commas, each with its harvesting mask after
    a colon where it has one (`wormhole_b0:0x800,wormhole_b0`). "" shows none; None goes back to `BUDA_EMU_DEVICES`.

    Of several Wormhole chips the host reaches the first; Ethernet joins each to the next by two links. Raises
    RuntimeError for an architecture without a table, different ones in one system, or a malformed mask.
    """
    if devices is not None:
        _parsed(devices, "present_devices")
    _given[0] = devices


def presented_devices() -> tuple[PresentedDevice, ...]:
    """The devices that are shown now, in order of their ids. Raises RuntimeError for a setting that says nothing."""
    if _given[0] is not None:
        return _parsed(_given[0], "present_devices")
    return _parsed(os.environ.get(VARIABLE, ""), VARIABLE)


def cluster_of_presented() -> dict[str, Any]:
    """The presented devices as a file of a cluster would describe them."""
    devices = presented_devices()
    joined = len(devices) - 1 if devices and devices[0].arch in _CLUSTERED else 0
    return {
        "arch": {chip: device.arch.name for chip, device in enumerate(devices)},
        "chips": {chip: [chip, 0, 0, 0] for chip in range(len(devices))},
        "ethernet_connections": [
            [{"chip": chip, "chan": near}, {"chip": chip + 1, "chan": far}]
            for chip in range(joined)
            for near, far in _CHANNELS
        ],
        "chips_with_mmio": [{chip: chip} for chip, device in enumerate(devices) if device.mmio],
        "harvesting": {
            chip: {"noc_translation": device.arch in _CLUSTERED, "harvest_mask": device.harvesting_mask}
            for chip, device in enumerate(devices)
        },
    }


def detect_available_silicon_devices(only_detect_mmio: bool = True) -> list[BackendDevice]:
    """Architectures of the devices that are shown; [] unless emulated ones are presented: there is no hardware."""
    return [device.arch for device in presented_devices() if device.mmio or not only_detect_mmio]


def get_device_descs_for_available_devices(out_dir: str = OUT_DIR) -> list[BackendDeviceDesc]:
    """Their descriptions, with a file for each kind below `out_dir`. Raises RuntimeError."""
    return [
        get_custom_device_desc(device.arch, device.mmio, device.harvesting_mask, (0, 0), out_dir)
        for device in presented_devices()
    ]


def get_device_cluster_yaml(out_dir: str = OUT_DIR) -> str:
    """The file that describes the presented Wormhole chips, written to `out_dir`; "" when there are none."""
    devices = presented_devices()
    if not devices or devices[0].arch not in _CLUSTERED:
        return ""
    path = str(Path(out_dir) / "cluster_desc.yaml")
    write_map(path, cluster_of_presented())
    return path


def _parsed(text: str, setting: str) -> tuple[PresentedDevice, ...]:
    found: list[PresentedDevice] = []
    for item in (part.strip() for part in text.split(",") if part.strip()):
        word, _, mask = item.partition(":")
        try:
            arch = BackendDevice.from_string(word)
            number = int(mask or "0", 0)
            device(arch.to_string()).harvested(rows_of_mask(number))
        except (HostError, RuntimeError, ValueError) as error:
            raise RuntimeError(f"{setting}: {item!r}: {error}") from error
        if found and arch != found[0].arch:
            raise RuntimeError(f"{setting}: {found[0].arch.to_string()} and {arch.to_string()} are not in one system")
        found.append(PresentedDevice(arch, number, mmio=not found or arch not in _CLUSTERED))
    return tuple(found)


class DeviceGrid:
    """Rows and columns of worker cores."""

    def __init__(self, size: Sequence[int]) -> None:
        self.r, self.c = (int(value) for value in size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceGrid) and (self.r, self.c) == (other.r, other.c)

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it changes

    def __repr__(self) -> str:
        return f"DeviceGrid(({self.r}, {self.c}))"


class DeviceConfig:
    """What a front end's placer asks about the devices it compiles for.

    `device_yaml`, `cluster_yaml`: files as `get_custom_device_desc` and the vendor's tools write them, "" for the
    architecture's own table, and for the devices that are presented or a single chip. `runtime_params_yaml`: a file of
    parameters that outrank these, which `store_backend_db_to_yaml` writes instead of reading it. The last argument is a
    list of chip ids, or of places (x, y, rack, shelf).

    Raises RuntimeError for an unknown architecture, a file that cannot be read, a chip that the cluster does not have.
    """

    def __init__(
        self,
        arch_name: str,
        device_yaml: str = "",
        cluster_yaml: str = "",
        runtime_params_yaml: str = "",
        backend_type: str | BackendType = BackendType.Golden,
        store_backend_db_to_yaml: bool = False,
        chip_ids: Sequence[int] | Sequence[Sequence[int]] = (),
    ) -> None:
        self.arch_name = arch_name.lower()
        self.device_yaml = device_yaml
        self.cluster_config_yaml = cluster_yaml
        self.backend_type = backend_type
        try:
            self.arch = BackendDevice.from_string(arch_name)
            self._parameters = dict(of_arch(self.arch_name))
            self._system = system_parameters(
                read_cluster(cluster_yaml) if cluster_yaml else cluster_of(cluster_of_presented(), VARIABLE)
            )
        except (RuntimeError, HostError) as error:
            raise RuntimeError(f"DeviceConfig: {error}") from error
        if runtime_params_yaml and store_backend_db_to_yaml:
            _store(runtime_params_yaml, self._parameters, self._system if cluster_yaml or presented_devices() else {})
        elif runtime_params_yaml:
            self._parameters |= _arch_level(runtime_params_yaml)
            self._system |= load_cached_sys_param(runtime_params_yaml)
        self.grid_size = self._grid(read_map(device_yaml) if device_yaml else {})
        self.chip_ids = self._chips(chip_ids)

    def get_harvested_cfg(self) -> dict[int, int]:
        """The harvesting mask of each chip, by its id."""
        return {chip: mask_of(self._system, chip) for chip in self.chip_ids}

    def get_ethernet_connections(self) -> Links:
        """Chip and channel at the other end, by chip and channel."""
        return links_of(self._system)

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
        return int(self._parameters[key], 0)

    def _grid(self, soc: Mapping[str, Any]) -> DeviceGrid:
        cores: Any = soc.get("functional_workers") or []
        workers = [str(core).partition("-") for core in cores]
        if workers:
            return DeviceGrid((len({y for _, _, y in workers}), len({x for x, _, _ in workers})))
        columns, _, rows = self._parameters[f"{self.arch_name}-t6-grid_size"].partition("-")
        return DeviceGrid((int(rows), int(columns)))

    def _chips(self, given: Sequence[Any]) -> list[int]:
        places = places_of(self._system)
        if not given:
            return sorted(places) or [0]
        by_place = {place: chip for chip, place in places.items()}
        where = self.cluster_config_yaml or "any cluster"
        found: list[int] = []
        for chip in given:
            known = chip if isinstance(chip, int) else by_place.get(tuple(chip))
            if known is None or (self.cluster_config_yaml and known not in places):
                raise RuntimeError(f"DeviceConfig: chip {chip} is not in {where}")
            found.append(known)
        return found


def load_cached_sys_param(path: str) -> dict[str, str]:
    """The system-level parameters of a file of runtime parameters; {} when it has none. Raises RuntimeError."""
    return _section(path, "system_level_params")


def _arch_level(path: str) -> dict[str, str]:
    """Parameters of the architecture that a file states, but for those that it says to ignore."""
    ignored: Any = read_map(path).get("params_to_ignore") or ()
    return {key: value for key, value in _section(path, "arch_level_params").items() if key not in ignored}


def _section(path: str, name: str) -> dict[str, str]:
    entries: Any = read_map(path).get(name) or {}
    if not isinstance(entries, dict):
        raise RuntimeError(f"{path}: {name} is not a map")
    return {str(key): "" if value is None else str(value) for key, value in cast("dict[Any, Any]", entries).items()}


def _store(path: str, parameters: Mapping[str, str], system: Mapping[str, str]) -> None:
    content: dict[str, Any] = {"arch_level_params": dict(sorted(parameters.items())), "params_to_ignore": []}
    if system:
        content["system_level_params"] = dict(sorted(system.items()))
    write_map(path, content)
