"""Attributes and types (VPUX 3)."""

import re
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from buda_emu.foreign.vpux.layout import DimsOrder
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
    """Reads attributes and types at a scanner's place; knows the aliases of a split so far."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._attributes: dict[str, Attribute] = {}
        self._types: dict[str, Type] = {}
        self._seen: dict[str, Type] = {}

    def define(self, name: str) -> None:
        """Read what `#name =` or `!name =` stands for."""
        if name[0] == "#":
            if self._scanner.word("loc"):  # a place in some other source
                self._scanner.balanced()
                return
            self._attributes[name] = self.attribute()
        else:
            self._types[name] = self.type()
            self._seen.clear()

    # ---------------------------------------------------------------------------------------------- attributes
    def attribute(self) -> Attribute:
        """One attribute, with its type skipped if one is written. Raises ReadError."""
        with self._scanner.nested():
            return self._attribute()

    def _attribute(self) -> Attribute:
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
            return self._list("[", "]")
        if first == "{":
            return self.dictionary()
        if first == "@":
            return self.symbol()
        if first == "#":
            return self._dialect_attribute()
        if first == "<":
            return Opaque("", scanner.angle())
        number = scanner.match(_NUMBER)
        if number is not None:
            return self._number(number)
        return self._worded()

    def _worded(self) -> Attribute:
        scanner = self._scanner
        start = scanner.at
        for word, value in (("true", True), ("false", False), ("unit", True)):
            if scanner.word(word):
                return value
        if scanner.word("affine_map"):
            return _affine(f"affine_map<{scanner.angle()}>")
        if scanner.word("array"):
            scanner.expect("<")
            scanner.need(_WORD, "a type")
            return self._list(":", ">") if scanner.sees(":") else (scanner.expect(">"), ())[1]
        for word in ("dense", "dense_resource", "ref"):
            if scanner.word(word):
                text = scanner.angle()
                return Dense(word, text.strip(), self.type() if scanner.take(":") else None)
        if scanner.match(_WORD) is not None and not scanner.sees("<"):
            word = scanner.text[start : scanner.at].strip()
            if not _SCALAR.match(word) or Type("other", word, word).element is None:
                return Opaque(word, word)
        scanner.at = start
        return self.type()

    def dictionary(self) -> Mapping[str, Attribute]:
        """`{k = v, k : v, unit}`. Raises ReadError."""
        scanner = self._scanner
        scanner.expect("{")
        found = self.entries("}")
        scanner.expect("}")
        return found

    def entries(self, stop: str) -> Mapping[str, Attribute]:
        """What stands between the brackets of a dictionary."""
        scanner = self._scanner
        found: dict[str, Attribute] = {}
        while not scanner.sees(stop):
            key = scanner.string() if scanner.sees('"') else scanner.need(_WORD, "the name of an attribute")
            if key is None:
                raise scanner.fail("a string is not closed")
            found[key] = self.attribute() if scanner.take("=") or scanner.take(":") else True
            if not scanner.take(","):
                break
        return MappingProxyType(found)

    def symbol(self) -> Symbol:
        """`@a::@b`. The seeds' `@a.b.c` is not taken apart here. Raises ReadError."""
        text = self._scanner.need(SYMBOL, "a name that begins with '@'")
        return Symbol(tuple(part.strip('"') for part in re.findall(r'@("[^"]*"|[\w$.-]+)', text)))

    def integers(self) -> tuple[int, ...]:
        """`[1, 2]`. Raises ReadError for anything but integers."""
        found = self._list("[", "]")
        if any(not isinstance(item, int) or isinstance(item, bool) for item in found):
            raise self._scanner.fail("expected a list of integers")
        return tuple(item for item in found if isinstance(item, int))

    def _list(self, start: str, stop: str) -> tuple[Attribute, ...]:
        scanner = self._scanner
        scanner.expect(start)
        found: list[Attribute] = []
        while not scanner.sees(stop):
            found.append(self.attribute())
            if not scanner.take(","):
                break
        scanner.expect(stop)
        return tuple(found)

    def _number(self, text: str) -> int | float:
        """A number, read as the type after it says."""
        of = self._skip_type()
        digits = text.lstrip("-")
        if of == "i1":
            return text not in ("0", "0x0")
        if digits.startswith("0x"):
            value = int(text, 16)
            return _float_of_bits(value, of) if of.startswith(("f", "bf")) else value
        if digits.isdecimal() and not of.startswith(("f", "bf")):
            if len(digits) > 40:
                raise self._scanner.fail("an integer of more than 40 digits")
            return int(text)
        return float(text)

    def _skip_type(self) -> str:
        """The name of a type after a colon."""
        return self.type().text if self._scanner.take(":") else ""

    def _dialect_attribute(self) -> Attribute:
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
        text = scanner.angle()
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
        """One type, several one after another, or several in parentheses. Raises ReadError."""
        scanner = self._scanner
        if not scanner.take("("):
            found = [self.type()]
            while scanner.take(","):
                found.append(self.type())
            return tuple(found)
        found: list[Type] = []
        while not scanner.sees(")"):
            found.append(self.type())
            if scanner.sees("{"):
                scanner.balanced()  # attributes of a function's result
            scanner.location()
            if not scanner.take(","):
                break
        scanner.expect(")")
        return tuple(found)

    def type(self) -> Type:
        """One type. Raises ReadError."""
        with self._scanner.nested():
            return self._type()

    def _type(self) -> Type:
        scanner = self._scanner
        scanner.space()
        start = scanner.at
        alias = scanner.match(ALIAS)
        if alias is not None:
            if alias not in self._types:
                raise scanner.fail(f"{alias} is not defined", start)
            return self._types[alias]
        if scanner.sees("("):  # of a function
            scanner.balanced()
            scanner.expect("->")
            self.types()
            return Type("other", "function", scanner.text[start : scanner.at])
        name = scanner.match(_DIALECT) or scanner.need(_WORD, "a type")
        if not scanner.sees("<"):
            return self._plain(name)
        inside = scanner.at + 1
        scanner.angle()
        stop = scanner.at
        text = scanner.text[start:stop]
        known = self._seen.get(text)
        if known is None:
            scanner.at = inside
            known = self._parametric(name, text, stop - 1)
            self._seen[text] = known
        scanner.at = stop
        return known

    def _plain(self, name: str) -> Type:
        if name == "!VPURT.Barrier":
            return Type("barrier", "VPURT.Barrier", name)
        return Type("other", name.lstrip("!"), name)

    def _parametric(self, name: str, text: str, stop: int) -> Type:
        """A type with its parameters, which end at `stop`."""
        scanner = self._scanner
        if name in ("memref", "tensor", "!VPUIP.DistributedBuffer"):
            found = self._shaped({"!VPUIP.DistributedBuffer": "distributed"}.get(name, name), name.lstrip("!"), text)
        elif name == "!VPUIP.BoundedBuffer":
            parts: list[Type] = []
            while not scanner.sees(">"):
                scanner.need(_WORD, "data or dynamic_shape")
                scanner.expect("=")
                parts.append(self.type())
                if not scanner.take(","):
                    break
            found = Type("bounded", name[1:], text, parts=tuple(parts))
        else:
            return Type("other", name.lstrip("!"), text)
        scanner.space()
        if scanner.at != stop:
            raise scanner.fail(f"expected '>', found {scanner.shown()}")
        return found

    def _shaped(self, kind: str, name: str, text: str) -> Type:
        scanner = self._scanner
        shape: tuple[int, ...] | None = None
        if not scanner.take("*x"):
            scanner.space()
            dims = scanner.match(_DIMS) or ""
            shape = tuple(DYNAMIC if item == "?" else _dim(scanner, item) for item in dims.split("x")[:-1])
            count = 1
            for size in shape:
                count *= max(size, 1)
                if count > MOST_ELEMENTS:
                    raise scanner.fail(f"a shape of more than {MOST_ELEMENTS} elements")
        of = self.type() if scanner.sees("!") else None
        element = of.text if of is not None else scanner.need(_ELEMENT, "the type of the elements")
        if of is None and scanner.sees("<"):
            element += f"<{scanner.angle()}>"
        space: str | None = None
        index: int | None = None
        order: DimsOrder | None = None if shape is None or len(shape) > 15 else DimsOrder.identity(len(shape))
        strides: tuple[int, ...] | None = None
        traits: dict[str, Attribute] = {}
        while scanner.take(","):
            if scanner.sees(">"):  # seed 1: memref<*xf16,>
                break
            part = self.attribute()
            if isinstance(part, AffineMap):
                order = part.order
            elif isinstance(part, Symbol | str):  # a string in the old dialect
                space = part.leaf if isinstance(part, Symbol) else part
            elif isinstance(part, tuple):
                space, index = _space(scanner, part)
            elif isinstance(part, Mapping) and "mode" in part:  # of a distribution, with words of its own
                traits.update(part)
            elif isinstance(part, Mapping):
                if "order" in part:
                    written = part["order"]
                    order = written.order if isinstance(written, AffineMap) else None
                if "strides" in part:
                    strides = _strides(scanner, part["strides"])
                traits.update((key, value) for key, value in part.items() if key not in _LAYOUT_FIELDS)
            elif isinstance(part, Opaque):
                traits[_trait(part.name)] = part
            elif isinstance(part, Type):  # strided<[..]> and others
                traits[part.name] = part
            elif not isinstance(part, int):  # a number is a memory space of the old dialect: no name
                raise scanner.fail(f"{part} is neither a layout nor a memory space")
        return Type(
            kind=kind,
            name=name,
            text=text,
            shape=shape,
            element_name=element,
            order=order,
            strides=strides,
            space=space,
            space_index=index,
            traits=MappingProxyType(traits),
        )


def _affine(text: str) -> AffineMap:
    try:
        return AffineMap(text, DimsOrder.from_affine_map(text))
    except HostError:
        return AffineMap(text, None)


def _dim(scanner: Scanner, text: str) -> int:
    if len(text) > 18:
        raise scanner.fail("a dimension of more than 18 digits")
    return int(text)


def _space(scanner: Scanner, part: tuple[Attribute, ...]) -> tuple[str, int | None]:
    match part:
        case (Symbol() as name,):
            return name.leaf, None
        case (Symbol() as name, int() as index):
            return name.leaf, index
        case _:
            raise scanner.fail("a memory space is @NAME or [@NAME, index]")


def _strides(scanner: Scanner, part: Attribute) -> tuple[int, ...]:
    if not isinstance(part, tuple) or not all(isinstance(item, int) for item in part):
        raise scanner.fail("strides are a list of integers")
    return tuple(item for item in part if isinstance(item, int))


def _trait(name: str) -> str:
    """`VPUIP.SwizzlingSchemeAttr` stands for the field swizzlingScheme; others keep their name."""
    leaf = name.rpartition(".")[2].removesuffix("Attr")
    field = leaf[:1].lower() + leaf[1:]
    return field if field in ("swizzlingScheme", "sparsityCompression", "compressionState") else name


def _float_of_bits(bits: int, of: str) -> float:
    """A float written as the hex digits of its bits."""
    form = {"f16": ("<H", "<e"), "f32": ("<I", "<f"), "f64": ("<Q", "<d")}.get(of)
    if of == "bf16":
        bits = bits << 16
        form = ("<I", "<f")
    try:
        return float(bits) if form is None else struct.unpack(form[1], struct.pack(form[0], bits))[0]
    except struct.error:
        return float("nan")
