"""The records of a document: modules, functions, ops, values, types and attributes. They are plain data; each op knows
its place."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias

from buda_emu.foreign.vpux.elements import Element, element
from buda_emu.foreign.vpux.layout import DimsOrder
from buda_emu.support.checker import Diagnostic, TextPlace
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass

DYNAMIC = -1
"""A dimension written `?`."""


def _empty_mapping() -> "Mapping[str, Attribute]":
    """Return an empty mapping, the default of fields that hold attributes."""
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol `@a::@b`, or the old `@a.b` in one name."""

    path: tuple[str, ...]

    @property
    def leaf(self) -> str:
        """The last name of the path."""
        return self.path[-1]

    def __str__(self) -> str:
        return "::".join(f"@{name}" for name in self.path)


@dataclass(frozen=True, slots=True)
class AffineMap:
    """An `affine_map<..>`; `order` is None where it does not permute plain dimensions."""

    text: str
    order: DimsOrder | None


@dataclass(frozen=True, slots=True)
class Dense:
    """The constant content `dense<text> : type`, undecoded; `kind` is dense, dense_resource or ref."""

    kind: str
    text: str
    type: "Type | None"


@dataclass(frozen=True, slots=True)
class Opaque:
    """An attribute of some dialect, `#VPUIP.DMADescriptorAttr<len = 2 : i64>`: its name, its text and its fields if it
    has any."""

    name: str
    text: str
    fields: Mapping[str, "Attribute"] = field(default_factory=_empty_mapping)


@dataclass(frozen=True, slots=True)
class Type:
    """A type. `kind` is memref, tensor, distributed, bounded, barrier or other; `name` is the name that messages use.

    `shape` and `strides` (in elements) are logical, None where none are written; `order` is None where what is written
    is not a permutation. `traits` are the fields of its layout and of a distribution.
    """

    kind: str
    name: str
    text: str
    shape: tuple[int, ...] | None = None
    element_name: str = ""
    order: DimsOrder | None = None
    strides: tuple[int, ...] | None = None
    space: str | None = None
    space_index: int | None = None
    traits: Mapping[str, "Attribute"] = field(default_factory=_empty_mapping)
    parts: tuple["Type", ...] = ()

    @property
    def element(self) -> Element | None:
        """The element type; None where its width is not known."""
        return element(self.element_name)

    @property
    def is_buffer(self) -> bool:
        """True for a type that describes elements in memory, with a shape."""
        return self.kind in ("memref", "tensor", "distributed") and self.shape is not None

    @property
    def is_distributed(self) -> bool:
        """True for a buffer over several slices of CMX."""
        return self.kind == "distributed"

    @property
    def bits(self) -> int:
        """Bits of an element; 0 where they are not known."""
        element_type = self.element
        if element_type is None:
            return 0
        return element_type.bits

    @property
    def is_laid_out(self) -> bool:
        """True when shape, order and strides are known and of one rank, and the width of elements is known, so that
        every element has an address."""
        rank = -1 if self.shape is None else len(self.shape)
        return (
            self.is_buffer
            and self.order is not None
            and self.order.rank == rank
            and (self.strides is None or len(self.strides) == rank)
            and DYNAMIC not in (self.shape or ())
            and self.bits > 0
        )

    @property
    def count(self) -> int:
        """The number of elements."""
        product = 1
        for size in self.shape or ():
            product *= size
        return product

    @property
    def compact_bytes(self) -> int:
        """Bytes of the elements without gaps, rounded up to a whole byte."""
        return (self.count * self.bits + 7) // 8

    @property
    def memory_shape(self) -> tuple[int, ...]:
        """The shape in memory order, outermost first. Defined only for a type that `is_laid_out`."""
        return self._order.to_memory(self.shape or ())

    @property
    def memory_strides(self) -> tuple[int, ...]:
        """Strides in bits, outermost first; compact where none are written. Defined only for a type that
        `is_laid_out`."""
        bits = self.bits
        if self.strides is not None:
            return tuple(stride * bits for stride in self._order.to_memory(self.strides))
        strides: list[int] = []
        for size in reversed(self.memory_shape):
            strides.append(bits)
            bits *= size
        return tuple(reversed(strides))

    @property
    def is_compact(self) -> bool:
        """True when there are no gaps between elements."""
        bits = self.bits
        for size, stride in zip(reversed(self.memory_shape), reversed(self.memory_strides), strict=True):
            if stride != bits and size != 1:
                return False
            bits *= size
        return True

    @property
    def _order(self) -> DimsOrder:
        """The order in memory; that of the logical dimensions where none is known."""
        if self.order is not None:
            return self.order
        return DimsOrder.identity(len(self.shape or ()))

    def __str__(self) -> str:
        return self.text


Plain: TypeAlias = int | float | str | bool | None
Attribute: TypeAlias = (
    "Plain | Symbol | AffineMap | Dense | Opaque | Type | tuple[Attribute, ...] | Mapping[str, Attribute]"
)
"""Booleans, numbers and strings as Python has them; a unit attribute is True; lists are tuples."""


@dataclass(eq=False, slots=True)
class Value:
    """A value that an op or an argument defines; it is equal only to itself."""

    name: str
    type: Type | None
    argument: int | None = None
    """Number of the function's argument that it is."""


@dataclass(frozen=True, slots=True)
class Use:
    """An operand: the value (None: not defined), the type written here, and the name it has inside (`as %x`)."""

    name: str
    value: Value | None
    written: Type | None = None
    inner: Value | None = None

    @property
    def type(self) -> Type | None:
        """The type written here, else that of the value."""
        if self.written is not None:
            return self.written
        return None if self.value is None else self.value.type


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """An operation. `operands` are by clause (`inputs`, `waits`, "" for a list without a word), `attributes` include
    what the op's format names. `known` says that the reader has its format; of other ops only the name is kept."""

    name: str
    offset: int
    end: int
    known: bool = True
    results: tuple[Value, ...] = ()
    types: tuple[Type, ...] = ()
    operands: Mapping[str, tuple[Use, ...]] = field(default_factory=lambda: MappingProxyType[str, tuple[Use, ...]]({}))
    attributes: "Mapping[str, Attribute]" = field(default_factory=_empty_mapping)
    body: tuple["Op", ...] = ()
    blocks: int = 0

    def uses(self) -> Iterator[Use]:
        """Yield the operands of all clauses."""
        for items in self.operands.values():
            yield from items

    def clause(self, word: str) -> tuple[Use, ...]:
        """Return the operands of a clause; none if it is absent."""
        return self.operands.get(word, ())

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute, or the default where it is absent or of another type."""
        attribute = self.attributes.get(name)
        if isinstance(attribute, int):
            return int(attribute)
        return default

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return an attribute that is a list of integers, None where it is no list."""
        attribute = self.attributes.get(name)
        if not isinstance(attribute, tuple):
            return None
        return tuple(int(number) for number in attribute if isinstance(number, int))

    def walk(self) -> Iterator["Op"]:
        """Yield the op itself, then all ops inside, in program order."""
        yield self
        for op in self.body:
            yield from op.walk()


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function; `body` is None for a declaration. `modules` enclose it, outermost first; the first is the split."""

    name: str
    split: int
    offset: int
    end: int
    arguments: tuple[Value, ...]
    results: tuple[Type, ...]
    attributes: Mapping[str, Attribute]
    body: tuple[Op, ...] | None
    blocks: int
    modules: tuple["Module", ...]
    document: "VpuxFile"

    def walk(self) -> Iterator[Op]:
        """Yield all ops in program order, each before those inside of it."""
        for op in self.body or ():
            yield from op.walk()

    @property
    def place(self) -> TextPlace:
        """Line and columns of the function."""
        return self.document.place(self.offset, self.end)

    @property
    def has_unknown_ops(self) -> bool:
        """True when the reader kept only the name of some op, so that values without a definition may be its
        results."""
        return any(not op.known for op in self.walk())

    def kernel(self, symbol: Symbol) -> "Function | None":
        """Return the declaration of the software kernel that an op of this function calls by `symbol`, such as
        @VPU.SW::@builtin_relu: the nearest enclosing module with such a module and function counts. None where there is
        none (VPUX 3)."""
        *path, leaf = symbol.path
        room = ".".join(path)
        for module in reversed(self.modules):
            for inner in module.modules:
                if inner.name == room:
                    for function in inner.functions:
                        if function.name == leaf:
                            return function
        return None

    def module_ops(self, name: str) -> list[tuple["Module", Op]]:
        """Return the ops of that name that stand in an enclosing module, not in a function; innermost module first."""
        pairs: list[tuple[Module, Op]] = []
        for module in reversed(self.modules):
            pairs += [(module, op) for op in module.ops if op.name == name]
        return pairs


@dataclass(slots=True, eq=False)
class Module:
    """A module, or a split as a whole."""

    name: str
    attributes: "Mapping[str, Attribute]" = field(default_factory=_empty_mapping)
    functions: list[Function] = field(default_factory=list[Function])
    ops: list[Op] = field(default_factory=list[Op])
    modules: list["Module"] = field(default_factory=list["Module"])


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a file, between lines that begin with `// -----`; `error` is offset and reason where it could not be
    read."""

    number: int
    start: int
    end: int
    module: Module | None
    error: tuple[int, str] | None = None


class VpuxFile:
    """A file as records. `splits` are its parts; one that could not be read has an error and no functions."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.splits: list[Split] = []
        self._functions: list[Function] = []

    @property
    def functions(self) -> tuple[Function, ...]:
        """Functions with a body, in program order."""
        return tuple(self._functions)

    def add(self, split: Split, functions: Sequence[Function]) -> None:
        """Add a split that the reader has finished, with its functions that have a body."""
        self.splits.append(split)
        self._functions.extend(functions)

    @cached_property
    def _starts(self) -> list[int]:
        """Offsets of the first characters of all lines."""
        starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts

    def place(self, offset: int, end: int = 0) -> TextPlace:
        """Return line and columns of characters of the text."""
        line = bisect_right(self._starts, offset)
        column = offset - self._starts[line - 1] + 1
        if line < len(self._starts):
            last = self._starts[line] - 1
        else:
            last = len(self.text)
        return TextPlace(line, column, column + max(min(end, last) - offset, 0))

    def line(self, offset: int) -> int:
        """Return the number of the line on which a character stands, from 1."""
        return bisect_right(self._starts, offset)

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text."""
        return self.text.split("\n")

    def function(self, name: str | None = None, split: int | None = None) -> Function:
        """Return the first function of that name; without a name, `main` or the only function.

        Raises HostError where there is none, or where it is not clear which.
        """
        candidates = [candidate for candidate in self.functions if split is None or candidate.split == split]
        if split is None:
            source = self.path
        else:
            source = f"split {split} of {self.path}"
        if not candidates:
            splits = sorted({function.split for function in self.functions})
            others = f"; splits with functions: {', '.join(map(str, splits))}" if splits else ""
            raise HostError(f"{source} holds no function that could be read{others}")
        named = [candidate for candidate in candidates if candidate.name == (name or "main")]
        if named:
            return named[0]
        if name is None and len(candidates) == 1:
            return candidates[0]
        names = sorted({candidate.name for candidate in candidates})
        if name is None:
            raise HostError(f"{source} holds several functions, choose one (--function NAME): {', '.join(names)}")
        raise HostError(f"{source} holds no function {name}, {near(name, names)}".removesuffix(", "))


@dataclass(frozen=True, slots=True)
class VpuxDiagnostic(Diagnostic):
    """A finding with its split and function; the function is empty for a split that is unreadable."""

    split: int = 0
    function: str = ""
