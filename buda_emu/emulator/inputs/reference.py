"""Tensors from outside: inputs and expected outputs of a test, instead of generated inputs and the `ideal` run.

A directory holds, for a queue or an op `<name>`, an array [entries, t, rows, cols] in `<name>.npy` or by that name in a
`.npz` or `.safetensors` file, or the vendor's `<name>.<n>.bin`, one file per entry from n = 0: raw float32 row-major,
32-bit words for RawUInt formats (NETLIST 5.4). Where t is 1 it may be left out, and a matrix is one entry.
`<name>.init` is what a ram that ops write holds before the first program.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.inputs.numpy_files import is_archive, npy_of, read_archive
from buda_emu.spec.formats import is_raw
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass

Array = NDArray[Any]
_SUFFIXES = (".npy", ".npz", ".safetensors", ".bin")


@dataclass(frozen=True, slots=True)
class Tensors:
    """Entries of one queue or op: float32, or uint32 for RawUInt formats, and the files they come from."""

    array: Array  # [entries, t, rows, cols]
    source: str


class Files(Protocol):
    """Files by name, wherever they are kept."""

    @property
    def where(self) -> str:
        """For messages and reports."""
        ...

    def read(self, name: str) -> bytes | None:
        """The content of a file, None where there is none. Raises HostError for one that cannot be read."""
        ...

    def names(self) -> list[str]:
        """Names of all tensor files. Raises HostError."""
        ...

    def arrays(self, name: str) -> Mapping[str, Array]:
        """The arrays of an archive among them. Raises HostError."""
        ...

    def by_content(self) -> "ContentFiles":
        """The same, with the contents in memory: for workers on other machines."""
        ...


@dataclass(frozen=True, slots=True)
class DirectoryFiles:
    """The files of a directory. `most`: bytes that an archive may unpack to, by default a machine's memory limit."""

    directory: Path
    most: int | None = None

    @classmethod
    def for_netlist(cls, directory: Path, netlist: str, byte_limit: int | None = None) -> Self:
        """Of DIR/<path of the netlist without suffix>, DIR/<its folder>, DIR/<its file name without suffix> or
        DIR/<its folder's name>, whichever is a directory first; else DIR itself. Raises HostError without a
        directory."""
        if not directory.is_dir():
            raise HostError(f"reference: {directory} is not a directory")
        path = PurePath(netlist)
        inside = PurePath(*(part for part in path.parts if part not in (path.anchor, "..")))
        named = (inside.with_suffix(""), inside.parent, PurePath(path.stem), PurePath(path.parent.name))
        for candidate in named:
            if candidate.parts and (directory / candidate).is_dir():
                return cls(directory / candidate, byte_limit)
        return cls(directory, byte_limit)

    @property
    def where(self) -> str:
        """The directory."""
        return str(self.directory)

    def read(self, name: str) -> bytes | None:
        """A file of the directory; a name that would lead out of it is not a file. Raises HostError."""
        if "/" in name or "\\" in name or "\0" in name:
            return None
        path = self.directory / name
        try:
            return path.read_bytes() if path.is_file() else None
        except OSError as error:
            raise HostError(f"reference: {path}: {error.strerror or error}") from None

    def names(self) -> list[str]:
        """Tensor files of the directory, sorted. Raises HostError."""
        try:
            return sorted(path.name for path in self.directory.iterdir() if path.suffix.lower() in _SUFFIXES)
        except OSError as error:
            raise HostError(f"reference: {self.directory}: {error.strerror or error}") from None

    def arrays(self, name: str) -> Mapping[str, Array]:
        """What an archive holds; read once while it does not change."""
        try:
            state = (self.directory / name).stat()
        except OSError as error:
            raise HostError(f"reference: {self.directory / name}: {error.strerror or error}") from None
        return _archive(self, name, (state.st_mtime_ns, state.st_size))

    def by_content(self) -> "ContentFiles":
        """All tensor files of the directory. Raises HostError for one that cannot be read."""
        contents = {name: content for name in self.names() if (content := self.read(name)) is not None}
        return ContentFiles(self.where, contents, self.most)


@dataclass(frozen=True, slots=True)
class ContentFiles:
    """Files in memory. `most`: as of a directory's."""

    where: str
    contents: Mapping[str, bytes]
    most: int | None = None

    def read(self, name: str) -> bytes | None:
        """One of them."""
        return self.contents.get(name)

    def names(self) -> list[str]:
        """Their names."""
        return sorted(self.contents)

    def arrays(self, name: str) -> Mapping[str, Array]:
        """What one of them holds."""
        return read_archive(name, self.contents[name], self.most)

    def by_content(self) -> "ContentFiles":
        """Itself."""
        return self


@lru_cache(maxsize=4)
def _archive(files: DirectoryFiles, name: str, _: tuple[int, int]) -> Mapping[str, Array]:
    return read_archive(name, files.read(name) or b"", files.most)


def tensor_names(files: Files) -> dict[str, str]:
    """Every name for which the files hold a tensor, and in which file it stands. Raises HostError for two."""
    files_by_name: dict[str, str] = {}
    for file in files.names():
        inside = files.arrays(file) if is_archive(file) else (_name_of(file),)
        for name in inside:
            if name in files_by_name and not (file.endswith(".bin") or files_by_name[name].endswith(".bin")):
                raise HostError(f"{files.where}: {name} is in {files_by_name[name]} and in {file}")
            files_by_name.setdefault(name, file)
    return files_by_name


def _name_of(file: str) -> str:
    stem, _, suffix = file.rpartition(".")
    return stem.rpartition(".")[0] if suffix == "bin" and stem.rpartition(".")[2].isdecimal() else stem


def whole_array(files: Files, name: str) -> Tensors | None:
    """The array of that name as it stands in its file, which is no .bin. Raises HostError."""
    data = files.read(f"{name}.npy")
    if data is not None:
        return Tensors(npy_of(f"{name}.npy", data), f"{name}.npy")
    for file in filter(is_archive, files.names()):
        arrays = files.arrays(file)
        if name in arrays:
            return Tensors(arrays[name], file)
    return None


def tensors(files: Files, name: str, df: str, shape: tuple[int, int, int]) -> Tensors | None:
    """All entries that the files hold for a queue or op of that format and `shape` (t, rows, cols).

    Raises HostError for a file of another size, shape or kind.
    """
    stored = whole_array(files, name)
    if stored is not None:
        return Tensors(_fit_to_queue(stored, name, df, shape), stored.source)
    entries = list(_from_bins(files, name, df, shape))
    if not entries:
        return None
    last = f" .. {name}.{len(entries) - 1}.bin" if len(entries) > 1 else ""
    return Tensors(np.stack(entries), f"{name}.0.bin{last}")


def _fit_to_queue(stored: Tensors, name: str, df: str, shape: tuple[int, int, int]) -> Array:
    """[entries, t, rows, cols] in the type of that format."""
    array = stored.array
    description = stored.source if stored.source.startswith(name) else f"{name} of {stored.source}"
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


def _from_bins(files: Files, name: str, df: str, shape: tuple[int, int, int]) -> Iterator[Array]:
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
