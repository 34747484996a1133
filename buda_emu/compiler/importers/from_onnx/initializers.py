"""Initializers of an ONNX model: a tensor of the model as an array, where it holds what it says."""

from math import prod
from typing import Any, Final

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from buda_emu.compiler.graph.graph import Array
from buda_emu.compiler.importers.from_onnx.standard import TYPES
from buda_emu.compiler.importers.operators import NotSupportedError

_FIELDS: Final = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
"""The fields of a tensor for its values one by one; `raw_data` has their bytes."""


def read_initializer(tensor: Any) -> Array:
    """Return the array of an onnx.TensorProto whose bytes lie in the model. Raise NotSupportedError for element types
    and forms that are not supported, ValueError for a tensor that contradicts itself."""
    if tensor.data_type not in TensorProto.DataType.values() or not tensor.data_type:
        raise ValueError(f"{tensor.data_type} is the number of no element type")
    if min(tensor.dims, default=0) < 0:
        raise ValueError(f"shape {list(tensor.dims)} has a size below 0")
    name = TensorProto.DataType.Name(tensor.data_type).lower()
    if tensor.data_type == TensorProto.STRING or helper.tensor_dtype_to_np_dtype(tensor.data_type).name not in TYPES:
        raise NotSupportedError(f"initializer of type {name}")
    if tensor.HasField("segment"):
        raise NotSupportedError("initializer in segments")
    _check_values(tensor)
    return numpy_helper.to_array(tensor)


def _check_values(tensor: Any) -> None:
    """Raise ValueError if a tensor has its values in several fields or in that of another type, or not as many as its
    shape says."""
    fields = [name for name in _FIELDS if getattr(tensor, name)]
    if tensor.HasField("raw_data"):
        fields.append("raw_data")
    if len(fields) > 1:
        raise ValueError(f"values in {' and '.join(fields)}, and a tensor has one of them")
    kind: np.dtype[Any] = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    own_field = helper.tensor_dtype_to_field(tensor.data_type)
    count = prod(tensor.dims)
    shape = list(tensor.dims)
    if fields == ["raw_data"]:
        if len(tensor.raw_data) != count * kind.itemsize:
            raise ValueError(
                f"{len(tensor.raw_data)} bytes for {kind.name} of shape {shape}, which takes {count * kind.itemsize}"
            )
        return
    if fields not in ([], [own_field]):
        raise ValueError(f"values in {fields[0]}, where {kind.name} has them in {own_field} or raw_data")
    if len(getattr(tensor, own_field)) != count:
        raise ValueError(f"{len(getattr(tensor, own_field))} values for shape {shape}, which takes {count}")
