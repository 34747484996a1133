"""Two operands, element by element: in the memory of one of them, too."""

import numpy as np
import pytest

from buda_emu.arithmetic.kernels.tiles.binary import (
    ADD,
    MAXIMUM,
    MULTIPLY,
    SCALE_SHIFT,
    SHIFT_SCALE,
    SUBTRACT,
    binary_tiles,
)
from buda_emu.arithmetic.kernels.tiles.tile_memory import NO_RELU
from buda_emu.emulator.ops.operands import plain

pytestmark = pytest.mark.tiny


@pytest.mark.parametrize("code", [ADD, SUBTRACT, MULTIPLY, MAXIMUM, SCALE_SHIFT, SHIFT_SCALE])
def test_the_result_may_lie_where_the_first_operand_does(code):
    rng = np.random.default_rng(code)
    a, b = rng.standard_normal((2, 1, 3, 1024)).astype(np.float32)
    settings = plain(b), (code, np.float32(3)), (32, 32), (NO_RELU, np.float32(0))
    apart = np.empty_like(a)
    binary_tiles(0, 3, apart, plain(a), *settings)
    assert apart.tobytes() != a.tobytes()
    binary_tiles(0, 3, a, plain(a), *settings)
    assert a.tobytes() == apart.tobytes()
