"""The operators that the twin computes (DARWINN_TWIN 4), one declaration each with its reference function."""

from buda_emu.foreign.darwinn.twin.operators import elementwise, products
from buda_emu.foreign.darwinn.twin.operators.base import OPERATORS, Call, TensorValue

FILES = (elementwise, products)

__all__ = ["OPERATORS", "Call", "TensorValue"]
