"""What the readers share: where findings go, what they are about, and the architecture known so far."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from buda_emu.netlist.nodes import Mark, Node, same
from buda_emu.support.checker.checks import require_few
from buda_emu.support.checker.diagnostic import Diagnostic, Severity
from buda_emu.support.checker.fix import removing

Place: TypeAlias = Node | Mark
T = TypeVar("T")
_SAME: Final = removing("it is the same again: leave it out")
_ANOTHER: Final = removing("leave it out, or choose another name", safe=False)


class ReadCache:
    """Objects that an earlier version of a text was read as without a finding, by the node of their body: an editor
    reads the same nodes again where nothing changed."""

    __slots__ = ("_before", "_now")

    def __init__(self) -> None:
        self._before: dict[int, tuple[Node, object, Any]] = {}
        self._now: dict[int, tuple[Node, object, Any]] = {}

    def next(self) -> None:
        """Another version is going to be read: what this one did not use is forgotten."""
        self._before = self._now
        self._now = {}

    def get(self, node: Node, key: object) -> Any:
        """What a node was read as under the same key, None where that is not known."""
        known = self._before.get(id(node))
        if known is None or known[0] is not node or known[1] != key:
            return None
        self._now[id(node)] = known
        return known[2]

    def put(self, node: Node, key: object, read: object) -> None:
        """Keep what a node was read as."""
        self._now[id(node)] = (node, key, read)


class Context:
    """State of one reading. Sections are read in document order and look at what was read before (NETLIST 1.1)."""

    __slots__ = ("arch", "archs", "diagnostics", "findings", "kept", "path", "requested_arch", "subject")

    def __init__(self, path: str, requested_arch: str | None, kept: "ReadCache | None" = None) -> None:
        self.path = path
        self.requested_arch = requested_arch
        self.arch = ""  # "" is unknown: neither grayskull nor blackhole (NETLIST 1.1, 11.3 C3)
        self.archs: tuple[str, ...] = ()
        self.subject = ""  # the object that is being read, as it starts a message: "queue q0"
        self.kept = kept  # what an earlier version of the text was read as
        self.diagnostics: list[Diagnostic] = []
        self.findings = 0  # errors so far; an object during whose reading it grew is broken

    def reuse_or_read(self, node: Node, key: object, read: Callable[[], T]) -> T:
        """What an earlier version had under the same key in this place, else what is read there now; that is kept if
        there is no finding about it."""
        if self.kept is None:
            return read()
        known: T | None = self.kept.get(node, key)
        if known is not None:
            return known
        told = len(self.diagnostics)
        item = read()
        if len(self.diagnostics) == told:
            self.kept.put(node, key, item)
        return item

    @staticmethod
    def again(first: Node | None, again: Node) -> str:
        """The hint of a name that occurs twice: what is written there again can be left out."""
        return _SAME if first is not None and same(first, again) else _ANOTHER

    def report(self, rule: str, place: Place, message: str, hint: str = "", severity: Severity = "error") -> None:
        """Add a finding about the object that is being read. Raises TooManyFindingsError."""
        require_few(self.diagnostics, place, self.path, rule, "error")
        text = f"{self.subject}: {message}" if self.subject else message
        self.diagnostics.append(Diagnostic.at(place, self.path, rule, severity, text, hint))
        self.findings += severity == "error"
