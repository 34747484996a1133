"""Values in IR text: tokens of a line, numbers, lists, records, and arrays by their digests."""

import hashlib
import re
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.graph.spec import DTYPES
from buda_emu.compiler.lower.layout import Layout, Piece
from buda_emu.compiler.lower.picker import PickTable
from buda_emu.compiler.place.blocks import Blocks
from buda_emu.compiler.place.placement import Detour
from buda_emu.compiler.target import Precision
from buda_emu.emulator.image.host_plan import Windows
from buda_emu.emulator.image.index_range import IndexRange
from buda_emu.emulator.image.shape_rules import DecidingInput, Element, ShapeRule
from buda_emu.emulator.inputs.numpy_files import npz_of
from buda_emu.emulator.memory.host import default_memory_limit, size_text
from buda_emu.support.errors import HostError
from buda_emu.support.files import write_file

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_.]*"
_TOKEN: Final = re.compile(
    rf"""\s*(?:(?P<name>{_NAME})|(?P<number>-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf\b))"""
    r"""|(?P<text>"(?:[^"\\]|\\.)*")|(?P<sign>->|[][(){}<>,:;=@#|-])|(?P<end>\Z))"""
)
_DIGEST: Final = re.compile(r"[0-9a-f]{12}")
_MOST_DIGITS: Final = 400  # of a number: the largest float has 309
_LAST_CHARACTER: Final = 0x10FFFF  # of Unicode
_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9a-f]+)\}|(.))")


class IrError(HostError):
    """A text that is not IR, or an IR that breaks a rule of its level."""


class Tokens:
    """The unread part of one line; `kind` of the next token: name, number, text, sign or end. Methods that read a token
    raise IrError, with the position, if another kind of token comes."""

    def __init__(self, line: str, position: str) -> None:
        self.line = line
        self.where = position
        self._at = 0
        self._start: int = 0
        self._step()

    @staticmethod
    def is_name(text: str) -> bool:
        """Return whether a text is a name that needs no quotes."""
        return re.fullmatch(_NAME, text) is not None

    def _step(self) -> None:
        """Step to the next token of the line. Raises IrError at a character that begins none."""
        match = _TOKEN.match(self.line, self._at)
        if match is None:
            self.fail(f"{self.line[self._at :].strip()[:20]!r} is not understood")
        self.kind = str(match.lastgroup)
        self._word = str(match[self.kind])
        self._start = int(match.start(self.kind))
        self._at = int(match.end())

    def fail(self, why: str) -> NoReturn:
        """Raise IrError with the position of the current token and the reason `why`."""
        raise IrError(f"{self.where}:{self._start + 1}: {why}")

    def at(self, sign: str) -> bool:
        """Return whether a sign or a name comes next."""
        return self.kind in ("sign", "name") and self._word == sign

    def take(self, sign: str) -> bool:
        """Skip a sign or a name if it comes next, and return whether it did."""
        matches = self.at(sign)
        if matches:
            self._step()
        return matches

    def need(self, sign: str) -> None:
        """Skip a sign that must come next. Raises IrError for anything else."""
        if not self.take(sign):
            self.fail(f"{sign!r} is missing before {self._word!r}" if self._word else f"{sign!r} is missing")

    def name(self, subject: str) -> str:
        """Read a name without quotes; `subject` says what is missing if there is none. Raises IrError."""
        if self.kind != "name":
            self.fail(f"{subject} is missing before {self._word!r}" if self._word else f"{subject} is missing")
        return self._take_word()

    def any_name(self, subject: str) -> str:
        """Read a name, with quotes or without; `subject` says what is missing if there is none. Raises IrError."""
        if self.kind == "text":
            return self.text()
        return self.name(subject)

    def number(self) -> Any:
        """Read an integer, or a float if it has a point or an exponent or is infinite."""
        if self.kind != "number":
            self.fail(f"a number is missing before {self._word!r}")
        if len(self._word) > _MOST_DIGITS:
            self.fail(f"a number of more than {_MOST_DIGITS} digits")
        word = self._take_word()
        if word.lstrip("-").isdigit():
            return int(word)
        return float(word)

    def integer(self, subject: str) -> int:
        """Read an integer; `subject` names it in the error. Raises IrError for anything else."""
        start = self._start
        number = self.number()
        if not isinstance(number, int):
            self._start = start
            self.fail(f"{subject} is an integer, not {number}")
        return number

    def text(self) -> str:
        """Read a text in quotes."""
        if self.kind != "text":
            self.fail(f"a text in quotes is missing before {self._word!r}")
        for code in _ESCAPE.finditer(self._word):
            if code[1] and (len(code[1]) > 6 or int(code[1], 16) > _LAST_CHARACTER):
                self.fail(f"there is no character {code[0][:20]}")
        word = self._take_word()[1:-1]
        return _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else escape[2], word)

    def digest(self) -> str:
        """Read the digest of an array."""
        match = _DIGEST.match(self.line, self._start)
        if match is None:
            self.fail("a digest of twelve letters is missing")
        self._at = match.end()
        self._step()
        return match[0]

    def done(self) -> None:
        """Raise IrError unless the line ends here."""
        if self.kind != "end":
            self.fail(f"{self._word!r} is where the line should end")

    def _take_word(self) -> str:
        """Return the text of the current token and step to the next."""
        word = self._word
        self._step()
        return word


T = TypeVar("T")


def make_record(kind: type[T], values: Mapping[str, Any], tokens: Tokens, subject: str) -> T:
    """Build a record of class `kind` from its fields by name. Raises IrError for an unknown or missing field, and for a
    value of another type; `subject` names the record there."""
    hints, needed = _fields_of(kind)
    for name, value in values.items():
        if name not in hints:
            tokens.fail(f"{subject}: there is no field {name}: {', '.join(hints)}")
        if not conforms(value, hints[name]):
            tokens.fail(f"{subject}: {name} cannot be {str(value)[:60]}")
    missing = [name for name in needed if name not in values]
    if missing:
        tokens.fail(f"{subject}: {missing[0]} is missing")
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:  # a rule of the record itself
        tokens.fail(f"{subject}: {error}")


@cache
def _fields_of(kind: type[Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the types of all fields, and the names of those without a default."""
    hints = get_type_hints(kind)
    if is_dataclass(kind):
        field_types = {
            field.name: hints[field.name] for field in fields(kind) if field.init and not field.name.startswith("_")
        }
        needed = [field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING]
        return field_types, tuple(needed)
    return hints, tuple(name for name in hints if name not in kind._field_defaults)


def conforms(value: Any, hint: Any) -> bool:
    """Return whether a value has the type `hint`, a type annotation. An int conforms to float, a bool does not conform
    to int, and of a TypedDict only that it is a dict is checked."""
    if hint is Any:
        return True
    if is_typeddict(hint):  # of attributes: the verifier knows which an op has, and their values
        return isinstance(value, dict)
    origin = get_origin(hint)
    if origin is not None:
        return _conforms_to_generic(value, origin, get_args(hint))
    if hint in (int, np.int64):
        return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, (int, float))
    return hint is None or isinstance(value, hint)


def _conforms_to_tuple(elements: tuple[Any, ...], arguments: tuple[Any, ...]) -> bool:
    """Return whether the elements of a tuple have the types of its arguments, one each, or one for any number of
    elements, with an ellipsis behind it."""
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return all(conforms(element, arguments[0]) for element in elements)
    return len(elements) == len(arguments) and all(map(conforms, elements, arguments))


def _conforms_to_generic(value: Any, origin: Any, arguments: tuple[Any, ...]) -> bool:
    """Return whether a value has a type with arguments: a union, a tuple, a collection, an array or another class,
    whose arguments are not checked."""
    if origin in (Union, types.UnionType):
        return any(conforms(value, element) for element in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and _conforms_to_tuple(cast("tuple[Any, ...]", value), arguments)
    if origin in (list, frozenset):
        return isinstance(value, origin) and all(
            conforms(element, arguments[0]) for element in cast("list[Any]", value)
        )
    return isinstance(value, origin)


Array = NDArray[Any]
Arrays = dict[str, Array]


def digest(array: Array) -> str:
    """Return twelve letters by which a file names an array: a hash of type, shape and bits."""
    checksum = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    checksum.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b"")
    return checksum.hexdigest()[:12]


def save_arrays(path: Path, arrays: Arrays) -> None:
    """Write all arrays into one file, completely or not at all. Raises OSError."""
    write_file(path, lambda stream: np.savez(stream, allow_pickle=False, **arrays))


def load_arrays(path: Path) -> Arrays:
    """Return the arrays of a file, none if the file does not exist. Raises HostError for another kind of file, and for
    an array that differs from the one that was saved under its name."""
    if path.exists():
        arrays = npz_of(str(path), path)
    else:
        arrays = {}
    for name, array in arrays.items():
        if digest(array) != name:
            raise HostError(f"{path}: array {name} is another one than was saved: write text and arrays again")
    return arrays


def equal(first: Any, second: Any) -> bool:
    """Return whether two arrays have the same type, shape and bits."""
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    first_bytes, second_bytes = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (first, second))
    return bool(np.array_equal(first_bytes, second_bytes))


RECORDS: Final = {
    kind.__name__: kind
    for kind in (
        Blocks,
        DecidingInput,
        Detour,
        Element,
        IndexRange,
        Layout,
        Piece,
        PickTable,
        Precision,
        ShapeRule,
        Sparse,
        Windows,
    )
}
"""All records that a text may hold."""
SHARED: Final = (PickTable,)
"""Records whose identity matters: ops of one table are alike."""
INLINE: Final = 4
"""Largest number of elements of an array that is written into the text."""
_MOST_DEPTH: Final = 40
"""Deepest nesting of values; a file of this compiler has a handful."""
_WORDS: Final = {"true": True, "false": False, "none": None, "inf": float("inf"), "nan": float("nan")}


class Printer:
    """A printer of values that collects the arrays for which only their digest is written."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self._shared: dict[int, int] = {}
        self._referenced: list[Any] = []

    def value(self, value: Any) -> str:
        """Return any attribute as text. Raises IrError for an object that has no text form."""
        if value is None or isinstance(value, bool):
            return {None: "none", True: "true", False: "false"}[value]
        if isinstance(value, str):
            return quote(value)
        if isinstance(value, np.ndarray):
            return self.array(cast("Array", value))
        if isinstance(value, np.generic):
            scalar: Any = value  # pyright: ignore[reportUnknownVariableType]
            return f"{scalar.dtype.name}({self.value(scalar.item())})"
        if isinstance(value, (int, float)):
            return repr(value)
        if isinstance(value, (frozenset, set)):
            items = cast("Iterable[str]", value)
            return f"set[{', '.join(map(self.value, sorted(items)))}]"
        if type(value).__name__ in RECORDS:
            return self._record(value)
        if isinstance(value, (list, tuple)):
            items = cast("Iterable[Any]", value)
            inside = ", ".join(map(self.value, items))
            if isinstance(value, list):
                return f"[{inside}]"
            return f"({inside})"
        if isinstance(value, Mapping):
            return self.map(cast("Mapping[str, Any]", value))
        if callable(value):
            return f"function({quote(getattr(value, '__qualname__', '?'))})"
        raise IrError(f"nothing in a text stands for {type(value).__name__}")

    def map(self, values: Mapping[str, Any]) -> str:
        """Return a map as `{key: value, ...}` in its order; keys are names, or texts in quotes."""
        return "{" + ", ".join(f"{name(key)}: {self.value(entry)}" for key, entry in values.items()) + "}"

    def array(self, array: Array) -> str:
        """Return type and shape of an array as text, with its elements if they are few or all the same, else with its
        digest, under which the array is collected."""
        head = f"{array.dtype.name}{list(array.shape)}"
        if array.size <= INLINE:
            return f"{head} = {self.value(array.reshape(-1).tolist())}"
        if _has_equal_elements(array):
            return f"{head} = {self.value(array.reshape(-1)[0].item())}"
        key = digest(array)
        self.arrays[key] = array
        return f"{head} @{key}"

    def _record(self, record: Any) -> str:
        """Write a record as its type and those fields that differ from their defaults."""
        kind = cast("type[Any]", type(record))
        if isinstance(record, Layout):
            return f"Layout(dims: {quote(_dims_text(record))}, extent: {self.value(record.extent)})"
        inside = ", ".join(f"{key}: {self.value(entry)}" for key, entry in _fields_to_print(record))
        return f"{kind.__name__}{self._number(record)}({inside})"

    def _number(self, record: Any) -> str:
        """Return `#` and the number of a record that several places may share, "" for any other record."""
        if not isinstance(record, SHARED):
            return ""
        if id(record) not in self._shared:
            self._shared[id(record)] = len(self._shared) + 1
            self._referenced.append(record)  # no other object takes its id while this one prints
        return f"#{self._shared[id(record)]}"


def _has_equal_elements(array: Array) -> bool:
    """Return whether all elements are the same; the first ones nearly always decide."""
    first = array.reshape(-1)[:1]
    return all(equal(part, np.broadcast_to(first, part.shape)) for part in (array.reshape(-1)[:9], array))


def _fields_to_print(record: Any) -> Iterable[tuple[str, Any]]:
    """Return the fields without those that have their default, or only cache something."""
    if not is_dataclass(record):
        defaults: Mapping[str, Any] = record._field_defaults
        return [
            (key, field) for key, field in record._asdict().items() if key not in defaults or field != defaults[key]
        ]
    return [
        (field.name, getattr(record, field.name))
        for field in fields(record)
        if not field.name.startswith("_") and not same(getattr(record, field.name), _default_of_field(field))
    ]


def _default_of_field(field: "Field[Any]") -> Any:
    """Return the default of a field, MISSING if it has none."""
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return field.default_factory()
    return MISSING


def _dims_text(layout: Layout) -> str:
    """Return dimensions such as `20r*4, 4r+24c, 1`: for each the pieces along slices (z), rows and columns, with
    strides other than 1."""
    return ", ".join(
        "+".join(f"{piece.size}{piece.axis}" + f"*{piece.stride}" * (piece.stride != 1) for piece in dim) or "1"
        for dim in layout.dims
    )


def _parse_dims(dims: str, tokens: Tokens) -> tuple[tuple[Piece, ...], ...]:
    """Parse dimensions as `_dims_text` writes them. Raises IrError for another text."""
    if dims and not re.fullmatch(rf"{_DIM}(?:, {_DIM})*", dims):
        tokens.fail(f"dims {dims!r} are not as `20r*4, 4r+24c, 1`")
    return tuple(
        tuple(Piece(int(size), axis, int(stride or 1)) for size, axis, stride in re.findall(_PIECE, dim))
        for dim in (dims.split(", ") if dims else ())
    )


_PIECE: Final = r"(\d{1,12})([zrc-])(?:\*(\d{1,12}))?"
_ONE: Final = r"\d{1,12}[zrc-](?:\*\d{1,12})?"
_DIM: Final = rf"(?:1|{_ONE}(?:\+{_ONE})*)"


def name(text: str) -> str:
    """Return a name, in quotes if its letters need them."""
    if Tokens.is_name(text) and text not in _WORDS:
        return text
    return quote(text)


def quote(text: str) -> str:
    """Return a text in double quotes, on one line."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in plain) + '"'


class Reader:
    """A reader of values; `arrays` by their digests. Its methods raise IrError with the position for anything else."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self._shared: dict[str, Any] = {}
        self._depth = 0
        self._room = default_memory_limit()  # bytes that arrays of equal elements may still take

    def value(self, tokens: Tokens) -> Any:
        """Read and return the next value of any kind. Raises IrError for text that is none, and for values nested too
        deeply."""
        if self._depth == _MOST_DEPTH:
            tokens.fail(f"more than {_MOST_DEPTH} values within each other")
        self._depth += 1
        try:
            return self._read_value(tokens)
        finally:
            self._depth -= 1

    def _read_negative_number(self, tokens: Tokens) -> int | float:
        """Read the number after a minus sign, and return it with its sign."""
        number = self.value(tokens)
        if type(number) not in (int, float):
            tokens.fail("a number is missing after '-'")
        return -number

    def _read_set(self, tokens: Tokens) -> frozenset[str]:
        """Read the names of a set, to its closing bracket."""
        names = self._read_until(tokens, "]")
        if not all(isinstance(name, str) for name in names):
            tokens.fail("a set holds names in quotes")
        return frozenset(names)

    def _read_value(self, tokens: Tokens) -> Any:
        """Read a value: text, number, list, tuple, map, set, array, record, or a word that stands for one."""
        if tokens.kind == "text":
            return tokens.text()
        if tokens.kind == "number":
            return tokens.number()
        if tokens.take("["):
            return self._read_until(tokens, "]")
        if tokens.take("("):
            return tuple(self._read_until(tokens, ")"))
        if tokens.at("{"):
            return self.map(tokens)
        if tokens.take("-"):
            return self._read_negative_number(tokens)
        word = tokens.name("a value")
        if word in _WORDS:
            return _WORDS[word]
        if word == "set" and tokens.take("["):
            return self._read_set(tokens)
        if word in DTYPES:
            return self._read_array(tokens, word)
        return self._record(tokens, word)

    def map(self, tokens: Tokens) -> dict[str, Any]:
        """Read a map such as `{key: value, other: value}` and return it, in the order of the text; keys are names or
        texts in quotes. Raises IrError for a key that occurs twice."""
        entries: dict[str, Any] = {}
        tokens.need("{")
        while not tokens.take("}"):
            key = tokens.any_name("a key")
            if key in entries:
                tokens.fail(f"{key} occurs twice there")
            tokens.need(":")
            entries[key] = self.value(tokens)
            if not tokens.at("}"):
                tokens.need(",")
        return entries

    def _read_until(self, tokens: Tokens, end: str) -> list[Any]:
        """Read values, separated by commas, up to a closing sign."""
        elements: list[Any] = []
        while not tokens.take(end):
            elements.append(self.value(tokens))
            if not tokens.at(end):
                tokens.need(",")
        return elements

    def _read_array(self, tokens: Tokens, dtype: str) -> Any:
        """Read an array behind its element type: shape, and elements or digest; or a single number in parentheses."""
        if tokens.take("("):
            return self._read_scalar(tokens, dtype)
        shape = self.shape(tokens)
        if tokens.take("="):
            return self._read_elements(tokens, dtype, shape)
        tokens.need("@")
        key = tokens.digest()
        if key not in self.arrays:
            tokens.fail(f"no array @{key} in its file of arrays")
        held = self.arrays[key]
        if held.dtype.name != dtype or held.shape != shape:
            tokens.fail(f"@{key} is {held.dtype.name}{list(held.shape)}, not {dtype}{list(shape)}")
        return held

    def _read_scalar(self, tokens: Tokens, dtype: str) -> Any:
        """Read `2.5)`, what follows an element type and a parenthesis."""
        value = self.value(tokens)
        tokens.need(")")
        try:
            if not isinstance(value, (bool, int, float)):
                raise TypeError
            return np.dtype(dtype).type(value)
        except (TypeError, ValueError, OverflowError):
            tokens.fail(f"{str(value)[:60]} is no {dtype}")

    def _read_elements(self, tokens: Tokens, dtype: str, shape: tuple[int, ...]) -> Array:
        """Read the elements of an array, in a list, or the one that all of them are, and return the array. Raises
        IrError for other values, and for an array that memory has no room for."""
        items: Any = self.value(tokens)
        is_even = not isinstance(items, list)
        if is_even:
            self._room -= prod(shape) * np.dtype(dtype).itemsize
        if self._room < 0:
            tokens.fail(f"{dtype}{list(shape)}: no memory for it; the limit is {size_text(default_memory_limit())}")
        try:
            if is_even:
                return np.full(shape, items, dtype)
            return np.array(items, dtype).reshape(shape)
        except (TypeError, ValueError, OverflowError):
            tokens.fail(f"{items!s:.60} is no {dtype}{list(shape)}")

    def shape(self, tokens: Tokens) -> tuple[int, ...]:
        """Read and return a shape such as `[2, 3]`. Raises IrError for anything else."""
        tokens.need("[")
        sizes = self._read_until(tokens, "]")
        if not all(type(size) is int and size >= 0 for size in sizes):
            tokens.fail(f"{sizes} is not a shape")
        return tuple(sizes)

    def _record(self, tokens: Tokens, word: str) -> Any:
        """Read the fields of a record behind the name of its class, `word`, and return it. A record with a number that
        was read before is that same object."""
        if word not in RECORDS:
            tokens.fail(f"{word} is neither a type nor a record: {', '.join((*sorted(DTYPES), *RECORDS))}")
        kind = RECORDS[word]
        number = f"{word}#{tokens.integer('the number of a record')}" if tokens.take("#") else ""
        values: dict[str, Any] = {}
        tokens.need("(")
        while not tokens.take(")"):
            key = tokens.name("a field")
            if key in values:
                tokens.fail(f"{word}: {key} occurs twice")
            tokens.need(":")
            values[key] = self.value(tokens)
            if not tokens.at(")"):
                tokens.need(",")
        if kind is Layout and isinstance(values.get("dims"), str):
            values["dims"] = _parse_dims(values["dims"], tokens)
        record: Any = make_record(kind, values, tokens, word)
        if number:
            return self._shared.setdefault(number, record)
        return record


def _same_maps(first: Mapping[Any, Any], second: Mapping[Any, Any]) -> bool:
    """Return whether two maps have the same keys in the same order, and the same values."""
    return list(first) == list(second) and all(same(first[key], second[key]) for key in first)


def same(first: Any, second: Any) -> bool:
    """Return whether two values are equal in type and content, arrays bit by bit, without the fields in which records
    cache something."""
    if first is second:
        return True
    if isinstance(first, np.ndarray):
        return isinstance(second, np.ndarray) and equal(first, second)
    if isinstance(first, Mapping):
        first_map = cast("Mapping[Any, Any]", first)
        return isinstance(second, Mapping) and _same_maps(first_map, cast("Mapping[Any, Any]", second))
    if type(first) is not type(second):
        return False
    if isinstance(first, (list, tuple)):
        lists = cast("list[Any]", first), cast("list[Any]", second)
        return len(lists[0]) == len(lists[1]) and all(map(same, *lists))
    if is_dataclass(first):
        compared = [field.name for field in fields(first) if field.compare and not field.name.startswith("_")]
        return all(same(getattr(first, key), getattr(second, key)) for key in compared)
    return bool(first == second) or (first != first and second != second)
