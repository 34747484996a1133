"""How sure the bits of each op type are in precision "device" (DEVICE_NUMERICS 6.2, 6.3, 9).

The units' own caveats are `buda_emu.tensix.claims`; here they are summed up by op type.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from buda_emu.spec.ops import OP_TYPES
from buda_emu.tensix.words import Core

Claim = Literal["exact", "documented", "not claimed"]
"""exact: every unit that it uses was compared bit for bit with the public simulator, their order is that of the public
kernels. documented: a part of it was read or inferred. not claimed: the chip's own arithmetic is not known."""

MEANINGS: Final[Mapping[Claim, str]] = MappingProxyType(
    {
        "exact": "units compared bit for bit with the public simulator, their order read in the public kernels",
        "documented": "a part was read in documents or kernels, or inferred, and compared with nothing",
        "not claimed": "the chip's own arithmetic is not known",
    }
)

_WORMHOLE: Final[Mapping[str, Claim]] = MappingProxyType(
    {
        # A sum of products may be one multiply-add or two steps: the compiler's choice is inferred (6.3).
        **dict.fromkeys(("exp", "log", "sqrt", "gelu", "reciprocal", "tanh"), "documented"),
        **dict.fromkeys(("sigmoid", "gelu_derivative"), "documented"),  # table 2 of LUT16 (3.2)
        **dict.fromkeys(("sine", "cosine"), "documented"),  # the chip rounds at random there (6.3)
        "dropout": "not claimed",  # which values are dropped depends on the core's place (6.3)
        **dict.fromkeys(("splice", "embedding", "tilizer", "topk"), "documented"),  # 6.2
        "fused_op": "documented",  # as what dest is read back (2.7)
    }
)


def claim(type: str, core: Core) -> Claim | None:
    """What is claimed of an op type on a core; None for one that does not run."""
    if OP_TYPES[type].family == "refused":
        return None
    if core == "grayskull":
        return "exact" if type == "ethernet_datacopy" else "not claimed"  # 6.3
    found = _WORMHOLE.get(type, "exact")
    if core == "blackhole" and found == "exact" and type != "ethernet_datacopy":
        return "documented"  # its packer was read, not run (9)
    return found
