"""The precisions of a run, its default step limit, the fidelities of products, and the finite values that replace
infinities on a chip."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, get_args

Precision = Literal["format", "ideal", "device"]
"""format: the reference with format quantisation on (OPS 4.2); ideal: float32 throughout; device: the chip's own
arithmetic on the bits of each format (DEVICE_NUMERICS 6)."""

PRECISIONS: Final[tuple[Precision, ...]] = get_args(Precision)


def find_precision(word: str) -> Precision | None:
    """Return the precision of this name, or None if there is none."""
    if word not in PRECISIONS:
        return None
    return PRECISIONS[PRECISIONS.index(word)]


PHASES: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {"LoFi": (0,), "HiFi2": (0, 1), "HiFi2_A": (0, 1), "HiFi2_B": (0, 2), "HiFi3": (0, 1, 2), "HiFi4": (0, 1, 2, 3)}
)
"""The phases of each math_fidelity, in the order in which they run (DEVICE_NUMERICS 2.1)."""

FIDELITIES: Final = ("LoFi", "HiFi2", "HiFi3", "HiFi4")
"""The fidelity of each number of phases, from one to four."""


DEFAULT_STEP_LIMIT = 10_000_000
"""Greatest number of instructions and epoch inputs in one run of a program. A loop that never ends stops there; a real
program that needs more is given a larger limit."""


STAND_IN: Final = 2.0**100
"""Finite replacement for infinity: 0 times it is 0, and no sum of a few is infinite."""
INFINITE: Final = 0.99e30
"""Results of at least this magnitude are taken for infinity, or for its replacement."""
MASKED: Final = -(2.0**110)
"""Scores between this and `-INFINITE` are masked by minus infinity: no sum of a few stand-ins is lower, and masks of
the least number of a floating-point type are."""
LARGEST: Final = 2.0**126
"""Greatest magnitude of constants, such as masks filled with float32's least value: no sum of two such and `BELOW` is
infinite."""
BELOW: Final = -(2.0**127)
"""Lower bound of all operands of a maximum, such as `-LARGEST` and the sum of two."""
