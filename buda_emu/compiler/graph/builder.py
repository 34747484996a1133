"""Build a graph node by node: infer shapes, give names, and fold ops whose operands are all constant."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final

import numpy as np

from buda_emu.arithmetic.tensor.referenced import as_array
from buda_emu.compiler.graph.graph import SOURCES, Graph, Node, Shape
from buda_emu.compiler.graph.registry import FrontOp, front_op
from buda_emu.support.errors import InternalError, UnsupportedError

_SAFE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")
MOST_LETTERS: Final = 200
"""Limit for the length of a name in a netlist: a YAML key ends at 1024 characters, and names of derived ops are
longer."""
_WORDS: Final = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "none", "host", "nan", "inf"}


def safe_name(text: str) -> str:
    """Convert a name of the model to one that a netlist can have: letters, digits, points and underscores, and no word
    of YAML. A very long name keeps its beginning and its end."""
    name = re.sub(r"[^A-Za-z0-9_.]+", "_", text).strip("._") or "value"
    if not _SAFE.match(name) or name.lower() in _WORDS:
        name = f"v_{name}"
    if len(name) > MOST_LETTERS:
        name = f"{name[: MOST_LETTERS // 2].strip('._')}__{name[-MOST_LETTERS // 2 + 2 :].strip('._')}"
    return name


def host_name(text: str) -> str:
    """Return a name of the model unchanged if a netlist can have it, else its `safe_name`. Used for inputs, outputs and
    states, which the host addresses by name."""
    if _SAFE.match(text) and len(text) <= MOST_LETTERS:
        return text
    return safe_name(text)


def printable_name(text: str, limit: int = MOST_LETTERS) -> str:
    """Return text of the model for a message or comment: one line without control characters, shortened in the middle
    if it has more than `limit` letters."""
    plain = "".join(letter if letter.isprintable() else f"\\u{{{ord(letter):x}}}" for letter in text)
    if len(plain) <= limit:
        return plain
    return f"{plain[: limit // 2]}...{plain[-limit // 4 :]}"


MOST_ELEMENTS: Final = 1 << 31
"""Limit for the elements of a tensor: 4 GiB in Float16_b, a third of the DRAM of a chip."""
MOST_DIMENSIONS: Final = 32
"""Limit for the rank of a tensor, the same as numpy's before version 2."""
MOST_PLACES: Final = 1 << 24
"""Limit for the size of a dimension that an op moves or sums: several arrays of indices of 128 MiB each."""
MOST_COMPUTED: Final = 1 << 28
"""Limit for the elements of a constant that is folded from smaller ones: 1 GiB in float32. Constants stored in the
model are not limited by this."""
MOST_GROWN: Final = 1 << 30
"""Limit for the elements by which all folded constants together exceed their operands: 4 GiB in float32."""


class Builder:
    """Add nodes to `graph`. Node names are `<scope>.<op>_<n>`; the last node of a scope may take the plain scope name
    (`alias`). Attribute access emits front-end ops: `b.add(x, 1.0)`, `b.softmax(x, axis=-1)`. With `decompose=False`,
    composite ops stay in the graph unless all operands are constant."""

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
            """Add the front-end op of the attribute's name."""
            return self.emit(op, *inputs, **attrs)

        return emit

    def _with_dtype(self, node: Node, dtype: str | None) -> Node:
        """Return a node of the same value with element type `dtype`, the node itself if `dtype` is None or its own."""
        if dtype is None or node.dtype == dtype:
            return node
        return self.retype(node, dtype)

    def emit(self, op: str, *inputs: Any, dtype: str | None = None, **attrs: Any) -> Node:
        """Add a front-end op on nodes, arrays and numbers, and return the node of its value. Decompose a composite op
        if the builder decomposes; fold the op if all operands are constant. Raise ValueError for shapes that do not
        fit, UnsupportedError for tensors that are too large."""
        declared = front_op(op)
        nodes = [self.node(operand) for operand in inputs]
        constant = all(node.op == "constant" for node in nodes)
        if declared.decompose is not None and (self._decompose or constant):
            return self._with_dtype(declared.decompose(self, *nodes, **attrs), dtype)
        dtype = dtype or declared.dtype or _result_type(nodes)
        if declared.shape is None:
            return self._add(op, nodes, attrs, _decomposed_shape(op, nodes, attrs), dtype)
        shape = declared.shape(*[node.shape for node in nodes], **attrs)
        if constant:
            self.count_growth(op, shape, nodes)
            return self._fold(declared, nodes, attrs, dtype)
        return self._add(op, nodes, attrs, shape, dtype)

    def _fold(self, declared: FrontOp, nodes: Sequence[Node], attrs: dict[str, Any], dtype: str) -> Node:
        """Compute an op on constants by its numpy reference and add the result as a constant. Raise InternalError for
        an op without a reference."""
        if declared.reference is None:
            raise InternalError(f"front-end op {declared.name} has no reference")
        with np.errstate(all="ignore"):
            value = as_array(declared.reference(*[node.value for node in nodes], **attrs))
        return self.constant(value, dtype=dtype)

    def count_growth(self, subject: str, shape: Shape, nodes: Iterable[Node]) -> None:
        """Account for a constant of a shape that is about to be folded from `nodes`; `subject` names it in errors.
        Raise UnsupportedError if it is much larger than its operands, or if all folded constants together are."""
        operand_size = sum(map(_element_count, {node.name: node for node in nodes}.values()))
        check_constant_size(subject, shape, operand_size)
        self._grown += max(prod(shape) - operand_size, 0)
        if self._grown > MOST_GROWN:
            raise UnsupportedError(
                f"{subject} of constants: those computed so far have more than {MOST_GROWN:,} elements"
            )

    def _add(self, op: str, nodes: Sequence[Node], attrs: dict[str, Any], shape: Shape, dtype: str) -> Node:
        """Append a node and return it. A value without elements becomes a constant, whatever it is computed from. Raise
        ValueError for negative sizes, UnsupportedError for too many dimensions or elements."""
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
        """Return the same value under another element type. A constant of floats that becomes one of integers or truth
        values is converted, because some readers look at the array and not at the node's type."""
        if node.op == "constant":
            to_integers = np.dtype(dtype).kind in "iub" and node.value.dtype.kind == "f"
            return self.constant(node.value.astype(dtype) if to_integers else node.value, dtype=dtype)
        return self._add("identity", [node], {}, node.shape, dtype)

    def constant(self, value: Any, *, name: str = "", dtype: str | None = None) -> Node:
        """Add a constant and return its node; floats of any width become float32. `name`: its name if that is free, ""
        for one made of the scope; `dtype`: the element type that the node states, instead of the array's own."""
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
        """Add the node of a state as it is when a program begins, and return it; each program has a node of its own.
        `slots`: the number of equal parts of dimension `dim` of which a program writes one at a time; `df`: the format
        in which the device keeps it, "" for the model's own."""
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
        """Add an input of the model and return the node of its value. An input without elements is listed, but its
        value is a constant. Raise ValueError for negative sizes, UnsupportedError for too many dimensions or
        elements."""
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
        """Rename the node that was added last and return it. Return any other node, a source, or a node whose new name
        is taken unchanged."""
        name = safe_name(name)
        last = next(reversed(self.graph.nodes))
        if name in self.graph.nodes or node.name != last or node.op in SOURCES:
            return node
        del self.graph.nodes[node.name]
        self.graph.nodes[name] = replace(node, name=name)
        return self.graph.nodes[name]

    def node(self, operand: Any) -> Node:
        """Return an operand as a node: a node unchanged, a name looked up, a number or an array as a new constant."""
        if isinstance(operand, Node):
            return operand
        if isinstance(operand, str):
            return self.graph[operand]
        return self.constant(np.asarray(operand, _literal_dtype(operand)))

    def fresh(self, op: str) -> str:
        """Reserve and return an unused node name made of the scope and the op."""
        return self.unique(f"{self.scope}.{op}" if self.scope else op)

    def unique(self, name: str) -> str:
        """Reserve and return `name` as a netlist can have it, with a number appended if it is taken."""
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
    """Raise ValueError for negative sizes, and UnsupportedError for more dimensions or elements than the compiler
    takes."""
    if min(shape, default=0) < 0:
        raise ValueError(f"{subject} of shape {list(shape)}")
    if len(shape) > MOST_DIMENSIONS:
        raise UnsupportedError(f"{subject} of {len(shape)} dimensions: the most is {MOST_DIMENSIONS}")
    if prod(shape) > MOST_ELEMENTS:
        raise UnsupportedError(f"{subject} of shape {list(shape)}: more than {MOST_ELEMENTS:,} elements")


def check_constant_size(subject: str, shape: Shape, operand_size: int = 0) -> None:
    """Check a constant before it is computed. Raise UnsupportedError if it is much larger than its operands, which have
    `operand_size` elements together, or has too many dimensions or elements; ValueError for negative sizes."""
    _check_tensor_size(subject, shape)
    limit = max(MOST_COMPUTED, operand_size)
    if prod(shape) > limit:
        raise UnsupportedError(f"{subject} of constants, of shape {list(shape)}: more than {limit:,} elements")


def check_index_size(subject: str, count: int) -> None:
    """Raise UnsupportedError if the indices along one dimension are too many to be listed."""
    if count > MOST_PLACES:
        raise UnsupportedError(f"{subject} along {count} places: the most is {MOST_PLACES:,}")


def _element_count(node: Node) -> int:
    """Return the number of elements of a node."""
    return prod(node.shape)


def _decomposed_shape(op: str, nodes: Sequence[Node], attrs: dict[str, Any]) -> Shape:
    """Infer the shape of a composite op by decomposing it on a scratch graph."""
    scratch = Builder(Graph())
    for node in nodes:
        scratch.graph.nodes.setdefault(node.name, node)
    return scratch.emit(op, *nodes, **attrs).shape


def _literal_dtype(operand: Any) -> Any:
    """Return the dtype for a Python number: float32 for a float, None (numpy's choice) for anything else."""
    if isinstance(operand, float):
        return np.float32
    return None


def _result_type(nodes: Sequence[Node]) -> str:
    """Return numpy's result type of the operands. A constant of rank 0 does not widen the result, and any float operand
    makes it a float."""
    dtypes = [node.dtype for node in nodes]
    widening = [node.dtype for node in nodes if node.shape or node.op != "constant"] or dtypes
    if any(np.dtype(dtype).kind == "f" for dtype in dtypes):
        widening = [dtype for dtype in widening if np.dtype(dtype).kind == "f"]
    if not widening:
        return "float32"
    return np.result_type(*widening).name
