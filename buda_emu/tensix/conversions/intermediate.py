"""Which format the packer converts Dst to first, and the relu threshold in its bits (DEVICE_NUMERICS 4.1, 4.3)."""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal

import numpy as np

from buda_emu.errors import UnsupportedError
from buda_emu.formats.codecs import SCALAR_CODECS
from buda_emu.spec.formats import FORMATS, is_block, is_integer
from buda_emu.tensix.lanes import DstMode
from buda_emu.tensix.words import Core

Intermediate = Literal["Float32", "Tf32", "Float16_b", "Bfp8_b", "Float16", "Bfp8", "Int32", "Int8", "UInt8", "UInt16"]
"""Float32 and Tf32 are fp32 words, Float16_b and Float16 16-bit patterns, Bfp8_b and Bfp8 such with 6 bits of
fraction (E8M6, E5M6), integers are as stored."""

RAW_AS: Final[Mapping[str, str]] = MappingProxyType({"RawUInt32": "Float32", "RawUInt16": "Float16", "RawUInt8": "Lf8"})
"""What raw words move as (1.1)."""

_FROM_FP32: Final[Mapping[str, Intermediate]] = MappingProxyType(
    {
        "Float32": "Float32",
        "Tf32": "Float32",
        "Float16_b": "Float16_b",
        # Rounded to 10 bits before the range of the exponent is narrowed, on Wormhole and Blackhole alike.
        "Float16": "Tf32",
        "Lf8": "Tf32",
        "Fp8_e4m3": "Tf32",
    }
)


@lru_cache(maxsize=256)
def intermediate(
    mode: DstMode, out_df: str, integer_op: bool = False, core: Core = "wormhole_b0", from_single: bool = False
) -> Intermediate:
    """The packer's first format for a Dst mode and an output format.

    `integer_op`: the op computes on integers; then a Dst of 32 bits may also hold fp32 words, which dequantization
    leaves there. `from_single`: what is packed is the op's output, and its input 0 is a Float32: a Dst of 16 bits then
    goes into blocks of its family without a rounding to 6 bits before (10: 4.1). Raises UnsupportedError for a pair
    that the chip has no way for.
    """
    out = RAW_AS.get(out_df, out_df)
    family = FORMATS[out].family or "a"  # without a family of its own: Fp8_e4m3, packed from fp16
    if is_integer(out):
        if mode not in ("int32", "fp32"):
            raise UnsupportedError(f"Dst in {mode} packed as {out_df}: integers leave a 32-bit Dst only")
        return out  # pyright: ignore[reportReturnType] # the integer formats
    if mode == "int32" or (integer_op and mode == "fp32"):
        return "Float32"  # what dequantization left; narrower outputs are cut on the way out
    if mode == "fp32":
        return "Bfp8_b" if is_block(out) else _FROM_FP32[out]
    dst_family = "a" if mode == "fp16" else "b"
    if core == "grayskull" and family != dst_family and out not in ("Float32", "Float16", "Float16_b"):
        raise UnsupportedError(
            f"Dst in {mode} packed as {out_df}: grayskull changes the exponent of 16-bit outputs only"
        )
    if is_block(out) and not (from_single and family == dst_family):
        return "Bfp8" if dst_family == "a" else "Bfp8_b"
    return "Float16" if dst_family == "a" else "Float16_b"


@lru_cache(maxsize=256)
def relu_threshold(threshold: float, out_df: str, mode: DstMode, fused: bool = False) -> int:
    """What the relu compares with: 16 bits of Float16 for outputs of family A from a 16-bit Dst (4.3), in a fused op
    from any Dst (10: 6), else of bf16; both truncate. For integer outputs, inferred, the whole part as a number."""
    if is_integer(out_df):
        return int(min(threshold, 0x7FFFFFFF))
    narrow = FORMATS[RAW_AS.get(out_df, out_df)].family == "a" and (fused or mode != "fp32")
    codec = SCALAR_CODECS["Float16" if narrow else "Float16_b"]
    return int(codec.encode(np.array([threshold], dtype=np.float32))[0])
