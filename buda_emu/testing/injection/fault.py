"""The description of a fault: the value, the place in it, and the change there."""

import reprlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal, cast, get_args

from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.formats import FORMATS, is_block
from buda_emu.support.columns import Column, Columns
from buda_emu.support.records import dataclass

Kind = Literal["flip", "burst", "stuck", "core", "packet", "entry", "pointer", "format", "clock", "link"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
KIND_TEXTS: Final = {
    "flip": "bits of one datum, or of a shared exponent, change once",
    "burst": "32 neighbouring bytes of a tile, which a NoC or DRAM moves at once, become noise",
    "stuck": "a bit of everything that the packer of one core writes stays 0 or 1, from one input on",
    "core": "all tiles of one core of an op are zero, those of the input before, or noise, from one input on",
    "packet": "a tile, or 32 bytes of it, on its way to one op is lost (zeros), or a tile comes a second time in place "
    "of the next",
    "entry": "an entry of a queue is lost, comes a second time in a place of its own or in that of the next, or "
    "changes places with the next",
    "pointer": "a bit of a pointer of a queue or ram flips between two inputs",
    "format": "the format field of a queue is wrong: its bits are read as another format of the same width",
    "clock": "the chip's clock steps down, from one execute on",
    "link": "DRAM, NoC, Ethernet or the host link has less than its bandwidth all the time",
}
Place = Literal["dram", "l1", "operand", "dst", "sfpu", "packer"]
PLACES: Final[tuple[Place, ...]] = get_args(Place)
PLACE_TEXTS: Final = {
    "dram": "entries of queues and rams",
    "l1": "results of ops, in the buffers that the ops after them read",
    "operand": "the output of one op's unpacker, visible to that op alone",
    "dst": "Dst, as the packer reads it (precision device)",
    "sfpu": "the register that an instruction of the vector unit has written (precision device)",
    "packer": "the output of the packer, including sums on their way to L1 and back (precision device)",
}
INSIDE: Final[frozenset[Place]] = frozenset(("dst", "sfpu", "packer"))
"""Places inside an op, which only precision "device" has."""
FLIT_BYTES: Final = 32  # of the NoC (PERF 1.2)


@dataclass(frozen=True, slots=True)
class Fault:
    """A change that a campaign makes once: of a value, a pointer or entry of a queue, a format field, or the chip's
    speed. `number`: of the campaign; `place`: "" where no value is hit; `where`: the op or queue; `entry`: the position
    of its value among those of `where`, in the order of the run, or for a pointer fault the number of inputs that ran
    before; `tensor`: the op or queue whose value it is; `operand`: only the op `where` sees the fault, as this operand.
    `tile`: of the value, or inside of an op the position among the tiles that go through the unit; `datum`: of the
    tile, or the group of 16 whose exponent it is; `bits`: from the lowest; `core`: (row, column) in the op's grid;
    `step`: an instruction of the vector unit; `how`: the change in a word; `stratum`: the part that it was drawn from.
    -1, "" and () stand for parts that this kind of fault has not. `nodes` and `reader` are found from these: values of
    the trace that change, and the only reader that sees it."""

    number: int
    kind: Kind
    place: Place | Literal[""]
    where: str
    op_type: str
    df: str
    nodes: tuple[int, ...] = ()
    reader: int | None = None
    entry: int = -1
    tensor: str = ""
    operand: int = -1
    tile: int = -1
    datum: int = -1
    bits: tuple[int, ...] = ()
    exponent: bool = False
    core: tuple[int, int] | None = None
    step: int = -1
    how: str = ""
    stratum: str = ""

    @property
    def bit_name(self) -> str:
        """The field that the first bit lies in: "shared exponent", or as `field_of` names it; "" without bits or
        format."""
        if not self.bits:
            return ""
        if self.exponent:
            return "shared exponent"
        if self.df:
            return field_of(self.df, self.bits[0])
        return ""

    def as_json(self) -> dict[str, Any]:
        """Return plain data with all that a campaign of given faults needs."""
        return FAULT.as_json(self)

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "Fault":
        """Read a fault from the content that `as_json` wrote, or from a part of it that has "kind"; other keys are
        ignored. `nodes` and `reader` are not read. Raises ValueError that names a key whose value no fault has, or
        missing "kind"."""
        if "kind" not in content:
            raise ValueError("the key 'kind' is missing")
        values: dict[str, Any] = {name: value for name, value in content.items() if name in FIELDS}
        for name, value in values.items():
            FIELDS[name].require(name, value)
        values = {"number": 0, "place": "", "where": "", "op_type": "", "df": "", **values}
        values["bits"] = tuple(values.get("bits", ()))
        core = values.get("core")
        values["core"] = None if core is None else tuple(core)
        return Fault(**values)


@dataclass(frozen=True, slots=True)
class Field:
    """The values that a key of JSON may have: a test of a value, and words that name the legal ones in an error."""

    holds: Callable[[Any], bool]
    words: str

    def require(self, name: str, value: Any) -> None:
        """Raise ValueError, with the key's `name` and the legal values, if `value` is not legal for it; else do
        nothing."""
        if not self.holds(value):
            raise ValueError(f"{name} {reprlib.repr(value)} is not {self.words}")


FAULT: Final = Columns[Fault](
    Column("number", int, lambda fault: fault.number),
    Column("kind", str, lambda fault: fault.kind),
    Column("place", str, lambda fault: fault.place),
    Column("where", str, lambda fault: fault.where),
    Column("op_type", str, lambda fault: fault.op_type),
    Column("df", str, lambda fault: fault.df),
    Column("tensor", str, lambda fault: fault.tensor),
    Column("entry", int, lambda fault: fault.entry),
    Column("tile", int, lambda fault: fault.tile),
    Column("datum", int, lambda fault: fault.datum),
    Column("bits", list[int], lambda fault: fault.bits),
    Column("field", str, lambda fault: fault.bit_name),
    Column("exponent", bool, lambda fault: fault.exponent),
    Column("operand", int, lambda fault: fault.operand),
    Column("core", list[int] | None, lambda fault: fault.core),
    Column("step", int, lambda fault: fault.step),
    Column("how", str, lambda fault: fault.how),
    Column("stratum", str, lambda fault: fault.stratum),
)
"""The keys of a fault in JSON and in CSV."""


def number_from(minimum: int) -> Field:
    """Return the `Field` of a key whose values are integers from `minimum` to below 2**63."""
    return Field(lambda value: type(value) is int and minimum <= value < _MOST, f"a whole number from {minimum} on")


def words_of(words: Collection[str]) -> Field:
    """Return the `Field` of a key whose values are texts out of `words`; "" counts if it is among them."""
    return Field(lambda value: isinstance(value, str) and value in words, f"one of {', '.join(filter(None, words))}")


def _are_numbers(value: Any, limit: int) -> bool:
    """Return whether a value is a list or tuple of integers from 0 to below `limit`; an empty one is."""
    if isinstance(value, list | tuple):
        numbers = cast("Sequence[Any]", value)
    else:
        numbers = (None,)
    return all(type(number) is int and 0 <= number < limit for number in numbers)


_MOST: Final = 1 << 63  # numbers below it fit 64 bits with a sign
_WORD_BITS: Final = 64  # the most bits that a datum or a word has
TEXT: Final = Field(lambda value: isinstance(value, str), "text")
FLAG: Final = Field(lambda value: isinstance(value, bool), "true or false")
FIELDS: Final[Mapping[str, Field]] = {
    "number": number_from(0),
    "kind": words_of(KINDS),
    "place": words_of((*PLACES, "")),
    "where": TEXT,
    "op_type": TEXT,
    "df": words_of((*FORMATS, "")),
    "tensor": TEXT,
    "entry": number_from(-1),
    "operand": number_from(-1),
    "tile": number_from(-1),
    "datum": number_from(-1),
    "bits": Field(lambda value: _are_numbers(value, _WORD_BITS), "a list of numbers of bits, each from 0 to 63"),
    "exponent": FLAG,
    "core": Field(
        lambda value: value is None or (_are_numbers(value, _MOST) and len(value) == 2),
        "null, or [row, column] of a core",
    ),
    "step": number_from(-1),
    "how": TEXT,
    "stratum": TEXT,
}
"""The keys of a fault in JSON."""


def exponent_bits(df: str) -> int:
    """Return how many bits of a block format's shared exponent can be hit: 5 in family a, 8 in family b."""
    if FORMATS[df].family == "a":
        return 5
    return 8


def field_of(df: str, bit: int) -> str:
    """Return the field that bit number `bit` of a datum lies in: "sign", "exponent", "mantissa", "magnitude", or for
    raw and unsigned formats "bit N". The sign is the highest bit, then exponent, then mantissa (FORMATS 3, 4)."""
    spec = FORMATS[df]
    if spec.kind == "raw" or df.startswith("U"):
        return f"bit {bit}"
    if bit == spec.bits - 1:
        return "sign"
    if spec.kind == "float" and bit >= spec.mantissa_bits:
        return "exponent"
    if spec.kind != "int":
        return "mantissa"
    return "magnitude"


def bits_of_tile(df: str) -> int:
    """Return the number of bits of a tile that a flip may hit: its datums, and the exponents that they share."""
    return TILE_ELEMENTS * FORMATS[df].bits + (64 * exponent_bits(df) if is_block(df) else 0)


def bit_at(df: str, hit: int) -> tuple[int, int, bool]:
    """Return where bit number `hit` of a tile lies, as drawn from `bits_of_tile`: (datum, bit in it, False) or (group,
    bit of its shared exponent, True)."""
    datum_bits = TILE_ELEMENTS * FORMATS[df].bits
    if hit < datum_bits:
        return *divmod(hit, FORMATS[df].bits), False
    return *divmod(hit - datum_bits, exponent_bits(df)), True


def flit_of(df: str, datum: int) -> slice:
    """Return the slice of the datums that are in the same 32 bytes of a tile as a datum."""
    count = 8 * FLIT_BYTES // FORMATS[df].bits
    return slice(datum // count * count, datum // count * count + count)
