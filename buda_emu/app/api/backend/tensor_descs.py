"""PytorchTensorDesc and TilizedTensorDesc, the descriptors of tensors in the host API, and StrideDescriptor, for the
strides of a convolution's activations.
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


class _BufferSource:
    """The interface by which a class that exports a buffer gets the object whose buffer it is."""

    __slots__ = ()

    def buffer_source(self) -> Any:
        """Return the object whose buffer is exported. Raises BufferError when there is none."""
        raise BufferError(f"{type(self).__name__} has no memory")


if sys.version_info >= (3, 12):

    class BufferExporter(_BufferSource):
        """A class whose objects export the buffer of their `buffer_source()`."""

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

    # Before Python 3.12 only C code can define the slot: the type is made by the C API.
    _GETBUFFER = 1  # Py_bf_getbuffer
    _BASETYPE = 1 << 10  # Py_TPFLAGS_BASETYPE
    _get_buffer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
    _delegate: Any = _get_buffer(("PyObject_GetBuffer", ctypes.pythonapi))

    @_get_buffer
    def _export(exporter: Any, view: int, flags: int) -> int:
        """Fill in a view with the buffer of the exporter's source; the view then holds a reference to the source."""
        try:
            return _delegate(exporter.buffer_source(), view, flags)
        except BaseException:  # noqa: BLE001 - none may leave a function that C calls; the caller raises SystemError
            return -1

    _slots = (_Slot * 2)(_Slot(_GETBUFFER, ctypes.cast(_export, ctypes.c_void_p)), _Slot(0, None))
    _name = b"buda_emu.app.api.backend.tensor_descs._Exporter"
    _from_spec = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(("PyType_FromSpec", ctypes.pythonapi))
    _Exporter: Any = _from_spec(ctypes.byref(_Spec(_name, 0, 0, _BASETYPE, _slots)))

    class BufferExporter(_BufferSource, _Exporter):
        """A class whose objects export the buffer of their `buffer_source()`."""


class StrideDescriptor:
    """The strides of a convolution whose activations the host rearranges. `stride` is -1 for none; `xy_offsets` are
    the places (x, y) of the kernel's window."""

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


DIMS: Final = 4  # w, z, r and c of the vendor's tensors
ELEMENT_TYPES: Final = {
    "Float32": "<f4", "Float16": "<f2", "Float16_b": "<u2", "Int32": "<i4", "Int8": "i1", "UInt8": "u1",
    "UInt16": "<u2", "RawUInt32": "<u4", "RawUInt16": "<u2", "RawUInt8": "u1",
}  # fmt: skip
"""The numpy type of an element of a host tensor, for each format that a host tensor may have (NETLIST 4.6, FORMATS
3.10). numpy has no bfloat16: its words are uint16.
"""

State = tuple[int, int, Any, Sequence[int], Sequence[int], int]


class _Allocation:
    """Memory that descriptors point into. `owner` is the object that keeps it alive; `size` is in bytes, 0 where it is
    not known."""

    __slots__ = ("__weakref__", "address", "backend_owned", "owner", "size", "writable")

    def __init__(
        self, address: int, size: int, owner: object, *, backend_owned: bool = False, writable: bool = True
    ) -> None:
        self.address = address
        self.size = size
        self.owner = owner
        self.backend_owned = backend_owned
        self.writable = writable


# A pickled descriptor has nothing but an address (NETLIST 7.2). By this table it finds the memory again, if the process
# still has it.
_allocations: WeakValueDictionary[int, _Allocation] = WeakValueDictionary()


class PytorchTensorDesc(BufferExporter):
    """A descriptor of a host tensor: a pointer, element size and format, and shape [w, z, r, c] with strides in bytes.

    `PytorchTensorDesc()` is empty, to be filled by `get_output`. `PytorchTensorDesc(tensor, itemsize, format, dim,
    shape, strides)` describes a PyTorch tensor, a numpy array, any other object with a buffer, or a capsule with a
    pointer; it keeps that object alive and copies nothing. `dim` is the number of dimensions that are meaningful. The
    descriptor exports its memory as a buffer of four dimensions, so `memoryview`, `numpy.asarray` and
    `torch.frombuffer` take it.

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
        self.shape = _four_numbers(shape, "shape")
        self.strides = _four_numbers(strides, "strides")
        self.dim = int(dim)
        self._allocation: _Allocation | None = None
        self._address = 0
        if tensor is not None:
            self._point_to(_memory_of(tensor, _extent_bytes(self.shape, self.strides, self.itemsize)))

    @property
    def address(self) -> int:
        """The address of the first element; 0 for an empty descriptor."""
        return self._address

    @property
    def alive(self) -> bool:
        """True if the memory is certain to exist, since the descriptor holds it."""
        return self._allocation is not None

    @property
    def backend_owned(self) -> bool:
        """True if the backend allocated the memory, so that `free_tensor` may free it."""
        return self._allocation is not None and self._allocation.backend_owned

    def adopt(self, array: "NDArray[Any]", word: str, dim: int = DIMS) -> None:
        """Point to a fresh contiguous array [w, z, r, c] that the backend made, with elements of format `word`."""
        self.itemsize = array.itemsize
        self.format = format_value(word)
        self.dim = dim
        self.shape = list(array.shape)
        self.strides = list(array.strides)
        self._point_to(_Allocation(array.ctypes.data, array.nbytes, array, backend_owned=True))

    def release(self) -> None:
        """Drop the reference to the memory, which is freed when nothing else refers to it, and set the pointer to
        null."""
        self._allocation = None
        self._address = 0

    def _point_to(self, allocation: _Allocation) -> None:
        """Point the descriptor to this memory, and register the memory so that a copy of the descriptor finds it by its
        address."""
        self._allocation = allocation
        self._address = allocation.address
        if allocation.address:
            _allocations[allocation.address] = allocation

    def elements(self) -> "NDArray[Any]":
        """Return the memory as an array [w, z, r, c] of the format's element type; nothing is copied.

        Raises RuntimeError for a descriptor without memory, a format that no host tensor has, an element size that is
        not the format's, and a shape that reaches beyond the memory.
        """
        import numpy as np

        word = format_word(self.format)
        if self._allocation is None:
            state = "points to memory that is gone" if self._address else "is empty"
            raise RuntimeError(f"the tensor descriptor {state}")
        if word not in ELEMENT_TYPES:
            raise RuntimeError(f"a host tensor cannot have format {word}; formats: {', '.join(ELEMENT_TYPES)}")
        dtype = np.dtype(ELEMENT_TYPES[word])
        if self.itemsize != dtype.itemsize:
            raise RuntimeError(f"an element of {word} has {dtype.itemsize} bytes, not itemsize {self.itemsize}")
        shape = _four_numbers(self.shape, "shape")
        strides = _four_numbers(self.strides, "strides")
        size = _extent_bytes(shape, strides, self.itemsize)
        if self._allocation.size and size > self._allocation.size:
            raise RuntimeError(f"shape {shape} with strides {strides} reaches beyond {self._allocation.size} bytes")
        memory: Any = (ctypes.c_char * size).from_address(self._allocation.address)
        memory.keep = self._allocation  # keeps the memory alive as long as arrays on it
        try:
            array = np.ndarray(tuple(shape), dtype, memory, 0, tuple(strides))
        except ValueError as error:  # no elements at all, but dims whose product is beyond all sizes
            raise RuntimeError(f"shape {shape}: {error}") from None
        array.flags.writeable = self._allocation.writable
        return array

    def buffer_source(self) -> "NDArray[Any]":
        """Return the array whose buffer `memoryview`, `numpy.asarray` and others get. Raises RuntimeError for a
        descriptor that does not describe valid memory, as `elements`."""
        return self.elements()

    def print(self) -> None:
        """Print sizes, format and pointer on one line."""
        print(self)  # noqa: T201 - that is what it is for

    def __repr__(self) -> str:
        return (
            f"PytorchTensorDesc: itemsize {self.itemsize}, format {format_word(self.format)}, dim {self.dim}, "
            f"shape {list(self.shape)}, strides {list(self.strides)}, ptr {self.address:#x}"
        )

    def __getstate__(self) -> State:
        """Return the fields and the address. The address is valid in the same process only, as long as the memory is
        held there (NETLIST 7.2)."""
        return self.address, self.itemsize, self.format, list(self.shape), list(self.strides), self.dim

    def __setstate__(self, state: State) -> None:
        self._address, self.itemsize, self.format, shape, strides, self.dim = state
        self.shape = list(shape)
        self.strides = list(strides)
        self._allocation = _allocations.get(self._address)


class TilizedTensorDesc:
    """A descriptor of entries in the device's layout: `num_buffers` buffers, one for each grid cell in row-major order,
    of `buf_size_bytes` bytes. Pickling drops the data (NETLIST 7.2).
    """

    def __init__(self, num_buffers: int = 0, buf_size_bytes: int = 0, format: Any = DataFormat.Invalid) -> None:
        self.num_buffers = int(num_buffers)
        self.buf_size_bytes = int(buf_size_bytes)
        self.format = format_value(format_word(format))
        self.data: NDArray[np.uint8] | None = None

    def adopt(self, data: "NDArray[np.uint8]", word: str) -> None:
        """Take over packed bytes, uint8[num_buffers, buf_size_bytes], in format `word`; the fields follow from them."""
        self.num_buffers, self.buf_size_bytes = data.shape
        self.format = format_value(word)
        self.data = data

    def release(self) -> None:
        """Drop the data; the fields stay."""
        self.data = None

    def buffers(self) -> "NDArray[np.uint8]":
        """Return the packed bytes, uint8[num_buffers, buf_size_bytes]. Raises RuntimeError for a descriptor without
        data, or whose fields do not fit them."""
        if self.data is None:
            raise RuntimeError("the tilized tensor descriptor has no data")
        if self.data.shape != (self.num_buffers, self.buf_size_bytes):
            raise RuntimeError(
                f"the data has shape {list(self.data.shape)}, not {self.num_buffers} buffers of {self.buf_size_bytes}"
            )
        return self.data

    def print(self) -> None:
        """Print sizes and format on one line."""
        print(self)  # noqa: T201 - that is what it is for

    def __repr__(self) -> str:
        data = "with data" if self.data is not None else "without data"
        return (
            f"TilizedTensorDesc: num_buffers {self.num_buffers}, buf_size_bytes {self.buf_size_bytes}, "
            f"format {format_word(self.format)}, {data}"
        )

    def __getstate__(self) -> tuple[int, int, DataFormat]:
        return self.num_buffers, self.buf_size_bytes, self.format

    def __setstate__(self, state: tuple[int, int, DataFormat]) -> None:
        self.num_buffers, self.buf_size_bytes, self.format = state
        self.data = None


Descriptor = TypeVar("Descriptor", PytorchTensorDesc, TilizedTensorDesc)


def _four_numbers(values: Iterable[int], noun: str) -> list[int]:
    """Return a shape or strides as four integers. Raises RuntimeError for another number of them."""
    numbers = [int(value) for value in values]
    if len(numbers) != DIMS:
        raise RuntimeError(f"{noun} has {DIMS} numbers, not {len(numbers)}")
    return numbers


def _extent_bytes(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    """Return the bytes from the first element to the end of the last. Raises RuntimeError for negative numbers."""
    if min((*shape, *strides, itemsize)) < 0:
        raise RuntimeError(f"shape {list(shape)}, strides {list(strides)}, itemsize {itemsize}: none may be negative")
    if not math.prod(shape):
        return 0
    return sum((count - 1) * stride for count, stride in zip(shape, strides, strict=True)) + itemsize


def _memory_of(tensor: Any, needed: int) -> _Allocation:
    """Return the memory of a PyTorch tensor, an object with a buffer, or a capsule. Raises RuntimeError for memory of
    fewer than `needed` bytes, and for memory that is not on the host. torch is not imported."""
    if type(tensor).__name__ == "PyCapsule":
        return _Allocation(_capsule_pointer(tensor), 0, tensor)
    if callable(getattr(tensor, "data_ptr", None)):
        allocation = _torch_memory(tensor)
    else:
        allocation = _array_memory(tensor)
    if needed > allocation.size:
        raise RuntimeError(f"the declared shape needs {needed} bytes, the tensor has {allocation.size}")
    return allocation


def _torch_memory(tensor: Any) -> _Allocation:
    """Return the memory of a PyTorch tensor, from its first element to the end of its storage. Raises RuntimeError for
    a tensor on a device."""
    if tensor.device.type != "cpu":
        raise RuntimeError(f"the tensor lies on {tensor.device}, not in host memory")
    storage = tensor.untyped_storage()
    return _Allocation(tensor.data_ptr(), storage.nbytes() - (tensor.data_ptr() - storage.data_ptr()), tensor)


def _array_memory(tensor: Any) -> _Allocation:
    """Return the memory of a numpy array or of another object with a buffer. Raises RuntimeError for other objects."""
    import numpy as np

    refuse_masked_arrays(tensor, "tensor")
    try:
        array: NDArray[Any] = np.asarray(tensor if hasattr(tensor, "__array_interface__") else memoryview(tensor))
    except TypeError as error:
        raise RuntimeError(f"no tensor, no capsule, and no buffer: {error}") from None
    size = _extent_bytes(array.shape, array.strides, array.itemsize)
    return _Allocation(array.ctypes.data, size, tensor, writable=array.flags.writeable)


def _capsule_pointer(capsule: Any) -> int:
    """Return the address in a PyCapsule, whatever its name."""
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))(capsule)
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    return pointer(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, name) or 0
