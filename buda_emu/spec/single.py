"""The parts of a single-precision word: the numbers by which kernels and their definitions take a Float32 apart.

They are plain integers; who computes with words of a type converts them to it.
"""

from typing import Final

SIGN: Final = 0x80000000  # the mask of the sign bit
MAGNITUDE: Final = 0x7FFFFFFF
"""All bits but the sign."""
INFINITY: Final = 0x7F800000
"""An infinity, and the mask of the exponent."""
FRACTION: Final = 0x007FFFFF  # the mask of the 23 bits of fraction
HIDDEN: Final = 0x00800000
"""The leading one of a significand, which is not stored. As a word it is the smallest normal number."""
NEGATIVE_SIGN: Final = SIGN - (1 << 32)
"""The sign as a signed word has it."""
