"""Facts that cannot be read from a package, which a replay assumes by options only (DARWINN 9)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from buda_emu.foreign.darwinn.dma import HEADER_BYTES, TRANSPORTS, Transport
from buda_emu.support.errors import HostError

SRAM_BYTES: Final = 8 << 20
"""Roughly what the chip has, says its documentation; the share left for parameters depends on the model."""
_MOST: Final = 1 << 40


class Link(NamedTuple):
    """A link to the chip. `header`: bytes before each transfer to it."""

    name: str
    bytes_per_second: int
    header: int
    says: str


LINKS: Final[Mapping[str, Link]] = {
    item.name: item
    for item in (
        Link("usb2", 53_248_000, HEADER_BYTES, "13 bulk packets of 512 bytes every 125 us"),
        Link("usb3", 500_000_000, HEADER_BYTES, "5 Gb/s, 8b/10b coded"),
        Link("pcie", 500_000_000, 0, "Gen2 x1"),
    )
}
"""Public figures; real links are slower."""
CLOCKS: Final[Mapping[str, int]] = {"low": 63_000_000, "medium": 125_000_000, "high": 250_000_000, "max": 500_000_000}
"""Of the core, by performance setting, in hertz."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """`link`: None takes no time; `frequency_hz`: None leaves compute unknown."""

    transport: Transport = "usb"
    overlap: bool = True
    link: Link | None = None
    frequency_hz: int | None = None
    sram_bytes: int = SRAM_BYTES

    def transfer_ns(self, size: int, to_device: bool) -> int:
        """How long a transfer takes."""
        if self.link is None:
            return 0
        return -(-(size + (self.link.header if to_device else 0)) * 1_000_000_000 // self.link.bytes_per_second)

    def compute_ns(self, cycles: int | None) -> int | None:
        """How long an executable computes; None for unknown."""
        if cycles is None or self.frequency_hz is None:
            return None
        return -(-cycles * 1_000_000_000 // self.frequency_hz)

    def lines(self) -> tuple[str, ...]:
        """Each in words, for every report."""
        link = self.link
        clock = self.frequency_hz
        return (
            f"transport {self.transport}, requests {'may' if self.overlap else 'do not'} overlap",
            "no link assumed: transfers take no time"
            if link is None
            else f"link {link.name}: {link.bytes_per_second:,} bytes/s, {link.header} header bytes to the device "
            f"({link.says})",
            "no clock assumed: compute is unknown and takes no time"
            if clock is None
            else f"clock {clock:,} Hz: compute takes the compiler's estimated cycles, where it gave them",
            f"parameter SRAM {self.sram_bytes:,} bytes",
        )


def assume(
    transport: str, overlap: bool, link: "str | int | None", frequency_hz: "str | int | None", sram_bytes: int
) -> Assumptions:
    """From what a caller gives. Raises HostError for an unknown word or a malformed figure."""
    if transport not in TRANSPORTS:
        raise HostError(f"transport {transport!r} is not one of {', '.join(TRANSPORTS)}")
    if isinstance(link, str):
        if link not in LINKS:
            raise HostError(f"link {link!r} is not one of {', '.join(LINKS)}, nor a number of bytes per second")
        known: Link | None = LINKS[link]
    elif link is None:
        known = None
    else:
        header = HEADER_BYTES if transport == "usb" else 0
        known = Link(f"{_positive(link, 'link')} B/s", link, header, "as given")
    if isinstance(frequency_hz, str):
        if frequency_hz not in CLOCKS:
            raise HostError(f"clock {frequency_hz!r} is not one of {', '.join(CLOCKS)}, nor a number of hertz")
        frequency_hz = CLOCKS[frequency_hz]
    clock = None if frequency_hz is None else _positive(frequency_hz, "frequency_hz")
    return Assumptions(
        transport=transport,
        overlap=bool(overlap),
        link=known,
        frequency_hz=clock,
        sram_bytes=_positive(sram_bytes, "sram_bytes"),
    )  # type: ignore[arg-type]


def _positive(value: Any, name: str) -> int:
    if not isinstance(value, int) or not 0 < value < _MOST:
        raise HostError(f"{name} is an integer from 1 to {_MOST - 1}, not {value!r}")
    return value
