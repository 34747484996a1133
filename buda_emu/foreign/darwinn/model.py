"""A package that was read: its tables, where they came from, and what wrapped them."""

from dataclasses import field
from typing import Any, Final, Literal

from buda_emu.foreign.darwinn import tflite
from buda_emu.foreign.darwinn.flatbuffer.table import to_plain
from buda_emu.foreign.darwinn.idl import EXECUTION_ONLY, PARAMETER_CACHING, STAND_ALONE, Executable, PackageTable
from buda_emu.support.checker import RuleBook
from buda_emu.support.errors import PackageError
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class CustomOp:
    """The custom operator's options. `chips`: None where the file does not say."""

    version: int | None
    execution_preference: int | None
    chips: tuple[int, ...] | None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Package:
    """One package. The same file loaded twice is two packages, for the driver, too."""

    raw: bytes
    """The package without what wraps it."""
    table: PackageTable
    executables: tuple[Executable, ...]
    custom_op: CustomOp | None = None
    """What the `.tflite` around it says; None for a bare package."""
    model: tflite.Model | None = None
    path: str = ""
    source: bytes = field(default=b"", repr=False)
    """All bytes of the file."""
    unread: int = 0
    """Executables that do not verify, or are so many that they were not looked at."""
    places: tuple[tuple[int, int, int], ...] = ()
    """Of each executable: where it begins in the package, its length, where its parameters begin (-1: it has none)."""
    offset: int = 0
    """Where the package begins in the file."""
    parts: "tuple[Package, ...]" = ()
    """Of a package for several chips: the packages of single chips, as far as they can be read."""

    @property
    def name(self) -> str:
        """What to call it: its file's name, else its model's identifier."""
        return self.path.replace("\\", "/").rpartition("/")[2] or self.table.model_identifier or "package"

    @property
    def main(self) -> Executable:
        """What runs for each request (DARWINN 4): the sole one; of two the one for execution, of three the whole.

        Raises PackageError for a package of several chips.
        """
        if not self.executables:
            raise PackageError("the package has no executables itself: it is made for several chips (D014)")
        wanted = {1: None, 2: EXECUTION_ONLY}.get(len(self.executables), STAND_ALONE)
        return next((item for item in self.executables if item.type == wanted), self.executables[0])

    @property
    def caching(self) -> Executable | None:
        """What puts parameters into the device first; only packages of two executables have one (DARWINN 4)."""
        if len(self.executables) != 2:
            return None
        return next((item for item in self.executables if item.type == PARAMETER_CACHING), None)

    def to_dict(self, data: bool = False) -> dict[str, Any]:
        """Everything in it by the IDL's names; bytes as size and SHA-256, or as they are where `data` is set.

        `build` takes the tree with data. Raises PackageError where byte vectors overlap so often that they hold many
        times the file.
        """
        _bounded(self, len(self.raw))
        tree = to_plain(self.table, data)
        serialized = tree.pop("serialized_multi_executable")
        tree["executables"] = None if serialized is None else [to_plain(item, data) for item in self.executables]
        return tree


_MOST_COPIES = 16


def _bounded(package: Package, size: int) -> None:
    """No honest file refers to a byte twice; one that does so without end is not written out."""
    total = 0
    for item in package.executables:
        blobs: list[Any] = [item.serialized_model, item.parameters]
        blobs += [chunk.bitstream for chunk in item.chunks]
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
