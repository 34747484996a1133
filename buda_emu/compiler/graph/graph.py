"""The graph that all passes work on: nodes in order of their definition, and constants, which may be larger than
memory should hold twice.
"""

import shutil
import tempfile
import zlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.tensor.mapped import map_bytes, page_releaser
from buda_emu.arithmetic.tensor.referenced import LARGE, Referenced, reference_to
from buda_emu.support.checker.text import plural

Array = NDArray[Any]
Shape = tuple[int, ...]
SOURCES = ("input", "constant", "state")
"""Ops that read no other node. An input has its `label`; with `windows` the host lays side by side what they see of a
tensor of `host_shape`, and the node's shape is that of the result. A state is a tensor that the device keeps from run
to run: attributes `label`, `initial`, its value at first, and `df`, its format where that is not the model's. With
`slots` a program writes one of so many equal parts of dimension `dim` at a time, and reads all of them."""
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
        """Of a constant."""
        return self.attrs["value"]


def dim_of(axis: int, rank: int) -> int:
    """The dimension that an axis names, from the end where it is negative. Raises ValueError where there is none."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of {plural(rank, 'dimension')}")
    return int(axis) % rank


def host_shape(node: Node) -> Shape:
    """What the host has of an input."""
    return node.attrs.get("host_shape", node.shape)


@dataclass(frozen=True, slots=True)
class Output:
    """An output of the model: its name there, the value, and the element type that the host gets.

    `program` that gives it: a node belongs to the first of the programs, in the order of the outputs, that needs it.
    `state`: not for the host but stored in the state of that label, `accumulate`: added to what it holds.
    """

    label: str
    value: str
    dtype: str
    program: str = FORWARD
    state: str = ""
    accumulate: bool = False


class Origin(Protocol):
    """The model that was imported, as its own framework runs it."""

    @property
    def tool(self) -> str:
        """What runs it, with its version."""
        ...

    def values(self, inputs: Sequence[Array], wanted: Container[str]) -> tuple[list[Array], dict[str, Array]]:
        """The outputs, and the values of those nodes of the imported graph that are wanted and that it knows. Raises
        HostError where the framework is not installed or refuses the inputs."""
        ...


@dataclass(slots=True)
class Graph:
    """`nodes` by name, every node after its operands. `inputs` are nodes of op "input", in the model's order.
    `origin`: of a graph that was just imported."""

    name: str = "model"
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    inputs: list[str] = field(default_factory=list[str])
    outputs: list[Output] = field(default_factory=list[Output])
    origin: Origin | None = None

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    def users(self) -> dict[str, list[str]]:
        """Names of the nodes that read each value, in order; the outputs of the graph are not among them."""
        found: dict[str, list[str]] = {name: [] for name in self.nodes}
        for node in self:
            for name in dict.fromkeys(node.inputs):
                found[name].append(node.name)
        return found

    def programs(self) -> dict[str, str]:
        """The program of every node that an output needs."""
        found: dict[str, str] = {}
        for program in dict.fromkeys(output.program for output in self.outputs):
            needed = {output.value for output in self.outputs if output.program == program}
            for node in reversed(self.nodes.values()):
                if node.name in needed and node.name not in found:
                    needed.update(node.inputs)
            found |= {name: program for name in needed if name not in found}
        return found

    def live(self) -> set[str]:
        """Names of all values that an output depends on, and of all inputs."""
        nx: Any = import_module("networkx")  # it has no types
        edges = nx.DiGraph()
        edges.add_nodes_from(self.nodes)
        edges.add_edges_from((name, node.name) for node in self for name in node.inputs)
        found = {output.value for output in self.outputs}
        for output in tuple(found):
            found |= nx.ancestors(edges, output)
        return found | set(self.inputs)

    @property
    def one_by_one(self) -> bool:
        """Whether an input reads what the one before it has left in a state, gradients apart, which are added up."""
        return any(node.op == "state" for node in self) and not any(output.accumulate for output in self.outputs)

    def text(self) -> str:
        """One line for each node: `name: op(inputs) {attributes} -> shape`."""
        lines = [_line(node) for node in self]
        return "\n".join([*lines, "outputs: " + ", ".join(f"{item.label} = {item.value}" for item in self.outputs)])


def _line(node: Node) -> str:
    attrs = ", ".join(f"{key}={_shown(value)}" for key, value in node.attrs.items())
    dtype = "" if node.dtype == "float32" else f" {node.dtype}"
    call = f"{node.op}({', '.join(node.inputs)})"
    return f"{node.name}: {call}{f' {{{attrs}}}' if attrs else ''} -> {list(node.shape)}{dtype}"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return repr(array.tolist()) if array.size <= 4 else f"<{array.dtype} {list(array.shape)}>"
    return repr(value)


_SAMPLES: Final = 64
_SMALL: Final = 1 << 20
"""Bytes of an array that is hashed as a whole: pickers of the steps of a loop differ in a single element. And as many
are compared at a time."""


class ArrayKey:
    """Equal to that of an array with the same shape, type and bits. The hash of a large one looks at a few elements
    only; all of them are compared when two are as alike as that. References are equal where they are made of the same
    memory alike."""

    __slots__ = ("_array", "_hash")

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        if isinstance(array, Referenced):
            self._hash = hash((array.shape, array.dtype.str, array.key))
            return
        if array.nbytes > _SMALL:
            array = array.flat[np.arange(0, array.size, max(1, array.size // _SAMPLES))]
        self._hash = hash((self._array.shape, array.dtype.str, zlib.crc32(_bits(array).data)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrayKey) or self._hash != other._hash:
            return False
        one = self._array
        two = other._array
        if one is two:
            return True
        if isinstance(one, Referenced) or isinstance(two, Referenced):
            return isinstance(one, Referenced) and isinstance(two, Referenced) and one.key == two.key
        if one.shape != two.shape or one.dtype != two.dtype:
            return False
        return _same_memory(one, two) or _same_bits(_bits(one), _bits(two))


def _same_memory(one: NDArray[Any], two: NDArray[Any]) -> bool:
    """Of arrays of one shape and type."""
    return one.strides == two.strides and one.ctypes.data == two.ctypes.data


def _same_bits(one: NDArray[np.uint8], two: NDArray[np.uint8]) -> bool:
    """Of as many bytes, a part at a time: numpy puts one more byte for each of them into memory."""
    parts = (slice(start, start + _SMALL) for start in range(0, one.size, _SMALL))
    return all(np.array_equal(one[part], two[part]) for part in parts)


def _bits(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


KEPT: Final = 1 << 30
"""Bytes of copies that stay in memory; the others lie in temporary files, and their pages come and go."""
_SPARE: Final = 1 << 30
"""Bytes that are left free where temporary files lie."""


class OwnMemory:
    """One copy of each, however many forms of the model are lowered and however many constants are made of it: these
    refer to the copy, and are transposed, cut and padded when somebody reads them.

    A temporary file has no name, and ends with the last array that lies in it. Where there is no room for one, the copy
    stays in memory.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._held: dict[ArrayKey, tuple[Array, Callable[[], None]]] = {}
        self._left = kept

    def of(self, array: Array, name: str) -> Any:
        """The array by reference to its copy; a small one, one of whole numbers, and one that is held by reference
        already as it is. A transposed or reshaped one has the copy of the original. `name` is for messages."""
        if isinstance(array, Referenced) or array.dtype.kind != "f" or array.nbytes < LARGE:
            return array
        order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
        in_memory_order = array.transpose(order)
        flat = in_memory_order.reshape(-1)
        key = ArrayKey(flat)
        if key not in self._held:
            self._held[key] = self._copy(flat, is_own=not np.may_share_memory(flat, array))
        copy, give_back = self._held[key]
        own = reference_to(copy.reshape(in_memory_order.shape), name, give_back)
        return own.transpose(np.argsort(order).tolist())

    def _copy(self, flat: Array, *, is_own: bool) -> tuple[Array, Callable[[], None]]:
        """A copy, and what gives its pages back. `is_own`: it is one already."""
        if flat.nbytes > self._left and _disk_has_room(flat.nbytes):
            return _in_file(flat)
        self._left -= flat.nbytes
        return flat if is_own else flat.copy(), _nothing


def _in_file(flat: Array) -> tuple[Array, Callable[[], None]]:
    with tempfile.TemporaryFile() as stream:
        stream.write(flat.data)
        stream.flush()
        copy = map_bytes(stream, 0, flat.nbytes).view(flat.dtype)
    return copy, page_releaser(copy)


def in_memory(size: int) -> int:
    """How many of so many bytes of copies are going to be in memory."""
    return min(size, KEPT) if _disk_has_room(size) else size


def _disk_has_room(size: int) -> bool:
    return shutil.disk_usage(tempfile.gettempdir()).free > size + _SPARE


def _nothing() -> None:
    """Of memory that is no file's."""
