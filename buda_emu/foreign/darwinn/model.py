"""A package that was read: its tables, their places in the file, and the container around it."""

from dataclasses import field
from typing import Any, Final, Literal

from buda_emu.foreign.darwinn import tflite
from buda_emu.foreign.darwinn.flatbuffer.read import to_plain
from buda_emu.foreign.darwinn.idl import EXECUTION_ONLY, PARAMETER_CACHING, STAND_ALONE, Executable, PackageTable
from buda_emu.support.checker import RuleBook
from buda_emu.support.errors import PackageError
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class CustomOp:
    """The options of the custom operator. `chips` is None where the file does not list any."""

    version: int | None
    execution_preference: int | None
    chips: tuple[int, ...] | None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Package:
    """One package. The same file loaded twice is two packages, for the driver, too."""

    raw: bytes
    """The package without its container."""
    table: PackageTable
    executables: tuple[Executable, ...]
    custom_op: CustomOp | None = None
    """The options in the `.tflite` around it; None for a bare package."""
    model: tflite.Model | None = None
    path: str = ""
    source: bytes = field(default=b"", repr=False)
    """All bytes of the file."""
    unread: int = 0
    """The number of executables that do not verify or are beyond the limit of those that are read."""
    places: tuple[tuple[int, int, int], ...] = ()
    """Per executable: its offset in the package, its length, the offset of its parameters (-1 where it has none)."""
    offset: int = 0
    """The package's offset in the file."""
    parts: "tuple[Package, ...]" = ()
    """The packages of single chips in a package for several chips, as far as they can be read."""

    @property
    def name(self) -> str:
        """The package's name in reports: its file's name, or else its model's identifier."""
        return self.path.replace("\\", "/").rpartition("/")[2] or self.table.model_identifier or "package"

    @property
    def main(self) -> Executable:
        """The executable that runs for requests (DARWINN 4): the only one, EXECUTION_ONLY of 2, STAND_ALONE of 3.

        Raises PackageError for a package of several chips.
        """
        if not self.executables:
            raise PackageError("the package has no executables itself: it is made for several chips (D014)")
        main_type = {1: None, 2: EXECUTION_ONLY}.get(len(self.executables), STAND_ALONE)
        matches = (executable for executable in self.executables if executable.type == main_type)
        return next(matches, self.executables[0])

    @property
    def caching(self) -> Executable | None:
        """The executable that puts parameters into the device first; only packages of two executables have one
        (DARWINN 4)."""
        if len(self.executables) != 2:
            return None
        return next((executable for executable in self.executables if executable.type == PARAMETER_CACHING), None)

    def to_dict(self, data: bool = False) -> dict[str, Any]:
        """Return every field by the IDL's names; bytes as size and SHA-256, or as bytes where `data` is set.

        `build` takes the tree with data. Raises PackageError where byte vectors overlap so often that they hold many
        times the file.
        """
        _refuse_overlaps(self, len(self.raw))
        tree = to_plain(self.table, data)
        serialized = tree.pop("serialized_multi_executable")
        tree["executables"] = None
        if serialized is not None:
            tree["executables"] = [to_plain(executable, data) for executable in self.executables]
        return tree


_MOST_COPIES = 16  # times the size of the file; a larger value lets a forged file take more time


def _refuse_overlaps(package: Package, size: int) -> None:
    """Raise PackageError where byte vectors hold many times the `size` of the file. An honest file refers to no byte
    twice; a forged one could make its tree endless."""
    total = 0
    for executable in package.executables:
        blobs: list[Any] = [executable.serialized_model, executable.parameters]
        blobs += [chunk.bitstream for chunk in executable.chunks]
        total += sum(len(blob) for blob in blobs if blob is not None)
    total += sum(len(part.serialized_package or b"") for part in package.table.multi_chip_package or ())
    if total > _MOST_COPIES * size + _MOST_COPIES:
        raise PackageError(f"the package's byte vectors overlap: they hold {total} bytes in a file of {size}")


Verdict = Literal["ok", "faulty", "rejected"]

BOOK: Final = RuleBook(
    "DarwiNN package",
    prefix="D",
    stages={
        "E": "The driver refuses to register the package: verdict rejected.",
        "F": "The driver registers the package, and aborts, fails or touches memory that it must not: verdict faulty.",
        "W": "A warning: the driver does not mind.",
        "N": "A note: worth knowing.",
    },
)
