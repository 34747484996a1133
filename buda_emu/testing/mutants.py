"""Netlists that break exactly one rule of the checker (docs/generate-netlists.md): a valid one is drawn, and edits of
its YAML tree are tried until the checker finds that one thing and nothing else.

What is edited is drawn from the document, from the tables of fields and attributes, and from the example of what is
wrong that the rule's declaration has.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import field, replace
from random import Random
from typing import Any, Final

from buda_emu.checker import Diagnostic, Rule
from buda_emu.errors import HostError
from buda_emu.netlist import fields as tables
from buda_emu.netlist import nodes
from buda_emu.netlist.load import check_text
from buda_emu.netlist.rules import registry
from buda_emu.netlist.rules.book import NOT_CHECKED, ROUTED, RULES
from buda_emu.netlist.yaml_reader import UnreadableError, read_any
from buda_emu.netlist.yaml_text import block
from buda_emu.records import dataclass
from buda_emu.spec.archs import ARCHS, DEFAULT_ARCH
from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.testing.generator.draw import Draw
from buda_emu.testing.generator.netlist import GENERATED, Budget, generate

_BASE: Final = Budget(ops=4, graphs=2, tiles=8, inputs=2)
_EDITS_OF_A_BASE: Final = 40
_PAIR: Final = re.compile(r"(?=(?<![\w$])([\w$-]+): (\[[^\[\]]*(?:\[[^\]]*\][^\[\]]*)*\]|\{[^{}]*\}|[^,{}\[\]]+))")
"""`key: value` in an example, the inner ones of a nested pair, too."""
_SECTIONS: Final[Mapping[str, registry.Checks[Any]]] = {
    "fused_ops": registry.fused_check, "programs": registry.program_check, "queues": registry.queue_check,
    "graphs": registry.op_check,
}  # fmt: skip
"""Where the objects of checks stand; those of whole graphs and netlists are anywhere."""
_TESTED: Final = {"performance-check": "performance-check", "test-config": "-config"}
"""Sections about tests, and what rules of them speak of."""
_NUMBERS: Final = ("0", "-1", "1", "2", "3", "5", "33", "4096", "1000000", "0.5", "oops")
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: spec.words for name, spec in ATTRIBUTES.items() if spec.words},
    **{
        name: item.words or (NETLIST_FORMATS if item.kind in ("format", "formats") else ())
        for table in vars(tables).values()
        if isinstance(table, dict)
        for name, item in table.items()  # pyright: ignore[reportUnknownVariableType] - those of fields alone
        if isinstance(item, tables.Field)
    },
}


@dataclass(frozen=True, slots=True)
class Broken:
    """A valid netlist, one that breaks a rule, and what the checker finds in that and not in the valid one."""

    rule: str
    valid: str
    text: str
    findings: tuple[Diagnostic, ...]


def broken(rule: str, *, seed: int = 0, edits: int = 4000) -> Broken:
    """A netlist that breaks this rule and no other, the same for the same seed.

    Of the rules that refuse no netlist without `--strict` the finding is a warning. Raises HostError for a rule that is
    not known, that no netlist breaks by itself, and where none of so many edits broke it alone.
    """
    declared = RULES.get(rule)
    if declared is None:
        raise HostError(f"rule {rule}: known are {', '.join(RULES)}")
    if rule in NOT_CHECKED:
        raise HostError(f"rule {rule} cannot be broken: {declared.why}")
    if rule in ROUTED:
        raise HostError(f"rule {rule} is one of pipes and streams, which `check --strict` makes: no edit aims at it")
    for found in _tried(Random(f"{seed} {rule}"), edits, declared):
        if found.rule == rule:
            return found
    raise HostError(f"none of {edits} edits breaks {rule} alone")


def _tried(random: Random, edits: int, rule: Rule) -> Iterator[Broken]:
    """Whatever single rule each of so many edits breaks."""
    words = frozenset(re.findall(r"\w+", f"{rule.wrong} {rule.right} {rule.summary}"))
    draw = Draw(random, words)
    section, looked_at = _looks_at(rule)
    types = [name for name in GENERATED if name in words] or looked_at
    arch = next((name for name in ARCHS if name in words), DEFAULT_ARCH)
    for start in range(0, edits, _EDITS_OF_A_BASE):
        free = start // _EDITS_OF_A_BASE % 3 == 2  # the example says too little, or misleads
        own, hints = (looked_at, {}) if free else (types, dict(_pairs(rule.wrong)))
        valid = generate(random, arch=arch, budget=_BASE, op_types=own, wanted=words)
        there = {item.rule for item in valid.netlist.diagnostics}
        tree = _with_sections(read_any(valid.text), rule)
        valid = replace(valid, text=_written(tree))
        mutator = _Mutator(draw, tree, hints, section)
        for _ in range(min(_EDITS_OF_A_BASE, edits - start)):
            undo = [mutator.edit() for _ in range(draw.pick((1, 1, 1, 2, 3)))]
            text = _written(tree)
            if draw.chance(1):
                text += "  - ["
            if rule.wrong.startswith("#"):
                text = text.replace("\n", f"  {rule.wrong}\n", draw.integer(1, 3))
            for back in reversed(undo):
                back()
            found = check_text(text, "broken.yaml", arch).diagnostics
            new = {item.rule for item in found} - there
            errors = {item.rule for item in found if item.severity == "error"}
            if len(new) == 1 and errors <= new:
                (only,) = new
                yield Broken(only, valid.text, text, tuple(item for item in found if item.rule == only))


def _with_sections(tree: nodes.Node, rule: Rule) -> nodes.Node:
    """The tree with what the example of what is right has of sections that generated netlists leave out."""
    about = f"{rule.summary} {rule.right}"
    if not isinstance(tree, nodes.Mapping) or any(_text(key) in _TESTED for key, _ in tree.pairs):
        return tree
    found: list[tuple[nodes.Node, nodes.Node]] = [(_scalar(key), value) for key, value in _pairs(rule.right)]
    own = nodes.Mapping(found[:1], 0, 0, 0)
    section = next((name for name, word in _TESTED.items() if word in about), "")
    if section:
        tree.pairs.append((_scalar(section), own))
    return tree


def _written(tree: nodes.Node) -> str:
    return "\n".join(block(tree)) + "\n"


def _looks_at(rule: Rule) -> tuple[str, Sequence[str]]:
    """The section of a netlist that a rule's checks look at, "" for any, and the op types."""
    for section, checks in _SECTIONS.items():
        found = [check for check in checks.all if check.rule is rule]
        if found:
            kinds = frozenset(kind for check in found for kind in check.kinds or ())
            types = ["fused_op"] if section == "fused_ops" else _types(kinds)
            return section, types or GENERATED
    return "", GENERATED


def _types(kinds: frozenset[str]) -> list[str]:
    """Op types by their names, families and traits."""
    known = {name: OP_TYPES[name] for name in GENERATED}
    return [name for name, op in known.items() if kinds & {name, op.family, *op.traits}]


def _pairs(example: str) -> Iterator[tuple[str, nodes.Node]]:
    for key, value in _PAIR.findall(example):
        try:
            yield key, read_any(value.strip())
        except UnreadableError:
            continue


@dataclass(slots=True)
class _Mutator:
    """Edits of one tree, each of which can be taken back. `hints`: pairs of the example of what is wrong; `section`:
    most edits are of this one."""

    draw: Draw
    tree: nodes.Node
    hints: dict[str, nodes.Node]
    section: str = ""
    pairs: list[tuple[nodes.Mapping, int]] = field(default_factory=list[tuple[nodes.Mapping, int]])
    items: list[tuple[nodes.Sequence, int]] = field(default_factory=list[tuple[nodes.Sequence, int]])
    names: list[str] = field(default_factory=list[str])

    def edit(self) -> Callable[[], None]:
        """One edit at random; what takes it back."""
        self.pairs, self.items, self.names = [], [], []
        self._walk(self._part())
        if not self.pairs:
            self._walk(self.tree)
        hinted = [(where, at) for where, at in self.pairs if _text(where.pairs[at][0]) in self.hints]
        if self.hints and self.draw.chance(45):
            if hinted and self.draw.chance(60):
                where, at = self.draw.pick(hinted)
                return self._set(where, at, self._named(self.hints[_text(where.pairs[at][0])]))
            return self._add(self.draw.pick(list(self.hints)))
        if self.items and self.draw.chance(30):
            return self._item(*self.draw.pick(self.items))
        return self._pair(*self.draw.pick(hinted if hinted and self.draw.chance(40) else self.pairs))

    def _part(self) -> nodes.Node:
        """What is edited this time."""
        if self.section and isinstance(self.tree, nodes.Mapping) and self.draw.chance(75):
            return next((value for key, value in self.tree.pairs if _text(key) == self.section), self.tree)
        return self.tree

    def _walk(self, node: nodes.Node) -> None:
        if isinstance(node, nodes.Mapping):
            for at, (key, value) in enumerate(node.pairs):
                self.pairs.append((node, at))
                if isinstance(value, nodes.Mapping):
                    self.names.append(_text(key))
                self._walk(value)
        elif isinstance(node, nodes.Sequence):
            for at, value in enumerate(node.items):
                self.items.append((node, at))
                self._walk(value)

    def _set(self, where: nodes.Mapping, at: int, value: nodes.Node) -> Callable[[], None]:
        before = where.pairs[:]
        where.pairs[at] = (where.pairs[at][0], deepcopy(value))
        return lambda: setattr(where, "pairs", before)

    def _add(self, key: str) -> Callable[[], None]:
        """A pair of the example, in a map that may be one for it: beside the attributes, or among fields."""
        value = self._named(self.hints[key])
        among = [
            where.pairs[at][1]
            for where, at in self.pairs
            if (_text(where.pairs[at][0]) == "attributes") == (key in ATTRIBUTES)
        ]
        maps = [node for node in among if isinstance(node, nodes.Mapping)] or [where for where, _ in self.pairs]
        where = self.draw.pick(maps)
        before = where.pairs[:]
        where.pairs = [*before, (_scalar(key), deepcopy(value))]
        return lambda: setattr(where, "pairs", before)

    def _named(self, value: nodes.Node) -> nodes.Node:
        """A value of an example; names in it, that the document does not know, are mostly those of the document."""
        if isinstance(value, nodes.Sequence):
            return nodes.Sequence([self._named(item) for item in value.items], 0, 0, 0)
        is_name = isinstance(value, nodes.Scalar) and re.fullmatch(r"[a-z]\w+", value.text) and self.names
        return _scalar(self.draw.pick(self.names)) if is_name and self.draw.chance(60) else value

    def _pair(self, where: nodes.Mapping, at: int) -> Callable[[], None]:
        before, (key, value) = where.pairs[:], where.pairs[at]
        kind = self.draw.integer(0, 9)
        if kind == 0:
            where.pairs = [*before[:at], *before[at + 1 :]]
        elif kind == 1:
            where.pairs = [*before[: at + 1], *before[at:]]
        elif kind == 2:
            new = self.draw.pick([f"{_text(key)}x", *self.names])
            where.pairs = [*before[:at], (_scalar(new), value), *before[at + 1 :]]
        elif kind == 3:
            alike = [other.pairs[i][1] for other, i in self.pairs if _text(other.pairs[i][0]) == _text(key)]
            where.pairs[at] = (key, deepcopy(self.draw.pick(alike)))
        else:
            where.pairs[at] = (key, self._other(value, _text(key)))
        return lambda: setattr(where, "pairs", before)

    def _item(self, where: nodes.Sequence, at: int) -> Callable[[], None]:
        before = where.items[:]
        kind, to = self.draw.integer(0, 6), self.draw.integer(0, len(before) - 1)
        if kind == 0:
            where.items = [*before[:at], *before[at + 1 :]]
        elif kind == 1:
            where.items = [*before[:to], before[at], *before[to:]]
        elif kind == 2:
            where.items[at], where.items[to] = before[to], before[at]
        elif kind == 3:
            where.items = [*before[:at], *before[at + 1 :]]
            where.items.insert(to, before[at])
        else:
            where.items[at] = self._other(before[at], "")
        return lambda: setattr(where, "items", before)

    def _other(self, value: nodes.Node, key: str) -> nodes.Node:
        """Another value: a number nearby, a word of the field, a name of the document, or one of another kind."""
        if not isinstance(value, nodes.Scalar):
            items = value.items if isinstance(value, nodes.Sequence) else [pair[1] for pair in value.pairs]
            same = nodes.Sequence([*items, *items[-1:]], 0, 0, 0)
            return self.draw.pick([_scalar("oops"), nodes.Sequence([], 0, 0, 0), same, *items[:1]])
        choices = [*self.names, *_NUMBERS, *_WORDS.get(key, ())]
        if value.text in NETLIST_FORMATS:
            choices = list(NETLIST_FORMATS)
        elif re.fullmatch(r"-?\d+", value.text):
            number = int(value.text)
            choices = [*map(str, (number + 1, number - 1, number * 2, number * 3, number + 4, -number)), *_NUMBERS]
        elif re.fullmatch(r"0x[0-9a-f]+", value.text):
            number = int(value.text, 16)
            choices = [hex(max(0, number + step)) for step in (4, 16, 32, -32, 1 << 20, -(1 << 28), 1 << 30, 1 << 31)]
        elif value.text in ("true", "false"):
            choices = ["true", "false", "0", "maybe"]
        if self.draw.chance(8):
            return nodes.Sequence([value], 0, 0, 0)
        return _scalar(self.draw.pick(choices))


def _scalar(text: str) -> nodes.Scalar:
    return nodes.Scalar(text, True, 0, 0, 0)


def _text(node: nodes.Node) -> str:
    return node.text if isinstance(node, nodes.Scalar) else ""
