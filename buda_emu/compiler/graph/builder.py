"""Appends nodes to a graph, giving shapes and names; an op whose operands are all constant is computed at once."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final

import numpy as np

from buda_emu.arithmetic.tensor.referenced import as_array
from buda_emu.compiler.graph.graph import SOURCES, Graph, Node, Shape
from buda_emu.compiler.graph.registry import front_op
from buda_emu.support.errors import InternalError, UnsupportedError

_SAFE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")
MOST_LETTERS: Final = 200
"""Of a name in a netlist: keys of YAML end at 1024 characters, and what is made of an op has its name and more."""
_WORDS: Final = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "none", "host", "nan", "inf"}


def safe_name(text: str) -> str:
    """A name of the model as one of a netlist: letters, digits, points and underscores, no word of YAML, and of a very
    long one the beginning and the end."""
    name = re.sub(r"[^A-Za-z0-9_.]+", "_", text).strip("._") or "value"
    if not _SAFE.match(name) or name.lower() in _WORDS:
        name = f"v_{name}"
    if len(name) > MOST_LETTERS:
        name = f"{name[: MOST_LETTERS // 2].strip('._')}__{name[-MOST_LETTERS // 2 + 2 :].strip('._')}"
    return name


def host_name(text: str) -> str:
    """A name that stands for itself to the host, as the model has it wherever its letters allow."""
    if _SAFE.match(text) and len(text) <= MOST_LETTERS:
        return text
    return safe_name(text)


def printable_name(text: str, limit: int = MOST_LETTERS) -> str:
    """A name of the model in a message or comment, or words that hold some: on one line, without control characters,
    not much longer than `limit` letters."""
    plain = "".join(letter if letter.isprintable() else f"\\u{{{ord(letter):x}}}" for letter in text)
    if len(plain) <= limit:
        return plain
    return f"{plain[: limit // 2]}...{plain[-limit // 4 :]}"


MOST_ELEMENTS: Final = 1 << 31
"""Of a tensor: 4 GiB in Float16_b, a third of the DRAM of a chip."""
MOST_DIMENSIONS: Final = 32
"""As numpy has before version 2."""
MOST_PLACES: Final = 1 << 24
"""Of a dimension that an op moves or sums up: 128 MiB of indices, several times."""
MOST_COMPUTED: Final = 1 << 28
"""Of a constant that is computed of smaller ones: 1 GiB in float32. What a model holds itself lies in its file."""
MOST_GROWN: Final = 1 << 30
"""Of all constants that are computed, more than what they are computed of: 4 GiB in float32."""


class Builder:
    """Writes into `graph`. `scope` names what is built: nodes are called `<scope>.<op>_<n>`, the last one of a scope
    may take the plain name (`alias`). Attribute access gives front-end ops: `b.add(x, 1.0)`, `b.softmax(x, axis=-1)`.
    """

    def __init__(self, graph: Graph, *, decompose: bool = True) -> None:
        self.graph = graph
        self.scope = ""
        self.source = ""
        self._decompose = decompose
        self._counts: dict[str, int] = {}
        self._grown = 0

    def __getattr__(self, op: str) -> Any:
        if op.startswith("_"):
            raise AttributeError(op)

        def emit(*inputs: Any, **attrs: Any) -> Node:
            return self.emit(op, *inputs, **attrs)

        return emit

    def emit(self, op: str, *inputs: Any, dtype: str | None = None, **attrs: Any) -> Node:
        """A node of a front-end op on nodes, arrays and numbers. Raises ValueError for shapes that do not fit."""
        declared = front_op(op)
        nodes = [self.node(operand) for operand in inputs]
        constant = all(node.op == "constant" for node in nodes)
        if declared.decompose is not None and (self._decompose or constant):
            result = declared.decompose(self, *nodes, **attrs)
            if dtype is None or result.dtype == dtype:
                return result
            return self.retype(result, dtype)
        dtype = dtype or declared.dtype or _result_type(nodes)
        if declared.shape is None:
            return self._add(op, nodes, attrs, _decomposed_shape(op, nodes, attrs), dtype)
        if constant:
            if declared.reference is None:
                raise InternalError(f"front-end op {op} has no reference")
            self.count_growth(op, declared.shape(*[node.shape for node in nodes], **attrs), nodes)
            with np.errstate(all="ignore"):
                value = as_array(declared.reference(*[node.value for node in nodes], **attrs))
            return self.constant(value, dtype=dtype)
        shape = declared.shape(*[node.shape for node in nodes], **attrs)
        return self._add(op, nodes, attrs, shape, dtype)

    def count_growth(self, subject: str, shape: Shape, nodes: Iterable[Node]) -> None:
        """Before a constant is computed of others. Raises UnsupportedError where it is much larger than these, or all
        that were computed are."""
        operand_size = sum(map(_element_count, {node.name: node for node in nodes}.values()))
        check_constant_size(subject, shape, operand_size)
        self._grown += max(prod(shape) - operand_size, 0)
        if self._grown > MOST_GROWN:
            raise UnsupportedError(
                f"{subject} of constants: those computed so far have more than {MOST_GROWN:,} elements"
            )

    def _add(self, op: str, nodes: Sequence[Node], attrs: dict[str, Any], shape: Shape, dtype: str) -> Node:
        _check_tensor_size(op, shape)
        if 0 in shape:  # whatever it is computed of, its value is known
            return self.constant(np.zeros(shape, dtype))
        node = Node(
            name=self.fresh(op),
            op=op,
            inputs=tuple(node.name for node in nodes),
            attrs=attrs,
            shape=tuple(map(int, shape)),
            dtype=dtype,
            source=self.source,
        )
        self.graph.nodes[node.name] = node
        return node

    def retype(self, node: Node, dtype: str) -> Node:
        """The same value under another element type; a constant's array has it where it is one of integers, for
        what reads the array and not the node's type."""
        if node.op == "constant":
            to_integers = np.dtype(dtype).kind in "iub" and node.value.dtype.kind == "f"
            return self.constant(node.value.astype(dtype) if to_integers else node.value, dtype=dtype)
        return self._add("identity", [node], {}, node.shape, dtype)

    def constant(self, value: Any, *, name: str = "", dtype: str | None = None) -> Node:
        """A constant; floats become float32."""
        array = as_array(value)
        if array.dtype.kind == "f" and array.dtype != np.float32:
            array = array.astype(np.float32)
        node = Node(
            name=self.unique(name) if name else self.fresh("constant"),
            op="constant",
            inputs=(),
            attrs={"value": array},
            shape=array.shape,
            dtype=dtype or array.dtype.name,
            source=self.source,
        )
        self.graph.nodes[node.name] = node
        return node

    def state(self, label: str, initial: Any, *, slots: int = 1, dim: int = 0, df: str = "") -> Node:
        """A state as it is when a program begins; each program has a node of its own for it. `df`: the format that it
        is kept in, "" the model's."""
        array = np.asarray(initial)
        attrs = {"label": label, "initial": array, "slots": slots, "dim": dim, "df": df}
        node = Node(
            name=self.unique(label),
            op="state",
            inputs=(),
            attrs=attrs,
            shape=array.shape,
            dtype=array.dtype.name,
            source=label,
        )
        self.graph.nodes[node.name] = node
        return node

    def input(self, label: str, shape: Shape, dtype: str) -> Node:
        """An input of the model, as a value: of one without elements a constant."""
        _check_tensor_size(f"input {printable_name(label)}", shape)
        node = Node(
            name=self.unique(label),
            op="input",
            inputs=(),
            attrs={"label": label},
            shape=tuple(shape),
            dtype=dtype,
            source=label,
        )
        self.graph.nodes[node.name] = node
        self.graph.inputs.append(node.name)
        if 0 not in shape:
            return node
        return self.constant(np.zeros(shape, dtype))

    def alias(self, node: Node, name: str) -> Node:
        """The node under a name of its own, where it was made last and the name is free; else as it is."""
        name = safe_name(name)
        last = next(reversed(self.graph.nodes))
        if name in self.graph.nodes or node.name != last or node.op in SOURCES:
            return node
        del self.graph.nodes[node.name]
        self.graph.nodes[name] = replace(node, name=name)
        return self.graph.nodes[name]

    def node(self, operand: Any) -> Node:
        """An operand as a node: numbers and arrays become constants."""
        if isinstance(operand, Node):
            return operand
        if isinstance(operand, str):
            return self.graph[operand]
        return self.constant(np.asarray(operand, _literal_dtype(operand)))

    def fresh(self, op: str) -> str:
        """A name that no node has, from the scope."""
        return self.unique(f"{self.scope}.{op}" if self.scope else op)

    def unique(self, name: str) -> str:
        """`name` as a netlist can have it, with a number after it where that is taken."""
        name = safe_name(name)
        if name not in self.graph.nodes and name not in self._counts:
            self._counts[name] = 0
            return name
        while True:
            self._counts[name] = self._counts.get(name, 0) + 1
            candidate = f"{name}_{self._counts[name]}"
            if candidate not in self.graph.nodes:
                return candidate


def _check_tensor_size(subject: str, shape: Shape) -> None:
    """Raises ValueError for what no tensor has, UnsupportedError for what no machine holds."""
    if min(shape, default=0) < 0:
        raise ValueError(f"{subject} of shape {list(shape)}")
    if len(shape) > MOST_DIMENSIONS:
        raise UnsupportedError(f"{subject} of {len(shape)} dimensions: the most is {MOST_DIMENSIONS}")
    if prod(shape) > MOST_ELEMENTS:
        raise UnsupportedError(f"{subject} of shape {list(shape)}: more than {MOST_ELEMENTS:,} elements")


def check_constant_size(subject: str, shape: Shape, operand_size: int = 0) -> None:
    """Raises as `_sized`, and UnsupportedError for a constant that is much larger than what it is computed of, `operand_size`
    elements."""
    _check_tensor_size(subject, shape)
    limit = max(MOST_COMPUTED, operand_size)
    if prod(shape) > limit:
        raise UnsupportedError(f"{subject} of constants, of shape {list(shape)}: more than {limit:,} elements")


def check_index_size(subject: str, count: int) -> None:
    """Raises UnsupportedError where what an op reads of a dimension is too many places to list."""
    if count > MOST_PLACES:
        raise UnsupportedError(f"{subject} along {count} places: the most is {MOST_PLACES:,}")


def _element_count(node: Node) -> int:
    return prod(node.shape)


def _decomposed_shape(op: str, nodes: Sequence[Node], attrs: dict[str, Any]) -> Shape:
    """What the decomposition of an op gives, tried on a graph of its own."""
    scratch = Builder(Graph())
    for node in nodes:
        scratch.graph.nodes.setdefault(node.name, node)
    return scratch.emit(op, *nodes, **attrs).shape


def _literal_dtype(operand: Any) -> Any:
    if isinstance(operand, float):
        return np.float32
    return None


def _result_type(nodes: Sequence[Node]) -> str:
    """As numpy has it, bool arithmetic apart; a constant number of rank 0 does not widen."""
    kinds = [node.dtype for node in nodes if node.shape or node.op != "constant"] or [node.dtype for node in nodes]
    if any(np.dtype(kind).kind == "f" for kind in (node.dtype for node in nodes)):
        floats = [kind for kind in kinds if np.dtype(kind).kind == "f"]
        if floats:
            return np.result_type(*floats).name
        return "float32"
    if kinds:
        return np.result_type(*kinds).name
    return "float32"
