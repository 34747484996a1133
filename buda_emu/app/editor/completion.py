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
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.records import dataclass

NameKind = Literal["queue", "op", "graph", "fused op", "variable"]
Kind = Literal["key", "word"] | NameKind
SECONDS: Final = 0.4
"""Time in which candidates are tried; the rest are offered untried, after the others."""
_BOOLS: Final = ("true", "false")


@dataclass(frozen=True, slots=True)
class Offer:
    """A text that completion offers. `tried` is true if the checker found no new errors in the netlist with it."""

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
    return _rank_offers(text, line, place, matches or [*offers.values()], seconds)


# --------------------------------------------------------------------------------------------------------- candidates
def _candidates(text: OpenText, place: Place) -> Iterator[Offer]:
    """Yield the offers for the section and the keys around the place, whether they make a legal netlist or not."""
    keys = place.keys
    if not keys:
        yield from _key_offers(SECTIONS, place.block)
        return
    section = keys[0]
    if section == "devices":
        yield from _device_offers(place, keys[1:])
    elif section == "queues" and len(keys) > 1:
        yield from _object_offers(text, QUEUE_FIELDS, place, keys[2:])
    elif section == "graphs":
        yield from _graph_offers(text, place, keys)
    elif section == "fused_ops" and len(keys) > 1:
        yield from _fused_op_offers(text, place, keys)
    elif section == "programs":
        yield from _program_offers(text, place, keys)


def _graph_offers(text: OpenText, place: Place, keys: tuple[str, ...]) -> Iterator[Offer]:
    """Yield what may stand at a place inside a graph: the graph's own keys, or what fits inside the op whose name is
    `keys[2]`. `keys` are the keys from the root of the file to the place."""
    if len(keys) == 2 and not place.levels:
        yield from _key_offers({name: field.doc for name, field in GRAPH_FIELDS.items()}, place.block)
    elif len(keys) > 2 and keys[2] not in GRAPH_FIELDS:
        yield from _object_offers(text, OP_FIELDS, place, keys[3:])


def _fused_op_offers(text: OpenText, place: Place, keys: tuple[str, ...]) -> Iterator[Offer]:
    """Yield what may stand at a place in the section of fused ops: keys of a fused op, or what fits in one of its
    scheduled sub-ops. `keys` are the keys from the root of the file to the place."""
    if len(keys) == 2 and not place.levels:
        yield from _key_offers({name: field.doc for name, field in FUSED_FIELDS.items()}, place.block)
    elif len(keys) > 3 and keys[2] == "schedules":
        yield from _object_offers(text, SUB_OP_FIELDS, place, keys[4:])


def _object_offers(text: OpenText, table: Table, place: Place, keys: tuple[str, ...]) -> Iterator[Offer]:
    """Yield the offers in the map of a queue, op or scheduled op; `keys` are those below it."""
    if not keys:
        yield from _key_offers({name: field.doc for name, field in table.items()}, _sibling_keys(place))
        if table is OP_FIELDS:
            yield from _tm_key_offers(place)
        return
    key = keys[0]
    if key == "attributes":
        yield from _attribute_offers(text, place, keys[1:])
    elif key.endswith("_tms"):
        yield from _tm_offers(place, keys[1:])
    elif key.endswith(("_pad", "_unpad")) and key.startswith("input_") and len(keys) == 1:
        yield from _key_offers({name: field.doc for name, field in PAD_FIELDS.items()}, _sibling_keys(place))
    elif key in table:
        yield from _value_offers(text, table[key])


def _outer_value(place: Place, key: str) -> str:
    """Return the value of a key of the op or instruction whose brackets are around the place, "" if there is none."""
    if not place.levels:
        return ""
    return place.levels[0].values.get(key, "")


def _tm_key_offers(place: Place) -> Iterator[Offer]:
    """Yield the keys of TMs of an op, once its inputs are written."""
    if not _outer_value(place, "inputs"):
        return
    used = set(_sibling_keys(place))
    for name in ("input_0_tms", "input_1_tms", "input_2_tms"):
        if name not in used:
            yield Offer(name, "key", "TMs on this input, applied from left to right")


def _attribute_offers(text: OpenText, place: Place, keys: tuple[str, ...]) -> Iterator[Offer]:
    """Yield the attributes that are legal on the op's type, or the values of an attribute."""
    if not keys:
        op_type = _outer_value(place, "type")
        legal = {
            name: spec.doc for name, spec in ATTRIBUTES.items() if op_type not in OP_TYPES or spec.is_legal_on(op_type)
        }
        yield from _key_offers(legal, _sibling_keys(place))
    elif keys[0] == "fused_op_id":
        yield from _name_offers(text, "fused op")
    elif keys[0] in ATTRIBUTES:
        spec = ATTRIBUTES[keys[0]]
        yield from _word_offers(_BOOLS if spec.kind == "bool" else spec.words)


def _tm_offers(place: Place, keys: tuple[str, ...]) -> Iterator[Offer]:
    """Yield what may stand in a list of tensor manipulations (TMs): their names, or within `broadcast` the dimensions
    that it does not name yet. `keys` are the keys from the list to the place."""
    if not keys:
        yield from _word_offers(TM_WORDS)
    elif keys == ("broadcast",):
        yield from (Offer(word, "key") for word in BROADCAST_DIMS if word not in _sibling_keys(place))


def _program_offers(text: OpenText, place: Place, keys: tuple[str, ...]) -> Iterator[Offer]:
    """Yield what may stand at a place in a program: instructions, and as their operands the names of queues, graphs
    and variables, and opcodes of `varinst`. `keys` are the keys from the root of the file to the place."""
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
        yield from _name_offers(text, "queue")
    elif word == "loop":
        yield from _name_offers(text, "variable", program)
    elif word == "varinst" and place.levels:
        if len(place.levels[-1].items) == 1:  # the second item is the opcode
            yield from (Offer(name, "word", opcode.doc) for name, opcode in OPCODES.items())
        else:
            yield from _name_offers(text, "variable", program)
    elif word == "execute":
        yield from _execute_offers(text, place, program, below)


def _execute_offers(text: OpenText, place: Place, program: str, below: tuple[str, ...]) -> Iterator[Offer]:
    """Yield the offers in an execute instruction; `below` are the keys inside it."""
    if not below:
        yield from _key_offers({name: field.doc for name, field in EXECUTE_FIELDS.items()}, _sibling_keys(place))
    elif below[0] == "graph_name":
        yield from _name_offers(text, "graph")
    elif below[0] == "queue_settings":
        yield from _setting_offers(text, place, program, below[1:])


def _setting_offers(text: OpenText, place: Place, program: str, below: tuple[str, ...]) -> Iterator[Offer]:
    """Yield the offers in `queue_settings`: queues, settings of a queue, or values of a setting."""
    if not below:
        yield from _settable_queues(text, place)
    elif len(below) == 1:
        yield from _key_offers({name: field.doc for name, field in SETTING_FIELDS.items()}, _sibling_keys(place))
    elif below[-1] in SETTING_FIELDS:
        if SETTING_FIELDS[below[-1]].default == "false":
            yield from _word_offers(_BOOLS)
        yield from _name_offers(text, "variable", program)


def _settable_queues(text: OpenText, place: Place) -> Iterator[Offer]:
    """Yield the queues that the executed graph reads, all queues if the graph is not known, but not those that the map
    of settings has already."""
    graph_name = _outer_value(place, "graph_name")
    netlist = text.netlist
    inputs: set[str] | None = None
    if netlist is not None and graph_name in netlist.graphs:
        inputs = set()
        for op in netlist.graphs[graph_name].ops:
            inputs.update(op.inputs)
    used = _sibling_keys(place)
    for name in text.names.definitions("queue"):
        if (inputs is None or name.text in inputs) and name.text not in used:
            yield Offer(name.text, "queue")


def _name_offers(text: OpenText, kind: NameKind, scope: str | None = None) -> Iterator[Offer]:
    """Return offers of all names of a kind that the text defines, of variables those of the program `scope`."""
    return (Offer(name.text, kind) for name in text.names.definitions(kind, scope))


def _word_offers(words: Iterable[str]) -> Iterator[Offer]:
    """Return an offer without documentation for each word."""
    return (Offer(word, "word") for word in words)


def _device_offers(place: Place, keys: tuple[str, ...]) -> Iterator[Offer]:
    """Yield the keys of the `devices` section, or the words that the field `keys[0]` takes. `keys` are the keys from
    that section to the place."""
    if not keys:
        yield from _key_offers({name: field.doc for name, field in DEVICE_FIELDS.items()}, place.block)
    elif keys[0] in DEVICE_FIELDS:
        yield from _word_offers(DEVICE_FIELDS[keys[0]].words)


def _value_offers(text: OpenText, field: Field) -> Iterator[Offer]:
    """Yield the values that a field of a queue or op may have."""
    if field.kind in ("format", "formats"):
        yield from _word_offers(NETLIST_FORMATS)
    elif field.kind == "bool":
        yield from _word_offers(_BOOLS)
    elif field.words:
        for word in field.words:
            is_op_type = field.name == "type" and word in OP_TYPES
            yield Offer(word, "word", OP_TYPES[word].doc if is_op_type else "")
    elif field.name == "inputs" and field.kind == "texts":
        yield from _name_offers(text, "queue")
        yield from _name_offers(text, "op")
    elif field.name == "input":
        yield Offer("HOST", "word")
        yield from _name_offers(text, "op")
    elif field.name == "alias":
        yield from _name_offers(text, "queue")


def _key_offers(table: Mapping[str, str], used: Iterable[str]) -> Iterator[Offer]:
    """Return an offer for each key of `table`, key to its documentation, that is not in `used`, the keys that the map
    has already."""
    used_names = set(used)
    return (Offer(name, "key", doc) for name, doc in table.items() if name not in used_names)


def _sibling_keys(place: Place) -> list[str]:
    """Return the keys that the map at the place has already."""
    if place.levels:
        return place.levels[-1].keys
    return place.block


# -------------------------------------------------------------------------------------------------------------- legal
def _rank_offers(text: OpenText, line: int, place: Place, offers: list[Offer], seconds: float) -> list[Offer]:
    """Return the offers with which the checker finds the fewest errors, then those that were not tried. Offers that
    cause a new error, or more errors than the best ones, are dropped. Keys without a value are not tried, since the
    text with them is incomplete; nor are the offers that remain after `seconds`."""
    untried = [offer for offer in offers if offer.kind == "key" and not place.has_value]
    until = time.monotonic() + seconds
    messages = {(finding.rule, finding.message) for finding in text.findings}
    tried: list[tuple[int, Offer]] = []
    remaining = [offer for offer in offers if offer not in untried]
    while remaining and time.monotonic() < until:
        offer = remaining.pop(0)
        errors = _errors_with(text, line, place, offer)
        if all((error.rule, error.message) in messages for error in errors):
            tried.append((len(errors), Offer(offer.text, offer.kind, offer.doc, True)))
    fewest = min((errors for errors, _ in tried), default=0)
    return [offer for errors, offer in tried if errors == fewest] + untried + remaining


def _errors_with(text: OpenText, line: int, place: Place, offer: Offer) -> list[Diagnostic]:
    """Check the text with an offer in place of the word at the place, and return the errors."""
    row = text.lines[line - 1]
    end = place.column - 1 + len(place.word)
    while end < len(row) and row[end] not in " \t,:{}[]'\"#":
        end += 1
    lines = [*text.lines]
    lines[line - 1] = row[: place.column - 1] + offer.text + row[end:]
    return [finding for finding in text.with_text("\n".join(lines)).findings if finding.severity == "error"]
