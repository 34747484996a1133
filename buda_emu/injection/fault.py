"""What a fault is: which value, where in it, and what happens to it there."""

from typing import Any, Final, Literal, get_args

from buda_emu.records import dataclass
from buda_emu.spec.formats import FORMATS, is_block

Kind = Literal["flip", "stuck", "core", "packet", "entry", "format"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
KIND_TEXTS: Final = {
    "flip": "bits of one datum, or of a shared exponent, change once",
    "stuck": "a bit of everything that the packer of one core writes stays 0 or 1, from one input on",
    "core": "all tiles of one core of an op are zero, those of the input before, or noise, from one input on",
    "packet": "a tile on its way to one op is lost (zeros) or comes a second time in place of the next",
    "entry": "a queue gives an entry a second time, or two in the wrong order",
    "format": "the format field of a queue is wrong: its bits are read as another format of the same width",
}
Place = Literal["dram", "l1", "operand"]
PLACES: Final[tuple[Place, ...]] = get_args(Place)
PLACE_TEXTS: Final = {
    "dram": "entries of queues and rams",
    "l1": "results of ops, in the buffers that the ops after them read",
    "operand": "what the unpacker of one op gives, seen by that op alone",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `number`: of a campaign; `where`: the op or queue; `nodes`: values of the trace that change; `reader`
    and `operand`: the op that alone sees it, and as which operand. `tile`: of the value; `datum`: of the tile, or the
    group of 16 whose exponent it is; `bits`: from the lowest; `core`: (row, column) in the op's grid; `how`: what
    happens, in a word."""

    number: int
    kind: Kind
    place: Place
    where: str
    op_type: str
    df: str
    nodes: tuple[int, ...]
    reader: int | None = None
    operand: int = -1
    tile: int = -1
    datum: int = -1
    bits: tuple[int, ...] = ()
    exponent: bool = False
    core: tuple[int, int] | None = None
    how: str = ""

    @property
    def bit_name(self) -> str:
        """Of the first bit: sign, exponent, mantissa, shared exponent, or its number."""
        if not self.bits:
            return ""
        return "shared exponent" if self.exponent else field_of(self.df, self.bits[0])

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "number": self.number, "kind": self.kind, "place": self.place, "where": self.where,
            "op_type": self.op_type, "df": self.df, "tile": self.tile, "datum": self.datum, "bits": list(self.bits),
            "field": self.bit_name, "exponent": self.exponent, "operand": self.operand,
            "core": None if self.core is None else list(self.core), "how": self.how,
        }  # fmt: skip


def exponent_bits(df: str) -> int:
    """Bits of a shared exponent that say something."""
    return 5 if FORMATS[df].family == "a" else 8


def field_of(df: str, bit: int) -> str:
    """What a bit of a datum is: the sign is the highest, then exponent, then mantissa (FORMATS 3, 4)."""
    spec = FORMATS[df]
    if spec.kind == "raw" or df.startswith("U"):
        return f"bit {bit}"
    if bit == spec.bits - 1:
        return "sign"
    if spec.kind == "float" and bit >= spec.mantissa_bits:
        return "exponent"
    return "mantissa" if spec.kind != "int" else "magnitude"


def bits_of_tile(df: str) -> int:
    """Bits of a tile that a flip may hit: its datums, and the exponents that they share."""
    return 1024 * FORMATS[df].bits + (64 * exponent_bits(df) if is_block(df) else 0)
