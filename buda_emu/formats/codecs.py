"""The registry of codecs, and quantisation: what a value is after one trip through a format (FORMATS 3, 4, 5)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol

from buda_emu.errors import UnsupportedError
from buda_emu.formats import floats, integers
from buda_emu.formats.bits import F32, Codes
from buda_emu.formats.blocks import BlockFormat, Rounding
from buda_emu.spec.formats import BLOCK_DATUMS, FORMATS


class ScalarCodec(Protocol):
    """A format that stores every value by itself."""

    def encode(self, values: F32) -> Codes:
        """float32 to codes, same shape."""
        ...

    def decode(self, codes: Codes) -> F32:
        """Codes to float32, same shape."""
        ...


SCALAR_CODECS: Final[Mapping[str, ScalarCodec]] = MappingProxyType(
    {
        "Float32": floats.FLOAT32,
        "Tf32": floats.TF32,
        "Float16_b": floats.FLOAT16_B,
        "Float16": floats.FLOAT16,
        "Lf8": floats.LF8,
        "Fp8_e4m3": floats.FP8_E4M3,
        "Int8": integers.INT8,
        "UInt8": integers.UINT8,
        "UInt16": integers.UINT16,
        "Int32": integers.INT32,
        "RawUInt8": integers.RAW_UINT8,
        "RawUInt16": integers.RAW_UINT16,
        "RawUInt32": integers.RAW_UINT32,
    }
)
"""Codec of every format without a shared exponent."""

BLOCK_CODECS: Final[Mapping[str, BlockFormat]] = MappingProxyType(
    {
        name: BlockFormat(spec.mantissa_bits, narrow=spec.family == "a")
        for name, spec in FORMATS.items()
        if spec.kind == "block"
    }
)
"""Codec of every block format."""

PACKED_AS: Final[Mapping[str, str]] = MappingProxyType({"Fp8_e4m3": "Lf8"})
"""Formats whose tiles are written by the encoder of another one (FORMATS 3.6); reading uses their own decoder."""


def pack_codec(name: str) -> ScalarCodec:
    """The codec that writes the datums of a tile of a scalar format: its own, but for Fp8_e4m3."""
    return SCALAR_CODECS[PACKED_AS.get(name, name)]


def quantise(name: str, tiles: F32, rounding: Rounding = "nearest") -> F32:
    """What `tiles` become by being packed in a format and unpacked again (FORMATS 5.1).

    `tiles` is float32[..., 32, 32]; for a block format any shape whose last axis divides by 16, since 16 neighbours
    are one row of one face. Float32 gives the input's bits; RawUInt* keep the low bits of the pattern. `rounding`
    matters for block formats only: a host push rounds, a conversion inside a graph truncates (FORMATS 4). Raises
    UnsupportedError for an unknown format.
    """
    block = BLOCK_CODECS.get(name)
    if block is not None:
        groups = tiles.reshape(*tiles.shape[:-1], tiles.shape[-1] // BLOCK_DATUMS, BLOCK_DATUMS)
        return block.decode(*block.encode(groups, rounding)).reshape(tiles.shape)
    if name not in SCALAR_CODECS:
        raise UnsupportedError(f"unknown number format {name!r}")
    return SCALAR_CODECS[name].decode(pack_codec(name).encode(tiles))
