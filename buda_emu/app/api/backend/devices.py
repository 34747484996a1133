"""The devices that the backend shows to a front end: DeviceConfig, system parameters, clusters, and the YAML files that
describe chips (NETLIST 7).
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from buda_emu.app.api.backend.enums import BackendDevice, BackendType
from buda_emu.spec.archs import ARCHS, DRAM_RESERVED, HOST_CHANNEL_BYTES, HOST_RESERVED, REMOTE_WINDOW
from buda_emu.spec.boards import Cluster, cluster_of, read_cluster
from buda_emu.spec.devices import device, rows_of_mask
from buda_emu.support.errors import BudaError, HostError
from buda_emu.support.files import read_yaml, write_file
from buda_emu.support.output_places import make_folder

if TYPE_CHECKING:
    from buda_emu.spec.devices import Device


_ROW_END = "-"
Links = dict[int, dict[int, tuple[int, int]]]
"""Ethernet connections: the chip and the channel at the other end, by chip and channel."""
Place = tuple[int, ...]
"""The place of a chip in a cluster: x, y, rack, shelf."""


def system_parameters(cluster: Cluster) -> dict[str, str]:
    """Return the parameters that describe a cluster (chips, places, links, harvesting), as texts by the vendor's keys,
    such as "system-device-number_of_chips"."""
    parameters = {
        "system-device-number_of_chips": str(len(cluster.places)),
        "system-device-chips_with_mmio": "".join(f"{chip}{_ROW_END}" for chip in cluster.mmio),
        "system-device-num_mmio_devices": str(len(cluster.mmio)),
        "system-device-chip_locations": _join_rows((chip, *place) for chip, place in cluster.places.items()),
        "system-device-ethernet_connections": _join_rows(
            (*near, *far) for link in cluster.links for near, far in (link, link[::-1])
        ),
    }
    for chip, arch in cluster.archs.items():
        parameters[f"system-device{chip}-type"] = arch.upper()
    for chip in cluster.places:
        mask = cluster.masks.get(chip, 0)
        parameters[f"system-device{chip}-harvesting_mask"] = str(mask)
        parameters[f"system-device{chip}-num_harvested_rows"] = str(mask.bit_count())
    return parameters


def places_of(parameters: Mapping[str, str]) -> dict[int, Place]:
    """Return x, y, rack and shelf of each chip, by its id, from the system parameter that lists them; {} if it is
    missing. Raises RuntimeError for a parameter that is not rows of numbers."""
    rows = _split_rows(parameters.get("system-device-chip_locations", ""))
    return {chip: tuple(place) for chip, *place in rows}


def links_of(parameters: Mapping[str, str]) -> Links:
    """Return the Ethernet connections, each under both of its ends. Raises RuntimeError for a parameter that is not
    rows of numbers."""
    links: Links = {}
    for chip, channel, other_chip, other_channel in _split_rows(
        parameters.get("system-device-ethernet_connections", "")
    ):
        links.setdefault(chip, {})[channel] = (other_chip, other_channel)
    return links


def mask_of(parameters: Mapping[str, str], chip: int) -> int:
    """Return the harvesting mask of a chip, 0 for a chip without that parameter."""
    return int(parameters.get(f"system-device{chip}-harvesting_mask", "0"), 0)


def _join_rows(rows: Iterable[Iterable[Any]]) -> str:
    """Join rows of numbers into the text of a system parameter, such as `1,2,3,-4,5,6,-`."""
    texts: list[str] = []
    for row in rows:
        texts += [f"{value}," for value in row]
        texts.append(_ROW_END)
    return "".join(texts)


def _split_rows(text: str) -> list[list[int]]:
    """Split the text of a system parameter into the rows of numbers that `_join_rows` joined. Raises RuntimeError."""
    rows: list[list[int]] = []
    try:
        for row in filter(None, text.split(_ROW_END)):
            rows.append([int(value) for value in row.rstrip(",").split(",")])
    except ValueError as error:
        raise RuntimeError(f"system parameter {text!r}: {error}") from error
    return rows


def read_map(path: str) -> dict[str, Any]:
    """Read a YAML file that holds a map. Raises RuntimeError."""
    try:
        content = read_yaml(path, "a map")
    except HostError as error:
        raise RuntimeError(str(error)) from error
    if not isinstance(content, dict):
        raise RuntimeError(f"{path}: not a map")
    return content  # pyright: ignore[reportUnknownVariableType]


def write_map(path: str, content: Mapping[str, Any]) -> None:
    """Write a map to a YAML file, and make the folders above it. Raises RuntimeError."""
    import yaml

    try:
        make_folder(Path(path).parent)
        text = yaml.safe_dump(dict(content), sort_keys=False)
        write_file(path, lambda stream: stream.write(text.encode()))
    except OSError as error:
        raise RuntimeError(f"{path}: {error}") from error


OUT_DIR: Final = "./tt_build"
"""The default folder of files that describe devices."""


@dataclass(slots=True)
class BackendDeviceDesc:
    """A device of the machine: its architecture, the file that describes it, `mmio` if the host reaches it directly,
    and the mask of its rows that are out of use."""

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
    """Describe a chip with harvested rows, or cut to a grid of (x, y) = (columns, rows); (0, 0) is the whole grid.

    The description is written to `<out_dir>/device_descs/<arch>_<mask>_<x>x<y>.yaml`, unless that file exists. Raises
    RuntimeError for an architecture without a table, rows that cannot be harvested, a grid that is too large.
    """
    columns, rows = (int(value) for value in grid_dim)
    name = f"{arch.to_string()}_{int(harvesting_mask)}_{columns}x{rows}.yaml"
    path = Path(out_dir) / "device_descs" / name
    try:
        if not path.exists():
            write_map(str(path), _describe_chip(arch.to_string(), int(harvesting_mask), rows, columns))
    except (BudaError, OSError, RuntimeError) as error:
        raise RuntimeError(f"get_custom_device_desc: {error}") from error
    return BackendDeviceDesc(arch, str(path), bool(mmio), int(harvesting_mask))


def _describe_chip(arch: str, harvesting_mask: int, rows: int, columns: int) -> dict[str, Any]:
    """Return the description of a chip under the keys of such files. Raises HostError or UnsupportedError."""
    full_chip = device(arch)
    chip = full_chip.harvested(rows_of_mask(harvesting_mask))
    if rows or columns:
        chip = chip.with_grid(rows, columns)
    return {
        "arch_name": chip.name.upper(),
        "grid": {"x_size": chip.noc_grid[0], "y_size": chip.noc_grid[1]},
        "arc": [core_label(chip.arc)],
        "pcie": [core_label(chip.pcie)],
        "dram": [[core_label(core) for core in channel] for channel in chip.dram_cores],
        "eth": [core_label(core) for core in chip.eth_cores],
        "functional_workers": [core_label((x, y)) for y in chip.worker_rows for x in chip.worker_columns],
        "harvested_workers": [core_label(core) for core in _harvested_workers(chip, full_chip)],
        "worker_l1_size": chip.l1_bytes,
        "dram_bank_size": chip.dram_channel_bytes,
        "eth_l1_size": chip.eth_l1_bytes,
    }


def _harvested_workers(chip: "Device", full_chip: "Device") -> list[tuple[int, int]]:
    """Return the worker cores (x, y) that the full chip has and this one does not."""
    workers = set(product(chip.worker_columns, chip.worker_rows))
    return sorted(set(product(full_chip.worker_columns, full_chip.worker_rows)) - workers)


def core_label(core: Sequence[int]) -> str:
    """Return the name of a core (x, y) in the files that describe devices, such as `1-2`."""
    return f"{core[0]}-{core[1]}"


MIB: Final = 1 << 20  # bytes
KIB: Final = 1 << 10  # bytes

# Parts of each core's L1 (NETLIST 2.2).
_NET2PIPE_BYTES = 56 * KIB
_PIPEGEN_BYTES = 200 * KIB
_DRAM_BLOCKS: Final = {"grayskull": 1, "wormhole_b0": 2}  # GDDR channels behind a DRAM channel (PERF 1)

_STATED: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    "blackhole": {
        "aiclk": {"freq_ghz": "1"},
        "dram": {"bandwidth_per_block_theoretical": "24", "bandwidth_per_block_measured": "19"},
        "noc": {"bw_gbps": "32"},
    }
}
"""Figures that the vendor's backend states of a chip and silicon contradicts (NETLIST 7.3, PERF 1)."""


@cache
def arch_parameters(arch: str) -> Mapping[str, str]:
    """Return every parameter of an architecture, by lower-case key. Raises HostError for an architecture without a
    device table."""
    chip = device(arch)
    scopes = {
        "sysmem": _sysmem_parameters(arch),
        "dram": _dram_parameters(arch),
        "eth": _eth_parameters(arch),
        "t6": _t6_parameters(arch),
        "noc": _noc_parameters(arch),
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
    return {
        f"{arch}-{scope}-{name}": value for scope, parameters in scopes.items() for name, value in parameters.items()
    }


def host_channel_bytes(channel: int) -> int:
    """Return the bytes of a host channel that queues may use."""
    return HOST_CHANNEL_BYTES - HOST_RESERVED.get(channel, 0)


def _sysmem_parameters(arch: str) -> dict[str, str]:
    """Return the parameters of host memory: number and sizes of channels, and the part of each that the backend
    reserves."""
    channels = ARCHS[arch].host_channels
    parameters = {"host_region_range_start": "0", "host_region_num_channels": str(channels)}
    for channel in range(channels):
        size = host_channel_bytes(channel)
        parameters[f"host_region_range_size_chan{channel}"] = str(size)
        parameters[f"backend_reserved_range_start_chan{channel}"] = str(size)
        parameters[f"backend_reserved_range_size_chan{channel}"] = str(HOST_CHANNEL_BYTES - size)
    return parameters


def _dram_parameters(arch: str) -> dict[str, str]:
    """Return the parameters of DRAM: channels, capacity, bandwidth, reserved memory and the cores that lead to each
    channel."""
    chip = device(arch)
    parameters = {
        "num_channels": str(chip.dram_channels),
        "channel_capacity": str(chip.dram_channel_bytes),
        "bandwidth_per_block_theoretical": f"{chip.dram_theoretical:g}",
        "bandwidth_per_block_measured": f"{chip.dram_measured:g}",
        "backend_reserved_max": str(DRAM_RESERVED),
        # LAYOUT 6
        "host_mmio_range_channel": "0",
        "host_mmio_range_start": str(REMOTE_WINDOW),
        "host_mmio_range_size": str(256 * MIB),
    }
    if arch in _DRAM_BLOCKS:
        parameters["num_blocks_per_channel"] = str(_DRAM_BLOCKS[arch])
        parameters["block_capacity"] = str(chip.dram_channel_bytes // _DRAM_BLOCKS[arch])
    for channel, cores in enumerate(chip.dram_cores):
        parameters[f"backend_reserved_chan{channel}"] = str(DRAM_RESERVED)
        parameters[f"core_xy_chan{channel}"] = core_label(cores[0])
        if len(cores) > 1:
            parameters |= {f"core_xy_chan{channel}_subchan{n}": core_label(core) for n, core in enumerate(cores)}
    return parameters


def _eth_parameters(arch: str) -> dict[str, str]:
    """Return the parameters of the Ethernet cores: number, size of L1 and the place of each."""
    chip = device(arch)
    parameters = {"num_cores": str(len(chip.eth_cores)), "l1_size": str(chip.eth_l1_bytes)}
    return parameters | {f"core_xy_chan{channel}": core_label(core) for channel, core in enumerate(chip.eth_cores)}


def _t6_parameters(arch: str) -> dict[str, str]:
    """Return the parameters of the Tensix cores: number, grid, sizes of L1 and Dst, and the parts of L1 that the
    backend reserves."""
    chip = device(arch)
    rows, columns = chip.grid
    return {
        "num_cores": str(rows * columns),
        "grid_size": f"{columns}-{rows}",
        "l1_size": str(chip.l1_bytes),
        "dst_size": str(chip.dst_size_alignment),
        "l1_runtime_blob_size": str(chip.l1_data_start),
        "l1_pipegen_blob_size": str(_PIPEGEN_BYTES),
        "l1_backend_reserved_size": str(chip.l1_data_start + _NET2PIPE_BYTES + _PIPEGEN_BYTES),
    }


def _noc_parameters(arch: str) -> dict[str, str]:
    """Return the parameters of the NoC: bandwidth, number of rings and of virtual channels."""
    chip = device(arch)
    return {
        "bw_gbps": f"{chip.noc_bytes_per_clock * chip.clock / 1000:g}",
        "num_rings": str(chip.nocs),
        "num_vcs": str(chip.noc_virtual_channels),
    }


VARIABLE: Final = "BUDA_EMU_DEVICES"
"""The environment variable with the emulated devices that are shown to front ends."""
_ARCHS_WITH_ETHERNET: Final = (BackendDevice.Wormhole, BackendDevice.Wormhole_B0)
_LINK_CHANNELS: Final = ((8, 0), (9, 1))  # the channels of a link at a chip and at the next one


@dataclass(frozen=True, slots=True)
class PresentedDevice:
    """An emulated device that is shown to front ends. The host reaches it directly, or, without `mmio`, through the
    Ethernet of another device."""

    arch: BackendDevice
    harvesting_mask: int
    mmio: bool


# The API of a compiled module has no object that could hold this setting of `present_devices`.
_presented: list[str | None] = [None]


def present_devices(devices: str | None) -> None:
    """Show emulated devices to front ends from now on.

    `devices` are architectures separated by commas, each with its harvesting mask after a colon if it has one
    (`wormhole_b0:0x800,wormhole_b0`). "" shows no devices; None shows those of `BUDA_EMU_DEVICES` again. Of several
    Wormhole chips the host reaches the first; Ethernet joins each to the next by two links. Raises RuntimeError for an
    architecture without a table, different architectures in one system, or a malformed mask.
    """
    if devices is not None:
        _parse_devices(devices, "present_devices")
    _presented[0] = devices


def presented_devices() -> tuple[PresentedDevice, ...]:
    """Return the devices that are shown now, in the order of their ids. Raises RuntimeError for a setting that cannot
    be read."""
    if _presented[0] is not None:
        return _parse_devices(_presented[0], "present_devices")
    return _parse_devices(os.environ.get(VARIABLE, ""), VARIABLE)


def describe_presented_cluster() -> dict[str, Any]:
    """Return the content of a cluster file that describes the devices of `presented_devices`. Raises RuntimeError for a
    setting that cannot be read."""
    devices = presented_devices()
    linked_pairs = 0
    if devices and devices[0].arch in _ARCHS_WITH_ETHERNET:
        linked_pairs = len(devices) - 1
    return {
        "arch": {chip: device.arch.name for chip, device in enumerate(devices)},
        "chips": {chip: [chip, 0, 0, 0] for chip in range(len(devices))},
        "ethernet_connections": [
            [{"chip": chip, "chan": near}, {"chip": chip + 1, "chan": far}]
            for chip in range(linked_pairs)
            for near, far in _LINK_CHANNELS
        ],
        "chips_with_mmio": [{chip: chip} for chip, device in enumerate(devices) if device.mmio],
        "harvesting": {
            chip: {"noc_translation": device.arch in _ARCHS_WITH_ETHERNET, "harvest_mask": device.harvesting_mask}
            for chip, device in enumerate(devices)
        },
    }


def detect_available_silicon_devices(only_detect_mmio: bool = True) -> list[BackendDevice]:
    """Return the architectures of the emulated devices that are shown, by default only of those that the host reaches.
    There is no hardware: without emulated devices the list is empty."""
    return [device.arch for device in presented_devices() if device.mmio or not only_detect_mmio]


def get_device_descs_for_available_devices(out_dir: str = OUT_DIR) -> list[BackendDeviceDesc]:
    """Describe the devices that are shown, with a file for each kind of device below `out_dir`. Raises RuntimeError."""
    return [
        get_custom_device_desc(device.arch, device.mmio, device.harvesting_mask, (0, 0), out_dir)
        for device in presented_devices()
    ]


def get_device_cluster_yaml(out_dir: str = OUT_DIR) -> str:
    """Write the file that describes the Wormhole chips that are shown to `out_dir`, and return its path; "" if there
    are none. Raises RuntimeError."""
    devices = presented_devices()
    if not devices or devices[0].arch not in _ARCHS_WITH_ETHERNET:
        return ""
    path = str(Path(out_dir) / "cluster_desc.yaml")
    write_map(path, describe_presented_cluster())
    return path


def _parse_devices(text: str, setting: str) -> tuple[PresentedDevice, ...]:
    """Parse devices as `present_devices` takes them; `setting` names their source in messages. Raises RuntimeError."""
    devices: list[PresentedDevice] = []
    for word in filter(None, map(str.strip, text.split(","))):
        name, _, mask = word.partition(":")
        try:
            arch = BackendDevice.from_string(name)
            number = int(mask or "0", 0)
            device(arch.to_string()).harvested(rows_of_mask(number))
        except (HostError, RuntimeError, ValueError) as error:
            raise RuntimeError(f"{setting}: {word!r}: {error}") from error
        if devices and arch != devices[0].arch:
            raise RuntimeError(f"{setting}: {devices[0].arch.to_string()} and {arch.to_string()} are not in one system")
        devices.append(PresentedDevice(arch, number, mmio=not devices or arch not in _ARCHS_WITH_ETHERNET))
    return tuple(devices)


class DeviceGrid:
    """The grid of worker cores of a device: `r` rows and `c` columns."""

    def __init__(self, size: Sequence[int]) -> None:
        self.r, self.c = (int(value) for value in size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceGrid) and (self.r, self.c) == (other.r, other.c)

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it changes

    def __repr__(self) -> str:
        return f"DeviceGrid(({self.r}, {self.c}))"


class DeviceConfig:
    """The sizes and parameters of the devices that a front end's placer compiles for.

    `device_yaml` and `cluster_yaml` are files as `get_custom_device_desc` and the vendor's tools write them; "" stands
    for the architecture's own table, and for the devices that are shown, or a single chip. `runtime_params_yaml` is a
    file of parameters that outrank these; with `store_backend_db_to_yaml` it is written instead of read. `chip_ids` is
    a list of chip ids, or of places (x, y, rack, shelf).

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
            self._parameters = dict(arch_parameters(self.arch_name))
            if cluster_yaml:
                cluster = read_cluster(cluster_yaml)
            else:
                cluster = cluster_of(describe_presented_cluster(), VARIABLE)
            self._system = system_parameters(cluster)
        except (RuntimeError, HostError) as error:
            raise RuntimeError(f"DeviceConfig: {error}") from error
        if runtime_params_yaml and store_backend_db_to_yaml:
            has_cluster = bool(cluster_yaml or presented_devices())
            _write_parameters(runtime_params_yaml, self._parameters, self._system if has_cluster else {})
        elif runtime_params_yaml:
            self._parameters |= _read_arch_parameters(runtime_params_yaml)
            self._system |= load_cached_sys_param(runtime_params_yaml)
        self.grid_size = self._worker_grid(read_map(device_yaml) if device_yaml else {})
        self.chip_ids = self._resolve_chips(chip_ids)

    def get_harvested_cfg(self) -> dict[int, int]:
        """Return the harvesting mask of each chip, by its id."""
        return {chip: mask_of(self._system, chip) for chip in self.chip_ids}

    def get_ethernet_connections(self) -> Links:
        """Return the Ethernet connections: the chip and the channel at the other end, by chip and channel."""
        return links_of(self._system)

    def get_dram_backend_reserved_max(self) -> int:
        """Return the first DRAM address that is above the reserved part of every channel."""
        return self._integer("dram-backend_reserved_max")

    def get_dram_num_channels(self) -> int:
        """Return the number of DRAM channels of a chip."""
        return self._integer("dram-num_channels")

    def get_dram_channel_capacity(self) -> int:
        """Return the bytes of a DRAM channel."""
        return self._integer("dram-channel_capacity")

    def get_host_memory_channel_start_address(self) -> int:
        """Return the first address of a host channel that queues may use."""
        return self._integer("sysmem-host_region_range_start")

    def get_host_memory_num_channels(self) -> int:
        """Return the number of host channels of a chip."""
        return self._integer("sysmem-host_region_num_channels")

    def get_host_memory_channel_size(self, channel: int) -> int:
        """Return the bytes of a host channel that queues may use. Raises RuntimeError for a channel that does not
        exist."""
        return self._integer(f"sysmem-host_region_range_size_chan{channel}")

    def _integer(self, name: str) -> int:
        """Return the architecture's parameter `name` as an integer. Raise RuntimeError if there is none."""
        key = f"{self.arch_name}-{name}"
        if key not in self._parameters:
            raise RuntimeError(f"DeviceConfig: no parameter {key}")
        return int(self._parameters[key], 0)

    def _worker_grid(self, soc: Mapping[str, Any]) -> DeviceGrid:
        """Return rows and columns of worker cores: counted from the cores of the chip's description, or if that lists
        none, of the architecture."""
        cores: Any = soc.get("functional_workers") or []
        workers = [str(core).partition("-") for core in cores]
        if workers:
            return DeviceGrid((len({y for _, _, y in workers}), len({x for x, _, _ in workers})))
        columns, _, rows = self._parameters[f"{self.arch_name}-t6-grid_size"].partition("-")
        return DeviceGrid((int(rows), int(columns)))

    def _resolve_chips(self, chips: Sequence[Any]) -> list[int]:
        """Return the ids of chips that are named by ids or places; all chips if none are named. Raises RuntimeError."""
        places = places_of(self._system)
        if not chips:
            return sorted(places) or [0]
        id_of_place = {place: chip_id for chip_id, place in places.items()}
        cluster = self.cluster_config_yaml or "any cluster"
        ids: list[int] = []
        for chip in chips:
            chip_id = chip if isinstance(chip, int) else id_of_place.get(tuple(chip))
            if chip_id is None or (self.cluster_config_yaml and chip_id not in places):
                raise RuntimeError(f"DeviceConfig: chip {chip} is not in {cluster}")
            ids.append(chip_id)
        return ids


def load_cached_sys_param(path: str) -> dict[str, str]:
    """Return the system-level parameters of a file of runtime parameters; {} if it has none. Raises RuntimeError."""
    return _read_section(path, "system_level_params")


def _read_arch_parameters(path: str) -> dict[str, str]:
    """Return the parameters of the architecture in a file of runtime parameters, without those that the file tells to
    ignore. Raises RuntimeError."""
    ignored: Any = read_map(path).get("params_to_ignore") or ()
    return {key: value for key, value in _read_section(path, "arch_level_params").items() if key not in ignored}


def _read_section(path: str, name: str) -> dict[str, str]:
    """Return a section of a YAML file as strings; empty if it is missing. Raise RuntimeError if it is not a map."""
    entries: Any = read_map(path).get(name) or {}
    if not isinstance(entries, dict):
        raise RuntimeError(f"{path}: {name} is not a map")
    return {str(key): "" if value is None else str(value) for key, value in cast("dict[Any, Any]", entries).items()}


def _write_parameters(path: str, parameters: Mapping[str, str], system: Mapping[str, str]) -> None:
    """Write the architecture's parameters to a YAML file, and those of the system if there are any."""
    content: dict[str, Any] = {"arch_level_params": dict(sorted(parameters.items())), "params_to_ignore": []}
    if system:
        content["system_level_params"] = dict(sorted(system.items()))
    write_map(path, content)
