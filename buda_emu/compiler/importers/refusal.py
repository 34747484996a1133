"""How a handler of an operator refuses what it cannot take, and how a reader reports all refusals at once."""

from collections import Counter
from typing import Final

from buda_emu.checker.text import plural
from buda_emu.errors import UnsupportedError

REFUSED: Final = "*"
"""Among names of operators for the host: whatever cannot become ops of the device."""


class NotSupportedError(UnsupportedError):
    """Why one node cannot be taken; the reader collects them."""


class Refusals:
    """What a reader cannot take of a model: how often, and where first."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._places: dict[str, str] = {}

    def add(self, what: str, place: str) -> None:
        """Once more; `place`: "" where it is nowhere."""
        self.counts[what] += 1
        self._places.setdefault(what, place)

    def tell(self, model: str, *advice: str) -> None:
        """Raises UnsupportedError where there is any, naming all and what to do."""
        lines = [
            f"{what}: {plural(count, 'time')}" + f", first at {self._places[what]}" * bool(self._places[what])
            for what, count in self.counts.most_common()
        ]
        if lines:
            raise UnsupportedError(f"compile: {model}: not supported: " + "; ".join((*lines, *advice)))
