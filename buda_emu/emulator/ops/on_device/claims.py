"""Summarises how certain the bits of each op type are in precision "device" (DEVICE_NUMERICS 6.2, 6.3, 9, 10).

The declarations of the op types state it (`buda_emu.spec.ops.OnDevice`), the units' own caveats are
`buda_emu.arithmetic.tensix.claims`; here they are summed up in a word."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from buda_emu.arithmetic.tensix.registers import Core
from buda_emu.spec.ops import OP_TYPES

Claim = Literal["exact", "documented", "not claimed"]
"""exact: every unit that it uses was compared bit for bit with the public simulator in the formats that its declaration
names, their order is that of the public kernels. documented: a part of it was read or inferred. not claimed: the chip's
own arithmetic is not known."""

MEANINGS: Final[Mapping[Claim, str]] = MappingProxyType(
    {
        "exact": "for the formats below: units compared bit for bit with the public simulator, in the kernels' order",
        "documented": "a part was read in documents or kernels, or inferred, and compared with nothing",
        "not claimed": "the chip's own arithmetic is not known",
    }
)


def claim(type: str, core: Core) -> Claim | None:
    """Return how certain the bits of an op type are on a core; None for a type that does not run."""
    op = OP_TYPES[type]
    if not op.runs:
        return None
    if op.has("Ethernet"):
        return "exact"  # bytes as they are, on every chip
    if core == "grayskull":
        return "not claimed"  # 6.3
    return "exact" if op.on_device.exact else "documented"
