"""Sizes that a model leaves open (a batch of any size, a sequence of any length), as a caller gives them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from buda_emu.errors import HostError


@dataclass(frozen=True, slots=True)
class OpenSizes:
    """`given` by the name of a size, or by the place of a dimension: `x.0` is the first one of the input x."""

    given: Mapping[str, int]
    known: set[str] = field(default_factory=set[str])

    def of(self, label: str, dim: int, name: str = "") -> int | None:
        """Of an open dimension of an input; None where nobody said. Raises HostError for a size below 1."""
        names = [item for item in (name, f"{label}.{dim}") if item]
        self.known.update(names)
        found = next((self.given[item] for item in names if item in self.given), None)
        if found is not None and found < 1:
            raise HostError(f"compile: size {names[0]}={found}: less than 1")
        return found

    def check(self, model: str) -> None:
        """Raises HostError for a name that the model does not have, when all were asked for."""
        for name in self.given:
            if name not in self.known:
                said = f"open are {', '.join(sorted(self.known))}" if self.known else "no size of it is open"
                raise HostError(f"compile: {model}: size {name!r}: {said}")


def how_to_give(label: str, dim: int, name: str = "") -> str:
    """What is missing, and what to do."""
    word = name or f"{label}.{dim}"
    return f"the open size {word} (give it: --size {word}=1, in Python sizes={{'{word}': 1}}, or example inputs)"
