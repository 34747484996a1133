"""What callers may push: numpy and ml_dtypes arrays, torch tensors, buffers (FORMATS 3.10, NETLIST 7.4).

torch is not imported here: a caller who has a tensor has it loaded.
"""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import HostError
from buda_emu.formats import host_decode
from buda_emu.netlist.model import Queue
from buda_emu.spec.formats import is_raw
from buda_emu.unmasked import require_unmasked

_SMALL_FLOATS = ("bfloat16", "float8_", "float6_", "float4_")  # of ml_dtypes: every value is a float32
_SMALL_INTS = ("int2", "uint2", "int4", "uint4")


def host_array(given: object, queue: Queue) -> NDArray[np.float32]:
    """float32 [entries, t, rows, cols], for a RawUInt queue the words as the bits of float32. A float32 array is not
    copied. Raises HostError for an element type or a shape that the queue does not take."""
    where = f"push to {queue.name}"
    plain = as_numpy(given, where)
    array = with_batch(plain)
    shape = queue.blocking.element_shape
    if array.ndim != 4 or array.shape[1:] != shape:
        raise HostError(f"{where}: shape {list(plain.shape)}, expected [entries, {shape[0]}, {shape[1]}, {shape[2]}]")
    if is_raw(queue.df):
        if array.dtype.kind not in "iu":
            raise HostError(f"{where}: {queue.df} takes unsigned integers (uint32), not {array.dtype}")
        return np.ascontiguousarray(array.astype(np.uint32, copy=False)).view(np.float32)
    return as_float32(array, where)


def as_float32(array: NDArray[Any], where: str) -> NDArray[np.float32]:
    """Elements of a host tensor as float32; the same array where they are. Raises HostError."""
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype == np.float32:
        return array
    if array.dtype == np.float16:
        return host_decode("Float16", array)
    if array.dtype.kind in "iub" or array.dtype == np.float64:
        with np.errstate(all="ignore"):  # what is too large for float32 is infinite
            return array.astype(np.float32)
    if array.dtype.name.startswith(_SMALL_FLOATS) or array.dtype.name in _SMALL_INTS:
        return array.astype(np.float32)
    raise HostError(f"{where}: element type {array.dtype} is not one a host tensor may have")


def with_batch(array: NDArray[Any]) -> NDArray[Any]:
    """Fewer than four dimensions as the host interface takes them: three are [entries, rows, cols], two are one entry
    (NETLIST 7.4)."""
    if array.ndim == 3:
        return array[:, np.newaxis]
    if array.ndim == 2:
        return array[np.newaxis, np.newaxis]
    return array


def as_numpy(given: object, where: str = "tensor") -> NDArray[Any]:
    """The same elements as a numpy array, without a copy where memory can be shared. torch's bfloat16 and float8 come
    as float32. Raises HostError for what holds no numbers."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.Tensor):
        return _from_torch(given, torch, where)
    require_unmasked(given, where)
    try:
        array = np.asarray(given)
    except (ValueError, TypeError) as error:
        raise HostError(f"{where}: {type(given).__name__} is not an array: {error}") from None
    if array.dtype.hasobject:
        raise HostError(f"{where}: {type(given).__name__} is not an array of numbers")
    return array


def _from_torch(tensor: Any, torch: Any, where: str) -> NDArray[Any]:
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise HostError(f"{where}: a {tensor.layout} tensor; pass a dense one (tensor.to_dense(), .dequantize())")
    if tensor.device.type != "cpu":
        raise HostError(f"{where}: the tensor is on {tensor.device}; pass tensor.cpu()")
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.dtype == torch.bfloat16:
        words = plain.contiguous().view(torch.int16).numpy().view(np.uint16)
        return (words.astype(np.uint32) << 16).view(np.float32)
    if plain.dtype.is_floating_point and plain.dtype.itemsize == 1:
        return plain.to(torch.float32).numpy()
    try:
        return plain.numpy()
    except (TypeError, RuntimeError) as error:
        raise HostError(f"{where}: element type {plain.dtype} is not one a host tensor may have: {error}") from None
