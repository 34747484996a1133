"""MLIR's objects as Python's."""

import re
from typing import Any, Final

import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from buda_emu.compiler.graph.graph import Array, Shape
from buda_emu.compiler.importers.refusal import NotSupportedError

_DTYPES: Final = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "float32", "i1": "bool", "i8": "int8",
    "i16": "int16", "i32": "int32", "i64": "int64", "ui8": "uint8", "ui16": "uint16", "ui32": "uint32",
    "ui64": "uint64",
}  # fmt: skip
_NUMBERS: Final = (stablehlo.DotDimensionNumbers, stablehlo.ConvDimensionNumbers, stablehlo.GatherDimensionNumbers)
_FILE: Final = re.compile(r'"([^"\n]+)":(\d+):\d+')


def type_of(given: Any) -> tuple[Shape, str]:
    """Shape and element type; bfloat16 is float32, as numpy has none. Raises NotSupportedError."""
    found = given if isinstance(given, ir.RankedTensorType) else None
    word = str(found.element_type) if found is not None else str(given)
    if found is None or word not in _DTYPES:
        raise NotSupportedError(f"a value of type {word}")
    if not found.has_static_shape:
        raise NotSupportedError(f"a shape that is left open: {given}")
    return tuple(found.shape), _DTYPES[word]


def array_of(attribute: Any) -> Array:
    """A constant. Raises NotSupportedError for an element type that jax's bindings do not hand over."""
    shape, dtype = type_of(attribute.type)
    try:
        return np.array(attribute)
    except TypeError:
        if attribute.is_splat:
            return np.full(shape, attribute.get_splat_value().value, dtype)
        raise NotSupportedError(f"of type {attribute.type}: keep parameters in float32") from None


def attributes_of(item: Any) -> dict[str, Any]:
    """All attributes of an operation that are numbers, lists, words or dimension numbers, by name."""
    return {name: _value(item.attributes[name]) for name in item.attributes}


def _value(attribute: Any) -> Any:
    for kind in _NUMBERS:
        if kind.isinstance(attribute):
            typed = kind(attribute)
            fields = {name: getattr(typed, name) for name in dir(typed) if not name.startswith("_")}
            return {name: value for name, value in fields.items() if isinstance(value, (int, list))}
    if isinstance(attribute, ir.DenseIntElementsAttr):
        return np.array(attribute).tolist()
    if isinstance(attribute, (ir.DenseI64ArrayAttr, ir.DenseBoolArrayAttr)):
        return [int(value) for value in attribute]
    if isinstance(attribute, (ir.IntegerAttr, ir.BoolAttr, ir.FloatAttr, ir.StringAttr)):
        return attribute.value
    return str(attribute).rstrip(">").rpartition(" ")[2]  # a word, as of #stablehlo<comparison_direction LT>


def layer_of(location: Any) -> str:
    """The path of a flax module, without the function and the operator: of `jit(f)/Model/Dense_0/dot` that is
    `Model.Dense_0`."""
    parts = [part for part in str(getattr(location, "name_str", "")).split("/")[:-1] if "(" not in part]
    return ".".join(parts)


def line_of(location: Any) -> str:
    """The user's line: the innermost that is not of jax or flax."""
    frames = [f"{file}:{line}" for file, line in _FILE.findall(str(location))]
    own = [frame for frame in frames if not re.search(r"site-packages/(jax|flax)/", frame)]
    return next(iter(own or frames), "")
