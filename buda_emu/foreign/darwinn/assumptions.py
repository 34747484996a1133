"""Facts that a package does not contain: a replay assumes them as its options say (DARWINN 9)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from buda_emu.foreign.darwinn.dma import HEADER_BYTES, TRANSPORTS, Transport
from buda_emu.support.errors import HostError

SRAM_BYTES: Final = 8 << 20
"""Approximate size of the chip's SRAM by its documentation; the model decides how much is left for parameters."""
_MAXIMUM: Final = 1 << 40  # far above any real link, clock or memory: a larger figure is a mistake


class Link(NamedTuple):
    """A link to the chip. `header` is the number of bytes before a transfer to it, `says` the source of its speed."""

    name: str
    bytes_per_second: int
    header: int
    says: str


LINKS: Final[Mapping[str, Link]] = {
    link.name: link
    for link in (
        Link("usb2", 53_248_000, HEADER_BYTES, "13 bulk packets of 512 bytes every 125 us"),
        Link("usb3", 500_000_000, HEADER_BYTES, "5 Gb/s, 8b/10b coded"),
        Link("pcie", 500_000_000, 0, "Gen2 x1"),
    )
}
"""Public figures; real links are slower."""
CLOCKS: Final[Mapping[str, int]] = {"low": 63_000_000, "medium": 125_000_000, "high": 250_000_000, "max": 500_000_000}
"""Clock of the core in hertz, by performance setting."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Facts about the chip and its link that a replay assumes. Without `link`, transfers take no time; without
    `frequency_hz`, the time of compute is unknown."""

    transport: Transport = "usb"
    overlap: bool = True
    link: Link | None = None
    frequency_hz: int | None = None
    sram_bytes: int = SRAM_BYTES

    def transfer_ns(self, size: int, to_device: bool) -> int:
        """Return the nanoseconds that a transfer of `size` bytes takes, rounded up; 0 where no link is assumed. A
        transfer to the device takes the link's header besides."""
        if self.link is None:
            return 0
        header = self.link.header if to_device else 0
        return -(-(size + header) * 1_000_000_000 // self.link.bytes_per_second)

    def compute_ns(self, cycles: int | None) -> int | None:
        """Return the nanoseconds that `cycles` take, rounded up; None where the cycles or the clock are unknown."""
        if cycles is None or self.frequency_hz is None:
            return None
        return -(-cycles * 1_000_000_000 // self.frequency_hz)

    def lines(self) -> tuple[str, ...]:
        """Return one line of text for each assumption, for reports."""
        link_line = "no link assumed: transfers take no time"
        if self.link is not None:
            link_line = (
                f"link {self.link.name}: {self.link.bytes_per_second:,} bytes/s, {self.link.header} header bytes to "
                f"the device ({self.link.says})"
            )
        clock_line = "no clock assumed: compute is unknown and takes no time"
        if self.frequency_hz is not None:
            clock_line = (
                f"clock {self.frequency_hz:,} Hz: compute takes the compiler's estimated cycles, where it gave them"
            )
        return (
            f"transport {self.transport}, requests {'may' if self.overlap else 'do not'} overlap",
            link_line,
            clock_line,
            f"parameter SRAM {self.sram_bytes:,} bytes",
        )


def assume(
    transport: str, overlap: bool, link: "str | int | None", frequency_hz: "str | int | None", sram_bytes: int
) -> Assumptions:
    """Build the assumptions of a replay from a caller's options. A link or a clock is a name or a figure. Raises
    HostError for an unknown name or a figure out of range."""
    if transport not in TRANSPORTS:
        raise HostError(f"transport {transport!r} is not one of {', '.join(TRANSPORTS)}")
    if isinstance(link, str):
        if link not in LINKS:
            raise HostError(f"link {link!r} is not one of {', '.join(LINKS)}, nor a number of bytes per second")
        assumed_link: Link | None = LINKS[link]
    elif link is None:
        assumed_link = None
    else:
        header = HEADER_BYTES if transport == "usb" else 0
        assumed_link = Link(f"{_positive(link, 'link')} B/s", link, header, "as given")
    if isinstance(frequency_hz, str):
        if frequency_hz not in CLOCKS:
            raise HostError(f"clock {frequency_hz!r} is not one of {', '.join(CLOCKS)}, nor a number of hertz")
        frequency_hz = CLOCKS[frequency_hz]
    clock = None
    if frequency_hz is not None:
        clock = _positive(frequency_hz, "frequency_hz")
    return Assumptions(
        transport=transport,
        overlap=bool(overlap),
        link=assumed_link,
        frequency_hz=clock,
        sram_bytes=_positive(sram_bytes, "sram_bytes"),
    )  # type: ignore[arg-type]


def _positive(value: Any, name: str) -> int:
    """Return an assumed figure unchanged. Raises HostError, with its `name`, unless it is an integer from 1 to 2^40
    - 1."""
    if not isinstance(value, int) or not 0 < value < _MAXIMUM:
        raise HostError(f"{name} is an integer from 1 to {_MAXIMUM - 1}, not {value!r}")
    return value
