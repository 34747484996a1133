"""The graph that all passes work on: nodes in order of their definition, and constants, which may be larger than
memory should hold twice; and what is known of the signs of its values.

Nothing is known of a value that the graph does not hold, as in the graph of one op that a builder makes for its shape.
"""

import shutil
import tempfile
import zlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.tensor.mapped import map_bytes, page_releaser
from buda_emu.arithmetic.tensor.referenced import LARGE, Referenced, reference_to
from buda_emu.emulator.image.shape_rules import ShapeRule
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError


def import_networkx() -> Any:
    """Return the module networkx, which has no types. Raises HostError where it is not installed."""
    try:
        return import_module("networkx")
    except ModuleNotFoundError:
        raise HostError("compile: networkx is not installed: pip install 'buda-emu[onnx]' brings it") from None


Array = NDArray[Any]
Shape = tuple[int, ...]
SOURCES = ("input", "constant", "state")
"""Ops that read no other node. An input has its `label`; with `windows` the host lays side by side what they see of a
tensor of `host_shape`, and the node's shape is that of the result; `rules` are shapes that it decides, and `ranges` are
what the host checks of an input of indices that the device computes with. A state is a tensor that the device keeps
from run to run: attributes `label`, `initial`, its value at first, and `df`, its format where that is not the model's.
With `slots` a program writes one of so many equal parts of dimension `dim` at a time, and reads all of them."""
FORWARD = "fwd_0"


@dataclass(frozen=True, slots=True)
class Node:
    """One op and the value that it gives. `shape` is the value's, `dtype` numpy's name of its element type.

    Values are computed in float32 whatever `dtype` says: it tells what the host gets, and what a cast or a division
    means. `source` is the layer of the user's model: what the importer took at once, named as the model names it.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    attrs: Mapping[str, Any]
    shape: Shape
    dtype: str = "float32"
    source: str = ""

    @property
    def value(self) -> Array:
        """The array of a constant."""
        return self.attrs["value"]


def other_operand(node: Node, name: str) -> str:
    """Return the operand of a node with two operands that is not `name`, or `name` if both are."""
    if node.inputs[0] == name:
        return node.inputs[1]
    return node.inputs[0]


def dim_of(axis: int, rank: int) -> int:
    """Return the dimension that an axis names, counting from the end if it is negative. Raise ValueError if the rank
    has no such dimension."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of {plural(rank, 'dimension')}")
    return int(axis) % rank


def host_shape(node: Node) -> Shape:
    """Return the shape of the tensor that the host holds for an input."""
    return node.attrs.get("host_shape", node.shape)


def rules_of(graph: "Graph") -> tuple[ShapeRule, ...]:
    """Return the rules about the shapes that the inputs of a graph decide."""
    return tuple(chain.from_iterable(graph[name].attrs.get("rules", ()) for name in graph.inputs))


@dataclass(frozen=True, slots=True)
class Output:
    """An output of the model: its label, the name of its node, and the element type that the host gets.

    `program` computes it: a node belongs to the first program, in the order of the outputs, that needs it. An output
    with a `state` is not returned to the host but stored in the state of that label; with `accumulate` it is added to
    what the state holds.
    """

    label: str
    value: str
    dtype: str
    program: str = FORWARD
    state: str = ""
    accumulate: bool = False


class Origin(Protocol):
    """The imported model, run by its own framework for comparison."""

    @property
    def tool(self) -> str:
        """The name and version of the framework."""
        ...

    def values(self, inputs: Sequence[Array], node_names: Container[str]) -> tuple[list[Array], dict[str, Array]]:
        """Run the model and return its outputs, and the values of those named nodes of the imported graph that it can
        give. Raise HostError if the framework is not installed or refuses the inputs."""
        ...


@dataclass(slots=True)
class Graph:
    """A model as nodes by name, each after its operands. `inputs` names nodes of op "input" in the model's order.
    `origin` is set on a graph that was just imported."""

    name: str = "model"
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    inputs: list[str] = field(default_factory=list[str])
    outputs: list[Output] = field(default_factory=list[Output])
    origin: Origin | None = None

    def __repr__(self) -> str:
        labels = ", ".join(str(self.nodes[name].attrs.get("label", name)) for name in self.inputs)
        outputs = ", ".join(output.label for output in self.outputs)
        return (
            f"<Graph {self.name}: {plural(len(self.nodes), 'node')}, inputs {labels or '-'}, outputs {outputs or '-'}>"
        )

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    def users(self) -> dict[str, list[str]]:
        """Return the names of the nodes that read each value, in order. Outputs of the graph are not counted."""
        readers: dict[str, list[str]] = {name: [] for name in self.nodes}
        for node in self:
            for name in dict.fromkeys(node.inputs):
                readers[name].append(node.name)
        return readers

    def programs(self) -> dict[str, str]:
        """Return the program of every node that an output needs, by the node's name: the first program, in the order of
        the outputs, that needs it."""
        program_of: dict[str, str] = {}
        for program in dict.fromkeys(output.program for output in self.outputs):
            needed = {output.value for output in self.outputs if output.program == program}
            for node in reversed(self.nodes.values()):
                if node.name in needed and node.name not in program_of:
                    needed.update(node.inputs)
            program_of |= {name: program for name in needed if name not in program_of}
        return program_of

    def live(self) -> set[str]:
        """Return the names of all inputs and of all values that an output depends on. Raise HostError if networkx is
        not installed."""
        nx = import_networkx()
        edges = nx.DiGraph()
        edges.add_nodes_from(self.nodes)
        edges.add_edges_from((name, node.name) for node in self for name in node.inputs)
        live_names = {output.value for output in self.outputs}
        for output in tuple(live_names):
            live_names |= nx.ancestors(edges, output)
        return live_names | set(self.inputs)

    @property
    def one_by_one(self) -> bool:
        """True if an input must wait for the one before it, because it reads a state that this one updates. Accumulated
        gradients do not count, since their order does not matter."""
        return any(node.op == "state" for node in self) and not any(output.accumulate for output in self.outputs)

    def text(self) -> str:
        """Return the graph as text, one line a node: `name: op(inputs) {attributes} -> shape`."""
        lines = [_format_node(node) for node in self]
        return "\n".join(
            [*lines, "outputs: " + ", ".join(f"{output.label} = {output.value}" for output in self.outputs)]
        )


def _format_node(node: Node) -> str:
    """Write a node on one line: name, op, operands, attributes, shape, and its element type unless it is float32."""
    attrs = ", ".join(f"{key}={_format_attribute(value)}" for key, value in node.attrs.items())
    if node.dtype == "float32":
        dtype = ""
    else:
        dtype = f" {node.dtype}"
    call = f"{node.op}({', '.join(node.inputs)})"
    return f"{node.name}: {call}{f' {{{attrs}}}' if attrs else ''} -> {list(node.shape)}{dtype}"


def _format_attribute(value: Any) -> str:
    """Write an attribute, an array of more than four elements as its type and shape."""
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        if array.size <= 4:
            return repr(array.tolist())
        return f"<{array.dtype} {list(array.shape)}>"
    return repr(value)


_SAMPLES: Final = 64  # elements of a larger array that are hashed; equality compares all bits
_SMALL: Final = 1 << 20
"""Limit in bytes up to which an array is hashed as a whole, since pickers of the steps of a loop differ in a single
element; also the bytes that are compared at a time."""


class ArrayKey:
    """A dictionary key for an array, equal to the keys of arrays with the same shape, type and bits.

    The hash of a large array samples a few elements; equality compares all bits if the hashes agree. Arrays by
    reference are equal if they are made of the same memory in the same way.
    """

    __slots__ = ("_array", "_hash")

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        if isinstance(array, Referenced):
            self._hash = hash((array.shape, array.dtype.str, array.key))
            return
        if array.nbytes > _SMALL:
            array = array.flat[np.arange(0, array.size, max(1, array.size // _SAMPLES))]
        self._hash = hash((self._array.shape, array.dtype.str, zlib.crc32(_flat_bytes(array).data)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrayKey) or self._hash != other._hash:
            return False
        left = self._array
        right = other._array
        if left is right:
            return True
        if isinstance(left, Referenced):
            return isinstance(right, Referenced) and left.key == right.key
        if isinstance(right, Referenced):
            return False
        if left.shape != right.shape or left.dtype != right.dtype:
            return False
        return _share_memory(left, right) or _equal_bits(_flat_bytes(left), _flat_bytes(right))


def _share_memory(left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Return whether two arrays of one shape and type are views of the same elements."""
    return left.strides == right.strides and left.ctypes.data == right.ctypes.data


def _equal_bits(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> bool:
    """Compare two byte arrays of equal length in parts, because numpy allocates one more byte for each that it
    compares."""
    parts = (slice(start, start + _SMALL) for start in range(0, left.size, _SMALL))
    return all(np.array_equal(left[part], right[part]) for part in parts)


def _flat_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the bytes of an array, flat."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


MEMORY_LIMIT: Final = 1 << 30
"""Bytes of copies that stay in memory; further copies go to temporary files, whose pages the system can drop."""
_SPARE: Final = 1 << 30
"""Bytes that copies leave free on the disk of the temporary files."""


class OwnMemory:
    """A pool with one copy of each large constant, however many forms of the model are lowered. Derived constants refer
    to the copy, and are transposed, cut and padded when they are read.

    A temporary file has no name and is freed with the last array in it. If the disk has no room, the copy stays in
    memory.
    """

    def __init__(self, most_bytes: int = MEMORY_LIMIT) -> None:
        self._held: dict[ArrayKey, tuple[Array, Callable[[], None]]] = {}
        self._left = most_bytes

    def of(self, array: Array, name: str) -> Any:
        """Return the array as a reference to its copy. Small arrays, arrays of integers and references are returned
        unchanged. A transposed or reshaped array shares the copy of the original. `name` is for messages."""
        if isinstance(array, Referenced) or array.dtype.kind != "f" or array.nbytes < LARGE:
            return array
        order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
        in_memory_order = array.transpose(order)
        flat = in_memory_order.reshape(-1)
        key = ArrayKey(flat)
        if key not in self._held:
            self._held[key] = self._copy(flat, is_own=not np.may_share_memory(flat, array))
        copy, give_back = self._held[key]
        reference = reference_to(copy.reshape(in_memory_order.shape), name, give_back)
        return reference.transpose(np.argsort(order).tolist())

    def _copy(self, flat: Array, *, is_own: bool) -> tuple[Array, Callable[[], None]]:
        """Copy an array to memory or to a file, and return the copy and a function that releases its pages. `is_own`
        says that the array is already a private copy."""
        if flat.nbytes > self._left and _disk_has_room(flat.nbytes):
            return _copy_to_file(flat)
        self._left -= flat.nbytes
        return flat if is_own else flat.copy(), _release_nothing


def _copy_to_file(flat: Array) -> tuple[Array, Callable[[], None]]:
    """Write an array to an unnamed temporary file, and return its map and a function that releases its pages."""
    with tempfile.TemporaryFile() as stream:
        stream.write(flat.data)
        stream.flush()
        copy = map_bytes(stream, 0, flat.nbytes).view(flat.dtype)
    return copy, page_releaser(copy)


def memory_share(size: int) -> int:
    """Return how many of `size` bytes of copies of constants will stay in memory: all if the disk has no room for them,
    else at most MEMORY_LIMIT."""
    if _disk_has_room(size):
        return min(size, MEMORY_LIMIT)
    return size


def _disk_has_room(size: int) -> bool:
    """Return whether the folder for temporary files has room for `size` bytes and a reserve."""
    return shutil.disk_usage(tempfile.gettempdir()).free > size + _SPARE


def _release_nothing() -> None:
    """Release no pages, because the copy lies in ordinary memory."""


_SIGN_STAYS: Final = {"linear", "reshape", "transpose", "expand", "identity", "add", "multiply", "concat"}
"""Ops whose result is not below 0 if no operand is; `linear` if no weight is."""


def never_negative(graph: Graph, name: str) -> bool:
    """Return whether a value, its padding included, is known not to be below 0, so that nothing in the padding needs to
    be zeroed, and what is normalised stays small there, too."""
    node = graph.nodes.get(name)
    if node is None:
        return False
    if node.op == "constant":
        return bool((node.value >= 0).all())
    if node.op in ("square", "abs", "exp", "relu", "sigmoid", "sqrt"):
        return True
    if node.op == "multiply" and node.inputs[0] == node.inputs[1]:
        return True
    if node.op == "maximum":
        return any(never_negative(graph, operand) for operand in node.inputs)
    return _keeps_sign(node) and all(never_negative(graph, operand) for operand in node.inputs)


def _keeps_sign(node: Node) -> bool:
    """Return whether the result of a node is not below 0 if no operand is."""
    if node.op == "linear" and (node.attrs["matrix"].weight < 0).any():
        return False
    return node.op in _SIGN_STAYS


def is_positive(graph: Graph, name: str) -> bool:
    """Return whether a value is known to be above 0: a positive constant, the larger one of such a value and another,
    or the sum of such a value and one that cannot be below 0."""
    node = graph.nodes.get(name)
    if node is None:
        return False
    if node.op == "constant":
        return bool((node.value > 0).all())
    if node.op == "maximum":
        return any(is_positive(graph, operand) for operand in node.inputs)
    if node.op == "add":
        return never_negative(graph, name) and any(is_positive(graph, operand) for operand in node.inputs)
    if node.op in ("reshape", "transpose", "expand", "identity"):
        return is_positive(graph, node.inputs[0])
    return False
