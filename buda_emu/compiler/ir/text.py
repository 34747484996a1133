"""IR files: the result of a pass as text that people can read and the next pass can start from
(docs/compile/pipeline.md).

    buda-emu ir 1
    after decompose

    core "mlp":
      x = input {label: "x"} : float32[1, 100]
      ..

Ops on tiles stand after the core graph that they were made of, which names the model's inputs, outputs and layers.
Lines that begin with # are comments.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from buda_emu.compiler.graph.graph import FORWARD, Graph, Node, Output
from buda_emu.compiler.graph.spec import CORE, FRONT
from buda_emu.compiler.ir.tile_text import TileReader, placed_lines, tile_lines
from buda_emu.compiler.ir.values import (
    Arrays,
    IrError,
    Printer,
    Reader,
    Tokens,
    load_arrays,
    make_record,
    name,
    quote,
    same,
    save_arrays,
)
from buda_emu.compiler.lower.tiles import TileGraph
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.target import Target
from buda_emu.spec.archs import ARCHS
from buda_emu.support.errors import HostError
from buda_emu.support.files import read_whole, write_file
from buda_emu.support.output_places import make_folder


def graph_lines(graph: Graph, printer: Printer) -> Iterator[str]:
    """Yield a line of text for each node in their order, and for each output; inputs are listed if their order is not
    that of the nodes."""
    for node in graph:
        if node.inputs:
            operands = f"({', '.join(map(name, node.inputs))})"
        else:
            operands = ""
        if node.attrs:
            attrs = f" {printer.map(node.attrs)}"
        else:
            attrs = ""
        if node.source:
            source = f" from {quote(node.source)}"
        else:
            source = ""
        shape = f"{node.dtype}{list(node.shape)}"
        yield f"{name(node.name)} = {node.op}{operands}{attrs} : {shape}{source}"
    if graph.inputs != _input_names(graph):
        yield f"inputs {', '.join(map(name, graph.inputs))}"
    for output in graph.outputs:
        fields = {"program": output.program, "state": output.state, "accumulate": output.accumulate}
        defaults = {"program": FORWARD, "state": "", "accumulate": False}
        shown = {key: field_value for key, field_value in fields.items() if field_value != defaults[key]}
        if shown:
            fields_text = f" {printer.map(shown)}"
        else:
            fields_text = ""
        yield f"output {quote(output.label)} = {name(output.value)} : {output.dtype}{fields_text}"


def _input_names(graph: Graph) -> list[str]:
    """Return the names of a graph's inputs, in order."""
    return [node.name for node in graph if node.op == "input"]


class GraphReader:
    """A reader of graphs, line by line."""

    def __init__(self, title: str, reader: Reader) -> None:
        self.graph = Graph(title)
        self.places: dict[str, str] = {}
        """File and line of each node and output."""
        self._reader = reader
        self._listed: list[str] | None = None

    def line(self, tokens: Tokens) -> None:
        """Read one line, a node, an output or the list of inputs, into the graph. Raises IrError for any other line."""
        first = tokens.any_name("a node")
        if first == "output" and tokens.kind == "text":
            self._read_output(tokens)
        elif first == "inputs" and not tokens.at("="):
            self._listed = [tokens.any_name("an input")]
            while tokens.take(","):
                self._listed.append(tokens.any_name("an input"))
        else:
            self._read_node(first, tokens)

    def done(self) -> Graph:
        """Return the complete graph. Its inputs are those of the list, or all input nodes in order if there was no
        list."""
        if self._listed is None:
            self.graph.inputs = _input_names(self.graph)
        else:
            self.graph.inputs = self._listed
        return self.graph

    def _read_node(self, node_name: str, tokens: Tokens) -> None:
        """Read a node, whose name is read already, into the graph. Raises IrError for a second node of that name."""
        if node_name in self.graph.nodes:
            tokens.fail(f"there is a node {node_name} already")
        self.places[node_name] = tokens.where
        tokens.need("=")
        op = tokens.name("an op")
        inputs: list[str] = []
        if tokens.take("("):
            while not tokens.take(")"):
                inputs.append(tokens.any_name("an operand"))
                if not tokens.at(")"):
                    tokens.need(",")
        if tokens.at("{"):
            attrs = self._reader.map(tokens)
        else:
            attrs = {}
        tokens.need(":")
        dtype = tokens.name("an element type")
        shape = self._reader.shape(tokens)
        if tokens.take("from"):
            source = tokens.text()
        else:
            source = ""
        self.graph.nodes[node_name] = Node(
            name=node_name, op=op, inputs=tuple(inputs), attrs=attrs, shape=shape, dtype=dtype, source=source
        )

    def _read_output(self, tokens: Tokens) -> None:
        """Read an output of the graph: its label, node, element type and other fields."""
        label = tokens.text()
        self.places.setdefault(f"output {label}", tokens.where)
        tokens.need("=")
        value = tokens.any_name("a node")
        tokens.need(":")
        dtype = tokens.name("an element type")
        if tokens.at("{"):
            optional_fields = self._reader.map(tokens)
        else:
            optional_fields = {}
        fields = {"label": label, "value": value, "dtype": dtype}
        self.graph.outputs.append(make_record(Output, optional_fields | fields, tokens, f"output {label}"))


VERSION: Final = 1  # goes up when an older text can no longer be read
TILE: Final = "tile"
PLACED: Final = "placed"
LEVELS: Final = (FRONT, CORE, TILE, PLACED)
"""The levels of IR: ops as they were imported; ops that `lower` knows; netlist ops on tiles; those with blocks, cores,
epochs and queues."""


@dataclass(frozen=True, slots=True)
class Ir:
    """One form of a model: its `graph`, and from level tile on its ops on tiles and their placement."""

    level: str
    graph: Graph
    tiles: TileGraph | None = None
    placement: Placement | None = None
    places: Mapping[str, str] = field(default_factory=dict[str, str])
    """Positions in a file of nodes, ops and queues, by the words with which messages begin; {} for a form that was not
    read."""

    def locate(self, problem: str, path: str) -> str:
        """Return a problem of this form with the line of its subject, or with the file alone."""
        subject = problem.partition(":")[0].partition(" = ")[0]
        return f"{self.places.get(subject, path)}: {problem}"

    def __eq__(self, other: object) -> bool:
        """Compare bit by bit, without the framework's own model that a graph may hold."""
        if not isinstance(other, Ir) or self.level != other.level:
            return False
        own_content, other_content = (
            (replace(form.graph, origin=None), form.tiles, _without_search_state(form.placement))
            for form in (self, other)
        )
        return same(own_content, other_content)

    __hash__ = None  # type: ignore[assignment]


def _without_search_state(placement: Placement | None) -> object:
    """Return the placement without what the search remembers of its work."""
    return replace(placement, given=None, record=None) if placement is not None else None  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class IrFile:
    """The forms of a model that pass `after` returned, several if the search has yet to choose; `target` from level
    tile on."""

    after: str
    forms: tuple[Ir, ...]
    target: Target | None = None
    path: str = "<text>"


def print_ir(form: Ir) -> str:
    """Return the text of a form at its level alone, as `--print-after` shows it. Raises IrError for objects that have
    no text form."""
    return "\n".join(_level_lines(form.level, form, Printer())) + "\n"


def print_file(file: IrFile) -> tuple[str, Arrays]:
    """Return the text of a file, and the arrays that it refers to. Raises IrError for objects that have no text
    form."""
    printer = Printer()
    lines = [f"buda-emu ir {VERSION}", f"after {file.after}"]
    if file.target is not None:
        target = file.target
        fields = {"df": target.df, "fidelity": target.fidelity, "acc": target.acc, "grid": target.arch.grid}
        fields |= {"board": target.board} if target.board else {}
        lines.append(f"for {target.arch.name} {printer.map(fields)}")
    for form in file.forms:
        for level in (form.level,) if form.tiles is None else (CORE, form.level):
            lines += ["", *_level_lines(level, form, printer)]
    return "\n".join(lines) + "\n", printer.arrays


def _level_lines(level: str, form: Ir, printer: Printer) -> Iterator[str]:
    """Yield the lines of one level of a form, with its heading."""
    yield f"{level} {quote(form.graph.name)}:"
    if level in (FRONT, CORE):
        lines = graph_lines(form.graph, printer)
    elif form.placement is not None:
        lines = placed_lines(form.placement, printer)
    else:
        lines = tile_lines(form.tiles or TileGraph(), printer)
    for line in lines:
        yield f"  {line}"


def parse_file(text: str, arrays: Arrays, path: str = "<text>") -> IrFile:
    """Parse a text and return its content; `arrays` by their digests. Raises IrError with line and column for text that
    is not IR."""
    parser = _Parser(path, Reader(arrays))
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            parser.line(Tokens(line.rstrip(), f"{path}:{number}"), indented=line[0] == " ")
    return parser.done()


def parse_ir(text: str, target: Target | None = None) -> Ir:
    """Parse a single form as `print_ir` writes it; ops on tiles have an empty graph then, and placed ones need the
    `target`. Raises IrError for text that is no form."""
    parser = _Parser("<text>", Reader({}))
    parser.head = 2
    parser.target = target
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            parser.line(Tokens(line.rstrip(), f"<text>:{number}"), indented=line[0] == " ")
    return parser.done().forms[0]


class _Parser:
    """A parser of IR files, line by line."""

    def __init__(self, path: str, reader: Reader) -> None:
        self.head = 0
        self.target: Target | None = None
        self._path = path
        self._reader = reader
        self._after = ""
        self._forms: list[Ir] = []
        self._graph: Graph | None = None
        self._graph_places: dict[str, str] = {}
        self._open: tuple[str, str, GraphReader | TileReader] | None = None

    def line(self, tokens: Tokens, *, indented: bool) -> None:
        """Parse the next line that is neither empty nor a comment."""
        if indented:
            if self._open is None:
                tokens.fail("no level comes before it")
            self._open[2].line(tokens)
        elif self.head < 2:
            self._read_heading(tokens)
        elif tokens.take("for"):
            self.target = _read_target(tokens, self._reader)
        else:
            self._close()
            level = tokens.name("a level")
            if level not in LEVELS:
                tokens.fail(f"{level} is not a level: {', '.join(LEVELS)}")
            title = tokens.any_name("the name of the model")
            tokens.need(":")
            if level in (FRONT, CORE):
                level_reader = GraphReader(title, self._reader)
            else:
                level_reader = TileReader(self._reader)
            self._open = level, title, level_reader
        tokens.done()

    def _read_heading(self, tokens: Tokens) -> None:
        """Read a line of the heading: first the kind and version of the file, then the pass after which it was
        written."""
        if self.head == 0:
            for word in ("buda", "-", "emu", "ir"):
                tokens.need(word)
            version = tokens.number()
            if version != VERSION:
                tokens.fail(f"version {version} of IR files: this program reads {VERSION}")
        else:
            tokens.need("after")
            self._after = tokens.name("a pass")
        self.head += 1

    def _close(self) -> None:
        """Store the level that has been read so far, if there is one. Raises IrError for placed ops without a target or
        a place."""
        if self._open is None:
            return
        level, title, level_reader = self._open
        self._open = None
        if isinstance(level_reader, GraphReader):
            self._flush()
            self._graph = level_reader.done()
            self._graph_places = level_reader.places
            self._level = level
            return
        if self._graph is not None:
            graph = self._graph
        else:
            graph = Graph(title)
        self._graph = None
        places = self._graph_places | level_reader.places
        if level == TILE:
            self._forms.append(Ir(TILE, graph, level_reader.tiles, places=places))
            return
        if self.target is None:
            raise IrError(f"{self._path}: no line `for ARCH {{..}}` says what it is placed for")
        placement = level_reader.done(self.target)
        self._forms.append(Ir(level=PLACED, graph=graph, tiles=placement.tiles, placement=placement, places=places))

    def _flush(self) -> None:
        """Store a graph that no ops on tiles follow as a form of its own; do nothing if there is none."""
        if self._graph is not None:
            self._forms.append(Ir(self._level, self._graph, places=self._graph_places))
            self._graph = None

    def done(self) -> IrFile:
        """Return the complete file. Raises IrError for a text without a model."""
        self._close()
        self._flush()
        if not self._forms:
            raise IrError(f"{self._path}: no model in it; an IR file begins with `buda-emu ir {VERSION}`")
        return IrFile(self._after, tuple(self._forms), self.target, self._path)


def _read_target(tokens: Tokens, reader: Reader) -> Target:
    """Read the line that states the target of ops on tiles: architecture, formats, fidelity, board and grid. Raises
    IrError for words and fields that do not fit, and for a grid larger than the chip's."""
    word = tokens.name("an architecture")
    if word not in ARCHS:
        tokens.fail(f"{word} is not an architecture: {', '.join(ARCHS)}")
    fields = _target_fields(tokens, reader)
    try:
        target = Target.from_names(word, fields["df"], fields["fidelity"], fields["acc"])
        if fields["board"]:
            target = target.on_board(fields["board"])
    except HostError as error:
        tokens.fail(str(error))
    grid = fields["grid"]
    if len(grid) != 2 or not all(type(size) is int for size in grid):
        tokens.fail(f"{str(grid)[:60]} is not rows and columns of cores")
    if not all(1 <= size <= largest for size, largest in zip(grid, target.arch.grid, strict=True)):
        tokens.fail(f"{target.title} has {list(target.arch.grid)} cores, not {list(grid)}")
    return replace(target, arch=replace(target.arch, grid=grid))


def _target_fields(tokens: Tokens, reader: Reader) -> Mapping[str, Any]:
    """Read the fields of the target's line. Raises IrError for one that is missing or has another type."""
    fields: Mapping[str, Any] = {"board": "", **reader.map(tokens)}
    missing = [key for key in _TARGET if key not in fields]
    if missing:
        tokens.fail(f"{missing[0]} is missing")
    mistyped = [key for key, kind in _TARGET.items() if not isinstance(fields[key], kind)]
    if mistyped:
        tokens.fail(f"{mistyped[0]} cannot be {str(fields[mistyped[0]])[:60]}")
    return fields


_TARGET: Final = {"df": str, "fidelity": str, "acc": str, "grid": tuple, "board": str}
"""Types of the fields in the line of the target."""


def write_ir(folder: Path, name: str, file: IrFile) -> tuple[Path, Path]:
    """Write the text and its arrays and return the paths of both files. Raises OSError, IrError for objects that have
    no text form."""
    text, arrays = print_file(file)
    make_folder(folder)
    paths = folder / f"{name}.ir", folder / f"{name}.npz"
    write_file(paths[0], lambda stream: stream.write(text.encode()))
    save_arrays(paths[1], arrays)
    return paths


def read_ir(path: Path) -> IrFile:
    """Read what `write_ir` wrote, perhaps edited since. Raises IrError naming file, line and column for text that is
    not IR, HostError for changed arrays, OSError."""
    try:
        text = read_whole(path).decode()
    except UnicodeDecodeError:
        raise IrError(f"{path}: not an IR file: no text in UTF-8") from None
    return parse_file(text, load_arrays(path.with_suffix(".npz")), str(path))
