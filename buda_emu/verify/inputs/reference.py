"""Tensors from outside: what a test is fed with and held against instead of made-up inputs and the `ideal` run.

A directory holds, for a queue or an op `<name>`, either `<name>.npy` [entries, t, rows, cols], or the vendor's
`<name>.<n>.bin`, one file per entry from n = 0: raw float32 row-major, 32-bit words for RawUInt formats (NETLIST 5.4).
`<name>.init.npy` and `<name>.init.<n>.bin` are what a ram that ops write holds before the first program.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePath
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import HostError
from buda_emu.spec.formats import is_raw

Array = NDArray[Any]


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

    def by_content(self) -> "ContentFiles":
        """The same, with the contents in memory: for workers on other machines."""
        ...


@dataclass(frozen=True, slots=True)
class DirectoryFiles:
    """The files of a directory."""

    directory: Path

    @classmethod
    def for_netlist(cls, directory: Path, netlist: str) -> Self:
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
                return cls(directory / candidate)
        return cls(directory)

    @property
    def where(self) -> str:
        """The directory."""
        return str(self.directory)

    def read(self, name: str) -> bytes | None:
        """A file of the directory; a name that would lead out of it is no file. Raises HostError."""
        if "/" in name or "\\" in name or "\0" in name:
            return None
        path = self.directory / name
        try:
            return path.read_bytes() if path.is_file() else None
        except OSError as error:
            raise HostError(f"reference: {path}: {error.strerror or error}") from None

    def by_content(self) -> "ContentFiles":
        """All tensor files of the directory. Raises HostError for one that cannot be read."""
        names = sorted(path.name for path in self.directory.iterdir() if path.suffix in (".npy", ".bin"))
        contents = {name: content for name in names if (content := self.read(name)) is not None}
        return ContentFiles(self.where, contents)


@dataclass(frozen=True, slots=True)
class ContentFiles:
    """Files in memory."""

    where: str
    contents: Mapping[str, bytes]

    def read(self, name: str) -> bytes | None:
        """One of them."""
        return self.contents.get(name)

    def by_content(self) -> "ContentFiles":
        """Itself."""
        return self


def tensors(files: Files, name: str, df: str, shape: tuple[int, int, int]) -> Tensors | None:
    """All entries that the files hold for a queue or op of that format and `shape` (t, rows, cols).

    Raises HostError for a file of another size, shape or kind.
    """
    whole = files.read(f"{name}.npy")
    if whole is not None:
        return Tensors(_from_npy(f"{name}.npy", whole, df, shape), f"{name}.npy")
    entries = list(_from_bins(files, name, df, shape))
    if not entries:
        return None
    last = f" .. {name}.{len(entries) - 1}.bin" if len(entries) > 1 else ""
    return Tensors(np.stack(entries), f"{name}.0.bin{last}")


def _from_npy(file: str, data: bytes, df: str, shape: tuple[int, int, int]) -> Array:
    array = read_npy(file, data)
    if array.ndim != 4 or array.shape[1:] != shape:
        raise HostError(f"{file} has shape {list(array.shape)}, expected [entries, {', '.join(map(str, shape))}]")
    if is_raw(df):
        if array.dtype.kind not in "iu":
            raise HostError(f"{file} holds {array.dtype}, but {df} takes unsigned integers (uint32)")
        return array.astype(np.uint32)
    if array.dtype.kind not in "iuf":
        raise HostError(f"{file} holds {array.dtype}, expected numbers")
    return array.astype(np.float32)


def read_npy(name: str, data: bytes) -> Array:
    """The array of a .npy file. Raises HostError for anything else, pickles included."""
    try:
        return np.load(BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise HostError(f"{name} is not a numpy array file: {error}") from None


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
