"""Moving data between Src registers and Dst (DEVICE_NUMERICS 2.7)."""

import numpy as np

from buda_emu.errors import UnsupportedError
from buda_emu.formats.bits import U32
from buda_emu.spec.formats import Family
from buda_emu.tensix.elementwise.eltwise import elwadd
from buda_emu.tensix.lanes import DstMode
from buda_emu.tensix.words import SRC_BITS, Core, exponent_of, to_image, to_word


def move_to_dst(srca: U32, mode: DstMode) -> U32:
    """The Dst image of SrcA moved: zeros lose their sign; an fp32 Dst takes the 19 bits as they are."""
    return to_image(np.where(exponent_of(srca) == 0, np.uint32(0), srca & SRC_BITS), mode)


def copy_to_dst(srca: U32, family: Family, mode: DstMode, core: Core) -> U32:
    """The Dst image that an op starts from when it copies a float operand: into fp32 the kernels add zero instead."""
    if mode == "fp32":
        return elwadd(None, srca, np.zeros_like(srca), family, mode, core)
    return move_to_dst(srca, mode)


def move_to_src(dst: U32, mode: DstMode, register: str) -> U32:
    """Words of SrcA or SrcB of a Dst image that is used as an operand: 32 bits are truncated to the register's."""
    if mode in ("bf16", "fp16"):
        return to_word(dst, mode)
    if register == "Tf32":
        return dst & SRC_BITS
    if register in ("Float16_b", "Bfp8_b"):
        return dst & np.uint32(0xFFFF0000)
    # 2.8: the other formats are rounded into a 16-bit Dst by the vector unit first.
    raise UnsupportedError(f"a Dst of {mode} is not moved to a register of {register}")
