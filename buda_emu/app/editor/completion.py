"""Completion at the cursor: words of the tables and names in scope, limited to those that make a legal netlist."""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from buda_emu.app.editor.place import Place, place_at
from buda_emu.app.editor.text import OpenText
from buda_emu.netlist.fields import (
    DEVICE_FIELDS,
    EXECUTE_FIELDS,
    FUSED_FIELDS,
    GRAPH_FIELDS,
    INSTRUCTIONS,
    OP_FIELDS,
    PAD_FIELDS,
    QUEUE_FIELDS,
    SECTIONS,
    SETTING_FIELDS,
    SUB_OP_FIELDS,
    Field,
    Table,
)
from buda_emu.netlist.reader.queues import BROADCAST_DIMS, TM_WORDS
from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.spec.varinst import OPCODES
from buda_emu.support.records import dataclass

Kind = Literal["key", "word", "queue", "op", "graph", "fused op", "variable"]
SECONDS: Final = 0.4
"""Time in which candidates are tried; the rest are offered untried, after the others."""
_BOOLS: Final = ("true", "false")


@dataclass(frozen=True, slots=True)
class Offer:
    """One text that completion offers. `tried` is true if the netlist has no new errors with it."""

    text: str
    kind: Kind
    doc: str = ""
    tried: bool = False


def complete(text: OpenText, line: int, column: int, seconds: float = SECONDS) -> list[Offer]:
    """Return the texts that may be written before `column` of `line`, which count from 1, in place of the word
    there."""
    place = place_at(text.lines, line, column)
    offers = {offer.text: offer for offer in _candidates(text, place)}
    matches = [offer for offer in offers.values() if offer.text.lower().startswith(place.word.lower())]
    return _legal(text, line, place, matches or [*offers.values()], seconds)


# --------------------------------------------------------------------------------------------------------- candidates
def _candidates(text: OpenText, place: Place) -> Iterator[Offer]:
    keys = place.keys
    if not keys:
        yield from _keys(SECTIONS, place.block)
        return
    section = keys[0]
    if section == "devices":
        yield from _device_fields(place, keys[1:])
    elif section == "queues" and len(keys) > 1:
        yield from _in_object(text, QUEUE_FIELDS, place, keys[2:])
    elif section == "graphs":
        yield from _in_graph(text, place, keys)
    elif section == "fused_ops" and len(keys) > 1:
        yield from _in_fused(text, place, keys)
    elif section == "programs":
        yield from _in_program(text, place, keys)


def _in_graph(text: OpenText, place: Place, keys: tuple[str, ...]) -> Iterator[Offer]:
    if len(keys) == 2 and not place.levels:
        yield from _keys({name: field.doc for name, field in GRAPH_FIELDS.items()}, place.block)
    elif len(keys) > 2 and keys[2] not in GRAPH_FIELDS:
        yield from _in_object(text, OP_FIELDS, place, keys[3:])


def _in_fused(text: OpenText, place: Place, keys: tuple[str, ...]) -> Iterator[Offer]:
    if len(keys) == 2 and not place.levels:
        yield from _keys({name: field.doc for name, field in FUSED_FIELDS.items()}, place.block)
    elif len(keys) > 3 and keys[2] == "schedules":
        yield from _in_object(text, SUB_OP_FIELDS, place, keys[4:])


def _in_object(text: OpenText, table: Table, place: Place, keys: tuple[str, ...]) -> Iterator[Offer]:
    """Yield the offers in the map of a queue, op or scheduled op; `keys` are those below it."""
    if not keys:
        yield from _keys({name: field.doc for name, field in table.items()}, _sibling_keys(place))
        if table is OP_FIELDS:
            yield from _shaping(place)
        return
    key = keys[0]
    if key == "attributes":
        yield from _attribute(text, place, keys[1:])
    elif key.endswith("_tms"):
        yield from _tm(place, keys[1:])
    elif key.endswith(("_pad", "_unpad")) and key.startswith("input_") and len(keys) == 1:
        yield from _keys({name: field.doc for name, field in PAD_FIELDS.items()}, _sibling_keys(place))
    elif key in table:
        yield from _values(text, table[key])


def _shaping(place: Place) -> Iterator[Offer]:
    if place.levels:
        count = place.levels[0].values.get("inputs", "")
    else:
        count = ""
    used = set(_sibling_keys(place))
    if count:
        for name in ("input_0_tms", "input_1_tms", "input_2_tms"):
            if name not in used:
                yield Offer(name, "key", "TMs on this input, applied from left to right")


def _attribute(text: OpenText, place: Place, keys: tuple[str, ...]) -> Iterator[Offer]:
    outer = place.levels[0] if place.levels else None
    if outer is not None:
        op_type = outer.values.get("type", "")
    else:
        op_type = ""
    if not keys:
        legal = {
            name: spec.doc for name, spec in ATTRIBUTES.items() if op_type not in OP_TYPES or spec.is_legal_on(op_type)
        }
        yield from _keys(legal, _sibling_keys(place))
    elif keys[0] == "fused_op_id":
        yield from (Offer(name.text, "fused op") for name in text.names.definitions("fused op"))
    elif keys[0] in ATTRIBUTES:
        spec = ATTRIBUTES[keys[0]]
        yield from (Offer(word, "word") for word in (_BOOLS if spec.kind == "bool" else spec.words))


def _tm(place: Place, keys: tuple[str, ...]) -> Iterator[Offer]:
    if not keys:
        yield from (Offer(word, "word") for word in TM_WORDS)
    elif keys == ("broadcast",):
        yield from (Offer(word, "key") for word in BROADCAST_DIMS if word not in _sibling_keys(place))


def _in_program(text: OpenText, place: Place, keys: tuple[str, ...]) -> Iterator[Offer]:
    if len(keys) < 2:
        return
    if len(keys) == 2:
        for name, form in INSTRUCTIONS.items():
            yield Offer(name, "word" if name == "endloop" else "key", form.doc)
        return
    program = keys[1]
    word = keys[2]
    below = keys[3:]
    if word in ("allocate_queue", "deallocate_queue"):
        yield from (Offer(name.text, "queue") for name in text.names.definitions("queue"))
    elif word == "loop":
        yield from _variables(text, program)
    elif word == "varinst" and place.levels:
        number = len(place.levels[-1].items)
        if number == 1:
            yield from (Offer(name, "word", opcode.doc) for name, opcode in OPCODES.items())
        else:
            yield from _variables(text, program)
    elif word == "execute":
        yield from _in_execute(text, place, program, below)


def _in_execute(text: OpenText, place: Place, program: str, below: tuple[str, ...]) -> Iterator[Offer]:
    if not below:
        yield from _keys({name: field.doc for name, field in EXECUTE_FIELDS.items()}, _sibling_keys(place))
    elif below[0] == "graph_name":
        yield from (Offer(name.text, "graph") for name in text.names.definitions("graph"))
    elif below[0] == "queue_settings" and len(below) == 1:
        if place.levels:
            graph = place.levels[0].values.get("graph_name", "")
        else:
            graph = ""
        netlist = text.netlist
        if netlist is not None and graph in netlist.graphs:
            read = {name for op in netlist.graphs[graph].ops for name in op.inputs}
        else:
            read = None
        for name in text.names.definitions("queue"):
            if (read is None or name.text in read) and name.text not in _sibling_keys(place):
                yield Offer(name.text, "queue")
    elif below[0] == "queue_settings" and len(below) == 2:
        yield from _keys({name: field.doc for name, field in SETTING_FIELDS.items()}, _sibling_keys(place))
    elif below[0] == "queue_settings" and below[-1] in SETTING_FIELDS:
        if SETTING_FIELDS[below[-1]].default == "false":
            yield from (Offer(word, "word") for word in _BOOLS)
        yield from _variables(text, program)


def _variables(text: OpenText, program: str) -> Iterator[Offer]:
    return (Offer(name.text, "variable") for name in text.names.definitions("variable", program))


def _device_fields(place: Place, keys: tuple[str, ...]) -> Iterator[Offer]:
    if not keys:
        yield from _keys({name: field.doc for name, field in DEVICE_FIELDS.items()}, place.block)
    elif keys[0] in DEVICE_FIELDS:
        yield from (Offer(word, "word") for word in DEVICE_FIELDS[keys[0]].words)


def _values(text: OpenText, field: Field) -> Iterator[Offer]:
    if field.kind in ("format", "formats"):
        yield from (Offer(name, "word") for name in NETLIST_FORMATS)
    elif field.kind == "bool":
        yield from (Offer(word, "word") for word in _BOOLS)
    elif field.words:
        yield from (
            Offer(word, "word", OP_TYPES[word].doc if field.name == "type" and word in OP_TYPES else "")
            for word in field.words
        )
    elif field.name == "inputs" and field.kind == "texts":
        yield from (Offer(name.text, "queue") for name in text.names.definitions("queue"))
        yield from (Offer(name.text, "op") for name in text.names.definitions("op"))
    elif field.name == "input":
        yield Offer("HOST", "word")
        yield from (Offer(name.text, "op") for name in text.names.definitions("op"))
    elif field.name == "alias":
        yield from (Offer(name.text, "queue") for name in text.names.definitions("queue"))


def _keys(table: Mapping[str, str], used: Iterable[str]) -> Iterator[Offer]:
    used_names = set(used)
    return (Offer(name, "key", doc) for name, doc in table.items() if name not in used_names)


def _sibling_keys(place: Place) -> list[str]:
    """Return the keys that the map at the place has already."""
    if place.levels:
        return place.levels[-1].keys
    return place.block


# -------------------------------------------------------------------------------------------------------------- legal
def _legal(text: OpenText, line: int, place: Place, offers: list[Offer], seconds: float) -> list[Offer]:
    """Return the offers with which the checker finds the fewest errors, none of them new. A key without a value
    cannot be tried."""
    row = text.lines[line - 1]
    end = place.column - 1 + len(place.word)
    while end < len(row) and row[end] not in " \t,:{}[]'\"#":
        end += 1
    untried = [offer for offer in offers if offer.kind == "key" and not place.has_value]
    until = time.monotonic() + seconds
    messages = {(finding.rule, finding.message) for finding in text.findings}
    tried: list[tuple[int, Offer]] = []
    remaining = [offer for offer in offers if offer not in untried]
    while remaining and time.monotonic() < until:
        offer = remaining.pop(0)
        lines = [*text.lines]
        lines[line - 1] = row[: place.column - 1] + offer.text + row[end:]
        errors = [finding for finding in text.with_text("\n".join(lines)).findings if finding.severity == "error"]
        if all((finding.rule, finding.message) in messages for finding in errors):  # else it is wrong by itself
            tried.append((len(errors), Offer(offer.text, offer.kind, offer.doc, True)))
    least = min((errors for errors, _ in tried), default=0)
    return [offer for errors, offer in tried if errors == least] + untried + remaining
