"""The operators that the twin computes (DARWINN_TWIN 4), one declaration each with its reference function."""

from buda_emu.foreign.darwinn.twin.operators import elementwise
from buda_emu.foreign.darwinn.twin.operators import elementwise as arithmetic
from buda_emu.foreign.darwinn.twin.operators import elementwise as shape
from buda_emu.foreign.darwinn.twin.operators import elementwise as softmax
from buda_emu.foreign.darwinn.twin.operators import products as convolution
from buda_emu.foreign.darwinn.twin.operators import products as dense
from buda_emu.foreign.darwinn.twin.operators import products as recurrent
from buda_emu.foreign.darwinn.twin.operators.base import OPERATORS, Call, Value

FILES = (convolution, dense, elementwise, arithmetic, shape, softmax, recurrent)

__all__ = ["OPERATORS", "Call", "Value"]
