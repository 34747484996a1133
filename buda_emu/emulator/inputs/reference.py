"""Tensors from outside: inputs and expected outputs of a test, instead of generated inputs and the `ideal` run.

A directory holds, for a queue or an op `<name>`, an array [entries, t, rows, cols] in `<name>.npy` or by that name in a
`.npz` or `.safetensors` file, or the vendor's `<name>.<n>.bin`, one file per entry from n = 0: raw float32 row-major,
32-bit words for RawUInt formats (NETLIST 5.4). Where t is 1 it may be left out, and a matrix is one entry.
`<name>.init` is what a ram that ops write holds before the first program.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from buda_emu.spec.formats import is_raw
from buda_emu.support.errors import HostError
from buda_emu.support.lazy import lazy
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    import pathlib

    from buda_emu.emulator.inputs import numpy_files
else:
    # A run whose inputs are generated opens no file: neither pathlib nor zipfile is imported for it.
    pathlib = lazy("pathlib")
    numpy_files = lazy("buda_emu.emulator.inputs.numpy_files")

Array = NDArray[Any]
_SUFFIXES = (".npy", ".npz", ".safetensors", ".bin")


@dataclass(frozen=True, slots=True)
class Tensors:
    """Entries of one queue or op: float32, or uint32 for RawUInt formats, and the files they come from."""

    array: Array  # [entries, t, rows, cols]
    source: str


class Files(Protocol):
    """A set of tensor files by name, on disk or in memory."""

    @property
    def where(self) -> str:
        """The location, for messages and reports."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None where there is none. Raises HostError for one that cannot be read."""
        ...

    def names(self) -> list[str]:
        """Return the names of all tensor files. Raises HostError."""
        ...

    def arrays(self, name: str) -> Mapping[str, Array]:
        """Return the arrays of the .npz or .safetensors file `name` among the files, by name. Raises HostError."""
        ...

    def by_content(self) -> "ContentFiles":
        """Return the same files with their contents in memory, to be sent to workers on other machines. Raises
        HostError."""
        ...


@dataclass(frozen=True, slots=True)
class DirectoryFiles:
    """The files of a directory. `most` bounds the bytes that an archive may unpack to, by default a machine's memory
    limit; `role` is the argument that names the directory, for messages."""

    directory: "pathlib.Path"
    most: int | None = None
    role: str = "reference"

    @classmethod
    def for_netlist(
        cls, directory: "pathlib.Path", netlist: str, byte_limit: int | None = None, role: str = "reference"
    ) -> Self:
        """Return the files for one netlist: of DIR/<path of the netlist without suffix>, DIR/<its folder>, DIR/<its
        file name without suffix> or DIR/<its folder's name>, whichever is a directory first; else of DIR itself. Raises
        HostError without a directory."""
        if not directory.is_dir():
            raise HostError(f"{role}: {directory} is not a directory")
        path = pathlib.PurePath(netlist)
        inside = pathlib.PurePath(*(part for part in path.parts if part not in (path.anchor, "..")))
        named = (inside.with_suffix(""), inside.parent, pathlib.PurePath(path.stem), pathlib.PurePath(path.parent.name))
        for candidate in named:
            if candidate.parts and (directory / candidate).is_dir():
                return cls(directory / candidate, byte_limit, role)
        return cls(directory, byte_limit, role)

    @property
    def where(self) -> str:
        """The directory."""
        return str(self.directory)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file of the directory, None where there is none; a name that would lead out of the
        directory is no file. Raises HostError where it cannot be read."""
        if "/" in name or "\\" in name or "\0" in name:
            return None
        path = self.directory / name
        try:
            return path.read_bytes() if path.is_file() else None
        except OSError as error:
            raise HostError(f"{self.role}: {path}: {error.strerror or error}") from None

    def names(self) -> list[str]:
        """Return the tensor files of the directory, sorted. Raises HostError, also for a suffix in capital letters:
        tensors are read by their names, which would not find it."""
        try:
            files = sorted(path for path in self.directory.iterdir() if path.suffix.lower() in _SUFFIXES)
        except OSError as error:
            raise HostError(f"{self.role}: {self.directory}: {error.strerror or error}") from None
        for path in files:
            if path.suffix not in _SUFFIXES:
                raise HostError(f"{path}: the suffix has capital letters: rename it to {path.suffix.lower()}")
        return [path.name for path in files]

    def arrays(self, name: str) -> Mapping[str, Array]:
        """Return the arrays of the .npz or .safetensors file `name`, by name; the file is read again only if it has
        changed. Raises HostError."""
        try:
            state = (self.directory / name).stat()
        except OSError as error:
            raise HostError(f"{self.role}: {self.directory / name}: {error.strerror or error}") from None
        return _read_archive(self, name, (state.st_mtime_ns, state.st_ctime_ns, state.st_ino, state.st_size))

    def by_content(self) -> "ContentFiles":
        """Return all tensor files of the directory in memory. Raises HostError for one that cannot be read."""
        contents = {name: content for name in self.names() if (content := self.read(name)) is not None}
        return ContentFiles(self.where, contents, self.most)


@dataclass(frozen=True, slots=True)
class ContentFiles:
    """Files in memory. `most` bounds the bytes that an archive may unpack to, as that of `DirectoryFiles`."""

    where: str
    contents: Mapping[str, bytes]
    most: int | None = None

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None where there is none."""
        return self.contents.get(name)

    def names(self) -> list[str]:
        """Return the sorted names."""
        return sorted(self.contents)

    def arrays(self, name: str) -> Mapping[str, Array]:
        """Return the arrays of the .npz or .safetensors file `name`, by name. Raises HostError, and KeyError for a name
        that is not there."""
        return numpy_files.read_archive(name, self.contents[name], self.most)

    def by_content(self) -> "ContentFiles":
        """Return these files, which are in memory already."""
        return self


@lru_cache(maxsize=4)
def _read_archive(files: DirectoryFiles, name: str, _: tuple[int, ...]) -> Mapping[str, Array]:
    """Return the arrays of an archive among the files. The last argument (times, inode and size of the file) is only
    part of the cache's key, so that a changed file is read again."""
    return numpy_files.read_archive(name, files.read(name) or b"", files.most)


def tensor_names(files: Files) -> dict[str, str]:
    """Return the file that holds each tensor, by the tensor's name (for NAME.N.bin the first such file). Raises
    HostError for a name in two files."""
    files_by_name: dict[str, str] = {}
    for file in files.names():
        if numpy_files.is_archive(file):
            inside = files.arrays(file)
        else:
            inside = (_name_of(file),)
        for name in inside:
            if name in files_by_name and not (file.endswith(".bin") or files_by_name[name].endswith(".bin")):
                raise HostError(f"{files.where}: {name} is in {files_by_name[name]} and in {file}")
            files_by_name.setdefault(name, file)
    return files_by_name


def _name_of(file: str) -> str:
    """Return the name of the tensor that a single-tensor file holds: the file name without suffix, for NAME.N.bin
    without the number too."""
    stem, _, suffix = file.rpartition(".")
    if suffix == "bin" and stem.rpartition(".")[2].isdecimal():
        return stem.rpartition(".")[0]
    return stem


def whole_array(files: Files, name: str) -> Tensors | None:
    """Return the array of that name, in its stored shape and type, from a .npy file or an archive; None where neither
    has it. Raises HostError."""
    data = files.read(f"{name}.npy")
    if data is not None:
        return Tensors(numpy_files.npy_of(f"{name}.npy", data), f"{name}.npy")
    for file in filter(numpy_files.is_archive, files.names()):
        arrays = files.arrays(file)
        if name in arrays:
            return Tensors(arrays[name], file)
    return None


def tensors(files: Files, name: str, df: str, shape: tuple[int, int, int]) -> Tensors | None:
    """Return all entries that the files hold under `name`, for a queue or op of the format `df` and `shape` (t, rows,
    cols); None where they hold none. Raises HostError for a file of another size, shape or kind."""
    stored = whole_array(files, name)
    if stored is not None:
        return Tensors(_fit_to_queue(stored, name, df, shape), stored.source)
    entries = list(_entries_of_bins(files, name, df, shape))
    if not entries:
        return None
    last = ""
    if len(entries) > 1:
        last = f" .. {name}.{len(entries) - 1}.bin"
    return Tensors(np.stack(entries), f"{name}.0.bin{last}")


def _fit_to_queue(stored: Tensors, name: str, df: str, shape: tuple[int, int, int]) -> Array:
    """Return a stored array as [entries, t, rows, cols] of `shape`, in the element type of the format `df`. Raises
    HostError where it does not fit."""
    array = stored.array
    if stored.source.startswith(name):
        description = stored.source
    else:
        description = f"{name} of {stored.source}"
    if shape[0] == 1 and array.ndim in (2, 3) and array.shape[-2:] == shape[1:]:
        array = array.reshape(-1, *shape)
    if array.ndim != 4 or array.shape[1:] != shape:
        raise HostError(
            f"{description} has shape {list(array.shape)}, expected [entries, {', '.join(map(str, shape))}]"
        )
    if is_raw(df):
        if array.dtype.kind not in "iu":
            raise HostError(f"{description} holds {array.dtype}, but {df} takes unsigned integers (uint32)")
        return array.astype(np.uint32, copy=False)
    if array.dtype.kind not in "iufb":
        raise HostError(f"{description} holds {array.dtype}, expected numbers")
    return array.astype(np.float32, copy=False)


def _entries_of_bins(files: Files, name: str, df: str, shape: tuple[int, int, int]) -> Iterator[Array]:
    """Yield the entries in NAME.0.bin, NAME.1.bin, ..., of `shape` (t, rows, cols). Raises HostError for a file of
    another size, and where a number is missing before another file."""
    kind = np.dtype("<u4" if is_raw(df) else "<f4")
    size = 4 * shape[0] * shape[1] * shape[2]
    number = 0
    while (data := files.read(f"{name}.{number}.bin")) is not None:
        if len(data) != size:
            raise HostError(
                f"{name}.{number}.bin has {len(data)} bytes, expected {size}: "
                f"32-bit elements of [{', '.join(map(str, shape))}]"
            )
        yield np.frombuffer(data, kind).reshape(shape).astype(kind.newbyteorder("="), copy=False)
        number += 1
    read = {f"{name}.{entry}.bin" for entry in range(number)}
    for file in files.names():
        if _name_of(file) == name and file.endswith(".bin") and file not in read:
            raise HostError(
                f"{file}, but there is no {name}.{number}.bin: entries are numbered from 0 without a gap, as 0, 1, 2"
            )
