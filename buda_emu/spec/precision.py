"""What arithmetic a run may use, how much a run is given, and what replaces infinities on a chip."""

from typing import Final, Literal, get_args

Precision = Literal["format", "ideal", "device"]
"""format: the reference with format quantisation on (OPS 4.2); ideal: float32 throughout; device: the chip's own
arithmetic on the bits of each format (DEVICE_NUMERICS 6)."""

PRECISIONS: Final[tuple[Precision, ...]] = get_args(Precision)


def precision_named(word: str) -> Precision | None:
    """The precision of that name, None where there is none."""
    return PRECISIONS[PRECISIONS.index(word)] if word in PRECISIONS else None


DEFAULT_STEP_LIMIT = 10_000_000
"""Instructions, and inputs of epochs, in one run of a program."""


STAND_IN: Final = 2.0**100
"""For infinity. 0 times it is 0, and no sum of a few is infinite."""
INFINITE: Final = 0.99e30
"""From here on a result is taken for infinity, or for what stands for it."""
LARGEST: Final = 2.0**126
"""Of constants, as that by which masks fill that take float32's least: no sum of two such and `BELOW` is infinite."""
BELOW: Final = -(2.0**127)
"""Nothing that a maximum is taken of is less: neither `-LARGEST` nor the sum of two."""
