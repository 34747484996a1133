"""Reads the fields of a test-config into its dataclasses and collects what is wrong with them (NETLIST 5, 5.1, 5.3)."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, fields
from math import inf, isinf
from typing import Any, ClassVar, Final, TypeVar

from buda_emu.checker.checks import require_few
from buda_emu.checker.diagnostic import Diagnostic
from buda_emu.checker.suggest import near
from buda_emu.checker.text import quoted
from buda_emu.netlist import nodes
from buda_emu.netlist.scalars import parse_float, parse_int
from buda_emu.spec.comparison import Comparison
from buda_emu.spec.stimulus import STIMULUS_KINDS, Stimulus

T = TypeVar("T", Stimulus, Comparison)
Entry = tuple[str, nodes.Scalar, nodes.Node]
MAX_PATTERN: Final = 400
_NESTED_REPEAT: Final = r"\([^()]*[+*}][^()]*\)[+*{]"
_LAST_CELL: Final = 32


class SectionReader:
    """One reading of a section; `findings` grows. `type_rule`: the rule for a value of another type."""

    type_rule: ClassVar[str]

    def __init__(self, path: str, strict: bool) -> None:
        self._path = path
        self._strict = strict
        self.findings: list[Diagnostic] = []

    def entries(self, node: nodes.Node | None, what: str) -> Iterator[Entry]:
        """The pairs of a map; nothing for what is absent or empty, a finding for anything else."""
        if isinstance(node, nodes.Mapping):
            yield from node.items()
        elif node is not None and not (isinstance(node, nodes.Scalar) and node.is_null):
            self._add(self.type_rule, node, f"{what} is a map")

    def names(self, node: nodes.Node | None, what: str, of: str = "names") -> tuple[str, ...]:
        """A list of names."""
        if node is None or (isinstance(node, nodes.Scalar) and node.is_null):
            return ()
        if not isinstance(node, nodes.Sequence):
            self._add(self.type_rule, node, f"{what} is a list of {of}")
            return ()
        return tuple(item.text for item in node.items if isinstance(item, nodes.Scalar))

    def _add(self, rule: str, node: nodes.Node, message: str, hint: str = "") -> None:
        found = self._finding(rule, node, message, hint)
        require_few(self.findings, node, self._path, rule, found.severity)
        self.findings.append(found)

    def _finding(self, rule: str, node: nodes.Node, message: str, hint: str) -> Diagnostic:
        from buda_emu.netlist.rules import RULES  # with all rules, and only for what is wrong

        severity = RULES[rule].at(self._strict)
        mark = node.mark
        return Diagnostic.at(mark, self._path, rule, severity, message, hint)


class FieldReader(SectionReader):
    """Reads a test-config."""

    type_rule = "V201"

    def entry(self, kind: type[T], pairs: list[Entry], where: str) -> T:
        """One stimulus or comparison. A field without legal value keeps its default and is reported."""
        known = {item.name: item for item in fields(kind)}
        values: dict[str, Any] = {}
        for key, key_node, node in pairs:
            if key == "overrides":
                continue  # read apart, and ignored inside an override (NETLIST 5.1)
            if key not in known:
                self._add("V200", key_node, f"{where}: unknown field {quoted(key)}", near(key, known))
                continue
            read, expected = _READERS[_type_name(known[key])]
            value = read(node)
            if value is None:
                self._add("V201", node, f"{where}: {key} is {expected}")
            else:
                values[key] = value.lower() if kind is Stimulus and key == "type" else value
        return kind(**values)

    def overrides(self, node: nodes.Node | None, where: str) -> Iterator[Entry]:
        """The pairs of an `overrides` map: pattern, key, fields. Present but empty is refused (NETLIST 5)."""
        if node is None:
            return
        if not isinstance(node, nodes.Mapping) or not node.pairs:
            self._add("V202", node, f"{where}: overrides is empty", "leave the key out")
            return
        for pattern, key_node, value in node.items():
            problem = _pattern_problem(pattern)
            if problem:
                self._add("V203", key_node, f"{where}: override {quoted(pattern)} {problem}")
            yield pattern, key_node, value

    def unusable(
        self, item: Stimulus | Comparison, pairs: list[Entry], place: nodes.Node, where: str
    ) -> Diagnostic | None:
        """What refuses an entry when it is used, at the field that is to blame, else at `place`."""
        problem = _stimulus_problem(item) if isinstance(item, Stimulus) else _comparison_problem(item)
        if problem is None:
            return None
        blamed, message, hint = problem
        given = {key: value for key, _, value in pairs}
        node = given.get(blamed) or given.get("type", place)
        return self._finding("V204", node, f"{where}: {message}", hint)


Problem = tuple[str, str, str]  # the field to blame, what is wrong, a hint


def _stimulus_problem(item: Stimulus) -> Problem | None:
    """NETLIST 5.1: an invalid type and a missing bound are fatal on use. So is an infinity, with which nothing can be
    reckoned, but the one of a Constant."""
    kinds = {kind.lower(): needed for kind, (_, needed) in STIMULUS_KINDS.items()}
    if item.type not in kinds:
        return _unknown_word("type", item.type, STIMULUS_KINDS)
    for name in kinds[item.type]:
        value = getattr(item, name)
        if value != value or (isinstance(value, int) and value < 0):
            return name, f"a stimulus of type {item.type} needs {name}", ""
    for spec in fields(item):
        value = getattr(item, spec.name)
        if isinstance(value, float) and isinf(value) and spec.name != "constant_value":
            return spec.name, f"{spec.name} is a finite number", ""
        if spec.name.endswith("_freq") and not 0 <= value <= 1:
            return spec.name, f"{spec.name} is a share from 0 to 1", ""
    return None


def _comparison_problem(item: Comparison) -> Problem | None:
    """NETLIST 5.3: invalid words, negative tolerances and a PCC beyond 1 are fatal on use."""
    for spec in fields(item):
        words: tuple[str, ...] = spec.metadata["words"]
        word = getattr(item, spec.name)
        if words and word.lower() not in {known.lower() for known in words}:
            return _unknown_word(spec.name, word, words)
    for name in ("atol", "rtol"):
        if not 0 <= getattr(item, name) < inf:
            return name, f"{name} is a tolerance of 0 or more, and finite", ""
    if not abs(item.check_pct) < inf:
        return "check_pct", "check_pct is a share from 0 to 1", ""
    if not abs(item.check_pcc) <= 1:
        return "check_pcc", "check_pcc lies between -1 and 1", ""
    return None


def _unknown_word(field: str, word: str, known: Mapping[str, Any] | tuple[str, ...]) -> Problem:
    names = ", ".join(known)
    if not word:
        return field, f"{field} is not given; known: {names}", ""
    return field, f"unknown {field} {quoted(word)}; known: {names}", near(word, known)


def _pattern_problem(pattern: str) -> str:
    """Patterns are matched by backtracking: those that could take for ever are not taken."""
    if len(pattern) > MAX_PATTERN:
        return f"is longer than {MAX_PATTERN} characters"
    if re.search(_NESTED_REPEAT, pattern):
        return "repeats a group that repeats: matching it can take for ever"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is not a regular expression: {error}"
    return ""


def _type_name(spec: "Field[Any]") -> str:
    return "range" if isinstance(spec.default, tuple) else type(spec.default).__name__


def _text(node: nodes.Node) -> str | None:
    return node.text if isinstance(node, nodes.Scalar) else None


def _number(node: nodes.Node) -> float | None:
    return parse_float(node.text) if isinstance(node, nodes.Scalar) else None


def _integer(node: nodes.Node) -> int | None:
    return parse_int(node.text) if isinstance(node, nodes.Scalar) else None


def _range(node: nodes.Node) -> tuple[int, int] | None:
    if not isinstance(node, nodes.Sequence) or len(node.items) != 2:
        return None
    first, last = (_integer(item) for item in node.items)
    return (first, last) if first is not None and last is not None and 1 <= first <= last <= _LAST_CELL else None


_READERS: Final[Mapping[str, tuple[Callable[[nodes.Node], Any], str]]] = {
    "str": (_text, "a word"),
    "float": (_number, "a number"),
    "int": (_integer, "an integer"),
    "range": (_range, "a pair [first, last] with 1 <= first <= last <= 32"),
}
