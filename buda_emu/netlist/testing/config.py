"""The `test-config` section: arguments of programs, which data is whose, how outputs are compared (NETLIST 5)."""

import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final, Generic, TypeVar

from buda_emu.checker.checks import TooManyFindingsError
from buda_emu.checker.diagnostic import Diagnostic
from buda_emu.checker.render import render, with_source_lines
from buda_emu.errors import NetlistError
from buda_emu.netlist import nodes
from buda_emu.netlist.testing.fields import Entry, FieldReader
from buda_emu.netlist.yaml_reader import UnreadableError, decode, read_tree, split_lines
from buda_emu.records import dataclass
from buda_emu.spec.comparison import VENDOR_COMPARISONS, Comparison
from buda_emu.spec.stimulus import VENDOR_STIMULUS, Stimulus

DEFAULT: Final = "default"
T = TypeVar("T", Stimulus, Comparison)


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
        args,
        _entries(reader, section.get("stimulus-config"), Stimulus, "stimulus-config"),
        _entries(reader, section.get("comparison-config"), Comparison, "comparison-config"),
        reader.names(io.get("inputs"), "io-config: inputs", "queue names"),
        reader.names(io.get("outputs"), "io-config: outputs", "queue names"),
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
