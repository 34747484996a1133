"""State that the readers of one document share: its findings, the object being read, and the architecture read so
far."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from buda_emu.netlist.nodes import Mark, Node, Scalar
from buda_emu.netlist.repetitions import Kind, Repetition, repetition_hint
from buda_emu.netlist.sourced import Sourced
from buda_emu.support.checker.checks import require_few
from buda_emu.support.checker.diagnostic import Diagnostic, Severity

Place: TypeAlias = Node | Mark
T = TypeVar("T")


class ReadCache:
    """Objects that were read from an earlier version of a text without a finding, by the node of their body.

    In an editor, two versions of a text share the nodes of unchanged parts, so these need not be read again.
    """

    __slots__ = ("_before", "_now")

    def __init__(self) -> None:
        self._before: dict[int, tuple[Node, object, Any]] = {}
        self._now: dict[int, tuple[Node, object, Any]] = {}

    def next(self) -> None:
        """Begin another version of the text; objects that the present version did not use are dropped."""
        self._before = self._now
        self._now = {}

    def get(self, node: Node, key: object) -> Any:
        """Return the object that was read from a node, None if there is none or it was read under another `key`,
        which holds all else on which reading it depends.
        """
        entry = self._before.get(id(node))
        if entry is None or entry[0] is not node or entry[1] != key:
            return None
        self._now[id(node)] = entry
        return entry[2]

    def put(self, node: Node, key: object, read: object) -> None:
        """Store the object that was read from a node under `key` (see `get`)."""
        self._now[id(node)] = (node, key, read)


class Context:
    """State of one reading. Sections are read in document order and may look only at earlier ones (NETLIST 1.1)."""

    __slots__ = (
        "arch",
        "archs",
        "cache",
        "diagnostics",
        "findings",
        "path",
        "repetitions",
        "requested_arch",
        "subject",
    )

    def __init__(self, path: str, requested_arch: str | None, cache: "ReadCache | None" = None) -> None:
        self.path = path
        self.requested_arch = requested_arch
        self.arch = ""  # "" is unknown: neither grayskull nor blackhole (NETLIST 1.1, 11.3 C3)
        self.archs: tuple[str, ...] = ()
        self.subject = ""  # the object that is being read, as it starts a message: "queue q0"
        self.cache = cache  # objects of an earlier version of the text
        self.diagnostics: list[Diagnostic] = []
        self.repetitions: list[Repetition] = []  # names that occur twice, in the order of their findings
        self.findings = 0  # errors so far; an object during whose reading it grew is broken

    def reuse_or_read(self, node: Node, key: object, read: Callable[[], T]) -> T:
        """Return the object that an earlier version of the text had at this node under the same `key`
        (`ReadCache.get`), else the result of `read`, which is stored unless there are findings about it.
        """
        if self.cache is None:
            return read()
        stored: T | None = self.cache.get(node, key)
        if stored is not None:
            return stored
        count_before = len(self.diagnostics)
        parsed = read()
        if len(self.diagnostics) == count_before:
            self.cache.put(node, key, parsed)
        return parsed

    def report_repetition(
        self, rule: str, kind: Kind, key: Scalar, body: Node, first: Sourced | None, line: int
    ) -> None:
        """Report the second object of a name under its key; the first stands in `line` and is None where its map is not
        at hand. Raises TooManyFindingsError."""
        name = self.subject.partition(" ")[2]
        phrase = {"op": "an op"}.get(kind, f"a {kind}")
        first_body = None
        if first is not None:
            first_body = first.source
        hint = repetition_hint(first_body, body)
        index = len(self.diagnostics)
        self.report(rule, key, f"there is already {phrase} of that name, in line {line}", hint)
        self.repetitions.append(Repetition(kind=kind, name=name, key=key, body=body, first=first, finding=index))

    def report(self, rule: str, place: Place, message: str, hint: str = "", severity: Severity = "error") -> None:
        """Add a finding about the object that is being read. Raises TooManyFindingsError."""
        require_few(self.diagnostics, place, self.path, rule, "error")
        if self.subject:
            message = f"{self.subject}: {message}"
        self.diagnostics.append(Diagnostic.at(place, self.path, rule, severity, message, hint))
        self.findings += severity == "error"
