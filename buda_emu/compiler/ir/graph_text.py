"""A graph of front-end or core ops as lines, and back, such as

```
x = input {label: "x"} : float32[1, 100] from "x"
w = constant {value: float32[100, 75] @3fa9c1d20b11} : float32[100, 75]
y = matmul(x, w) : float32[1, 75] from "layers.0"
output "y" = y : float32
```
"""

from collections.abc import Iterator

from buda_emu.compiler.graph.graph import FORWARD, Graph, Node, Output
from buda_emu.compiler.ir.records import made
from buda_emu.compiler.ir.tokens import Tokens
from buda_emu.compiler.ir.values import Printer, Reader, name, quoted


def graph_lines(graph: Graph, printer: Printer) -> Iterator[str]:
    """The nodes in their order, and the outputs; inputs are listed where their order is not that of the nodes."""
    for node in graph:
        operands = f"({', '.join(map(name, node.inputs))})" if node.inputs else ""
        attrs = f" {printer.map(node.attrs)}" if node.attrs else ""
        source = f" from {quoted(node.source)}" if node.source else ""
        shape = f"{node.dtype}{list(node.shape)}"
        yield f"{name(node.name)} = {node.op}{operands}{attrs} : {shape}{source}"
    if graph.inputs != _inputs(graph):
        yield f"inputs {', '.join(map(name, graph.inputs))}"
    for output in graph.outputs:
        fields = {"program": output.program, "state": output.state, "accumulate": output.accumulate}
        defaults = {"program": FORWARD, "state": "", "accumulate": False}
        shown = {key: item for key, item in fields.items() if item != defaults[key]}
        more = f" {printer.map(shown)}" if shown else ""
        yield f"output {quoted(output.label)} = {name(output.value)} : {output.dtype}{more}"


def _inputs(graph: Graph) -> list[str]:
    return [node.name for node in graph if node.op == "input"]


class GraphReader:
    """Reads a graph line by line."""

    def __init__(self, title: str, reader: Reader) -> None:
        self.graph = Graph(title)
        self.places: dict[str, str] = {}
        """Where each node and output stands: file and line."""
        self._reader = reader
        self._listed: list[str] | None = None

    def line(self, tokens: Tokens) -> None:
        """One node, output or list of inputs. Raises IrError."""
        first = tokens.any_name("a node")
        if first == "output" and tokens.kind == "text":
            self._output(tokens)
        elif first == "inputs" and not tokens.at("="):
            self._listed = [tokens.any_name("an input")]
            while tokens.take(","):
                self._listed.append(tokens.any_name("an input"))
        else:
            self._node(first, tokens)

    def done(self) -> Graph:
        """All of it."""
        self.graph.inputs = _inputs(self.graph) if self._listed is None else self._listed
        return self.graph

    def _node(self, own: str, tokens: Tokens) -> None:
        if own in self.graph.nodes:
            tokens.fail(f"there is a node {own} already")
        self.places[own] = tokens.where
        tokens.need("=")
        op = tokens.name("an op")
        inputs: list[str] = []
        if tokens.take("("):
            while not tokens.take(")"):
                inputs.append(tokens.any_name("an operand"))
                if not tokens.at(")"):
                    tokens.need(",")
        attrs = self._reader.map(tokens) if tokens.at("{") else {}
        tokens.need(":")
        dtype, shape = tokens.name("an element type"), self._reader.shape(tokens)
        source = tokens.text() if tokens.take("from") else ""
        self.graph.nodes[own] = Node(own, op, tuple(inputs), attrs, shape, dtype, source)

    def _output(self, tokens: Tokens) -> None:
        label = tokens.text()
        self.places.setdefault(f"output {label}", tokens.where)
        tokens.need("=")
        value = tokens.any_name("a node")
        tokens.need(":")
        dtype = tokens.name("an element type")
        more = self._reader.map(tokens) if tokens.at("{") else {}
        fields = {"label": label, "value": value, "dtype": dtype}
        self.graph.outputs.append(made(Output, more | fields, tokens, f"output {label}"))
