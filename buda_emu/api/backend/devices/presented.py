"""Devices that are shown to front ends: none, unless emulated ones are requested.

A front end that compiles for silicon looks for devices first. `BUDA_EMU_DEVICES=wormhole_b0`, or `present_devices`,
lets it find some; they are described by the tables of this package and run by the emulator like all others.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from buda_emu.api.backend.devices.soc import OUT_DIR, BackendDeviceDesc, get_custom_device_desc
from buda_emu.api.backend.devices.yaml_files import write_map
from buda_emu.api.backend.enums import BackendDevice
from buda_emu.errors import HostError
from buda_emu.spec.devices import device, rows_of_mask

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
