"""Netlists that break exactly one rule of the checker (docs/stress/generate-netlists.md): a valid one is drawn, and
edits of its YAML tree are tried until the checker finds that one thing and nothing else.

What is edited is drawn from the document, from the tables of fields and attributes, and from the example of what is
wrong that the rule's declaration has.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import field, replace
from random import Random
from typing import Any, Final

from buda_emu.netlist import fields as tables
from buda_emu.netlist import nodes
from buda_emu.netlist.load import check_text
from buda_emu.netlist.rules import registry
from buda_emu.netlist.rules.book import NOT_CHECKED, ROUTED, RULES
from buda_emu.netlist.yaml_reader import UnreadableError, read_any
from buda_emu.netlist.yaml_text import block
from buda_emu.spec.archs import ARCHS, DEFAULT_ARCH
from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker import Diagnostic, Rule
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass
from buda_emu.testing.generator.draft import Draw
from buda_emu.testing.generator.netlist import GENERATED, Budget, generate

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


@dataclass(slots=True)
class Mutator:
    """Edits of one tree, each of which can be taken back. `hints` and `instructions`: pairs and items of the example of
    what is wrong; `section`: most edits are of this one."""

    draw: Draw
    tree: nodes.Node
    hints: Mapping[str, Sequence[nodes.Node]]
    section: str = ""
    instructions: Sequence[nodes.Node] = ()
    pairs: list[tuple[nodes.Mapping, int]] = field(default_factory=list[tuple[nodes.Mapping, int]])
    items: list[tuple[nodes.Sequence, int]] = field(default_factory=list[tuple[nodes.Sequence, int]])
    names: list[str] = field(default_factory=list[str])
    everywhere: tuple[list[tuple[nodes.Mapping, int]], list[tuple[nodes.Sequence, int]]] = ([], [])
    """Pairs and items of the whole tree."""
    own: dict[int, str] = field(default_factory=dict[int, str])
    """By id of a map the name that it stands under."""
    depths: dict[str, int] = field(default_factory=dict[str, int])
    """In how many maps and lists a name stands."""

    def edit(self) -> Callable[[], None]:
        """One edit at random; what takes it back."""
        self.names = []
        self.own = {}
        self.depths = {}
        part = self._part()
        self.pairs = []
        self.items = []
        self._walk(self.tree)
        self.everywhere = self.pairs, self.items
        if part is not self.tree:  # names are those of the whole
            self.pairs = []
            self.items = []
            self._walk(part)
        if not self.pairs:
            self._walk(self.tree)
        hinted = [(where, at) for where, at in self.pairs if text_of(where.pairs[at][0]) in self.hints]
        if self.hints and self.draw.chance(45):
            if hinted and self.draw.chance(60):
                where, at = self.draw.pick(hinted)
                value = self._hinted(text_of(where.pairs[at][0]))
                own = self.own.get(id(where), "") if text_of(value) in self.names else ""
                return self._set(where, at, scalar(own) if own and self.draw.chance(20) else value)
            return self._add(list(self.hints)[self.draw.integer(0, len(self.hints) - 1)])
        lists = [where for where, at in self.items if at == 0 and not isinstance(where.items[0], nodes.Scalar)]
        if self.instructions and lists and self.draw.chance(45):
            return self._insert(self.draw.pick(lists))
        if self.draw.chance(8):
            return self._renamed()
        if self.draw.chance(5):
            return self._longer(self.draw.pick(self.pairs)[0])
        if self.items and self.draw.chance(30):
            return self._item(*self.draw.pick(self.items))
        return self._pair(*self.draw.pick(hinted if hinted and self.draw.chance(40) else self.pairs))

    def _part(self) -> nodes.Node:
        """What is edited this time."""
        if self.section and isinstance(self.tree, nodes.Mapping) and self.draw.chance(75):
            return next((value for key, value in self.tree.pairs if text_of(key) == self.section), self.tree)
        return self.tree

    def _walk(self, node: nodes.Node, depth: int = 0) -> None:
        if isinstance(node, nodes.Mapping):
            for at, (key, value) in enumerate(node.pairs):
                self.pairs.append((node, at))
                if isinstance(value, nodes.Mapping):
                    self.names.append(text_of(key))
                    self.own[id(value)] = text_of(key)
                    self.depths.setdefault(text_of(key), depth)
                self._walk(value, depth + 1)
        elif isinstance(node, nodes.Sequence):
            for at, value in enumerate(node.items):
                self.items.append((node, at))
                self._walk(value, depth + 1)

    def _insert(self, where: nodes.Sequence) -> Callable[[], None]:
        """An instruction of the example, somewhere, with variables of the document for most that it names."""
        before = where.items
        variables = [name for name in self._scalars() if name.startswith("$")]

        def known(node: nodes.Node) -> nodes.Node:
            if isinstance(node, nodes.Mapping):
                return nodes.Mapping([(key, known(value)) for key, value in node.pairs], 0, 0, 0)
            if isinstance(node, nodes.Sequence):
                return nodes.Sequence([known(item) for item in node.items], 0, 0, 0)
            is_variable = text_of(node).startswith("$") and variables and self.draw.chance(70)
            return scalar(self.draw.pick(variables)) if is_variable else node

        at = self.draw.integer(0, len(before))
        where.items = [*before[:at], known(self.draw.pick(self.instructions)), *before[at:]]
        return lambda: setattr(where, "items", before)

    def _scalars(self) -> list[str]:
        """Words in lists and after keys."""
        after_keys = [text_of(where.pairs[at][1]) for where, at in self.pairs]
        return after_keys + [text_of(where.items[at]) for where, at in self.items]

    def _renamed(self) -> Callable[[], None]:
        """A name of the document becomes another's, or that of another's copy, wherever it is written."""
        pairs, items = self.everywhere
        old = self.draw.pick(self.names)
        alike = [name for name in self.depths if self.depths[name] == self.depths[old]]
        new = self.draw.pick(alike) + self.draw.pick(("", "", ".1"))
        maps = [(where, where.pairs[:]) for where, at in pairs if at == 0]
        lists = [(where, where.items[:]) for where, at in items if at == 0]

        def named(node: nodes.Node) -> nodes.Node:
            return scalar(new) if text_of(node) == old else node

        for where, before in maps:
            where.pairs = [(named(key), named(value)) for key, value in before]
        for where, before in lists:
            where.items = [named(item) for item in before]

        def undo() -> None:
            for where, before in maps:
                where.pairs = before
            for where, before in lists:
                where.items = before

        return undo

    def _longer(self, where: nodes.Mapping) -> Callable[[], None]:
        """One operand more: the last one once more, and its format."""
        before = where.pairs[:]
        for at, (key, value) in enumerate(before):
            if text_of(key) in ("inputs", "in_df") and isinstance(value, nodes.Sequence):
                where.pairs[at] = (key, nodes.Sequence([*value.items, *value.items[-1:]], 0, 0, 0))
        return lambda: setattr(where, "pairs", before)

    def _set(self, where: nodes.Mapping, at: int, value: nodes.Node) -> Callable[[], None]:
        before = where.pairs[:]
        where.pairs[at] = (where.pairs[at][0], deepcopy(value))
        return lambda: setattr(where, "pairs", before)

    def _add(self, key: str) -> Callable[[], None]:
        """A pair of the example, in a map that may be one for it: beside the attributes, or among fields; often also in
        the queue that an op fills."""
        value = self._hinted(key)
        among = [
            where.pairs[at][1]
            for where, at in self.pairs
            if (text_of(where.pairs[at][0]) == "attributes") == (key in ATTRIBUTES)
        ]
        maps = [node for node in among if isinstance(node, nodes.Mapping)] or [where for where, _ in self.pairs]
        where = self.draw.pick(maps)
        name = self.own.get(id(where), "")
        filled = [other for other, at in self.pairs if _is_input(other.pairs[at], name)] if name else []
        chosen = [(one, one.pairs) for one in (where, *(filled if self.draw.chance(50) else ()))]
        for one, before in chosen:
            one.pairs = [*before, (scalar(key), deepcopy(value))]

        def undo() -> None:
            for one, before in chosen:
                one.pairs = before

        return undo

    def _hinted(self, key: str) -> nodes.Node:
        """A value that the example has for a key."""
        return self._named(self.hints[key][self.draw.integer(0, len(self.hints[key]) - 1)])

    def _named(self, value: nodes.Node) -> nodes.Node:
        """A value of an example; names in it, that the document does not know, are mostly those of the document."""
        if isinstance(value, nodes.Sequence):
            return nodes.Sequence([self._named(item) for item in value.items], 0, 0, 0)
        is_name = isinstance(value, nodes.Scalar) and re.fullmatch(r"[a-z]\w*", value.text) and self.names
        return scalar(self.draw.pick(self.names)) if is_name and self.draw.chance(60) else value

    def _pair(self, where: nodes.Mapping, at: int) -> Callable[[], None]:
        before = where.pairs[:]
        (key, value) = where.pairs[at]
        kind = 0 if isinstance(value, nodes.Mapping) and self.draw.chance(30) else self.draw.integer(0, 9)
        if kind == 0:
            where.pairs = [*before[:at], *before[at + 1 :]]
        elif kind == 1:
            name = self.draw.pick([text_of(key), *self.names])
            where.pairs = [*before[: at + 1], (scalar(name), value), *before[at + 1 :]]
        elif kind == 2:
            new = self.draw.pick([f"{text_of(key)}x", *self.names])
            where.pairs = [*before[:at], (scalar(new), value), *before[at + 1 :]]
        elif kind == 3:
            alike = [other.pairs[i][1] for other, i in self.pairs if text_of(other.pairs[i][0]) == text_of(key)]
            where.pairs[at] = (key, deepcopy(self.draw.pick(alike)))
        else:
            where.pairs[at] = (key, self._other(value, text_of(key)))
        return lambda: setattr(where, "pairs", before)

    def _item(self, where: nodes.Sequence, at: int) -> Callable[[], None]:
        before = where.items[:]
        kind = self.draw.integer(0, 6)
        to = self.draw.integer(0, len(before) - 1)
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
            letters = text_of(before[at]).rstrip("0123456789")
            alike = [text for text in self._scalars() if letters and text.rstrip("0123456789") == letters]
            new = scalar(self.draw.pick(alike)) if alike and self.draw.chance(40) else self._other(before[at], "")
            where.items[at] = new
        return lambda: setattr(where, "items", before)

    def _other(self, value: nodes.Node, key: str) -> nodes.Node:
        """Another value: a number nearby, a word of the field, a name of the document, or one of another kind."""
        if not isinstance(value, nodes.Scalar):
            items = value.items if isinstance(value, nodes.Sequence) else [pair[1] for pair in value.pairs]
            same = nodes.Sequence([*items, *items[-1:]], 0, 0, 0)
            return self.draw.pick([scalar("oops"), nodes.Sequence([], 0, 0, 0), same, *items[:1]])
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
        return scalar(self.draw.pick(choices))


def scalar(text: str) -> nodes.Scalar:
    """A word of a document."""
    return nodes.Scalar(text, True, 0, 0, 0)


def _is_input(pair: tuple[nodes.Node, nodes.Node], text: str) -> bool:
    return text_of(pair[0]) == "input" and text_of(pair[1]) == text


def text_of(node: nodes.Node) -> str:
    """The word; "" of lists and maps."""
    return node.text if isinstance(node, nodes.Scalar) else ""


_BASE: Final = Budget(ops=4, graphs=2, tiles=8, inputs=2)
_EDITS_OF_A_BASE: Final = 40
_PAIR: Final = re.compile(
    r"(?=(?<![\w$'-])('[^']+'|[\w$-]+): (\[[^\[\]]*(?:\[[^\]]*\][^\[\]]*)*\]|\{[^{}]*\}|[^,{}\[\]]+))"
)
"""`key: value` in an example, the inner ones of a nested pair, too."""
_TILE: Final = re.compile(r"\b(\d+)x(\d+)\b")
"""Of a tile, as rules speak of it."""
_SECTIONS: Final[Mapping[str, registry.Checks[Any]]] = {
    "fused_ops": registry.fused_check, "programs": registry.program_check, "queues": registry.queue_check,
    "graphs": registry.op_check,
}  # fmt: skip
"""Where the objects of checks stand; those of whole graphs and netlists are anywhere."""
_TESTED: Final = {"performance-check": "performance-check", "test-config": "-config|overrides"}
"""Sections about tests, and what rules of them speak of."""
NOT_ALONE: Final[Mapping[str, str]] = {
    "V065": "an op, its queue and all that reads it would have to change their tile and their shape together",
    "V066": "only ops that work tile by tile are drawn with small tiles, no matmul whose input 1 is transposed",
    "V078": "the grid, blocks and addresses of a queue would have to change together",
    "V106": "a view of a view has a third ram of the same place",
    "V127": "no queue between two ops of one temporal graph is drawn",
    "V133": "the scheduled ops around it would have to leave dest to it",
    "V142": "formats of an operand, its queue and dest would have to change together",
    "V155": "a queue in host memory has other fields, and no view is drawn that a program could allocate",
    "V209": "an operand would have to be exchanged for one of the same shape and format, and its TMs with it",
    "V281": "the settings of a queue would have to move to another graph as they are",
    "V285": "a variable declared in the loop has to be used there, too",
    "V287": "rams have pointers that do not move, or move by themselves",
    "V365": "a queue would have to change its name wherever it is written",
}
"""Rules that a netlist can break by itself, but that no edit made here breaks without others: what it would take."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A valid netlist, one that breaks a rule, and what the checker finds in that and not in the valid one."""

    rule: str
    valid: str
    text: str
    findings: tuple[Diagnostic, ...]


def broken(rule: str, *, seed: int = 0, edits: int = 12_000) -> Broken:
    """A netlist that breaks this rule and no other, the same for the same seed.

    Of the rules that refuse no netlist without `--strict` the finding is a warning. Raises HostError for a rule that is
    not known, that no netlist breaks by itself, that no edit breaks alone, and where none of so many did.
    """
    declared = RULES.get(rule)
    if declared is None:
        raise HostError(f"rule {rule}: known are {', '.join(RULES)}")
    if rule in NOT_CHECKED:
        raise HostError(f"rule {rule} cannot be broken: {declared.why}")
    if rule in ROUTED:
        raise HostError(f"rule {rule} is one of pipes and streams, which `check --strict` makes: no edit aims at it")
    if rule in NOT_ALONE:
        raise HostError(f"rule {rule}: no edit breaks it alone: {NOT_ALONE[rule]}")
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
        own, hints = (looked_at, _hints("")) if free else (types, _hints(rule.wrong))
        valid = generate(random, arch=arch, budget=_BASE, op_types=own, wanted=words)
        there = {item.rule for item in valid.netlist.diagnostics}
        tree = _with_sections(read_any(valid.text), rule)
        valid = replace(valid, text=_written(tree))
        mutator = Mutator(draw=draw, tree=tree, hints=hints, section=section, instructions=_items(rule.wrong))
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
    if not isinstance(tree, nodes.Mapping) or any(text_of(key) in _TESTED for key, _ in tree.pairs):
        return tree
    found: list[tuple[nodes.Node, nodes.Node]] = [(scalar(key), value) for key, value in _pairs(rule.right)]
    own = nodes.Mapping(found[:1], 0, 0, 0)
    section = _tested(rule)
    around: tuple[str, ...] = ("overrides", "stimulus-config") if rule.right.startswith("overrides") else ()
    if section == "performance-check" and found and not _is_named(found[0][1]):
        around = ("check",)
    for name in around:
        own = nodes.Mapping([(scalar(name), own)], 0, 0, 0)
    if section:
        tree.pairs.append((scalar(section), own))
    return tree


def _is_named(value: nodes.Node) -> bool:
    """Whether what an example of a performance check has is a whole one: maps of metrics under a name."""
    return isinstance(value, nodes.Mapping) and any(isinstance(inner, nodes.Mapping) for _, inner in value.pairs)


def _tested(rule: Rule) -> str:
    """The section about tests that a rule is about, "" for others."""
    return next((name for name, word in _TESTED.items() if re.search(word, f"{rule.summary} {rule.right}")), "")


def _written(tree: nodes.Node) -> str:
    return "\n".join(block(tree)) + "\n"


def _looks_at(rule: Rule) -> tuple[str, Sequence[str]]:
    """The section of a netlist that a rule's checks look at or that it is about, "" for any, and the op types."""
    for section, checks in _SECTIONS.items():
        found = [check for check in checks.all if check.rule is rule]
        if found:
            kinds = frozenset(kind for check in found for kind in check.kinds or ())
            types = ["fused_op"] if section == "fused_ops" else _types(kinds)
            return section, types or GENERATED
    return _tested(rule), GENERATED


def _types(kinds: frozenset[str]) -> list[str]:
    """Op types by their names, families and traits."""
    known = {name: OP_TYPES[name] for name in GENERATED}
    return [name for name, op in known.items() if kinds & {name, op.family, *op.traits}]


def _pairs(example: str) -> Iterator[tuple[str, nodes.Node]]:
    for key, value in _PAIR.findall(example):
        try:
            yield key.strip("'"), read_any(value.strip())
        except UnreadableError:
            continue


def _hints(example: str) -> Mapping[str, list[nodes.Node]]:
    """Pairs of an example, by key, and the tiles that it speaks of."""
    found: dict[str, list[nodes.Node]] = {}
    for key, value in _pairs(example):
        found.setdefault(key, []).append(value)
    for high, wide in _TILE.findall(example):
        found.setdefault("tile_dim", []).append(nodes.Sequence([scalar(high), scalar(wide)], 0, 0, 0))
    return found


def _items(example: str) -> Sequence[nodes.Node]:
    """Instructions, where an example is a list of them."""
    try:
        found = read_any(example)
    except UnreadableError:
        return ()
    return found.items if isinstance(found, nodes.Sequence) else ()
