"""Small TFLite models with one operator, made by the project's own writer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from buda_emu.foreign.darwinn import tflite
from buda_emu.foreign.darwinn.flatbuffer import Table
from buda_emu.foreign.darwinn.flatbuffer.write import write
from buda_emu.foreign.darwinn.tflite import BUILTIN_OPERATORS
from buda_emu.foreign.darwinn.tflite import TENSOR_TYPE_NAMES as TENSOR_TYPES

_TYPES = {name: number for number, name in TENSOR_TYPES.items()}
_CODES = {name: number for number, name in BUILTIN_OPERATORS.items()}


@dataclass
class T:
    """A tensor. `data`: a constant."""

    name: str
    dtype: str
    shape: Sequence[int]
    scale: Sequence[float] = ()
    zero: Sequence[int] = ()
    axis: int = 0
    data: Any = None
    variable: bool = False


def model(
    name: str,
    inputs: Sequence[T | None],
    outputs: Sequence[T],
    options: Table | None = None,
    version: int = 1,
    intermediates: Sequence[T] = (),
) -> bytes:
    """A model of one operator; inputs without data are the model's."""
    tensors = [item for item in (*inputs, *outputs, *intermediates) if item is not None]
    numbers = {id(item): n for n, item in enumerate(tensors)}
    buffers = [tflite.Buffer()]
    tables = []
    for item in tensors:
        buffer = 0
        if item.data is not None:
            buffer = len(buffers)
            buffers.append(tflite.Buffer(data=np.ascontiguousarray(item.data).tobytes()))
        quantization = None
        if len(item.scale):
            quantization = tflite.Quantization(
                scale=tuple(map(float, item.scale)),
                zero_point=tuple(map(int, item.zero)),
                quantized_dimension=item.axis,
            )
        tables.append(
            tflite.Tensor(
                tuple(map(int, item.shape)), _TYPES[item.dtype], buffer, item.name, quantization, item.variable
            )
        )
    option_type = next((n for n, t in tflite.OPTIONS.items() if options is not None and isinstance(options, t)), 0)
    operator = tflite.Operator(
        inputs=tuple(-1 if item is None else numbers[id(item)] for item in inputs),
        outputs=tuple(numbers[id(item)] for item in outputs),
        builtin_options_type=option_type,
        builtin_options=options,
        intermediates=tuple(numbers[id(item)] for item in intermediates) or None,
    )
    fed = tuple(numbers[id(t)] for t in inputs if t is not None and t.data is None and not t.variable)
    graph = tflite.SubGraph(tuple(tables), fed, tuple(numbers[id(t)] for t in outputs), (operator,))
    code = tflite.OperatorCode(min(_CODES[name], 127), None, version, _CODES[name])
    return write(tflite.Model(3, (code,), (graph,), None, tuple(buffers)), tflite.IDENTIFIER)
