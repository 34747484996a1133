"""The number formats of a netlist in one table, and the size of a tile in each (FORMATS 1, 2; NETLIST 1.9).

The module has no third-party imports. `buda_emu.arithmetic.formats` encodes values.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, Literal

from buda_emu.support.records import dataclass

Kind = Literal["float", "block", "int", "raw"]
Family = Literal["a", "b"]
HostElement = Literal["f32", "i8", "u8", "i32", "u16"]

TILE_HEADER_BYTES: Final = 16
"""Four little-endian words before the datums; word 0 is the tile's size in units of 16 bytes (FORMATS 2)."""

BLOCK_DATUMS: Final = 16
"""Datums that share one exponent byte in a block format: one row of one face (FORMATS 4)."""

INVALID_ID: Final = 255
"""Numeric id of the word `Invalid` in the host API's enum (NETLIST 1.9)."""


@dataclass(frozen=True, slots=True)
class FormatSpec:
    """The properties of one format.

    `bits` is the datum's size in a tile without its share of an exponent byte. `family` is the width of the
    exponent: "a" has 5 bits, "b" has 8, None is neither (integers, raw words, the 4-bit exponent of Fp8_e4m3); the
    data-format rules of the parser have lists of their own (NETLIST 2). `mantissa_bits` are the stored fraction bits
    of a float, the magnitude bits of a block format (leading one included) or of an integer, and all bits of a raw
    word. `host_element` is the type of an element in a tensor that the host reads (FORMATS 3.11).
    """

    name: str
    id: int
    bits: int
    kind: Kind
    family: Family | None
    mantissa_bits: int
    bias: int | None
    host_element: HostElement
    doc: str
    netlist_legal: bool = True

    @property
    def flat_bytes(self) -> int | None:
        """Return the bytes of one element outside of tiles (flat layout, untilized output), or None for a format
        without such a form."""
        if self.kind == "block" or self.name in ("Lf8", "Fp8_e4m3"):
            return None
        return self.bits // 8


# fmt: off
_TABLE: Final[tuple[FormatSpec, ...]] = (
    FormatSpec("Float32", 0, 32, "float", "b", 23, 127, "f32", "IEEE single precision"),
    FormatSpec("Float16", 1, 16, "float", "a", 10, 15, "u16", "half without infinities; exponent 31 is ordinary"),
    FormatSpec("Bfp8", 2, 8, "block", "a", 7, 15, "u16", "sign and 7-bit magnitude, 5-bit exponent per 16 datums"),
    FormatSpec("Bfp4", 3, 4, "block", "a", 3, 15, "u16", "sign and 3-bit magnitude, 5-bit exponent per 16 datums"),
    FormatSpec("Tf32", 4, 32, "float", "b", 10, 127, "u16", "single with a 10-bit fraction; inside a core only", False),
    FormatSpec("Float16_b", 5, 16, "float", "b", 7, 127, "u16", "bfloat16: the upper half of a single"),
    FormatSpec("Bfp8_b", 6, 8, "block", "b", 7, 127, "u16", "sign and 7-bit magnitude, 8-bit exponent per 16 datums"),
    FormatSpec("Bfp4_b", 7, 4, "block", "b", 3, 127, "u16", "sign and 3-bit magnitude, 8-bit exponent per 16 datums"),
    FormatSpec("Int32", 8, 32, "int", None, 31, None, "i32", "sign and 31-bit magnitude"),
    FormatSpec("UInt16", 9, 16, "int", None, 16, None, "u16", "unsigned, 0 to 65535"),
    FormatSpec("Lf8", 10, 8, "float", "a", 2, 15, "u16", "5-bit exponent, 2-bit fraction, no infinities"),
    FormatSpec("Bfp2", 11, 2, "block", "a", 1, 15, "u16", "sign and 1-bit magnitude, 5-bit exponent per 16 datums"),
    FormatSpec("Int8", 14, 8, "int", None, 7, None, "i8", "sign and 7-bit magnitude, -127 to 127"),
    FormatSpec("Bfp2_b", 15, 2, "block", "b", 1, 127, "u16", "sign and 1-bit magnitude, 8-bit exponent per 16 datums"),
    FormatSpec("Fp8_e4m3", 26, 8, "float", None, 3, 7, "u16", "4-bit exponent, 3-bit fraction; packed as Lf8"),
    FormatSpec("UInt8", 30, 8, "int", None, 8, None, "u8", "unsigned, 0 to 255"),
    FormatSpec("RawUInt8", 240, 8, "raw", None, 8, None, "u16", "opaque low 8 bits of a word"),
    FormatSpec("RawUInt16", 241, 16, "raw", None, 16, None, "u16", "opaque low 16 bits of a word"),
    FormatSpec("RawUInt32", 242, 32, "raw", None, 32, None, "f32", "opaque 32-bit words"),
)
# fmt: on

FORMATS: Final[Mapping[str, FormatSpec]] = MappingProxyType({spec.name: spec for spec in _TABLE})
"""Every format by its netlist word, in order of the numeric id."""

NETLIST_FORMATS: Final[tuple[str, ...]] = tuple(spec.name for spec in _TABLE if spec.netlist_legal)
"""The words that a netlist may use (NETLIST 1.9)."""


def is_integer(name: str) -> bool:
    """Return whether the values of a format are integers: Int8, UInt8, UInt16, Int32. Raises KeyError for an unknown
    format."""
    return FORMATS[name].kind == "int"


def is_raw(name: str) -> bool:
    """Return whether the datums of a format are opaque bits (RawUInt*), kept in the bit pattern of a float and never
    converted. Raises KeyError for an unknown format."""
    return FORMATS[name].kind == "raw"


def is_block(name: str) -> bool:
    """Return whether 16 datums of a format share one exponent byte (Bfp*). Raises KeyError for an unknown format."""
    return FORMATS[name].kind == "block"


def exponent_bytes(name: str, height: int, width: int) -> int:
    """Return the bytes of a tile's exponent section: 0 except for block formats, 16 for a tile lower than 16 rows
    (FORMATS 2)."""
    if not is_block(name):
        return 0
    if height < 16:
        return 16
    return -(-height // 16) * 16 * -(-width // 16)


@cache
def tile_bytes(name: str, height: int, width: int, alignment: int, header: bool) -> int:
    """Return the bytes of one tile in memory (FORMATS 2, NETLIST 1.9).

    With a header these are 16 bytes more, rounded up to `alignment` (32, blackhole 64). Without, neither header nor
    rounding is added.
    """
    payload = height * width * FORMATS[name].bits // 8 + exponent_bytes(name, height, width)
    if not header:
        return payload
    return -(-(payload + TILE_HEADER_BYTES) // alignment) * alignment
