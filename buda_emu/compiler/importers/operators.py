"""The operators of one kind of models: one declaration each, which the reader, `--ops` and the docs read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar, cast

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

        def made(handler: F) -> F:
            doc = (handler.__doc__ or "").strip().split("\n")[0]
            own = family or handler.__module__.rpartition(".")[2]
            for name in names:
                assert name not in self._declared, f"{name} is declared twice"
                text = doc if place == "chip" else f"not supported: {doc}"
                text = text if becomes is None else f"`{becomes[name]}`"
                self._declared[name] = Operator(name, own, text, cast("H", handler), whole, place)
            return handler

        return made

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
