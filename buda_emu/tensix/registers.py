"""Which formats an op's operands have in the registers, and what its Dst holds (DEVICE_NUMERICS 1.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from buda_emu.errors import UnsupportedError
from buda_emu.spec.formats import FORMATS, Family, is_integer, is_raw
from buda_emu.tensix.lanes import DstMode
from buda_emu.tensix.words import Core

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
    """Register formats of an op: one for each input, that of the intermediate buffer read back, and what Dst holds."""

    inputs: tuple[str, ...]
    intermediate: str
    dst: DstMode

    @property
    def integer(self) -> bool:
        """Whether the op computes with integers."""
        return self.dst == "int32"


def op_registers(in_dfs: Sequence[str], out_df: str, intermed_df: str, acc_df: str, core: Core) -> OpRegisters:
    """The registers of an op with these formats, by their netlist words.

    Raises UnsupportedError for families mixed among the inputs, for a 32-bit Dst on Grayskull, and for Fp8_e4m3 on
    other cores than Blackhole.
    """
    return _op_registers(tuple(in_dfs), out_df, intermed_df, acc_df, core)


@lru_cache(maxsize=256)
def _op_registers(in_dfs: tuple[str, ...], out_df: str, intermed_df: str, acc_df: str, core: Core) -> OpRegisters:
    if core != "blackhole" and "Fp8_e4m3" in (*in_dfs, out_df, intermed_df):
        raise UnsupportedError(f"Fp8_e4m3 is a format of blackhole, which {core} does not have (FORMATS 6.5)")
    integer = acc_df == "Int32" or any(is_integer(df) for df in in_dfs)
    wide = acc_df == "Float32" and not integer
    if core == "grayskull" and (integer or wide):
        raise UnsupportedError(f"Grayskull has no 32-bit Dst: acc_df {acc_df}, inputs {', '.join(in_dfs)}")
    if integer:
        # Operands stay what they are; 32-bit ones, floats too, go into Dst as they are.
        inputs = tuple(_FIXED.get(df, df) for df in in_dfs)
        return OpRegisters(inputs, _FIXED.get(intermed_df, intermed_df), "int32")
    families = _families(in_dfs)
    if len(families) > 1:
        raise UnsupportedError(f"inputs {', '.join(in_dfs)} mix the two families of exponents")
    family = next(iter(families or _families((intermed_df,))), None)
    if family is None:
        family = "a" if out_df == "Float32" or _family(out_df) == "a" else "b"
    all_single = all(df == "Float32" for df in in_dfs)
    if wide and (all_single or "b" in families):
        single = "Tf32"
    else:
        single = "Float16" if family == "a" else "Float16_b"
    dst: DstMode = "fp32" if wide else "fp16" if family == "a" else "bf16"
    inputs = tuple(_FIXED.get(df, single) for df in in_dfs)
    return OpRegisters(inputs, _FIXED.get(intermed_df, single), dst)


def _families(dfs: Sequence[str]) -> frozenset[Family]:
    """Those of formats that are neither Float32 nor raw nor integer."""
    return frozenset(family for df in dfs if (family := _family(df)) is not None)


def _family(df: str) -> Family | None:
    if df == "Float32" or is_raw(df):
        return None
    return "a" if df == "Fp8_e4m3" else FORMATS[df].family
