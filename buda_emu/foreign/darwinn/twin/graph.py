"""A `.tflite` as a graph: tensors with types, shapes, scales and constants, operators in order; indices checked."""

from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.darwinn import tflite
from buda_emu.foreign.darwinn.flatbuffer import Malformed, Table, read
from buda_emu.foreign.darwinn.reading import Source, contents
from buda_emu.foreign.darwinn.tflite_names import TENSOR_TYPES, describe_builtin_operator
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import PackageError

Array = NDArray[Any]
_MOST_BYTES: Final = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A tensor of the graph. `scale`, `zero_point`: one, one for each slice along `axis`, or none; float32 values."""

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
        """numpy's type. Raises PackageError for a type that is not read."""
        if self.type not in tflite.TENSOR_TYPES.values():
            raise PackageError(f"tensor {self.name!r} is of type {self.type}, which is not read")
        return np.dtype(self.type)


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One operator. `inputs`: tensor numbers, -1 for one that is absent."""

    number: int
    code: int
    custom: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Table | None
    intermediates: tuple[int, ...]

    @property
    def name(self) -> str:
        """TFLite's name of a builtin operator, or what a custom operator calls itself."""
        if self.code != tflite.CUSTOM:
            return describe_builtin_operator(self.code)
        return f"the custom operator {self.custom!r}" if self.custom else "a custom operator without a name"


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """The first subgraph of a model."""

    tensors: tuple[Tensor, ...]
    operations: tuple[Operation, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def named(self, name: str) -> int | None:
        """The number of a tensor."""
        return next((number for number, item in enumerate(self.tensors) if item.name == name), None)


def read_graph(source: "Source | tflite.Model") -> Graph:
    """The graph of a model. Raises PackageError for what is none, OSError for a file that cannot be opened."""
    model, what = (source, "the model") if isinstance(source, tflite.Model) else _model(source)
    if not model.subgraphs:
        raise PackageError(f"{what} has no graph")
    graph = model.subgraphs[0]
    try:
        tensors = tuple(_tensor(item, number, model) for number, item in enumerate(graph.tensors or ()))
        operations = tuple(_operation(item, n, model, len(tensors)) for n, item in enumerate(graph.operators or ()))
        ends = [_numbers(given, len(tensors), "the graph") for given in (graph.inputs, graph.outputs)]
    except ValueError as error:
        raise PackageError(f"{what}: {error}") from None
    return Graph(tensors, operations, ends[0], ends[1])


def _model(source: Source) -> tuple[tflite.Model, str]:
    data, path = contents(source)
    what = path or "the model"
    if data[4:8] != tflite.IDENTIFIER:
        raise PackageError(f"{what} is not a TFLite model: its identifier is {data[4:8]!r}, not {tflite.IDENTIFIER!r}")
    try:
        return read(tflite.Model, memoryview(data)), what
    except Malformed as error:
        raise PackageError(f"{what} does not verify: {error}") from None


def _numbers(given: Any, count: int, what: str, absent: bool = False) -> tuple[int, ...]:
    found = tuple(int(item) for item in given if given is not None) if given is not None else ()
    for item in found:
        if not (0 <= item < count or (absent and item == -1)):
            raise ValueError(f"{what} has tensor {item} of {count}")
    return found


def _tensor(item: tflite.Tensor, number: int, model: tflite.Model) -> Tensor:
    name = item.name if item.name is not None else f"tensor {number}"
    shape = tuple(item.shape or ())
    kind = TENSOR_TYPES.get(item.type, f"type {item.type}")
    scale = tuple(item.quantization.scale or ()) if item.quantization else ()
    zeros = tuple(item.quantization.zero_point or ()) if item.quantization else ()
    axis = item.quantization.quantized_dimension if item.quantization else 0
    buffers = model.buffers or ()
    if item.buffer >= len(buffers):
        raise ValueError(f"tensor {name!r} has buffer {item.buffer} of {len(buffers)}")
    if any(size < 0 for size in shape):
        raise ValueError(f"tensor {name!r} has the shape {list(shape)}")
    constant = None
    raw = buffers[item.buffer].data
    if raw and kind in tflite.TENSOR_TYPES.values():
        dtype = np.dtype(kind)
        if len(raw) != prod(shape) * dtype.itemsize:
            raise ValueError(f"tensor {name!r} of shape {list(shape)} has {plural(len(raw), 'byte')} of {kind}")
        constant = np.frombuffer(raw, dtype).reshape(shape)
    if len(scale) != len(zeros) and zeros:
        raise ValueError(f"tensor {name!r} has {plural(len(scale), 'scale')} and {len(zeros)} zero points")
    return Tensor(
        name=name,
        type=kind,
        shape=shape,
        scale=scale,
        zero_point=zeros or (0,) * len(scale),
        axis=axis,
        is_variable=item.is_variable,
        constant=constant,
    )


def _operation(item: tflite.Operator, number: int, model: tflite.Model, count: int) -> Operation:
    codes = model.operator_codes or ()
    if item.opcode_index >= len(codes):
        raise ValueError(f"operator {number} has code {item.opcode_index} of {len(codes)}")
    code = codes[item.opcode_index]
    what = f"operator {number}"
    return Operation(
        number=number,
        code=code.code,
        custom=code.custom_code or "" if code.code == tflite.CUSTOM else "",
        inputs=_numbers(item.inputs, count, what, absent=True),
        outputs=_numbers(item.outputs, count, what),
        options=item.builtin_options,
        intermediates=_numbers(item.intermediates, count, what),
    )


def blank(shape: tuple[int, ...], dtype: "np.dtype[Any]", what: str) -> Array:
    """A new array of bounded size."""
    if prod(shape) * dtype.itemsize > _MOST_BYTES:
        raise PackageError(f"{what} has {prod(shape)} elements, which is too much to compute")
    return np.empty(shape, dtype)
