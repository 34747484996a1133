"""The operators that the twin computes (DARWINN_TWIN 4), one declaration each with its reference function."""

from buda_emu.foreign.darwinn.twin.operators import (
    arithmetic,
    convolution,
    dense,
    elementwise,
    recurrent,
    shape,
    softmax,
)
from buda_emu.foreign.darwinn.twin.operators.base import OPERATORS, Call, Value

FILES = (convolution, dense, elementwise, arithmetic, shape, softmax, recurrent)

__all__ = ["OPERATORS", "Call", "Value"]
