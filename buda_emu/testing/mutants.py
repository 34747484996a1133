"""Netlists that break exactly one rule of the checker (docs/stress/generate-netlists.md): a valid one is drawn, and
edits of its YAML tree are tried until the checker finds that rule broken and no other.

Edits are drawn from the document, from the tables of fields and attributes, and from the wrong example of the rule's
declaration.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import field, replace
from itertools import chain
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
from buda_emu.testing.generator.netlist import GENERATED, Budget, Generated, generate

_NUMBERS: Final = ("0", "-1", "1", "2", "3", "5", "33", "4096", "1000000", "0.5", "oops")


def _legal_words() -> dict[str, tuple[str, ...]]:
    """Return the legal words of each attribute and field, by name; all netlist formats for a field that is a format."""
    words = {name: spec.words for name, spec in ATTRIBUTES.items() if spec.words}
    for table in vars(tables).values():
        if isinstance(table, dict):
            for name, entry in table.items():  # pyright: ignore[reportUnknownVariableType] - tables of other types, too
                if isinstance(entry, tables.Field):
                    words[name] = entry.words or (NETLIST_FORMATS if entry.kind in ("format", "formats") else ())
    return words


_WORDS: Final[Mapping[str, tuple[str, ...]]] = _legal_words()


@dataclass(slots=True)
class Mutator:
    """Random edits of one tree, each undone by the function that it returns. `hints` and `instructions` are values by
    key and instructions of the rule's wrong example, `section` is where most edits are made, "" for anywhere. The
    fields below are collected from the tree before each edit: `pairs` and `items` of the part to edit as (owner,
    position), `names` as keys of maps."""

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
    map_names: dict[int, str] = field(default_factory=dict[int, str])
    """The name that a map stands under, by the map's id."""
    depths: dict[str, int] = field(default_factory=dict[str, int])
    """The number of maps and lists around a name."""

    def edit(self) -> Callable[[], None]:
        """Make one random edit of the tree in place, and return the function that undoes it. Edits are undone in
        reverse order."""
        self._collect_places()
        hinted = [(owner, at) for owner, at in self.pairs if text_of(owner.pairs[at][0]) in self.hints]
        if self.hints and self.draw.chance(45):
            return self._edit_by_hint(hinted)
        lists = [owner for owner, at in self.items if at == 0 and not isinstance(owner.items[0], nodes.Scalar)]
        if self.instructions and lists and self.draw.chance(45):
            return self._insert_instruction(self.draw.pick(lists))
        if self.draw.chance(8):
            return self._replace_name()
        if self.draw.chance(5):
            return self._repeat_last_operand(self.draw.pick(self.pairs)[0])
        if self.items and self.draw.chance(30):
            return self._edit_item(*self.draw.pick(self.items))
        return self._edit_pair(*self.draw.pick(hinted if hinted and self.draw.chance(40) else self.pairs))

    def _collect_places(self) -> None:
        """Draw the part of the tree for the next edit, and collect its pairs and items, and the names of the tree. A
        part without pairs is replaced by the whole tree."""
        self.names = []
        self.map_names = {}
        self.depths = {}
        part = self._part_to_edit()
        self.pairs = []
        self.items = []
        self._add_places(self.tree)
        self.everywhere = self.pairs, self.items
        if part is not self.tree:
            self.pairs = []
            self.items = []
            self._add_places(part)
        if not self.pairs:
            self._add_places(self.tree)

    def _edit_by_hint(self, hinted: list[tuple[nodes.Mapping, int]]) -> Callable[[], None]:
        """Give a pair of the tree the example's value of its key, or add a pair of the example; return the function
        that undoes it. `hinted` are the pairs whose keys the example has. A value that is a name is now and then the
        map's own."""
        if not hinted or not self.draw.chance(60):
            return self._add_hinted_pair(list(self.hints)[self.draw.integer(0, len(self.hints) - 1)])
        owner, at = self.draw.pick(hinted)
        value = self._draw_hint(text_of(owner.pairs[at][0]))
        name = ""
        if text_of(value) in self.names:
            name = self.map_names.get(id(owner), "")
        if name and self.draw.chance(20):
            value = scalar(name)
        return self._set_value(owner, at, value)

    def _part_to_edit(self) -> nodes.Node:
        """Return where the next edit is made: three times out of four the rule's section, if the tree has it, else the
        tree."""
        if self.section and isinstance(self.tree, nodes.Mapping) and self.draw.chance(75):
            return next((value for key, value in self.tree.pairs if text_of(key) == self.section), self.tree)
        return self.tree

    def _add_places(self, node: nodes.Node, depth: int = 0) -> None:
        """Add the pairs, items and names under `node` to those collected so far; `depth` is the number of maps and
        lists around it."""
        if isinstance(node, nodes.Mapping):
            for at, (key, value) in enumerate(node.pairs):
                self.pairs.append((node, at))
                if isinstance(value, nodes.Mapping):
                    self.names.append(text_of(key))
                    self.map_names[id(value)] = text_of(key)
                    self.depths.setdefault(text_of(key), depth)
                self._add_places(value, depth + 1)
        elif isinstance(node, nodes.Sequence):
            for at, value in enumerate(node.items):
                self.items.append((node, at))
                self._add_places(value, depth + 1)

    def _insert_instruction(self, owner: nodes.Sequence) -> Callable[[], None]:
        """Insert an instruction of the example at a random place of a list, with most of its variables replaced by
        those of the document; return the function that undoes it."""
        before = owner.items
        variables = [name for name in self._value_words() if name.startswith("$")]

        def adapt(node: nodes.Node) -> nodes.Node:
            """Return a copy of an instruction's node in which most variables are those of the document."""
            if isinstance(node, nodes.Mapping):
                return nodes.Mapping([(key, adapt(value)) for key, value in node.pairs], 0, 0, 0)
            if isinstance(node, nodes.Sequence):
                return nodes.Sequence([adapt(entry) for entry in node.items], 0, 0, 0)
            if text_of(node).startswith("$") and variables and self.draw.chance(70):
                return scalar(self.draw.pick(variables))
            return node

        at = self.draw.integer(0, len(before))
        owner.items = [*before[:at], adapt(self.draw.pick(self.instructions)), *before[at:]]
        return lambda: setattr(owner, "items", before)

    def _value_words(self) -> list[str]:
        """Return the words that are values of pairs or items of lists, in the part to edit; "" for each map or list."""
        after_keys = [text_of(owner.pairs[at][1]) for owner, at in self.pairs]
        return after_keys + [text_of(owner.items[at]) for owner, at in self.items]

    def _replace_name(self) -> Callable[[], None]:
        """Replace a name of the document wherever it is written, by another of the same depth or that with ".1", the
        name of a copy; return the function that undoes it."""
        pairs, items = self.everywhere
        old = self.draw.pick(self.names)
        alike = [name for name in self.depths if self.depths[name] == self.depths[old]]
        new = self.draw.pick(alike) + self.draw.pick(("", "", ".1"))
        maps = [(owner, owner.pairs[:]) for owner, at in pairs if at == 0]
        lists = [(owner, owner.items[:]) for owner, at in items if at == 0]

        def rename(node: nodes.Node) -> nodes.Node:
            """Return the new name in place of the old one, any other node unchanged."""
            if text_of(node) == old:
                return scalar(new)
            return node

        for owner, before in maps:
            owner.pairs = [(rename(key), rename(value)) for key, value in before]
        for owner, before in lists:
            owner.items = [rename(entry) for entry in before]

        def undo() -> None:
            """Give all maps and lists the contents from before."""
            for owner, before in maps:
                owner.pairs = before
            for owner, before in lists:
                owner.items = before

        return undo

    def _repeat_last_operand(self, owner: nodes.Mapping) -> Callable[[], None]:
        """Give an op its last operand and its format a second time; a map without `inputs` stays. Return the function
        that undoes it."""
        before = owner.pairs[:]
        for at, (key, value) in enumerate(before):
            if text_of(key) in ("inputs", "in_df") and isinstance(value, nodes.Sequence):
                owner.pairs[at] = (key, nodes.Sequence([*value.items, *value.items[-1:]], 0, 0, 0))
        return lambda: setattr(owner, "pairs", before)

    def _set_value(self, owner: nodes.Mapping, at: int, value: nodes.Node) -> Callable[[], None]:
        """Give pair number `at` of a map a copy of `value`; return the function that undoes it."""
        before = owner.pairs[:]
        owner.pairs[at] = (owner.pairs[at][0], deepcopy(value))
        return lambda: setattr(owner, "pairs", before)

    def _add_hinted_pair(self, key: str) -> Callable[[], None]:
        """Add a pair of the example, with this key, to a map that may have it; return the function that undoes it. In
        half of the cases the queues that the map's op fills get it, too."""
        value = self._draw_hint(key)
        maps = self._maps_that_may_have(key)
        target = self.draw.pick(maps or [owner for owner, _ in self.pairs])
        targets = [target]
        name = self.map_names.get(id(target), "")
        filled: list[nodes.Mapping] = []
        if name:
            filled = [owner for owner, at in self.pairs if _says_input(owner.pairs[at], name)]
        if self.draw.chance(50):
            targets += filled
        before = [(owner, owner.pairs) for owner in targets]
        for owner, pairs in before:
            owner.pairs = [*pairs, (scalar(key), deepcopy(value))]

        def undo() -> None:
            """Give the maps the pairs from before."""
            for owner, pairs in before:
                owner.pairs = pairs

        return undo

    def _maps_that_may_have(self, key: str) -> list[nodes.Mapping]:
        """Return the maps that a key could be added to: those under `attributes` for an attribute, all others for a
        field."""
        maps: list[nodes.Mapping] = []
        for owner, at in self.pairs:
            name, content = owner.pairs[at]
            if (text_of(name) == "attributes") == (key in ATTRIBUTES) and isinstance(content, nodes.Mapping):
                maps.append(content)
        return maps

    def _draw_hint(self, key: str) -> nodes.Node:
        """Draw one of the example's values for a key; most of its names become names of the document."""
        return self._with_document_names(self.hints[key][self.draw.integer(0, len(self.hints[key]) - 1)])

    def _with_document_names(self, value: nodes.Node) -> nodes.Node:
        """Return a value of an example in which most words that can be names are drawn from the document's names."""
        if isinstance(value, nodes.Sequence):
            return nodes.Sequence([self._with_document_names(entry) for entry in value.items], 0, 0, 0)
        is_name = isinstance(value, nodes.Scalar) and re.fullmatch(r"[a-z]\w*", value.text) and self.names
        if is_name and self.draw.chance(60):
            return scalar(self.draw.pick(self.names))
        return value

    def _edit_pair(self, owner: nodes.Mapping, at: int) -> Callable[[], None]:
        """Remove pair number `at` of a map, copy it under a name, rename its key, or change its value; return the
        function that undoes it."""
        before = owner.pairs[:]
        key, value = owner.pairs[at]
        if isinstance(value, nodes.Mapping) and self.draw.chance(30):
            kind = 0
        else:
            kind = self.draw.integer(0, 9)
        if kind == 0:
            owner.pairs = [*before[:at], *before[at + 1 :]]
        elif kind == 1:
            name = self.draw.pick([text_of(key), *self.names])
            owner.pairs = [*before[: at + 1], (scalar(name), value), *before[at + 1 :]]
        elif kind == 2:
            new = self.draw.pick([f"{text_of(key)}x", *self.names])
            owner.pairs = [*before[:at], (scalar(new), value), *before[at + 1 :]]
        elif kind == 3:
            alike = [other.pairs[i][1] for other, i in self.pairs if text_of(other.pairs[i][0]) == text_of(key)]
            owner.pairs[at] = (key, deepcopy(self.draw.pick(alike)))
        else:
            owner.pairs[at] = (key, self._other_value(value, text_of(key)))
        return lambda: setattr(owner, "pairs", before)

    def _edit_item(self, owner: nodes.Sequence, at: int) -> Callable[[], None]:
        """Remove entry number `at` of a list, copy, exchange or move it, or change its value; return the function that
        undoes it."""
        before = owner.items[:]
        kind = self.draw.integer(0, 6)
        to = self.draw.integer(0, len(before) - 1)
        if kind == 0:
            owner.items = [*before[:at], *before[at + 1 :]]
        elif kind == 1:
            owner.items = [*before[:to], before[at], *before[to:]]
        elif kind == 2:
            owner.items[at] = before[to]
            owner.items[to] = before[at]
        elif kind == 3:
            owner.items = [*before[:at], *before[at + 1 :]]
            owner.items.insert(to, before[at])
        else:
            owner.items[at] = self._other_item_value(before[at])
        return lambda: setattr(owner, "items", before)

    def _other_item_value(self, node: nodes.Node) -> nodes.Node:
        """Draw a value to replace an item of a list: a word of the document that differs only in the digits at its end,
        or any `_other_value`."""
        letters = text_of(node).rstrip("0123456789")
        alike = [text for text in self._value_words() if letters and text.rstrip("0123456789") == letters]
        if alike and self.draw.chance(40):
            return scalar(self.draw.pick(alike))
        return self._other_value(node, "")

    def _other_value(self, value: nodes.Node, key: str) -> nodes.Node:
        """Draw a value to replace that of a key: a number nearby, a word of the field, a name, or a node of another
        kind. It may be the same by chance."""
        if not isinstance(value, nodes.Scalar):
            if isinstance(value, nodes.Sequence):
                items = value.items
            else:
                items = [pair[1] for pair in value.pairs]
            longer = nodes.Sequence([*items, *items[-1:]], 0, 0, 0)
            return self.draw.pick([scalar("oops"), nodes.Sequence([], 0, 0, 0), longer, *items[:1]])
        choices = self._other_words(value.text, key)
        if self.draw.chance(8):
            return nodes.Sequence([value], 0, 0, 0)
        return scalar(self.draw.pick(choices))

    def _other_words(self, text: str, key: str) -> list[str]:
        """Return the words that may replace `text` under a key: formats for a format, numbers for a number, flags for a
        flag, else names, numbers and legal words of the field."""
        if text in NETLIST_FORMATS:
            return list(NETLIST_FORMATS)
        if re.fullmatch(r"-?\d+", text):
            number = int(text)
            return [*map(str, (number + 1, number - 1, number * 2, number * 3, number + 4, -number)), *_NUMBERS]
        if re.fullmatch(r"0x[0-9a-f]+", text):
            number = int(text, 16)
            return [hex(max(0, number + step)) for step in (4, 16, 32, -32, 1 << 20, -(1 << 28), 1 << 30, 1 << 31)]
        if text in ("true", "false"):
            return ["true", "false", "0", "maybe"]
        return [*self.names, *_NUMBERS, *_WORDS.get(key, ())]


def scalar(text: str) -> nodes.Scalar:
    """Make a node of a document that holds one word, without a place in a file."""
    return nodes.Scalar(text, True, 0, 0, 0)


def _says_input(pair: tuple[nodes.Node, nodes.Node], text: str) -> bool:
    """Return whether a pair is `input: TEXT` with this text, as a queue has it for the op that fills it."""
    return text_of(pair[0]) == "input" and text_of(pair[1]) == text


def text_of(node: nodes.Node) -> str:
    """Return the word that a scalar holds; "" for lists and maps."""
    if isinstance(node, nodes.Scalar):
        return node.text
    return ""


_BASE: Final = Budget(ops=4, graphs=2, tiles=8, inputs=2)
_EDITS_OF_A_BASE: Final = 40  # edits that are tried on one netlist before another is drawn
_PAIR: Final = re.compile(
    r"(?=(?<![\w$'-])('[^']+'|[\w$-]+): (\[[^\[\]]*(?:\[[^\]]*\][^\[\]]*)*\]|\{[^{}]*\}|[^,{}\[\]]+))"
)
"""`key: value` in an example, the inner ones of a nested pair, too."""
_TILE: Final = re.compile(r"\b(\d+)x(\d+)\b")
"""The size of a tile in an example, such as 16x32."""
_SECTIONS: Final[Mapping[str, registry.Checks[Any]]] = {
    "fused_ops": registry.fused_check, "programs": registry.program_check, "queues": registry.queue_check,
    "graphs": registry.op_check,
}  # fmt: skip
"""Sections with the objects of checks; those of checks of whole graphs and netlists are anywhere."""
_TESTED: Final = {"performance-check": "performance-check", "test-config": "-config|overrides"}
"""Sections about tests, with the pattern by which a rule's text is recognised as one about them."""
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
"""Rules that a netlist can break by itself, but that no edit here breaks without others, with the missing edit."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A valid netlist and one made from it that breaks `rule` alone, both as text, and the findings that only that one
    has."""

    rule: str
    valid: str
    text: str
    findings: tuple[Diagnostic, ...]


def broken(rule: str, *, seed: int = 0, edits: int = 12_000) -> Broken:
    """Make a netlist that breaks this rule and no other; the same seed gives the same netlist. At most `edits` edits
    are tried. A rule that refuses no netlist without `--strict` gives a warning. Raises HostError for an unknown rule,
    for one that no netlist breaks by itself or no edit breaks alone, and where none of the edits did."""
    declared = RULES.get(rule)
    if declared is None:
        raise HostError(f"rule {rule}: known are {', '.join(RULES)}")
    if rule in NOT_CHECKED:
        raise HostError(f"rule {rule} cannot be broken: {declared.why}")
    if rule in ROUTED:
        raise HostError(f"rule {rule} is one of pipes and streams, which `check --strict` makes: no edit aims at it")
    if rule in NOT_ALONE:
        raise HostError(f"rule {rule}: no edit breaks it alone: {NOT_ALONE[rule]}")
    for candidate in _single_breaks(Random(f"{seed} {rule}"), edits, declared):
        if candidate.rule == rule:
            return candidate
    raise HostError(f"none of {edits} edits breaks {rule} alone")


def _single_breaks(random: Random, edits: int, rule: Rule) -> Iterator[Broken]:
    """Try `edits` edits and yield each netlist that breaks a single rule, whichever that is. Netlists to edit and edits
    are drawn with words of `rule`, so that it is often that one."""
    words = frozenset(re.findall(r"\w+", f"{rule.wrong} {rule.right} {rule.summary}"))
    draw = Draw(random, words)
    section, section_types = _section_and_types(rule)
    types = [name for name in GENERATED if name in words] or section_types
    arch = next((name for name in ARCHS if name in words), DEFAULT_ARCH)
    for start in range(0, edits, _EDITS_OF_A_BASE):
        # Every third base is edited without the example, which may lack the point or mislead.
        if start // _EDITS_OF_A_BASE % 3 == 2:
            op_types: Sequence[str] = section_types
            hints = _example_values("")
        else:
            op_types = types
            hints = _example_values(rule.wrong)
        valid = generate(random, arch=arch, budget=_BASE, op_types=op_types, wanted=words)
        tree = _add_test_section(read_any(valid.text), rule)
        valid = replace(valid, text=_tree_text(tree))
        mutator = Mutator(
            draw=draw, tree=tree, hints=hints, section=section, instructions=_example_instructions(rule.wrong)
        )
        for _ in range(min(_EDITS_OF_A_BASE, edits - start)):
            text = _edit_text(mutator, rule)
            candidate = _single_break(text, valid, arch)
            if candidate is not None:
                yield candidate


def _edit_text(mutator: Mutator, rule: Rule) -> str:
    """Return the text of the mutator's tree with one to three random edits; the tree is as before at the end."""
    draw = mutator.draw
    undo = [mutator.edit() for _ in range(draw.pick((1, 1, 1, 2, 3)))]
    text = _tree_text(mutator.tree)
    if draw.chance(1):
        text += "  - ["
    if rule.wrong.startswith("#"):
        text = text.replace("\n", f"  {rule.wrong}\n", draw.integer(1, 3))
    for undo_edit in reversed(undo):
        undo_edit()
    return text


def _single_break(text: str, valid: Generated, arch: str) -> Broken | None:
    """Check a text and return it with its findings if it breaks exactly one rule, which the valid netlist does not
    break; else None."""
    diagnostics = check_text(text, "broken.yaml", arch).diagnostics
    new = {diagnostic.rule for diagnostic in diagnostics}
    new -= {diagnostic.rule for diagnostic in valid.netlist.diagnostics}
    errors = {diagnostic.rule for diagnostic in diagnostics if diagnostic.severity == "error"}
    if len(new) != 1 or not errors <= new:
        return None
    (rule,) = new
    return Broken(rule, valid.text, text, tuple(diagnostic for diagnostic in diagnostics if diagnostic.rule == rule))


def _add_test_section(tree: nodes.Node, rule: Rule) -> nodes.Node:
    """Append to the tree a section about tests as in the rule's right example, if the rule is about one and the tree
    has none; return the tree."""
    if not isinstance(tree, nodes.Mapping) or any(text_of(key) in _TESTED for key, _ in tree.pairs):
        return tree
    pairs: list[tuple[nodes.Node, nodes.Node]] = [(scalar(key), value) for key, value in _example_pairs(rule.right)]
    content = nodes.Mapping(pairs[:1], 0, 0, 0)
    section = _test_section(rule)
    around: tuple[str, ...] = ()
    if rule.right.startswith("overrides"):
        around = ("overrides", "stimulus-config")
    if section == "performance-check" and pairs and not _is_complete_check(pairs[0][1]):
        around = ("check",)
    for name in around:
        content = nodes.Mapping([(scalar(name), content)], 0, 0, 0)
    if section:
        tree.pairs.append((scalar(section), content))
    return tree


def _is_complete_check(value: nodes.Node) -> bool:
    """Return whether a value of the example of a `performance-check` already holds maps of metrics, so that the
    example's key is the check's name."""
    return isinstance(value, nodes.Mapping) and any(isinstance(inner, nodes.Mapping) for _, inner in value.pairs)


def _test_section(rule: Rule) -> str:
    """Return which section about tests a rule is about, recognised by words of its text; "" for other rules."""
    return next((name for name, word in _TESTED.items() if re.search(word, f"{rule.summary} {rule.right}")), "")


def _tree_text(tree: nodes.Node) -> str:
    """Return a tree as the text of a YAML file."""
    return "\n".join(block(tree)) + "\n"


def _section_and_types(rule: Rule) -> tuple[str, Sequence[str]]:
    """Return where to look for breaking a rule: the section that its checks read or that it is about, "" for any, and
    the op types to generate."""
    for section, checks in _SECTIONS.items():
        checks_of_rule = [check for check in checks.all if check.rule is rule]
        if checks_of_rule:
            kinds = frozenset(chain.from_iterable(check.kinds or () for check in checks_of_rule))
            if section == "fused_ops":
                types = ["fused_op"]
            else:
                types = _op_types_of(kinds)
            return section, types or GENERATED
    return _test_section(rule), GENERATED


def _op_types_of(kinds: frozenset[str]) -> list[str]:
    """Return the op types that the generator can draw and whose name, family or trait is in `kinds`; may be empty."""
    op_types = {name: OP_TYPES[name] for name in GENERATED}
    return [name for name, op in op_types.items() if kinds & {name, op.family, *op.traits}]


def _example_pairs(example: str) -> Iterator[tuple[str, nodes.Node]]:
    """Yield each pair `key: value` in an example's text, inner ones too, as key and node; unreadable values are
    skipped."""
    for key, value in _PAIR.findall(example):
        try:
            yield key.strip("'"), read_any(value.strip())
        except UnreadableError:
            continue


def _example_values(example: str) -> Mapping[str, list[nodes.Node]]:
    """Return the values in an example by key, and its tile sizes (16x32) as values of `tile_dim`; {} for ""."""
    values: dict[str, list[nodes.Node]] = {}
    for key, value in _example_pairs(example):
        values.setdefault(key, []).append(value)
    for high, wide in _TILE.findall(example):
        values.setdefault("tile_dim", []).append(nodes.Sequence([scalar(high), scalar(wide)], 0, 0, 0))
    return values


def _example_instructions(example: str) -> Sequence[nodes.Node]:
    """Return the instructions of an example that is a list of them; () for any other example."""
    try:
        content = read_any(example)
    except UnreadableError:
        return ()
    if isinstance(content, nodes.Sequence):
        return content.items
    return ()
