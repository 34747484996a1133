"""What arithmetic a run may use."""

from typing import Final, Literal, get_args

Precision = Literal["format", "ideal", "device"]
"""format: the reference with format quantisation on (OPS 4.2); ideal: float32 throughout; device: the chip's own
arithmetic on the bits of each format (DEVICE_NUMERICS 6)."""

PRECISIONS: Final[tuple[Precision, ...]] = get_args(Precision)


def precision_named(word: str) -> Precision | None:
    """The precision of that name, None where there is none."""
    return PRECISIONS[PRECISIONS.index(word)] if word in PRECISIONS else None
