"""PytorchTensorDesc and TilizedTensorDesc, tensors as the host API describes them, with the strides of convolutions'
activations.
"""

import ctypes
import math
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakValueDictionary

from buda_emu.app.api.backend.enums import DataFormat, format_value, format_word
from buda_emu.support.unmasked import refuse_masked_arrays

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class _Memory:
    """What a subclass answers to."""

    __slots__ = ()

    def buffer_source(self) -> Any:
        """The object whose buffer is exported. Raises BufferError when there is none."""
        raise BufferError(f"{type(self).__name__} has no memory")


if sys.version_info >= (3, 12):

    class BufferExporter(_Memory):
        """Exports the buffer of `buffer_source()`."""

        __slots__ = ()

        def __buffer__(self, flags: int, /) -> memoryview:
            return memoryview(self.buffer_source())

else:

    class _Slot(ctypes.Structure):
        _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))

    class _Spec(ctypes.Structure):
        _fields_ = (
            ("name", ctypes.c_char_p),
            ("basicsize", ctypes.c_int),
            ("itemsize", ctypes.c_int),
            ("flags", ctypes.c_uint),
            ("slots", ctypes.POINTER(_Slot)),
        )

    _GETBUFFER, _BASETYPE = 1, 1 << 10  # Py_bf_getbuffer, Py_TPFLAGS_BASETYPE
    _get_buffer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
    _delegate: Any = _get_buffer(("PyObject_GetBuffer", ctypes.pythonapi))

    @_get_buffer
    def _export(exporter: Any, view: int, flags: int) -> int:
        """Let the source fill in the view, which then holds a reference to the source."""
        try:
            return _delegate(exporter.buffer_source(), view, flags)
        except BaseException:  # noqa: BLE001 - none may leave a function that C calls; the caller raises SystemError
            return -1

    _slots = (_Slot * 2)(_Slot(_GETBUFFER, ctypes.cast(_export, ctypes.c_void_p)), _Slot(0, None))
    _name = b"buda_emu.app.api.backend.tensor_descs._Exporter"
    _from_spec = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(("PyType_FromSpec", ctypes.pythonapi))
    _Exporter: Any = _from_spec(ctypes.byref(_Spec(_name, 0, 0, _BASETYPE, _slots)))

    class BufferExporter(_Memory, _Exporter):
        """Exports the buffer of `buffer_source()`."""


class StrideDescriptor:
    """`stride`: of the convolution, -1 for none. `xy_offsets`: places (x, y) of the kernel's window."""

    def __init__(self) -> None:
        self.stride: int = -1
        self.xy_offsets: list[tuple[int, int]] = []

    def __getstate__(self) -> tuple[list[tuple[int, int]], int]:
        return list(self.xy_offsets), self.stride

    def __setstate__(self, state: tuple[Sequence[Iterable[int]], int]) -> None:
        offsets, self.stride = state
        self.xy_offsets = [(x, y) for x, y in offsets]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StrideDescriptor) and self.__getstate__() == other.__getstate__()

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it changes

    def __repr__(self) -> str:
        return f"StrideDescriptor(stride={self.stride}, xy_offsets={self.xy_offsets})"


DIMS: Final = 4
ELEMENT_TYPES: Final = {
    "Float32": "<f4", "Float16": "<f2", "Float16_b": "<u2", "Int32": "<i4", "Int8": "i1", "UInt8": "u1",
    "UInt16": "<u2", "RawUInt32": "<u4", "RawUInt16": "<u2", "RawUInt8": "u1",
}  # fmt: skip
"""numpy's type of one element of a host tensor in each format that one may have (NETLIST 4.6, FORMATS 3.10).

bfloat16 has none of numpy's own: its words are uint16.
"""

State = tuple[int, int, Any, Sequence[int], Sequence[int], int]


class _Allocation:
    """Memory that descriptors point into: where it is, how long, who keeps it alive, and whose it is."""

    __slots__ = ("__weakref__", "address", "backend_owned", "owner", "size", "writable")

    def __init__(
        self, address: int, size: int, owner: object, *, backend_owned: bool = False, writable: bool = True
    ) -> None:
        self.address = address
        self.size = size
        self.owner = owner
        self.backend_owned = backend_owned
        self.writable = writable


# A pickled descriptor names nothing but an address (NETLIST 7.2): this is how it finds that memory again, if the
# process still has it.
_alive: WeakValueDictionary[int, _Allocation] = WeakValueDictionary()


class PytorchTensorDesc(BufferExporter):
    """A host tensor: a pointer, element size and format, and shape [w, z, r, c] with strides in bytes.

    `PytorchTensorDesc()` is empty, to be filled by `get_output`. `PytorchTensorDesc(tensor, itemsize, format, dim,
    shape, strides)` describes a PyTorch tensor, a numpy array, any other object with a buffer, or a capsule with a
    pointer; it keeps that object alive and copies nothing. `dim` says how many dimensions are meaningful. It exports
    its memory as a buffer of four dimensions, so `memoryview`, `numpy.asarray` and `torch.frombuffer` take it.

    Raises RuntimeError for memory that is not on the host, and for a shape that reaches beyond a known end.
    """

    def __init__(
        self,
        tensor: Any = None,
        itemsize: int = 0,
        format: Any = DataFormat.Invalid,
        dim: int = DIMS,
        shape: Sequence[int] = (0, 0, 0, 0),
        strides: Sequence[int] = (0, 0, 0, 0),
    ) -> None:
        self.itemsize = int(itemsize)
        self.format = format_value(format_word(format))
        self.shape = _four(shape, "shape")
        self.strides = _four(strides, "strides")
        self.dim = int(dim)
        self._held: _Allocation | None = None
        self._address = 0
        if tensor is not None:
            self._hold(_held(tensor, _extent(self.shape, self.strides, self.itemsize)))

    @property
    def address(self) -> int:
        """Where its memory starts; 0 when it has none."""
        return self._address

    @property
    def alive(self) -> bool:
        """Is the memory that it points to known to be there?"""
        return self._held is not None

    @property
    def backend_owned(self) -> bool:
        """Did the backend allocate it, so that `free_tensor` may free it?"""
        return self._held is not None and self._held.backend_owned

    def adopt(self, array: "NDArray[Any]", word: str, dim: int = DIMS) -> None:
        """Point to a fresh contiguous array [w, z, r, c] that the backend made, with elements of format `word`."""
        self.itemsize = array.itemsize
        self.format = format_value(word)
        self.dim = dim
        self.shape = list(array.shape)
        self.strides = list(array.strides)
        self._hold(_Allocation(array.ctypes.data, array.nbytes, array, backend_owned=True))

    def release(self) -> None:
        """Forget the memory; it goes when nobody else holds it."""
        self._held = None
        self._address = 0

    def _hold(self, held: _Allocation) -> None:
        self._held = held
        self._address = held.address
        if held.address:
            _alive[held.address] = held

    def elements(self) -> "NDArray[Any]":
        """The memory itself as an array [w, z, r, c] of the format's element type; nothing is copied.

        Raises RuntimeError: no memory, a format that no host tensor has, an element size that is not the format's.
        """
        import numpy as np

        word = format_word(self.format)
        if self._held is None:
            raise RuntimeError(
                f"the tensor descriptor {'points to memory that is gone' if self._address else 'is empty'}"
            )
        if word not in ELEMENT_TYPES:
            raise RuntimeError(f"a host tensor cannot have format {word}; formats: {', '.join(ELEMENT_TYPES)}")
        dtype = np.dtype(ELEMENT_TYPES[word])
        if self.itemsize != dtype.itemsize:
            raise RuntimeError(f"an element of {word} has {dtype.itemsize} bytes, not itemsize {self.itemsize}")
        shape = _four(self.shape, "shape")
        strides = _four(self.strides, "strides")
        size = _extent(shape, strides, self.itemsize)
        if self._held.size and size > self._held.size:
            raise RuntimeError(f"shape {shape} with strides {strides} reaches beyond {self._held.size} bytes")
        memory: Any = (ctypes.c_char * size).from_address(self._held.address)
        memory.keep = self._held  # lives as long as arrays on it
        try:
            array = np.ndarray(tuple(shape), dtype, memory, 0, tuple(strides))
        except ValueError as error:  # no elements at all, but dims whose product is beyond all sizes
            raise RuntimeError(f"shape {shape}: {error}") from None
        array.flags.writeable = self._held.writable
        return array

    def buffer_source(self) -> "NDArray[Any]":
        """What `memoryview` and its like get. Raises RuntimeError as `elements`."""
        return self.elements()

    def print(self) -> None:
        """Print what it describes, on one line."""
        print(self)  # noqa: T201 - that is what it is for

    def __repr__(self) -> str:
        return (
            f"PytorchTensorDesc: itemsize {self.itemsize}, format {format_word(self.format)}, dim {self.dim}, "
            f"shape {list(self.shape)}, strides {list(self.strides)}, ptr {self.address:#x}"
        )

    def __getstate__(self) -> State:
        """Valid in the same process only, as long as somebody holds the memory (NETLIST 7.2)."""
        return self.address, self.itemsize, self.format, list(self.shape), list(self.strides), self.dim

    def __setstate__(self, state: State) -> None:
        self._address, self.itemsize, self.format, shape, strides, self.dim = state
        self.shape = list(shape)
        self.strides = list(strides)
        self._held = _alive.get(self._address)


class TilizedTensorDesc:
    """Entries packed as the device holds them: `num_buffers` buffers (grid cells, row-major) of `buf_size_bytes`.

    Pickling drops the data (NETLIST 7.2).
    """

    def __init__(self, num_buffers: int = 0, buf_size_bytes: int = 0, format: Any = DataFormat.Invalid) -> None:
        self.num_buffers = int(num_buffers)
        self.buf_size_bytes = int(buf_size_bytes)
        self.format = format_value(format_word(format))
        self.data: NDArray[np.uint8] | None = None

    def adopt(self, data: "NDArray[np.uint8]", word: str) -> None:
        """Hold packed bytes: uint8[num_buffers, buf_size_bytes]."""
        self.num_buffers, self.buf_size_bytes = data.shape
        self.format = format_value(word)
        self.data = data

    def release(self) -> None:
        """Forget the data."""
        self.data = None

    def buffers(self) -> "NDArray[np.uint8]":
        """The packed bytes. Raises RuntimeError when there are none, or others than the fields say."""
        if self.data is None:
            raise RuntimeError("the tilized tensor descriptor has no data")
        if self.data.shape != (self.num_buffers, self.buf_size_bytes):
            raise RuntimeError(
                f"the data has shape {list(self.data.shape)}, not {self.num_buffers} buffers of {self.buf_size_bytes}"
            )
        return self.data

    def print(self) -> None:
        """Print what it describes, on one line."""
        print(self)  # noqa: T201 - that is what it is for

    def __repr__(self) -> str:
        return (
            f"TilizedTensorDesc: num_buffers {self.num_buffers}, buf_size_bytes {self.buf_size_bytes}, "
            f"format {format_word(self.format)}, {'with' if self.data is not None else 'without'} data"
        )

    def __getstate__(self) -> tuple[int, int, DataFormat]:
        return self.num_buffers, self.buf_size_bytes, self.format

    def __setstate__(self, state: tuple[int, int, DataFormat]) -> None:
        self.num_buffers, self.buf_size_bytes, self.format = state
        self.data = None


Descriptor = TypeVar("Descriptor", PytorchTensorDesc, TilizedTensorDesc)


def _four(values: Iterable[int], what: str) -> list[int]:
    numbers = [int(value) for value in values]
    if len(numbers) != DIMS:
        raise RuntimeError(f"{what} has {DIMS} numbers, not {len(numbers)}")
    return numbers


def _extent(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    """Bytes from the first element to after the last."""
    if min((*shape, *strides, itemsize)) < 0:
        raise RuntimeError(f"shape {list(shape)}, strides {list(strides)}, itemsize {itemsize}: none may be negative")
    if not math.prod(shape):
        return 0
    return sum((count - 1) * stride for count, stride in zip(shape, strides, strict=True)) + itemsize


def _held(tensor: Any, needed: int) -> _Allocation:
    """The memory of whatever holds a tensor; torch and numpy are not imported for it."""
    if type(tensor).__name__ == "PyCapsule":
        return _Allocation(_capsule_pointer(tensor), 0, tensor)
    held = _torch_memory(tensor) if callable(getattr(tensor, "data_ptr", None)) else _array_memory(tensor)
    if needed > held.size:
        raise RuntimeError(f"the declared shape needs {needed} bytes, the tensor has {held.size}")
    return held


def _torch_memory(tensor: Any) -> _Allocation:
    """The memory of a PyTorch tensor, from its first element to the end of its storage."""
    if tensor.device.type != "cpu":
        raise RuntimeError(f"the tensor lies on {tensor.device}, not in host memory")
    storage = tensor.untyped_storage()
    return _Allocation(tensor.data_ptr(), storage.nbytes() - (tensor.data_ptr() - storage.data_ptr()), tensor)


def _array_memory(tensor: Any) -> _Allocation:
    """The memory of a numpy array or of another object with a buffer."""
    import numpy as np

    refuse_masked_arrays(tensor, "tensor")
    try:
        array: NDArray[Any] = np.asarray(tensor if hasattr(tensor, "__array_interface__") else memoryview(tensor))
    except TypeError as error:
        raise RuntimeError(f"no tensor, no capsule, and no buffer: {error}") from None
    size = _extent(array.shape, array.strides, array.itemsize)
    return _Allocation(array.ctypes.data, size, tensor, writable=array.flags.writeable)


def _capsule_pointer(capsule: Any) -> int:
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))(capsule)
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    return pointer(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, name) or 0
