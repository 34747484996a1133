"""The `test-config` and `performance-check` sections: read into dataclasses, and what is wrong in them."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, field, fields, replace
from math import inf, isfinite, isinf
from typing import Any, ClassVar, Final, Generic, TypeVar

from buda_emu.netlist import nodes
from buda_emu.netlist.yaml_reader import UnreadableError, decode, read_tree, split_lines
from buda_emu.netlist.yaml_text import parse_float, parse_int
from buda_emu.spec.test_config import STIMULUS_KINDS, VENDOR_COMPARISONS, VENDOR_STIMULUS, Comparison, Stimulus
from buda_emu.support.checker.checks import TooManyFindingsError, require_few
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.render import render, with_source_lines
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import quote
from buda_emu.support.errors import NetlistError
from buda_emu.support.records import dataclass

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
                self._add("V200", key_node, f"{where}: unknown field {quote(key)}", near(key, known))
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
                self._add("V203", key_node, f"{where}: override {quote(pattern)} {problem}")
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
    return field, f"unknown {field} {quote(word)}; known: {names}", near(word, known)


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


DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class Entries(Generic[T]):
    """The stimuli or comparisons of one file: "default" and the override patterns, in document order.

    `refused`: what is wrong with an entry that only matters to those who use it (NETLIST 5: "fatal on use").
    """

    by_pattern: Mapping[str, T]
    refused: Mapping[str, Diagnostic] = field(default_factory=dict[str, Diagnostic])

    def named(self, names: tuple[str, ...]) -> T | None:
        """The entry that names a queue: exact key, else the first pattern that matches in full (NETLIST 5).

        Raises NetlistError for an entry that cannot be used.
        """
        for name in names:
            if name != DEFAULT and name in self.by_pattern:
                return self._usable(name)
        for pattern in self.by_pattern:
            if pattern != DEFAULT and any(_matches(pattern, name) for name in names):
                return self._usable(pattern)
        return None

    def default(self) -> T | None:
        """The entry of every other queue. Raises NetlistError where it cannot be used."""
        return self._usable(DEFAULT) if DEFAULT in self.by_pattern else None

    def over(self, other: "Entries[T]") -> "Entries[T]":
        """These, and those of `other` whose keys are not here."""
        rest = {key: value for key, value in other.by_pattern.items() if key not in self.by_pattern}
        refused = {key: value for key, value in other.refused.items() if key in rest}
        return Entries({**self.by_pattern, **rest}, {**self.refused, **refused})

    def _usable(self, key: str) -> T:
        if key in self.refused:
            finding = self.refused[key]
            raise NetlistError(render([finding]), [finding])
        return self.by_pattern[key]


@dataclass(frozen=True, slots=True)
class TestConfig:
    """A `test-config`. `inputs` and `outputs` are those of io-config; `args` holds values as written."""

    __test__ = False  # not a class of tests

    args: Mapping[str, str]
    stimuli: Entries[Stimulus]
    comparisons: Entries[Comparison]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    def named_stimulus(self, *names: str) -> Stimulus | None:
        """The stimulus that names a queue, by one of its names. Raises NetlistError for one that cannot be used."""
        return self.stimuli.named(tuple(dict.fromkeys(names)))

    @property
    def default_stimulus(self) -> Stimulus:
        """The stimulus of every other queue. Raises NetlistError for one that cannot be used."""
        return self.stimuli.default() or VENDOR_STIMULUS

    @property
    def has_default_stimulus(self) -> bool:
        """Whether the section says one."""
        return DEFAULT in self.stimuli.by_pattern

    def comparison(self, *names: str) -> Comparison:
        """How an output of those names is compared. Raises NetlistError for an entry that cannot be used."""
        distinct = tuple(dict.fromkeys(names))
        vendor = Entries(VENDOR_COMPARISONS)
        found = self.comparisons.named(distinct) or self.comparisons.default() or vendor.named(distinct)
        return found or VENDOR_COMPARISONS[DEFAULT]


def read_test_config(path: str, sections: Mapping[str, nodes.Node], text: str = "") -> TestConfig:
    """Read the section. Raises NetlistError with every finding that refuses the whole of it.

    `text` is the document: findings then show their lines.
    """
    config, findings = _read(path, sections, strict=True)
    if findings:
        raise _refusal(findings, text)
    return config


def read_defaults(path: str, data: bytes) -> TestConfig:
    """A file of the same shape, for what netlists leave open. Raises NetlistError."""
    try:
        text = decode(data)
        root = read_tree(text)
    except UnreadableError as error:
        raise _refusal([error.diagnostic(path)], "") from None
    sections = {key: value for key, _, value in root.items()}
    if "test-config" not in sections:
        raise NetlistError(f"{path}: a defaults file has a test-config section, this has none")
    return read_test_config(path, sections, text)


def merged(own: TestConfig, defaults: TestConfig) -> TestConfig:
    """A netlist's section over a defaults file: it wins key by key, and entries are taken whole (NETLIST 5)."""
    return replace(
        own,
        args={**defaults.args, **own.args},
        stimuli=own.stimuli.over(defaults.stimuli),
        comparisons=own.comparisons.over(defaults.comparisons),
    )


def findings(path: str, sections: Mapping[str, nodes.Node], *, strict: bool) -> list[Diagnostic]:
    """Everything that a test would refuse, for `check`: the whole section or an entry in use."""
    config, found = _read(path, sections, strict)
    return [*found, *config.stimuli.refused.values(), *config.comparisons.refused.values()]


def _read(path: str, sections: Mapping[str, nodes.Node], strict: bool) -> tuple[TestConfig, list[Diagnostic]]:
    reader = FieldReader(path, strict)
    try:
        return _config(reader, sections), reader.findings
    except TooManyFindingsError as error:
        return TestConfig({}, Entries({}), Entries({})), [*reader.findings, error.last]


def _config(reader: FieldReader, sections: Mapping[str, nodes.Node]) -> TestConfig:
    """What the section says. Raises TooManyFindingsError."""
    section = {key: value for key, _, value in reader.entries(sections.get("test-config"), "test-config")}
    args = {
        name: value.text
        for name, _, value in reader.entries(section.get("test-args"), "test-args")
        if isinstance(value, nodes.Scalar)
    }
    io = {key: value for key, _, value in reader.entries(section.get("io-config"), "io-config")}
    return TestConfig(
        args=args,
        stimuli=_entries(reader, section.get("stimulus-config"), Stimulus, "stimulus-config"),
        comparisons=_entries(reader, section.get("comparison-config"), Comparison, "comparison-config"),
        inputs=reader.names(io.get("inputs"), "io-config: inputs", "queue names"),
        outputs=reader.names(io.get("outputs"), "io-config: outputs", "queue names"),
    )


def _entries(reader: FieldReader, node: nodes.Node | None, kind: type[T], where: str) -> Entries[T]:
    by_pattern: dict[str, T] = {}
    refused: dict[str, Diagnostic] = {}

    def add(key: str, pairs: list[Entry], place: nodes.Node, name: str) -> None:
        by_pattern[key] = reader.entry(kind, pairs, name)
        finding = reader.unusable(by_pattern[key], pairs, place, name)
        if finding is not None:
            refused[key] = finding

    pairs = list(reader.entries(node, where))
    own = [pair for pair in pairs if pair[0] != "overrides"]
    if own and node is not None:
        add(DEFAULT, own, own[0][1], where)
    for key, _, overrides in pairs:
        if key == "overrides":
            for pattern, key_node, value in reader.overrides(overrides, where):
                add(pattern, list(reader.entries(value, f"{where}: {pattern}")), key_node, f"{where}: {pattern}")
    return Entries(by_pattern, refused)


def _matches(pattern: str, name: str) -> bool:
    """ECMAScript patterns of real netlists mean the same to `re`. What cannot be matched was refused by reading."""
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error:
        return False


def _refusal(found: list[Diagnostic], text: str) -> NetlistError:
    shown = with_source_lines(found, split_lines(text)) if text else found
    return NetlistError(render(shown), shown)


DEFAULT_RTOL: Final = 0.01

METRICS: Final[Mapping[str, tuple[str, str]]] = {
    "cycles-per-tensor": ("epoch", "cycles from one tensor to the next, the first left out"),
    "tensors-per-second": ("epoch", "tensors in a second, the first left out"),
    "math-utilization": ("core", "per cent of an input's time that the math unit works"),
    "execution-cycles": ("core", "cycles of an input, first unpack to last pack"),
    "average-math-utilization": ("core", "per cent of all inputs' time that the math unit works"),
    "total-runtime": ("core", "cycles of all inputs, first unpack to last pack"),
    "input0-bw": ("core", "bytes that input 0 takes in a nanosecond"),
    "output-bw": ("core", "bytes that the output gives in a nanosecond"),
    "backend-samples-per-second": ("run", "samples in a second over the whole run"),
}
"""Metric -> what it is of, and what it says."""
_KEYS: Final = ("graph-name", "program-name", "target-cores", "target-ops", "target-inputs", "test-group", "test-name")


@dataclass(frozen=True, slots=True)
class Bound:
    """What one metric is compared with: `expected` within `rtol`, or at least `min_bound`. An `expected` of 0 states
    nothing: the vendor's harness puts a figure from elsewhere in its place (NETLIST 6)."""

    metric: str
    expected: float | None = None
    rtol: float = DEFAULT_RTOL
    min_bound: float | None = None

    @property
    def stated(self) -> bool:
        """Whether there is anything to hold a figure against."""
        return self.min_bound is not None or bool(self.expected)

    def holds(self, observed: float) -> bool:
        """PERF 4: strictly within rtol, low and high values both fail; or at least the bound. All holds where nothing
        is stated."""
        if self.min_bound is not None:
            return observed >= self.min_bound
        return not self.expected or abs(observed - self.expected) < abs(self.rtol * self.expected)

    def __str__(self) -> str:
        if self.min_bound is not None:
            return f"at least {self.min_bound:g}"
        return "not stated" if not self.expected else f"{self.expected:g} within {100 * self.rtol:g} %"


@dataclass(frozen=True, slots=True)
class PerformanceCheck:
    """One configuration of the section. Only the first one that names an epoch is applied to it."""

    name: str
    graph: str
    program: str
    bounds: tuple[Bound, ...]
    target_cores: tuple[str, ...] = ()
    target_ops: tuple[str, ...] = ()
    target_inputs: tuple[int, ...] = (0,)
    test_group: str = ""
    test_name: str = ""

    def of(self, scope: str) -> tuple[Bound, ...]:
        """Bounds on metrics of an epoch, a core, or the run."""
        return tuple(bound for bound in self.bounds if METRICS[bound.metric][0] == scope)


def read_performance_checks(path: str, sections: Mapping[str, nodes.Node]) -> tuple[PerformanceCheck, ...]:
    """Every configuration, in document order; unknown keys are ignored (NETLIST 6). Raises NetlistError."""
    reader = _Reader(path, strict=True)
    checks = tuple(reader.all_checks(sections.get("performance-check")))
    errors = [finding for finding in reader.findings if finding.severity == "error"]
    if errors:
        raise NetlistError(render(errors), errors)
    return checks


def performance_findings(path: str, sections: Mapping[str, nodes.Node], *, strict: bool) -> list[Diagnostic]:
    """What is wrong with the section."""
    reader = _Reader(path, strict)
    for _ in reader.all_checks(sections.get("performance-check")):
        pass
    return reader.findings


class _Reader(SectionReader):
    type_rule = "V205"

    def all_checks(self, node: nodes.Node | None) -> Iterator[PerformanceCheck]:
        try:
            yield from self._checks(node)
        except TooManyFindingsError as error:
            self.findings.append(error.last)

    def _checks(self, node: nodes.Node | None) -> Iterator[PerformanceCheck]:
        for name, _, value in self.entries(node, "performance-check"):
            pairs = list(self.entries(value, name))
            found = {key: item for key, _, item in pairs}
            for key, key_node, _ in pairs:
                if key not in METRICS and key not in _KEYS:
                    self._hint(key_node, f"{name}: {quote(key)} is not a metric: it is ignored", near(key, METRICS))
            yield PerformanceCheck(
                name=name,
                graph=self._word(found.get("graph-name")),
                program=self._word(found.get("program-name")),
                bounds=tuple(
                    self._bound(f"{name}: {metric}", metric, found[metric]) for metric in METRICS if metric in found
                ),
                target_cores=self.names(found.get("target-cores"), f"{name}: target-cores"),
                target_ops=self.names(found.get("target-ops"), f"{name}: target-ops"),
                target_inputs=self._inputs(found.get("target-inputs"), name),
                test_group=self._word(found.get("test-group")),
                test_name=self._word(found.get("test-name")),
            )

    def _bound(self, where: str, metric: str, node: nodes.Node) -> Bound:
        values: dict[str, float] = {}
        for key, _, item in self.entries(node, where):
            number = parse_float(item.text) if isinstance(item, nodes.Scalar) else None
            if key in ("expected", "rtol", "min_bound"):
                if number is None or not isfinite(number):
                    self._add("V205", item, f"{where}: {key} is a finite number")
                else:
                    values[key] = number
        if "min_bound" in values and len(values) > 1:
            self._add("V206", node, f"{where}: min_bound cannot be combined with expected or rtol")
        if not values.keys() & {"expected", "min_bound"}:
            self._add("V206", node, f"{where}: neither expected nor min_bound is given")
        return Bound(metric, **values)

    def _inputs(self, node: nodes.Node | None, name: str) -> tuple[int, ...]:
        if node is None:
            return (0,)
        numbers: list[int] = []
        for item in node.items if isinstance(node, nodes.Sequence) else [node]:
            number = parse_int(item.text) if isinstance(item, nodes.Scalar) else None
            if number is None:
                self._add("V205", item, f"{name}: target-inputs is a list of integers")
            else:
                numbers.append(number)
        return tuple(numbers)

    @staticmethod
    def _word(node: nodes.Node | None) -> str:
        return node.text if isinstance(node, nodes.Scalar) and not node.is_null else ""

    def _hint(self, node: nodes.Node, message: str, hint: str) -> None:
        if hint:  # a misspelt metric; anything else is someone's note (NETLIST 6: unknown keys are ignored)
            self._add("V207", node, message, hint)
