"""A graph of netlist ops on tiles, placed or not, as lines, and back.

    input x : [1, 1, 4] {label: "x", view: (1, 1, 100)}
    constant w : float32[1, 128, 96] @3fa9c1d20b11 {kind: "value"}
    y = matmul(x, w <hslice 2, broadcast r 4>) {bias: true} : [1, 1, 3] with {inner: 4, source: "y"}
      step add_1 = add(input0, intermed0) : output {pop: ("intermed0",)}
      at (0, 4) {epoch: 1, blocks: Blocks(..)}
    output y_out = y {label: "y", view: (1, 1, 75), host_shape: (1, 75), dtype: "float32"}

Shapes are in tiles: slices, rows, columns. `at` stands where an op is placed: row and column of its first core.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, replace
from typing import Any, Final

from buda_emu.compiler.ir.values import IrError, Printer, Reader, Tokens, conforms, make_record, name
from buda_emu.compiler.lower.layout import Layout
from buda_emu.compiler.lower.tiles import Constant, InputQueue, OutputQueue, State, Store, SubOp, TileGraph, TileOp, Use
from buda_emu.compiler.place.decision import broadcast_picker
from buda_emu.compiler.place.placement import Detour, PlacedOp, Placement, Queue

_RECORDS: Final[Mapping[str, tuple[str, type[Any]]]] = {
    "input": ("inputs", InputQueue), "constant": ("constants", Constant), "state": ("states", State),
    "output": ("outputs", OutputQueue), "store": ("stores", Store),
}  # fmt: skip
"""Maps the first word of a line to the attribute of TileGraph that it belongs to, and to its record."""
_UNDEFINED: Final = "undefined nan"
"""The line of a graph in which undefined results are NaN."""
_STEP_LINE: Final = ("name", "type", "inputs", "output", "attrs")
_OP_LINE: Final = ("name", "type", "uses", "shape", "attrs", "steps")
_AT: Final = ("op", "at")
_ROUNDS: Final = ("epochs", "microbatch", "ids", "copies", "step")


def tile_lines(tiles: TileGraph, printer: Printer, placed: Mapping[str, PlacedOp] | None = None) -> Iterator[str]:
    """Yield a line of text for each input, constant and state, each op in order with its steps and, if it is in
    `placed`, its place, and each output and store."""
    if tiles.undefined_is_nan:
        yield _UNDEFINED
    for word, (group, _) in _RECORDS.items():
        if word == "output":
            for op in tiles.ops.values():
                yield from _op_lines(op, printer, (placed or {}).get(op.name))
        entries: Mapping[str, Any] = getattr(tiles, group)
        for entry_name, entry in entries.items():
            yield f"{word} {name(entry_name)} {printer.map(_fields_with_other_values(entry, ('name', 'queue')))}"
    for entry_name, (op, layout) in tiles.places.items():
        yield f"value {name(entry_name)} = {name(op)} {printer.value(layout)}"


def placed_lines(placement: Placement, printer: Printer) -> Iterator[str]:
    """Yield the lines of text of a placement: the graph with the places of its ops, and the queues with their
    addresses."""
    yield f"rounds {printer.map({key: getattr(placement, key) for key in _ROUNDS})}"
    yield from tile_lines(placement.tiles, printer, placement.ops)
    for entry_name, queue in placement.queues.items():
        yield f"queue {name(entry_name)} {printer.map(_fields_with_other_values(queue, ('name',)))}"
    for entry_name, queue in placement.between.items():
        yield f"between {name(entry_name)} = {name(queue)}"
    for (reader, constant), queue in placement.held_as.items():
        yield f"held {name(constant)} of {name(reader)} = {name(queue)}"
    for (reader, source), detour in placement.detours.items():
        yield f"detour {name(source)} to {name(reader)} = {printer.value(detour)}"


def _fields_with_other_values(record: Any, without: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a record, by name, that differ from their defaults, except those in `without`."""
    shown: dict[str, Any] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if field.default_factory is MISSING:
            default = field.default
        else:
            default = field.default_factory()
        if field.name not in without and (default is MISSING or type(value) is not type(default) or value != default):
            shown[field.name] = value
    return shown


def _op_lines(op: TileOp, printer: Printer, placed: PlacedOp | None) -> Iterator[str]:
    """Yield the line of an op, those of its steps, and the one of its place."""
    uses = ", ".join(_use_text(use) for use in op.uses)
    if op.attrs:
        attrs = f" {printer.map(op.attrs)}"
    else:
        attrs = ""
    optional_fields = _fields_with_other_values(op, _OP_LINE)
    if optional_fields:
        rest = f" with {printer.map(optional_fields)}"
    else:
        rest = ""
    yield f"{name(op.name)} = {op.type}({uses}){attrs} : {list(op.shape)}{rest}"
    for step in op.steps:
        if step.attrs:
            step_attrs = f" {printer.map(step.attrs)}"
        else:
            step_attrs = ""
        optional_fields = _fields_with_other_values(step, _STEP_LINE)
        if optional_fields:
            rest = f" {printer.map(optional_fields)}"
        else:
            rest = ""
        yield f"  step {name(step.name)} = {step.type}({', '.join(step.inputs)}){step_attrs} : {step.output}{rest}"
    if placed is not None:
        yield f"  at {printer.value(placed.at)} {printer.map(_fields_with_other_values(placed, _AT))}"


def _use_text(use: Use) -> str:
    """Return an operand as text: the tensor, with the TMs on the way, and the size of its buffer, in angle brackets."""
    changes = [" ".join(map(str, tm)) for tm in use.tms] + ([f"buffer {use.buffer}"] if use.buffer else [])
    return name(use.source) + (f" <{', '.join(changes)}>" if changes else "")


class TileReader:
    """A reader of netlist ops and their places, line by line."""

    def __init__(self, reader: Reader) -> None:
        self.tiles = TileGraph()
        self._reader = reader
        self.places: dict[str, str] = {}
        """File and line of each op and queue."""
        self._placed: dict[str, PlacedOp] = {}
        self._rest: dict[str, Any] = {"queues": {}, "between": {}, "held_as": {}, "detours": {}}
        self._last: TileOp | None = None

    def line(self, tokens: Tokens) -> None:
        """Read one line, of an op, a step, a place, a queue or another record, into the graph. Raises IrError for any
        other line."""
        word = tokens.any_name("an op")
        if tokens.take("="):
            self.places.setdefault(word, tokens.where)
            self._read_op(word, tokens)
        elif word in _RECORDS:
            self._read_record(word, tokens)
        elif word in _LINES:
            _LINES[word](self, tokens)
        else:
            tokens.fail(f"{word} begins no line: a line is an op, or begins with {', '.join((*_RECORDS, *_LINES))}")

    def done(self, target: Any) -> Placement:
        """Return the placement for a target. Raises IrError for an op without a place."""
        ops: dict[str, PlacedOp] = {}
        for op_name, op in self.tiles.ops.items():
            if op_name not in self._placed:
                raise IrError(f"{self.places[op_name]}: {op_name}: no line says `at` which core it is placed")
            placed = self._placed[op_name]
            ops[op_name] = replace(placed, op=broadcast_picker(op, placed.blocks.grid[1]))
        return Placement(target, self.tiles, ops=ops, **self._rest)

    # --------------------------------------------------------------------------------------------------------- ops
    def _read_op(self, op_name: str, tokens: Tokens) -> None:
        """Read an op, whose name is read already, into the tile graph. Raises IrError for a second op of that name."""
        if op_name in self.tiles.ops:
            tokens.fail(f"there is an op {op_name} already")
        kind = tokens.name("an op type")
        uses: list[Use] = []
        tokens.need("(")
        while not tokens.take(")"):
            uses.append(self._read_operand(tokens))
            if not tokens.at(")"):
                tokens.need(",")
        if tokens.at("{"):
            attrs = self._reader.map(tokens)
        else:
            attrs = {}
        tokens.need(":")
        shape = self._reader.shape(tokens)
        if tokens.take("with"):
            optional_fields = self._reader.map(tokens)
        else:
            optional_fields = {}
        fields = {"name": op_name, "type": kind, "uses": uses, "shape": shape, "attrs": attrs}
        self._last = self.tiles.ops[op_name] = make_record(TileOp, optional_fields | fields, tokens, op_name)

    def _read_operand(self, tokens: Tokens) -> Use:
        """Read an operand and return it, with its TMs and the size of its buffer. Raises IrError for text that is
        none."""
        source = tokens.any_name("an operand")
        tms: list[Any] = []
        buffer = 0
        if tokens.take("<"):
            while not tokens.take(">"):
                word = tokens.name("a TM")
                if word == "buffer":
                    buffer = tokens.integer("a buffer")
                elif word == "broadcast":
                    tms.append((word, tokens.name("a dimension"), tokens.integer("a broadcast")))
                else:
                    tms.append((word, tokens.integer(word)) if tokens.kind == "number" else (word,))
                if not tokens.at(">"):
                    tokens.need(",")
        return Use(source, tuple(tms), buffer)

    def step(self, tokens: Tokens) -> None:
        """Read a sub-op and append it to the steps of the preceding op. Raises IrError without such an op."""
        step_name = tokens.any_name("a sub-op")
        tokens.need("=")
        kind = tokens.name("an op type")
        inputs: list[str] = []
        tokens.need("(")
        while not tokens.take(")"):
            inputs.append(tokens.name("an operand"))
            if not tokens.at(")"):
                tokens.need(",")
        if tokens.at("{"):
            attrs = self._reader.map(tokens)
        else:
            attrs = {}
        tokens.need(":")
        output = tokens.name("where it goes")
        if tokens.at("{"):
            rest = self._reader.map(tokens)
        else:
            rest = {}
        if self._last is None:
            tokens.fail("a step comes after its op")
        fields = {"name": step_name, "type": kind, "inputs": tuple(inputs), "output": output, "attrs": attrs}
        self._last.steps = (*self._last.steps, make_record(SubOp, rest | fields, tokens, step_name))

    def at(self, tokens: Tokens) -> None:
        """Read the place of the preceding op, after `at`. Raises IrError without such an op."""
        if self._last is None:
            tokens.fail("a place comes after its op")
        fields = {"op": self._last, "at": self._reader.value(tokens)}
        self._placed[self._last.name] = make_record(
            PlacedOp, self._reader.map(tokens) | fields, tokens, self._last.name
        )

    # ------------------------------------------------------------------------------------------------------ queues
    def _read_record(self, word: str, tokens: Tokens) -> None:
        """Read a record such as an input or a state, which `word` introduces, into its table. Raises IrError for a
        second one of that name."""
        group, kind = _RECORDS[word]
        entry_name = tokens.any_name("a name")
        entries = getattr(self.tiles, group)
        if entry_name in entries:
            tokens.fail(f"there is {word} {entry_name} already")
        self.places.setdefault(f"{word} {entry_name}", tokens.where)
        if kind in (State, Store):
            first = "queue"
        else:
            first = "name"
        entries[entry_name] = make_record(
            kind, self._reader.map(tokens) | {first: entry_name}, tokens, f"{word} {entry_name}"
        )

    def value(self, tokens: Tokens) -> None:
        """Read the op and the layout that hold a value of the model. Raises IrError for anything but a Layout."""
        value_name = tokens.any_name("a value")
        tokens.need("=")
        op = tokens.any_name("an op")
        layout = self._reader.value(tokens)
        if not isinstance(layout, Layout):
            tokens.fail(f"value {value_name}: a Layout is missing")
        self.tiles.places[value_name] = op, layout

    def undefined_results(self, tokens: Tokens) -> None:
        """Read the line that roots and reciprocals without a result are NaN. Raises IrError for another word."""
        if tokens.name("what they are") != "nan":
            tokens.fail(f"a line begins with undefined: it is {_UNDEFINED}")
        self.tiles.undefined_is_nan = True

    def rounds(self, tokens: Tokens) -> None:
        """Read how many inputs, epochs and copies the placement has."""
        values = self._reader.map(tokens)
        for key, value in values.items():
            if key == "ids":
                legal = conforms(value, tuple[int, ...]) and min(value, default=0) >= 0
            else:
                legal = type(value) is int and value > 0
            if key not in _ROUNDS or not legal:
                tokens.fail(f"rounds: {key} cannot be {str(value)[:60]}")
        self._rest |= values

    def queue(self, tokens: Tokens) -> None:
        """Read a queue of the netlist into the placement. Raises IrError for a second one of that name."""
        queue_name = tokens.any_name("a queue")
        if queue_name in self._rest["queues"]:
            tokens.fail(f"there is a queue {queue_name} already")
        self.places.setdefault(f"queue {queue_name}", tokens.where)
        self._rest["queues"][queue_name] = make_record(
            Queue, self._reader.map(tokens) | {"name": queue_name}, tokens, f"queue {queue_name}"
        )

    def between(self, tokens: Tokens) -> None:
        """Read the name of the queue through which other epochs read an op."""
        op_name = tokens.any_name("an op")
        tokens.need("=")
        self._rest["between"][op_name] = tokens.any_name("a queue")

    def held_constant(self, tokens: Tokens) -> None:
        """Read the name of the queue from which one reader reads a constant."""
        constant = tokens.any_name("a constant")
        tokens.need("of")
        reader = tokens.any_name("an op")
        tokens.need("=")
        self._rest["held_as"][reader, constant] = tokens.any_name("a queue")

    def detour(self, tokens: Tokens) -> None:
        """Read a detour into the placement: an operand that passes through DRAM within an epoch. Raises IrError for
        another record."""
        source = tokens.any_name("an op")
        tokens.need("to")
        reader = tokens.any_name("an op")
        tokens.need("=")
        detour = self._reader.value(tokens)
        if not isinstance(detour, Detour):
            tokens.fail(f"detour {source}: a Detour is missing")
        self._rest["detours"][reader, source] = detour


_LINES: Final = {
    "step": TileReader.step, "at": TileReader.at, "value": TileReader.value, "rounds": TileReader.rounds,
    "undefined": TileReader.undefined_results,
    "queue": TileReader.queue, "between": TileReader.between, "held": TileReader.held_constant,
    "detour": TileReader.detour,
}  # fmt: skip
