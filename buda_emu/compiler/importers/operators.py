"""What the importers share: declarations of operators, their refusal, indices that the host picks, sizes that a model
leaves open.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from math import prod
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar, cast

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node, dim_of
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError, UnsupportedError

HEADERS: Final = ("operator", "family", "becomes")
"""Of `Operators.rows`."""
Place = Literal["chip", "host", "compiler", "refused"]
"""Where an operator is computed: `compiler`: when the model is compiled, as it depends on no input."""
COVERAGE_HEADERS: Final = ("operator", "where", "how, or why not")
"""Of the operators of a standard, which are rows of name, place and reason."""
H = TypeVar("H", bound=Callable[..., Any])
F = TypeVar("F", bound=Callable[..., Any])


class Operator(NamedTuple, Generic[H]):
    """One operator, all its overloads. `becomes`: for the docs; `whole`: torch must not take it apart; `place`: where
    it is computed if not in ops of the device."""

    name: str
    family: str
    becomes: str
    handler: H
    whole: bool = False
    place: Place = "chip"


class Operators(Mapping[str, Operator[H]]):
    """Operators by name. The modules `families` of a room declare them, and are imported when one is first asked
    for."""

    def __init__(self, room: str, families: Sequence[str]) -> None:
        self.families = families
        self._room = room
        self._declared: dict[str, Operator[H]] = {}

    def declare(
        self,
        *names: str,
        becomes: Mapping[str, str] | None = None,
        place: Place = "chip",
        whole: bool = False,
        family: str = "",
    ) -> Callable[[F], F]:
        """Declares the handler of some operators. What they become says its first docstring line, or `becomes`, the one
        front-end op that each is. Of a `place` that is not the chip, the docstring says why. `family`: by default the
        module of the handler."""

        def register(handler: F) -> F:
            doc = (handler.__doc__ or "").strip().split("\n")[0]
            handler_family = family or handler.__module__.rpartition(".")[2]
            for name in names:
                assert name not in self._declared, f"{name} is declared twice"
                if place == "chip":
                    text = doc
                else:
                    text = f"not supported: {doc}"
                if becomes is not None:
                    text = f"`{becomes[name]}`"
                self._declared[name] = Operator(
                    name=name, family=handler_family, becomes=text, handler=cast("H", handler), whole=whole, place=place
                )
            return handler

        return register

    @cached_property
    def _all(self) -> dict[str, Operator[H]]:
        for family in self.families:
            import_module(f"{self._room}.{family}")
        return self._declared

    def __getitem__(self, name: str) -> Operator[H]:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Of each its name, its family and what it becomes, by name: for `--ops` and the docs."""
        for name, operator in sorted(self.items()):
            yield name, operator.family, operator.becomes.rstrip(".")


REFUSED: Final = "*"
"""Among names of operators for the host: whatever cannot become ops of the device."""


class NotSupportedError(UnsupportedError):
    """Why one node cannot be taken; the reader collects them."""


class Refusals:
    """What a reader cannot take of a model: how often, and where first."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._places: dict[str, str] = {}

    def add(self, construct: str, place: str) -> None:
        """Once more; `place`: "" where it is nowhere."""
        self.counts[construct] += 1
        self._places.setdefault(construct, place)

    def tell(self, model: str, *advice: str) -> None:
        """Raises UnsupportedError where there is any, naming all and what to do."""
        lines = [
            f"{construct}: {plural(count, 'time')}"
            + f", first at {self._places[construct]}" * bool(self._places[construct])
            for construct, count in self.counts.most_common()
        ]
        if lines:
            raise UnsupportedError(f"compile: {model}: not supported: " + "; ".join((*lines, *advice)))


_TABLE: Final = 4096
"""Rows of zeros and a one are read from a table up to that many, and compared beyond."""
_MOVES: Final = ("reshape", "identity", "transpose", "linear", "expand", "take", "slice")


def is_picked_by_host(b: Builder, node: Node) -> bool:
    """Whether the host can pick the elements of a value: it is an input, or moved from one."""
    while node.op in _MOVES:
        node = b.graph[node.inputs[0]]
    return node.op == "input"


def one_hot_rows(b: Builder, index: Node, depth: int, *, from_end: bool = False, zero: int | None = None) -> Node:
    """Return [..., depth]: 1 where the last dimension counts the index. Negative indices may count `from_end`; index
    `zero`, outside of the dimension, is nowhere. Of an input by a table, exact in every format."""
    if depth <= _TABLE and is_picked_by_host(b, index):
        return table_rows(b, b.constant(np.eye(depth, dtype=np.float32)), index, from_end=from_end, zero=zero)
    return b.one_hot(index, depth=depth, from_end=from_end)


def table_rows(b: Builder, table: Node, index: Node, *, from_end: bool = False, zero: int | None = None) -> Node:
    """Return rows of a constant table by indices that the host picks."""
    attrs: dict[str, Any] = {"from_end": True} if from_end else {}
    if zero is not None:
        attrs["zero"] = zero
    return b.embedding(table, index, **attrs)


class Scatter(NamedTuple):
    """How values come to the places of a dimension: several for a place are reduced (`frontend_ops.scatter`), with the
    element that is there or without it; whether indices may be counted from the end."""

    dim: int
    reduction: str = "none"
    include_self: bool = True
    from_end: bool = False


def scatter_elements(b: Builder, x: Node, index: Node, values: Node, how: Scatter) -> Node:
    """Return x with values at places of one dimension, one for each index. Along other dimensions the indices may be
    fewer: elements behind stay as they are."""
    dim = dim_of(how.dim, len(x.shape))
    for place, (size, count) in enumerate(zip(x.shape, index.shape, strict=True)):
        if place != dim and count < size:
            part = b.slice(x, dim=place, start=0, count=count)
            part = scatter_elements(b, part, index, values, how)
            remainder = b.slice(x, dim=place, start=count, count=size - count)
            return b.concat(part, remainder, dim=place)
    return _emit_scatter(b, x, one_hot_rows(b, index, x.shape[dim], from_end=how.from_end), values, how)


def scatter_slices(b: Builder, x: Node, index: Node, values: Node, how: Scatter) -> Node:
    """Return x with whole slices at places of one dimension, one for each of a row of indices."""
    dim = dim_of(how.dim, len(x.shape))
    size = x.shape[dim]
    if index.op == "constant" and how.reduction == "none":
        places = np.asarray(index.value).astype(np.int64).reshape(-1) % size
        source_rows = np.arange(size)
        update_rows = np.full(size, -1)
        update_rows[places] = np.arange(places.size)
        source_rows[places] = -1
        updates = b.take(values, dim=dim, index=update_rows)
        if (source_rows < 0).all():
            return updates
        return b.add(b.take(x, dim=dim, index=source_rows), updates, dtype=x.dtype)
    rows = one_hot_rows(b, index, size, from_end=how.from_end)
    rows = b.reshape(rows, shape=(*(1,) * dim, prod(index.shape), *(1,) * (len(x.shape) - dim - 1), size))
    rows = b.expand(rows, shape=(*values.shape, size))
    return _emit_scatter(b, x, rows, values, how)


def _emit_scatter(b: Builder, x: Node, rows: Node, values: Node, how: Scatter) -> Node:
    return b.scatter(
        x, rows, values, dim=how.dim, reduction=how.reduction, include_self=how.include_self, dtype=x.dtype
    )


@dataclass(frozen=True, slots=True)
class OpenSizes:
    """`given` by the name of a size, or by the place of a dimension: `x.0` is the first one of the input x."""

    given: Mapping[str, int]
    known: set[str] = field(default_factory=set[str])

    def of(self, label: str, dim: int, name: str = "") -> int | None:
        """Of an open dimension of an input; None where nobody said. Raises HostError for a size below 1."""
        names = [key for key in (name, f"{label}.{dim}") if key]
        self.known.update(names)
        size = next((self.given[key] for key in names if key in self.given), None)
        if size is not None and size < 1:
            raise HostError(f"compile: size {names[0]}={size}: less than 1")
        return size

    def check(self, model: str) -> None:
        """Raises HostError for a name that the model does not have, when all were asked for."""
        for name in self.given:
            if name not in self.known:
                if self.known:
                    hint = f"open are {', '.join(sorted(self.known))}"
                else:
                    hint = "no size of it is open"
                raise HostError(f"compile: {model}: size {name!r}: {hint}")


def missing_size_text(label: str, dim: int, name: str = "") -> str:
    """What is missing, and what to do."""
    word = name or f"{label}.{dim}"
    return f"the open size {word} (give it: --size {word}=1, in Python sizes={{'{word}': 1}}, or example inputs)"
