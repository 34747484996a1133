"""Netlists that break exactly one rule of the checker (docs/stress/generate-netlists.md): a valid one is drawn, and
edits of its YAML tree are tried until the checker finds that one thing and nothing else.

What is edited is drawn from the document, from the tables of fields and attributes, and from the example of what is
wrong that the rule's declaration has.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from buda_emu.checker import Diagnostic, Rule
from buda_emu.errors import HostError
from buda_emu.netlist import nodes
from buda_emu.netlist.load import check_text
from buda_emu.netlist.rules import registry
from buda_emu.netlist.rules.book import NOT_CHECKED, ROUTED, RULES
from buda_emu.netlist.yaml_reader import UnreadableError, read_any
from buda_emu.netlist.yaml_text import block
from buda_emu.records import dataclass
from buda_emu.spec.archs import ARCHS, DEFAULT_ARCH
from buda_emu.spec.ops import OP_TYPES
from buda_emu.testing.edits import Mutator, scalar, text_of
from buda_emu.testing.generator.draw import Draw
from buda_emu.testing.generator.netlist import GENERATED, Budget, generate

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
        mutator = Mutator(draw, tree, hints, section, _items(rule.wrong))
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
