"""Classes of plain data behave as the standard library's."""

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Any

import pytest

from buda_emu.support import records


def classes(dataclass: Any) -> tuple[Any, ...]:
    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: float = 1.5
        names: list[str] = field(default_factory=list, compare=False)
        of: Any = field(default=None, repr=False)
        fixed: int = field(default=3, init=False)

    @dataclass(slots=True)
    class Counter:
        count: int = 0
        seen: list[int] = field(default_factory=list)

        def __post_init__(self) -> None:
            self.count += 1

    @dataclass(frozen=True, slots=True, eq=False)
    class Thing:
        name: str

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Named:
        first: int
        second: int = 2

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named) and self.first == other.first

        def __repr__(self) -> str:
            return "named"

    @dataclass(frozen=True)
    class Open:
        value: int

    @dataclass(frozen=True)
    class Wider(Open):
        more: int = 0

    @dataclass(frozen=True, slots=True)
    class Nothing:
        pass

    return Point, Counter, Thing, Named, Open, Wider, Nothing


STANDARD, OURS = classes(dataclasses.dataclass), classes(records.dataclass)
GIVEN: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((), {}), ((1,), {}), ((1, 2), {}), ((1, 2.5, ["a"], "b"), {}), ((1, 2, 3, 4, 5), {}), ((), {"x": 2, "of": "x"}),
    ((), {"first": 1}), ((), {"first": 1, "second": 3}), ((), {"value": 1, "more": 2}), ((1,), {"unknown": 2}),
)  # fmt: skip


def outcome(call: Any) -> Any:
    try:
        return call()
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


def said_of(kind: Any) -> list[Any]:
    items = [outcome(lambda args=args, named=named: kind(*args, **named)) for args, named in GIVEN]
    found: list[Any] = [repr(item) for item in items]
    made = [item for item in items if type(item) is kind]
    assert made
    for item in made:
        found.append([item == other for other in [*made, kind.__name__]])
        found.append(outcome(lambda item=item: hash(item) == hash(dataclasses.replace(item))))
        found.append(outcome(lambda item=item: repr(dataclasses.asdict(item))))
        found.append(outcome(lambda item=item: repr(dataclasses.replace(item, first=9))))
        for name in [own.name for own in dataclasses.fields(kind)]:
            found.append(outcome(lambda item=item, name=name: setattr(copy.copy(item), name, 1)))
            found.append(outcome(lambda item=item, name=name: delattr(copy.copy(item), name)))
    found.append([(item.name, item.default, item.kw_only) for item in dataclasses.fields(kind)])
    found.append((kind.__match_args__, getattr(kind, "__slots__", None), kind.__hash__ is None))
    return found


@pytest.mark.parametrize("number", range(len(OURS)), ids=[kind.__name__ for kind in OURS])
def test_as_the_library(number: int) -> None:
    assert said_of(OURS[number]) == said_of(STANDARD[number])


@records.dataclass(frozen=True, slots=True)
class Kept:
    a: int
    b: tuple[int, ...] = ()


def test_pickles() -> None:
    item = Kept(1, (2, 3))
    again = pickle.loads(pickle.dumps(item))
    assert again == item
    with pytest.raises(FrozenInstanceError, match="'a'"):
        again.a = 2


def test_what_changes_itself_cannot_be_frozen() -> None:
    with pytest.raises(TypeError, match="frozen"):

        @records.dataclass(frozen=True)
        class _Changing:  # pyright: ignore[reportUnusedClass]
            a: int

            def __setattr__(self, name: str, value: object) -> None:
                object.__setattr__(self, name, value)
