"""A base class whose instances export the buffer of another object.

From Python 3.12 on a class does that by `__buffer__`. Before, only types made in C can: the base is then made from a
type specification with the one slot that fills in a buffer, through ctypes.
"""

import ctypes
import sys
from typing import Any


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
    _name = b"buda_emu.api.backend.tensors.buffers._Exporter"
    _from_spec = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(("PyType_FromSpec", ctypes.pythonapi))
    _Exporter: Any = _from_spec(ctypes.byref(_Spec(_name, 0, 0, _BASETYPE, _slots)))

    class BufferExporter(_Memory, _Exporter):
        """Exports the buffer of `buffer_source()`."""
