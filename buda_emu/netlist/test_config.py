"""The `test-config` and `performance-check` sections (NETLIST 5, 6): readers, records, and the findings about them."""

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
MAX_PATTERN: Final = 400  # characters; a longer pattern may take ever longer to match
_NESTED_REPEAT: Final = r"\([^()]*[+*}][^()]*\)[+*{]"
_LAST_CELL: Final = 32  # rows and columns of a tile, counted from 1


class SectionReader:
    """Base of the readers of a section; `findings` grows while it reads. `type_rule` is the rule for a value of
    another type."""

    type_rule: ClassVar[str]

    def __init__(self, path: str, strict: bool) -> None:
        self._path = path
        self._strict = strict
        self.findings: list[Diagnostic] = []

    def entries(self, node: nodes.Node | None, label: str) -> Iterator[Entry]:
        """Yield the pairs of a map as key text, key node and value; none for an absent or empty value. Anything else is
        a finding, in which `label` names the value."""
        if isinstance(node, nodes.Mapping):
            yield from node.items()
        elif node is not None and not (isinstance(node, nodes.Scalar) and node.is_null):
            self._add(self.type_rule, node, f"{label} is a map")

    def names(self, node: nodes.Node | None, label: str, of: str = "names") -> tuple[str, ...]:
        """Return the names in a list, none for an absent or empty value; anything else is a finding, which says
        that `label` is a list of `of`.
        """
        if node is None or (isinstance(node, nodes.Scalar) and node.is_null):
            return ()
        if not isinstance(node, nodes.Sequence):
            self._add(self.type_rule, node, f"{label} is a list of {of}")
            return ()
        return tuple(name.text for name in node.items if isinstance(name, nodes.Scalar))

    def _add(self, rule: str, node: nodes.Node, message: str, hint: str = "") -> None:
        """Add a finding at a node. Raises TooManyFindingsError."""
        finding = self._finding(rule, node, message, hint)
        require_few(self.findings, node, self._path, rule, finding.severity)
        self.findings.append(finding)

    def _finding(self, rule: str, node: nodes.Node, message: str, hint: str) -> Diagnostic:
        """Return the finding of a rule at a node, with the severity that the reader's strictness gives it."""
        from buda_emu.netlist.rules import RULES  # imports all rules: only when there is a finding

        severity = RULES[rule].at(self._strict)
        mark = node.mark
        return Diagnostic.at(mark, self._path, rule, severity, message, hint)


class FieldReader(SectionReader):
    """Reader of the `test-config` section."""

    type_rule = "V201"

    def entry(self, kind: type[T], pairs: list[Entry], label: str) -> T:
        """Read one stimulus or comparison from its pairs. A field without a legal value keeps its default and is
        reported; `label` begins the messages.
        """
        specs = {spec.name: spec for spec in fields(kind)}
        values: dict[str, Any] = {}
        for key, key_node, node in pairs:
            if key == "overrides":
                continue  # read by `overrides`, and ignored inside an override (NETLIST 5.1)
            if key not in specs:
                self._add("V200", key_node, f"{label}: unknown field {quote(key)}", near(key, specs))
                continue
            read, expected = _READERS[_type_name(specs[key])]
            value = read(node)
            if value is None:
                self._add("V201", node, f"{label}: {key} is {expected}")
            else:
                values[key] = value.lower() if kind is Stimulus and key == "type" else value
        return kind(**values)

    def overrides(self, node: nodes.Node | None, label: str) -> Iterator[Entry]:
        """Yield pattern, key node and fields of each override; nothing without a node. A value that is no map or an
        empty one is a finding (NETLIST 5), and so is a pattern that cannot be used, which is yielded all the same."""
        if node is None:
            return
        if not isinstance(node, nodes.Mapping) or not node.pairs:
            self._add("V202", node, f"{label}: overrides is empty", "leave the key out")
            return
        for pattern, key_node, value in node.items():
            problem = _pattern_problem(pattern)
            if problem:
                self._add("V203", key_node, f"{label}: override {quote(pattern)} {problem}")
            yield pattern, key_node, value

    def usage_finding(
        self, entry: Stimulus | Comparison, pairs: list[Entry], place: nodes.Node, label: str
    ) -> Diagnostic | None:
        """Return the finding that refuses an entry when it is used, or None if it can be used. The finding stands
        at the field to blame among the entry's `pairs`, else at the type, else at `place`.
        """
        if isinstance(entry, Stimulus):
            problem = _stimulus_problem(entry)
        else:
            problem = _comparison_problem(entry)
        if problem is None:
            return None
        field_to_blame, message, hint = problem
        written = {key: value for key, _, value in pairs}
        node = written.get(field_to_blame) or written.get("type", place)
        return self._finding("V204", node, f"{label}: {message}", hint)


Problem = tuple[str, str, str]  # the field to blame, the message, a hint


def _stimulus_problem(stimulus: Stimulus) -> Problem | None:
    """Return what is wrong with a stimulus, or None.

    An invalid type and a missing bound are fatal on use (NETLIST 5.1). So is an infinite number, with which no value
    can be drawn, except for the value of a Constant.
    """
    needed_fields = {kind.lower(): needed for kind, (_, needed) in STIMULUS_KINDS.items()}
    if stimulus.type not in needed_fields:
        return _unknown_word("type", stimulus.type, STIMULUS_KINDS)
    for name in needed_fields[stimulus.type]:
        value = getattr(stimulus, name)
        if value != value or (isinstance(value, int) and value < 0):
            return name, f"a stimulus of type {stimulus.type} needs {name}", ""
    for spec in fields(stimulus):
        problem = _number_problem(spec.name, getattr(stimulus, spec.name))
        if problem:
            return spec.name, problem, ""
    return None


def _number_problem(name: str, value: Any) -> str:
    """Return what is wrong with the number in a field of a stimulus, "" for nothing."""
    if isinstance(value, float) and isinf(value) and name != "constant_value":
        return f"{name} is a finite number"
    if name.endswith("_freq") and not 0 <= value <= 1:
        return f"{name} is a share from 0 to 1"
    return ""


def _comparison_problem(comparison: Comparison) -> Problem | None:
    """Return what is wrong with a comparison, or None.

    Invalid words, negative tolerances and a PCC beyond 1 are fatal on use (NETLIST 5.3).
    """
    for spec in fields(comparison):
        words: tuple[str, ...] = spec.metadata["words"]
        word = getattr(comparison, spec.name)
        if words and word.lower() not in {legal.lower() for legal in words}:
            return _unknown_word(spec.name, word, words)
    for name in ("atol", "rtol"):
        if not 0 <= getattr(comparison, name) < inf:
            return name, f"{name} is a tolerance of 0 or more, and finite", ""
    if not abs(comparison.check_pct) < inf:
        return "check_pct", "check_pct is a share from 0 to 1", ""
    if not abs(comparison.check_pcc) <= 1:
        return "check_pcc", "check_pcc lies between -1 and 1", ""
    return None


def _unknown_word(field: str, word: str, legal_words: Mapping[str, Any] | tuple[str, ...]) -> Problem:
    """Return the problem of a field whose word is missing or none of the legal ones."""
    names = ", ".join(legal_words)
    if not word:
        return field, f"{field} is not given; known: {names}", ""
    return field, f"unknown {field} {quote(word)}; known: {names}", near(word, legal_words)


def _pattern_problem(pattern: str) -> str:
    """Return what is wrong with the pattern of an override, "" for nothing.

    Patterns are matched by backtracking, so those that could take for ever are refused.
    """
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
    """Return the key in `_READERS` of a field of a stimulus or comparison; the type of its default tells."""
    if isinstance(spec.default, tuple):
        return "range"
    return type(spec.default).__name__


def _text(node: nodes.Node) -> str | None:
    """Return the text of a scalar, None for any other node."""
    return node.text if isinstance(node, nodes.Scalar) else None


def _number(node: nodes.Node) -> float | None:
    """Return the number that a scalar holds, None for any other node."""
    if isinstance(node, nodes.Scalar):
        return parse_float(node.text)
    return None


def _integer(node: nodes.Node) -> int | None:
    """Return the integer that a scalar holds, None for any other node."""
    if isinstance(node, nodes.Scalar):
        return parse_int(node.text)
    return None


def _range(node: nodes.Node) -> tuple[int, int] | None:
    """Return a range of rows or columns of a tile, a list of first and last from 1 to 32; None for anything else."""
    if not isinstance(node, nodes.Sequence) or len(node.items) != 2:
        return None
    first, last = map(_integer, node.items)
    if first is None or last is None or not 1 <= first <= last <= _LAST_CELL:
        return None
    return first, last


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

    `refused` holds the findings about entries that can be read but not used; they only matter to a test that uses
    the entry (NETLIST 5: "fatal on use").
    """

    by_pattern: Mapping[str, T]
    refused: Mapping[str, Diagnostic] = field(default_factory=dict[str, Diagnostic])

    def find(self, names: tuple[str, ...]) -> T | None:
        """Return the override of a queue with these names: by exact key, else the first pattern that matches in full
        (NETLIST 5); None if there is none.

        Raises NetlistError for an entry that cannot be used.
        """
        for name in names:
            if name != DEFAULT and name in self.by_pattern:
                return self._usable(name)
        for pattern in self.by_pattern:
            if pattern != DEFAULT and any(matches(pattern, name) for name in names):
                return self._usable(pattern)
        return None

    def default(self) -> T | None:
        """Return the entry for all queues without an override, or None. Raises NetlistError if it cannot be used."""
        if DEFAULT in self.by_pattern:
            return self._usable(DEFAULT)
        return None

    def over(self, other: "Entries[T]") -> "Entries[T]":
        """Return these entries and those of `other` under keys that are not here."""
        additional = {key: value for key, value in other.by_pattern.items() if key not in self.by_pattern}
        refused = {key: value for key, value in other.refused.items() if key in additional}
        return Entries({**self.by_pattern, **additional}, {**self.refused, **refused})

    def _usable(self, key: str) -> T:
        """Return the entry under a key. Raises NetlistError if it cannot be used."""
        if key in self.refused:
            finding = self.refused[key]
            raise NetlistError(render([finding]), [finding])
        return self.by_pattern[key]


@dataclass(frozen=True, slots=True)
class TestConfig:
    """A `test-config` section. `inputs` and `outputs` are those of io-config; `args` holds values as written."""

    __test__ = False  # not a class of tests

    args: Mapping[str, str]
    stimuli: Entries[Stimulus]
    comparisons: Entries[Comparison]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    def named_stimulus(self, *names: str) -> Stimulus | None:
        """Return the stimulus whose override matches one of a queue's names, or None. Raises NetlistError if it cannot
        be used."""
        return self.stimuli.find(tuple(dict.fromkeys(names)))

    @property
    def default_stimulus(self) -> Stimulus:
        """Return the stimulus of queues without an override, the harness's own if the section has none. Raises
        NetlistError if it cannot be used."""
        return self.stimuli.default() or VENDOR_STIMULUS

    @property
    def has_default_stimulus(self) -> bool:
        """Return whether the section has a stimulus for queues without an override."""
        return DEFAULT in self.stimuli.by_pattern

    def comparison(self, *names: str) -> Comparison:
        """Return the comparison for an output with these names, the harness's own if the section has none.

        Raises NetlistError for an entry that cannot be used.
        """
        distinct = tuple(dict.fromkeys(names))
        vendor = Entries(VENDOR_COMPARISONS)
        comparison = self.comparisons.find(distinct) or self.comparisons.default() or vendor.find(distinct)
        return comparison or VENDOR_COMPARISONS[DEFAULT]


def read_test_config(path: str, sections: Mapping[str, nodes.Node], text: str = "") -> TestConfig:
    """Read the `test-config` section. Raises NetlistError with every finding that refuses the section as a whole.

    `text` is the document, from which findings show their lines.
    """
    config, findings = _read(path, sections, strict=True)
    if findings:
        raise _error_with_lines(findings, text)
    return config


def read_defaults(path: str, data: bytes) -> TestConfig:
    """Read a file with a `test-config` section that supplies what netlists leave open; `data` holds its bytes. Raises
    NetlistError if it cannot be read or has no such section, and as `read_test_config` does."""
    try:
        text = decode(data)
        root = read_tree(text)
    except UnreadableError as error:
        raise _error_with_lines([error.diagnostic(path)], "") from None
    sections = {key: value for key, _, value in root.items()}
    if "test-config" not in sections:
        raise NetlistError(f"{path}: a defaults file has a test-config section, this has none")
    return read_test_config(path, sections, text)


def merge_defaults(config: TestConfig, defaults: TestConfig) -> TestConfig:
    """Complete a netlist's section by a defaults file. The netlist wins key by key; entries are taken whole (NETLIST
    5)."""
    return replace(
        config,
        args={**defaults.args, **config.args},
        stimuli=config.stimuli.over(defaults.stimuli),
        comparisons=config.comparisons.over(defaults.comparisons),
    )


def findings(path: str, sections: Mapping[str, nodes.Node], *, strict: bool) -> list[Diagnostic]:
    """Return the findings about `test-config` for `check`: those that refuse the section, and those that refuse an
    entry when it is used. `strict` makes them errors.
    """
    config, section_findings = _read(path, sections, strict)
    return [*section_findings, *config.stimuli.refused.values(), *config.comparisons.refused.values()]


def _read(path: str, sections: Mapping[str, nodes.Node], strict: bool) -> tuple[TestConfig, list[Diagnostic]]:
    """Read the section; return it, and the findings that refuse it as a whole. It is empty where these are too many."""
    reader = FieldReader(path, strict)
    try:
        return _read_config(reader, sections), reader.findings
    except TooManyFindingsError as error:
        return TestConfig({}, Entries({}), Entries({})), [*reader.findings, error.last]


def _read_config(reader: FieldReader, sections: Mapping[str, nodes.Node]) -> TestConfig:
    """Read the section with a reader. Raises TooManyFindingsError."""
    section = {key: value for key, _, value in reader.entries(sections.get("test-config"), "test-config")}
    args = {
        name: value.text
        for name, _, value in reader.entries(section.get("test-args"), "test-args")
        if isinstance(value, nodes.Scalar)
    }
    io = {key: value for key, _, value in reader.entries(section.get("io-config"), "io-config")}
    return TestConfig(
        args=args,
        stimuli=_read_entries(reader, section.get("stimulus-config"), Stimulus, "stimulus-config"),
        comparisons=_read_entries(reader, section.get("comparison-config"), Comparison, "comparison-config"),
        inputs=reader.names(io.get("inputs"), "io-config: inputs", "queue names"),
        outputs=reader.names(io.get("outputs"), "io-config: outputs", "queue names"),
    )


def _read_entries(reader: FieldReader, node: nodes.Node | None, kind: type[T], label: str) -> Entries[T]:
    """Read `stimulus-config` or `comparison-config` into records of the class `kind`: the fields beside `overrides`
    are the default entry.
    """
    by_pattern: dict[str, T] = {}
    refused: dict[str, Diagnostic] = {}

    def add(key: str, pairs: list[Entry], place: nodes.Node, name: str) -> None:
        """Read the entry for a key, and store the finding that refuses its use, if there is one."""
        by_pattern[key] = reader.entry(kind, pairs, name)
        finding = reader.usage_finding(by_pattern[key], pairs, place, name)
        if finding is not None:
            refused[key] = finding

    pairs = list(reader.entries(node, label))
    default_pairs = [pair for pair in pairs if pair[0] != "overrides"]
    if default_pairs and node is not None:
        add(DEFAULT, default_pairs, default_pairs[0][1], label)
    for key, _, overrides in pairs:
        if key == "overrides":
            for pattern, key_node, value in reader.overrides(overrides, label):
                add(pattern, list(reader.entries(value, f"{label}: {pattern}")), key_node, f"{label}: {pattern}")
    return Entries(by_pattern, refused)


def matches(pattern: str, name: str) -> bool:
    """Return whether an override's pattern matches a whole name.

    The ECMAScript patterns of real netlists mean the same to `re`. Patterns that do not compile are refused by the
    reader; here they match nothing.
    """
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error:
        return False


def _error_with_lines(diagnostics: list[Diagnostic], source_text: str) -> NetlistError:
    """Return the error that shows these findings, with their lines of the document `source_text` if there is one."""
    if source_text:
        diagnostics = with_source_lines(diagnostics, split_lines(source_text))
    return NetlistError(render(diagnostics), diagnostics)


DEFAULT_RTOL: Final = 0.01  # NETLIST 6, `expected`

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
"""For each metric its scope (epoch, core or run) and its meaning."""
_KEYS: Final = ("graph-name", "program-name", "target-cores", "target-ops", "target-inputs", "test-group", "test-name")
_BOUND_KEYS: Final = ("expected", "rtol", "min_bound")


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound of one metric: `expected` within `rtol`, or at least `min_bound`.

    An `expected` of 0 states no bound: the vendor's harness puts a figure from elsewhere in its place (NETLIST 6).
    """

    metric: str
    expected: float | None = None
    rtol: float = DEFAULT_RTOL
    min_bound: float | None = None

    @property
    def stated(self) -> bool:
        """Return whether there is a bound at all."""
        return self.min_bound is not None or bool(self.expected)

    def holds(self, observed: float) -> bool:
        """Return whether the figure `observed` is at least `min_bound`, or strictly within `rtol` of `expected` on
        both sides (PERF 4). True for every figure if no bound is stated.
        """
        if self.min_bound is not None:
            return observed >= self.min_bound
        return not self.expected or abs(observed - self.expected) < abs(self.rtol * self.expected)

    def __str__(self) -> str:
        if self.min_bound is not None:
            return f"at least {self.min_bound:g}"
        if not self.expected:
            return "not stated"
        return f"{self.expected:g} within {100 * self.rtol:g} %"


@dataclass(frozen=True, slots=True)
class PerformanceCheck:
    """One configuration of the `performance-check` section. An epoch is held only to the first configuration that
    names it."""

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
        """Return the bounds on metrics of a scope: "epoch", "core" or "run"."""
        return tuple(bound for bound in self.bounds if METRICS[bound.metric][0] == scope)


def read_performance_checks(path: str, sections: Mapping[str, nodes.Node]) -> tuple[PerformanceCheck, ...]:
    """Read every configuration of `performance-check`, in document order; unknown keys are ignored (NETLIST 6). Raises
    NetlistError if findings refuse the section."""
    reader = _Reader(path, strict=True)
    checks = tuple(reader.all_checks(sections.get("performance-check")))
    errors = [finding for finding in reader.findings if finding.severity == "error"]
    if errors:
        raise NetlistError(render(errors), errors)
    return checks


def performance_findings(path: str, sections: Mapping[str, nodes.Node], *, strict: bool) -> list[Diagnostic]:
    """Return the findings about the `performance-check` section, for `check`; `strict` makes those errors that
    refuse it.
    """
    reader = _Reader(path, strict)
    for _ in reader.all_checks(sections.get("performance-check")):
        pass
    return reader.findings


class _Reader(SectionReader):
    """Reader of the `performance-check` section."""

    type_rule = "V205"

    def all_checks(self, node: nodes.Node | None) -> Iterator[PerformanceCheck]:
        """Yield every configuration of the section. After too many findings reading ends, with a last finding that
        says so."""
        try:
            yield from self._checks(node)
        except TooManyFindingsError as error:
            self.findings.append(error.last)

    def _checks(self, node: nodes.Node | None) -> Iterator[PerformanceCheck]:
        """Yield every configuration of the section. Raises TooManyFindingsError."""
        for name, _, value in self.entries(node, "performance-check"):
            pairs = list(self.entries(value, name))
            written = {key: value for key, _, value in pairs}
            for key, key_node, _ in pairs:
                if key not in METRICS and key not in _KEYS:
                    self._report_misspelt(
                        key_node, f"{name}: {quote(key)} is not a metric: it is ignored", (*METRICS, *_KEYS)
                    )
            yield PerformanceCheck(
                name=name,
                graph=self._word(written.get("graph-name")),
                program=self._word(written.get("program-name")),
                bounds=tuple(
                    self._bound(f"{name}: {metric}", metric, written[metric]) for metric in METRICS if metric in written
                ),
                target_cores=self.names(written.get("target-cores"), f"{name}: target-cores"),
                target_ops=self.names(written.get("target-ops"), f"{name}: target-ops"),
                target_inputs=self._inputs(written.get("target-inputs"), name),
                test_group=self._word(written.get("test-group")),
                test_name=self._word(written.get("test-name")),
            )

    def _bound(self, label: str, metric: str, node: nodes.Node) -> Bound:
        """Read the bound of one metric; a value that cannot be used is a finding and keeps its default."""
        values: dict[str, float] = {}
        for key, key_node, value in self.entries(node, label):
            number = _number(value)
            if key not in _BOUND_KEYS:
                if key == "max_bound":  # the nearest key, min_bound, means the contrary
                    self._add("V207", key_node, f"{label}: 'max_bound' is ignored", "give expected and rtol")
                else:
                    self._report_misspelt(key_node, f"{label}: {quote(key)} is ignored", _BOUND_KEYS)
            else:
                if number is None or not isfinite(number):
                    self._add("V205", value, f"{label}: {key} is a finite number")
                else:
                    values[key] = number
        if "min_bound" in values and len(values) > 1:
            self._add("V206", node, f"{label}: min_bound cannot be combined with expected or rtol")
        if not values.keys() & {"expected", "min_bound"}:
            self._add("V206", node, f"{label}: neither expected nor min_bound is given")
        return Bound(metric, **values)

    def _inputs(self, node: nodes.Node | None, name: str) -> tuple[int, ...]:
        """Return the numbers of the inputs to be measured: a list or a single number, input 0 if nothing is
        written. `name` is the configuration's, for findings.
        """
        if node is None:
            return (0,)
        numbers: list[int] = []
        for entry in node.items if isinstance(node, nodes.Sequence) else [node]:
            number = _integer(entry)
            if number is None:
                self._add("V205", entry, f"{name}: target-inputs is a list of integers")
            else:
                numbers.append(number)
        return tuple(numbers)

    @staticmethod
    def _word(node: nodes.Node | None) -> str:
        """Return the text of a scalar; "" for an absent or empty value, and for anything else."""
        if isinstance(node, nodes.Scalar) and not node.is_null:
            return node.text
        return ""

    def _report_misspelt(self, node: nodes.Scalar, message: str, legal: tuple[str, ...]) -> None:
        """Report an unknown key as probably misspelt if it is nearly one of the `legal` ones; else do nothing."""
        hint = near(node.text, legal)
        if hint:  # a misspelt key; anything else is someone's note (NETLIST 6: unknown keys are ignored)
            self._add("V207", node, message, hint)
