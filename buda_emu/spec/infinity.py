"""The values that replace infinities on a chip (docs/compile/compile.md): 0 times an infinity is NaN, and few formats
have any.

Powers of two: every float format holds them as they are, so that a row of nothing but masks minus its largest is zero.
"""

from typing import Final

STAND_IN: Final = 2.0**100
"""For infinity. 0 times it is 0, and no sum of a few is infinite."""
INFINITE: Final = 0.99e30
"""From here on a result is taken for infinity, or for what stands for it."""
LARGEST: Final = 2.0**126
"""Of constants, as that by which masks fill that take float32's least: no sum of two such and `BELOW` is infinite."""
BELOW: Final = -(2.0**127)
"""Nothing that a maximum is taken of is less: neither `-LARGEST` nor the sum of two."""
