"""Messages between processes: plain values, arrays, and objects of the classes that `NAMES` lists, as bytes.

A message is its head, which is JSON, and the bytes of arrays and of `bytes` after it. The reader makes objects of
listed classes field by field. A message names no functions, and no method is called, so that no sender can run code.

In the head, texts, integers, finite floats, True, False and None stand for themselves. Every other value is a list: a
word for its type, then its parts. These values are numbered in the order in which they begin, and `["again", number]`
is the same object once more. Keys of maps and members of sets have no numbers, so that a short one cannot stand for
a long one.
"""

import json
import math
import re
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path, PurePath
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, Union, cast, get_args, get_origin

from buda_emu.support.errors import BudaError, HostError
from buda_emu.support.lazy import lazy
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")


NAMES: Final[Mapping[str, str]] = {
    "buda_emu.app.api.faults": "Maker Subject",
    "buda_emu.app.api.sweep": "Point SweepConditions",
    "buda_emu.compiler.lower.layout": "Layout Piece",
    "buda_emu.compiler.lower.picker": "Counts PickTable Picker WorkDivision",
    "buda_emu.compiler.lower.tiles": "Constant InputQueue OutputQueue State Store SubOp TileGraph TileOp Use",
    "buda_emu.compiler.search_record": "SearchRecord Trial",
    "buda_emu.compiler.place.blocks": "Blocks",
    "buda_emu.compiler.place.candidates": "Choice",
    "buda_emu.compiler.place.decision": "PlacementDecision",
    "buda_emu.compiler.place.placement": "Detour PlacedOp Placement Queue",
    "buda_emu.compiler.search.candidate_table": "CandidateTable",
    "buda_emu.compiler.search.improve": "Start",
    "buda_emu.compiler.search.speculative": "_Shape",
    "buda_emu.compiler.target": "Objective Precision Target",
    "buda_emu.emulator.distributed.part": "About NetlistPartition",
    "buda_emu.emulator.inputs.input_used": "InputUsed",
    "buda_emu.emulator.inputs.reference": "ContentFiles DirectoryFiles",
    "buda_emu.emulator.op_errors.numerics_result": "NewValue OpError Repair",
    "buda_emu.emulator.op_errors.op_apart": "OpFindings",
    "buda_emu.emulator.op_errors.op_variants": "Ideal",
    "buda_emu.foreign.gemini.sweep": "Point",
    "buda_emu.foreign.vpux.model": "VpuxDiagnostic",
    "buda_emu.netlist.cache": "_LateMapping _LateSequence _Tree",
    "buda_emu.netlist.model": (
        "Allocate Buffer Deallocate Declare EndLoop Execute FusedOp Graph Loop Netlist Op Pad Param Program Queue "
        "QueueSettings SubOp TemporalGraph Tm VarInst"
    ),
    "buda_emu.netlist.nodes": "Mapping Scalar Sequence",
    "buda_emu.performance.advice.edits": "Edit",
    "buda_emu.performance.advice.evaluate": "Figures _WorkerArguments",
    "buda_emu.spec.archs": "Arch",
    "buda_emu.spec.attributes": "Attributes",
    "buda_emu.spec.blocking": "Blocking",
    "buda_emu.spec.boards": "Cluster",
    "buda_emu.spec.devices": "Device",
    "buda_emu.spec.test_config": "Comparison",
    "buda_emu.support.checker.diagnostic": "ByteOffset Diagnostic TextPlace",
    "buda_emu.support.checker.fix": "Edit Fix",
    "buda_emu.support.errors": (
        "BudaError DocumentError HostError HostTimeoutError InternalError NetlistError PackageError ProgramError "
        "RunCancelledError ScheduleError UnsupportedError VpuxError"
    ),
    "buda_emu.support.options": "SettingsName",
    "buda_emu.support.stopped": "OpAtFault QueueState Round Stopped Transfer Wait",
    "buda_emu.support.workers.job": "Job Lost Shared Workers",
    "buda_emu.testing.injection.campaign": "Settings",
    "buda_emu.testing.injection.fault": "Fault",
    "buda_emu.testing.injection.result": "Effect",
    "buda_emu.testing.verify.result": (
        "CaseResult FirstBad OpResult OutputDetail OutputFigures OutputResult PerformanceResult TilePlace ValueStats"
    ),
    "buda_emu.testing.verify.runs.collect": "Case Settings",
}
"""Names of classes by module. An exception of another class is sent as the nearest of its bases in this table."""
_Kinds = tuple[type[Any], ...]


@dataclass(frozen=True, slots=True)
class ListedClass:
    """A class whose objects may be sent. `fields`: the names of its fields, in order; `kinds`: the classes that the
    values of each field may have by its declaration, None for any class."""

    title: str
    kind: type[Any]
    fields: tuple[str, ...]
    kinds: tuple[_Kinds | None, ...]

    def values(self, instance: Any, unset: Any) -> list[Any]:
        """Return the values of an object's fields, with `unset` for a slot without a value."""
        return [getattr(instance, name, unset) for name in self.fields]

    def fill(self, instance: Any, values: list[Any], unset: Any) -> None:
        """Set the fields of an object of `kind.__new__`. Raises TypeError for a value that is not of the declared
        class."""
        for name, kinds, value in zip(self.fields, self.kinds, values, strict=True):
            if value is unset:
                continue
            if kinds is not None and not isinstance(value, kinds):
                raise TypeError(f"{self.title}.{name} cannot be a {type(value).__name__}")
            object.__setattr__(instance, name, value)


@cache
def class_by_title(title: str) -> ListedClass:
    """Return the listed class with the title "module:Name". Raises TypeError for a class that is not on the list;
    nothing is imported for it."""
    module, _, name = title.partition(":")
    if name not in NAMES.get(module, "").split():
        raise TypeError(f"{title} does not travel between workers")
    return _describe(title, getattr(import_module(module), name))


@cache
def class_by_type(kind: type[Any]) -> ListedClass:
    """Return the description of a class, or of an exception's nearest base on the list. Raises TypeError where there is
    none."""
    nearest = kind.__mro__ if issubclass(kind, BudaError) else (kind,)
    for base in nearest:
        if base.__qualname__ in NAMES.get(base.__module__, "").split():
            return class_by_title(f"{base.__module__}:{base.__qualname__}")
    raise TypeError(f"{kind.__module__}:{kind.__qualname__} does not travel between workers")


def _describe(title: str, kind: type[Any]) -> ListedClass:
    """Return the description of a class: its fields, and their classes where it is a dataclass."""
    if is_dataclass(kind):
        declared = fields(kind)
        names = tuple(field.name for field in declared)
        return ListedClass(title, kind, names, tuple(_kinds(field.type) for field in declared))
    names = tuple(getattr(kind, "_fields", kind.__dict__.get("__slots__", ())))
    return ListedClass(title, kind, names, (None,) * len(names))


def _kinds(declared: Any) -> _Kinds | None:
    """Return the classes that a value with this annotation may have; None if `isinstance` cannot check the
    annotation."""
    origin = get_origin(declared)
    if origin in (Union, UnionType):
        return _kinds_of_union(get_args(declared))
    if origin is Literal:
        words: tuple[Any, ...] = get_args(declared)
        return tuple(cast("type[Any]", type(word)) for word in words)
    if declared is None:
        return (NoneType,)
    kind = origin or declared
    if not isinstance(kind, type):
        return None
    return _kinds_of_class(kind)


def _kinds_of_union(members: tuple[Any, ...]) -> _Kinds | None:
    """Return the classes of all members of a union; None where one of them cannot be checked."""
    kinds: list[type[Any]] = []
    for member in members:
        classes = _kinds(member)
        if classes is None:
            return None
        kinds += classes
    return tuple(kinds)


def _kinds_of_class(kind: type[Any]) -> _Kinds | None:
    """Return a class as the only one that a value may have. Return None if `isinstance` cannot check it, and for
    numbers and classes of numpy, as values of other classes may take their place."""
    if kind in (bool, int, float):
        return None  # numpy's numbers stand for all of them
    try:
        isinstance(None, kind)
    except TypeError:  # a protocol or a typed dict
        return None
    if kind.__module__.partition(".")[0] == "numpy":
        return None
    return (kind,)


Buffer = bytes | bytearray | memoryview
_DTYPE: Final = re.compile(r"[<>|][biufc][0-9]{1,2}")
_HEAD_SIZE: Final = struct.Struct("<Q")
_UNSET: Final[Any] = object()
"""Stands for a slot without a value."""
_NOT_YET: Final[Any] = object()
"""Stands for a value whose parts are being read."""
_BROKEN: Final = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError, struct.error
)  # fmt: skip


class MessageError(HostError):
    """Raised for bytes that are not a message between processes of this package."""


def pack(value: Any) -> bytes:
    """Return a value as the bytes of a message. Raises TypeError for a value that cannot be sent."""
    head, buffers = split_message(value)
    return b"".join((_HEAD_SIZE.pack(len(head)), head, *buffers))


def unpack(data: Buffer) -> Any:
    """Return the value of a message. Raises MessageError for bytes that are not a message, and for classes that may not
    be sent."""
    message = memoryview(data)
    try:
        start = _HEAD_SIZE.size
        end = start + _HEAD_SIZE.unpack(message[:start])[0]
        return join_message(message[start:end], _parts_of(message[end:]))
    except struct.error as error:
        raise MessageError(f"a message between workers cannot be read: {error}") from None


def split_message(value: Any) -> tuple[bytes, list[memoryview]]:
    """Return a value as the head of a message and the memory of its arrays, which is not copied. Raises TypeError for a
    value that cannot be sent."""
    writer = _Writer()
    try:
        content = writer.encode(value, True)
    except RecursionError:
        raise TypeError("a value is nested too deep to travel between workers") from None
    sizes = [buffer.nbytes for buffer in writer.buffers]
    head = {"sizes": sizes, "classes": list(writer.classes), "value": content}
    return json.dumps(head, separators=(",", ":"), allow_nan=False).encode(), writer.buffers


def join_message(head: Buffer, buffers: Callable[[list[int]], Sequence[memoryview]]) -> Any:
    """Return the value of a head; `buffers` returns the memory of its arrays for a list of their sizes. Raises
    MessageError."""
    try:
        content = json.loads(str(head, "utf-8"), parse_constant=_refuse_constant)
        sizes, names, value = (content[name] for name in ("sizes", "classes", "value"))
        if not all(type(size) is int and size >= 0 for size in sizes):
            raise ValueError("a size is no number of bytes")
        return _Reader([class_by_title(name) for name in names], buffers(sizes)).read(value, True)
    except _BROKEN as error:
        reason = str(error) if isinstance(error, (ValueError, TypeError)) else type(error).__name__
        raise MessageError(f"a message between workers cannot be read: {reason}") from None


def _parts_of(memory: memoryview) -> Callable[[list[int]], list[memoryview]]:
    """Return the function that takes the arrays of a message out of the memory behind its head, by their sizes."""

    def parts(sizes: list[int]) -> list[memoryview]:
        """Return a copy of the memory of each array. Raises ValueError where the sizes do not add up to all of it."""
        if sum(sizes) != memory.nbytes:
            raise ValueError(f"it has {memory.nbytes} bytes of arrays, and says {sum(sizes)}")
        buffers: list[memoryview] = []
        start = 0
        for size in sizes:
            buffers.append(memoryview(bytearray(memory[start : start + size])))
            start += size
        return buffers

    return parts


def _refuse_constant(word: str) -> Any:
    """Raise ValueError for NaN and infinities, which a head writes as hexadecimal digits."""
    raise ValueError(f"{word} is not a number of JSON")


# ----------------------------------------------------------------------------------------------------------- writing
class _Writer:
    """Writes a value as JSON and collects the memory of its arrays."""

    def __init__(self) -> None:
        self.buffers: list[memoryview] = []
        self.classes: dict[str, int] = {}
        self._numbers: dict[int, int] = {}
        self._written: list[Any] = []  # so that no other object gets its address meanwhile

    def encode(self, value: Any, shared: bool) -> Any:
        """Return a value in the form that stands in the head. `shared`: the same object may stand there again."""
        kind = cast("type[Any]", type(value))
        if value is None or kind in (str, int, bool) or (kind is float and math.isfinite(value)):
            return value
        if value is _UNSET:
            return ["unset"]
        if shared:
            number = self._numbers.get(id(value))
            if number is not None:
                return ["again", number]
            self._numbers[id(value)] = len(self._written)
            self._written.append(value)
        if kind in (list, tuple):
            return [kind.__name__, *(self.encode(part, shared) for part in value)]
        return _WRITERS.get(kind, _Writer.write_other)(self, value, shared)

    def write_map(self, value: Mapping[Any, Any], shared: bool) -> Any:
        """Return the form of a map: a list of its keys and a list of its values."""
        keys = [self.encode(key, False) for key in value]
        return ["dict", keys, [self.encode(part, shared) for part in value.values()]]

    def write_set(self, value: "set[Any] | frozenset[Any]", _shared: bool) -> Any:
        """Return the form of a set: its members."""
        return [type(value).__name__, *(self.encode(part, False) for part in value)]

    def write_float(self, value: float, _shared: bool) -> Any:
        """Return the form of a float: the hexadecimal digits of its 8 bytes."""
        return ["float", struct.pack("<d", value).hex()]

    def write_complex(self, value: complex, _shared: bool) -> Any:
        """Return the form of a complex number: the hexadecimal digits of its 16 bytes."""
        return ["complex", struct.pack("<dd", value.real, value.imag).hex()]

    def write_range(self, value: range, _shared: bool) -> Any:
        """Return the form of a range: its start, stop and step."""
        return ["range", value.start, value.stop, value.step]

    def write_bytes(self, value: Buffer, _shared: bool) -> Any:
        """Add bytes to the message as a buffer, and return their form: the number of the buffer."""
        return [type(value).__name__, self._add_buffer(memoryview(value).cast("B"))]

    def write_other(self, value: Any, shared: bool) -> Any:
        """Return the form of an array or number of numpy, an instance of a subclass of `str`, a path, an error or an
        object of a listed class. Raises TypeError for anything else."""
        if "numpy" in sys.modules and isinstance(value, (np.ndarray, np.generic)):
            return self._array(cast("Any", value))
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, PurePath):
            return ["path", str(value)]
        listed = class_by_type(cast("type[Any]", type(value)))
        number = self.classes.setdefault(listed.title, len(self.classes))
        if isinstance(value, BudaError):
            state = [self.encode(part, shared) for part in (list(value.args), dict(value.__dict__))]
            return ["error", number, *state]
        return ["object", number, *(self.encode(part, shared) for part in listed.values(value, _UNSET))]

    def _text(self, value: str) -> Any:
        """Return the form of an instance of a subclass of `str`: with its class if that is listed, else as a text
        alone."""
        kind = type(value)
        if kind.__qualname__ not in NAMES.get(kind.__module__, "").split():
            return ["str", str(value)]
        number = self.classes.setdefault(class_by_type(kind).title, len(self.classes))
        return ["text", number, str(value)]

    def _array(self, value: "np.ndarray[Any, Any] | np.generic") -> Any:
        """Add an array to the message as a buffer, and return its form: number of the buffer, dtype and shape. Raises
        TypeError for other arrays than plain ones."""
        if isinstance(value, np.ndarray) and type(value) not in (np.ndarray, np.memmap):
            raise TypeError(f"a {type(value).__name__} does not travel between workers")
        array = np.asarray(value, order="C")
        if not _DTYPE.fullmatch(array.dtype.str):
            raise TypeError(f"an array of {array.dtype} does not travel between workers")
        word = "array" if isinstance(value, np.ndarray) else "number"
        buffer = self._add_buffer(array.reshape(-1).view(np.uint8).data)
        return [word, buffer, array.dtype.str, list(array.shape)]

    def _add_buffer(self, memory: memoryview) -> int:
        """Add memory to the message and return its number."""
        self.buffers.append(memory)
        return len(self.buffers) - 1


_WRITERS: Final[Mapping[type[Any], Callable[[_Writer, Any, bool], Any]]] = {
    dict: _Writer.write_map,
    set: _Writer.write_set,
    frozenset: _Writer.write_set,
    float: _Writer.write_float,
    complex: _Writer.write_complex,
    range: _Writer.write_range,
    bytes: _Writer.write_bytes,
    bytearray: _Writer.write_bytes,
}


# ----------------------------------------------------------------------------------------------------------- reading
class _Reader:
    """Makes values from the head of a message and the memory of its arrays."""

    def __init__(self, classes: Sequence[ListedClass], buffers: Sequence[memoryview]) -> None:
        self._classes = classes
        self._buffers = buffers
        self.values: list[Any] = []

    def read(self, content: Any, shared: bool) -> Any:
        """Return the value that `content`, a part of the head, describes; with `shared` other parts may refer to
        it. Raises any of `_BROKEN`."""
        if type(content) is not list:
            if type(content) is dict:
                raise ValueError("a value is a map of JSON")
            return content
        word, *parts = cast("list[Any]", content)
        if word == "unset":
            return _UNSET
        if word == "again":
            return self._value_by_number(parts[0], shared)
        if word not in _READERS:
            raise ValueError(f"no value is a {word!r}")
        if not shared:
            return _READERS[word](self, parts, _Place(self, -1))
        self.values.append(_NOT_YET)
        place = _Place(self, len(self.values) - 1)
        return place.put(_READERS[word](self, parts, place))

    def _value_by_number(self, number: Any, shared: bool) -> Any:
        """Return a value that was read before, by its number."""
        if not shared or type(number) is not int or not 0 <= number < len(self.values):
            raise ValueError("it names a value that is not there")
        if self.values[number] is _NOT_YET:
            raise ValueError("a value is a part of itself")
        return self.values[number]

    def _read_each(self, parts: Sequence[Any], place: "_Place") -> "list[Any]":
        """Return the values of several parts."""
        return [self.read(part, place.shared) for part in parts]

    def read_list(self, parts: Sequence[Any], place: "_Place") -> Any:
        """Read a list, to which its parts may refer."""
        result: list[Any] = place.put([])
        result.extend(self._read_each(parts, place))
        return result

    def read_tuple(self, parts: Sequence[Any], place: "_Place") -> Any:
        """Read a tuple."""
        return tuple(self._read_each(parts, place))

    def read_map(self, parts: Sequence[Any], place: "_Place") -> Any:
        """Read a dictionary from a list of keys and a list of values, which may refer to it."""
        result: dict[Any, Any] = place.put({})
        keys = [self.read(key, False) for key in parts[0]]
        result.update(zip(keys, self._read_each(parts[1], place), strict=True))
        return result

    def read_set(self, parts: Sequence[Any], _place: "_Place") -> Any:
        """Read a set."""
        return {self.read(part, False) for part in parts}

    def read_frozenset(self, parts: Sequence[Any], place: "_Place") -> Any:
        """Read a frozen set."""
        return frozenset(self.read_set(parts, place))

    def read_float(self, parts: Sequence[Any], _place: "_Place") -> Any:
        """Read a float from the hexadecimal digits of its 8 bytes."""
        return struct.unpack("<d", bytes.fromhex(parts[0]))[0]

    def read_complex(self, parts: Sequence[Any], _place: "_Place") -> Any:
        """Read a complex number from the hexadecimal digits of its 16 bytes."""
        return complex(*struct.unpack("<dd", bytes.fromhex(parts[0])))

    def read_range(self, parts: Sequence[Any], _place: "_Place") -> Any:
        """Read a range from its start, stop and step."""
        return range(*parts)

    def read_bytes(self, parts: Sequence[Any], _place: "_Place") -> Any:
        """Read bytes from the buffer of that number."""
        return bytes(self._buffer(parts[0]))

    def read_bytearray(self, parts: Sequence[Any], _place: "_Place") -> Any:
        """Read a bytearray from the buffer of that number."""
        return bytearray(self._buffer(parts[0]))

    def read_text(self, parts: Sequence[Any], _place: "_Place") -> Any:
        """Read a text that was sent as an instance of an unlisted subclass of `str`."""
        return _text(parts[0])

    def read_listed_text(self, parts: Sequence[Any], _place: "_Place") -> Any:
        """Make a text of a listed subclass of `str`, without a call of its `__init__`."""
        return str.__new__(self._class(parts[0]).kind, _text(parts[1]))

    def read_path(self, parts: Sequence[Any], _place: "_Place") -> Any:
        """Read a path, as one of this system."""
        return Path(_text(parts[0]))

    def read_array(self, parts: Sequence[Any], _place: "_Place") -> Any:
        """Read an array of numpy from the number of its buffer, its dtype and its shape. Raises ValueError for an
        impossible one."""
        number, dtype, shape = parts
        if not _DTYPE.fullmatch(_text(dtype)):
            raise ValueError(f"no array is of {dtype!r}")
        if not all(type(size) is int and size >= 0 for size in shape):
            raise ValueError(f"no array has the shape {shape!r}")
        return np.frombuffer(self._buffer(number), np.dtype(dtype)).reshape(shape)

    def read_number(self, parts: Sequence[Any], place: "_Place") -> Any:
        """Read a number of numpy, which is written as an array without dimensions."""
        return self.read_array(parts, place)[()]

    def read_object(self, parts: Sequence[Any], place: "_Place") -> Any:
        """Make an object of a listed class field by field, without a call of its `__init__`."""
        listed = self._class(parts[0])
        if issubclass(listed.kind, BudaError):
            raise TypeError("an error is no object")
        kind: Any = listed.kind
        if issubclass(kind, tuple):
            values = self._read_each(parts[1:], place)
            if len(values) != len(listed.fields):
                raise ValueError(f"{listed.title} has {len(listed.fields)} fields")
            return cast("Any", tuple).__new__(kind, values)
        instance = place.put(object.__new__(kind))
        listed.fill(instance, self._read_each(parts[1:], place), _UNSET)
        return instance

    def read_error(self, parts: Sequence[Any], place: "_Place") -> Any:
        """Make an exception of a listed class, without a call of its `__init__`."""
        listed = self._class(parts[0])
        if not issubclass(listed.kind, BudaError):
            raise TypeError(f"{listed.title} is no error")
        arguments, state = self._read_each(parts[1:], place)
        error = listed.kind.__new__(listed.kind, *arguments)
        error.__dict__.update(state)
        return error

    def _class(self, number: Any) -> ListedClass:
        """Return the class of that number in the head."""
        if type(number) is not int or not 0 <= number < len(self._classes):
            raise ValueError("it names a class that is not there")
        return self._classes[number]

    def _buffer(self, number: Any) -> memoryview:
        """Return the memory of that number in the message."""
        if type(number) is not int or not 0 <= number < len(self._buffers):
            raise ValueError("it names an array that is not there")
        return self._buffers[number]


class _Place:
    """The number of a value that is being read, by which a message may refer to it again; -1 if it has none."""

    __slots__ = ("_number", "_reader", "shared")

    def __init__(self, reader: _Reader, number: int) -> None:
        self._reader = reader
        self._number = number
        self.shared = number >= 0

    def put(self, value: Any) -> Any:
        """Enter a value under its number, complete or still to be filled, so that its parts can refer to it, and return
        it."""
        if self.shared:
            self._reader.values[self._number] = value
        return value


def _text(value: Any) -> str:
    """Return a text. Raises TypeError for any other value."""
    if not isinstance(value, str):
        raise TypeError(f"a text is a {type(value).__name__}")
    return value


_READERS: Final[Mapping[str, Callable[[_Reader, Sequence[Any], _Place], Any]]] = {
    "list": _Reader.read_list,
    "tuple": _Reader.read_tuple,
    "dict": _Reader.read_map,
    "set": _Reader.read_set,
    "frozenset": _Reader.read_frozenset,
    "float": _Reader.read_float,
    "complex": _Reader.read_complex,
    "range": _Reader.read_range,
    "bytes": _Reader.read_bytes,
    "bytearray": _Reader.read_bytearray,
    "str": _Reader.read_text,
    "text": _Reader.read_listed_text,
    "path": _Reader.read_path,
    "array": _Reader.read_array,
    "number": _Reader.read_number,
    "object": _Reader.read_object,
    "error": _Reader.read_error,
}


_PLACES: Final[dict[str, str]] = {}
"""The path of the copy of each file of the job, in a process on another machine."""


def local_path(path: str) -> str:
    """Return the path at which this process reads a job's file: `path` itself on the machine that has it, else that of
    the copy (`look_in`)."""
    return _PLACES.get(path, path)


def names(paths: Sequence[str]) -> dict[str, str]:
    """Return, by path, the file name of each file's copy: a number with the suffix of the file, by which kinds of files
    are recognised."""
    return {path: f"{number}{PurePath(path).suffix}" for number, path in enumerate(paths)}


def write(contents: Mapping[str, bytes], folder: Path) -> None:
    """Write copies of files into a folder, which is made; `contents` holds their bytes by path."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, name in names(list(contents)).items():
        (folder / name).write_bytes(contents[path])


def look_in(folder: str, paths: Sequence[str]) -> None:
    """Let `local_path` return, from now on, the copies of these files in this folder."""
    _PLACES.update({path: str(Path(folder) / name) for path, name in names(paths).items()})
