"""Values in IR text: words of a line, numbers, lists, records, and arrays by their digests."""

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
_LAST_CHARACTER: Final = 0x10FFFF
_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9a-f]+)\}|(.))")


class IrError(HostError):
    """A text that is not IR, or an IR that breaks a rule of its level."""


class Tokens:
    """The rest of one line; `kind` of what comes next: name, number, text, sign or end."""

    def __init__(self, line: str, where: str) -> None:
        self.line = line
        self.where = where
        self._at = 0
        self._start: int = 0
        self._next()

    @staticmethod
    def is_name(text: str) -> bool:
        """Whether it is one without quotes."""
        return re.fullmatch(_NAME, text) is not None

    def _next(self) -> None:
        found = _TOKEN.match(self.line, self._at)
        if found is None:
            self.fail(f"{self.line[self._at :].strip()[:20]!r} is not understood")
        self.kind = str(found.lastgroup)
        self._word = str(found[self.kind])
        self._start = int(found.start(self.kind))
        self._at = int(found.end())

    def fail(self, why: str) -> NoReturn:
        """Raises IrError with the place."""
        raise IrError(f"{self.where}:{self._start + 1}: {why}")

    def at(self, sign: str) -> bool:
        """Whether a sign or a name comes next."""
        return self.kind in ("sign", "name") and self._word == sign

    def take(self, sign: str) -> bool:
        """The same, and after it then."""
        found = self.at(sign)
        if found:
            self._next()
        return found

    def need(self, sign: str) -> None:
        """After a sign that has to come next."""
        if not self.take(sign):
            self.fail(f"{sign!r} is missing before {self._word!r}" if self._word else f"{sign!r} is missing")

    def name(self, what: str) -> str:
        """A name without quotes."""
        if self.kind != "name":
            self.fail(f"{what} is missing before {self._word!r}" if self._word else f"{what} is missing")
        return self._taken()

    def any_name(self, what: str) -> str:
        """A name, with quotes or without."""
        return self.text() if self.kind == "text" else self.name(what)

    def number(self) -> Any:
        """An integer, or a float where it has a point, an exponent or is infinite."""
        if self.kind != "number":
            self.fail(f"a number is missing before {self._word!r}")
        if len(self._word) > _MOST_DIGITS:
            self.fail(f"a number of more than {_MOST_DIGITS} digits")
        word = self._taken()
        return int(word) if word.lstrip("-").isdigit() else float(word)

    def integer(self, what: str) -> int:
        """A number that is an integer."""
        start = self._start
        found = self.number()
        if not isinstance(found, int):
            self._start = start
            self.fail(f"{what} is an integer, not {found}")
        return found

    def text(self) -> str:
        """What stands in quotes."""
        if self.kind != "text":
            self.fail(f"a text in quotes is missing before {self._word!r}")
        for code in _ESCAPE.finditer(self._word):
            if code[1] and (len(code[1]) > 6 or int(code[1], 16) > _LAST_CHARACTER):
                self.fail(f"there is no character {code[0][:20]}")
        word = self._taken()[1:-1]
        return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], word)

    def digest(self) -> str:
        """Of an array."""
        found = _DIGEST.match(self.line, self._start)
        if found is None:
            self.fail("a digest of twelve letters is missing")
        self._at = found.end()
        self._next()
        return found[0]

    def done(self) -> None:
        """At the end of the line."""
        if self.kind != "end":
            self.fail(f"{self._word!r} is where the line should end")

    def _taken(self) -> str:
        word = self._word
        self._next()
        return word


T = TypeVar("T")


def made(kind: type[T], values: Mapping[str, Any], tokens: Tokens, what: str) -> T:
    """A record of that kind. Raises IrError for a field that it does not have or that is missing, and for a value of
    another type."""
    hints, needed = _declared(kind)
    for name, value in values.items():
        if name not in hints:
            tokens.fail(f"{what}: there is no field {name}: {', '.join(hints)}")
        if not conforms(value, hints[name]):
            tokens.fail(f"{what}: {name} cannot be {str(value)[:60]}")
    missing = [name for name in needed if name not in values]
    if missing:
        tokens.fail(f"{what}: {missing[0]} is missing")
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:  # a rule of the record itself
        tokens.fail(f"{what}: {error}")


@cache
def _declared(kind: type[Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Types of all fields, and those without a default."""
    hints = get_type_hints(kind)
    if is_dataclass(kind):
        own = {item.name: hints[item.name] for item in fields(kind) if item.init and not item.name.startswith("_")}
        needed = [item.name for item in fields(kind) if item.default is MISSING and item.default_factory is MISSING]
        return own, tuple(needed)
    return hints, tuple(name for name in hints if name not in kind._field_defaults)


def conforms(value: Any, hint: Any) -> bool:
    """Whether a value has a declared type."""
    if hint is Any:
        return True
    if is_typeddict(hint):  # of attributes: the verifier knows which an op has, and their values
        return isinstance(value, dict)
    origin = get_origin(hint)
    arguments = get_args(hint)
    if origin in (Union, types.UnionType):
        return any(conforms(value, item) for item in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        items = cast("tuple[Any, ...]", value)
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(conforms(item, arguments[0]) for item in items)
        return len(items) == len(arguments) and all(map(conforms, items, arguments))
    if origin in (list, frozenset):
        return isinstance(value, origin) and all(conforms(item, arguments[0]) for item in cast("list[Any]", value))
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if isinstance(origin, type):
        return isinstance(value, origin)
    if hint in (int, np.int64):
        return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, (int, float))
    return hint is None or isinstance(value, hint)


Array = NDArray[Any]
Arrays = dict[str, Array]


def digest(array: Array) -> str:
    """Twelve letters that equal arrays share, and others do not."""
    found = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b"")
    return found.hexdigest()[:12]


def save_arrays(path: Path, arrays: Arrays) -> None:
    """All of them into one file, whole or not at all. Raises OSError."""
    write_file(path, lambda stream: np.savez(stream, allow_pickle=False, **arrays))


def load_arrays(path: Path) -> Arrays:
    """Those of a file; none where it is not there. Raises HostError for a file of something else, and for an array
    that is not the one that was saved under its name."""
    arrays = npz_of(str(path), path) if path.exists() else {}
    for name, array in arrays.items():
        if digest(array) != name:
            raise HostError(f"{path}: array {name} is another one than was saved: write text and arrays again")
    return arrays


def equal(one: Any, two: Any) -> bool:
    """Whether two arrays have the same type, shape and bits."""
    if one.dtype != two.dtype or one.shape != two.shape:
        return False
    mine, theirs = (np.ascontiguousarray(item).reshape(-1).view(np.uint8) for item in (one, two))
    return bool(np.array_equal(mine, theirs))


RECORDS: Final = {
    kind.__name__: kind for kind in (Blocks, Detour, Layout, Piece, PickTable, Precision, Sparse, Windows)
}
"""All that a text may hold."""
SHARED: Final = (PickTable,)
"""Objects whose identity says something: ops of one table are alike."""
INLINE: Final = 4
"""Elements of an array that stands in the text."""
_MOST_DEPTH: Final = 40
"""Values within each other; a file of this compiler has a handful."""
_WORDS: Final = {"true": True, "false": False, "none": None, "inf": float("inf"), "nan": float("nan")}


class Printer:
    """Writes values, and keeps the arrays that only their digest stands for."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self._shared: dict[int, int] = {}
        self._kept: list[Any] = []

    def value(self, value: Any) -> str:
        """Of any attribute. Raises IrError for an object that no text stands for."""
        if value is None or isinstance(value, bool):
            return {None: "none", True: "true", False: "false"}[value]
        if isinstance(value, str):
            return quoted(value)
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
            return f"[{inside}]" if isinstance(value, list) else f"({inside})"
        if isinstance(value, Mapping):
            return self.map(cast("Mapping[str, Any]", value))
        if callable(value):
            return f"function({quoted(getattr(value, '__qualname__', '?'))})"
        raise IrError(f"nothing in a text stands for {type(value).__name__}")

    def map(self, values: Mapping[str, Any]) -> str:
        """`{key: value}`; keys are names, or words in quotes."""
        return "{" + ", ".join(f"{name(key)}: {self.value(item)}" for key, item in values.items()) + "}"

    def array(self, array: Array) -> str:
        """Type, shape, and elements or digest."""
        head = f"{array.dtype.name}{list(array.shape)}"
        if array.size <= INLINE:
            return f"{head} = {self.value(array.reshape(-1).tolist())}"
        if _is_even(array):
            return f"{head} = {self.value(array.reshape(-1)[0].item())}"
        key = digest(array)
        self.arrays[key] = array
        return f"{head} @{key}"

    def _record(self, record: Any) -> str:
        kind = cast("type[Any]", type(record))
        if isinstance(record, Layout):
            return f"Layout(dims: {quoted(_dims(record))}, extent: {self.value(record.extent)})"
        inside = ", ".join(f"{key}: {self.value(item)}" for key, item in _shown(record))
        return f"{kind.__name__}{self._number(record)}({inside})"

    def _number(self, record: Any) -> str:
        if not isinstance(record, SHARED):
            return ""
        if id(record) not in self._shared:
            self._shared[id(record)] = len(self._shared) + 1
            self._kept.append(record)  # no other object takes its id while this one prints
        return f"#{self._shared[id(record)]}"


def _is_even(array: Array) -> bool:
    """Whether all elements are the same; the first ones tell nearly always."""
    first = array.reshape(-1)[:1]
    return all(equal(part, np.broadcast_to(first, part.shape)) for part in (array.reshape(-1)[:9], array))


def _shown(record: Any) -> Iterable[tuple[str, Any]]:
    """Fields without those that have their default, or are only remembered."""
    if not is_dataclass(record):
        defaults: Mapping[str, Any] = record._field_defaults
        return [(key, item) for key, item in record._asdict().items() if key not in defaults or item != defaults[key]]
    return [
        (item.name, getattr(record, item.name))
        for item in fields(record)
        if not item.name.startswith("_") and not same(getattr(record, item.name), _default(item))
    ]


def _default(item: "Field[Any]") -> Any:
    if item.default is not MISSING:
        return item.default
    if item.default_factory is not MISSING:
        return item.default_factory()
    return MISSING


def _dims(layout: Layout) -> str:
    """`20r*4, 4r+24c, 1`: by dimension the pieces along slices (z), rows and columns, with strides other than 1."""
    return ", ".join(
        "+".join(f"{piece.size}{piece.axis}" + f"*{piece.stride}" * (piece.stride != 1) for piece in dim) or "1"
        for dim in layout.dims
    )


def _pieces(dims: str, tokens: Tokens) -> tuple[tuple[Piece, ...], ...]:
    """The inverse. Raises IrError for another text."""
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
    """A name, in quotes where its letters need them."""
    if Tokens.is_name(text) and text not in _WORDS:
        return text
    return quoted(text)


def quoted(text: str) -> str:
    """In double quotes, on one line."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in plain) + '"'


class Reader:
    """Reads values; `arrays` are those that digests stand for. Raises IrError with the place for what is none."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self._shared: dict[str, Any] = {}
        self._depth = 0
        self._room = default_memory_limit()  # bytes that arrays of equal elements may still take

    def value(self, tokens: Tokens) -> Any:
        """The next one."""
        if self._depth == _MOST_DEPTH:
            tokens.fail(f"more than {_MOST_DEPTH} values within each other")
        self._depth += 1
        try:
            return self._value(tokens)
        finally:
            self._depth -= 1

    def _value(self, tokens: Tokens) -> Any:
        if tokens.kind == "text":
            return tokens.text()
        if tokens.kind == "number":
            return tokens.number()
        if tokens.take("["):
            return self._until(tokens, "]")
        if tokens.take("("):
            return tuple(self._until(tokens, ")"))
        if tokens.at("{"):
            return self.map(tokens)
        if tokens.take("-"):
            number = self.value(tokens)
            if type(number) not in (int, float):
                tokens.fail("a number is missing after '-'")
            return -number
        word = tokens.name("a value")
        if word in _WORDS:
            return _WORDS[word]
        if word == "set" and tokens.take("["):
            items = self._until(tokens, "]")
            if not all(isinstance(item, str) for item in items):
                tokens.fail("a set holds names in quotes")
            return frozenset(items)
        if word in DTYPES:
            return self._array(tokens, word)
        return self._record(tokens, word)

    def map(self, tokens: Tokens) -> dict[str, Any]:
        """`{key: value}`."""
        found: dict[str, Any] = {}
        tokens.need("{")
        while not tokens.take("}"):
            key = tokens.any_name("a key")
            if key in found:
                tokens.fail(f"{key} occurs twice there")
            tokens.need(":")
            found[key] = self.value(tokens)
            if not tokens.at("}"):
                tokens.need(",")
        return found

    def _until(self, tokens: Tokens, end: str) -> list[Any]:
        found: list[Any] = []
        while not tokens.take(end):
            found.append(self.value(tokens))
            if not tokens.at(end):
                tokens.need(",")
        return found

    def _array(self, tokens: Tokens, dtype: str) -> Any:
        if tokens.take("("):
            return self._scalar(tokens, dtype)
        shape = self.shape(tokens)
        if tokens.take("="):
            return self._elements(tokens, dtype, shape)
        tokens.need("@")
        key = tokens.digest()
        if key not in self.arrays:
            tokens.fail(f"no array @{key} in its file of arrays")
        held = self.arrays[key]
        if held.dtype.name != dtype or held.shape != shape:
            tokens.fail(f"@{key} is {held.dtype.name}{list(held.shape)}, not {dtype}{list(shape)}")
        return held

    def _scalar(self, tokens: Tokens, dtype: str) -> Any:
        """Read `2.5)`, what follows an element type and a parenthesis."""
        value = self.value(tokens)
        tokens.need(")")
        try:
            if not isinstance(value, (bool, int, float)):
                raise TypeError
            return np.dtype(dtype).type(value)
        except (TypeError, ValueError, OverflowError):
            tokens.fail(f"{str(value)[:60]} is no {dtype}")

    def _elements(self, tokens: Tokens, dtype: str, shape: tuple[int, ...]) -> Array:
        """Read the elements of an array, in a list, or the one that all of them are."""
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
        """`[2, 3]`."""
        tokens.need("[")
        sizes = self._until(tokens, "]")
        if not all(type(size) is int and size >= 0 for size in sizes):
            tokens.fail(f"{sizes} is not a shape")
        return tuple(sizes)

    def _record(self, tokens: Tokens, word: str) -> Any:
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
            values["dims"] = _pieces(values["dims"], tokens)
        found: Any = made(kind, values, tokens, word)
        return self._shared.setdefault(number, found) if number else found


def same(one: Any, two: Any) -> bool:
    """Whether two values are equal in type and content, arrays bit by bit; what a record only remembers is not
    compared."""
    if one is two:
        return True
    if isinstance(one, np.ndarray):
        return isinstance(two, np.ndarray) and equal(one, two)
    if isinstance(one, Mapping):
        mine = cast("Mapping[Any, Any]", one)
        theirs = cast("Mapping[Any, Any]", two)
        return isinstance(two, Mapping) and list(mine) == list(theirs) and all(same(mine[k], theirs[k]) for k in mine)
    if type(one) is not type(two):
        return False
    if isinstance(one, (list, tuple)):
        both = cast("list[Any]", one), cast("list[Any]", two)
        return len(both[0]) == len(both[1]) and all(map(same, *both))
    if is_dataclass(one):
        compared = [item.name for item in fields(one) if item.compare and not item.name.startswith("_")]
        return all(same(getattr(one, key), getattr(two, key)) for key in compared)
    return bool(one == two) or (one != one and two != two)
