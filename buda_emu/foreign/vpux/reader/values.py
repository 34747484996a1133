"""Read attributes and types (VPUX 3)."""

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from buda_emu.foreign.vpux.layout import MOST_DIMS, DimsOrder
from buda_emu.foreign.vpux.model import DYNAMIC, AffineMap, Attribute, Dense, Opaque, Symbol, Type
from buda_emu.foreign.vpux.reader.scanner import SYMBOL, ReadError, Scanner
from buda_emu.support.errors import HostError

MOST_ELEMENTS: Final = 1 << 48
"""A shape of more is refused: no memory holds it."""

ALIAS = re.compile(r"[#!][A-Za-z_][\w$-]*(?![\w$.<-])")
_DIALECT = re.compile(r"[#!][A-Za-z_][\w$.-]*")
_NUMBER = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+\.\d*(?:[eE][-+]?\d+)?|\d+(?:[eE][-+]?\d+)?)(?![\w.])")
_WORD = re.compile(r"[A-Za-z_][\w$.]*")
_DIMS = re.compile(r"(?:(?:\d+|\?)x)*")
_ELEMENT = re.compile(r"[a-z][A-Za-z0-9]*")
_LAYOUT_FIELDS: Final = ("order", "strides")
_SCALAR = re.compile(r"[a-z][A-Za-z0-9]*\Z")


class ValueReader:
    """Reads attributes and types at a scanner's position, with the aliases that the split has defined so far."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._attributes: dict[str, Attribute] = {}
        self._types: dict[str, Type] = {}
        self._seen: dict[str, Type] = {}

    def define(self, name: str) -> None:
        """Read the attribute or type that an alias, `#name =` or `!name =`, stands for."""
        if name[0] == "#":
            if self._scanner.word("loc"):  # a place in some other source
                self._scanner.skip_brackets()
                return
            self._attributes[name] = self.attribute()
        else:
            self._types[name] = self.type()
            self._seen.clear()

    # ---------------------------------------------------------------------------------------------- attributes
    def attribute(self) -> Attribute:
        """Read an attribute; a type behind it is skipped. Raises ReadError."""
        with self._scanner.nest():
            return self._read_attribute()

    def _read_attribute(self) -> Attribute:
        """Read an attribute of any kind; its first character tells the kind."""
        scanner = self._scanner
        scanner.space()
        first = scanner.text[scanner.at : scanner.at + 1]
        if first == '"':
            text = scanner.string()
            if text is None:
                raise scanner.fail("a string is not closed")
            self._skip_type()
            return text
        if first == "[":
            return self._read_list("[", "]")
        if first == "{":
            return self.dictionary()
        if first == "@":
            return self.symbol()
        if first == "#":
            return self._read_dialect_attribute()
        if first == "<":
            return Opaque("", scanner.skip_angle())
        number = scanner.match(_NUMBER)
        if number is not None:
            return self._read_number(number)
        return self._read_word()

    def _read_word(self) -> Attribute:
        """Read an attribute that begins with a word: a boolean, a map, an array, a constant's content, a word
        alone, or a type."""
        scanner = self._scanner
        start = scanner.at
        for word, value in (("true", True), ("false", False), ("unit", True)):
            if scanner.word(word):
                return value
        if scanner.word("affine_map"):
            return _read_affine_map(f"affine_map<{scanner.skip_angle()}>")
        if scanner.word("array"):
            return self._read_array()
        for word in ("dense", "dense_resource", "ref"):
            if scanner.word(word):
                text = scanner.skip_angle()
                return Dense(word, text.strip(), self.type() if scanner.take(":") else None)
        if scanner.match(_WORD) is not None and not scanner.sees("<"):
            word = scanner.text[start : scanner.at].strip()
            if not _SCALAR.match(word) or Type("other", word, word).element is None:
                return Opaque(word, word)
        scanner.at = start
        return self.type()

    def _read_array(self) -> Attribute:
        """Read what follows the word `array`: `<i32: 1, 2>`, or `<i32>` for no elements."""
        scanner = self._scanner
        scanner.expect("<")
        scanner.need(_WORD, "a type")
        if scanner.sees(":"):
            return self._read_list(":", ">")
        scanner.expect(">")
        return ()

    def dictionary(self) -> Mapping[str, Attribute]:
        """Read `{k = v, k : v, unit}`. Raises ReadError."""
        scanner = self._scanner
        scanner.expect("{")
        attributes = self.entries("}")
        scanner.expect("}")
        return attributes

    def entries(self, stop: str) -> Mapping[str, Attribute]:
        """Read the entries of a dictionary up to the bracket `stop`, which stays."""
        scanner = self._scanner
        attributes: dict[str, Attribute] = {}
        while not scanner.sees(stop):
            if scanner.sees('"'):
                key = scanner.string()
            else:
                key = scanner.need(_WORD, "the name of an attribute")
            if key is None:
                raise scanner.fail("a string is not closed")
            if scanner.take("=") or scanner.take(":"):
                attributes[key] = self.attribute()
            else:
                attributes[key] = True
            if not scanner.take(","):
                break
        return MappingProxyType(attributes)

    def symbol(self) -> Symbol:
        """Read `@a::@b`. The design documents' `@a.b.c` stays one name here. Raises ReadError."""
        text = self._scanner.need(SYMBOL, "a name that begins with '@'")
        return Symbol(tuple(part.strip('"') for part in re.findall(r'@("[^"]*"|[\w$.-]+)', text)))

    def integers(self) -> tuple[int, ...]:
        """Read `[1, 2]`. Raises ReadError for anything but integers."""
        attributes = self._read_list("[", "]")
        if any(not isinstance(attribute, int) or isinstance(attribute, bool) for attribute in attributes):
            raise self._scanner.fail("expected a list of integers")
        return tuple(attribute for attribute in attributes if isinstance(attribute, int))

    def _read_list(self, start: str, stop: str) -> tuple[Attribute, ...]:
        """Read attributes separated by commas, from the text `start` to the text `stop`, which are skipped, too."""
        scanner = self._scanner
        scanner.expect(start)
        attributes: list[Attribute] = []
        while not scanner.sees(stop):
            attributes.append(self.attribute())
            if not scanner.take(","):
                break
        scanner.expect(stop)
        return tuple(attributes)

    def _read_number(self, text: str) -> int | float:
        """Convert a number, whose type may follow after a colon and decides how it is read."""
        of = self._skip_type()
        digits = text.lstrip("-")
        if of == "i1":
            return text not in ("0", "0x0")
        if digits.startswith("0x"):
            value = int(text, 16)
            if of.startswith(("f", "bf")):
                return _decode_float(value, of)
            return value
        if digits.isdecimal() and not of.startswith(("f", "bf")):
            if len(digits) > 40:
                raise self._scanner.fail("an integer of more than 40 digits")
            return int(text)
        return float(text)

    def _skip_type(self) -> str:
        """Skip a type after a colon and return its text, "" where there is none."""
        if self._scanner.take(":"):
            return self.type().text
        return ""

    def _read_dialect_attribute(self) -> Attribute:
        """Read an alias or an attribute of a dialect, `#name<..>`, with its fields where the text has any. Raises
        ReadError for an alias that is not defined."""
        scanner = self._scanner
        alias = scanner.match(ALIAS)
        if alias is not None:
            if alias not in self._attributes:
                raise scanner.fail(f"{alias} is not defined", scanner.at - len(alias))
            return self._attributes[alias]
        name = scanner.need(_DIALECT, "an attribute")
        if not scanner.sees("<"):
            return Opaque(name[1:], name)
        start = scanner.at + 1
        text = scanner.skip_angle()
        self._skip_type()
        stop = scanner.at
        fields: Mapping[str, Attribute] = MappingProxyType({})
        if "=" in text:
            scanner.at = start
            try:
                fields = self.entries(">")
            except ReadError:  # parameters of a form of their own
                fields = MappingProxyType({})
            scanner.at = stop
        return Opaque(name[1:], f"{name}<{text}>", fields)

    # --------------------------------------------------------------------------------------------------- types
    def types(self) -> tuple[Type, ...]:
        """Read one type, several with commas, or several in parentheses. Raises ReadError."""
        scanner = self._scanner
        if not scanner.take("("):
            types = [self.type()]
            while scanner.take(","):
                types.append(self.type())
            return tuple(types)
        types: list[Type] = []
        while not scanner.sees(")"):
            types.append(self.type())
            if scanner.sees("{"):
                scanner.skip_brackets()  # attributes of a function's result
            scanner.location()
            if not scanner.take(","):
                break
        scanner.expect(")")
        return tuple(types)

    def type(self) -> Type:
        """Read one type. Raises ReadError."""
        with self._scanner.nest():
            return self._read_type()

    def _read_type(self) -> Type:
        """Read a type: an alias, a function's, or a name with or without parameters. Types of the same text are
        read once."""
        scanner = self._scanner
        scanner.space()
        start = scanner.at
        alias = scanner.match(ALIAS)
        if alias is not None:
            if alias not in self._types:
                raise scanner.fail(f"{alias} is not defined", start)
            return self._types[alias]
        if scanner.sees("("):  # of a function
            scanner.skip_brackets()
            scanner.expect("->")
            self.types()
            return Type("other", "function", scanner.text[start : scanner.at])
        name = scanner.match(_DIALECT) or scanner.need(_WORD, "a type")
        if not scanner.sees("<"):
            return self._plain_type(name)
        inside = scanner.at + 1
        scanner.skip_angle()
        stop = scanner.at
        text = scanner.text[start:stop]
        parsed = self._seen.get(text)
        if parsed is None:
            scanner.at = inside
            parsed = self._read_parametric_type(name, text, stop - 1)
            self._seen[text] = parsed
        scanner.at = stop
        return parsed

    def _plain_type(self, name: str) -> Type:
        """Return the type of a name without parameters."""
        if name == "!VPURT.Barrier":
            return Type("barrier", "VPURT.Barrier", name)
        return Type("other", name.lstrip("!"), name)

    def _read_parametric_type(self, name: str, text: str, stop: int) -> Type:
        """Read the parameters, which end at `stop`, of a type with that name; `text` is the type as it is written."""
        scanner = self._scanner
        if name in ("memref", "tensor", "!VPUIP.DistributedBuffer"):
            parsed = self._read_shaped_type(
                {"!VPUIP.DistributedBuffer": "distributed"}.get(name, name), name.lstrip("!"), text
            )
        elif name == "!VPUIP.BoundedBuffer":
            parts: list[Type] = []
            while not scanner.sees(">"):
                scanner.need(_WORD, "data or dynamic_shape")
                scanner.expect("=")
                parts.append(self.type())
                if not scanner.take(","):
                    break
            parsed = Type("bounded", name[1:], text, parts=tuple(parts))
        else:
            return Type("other", name.lstrip("!"), text)
        scanner.space()
        if scanner.at != stop:
            raise scanner.fail(f"expected '>', found {scanner.describe_next()}")
        return parsed

    def _read_shaped_type(self, kind: str, name: str, text: str) -> Type:
        """Read the parameters of a memref, a tensor or a distributed buffer: shape, elements, layout and memory
        space. `text` is the type as it is written."""
        scanner = self._scanner
        shape = self._read_shape()
        layout = _Layout()
        if shape is not None and len(shape) <= MOST_DIMS:
            layout.order = DimsOrder.identity(len(shape))
        element = self._read_element_name()
        while scanner.take(","):
            if scanner.sees(">"):  # a design document writes memref<*xf16,>
                break
            layout.add(scanner, self.attribute())
        return Type(
            kind=kind,
            name=name,
            text=text,
            shape=shape,
            element_name=element,
            order=layout.order,
            strides=layout.strides,
            space=layout.space,
            space_index=layout.index,
            traits=MappingProxyType(layout.traits),
        )

    def _read_shape(self) -> tuple[int, ...] | None:
        """Read `1x?x`; return None for the unranked `*x`."""
        scanner = self._scanner
        if scanner.take("*x"):
            return None
        scanner.space()
        dims = scanner.match(_DIMS) or ""
        shape = tuple(DYNAMIC if dim == "?" else _parse_dim(scanner, dim) for dim in dims.split("x")[:-1])
        count = 1
        for size in shape:
            count *= max(size, 1)
            if count > MOST_ELEMENTS:
                raise scanner.fail(f"a shape of more than {MOST_ELEMENTS} elements")
        return shape

    def _read_element_name(self) -> str:
        """Read the type of the elements and return its text."""
        scanner = self._scanner
        if scanner.sees("!"):
            return self.type().text
        name = scanner.need(_ELEMENT, "the type of the elements")
        if scanner.sees("<"):
            name += f"<{scanner.skip_angle()}>"
        return name


@dataclass(slots=True)
class _Layout:
    """The layout of a type, collected from the attributes behind its shape."""

    order: DimsOrder | None = None
    strides: tuple[int, ...] | None = None
    space: str | None = None
    index: int | None = None
    traits: dict[str, Attribute] = field(default_factory=dict[str, "Attribute"])

    def add(self, scanner: Scanner, part: Attribute) -> None:
        """Add one attribute. Raises ReadError where it is neither a layout nor a memory space."""
        match part:
            case AffineMap():
                self.order = part.order
            case Symbol():
                self.space = part.leaf
            case str():  # the old dialect
                self.space = part
            case tuple():
                self.space, self.index = _memory_space(scanner, part)
            case Mapping():
                self._add_fields(scanner, part)
            case Opaque():
                self.traits[_trait_name(part.name)] = part
            case Type():  # strided<[..]> and others
                self.traits[part.name] = part
            case int():  # a memory space of the old dialect, which has no name
                pass
            case _:
                raise scanner.fail(f"{part} is neither a layout nor a memory space")

    def _add_fields(self, scanner: Scanner, fields: Mapping[str, Attribute]) -> None:
        """Add order and strides from a dictionary, and its other fields as traits; all fields of a distribution are
        traits."""
        if "mode" in fields:  # a distribution, with words of its own
            self.traits.update(fields)
            return
        if "order" in fields:
            written = fields["order"]
            self.order = written.order if isinstance(written, AffineMap) else None
        if "strides" in fields:
            self.strides = _require_strides(scanner, fields["strides"])
        self.traits.update((key, value) for key, value in fields.items() if key not in _LAYOUT_FIELDS)


def _read_affine_map(text: str) -> AffineMap:
    """Return an affine map, with the order that it stands for if it permutes plain dimensions."""
    try:
        return AffineMap(text, DimsOrder.from_affine_map(text))
    except HostError:
        return AffineMap(text, None)


def _parse_dim(scanner: Scanner, text: str) -> int:
    """Return the size that digits of a shape denote. Raises ReadError for more than 18 of them."""
    if len(text) > 18:
        raise scanner.fail("a dimension of more than 18 digits")
    return int(text)


def _memory_space(scanner: Scanner, part: tuple[Attribute, ...]) -> tuple[str, int | None]:
    """Return the name of a memory space and its index, None where it has none. Raises ReadError for another list."""
    match part:
        case (Symbol() as name,):
            return name.leaf, None
        case (Symbol() as name, int() as index):
            return name.leaf, index
        case _:
            raise scanner.fail("a memory space is @NAME or [@NAME, index]")


def _require_strides(scanner: Scanner, part: Attribute) -> tuple[int, ...]:
    """Return strides from an attribute. Raises ReadError for anything but a list of integers."""
    if not isinstance(part, tuple) or not all(isinstance(stride, int) for stride in part):
        raise scanner.fail("strides are a list of integers")
    return tuple(stride for stride in part if isinstance(stride, int))


def _trait_name(name: str) -> str:
    """Return the field that an attribute stands for: swizzlingScheme of `VPUIP.SwizzlingSchemeAttr`; other attributes
    keep their name."""
    leaf = name.rpartition(".")[2].removesuffix("Attr")
    field = leaf[:1].lower() + leaf[1:]
    if field in ("swizzlingScheme", "sparsityCompression", "compressionState"):
        return field
    return name


def _decode_float(bits: int, of: str) -> float:
    """Return the float of type `of` whose bits were written as hex digits; NaN where it has fewer bits."""
    form = {"f16": ("<H", "<e"), "f32": ("<I", "<f"), "f64": ("<Q", "<d")}.get(of)
    if of == "bf16":
        bits = bits << 16
        form = ("<I", "<f")
    try:
        if form is None:
            return float(bits)
        return struct.unpack(form[1], struct.pack(form[0], bits))[0]
    except struct.error:
        return float("nan")
