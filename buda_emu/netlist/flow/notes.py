"""What the walk of a program noticed, each once for a place."""

from collections.abc import Callable

from buda_emu.netlist.nodes import Mark
from buda_emu.records import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """A finding to be: the rule's id, place, message and hint, as in `checker.Finding`."""

    rule: str
    place: Mark
    message: str
    hint: str | Callable[[], str] = ""


class Notes:
    """Notes in the order in which they were made. A place breaks a rule once, however often it is passed."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Mark, str], Note] = {}

    def add(self, rule: str, place: Mark, message: str, hint: str | Callable[[], str] = "", about: str = "") -> None:
        """`about`: what stands at the place, where several things do."""
        self._found.setdefault((rule, place, about), Note(rule, place, message, hint))

    def all(self) -> tuple[Note, ...]:
        """All of them."""
        return tuple(self._found.values())
