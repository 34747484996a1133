"""Words that are hard for the vector unit and the packer, seeded."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

# fmt: off
SPECIALS: Final = np.array([
    0, 1, 0x007FFFFF, 0x00800000, 0x00800001, 0x3F800000, 0x3F7FFFFF, 0x40000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001,
    0x7FC00000, 0x7FFFFFFF, 0x3EFFFFFF, 0x3F000000, 0x38000000, 0x38800000, 0x387FFFFF, 0x47FFE000, 0x48000000,
], np.uint32)
# fmt: on


def words(kind: str, shape: tuple[int, ...], seed: int = 0) -> NDArray[np.uint32]:
    """fp32 patterns: any bits, near one exponent, specials, small, large, normally distributed, few fraction bits."""
    random = np.random.default_rng([seed, len(kind), *shape])
    any_bits = random.integers(0, 1 << 32, shape, dtype=np.uint32)
    if kind == "specials":
        return SPECIALS[any_bits % len(SPECIALS)] | (any_bits & np.uint32(0x80000000))
    if kind == "normal":
        return (random.standard_normal(shape) * 2).astype(np.float32).view(np.uint32)
    exponents = {"near": (123, 132), "small": (0, 6), "large": (249, 256), "half": (60, 68), "double": (186, 194)}
    if kind == "few bits":
        kind, any_bits = "near", any_bits & np.uint32(0xFFFC0000)
    if kind in exponents:
        fields = random.integers(*exponents[kind], shape, dtype=np.uint32) << np.uint32(23)
        return (any_bits & np.uint32(0x807FFFFF)) | fields
    assert kind == "any"
    return any_bits


KINDS: Final = ("any", "near", "specials", "small", "large", "half", "double", "normal", "few bits")


def datums(mode: str, kind: str, tiles: int, seed: int = 0) -> NDArray[np.uint32]:
    """A Dst image uint32[tiles, 32, 32] of a mode; one of 16 bits takes the upper half of the words."""
    image = words(kind, (tiles, 32, 32), seed)
    return image if mode in ("fp32", "int32") else image >> np.uint32(16)
