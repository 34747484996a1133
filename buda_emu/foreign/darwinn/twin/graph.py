"""A `.tflite` as a graph: tensors with types, shapes, scales and constants, operators in order; indices checked."""

from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.darwinn import tflite
from buda_emu.foreign.darwinn.flatbuffer import Malformed, Table, read
from buda_emu.foreign.darwinn.reading import Source, contents
from buda_emu.foreign.darwinn.tflite import TENSOR_TYPE_NAMES as TENSOR_TYPES
from buda_emu.foreign.darwinn.tflite import describe_builtin_operator
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import PackageError

Array = NDArray[Any]
_MOST_BYTES: Final = 1 << 30  # of a tensor: larger ones are mistakes, and would fill memory


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A tensor of the graph. `scale` and `zero_point` hold one float32 value, one for each slice along `axis`, or
    none."""

    name: str
    type: str
    shape: tuple[int, ...]
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int
    is_variable: bool
    constant: Array | None

    @property
    def dtype(self) -> "np.dtype[Any]":
        """The numpy type. Raises PackageError for a type that is not read."""
        if self.type not in tflite.TENSOR_TYPES.values():
            raise PackageError(f"tensor {self.name!r} is of type {self.type}, which is not read")
        return np.dtype(self.type)


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One operator of the graph. `inputs` are tensor numbers, -1 for an absent input."""

    number: int
    code: int
    custom: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Table | None
    intermediates: tuple[int, ...]

    @property
    def name(self) -> str:
        """TFLite's name of a builtin operator, or the name that a custom operator has in the model."""
        if self.code != tflite.CUSTOM:
            return describe_builtin_operator(self.code)
        if not self.custom:
            return "a custom operator without a name"
        return f"the custom operator {self.custom!r}"


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """The first subgraph of a model."""

    tensors: tuple[Tensor, ...]
    operations: tuple[Operation, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def number_of(self, name: str) -> int | None:
        """Return the number of the tensor of this name; None where there is none."""
        return next((number for number, tensor in enumerate(self.tensors) if tensor.name == name), None)


def read_graph(source: "Source | tflite.Model") -> Graph:
    """Read the graph of a model. Raises PackageError for bytes that are no model, OSError for a file that cannot be
    opened."""
    name = "the model"
    model = source
    if not isinstance(model, tflite.Model):
        model, name = _read_model(model)
    if not model.subgraphs:
        raise PackageError(f"{name} has no graph")
    graph = model.subgraphs[0]
    try:
        tensors = tuple(_read_tensor(tensor, number, model) for number, tensor in enumerate(graph.tensors or ()))
        operators = enumerate(graph.operators or ())
        operations = tuple(_read_operation(operator, number, model, len(tensors)) for number, operator in operators)
        inputs = _checked_numbers(graph.inputs, len(tensors), "the graph")
        outputs = _checked_numbers(graph.outputs, len(tensors), "the graph")
    except ValueError as error:
        raise PackageError(f"{name}: {error}") from None
    return Graph(tensors, operations, inputs, outputs)


def _read_model(source: Source) -> tuple[tflite.Model, str]:
    """Return the model in a file or in bytes, and its name in messages. Raises PackageError for bytes that are no
    model, OSError for a file that cannot be opened."""
    data, path = contents(source)
    name = path or "the model"
    if data[4:8] != tflite.IDENTIFIER:
        raise PackageError(f"{name} is not a TFLite model: its identifier is {data[4:8]!r}, not {tflite.IDENTIFIER!r}")
    try:
        return read(tflite.Model, memoryview(data)), name
    except Malformed as error:
        raise PackageError(f"{name} does not verify: {error}") from None


def _checked_numbers(indices: Any, count: int, owner: str, absent: bool = False) -> tuple[int, ...]:
    """Return tensor numbers, each below `count`, or -1 where one may be absent. Raises ValueError, with the name of
    the `owner`, for any other."""
    if indices is None:
        return ()
    numbers = tuple(map(int, indices))
    for number in numbers:
        if not (0 <= number < count or (absent and number == -1)):
            raise ValueError(f"{owner} has tensor {number} of {count}")
    return numbers


def _read_tensor(table: tflite.Tensor, number: int, model: tflite.Model) -> Tensor:
    """Return a tensor with its constant. Raises ValueError where shape, buffer or quantisation do not fit together."""
    if table.name is not None:
        name = table.name
    else:
        name = f"tensor {number}"
    shape = tuple(table.shape or ())
    kind = TENSOR_TYPES.get(table.type, f"type {table.type}")
    quantization = table.quantization or tflite.Quantization()
    scale = tuple(quantization.scale or ())
    zeros = tuple(quantization.zero_point or ())
    constant = _constant_view(table, name, kind, shape, model)
    if len(scale) != len(zeros) and zeros:
        raise ValueError(f"tensor {name!r} has {plural(len(scale), 'scale')} and {len(zeros)} zero points")
    return Tensor(
        name=name,
        type=kind,
        shape=shape,
        scale=scale,
        zero_point=zeros or (0,) * len(scale),
        axis=quantization.quantized_dimension,
        is_variable=table.is_variable,
        constant=constant,
    )


def _constant_view(
    table: tflite.Tensor, name: str, kind: str, shape: tuple[int, ...], model: tflite.Model
) -> Array | None:
    """Return a view on the tensor's buffer; None where the buffer is empty or the type is not read. `kind` is
    numpy's name of the type. Raises ValueError where the bytes do not fit the shape, or the buffer does not exist."""
    buffers = model.buffers or ()
    if table.buffer >= len(buffers):
        raise ValueError(f"tensor {name!r} has buffer {table.buffer} of {len(buffers)}")
    if any(size < 0 for size in shape):
        raise ValueError(f"tensor {name!r} has the shape {list(shape)}")
    raw = buffers[table.buffer].data
    if not raw or kind not in tflite.TENSOR_TYPES.values():
        return None
    dtype = np.dtype(kind)
    if len(raw) != prod(shape) * dtype.itemsize:
        raise ValueError(f"tensor {name!r} of shape {list(shape)} has {plural(len(raw), 'byte')} of {kind}")
    return np.frombuffer(raw, dtype).reshape(shape)


def _read_operation(table: tflite.Operator, number: int, model: tflite.Model, count: int) -> Operation:
    """Return operator `number` of the graph, which has `count` tensors. Raises ValueError for an operator code or a
    tensor out of range."""
    codes = model.operator_codes or ()
    if table.opcode_index >= len(codes):
        raise ValueError(f"operator {number} has code {table.opcode_index} of {len(codes)}")
    code = codes[table.opcode_index]
    owner = f"operator {number}"
    return Operation(
        number=number,
        code=code.code,
        custom=code.custom_code or "" if code.code == tflite.CUSTOM else "",
        inputs=_checked_numbers(table.inputs, count, owner, absent=True),
        outputs=_checked_numbers(table.outputs, count, owner),
        options=table.builtin_options,
        intermediates=_checked_numbers(table.intermediates, count, owner),
    )


def blank(shape: tuple[int, ...], dtype: "np.dtype[Any]", name: str) -> Array:
    """Return a new array whose elements are not set. `name` is for the message. Raises PackageError for more than 1
    GiB."""
    if prod(shape) * dtype.itemsize > _MOST_BYTES:
        raise PackageError(f"{name} has {prod(shape)} elements, which is too much to compute")
    return np.empty(shape, dtype)
