"""DeviceConfig: what a front end's placer asks about its devices (NETLIST 7.2, 12)."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from buda_emu.api.backend.devices import parameters
from buda_emu.api.backend.devices.cluster import Links, links_of, mask_of, places_of, system_parameters
from buda_emu.api.backend.devices.presented import VARIABLE, cluster_of_presented, presented_devices
from buda_emu.api.backend.devices.yaml_files import read_map, write_map
from buda_emu.api.backend.enums import BackendDevice, BackendType
from buda_emu.errors import HostError
from buda_emu.spec.cluster import cluster_of, read_cluster


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
            self._parameters = dict(parameters.of_arch(self.arch_name))
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
