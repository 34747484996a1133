"""Which kernel unpacks which format: `unpack` over whole tiles, a range of them at a time."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import InternalError
from buda_emu.kernels.tensix.conversions.unpack import (
    TO_BF16,
    TO_FP16,
    TO_TF32,
    unpack_blocks,
    unpack_bytes,
    unpack_halves,
    unpack_singles,
)
from buda_emu.spec.formats import FORMATS, is_block
from buda_emu.tensix.conversions.unpack import unpack
from buda_emu.tensix.registers import IN_DST
from buda_emu.tensix.words import Core

Unpacker: TypeAlias = Callable[..., None]
"""Called with (start, stop, out, codes) and of block formats also the exponents: uint32[n, 1024], [n, 1024] in the type
that holds one datum, uint8[n, 64]. Items: the tiles."""

_SINGLES = {"Tf32": TO_TF32, "Float16_b": TO_BF16, "Float16": TO_FP16}


def unpacker(df: str, register: str, core: Core) -> Unpacker:
    """The kernel for tiles of the format `df`, for the same registers as `unpack`, but those that are in Dst.

    Raises UnsupportedError for pairs of formats that no op uses.
    """
    if register in IN_DST:
        raise InternalError(f"{df} is in Dst already: nothing is to be unpacked")
    spec = FORMATS[df]
    if is_block(df):
        unpack(np.zeros(16, np.uint8), df, register, core, np.zeros(1, np.uint8))
        return partial(_with, unpack_blocks, (spec.bits, 5 if spec.family == "a" else 8))
    if spec.bits == 8:
        table: NDArray[np.uint32] = unpack(np.arange(256, dtype=np.uint8), df, register, core)
        return partial(_with, unpack_bytes, (table,))
    unpack(np.zeros(1, np.uint32), df, register, core)
    if spec.bits == 16:
        return partial(_with, unpack_halves, (8 if register == "Float16_b" else 5,))
    return partial(_with, unpack_singles, (_SINGLES[register],))


def _with(kernel: Any, last: tuple[Any, ...], start: int, stop: int, out: Any, *codes: Any) -> None:
    kernel(start, stop, out, *codes, *last)
