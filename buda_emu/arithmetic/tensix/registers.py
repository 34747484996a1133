"""Register files: which formats an op's operands have in them, and their words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.kernels.tensix.words import MODES, Setting
from buda_emu.arithmetic.tensix.lanes import DstMode
from buda_emu.spec import single
from buda_emu.spec.formats import FORMATS, Family, is_integer, is_raw
from buda_emu.support.errors import UnsupportedError

I64 = NDArray[np.int64]

Core = Literal["grayskull", "wormhole_b0", "blackhole"]
"""Whose arithmetic it is. Grayskull's matrix unit is taken to be Wormhole's (DEVICE_NUMERICS 6.3)."""

CORES: Final[tuple[Core, ...]] = ("wormhole_b0", "blackhole", "grayskull")
"""In the order of what is known of them."""

_CORES: Final[Mapping[str, Core]] = MappingProxyType(
    {"grayskull": "grayskull", "wormhole": "wormhole_b0", "wormhole_b0": "wormhole_b0", "blackhole": "blackhole"}
)

SIGN: Final = np.uint32(single.SIGN)
SRC_BITS: Final = np.uint32(0xFFFFE000)
"""The 19 bits of a Src datum."""


def core_of(arch: str) -> Core:
    """Return whose arithmetic the cores of an architecture have, by its netlist word. Raises UnsupportedError where
    nothing is known of it."""
    if arch not in _CORES:
        raise UnsupportedError(f"the arithmetic of a core of {arch!r} is not known; known are {', '.join(_CORES)}")
    return _CORES[arch]


def sign_of(words: U32) -> I64:
    """Return the sign bits of register words, 0 or 1."""
    return (words >> np.uint32(31)).astype(np.int64)


def exponent_of(words: U32) -> I64:
    """Return the exponent field of register words, 0 to 255, of family A 0 to 31; 0 marks a zero (DEVICE_NUMERICS
    1.4)."""
    return (words >> np.uint32(23) & np.uint32(255)).astype(np.int64)


def significand_of(words: U32) -> I64:
    """Return leading one and fraction of Src words, 11 bits; a word with exponent 0 gets a leading one, too, though it
    counts as zero."""
    return (words >> np.uint32(13) & np.uint32(0x3FF) | np.uint32(0x400)).astype(np.int64)


def to_word(dst: U32, mode: DstMode) -> U32:
    """Return a Dst image as the 32-bit words that the matrix unit works on: bf16 moves up by 16 bits, of fp16 exponent
    and fraction by 13 and the sign to the top; 32-bit data are copied."""
    if mode == "bf16":
        return dst << np.uint32(16)
    if mode == "fp16":
        return (dst & np.uint32(0x8000)) << np.uint32(16) | (dst & np.uint32(0x7FFF)) << np.uint32(13)
    return dst.copy()


def to_image(words: U32, mode: DstMode) -> U32:
    """Return the Dst image of words of the matrix unit, the reverse of `to_word`: bits that Dst does not hold are
    cut."""
    if mode == "bf16":
        return words >> np.uint32(16)
    if mode == "fp16":
        return words >> np.uint32(16) & np.uint32(0x8000) | words >> np.uint32(13) & np.uint32(0x7FFF)
    return words.copy()


def require_pairing(family: Family, mode: DstMode) -> None:
    """Raise UnsupportedError where operands of a family would accumulate in a 16-bit Dst of the other family: no op is
    set up so (DEVICE_NUMERICS 1.1)."""
    if (family, mode) not in {("b", "bf16"), ("b", "fp32"), ("a", "fp16"), ("a", "fp32")}:
        raise UnsupportedError(f"operands of family {family} do not accumulate in a Dst of {mode}")


def kernel_setting(family: Family, mode: DstMode, core: Core) -> Setting:
    """Return family, mode and core as the record of numbers that the kernels of the matrix unit take. Raises
    UnsupportedError for a 16-bit Dst of the other family."""
    require_pairing(family, mode)
    exponent_bits = 5 if family == "a" else 8
    return Setting(MODES[mode], exponent_bits, core == "blackhole")


REGISTERS: Final[Mapping[str, Family | None]] = MappingProxyType(
    {
        "Tf32": "b",
        "Float16_b": "b",
        "Bfp8_b": "b",  # bf16 whose lowest bit is 0
        "Float16": "a",
        "Bfp8": "a",  # fp16 whose low 4 bits are 0
        "Lf8": "a",  # fp16 whose low 8 bits are 0
        "Int8": None,  # sign and magnitude under a dummy exponent
        "UInt8": None,
        "Int32": None,  # this and the next two go straight into Dst, not through SrcA
        "UInt16": None,
        "Float32": None,
    }
)
"""Register formats and the family as which the matrix unit takes them; None: not as floats."""

IN_DST: Final = frozenset({"Int32", "UInt16", "Float32"})
"""Register formats that are unpacked into Dst itself."""

# L1 formats that have one register format in every op.
_FIXED: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("Bfp8_b", "Bfp4_b", "Bfp2_b"), "Bfp8_b"),
        **dict.fromkeys(("Bfp8", "Bfp4", "Bfp2"), "Bfp8"),
        **dict.fromkeys(("Lf8", "Fp8_e4m3"), "Lf8"),
        "Float16": "Float16",
        "Float16_b": "Float16_b",
        "Int8": "Int8",
        "UInt8": "UInt8",
        "Int32": "Int32",
        "UInt16": "UInt16",
        "RawUInt32": "Float32",
        "RawUInt16": "Float16",
        "RawUInt8": "Lf8",
    }
)


@dataclass(frozen=True, slots=True)
class OpRegisters:
    """The formats that an op's operands have in registers: one for each input, that of the intermediate buffer when it
    is read back, and what Dst holds."""

    inputs: tuple[str, ...]
    intermediate: str
    dst: DstMode

    @property
    def integer(self) -> bool:
        """True where the op computes with integers."""
        return self.dst == "int32"


def op_registers(in_dfs: Sequence[str], out_df: str, intermed_df: str, acc_df: str, core: Core) -> OpRegisters:
    """Return the register formats of an op with inputs, output, intermediates and accumulation in these formats, by
    their netlist words (DEVICE_NUMERICS 1.1). Raises UnsupportedError for families mixed among the inputs, for a 32-bit
    Dst on Grayskull, and for Fp8_e4m3 on other cores than Blackhole."""
    return _op_registers(tuple(in_dfs), out_df, intermed_df, acc_df, core)


@lru_cache(maxsize=256)
def _op_registers(in_dfs: tuple[str, ...], out_df: str, intermed_df: str, acc_df: str, core: Core) -> OpRegisters:
    """Return the registers that `op_registers` returns, computed once for equal formats and core."""
    if core != "blackhole" and "Fp8_e4m3" in (*in_dfs, out_df, intermed_df):
        raise UnsupportedError(f"Fp8_e4m3 is a format of blackhole, which {core} does not have (FORMATS 6.5)")
    integer = acc_df == "Int32" or any(is_integer(df) for df in in_dfs)
    wide = acc_df == "Float32" or integer
    if core == "grayskull" and wide:
        raise UnsupportedError(f"Grayskull has no 32-bit Dst: acc_df {acc_df}, inputs {', '.join(in_dfs)}")
    if not integer:
        return _float_registers(in_dfs, out_df, intermed_df, wide)
    # Operands stay what they are; 32-bit ones, floats too, go into Dst as they are.
    inputs = tuple(_FIXED.get(df, df) for df in in_dfs)
    return OpRegisters(inputs, _FIXED.get(intermed_df, intermed_df), "int32")


def _float_registers(in_dfs: tuple[str, ...], out_df: str, intermed_df: str, wide: bool) -> OpRegisters:
    """Return the registers of an op of floats; `wide`: its Dst has 32 bits. A Float32 operand becomes Tf32 with such a
    Dst where some inputs are of family B or all are Float32, else a 16-bit float of the op's family. Raises
    UnsupportedError for families mixed among the inputs."""
    family = _op_family(in_dfs, out_df, intermed_df)
    single = "Float16_b"
    if family == "a":
        single = "Float16"
    if wide and ("b" in _families(in_dfs) or all(df == "Float32" for df in in_dfs)):
        single = "Tf32"
    dst: DstMode = "bf16"
    if wide:
        dst = "fp32"
    elif family == "a":
        dst = "fp16"
    inputs = tuple(_FIXED.get(df, single) for df in in_dfs)
    return OpRegisters(inputs, _FIXED.get(intermed_df, single), dst)


def _op_family(in_dfs: tuple[str, ...], out_df: str, intermed_df: str) -> Family:
    """Return the family of exponents that an op of floats computes with: that of its inputs, else of the intermediate
    format, else of the output. Raises UnsupportedError for inputs of both families."""
    families = _families(in_dfs)
    if len(families) > 1:
        raise UnsupportedError(f"inputs {', '.join(in_dfs)} mix the two families of exponents")
    family = next(iter(families or _families((intermed_df,))), None)
    if family is not None:
        return family
    if out_df == "Float32" or _family(out_df) == "a":
        return "a"
    return "b"


def _families(dfs: Sequence[str]) -> frozenset[Family]:
    """Return the families of exponents of the formats, without those that have none: Float32, raw words and
    integers."""
    families = map(_family, dfs)
    return frozenset(family for family in families if family is not None)


def _family(df: str) -> Family | None:
    """Return the family of exponents of a format, None for Float32, raw words and integers. Fp8_e4m3 is unpacked as
    family A."""
    if df == "Float32" or is_raw(df):
        return None
    if df == "Fp8_e4m3":
        return "a"
    return FORMATS[df].family
