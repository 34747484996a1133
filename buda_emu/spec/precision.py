"""The precisions of a run, its default step limit, and the finite values that replace infinities on a chip."""

from typing import Final, Literal, get_args

Precision = Literal["format", "ideal", "device"]
"""format: the reference with format quantisation on (OPS 4.2); ideal: float32 throughout; device: the chip's own
arithmetic on the bits of each format (DEVICE_NUMERICS 6)."""

PRECISIONS: Final[tuple[Precision, ...]] = get_args(Precision)


def precision_named(word: str) -> Precision | None:
    """Return the precision of a name, or None if there is none."""
    if word not in PRECISIONS:
        return None
    return PRECISIONS[PRECISIONS.index(word)]


DEFAULT_STEP_LIMIT = 10_000_000
"""Greatest number of instructions and epoch inputs in one run of a program."""


STAND_IN: Final = 2.0**100
"""Finite replacement for infinity: 0 times it is 0, and no sum of a few is infinite."""
INFINITE: Final = 0.99e30
"""Results of at least this magnitude are taken for infinity, or for its replacement."""
LARGEST: Final = 2.0**126
"""Greatest magnitude of constants, such as masks filled with float32's least value: no sum of two such and `BELOW` is
infinite."""
BELOW: Final = -(2.0**127)
"""Lower bound of all operands of a maximum, such as `-LARGEST` and the sum of two."""
