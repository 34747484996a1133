"""Reads arrays from .npy, .npz and .safetensors files, and estimates the memory that the files of a directory take."""

import json
import os
import stat
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO, Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.memory.host import default_memory_limit, size_text
from buda_emu.support.errors import HostError
from buda_emu.support.files import change_guard

_PIECE: Final = 1 << 20  # bytes
_MOST_HEADER: Final = 10_000  # bytes, as numpy's own limit
_HEADERS: Final = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_BROKEN: Final = (
    ValueError, EOFError, TypeError, SyntaxError, tokenize.TokenError, KeyError, AttributeError, RecursionError,
    MemoryError, OverflowError, struct.error, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error,
    NotImplementedError, RuntimeError, OSError,
)  # fmt: skip


def map_npy(path: Path) -> NDArray[Any]:
    """Map the array of a .npy file read-only, so that its elements are read from the file when they are used; the
    caller checks that the file stays unchanged. Raises HostError for a file that is not an array, or is cut short."""
    try:
        with _open_regular_file(path) as stream:
            _shape_and_type(stream, os.fstat(stream.fileno()).st_size)
        with warnings.catch_warnings(action="ignore"):
            return np.lib.format.open_memmap(path, mode="r")
    except _BROKEN as error:
        raise _format_error(str(path), error) from None


@dataclass(frozen=True, slots=True)
class Header:
    """Shape and element type of an array in a file."""

    shape: tuple[int, ...]
    dtype: "np.dtype[Any]"

    @property
    def elements(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """The size of all elements in bytes."""
        return self.elements * self.dtype.itemsize


def npy_header(path: Path) -> Header:
    """Read shape and type of the array of a .npy file, without its elements. Raises HostError."""
    try:
        with _open_regular_file(path) as stream:
            return _read_header(stream, os.fstat(stream.fileno()).st_size)
    except _BROKEN as error:
        raise _format_error(str(path), error) from None


def npz_headers(path: Path) -> dict[str, Header]:
    """Read shape and type of each array of a .npz file, by name, without the elements. Raises HostError."""
    try:
        with _open_regular_file(path) as stream, zipfile.ZipFile(stream) as archive:
            return dict(_array_headers(archive))
    except _BROKEN as error:
        raise _format_error(str(path), error, "archive") from None


def _array_headers(archive: zipfile.ZipFile) -> Iterator[tuple[str, Header]]:
    """Yield name (without ".npy") and header of each array of a .npz file. Raises ValueError for a name that occurs
    twice, and for a member that is no array."""
    names: set[str] = set()
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name in names:
            raise ValueError(f"it holds {name!r} twice: leave one of them, and write the file again")
        names.add(name)
        with archive.open(info) as member:
            yield name, _read_header(member, info.file_size)


def _read_header(stream: IO[bytes], size: int) -> Header:
    """Return shape and type in the header of a .npy file of `size` bytes. Raises ValueError for another kind of
    file."""
    shape, _, dtype = _shape_and_type(stream, size)
    return Header(shape, dtype)


def npy_of(name: str, data: bytes) -> NDArray[Any]:
    """Return the array in the bytes of a .npy file, which `name` names in errors. Raises HostError."""
    try:
        return _read_array(BytesIO(data), len(data))
    except _BROKEN as error:
        raise _format_error(name, error) from None


def read_npy(path: Path, byte_limit: int | None = None) -> NDArray[Any]:
    """Read the array of a .npy file into memory. Raises HostError for a file that is not an array, is cut short or is
    written to meanwhile, for a path that is not a regular file, and for more than `byte_limit` bytes, by default a
    machine's memory limit."""
    if byte_limit is None:
        byte_limit = default_memory_limit()
    try:
        check = change_guard(path)
        with _open_regular_file(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > byte_limit:
                raise HostError(f"{path} holds {size_text(size)}, the memory limit is {size_text(byte_limit)}")
            array = _read_array(stream, size)
    except _BROKEN as error:
        raise _format_error(str(path), error) from None
    check()
    return array


def npz_of(name: str, data: bytes | Path, byte_limit: int | None = None) -> dict[str, NDArray[Any]]:
    """Return the arrays of a .npz file, or of the bytes of one, by name. Nothing is unpacked where they would take more
    than `byte_limit` bytes, by default a machine's memory limit: kilobytes can hold gigabytes of zeros. Raises
    HostError."""
    if byte_limit is None:
        byte_limit = default_memory_limit()
    try:
        with (
            BytesIO(data) if isinstance(data, bytes) else _open_regular_file(data) as stream,
            zipfile.ZipFile(stream) as archive,
        ):
            needed = sum(header.bytes for _, header in _array_headers(archive))
            if needed > byte_limit:
                raise HostError(f"{name} unpacks to {size_text(needed)}, the memory limit is {size_text(byte_limit)}")
            arrays: dict[str, NDArray[Any]] = {}
            for info in archive.infolist():
                with archive.open(info) as member:
                    arrays[info.filename.removesuffix(".npy")] = _read_array(member, info.file_size)
            return arrays
    except _BROKEN as error:
        raise _format_error(name, error, "archive") from None


def _open_regular_file(path: Path) -> IO[bytes]:
    """Open a file for reading. Raises ValueError for a path that is no regular file."""
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe would block, and cannot go back
        raise ValueError("it is not a regular file")
    return path.open("rb")


def _read_array(stream: IO[bytes], size: int) -> NDArray[Any]:
    """Read the array of a .npy file of `size` bytes from a stream. Raises ValueError for another kind of file, EOFError
    for one that is cut short."""
    shape, fortran, dtype = _shape_and_type(stream, size)
    array = np.empty(prod(shape), dtype)
    left = array.view(np.uint8).data
    while left:
        count = cast("BytesIO", stream).readinto(left[:_PIECE])  # a zip's stream holds all that it is asked for twice
        if not count:
            raise EOFError("it is cut short")
        left = left[count:]
    if fortran:
        return array.reshape(shape[::-1]).T
    return array.reshape(shape)


def _shape_and_type(stream: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, "np.dtype[Any]"]:
    """Read the header of a .npy file of `size` bytes: shape, whether columns come first, and type. Raises ValueError
    for elements that are not numbers and for a file of another size."""
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"version {version[0]}.{version[1]} of the format is for fields with names")
    with warnings.catch_warnings(action="ignore"):  # of old or odd headers; they may be errors here
        shape, fortran, dtype = _HEADERS[version](stream, max_header_size=_MOST_HEADER)
    if dtype.hasobject or dtype.names is not None or not dtype.itemsize:
        raise ValueError(f"it holds {dtype}, not numbers")
    needed = prod(shape) * dtype.itemsize
    held = size - stream.tell()
    if min(shape, default=0) < 0 or needed != held:
        raise ValueError(f"its header tells of {list(shape)} {dtype}, {needed} bytes, and {held} follow")
    return shape, fortran, dtype


def _format_error(name: str, error: BaseException, kind: str = "array file") -> HostError:
    """Return the error for a file that cannot be read, or that is not the `kind` of numpy file that its name says, with
    the reason of `error`."""
    if isinstance(error, OSError) and error.strerror:
        return HostError(f"{name}: {error.strerror}")
    return HostError(f"{name} is not a numpy {kind}: {str(error) or type(error).__name__}")


Array = NDArray[Any]

_SAFE_TYPES: Final[Mapping[str, str]] = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U64": "<u8",
    "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


def read_archive(file: str, data: bytes, byte_limit: int | None = None) -> Mapping[str, Array]:
    """Return the arrays of a .npz or .safetensors file by name; bfloat16 as float32. `byte_limit` bounds the bytes that
    a .npz unpacks to. Raises HostError."""
    if file.lower().endswith(".npz"):
        return npz_of(file, data, byte_limit)
    return _read_safetensors(file, data)


def is_archive(file: str) -> bool:
    """Return whether a file name has a suffix of files that hold several arrays by name: .npz or .safetensors."""
    return file.lower().endswith((".npz", ".safetensors"))


def _read_safetensors(file: str, data: bytes) -> Mapping[str, Array]:
    """Return the tensors in the bytes of a .safetensors file. Raises HostError for other bytes, and without the
    package."""
    try:
        from safetensors import SafetensorError, deserialize  # pyright: ignore[reportUnknownVariableType]
    except ImportError:
        raise HostError(f"{file}: reading .safetensors needs a package: pip install safetensors") from None
    try:
        entries: list[tuple[str, Mapping[str, Any]]] = deserialize(data)
        return {name: _safe_array(file, name, entry) for name, entry in entries}
    except SafetensorError as error:
        raise HostError(f"{file} is not a safetensors file: {error}") from None


def _safe_array(file: str, name: str, entry: Mapping[str, Any]) -> Array:
    """Return one tensor of a .safetensors file, bfloat16 as float32. Raises HostError for an element type that is not
    read."""
    kind = str(entry["dtype"])
    shape = tuple(entry["shape"])
    if kind == "BF16":
        halves = np.frombuffer(entry["data"], "<u2").astype(np.uint32)
        return (halves << 16).view(np.float32).reshape(shape)
    if kind not in _SAFE_TYPES:
        raise HostError(f"{file}: {name} has elements of type {kind}, which is not read")
    return np.frombuffer(entry["data"], _SAFE_TYPES[kind]).reshape(shape)


_LONGEST_HEADER = 100 << 20  # bytes, as the format's own limit


def host_copy_bytes(inputs: Path) -> int:
    """Return an upper estimate of the memory for host copies of the input files at a path (a file or a folder).
    Archives stay in memory; other files come one after the other, each as its bytes, as an array, and as float32. Files
    that cannot be read count nothing."""
    if inputs.is_dir():
        files = sorted(path for path in inputs.rglob("*") if path.is_file())
    else:
        files = [inputs]
    archive_bytes = once = 0
    bins: Counter[str] = Counter()
    for path in files:
        with suppress(OSError, HostError):
            suffix = path.suffix.lower()
            size = path.stat().st_size
            if suffix == ".npy":
                header = npy_header(path)
                once = max(once, header.bytes + max(size, 4 * header.elements))
            elif suffix == ".bin":
                bins[str(path).rsplit(".", 2)[0]] += 2 * size  # entry by entry, and all in one array
            elif suffix in (".npz", ".safetensors"):
                arrays = list(_sizes_of_npz(path) if suffix == ".npz" else _sizes_of_safetensors(path))
                archive_bytes += sum(
                    max(array, 4 * elements) if suffix != ".npz" else array for array, elements in arrays
                )
                largest = max((elements for _, elements in arrays), default=0)
                once = max(once, size + 8 * largest)
    return archive_bytes + max(once, max(bins.values(), default=0))


def _sizes_of_npz(path: Path) -> Iterator[tuple[int, int]]:
    """Yield (bytes, elements) of each array of a .npz file. Raises HostError."""
    return ((header.bytes, header.elements) for header in npz_headers(path).values())


def _sizes_of_safetensors(path: Path) -> Iterator[tuple[int, int]]:
    """Yield (bytes, elements) of each tensor of a .safetensors file, nothing for a file of another kind: whoever reads
    the tensors reports it."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header: Any = None
        if length <= _LONGEST_HEADER:
            with suppress(ValueError, RecursionError):
                header = json.loads(stream.read(length))
    if not isinstance(header, dict):  # no file of this kind: whoever reads the tensors says so
        return
    for name, entry in cast("dict[str, Any]", header).items():
        if name != "__metadata__":
            with suppress(KeyError, TypeError, ValueError):
                first, last = entry["data_offsets"]
                yield last - first, prod(entry["shape"])
