"""Shared parts of the importers: tables of operators, collected refusals, indices that the host picks, sizes that a
model leaves open."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from math import prod
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node, dim_of
from buda_emu.compiler.importers.index_inputs import check_on_host, is_picked_by_host
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError, UnsupportedError

HEADERS: Final = ("operator", "family", "becomes")
"""Column titles of `Operators.rows`."""
Place = Literal["chip", "host", "compiler", "refused"]
"""The place where an operator is computed. "compiler" means at compile time, because it depends on no input."""
COVERAGE_HEADERS: Final = ("operator", "where", "how, or why not")
"""Column titles of the coverage of a standard: name, place and reason of each operator."""
H = TypeVar("H", bound=Callable[..., Any])
F = TypeVar("F", bound=Callable[..., Any])


class Operator(NamedTuple, Generic[H]):
    """An operator with all its overloads. `becomes` is its description in the documentation; an `intact` operator must
    not be decomposed by torch; `place` is where it is computed."""

    name: str
    family: str
    becomes: str
    handler: H
    intact: bool = False
    place: Place = "chip"


class Operators(Mapping[str, Operator[H]]):
    """A table of operators by name. The modules `families` of the package `room` declare them, and are imported at the
    first look-up."""

    def __init__(self, room: str, families: Sequence[str]) -> None:
        self.families = families
        self._room = room
        self._declared: dict[str, Operator[H]] = {}

    def declare(
        self,
        *names: str,
        becomes: Mapping[str, str] | None = None,
        place: Place = "chip",
        intact: bool = False,
        family: str = "",
    ) -> Callable[[F], F]:
        """Return a decorator that declares the handler of some operators. The first line of the handler's docstring
        describes what an operator becomes, or why it is refused if `place` is not the chip. `becomes` replaces it by
        the one front-end op of each name. `family` defaults to the module of the handler."""

        def register(handler: F) -> F:
            """Enter the handler in the table under each of the names, and return it unchanged."""
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
                    name=name,
                    family=handler_family,
                    becomes=text,
                    handler=cast("H", handler),
                    intact=intact,
                    place=place,
                )
            return handler

        return register

    @cached_property
    def _all(self) -> dict[str, Operator[H]]:
        """All declared operators; the first access imports the modules that declare them."""
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
        """Yield name, family and description of each operator by name, for `--ops` and the documentation."""
        for name, operator in sorted(self.items()):
            yield name, operator.family, operator.becomes.rstrip(".")


REFUSED: Final = "*"
"""Stands in the list of operators for the host for every operator that cannot become ops of the device."""


class NotSupportedError(UnsupportedError):
    """A single operator cannot be imported. The reader collects these errors and reports them together."""


ARGUMENT_ERRORS: Final = (NotSupportedError, TypeError, ValueError, LookupError, ArithmeticError)
"""What a handler raises for arguments that it cannot take; the readers refuse the operator by name."""


def reason_of(error: Exception) -> str:
    """Return the reason of a refused operator, to be written behind its name: " (...)", or "" if the error gives
    none."""
    if not str(error):
        return ""
    if isinstance(error, (NotSupportedError, TypeError, ValueError)):
        return f" ({error})"
    return f" (arguments of this form: {type(error).__name__}, {error})"


_OF_TORCH: Final = re.compile(r"[\\/](site|dist)-packages[\\/]torch[\\/]")


def innermost_line(frames: Sequence[str]) -> str:
    """Return the innermost of the frames of a model, outermost first, that is not torch's own; where all are, the
    innermost, and "" without any."""
    model_frames = [frame for frame in frames if not _OF_TORCH.search(frame)]
    return next(reversed(model_frames or [*frames]), "")


_MOST_OTHER_PLACES: Final = 4
"""Places after the first that the message about a construct lists."""


class Refusals:
    """A collection of what a reader cannot import: each construct with its count and its places."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._places: dict[str, list[str]] = {}

    def add(self, construct: str, place: str) -> None:
        """Count a construct that cannot be imported once more; `place` is where it stands in the model, "" if
        nowhere."""
        self.counts[construct] += 1
        places = self._places.setdefault(construct, [])
        if place not in places:
            places.append(place)

    def raise_if_any(self, model: str, *advice: str) -> None:
        """Raise UnsupportedError naming all refused constructs and what to do, if there are any."""
        lines = [
            f"{construct}: {plural(count, 'time')}{self._places_text(construct)}"
            for construct, count in self.counts.most_common()
        ]
        if lines:
            raise UnsupportedError(f"compile: {model}: not supported: " + "; ".join((*lines, *advice)))

    def _places_text(self, construct: str) -> str:
        """Return the words about the places of a construct: the first, and as many others as a message has room for, if
        they are lines of the model's source, all of which have to be changed."""
        first, *others = self._places[construct]
        if not first:
            return ""
        lines = [place for place in others if place.startswith('File "')][:_MOST_OTHER_PLACES]
        return "".join((f", first at {first}", *(f", then at {line}" for line in lines)))


_TABLE: Final = 4096
"""Limit for the depth up to which one-hot rows are read from a table; beyond it they come from comparisons."""


def one_hot_rows(b: Builder, index: Node, depth: int, *, from_end: bool = False, zero: int | None = None) -> Node:
    """Return [..., depth]: 1 where the last dimension counts the index, else 0. Negative indices may count `from_end`;
    index `zero`, outside of the dimension, gives a row of zeros. Rows picked by the host come from a table and are
    exact in every format."""
    if depth <= _TABLE and is_picked_by_host(b, index):
        return table_rows(b, b.constant(np.eye(depth, dtype=np.float32)), index, from_end=from_end, zero=zero)
    check_on_host(b, index, depth, from_end=from_end, zero=zero)
    return b.one_hot(index, depth=depth, from_end=from_end)


def picked_rows(b: Builder, index: Node, depth: int, *, from_end: bool = False) -> list[Node]:
    """Return the one-hot rows of an index that the host knows, as operands of `gather` and `gather_elements`: the host
    refuses an index outside of the dimension. Empty for an index that is computed, or a dimension that is too long; the
    host still checks what it can."""
    if depth > _TABLE or not is_picked_by_host(b, index):
        check_on_host(b, index, depth, from_end=from_end)
        return []
    return [one_hot_rows(b, index, depth, from_end=from_end)]


def constant_places(index: Any, size: int, *, from_end: bool = True) -> NDArray[np.int64]:
    """Return constant indices of a dimension of that size, counted from its beginning. Negative ones may count
    `from_end`. Raises NotSupportedError for an index that the dimension does not have."""
    places = np.asarray(index).astype(np.int64)
    least = -size if from_end else 0
    outside = places[(places < least) | (places >= size)]
    if outside.size:
        raise NotSupportedError(f"index {outside.flat[0]} of a dimension of {size}: it has {least} to {size - 1}")
    return places % size


def table_rows(b: Builder, table: Node, index: Node, *, from_end: bool = False, zero: int | None = None) -> Node:
    """Return the rows of a constant table by indices that the host picks. Negative indices may count `from_end`; index
    `zero`, outside of the table, reads a row of zeros."""
    attrs: dict[str, Any] = {"from_end": True} if from_end else {}
    if zero is not None:
        attrs["zero"] = zero
    return b.embedding(table, index, **attrs)


class Scatter(NamedTuple):
    """Options of a scatter along dimension `dim`: how several values for one place are reduced
    (`frontend_ops.scatter`), whether the element at the place takes part, and whether negative indices count from the
    end."""

    dim: int
    reduction: str = "none"
    include_self: bool = True
    from_end: bool = False


def scatter_elements(b: Builder, x: Node, index: Node, values: Node, how: Scatter) -> Node:
    """Return x with values written to places of one dimension, one place for each index. If the indices are fewer along
    other dimensions, the elements beyond them stay."""
    dim = dim_of(how.dim, len(x.shape))
    for place, (size, count) in enumerate(zip(x.shape, index.shape, strict=True)):
        if place != dim and count < size:
            part = b.slice(x, dim=place, start=0, count=count)
            part = scatter_elements(b, part, index, values, how)
            remainder = b.slice(x, dim=place, start=count, count=size - count)
            return b.concat(part, remainder, dim=place)
    return _emit_scatter(b, x, one_hot_rows(b, index, x.shape[dim], from_end=how.from_end), values, how)


def scatter_slices(b: Builder, x: Node, index: Node, values: Node, how: Scatter) -> Node:
    """Return x with whole slices written to places of one dimension, one slice for each of a row of indices."""
    dim = dim_of(how.dim, len(x.shape))
    size = x.shape[dim]
    if index.op == "constant" and how.reduction == "none":
        places = constant_places(index.value, size).reshape(-1)
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
    """Emit the front-end op `scatter` on rows along one dimension."""
    return b.scatter(
        x, rows, values, dim=how.dim, reduction=how.reduction, include_self=how.include_self, dtype=x.dtype
    )


@dataclass(frozen=True, slots=True)
class OpenSizes:
    """Sizes requested for the open dimensions of a model. `given` has them by name, or by input and dimension: `x.0` is
    the first dimension of the input x."""

    given: Mapping[str, int]
    known: set[str] = field(default_factory=set[str])

    def of(self, label: str, dim: int, name: str = "") -> int | None:
        """Return the size requested for an open dimension of an input, or None, and note the dimension as open, for
        `check`. `name`: the model's name of the size. Raise HostError for a size below 1."""
        names = [key for key in (name, f"{label}.{dim}") if key]
        self.known.update(names)
        size = next((self.given[key] for key in names if key in self.given), None)
        if size is not None and size < 1:
            raise HostError(f"compile: size {names[0]}={size}: less than 1")
        return size

    def check(self, model: str) -> None:
        """Raise HostError for a requested size that no open dimension has asked for. Call it when all inputs are
        read."""
        for name in self.given:
            if name not in self.known:
                if self.known:
                    hint = f"open are {', '.join(sorted(self.known))} (x.0 is the first dimension of an input x)"
                else:
                    hint = "no size of it is open"
                raise HostError(f"compile: {model}: size {name!r}: {hint}")


def missing_size_text(label: str, dim: int, name: str = "") -> str:
    """Return the message for an open size that was not given, with the ways to give it."""
    word = name or f"{label}.{dim}"
    return f"the open size {word} (give it: --size {word}=1, in Python sizes={{'{word}': 1}}, or example inputs)"
