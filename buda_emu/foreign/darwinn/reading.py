"""Bytes read as a package in the driver's own order of registration (DARWINN 4), as far as they can be read."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from buda_emu.foreign.darwinn.container import unwrap
from buda_emu.foreign.darwinn.flatbuffer import Malformed, read, starts
from buda_emu.foreign.darwinn.idl import IDENTIFIER, Executable, MultiExecutable, PackageTable
from buda_emu.foreign.darwinn.model import BOOK, Package
from buda_emu.support.checker import ByteOffset, Diagnostic
from buda_emu.support.files import read_whole

Source: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview"
RUNTIME: Final = 14
"""The runtime version of the public driver: packages that ask for a newer one are refused (DARWINN 4)."""
OLDEST: Final = 10  # the driver warns of packages for an older runtime (DARWINN 4)
MULTI_CHIP: Final = -1
"""`virtual_chip_id` of a package that holds one package for each chip."""
_MOST_EXECUTABLES: Final = 8  # the driver takes three; findings about more would repeat themselves
_MOST_PARTS: Final = 64  # of a multi-chip package, so that a forged one ends

BOOK.declare(
    "D010", "warning", "the package's identifier is not DWN1", stage="W", source="DARWINN 4, 8",
    fix="see that the file is an Edge TPU package at all",
)  # fmt: skip
BOOK.declare(
    "D011", "error", "the package does not verify as a FlatBuffer", stage="E", source="DARWINN 2, 4, 8",
    fix="the file is damaged or cut: compile or copy it again",
)  # fmt: skip
BOOK.declare(
    "D012", "warning", f"min_runtime_version is below {OLDEST}", stage="W", source="DARWINN 4, 8",
    fix="compile the model again with a current compiler",
)  # fmt: skip
BOOK.declare(
    "D013", "error", "min_runtime_version is above the driver's", stage="E", source="DARWINN 4, 8",
    fix="install a newer runtime, or compile with edgetpu_compiler --min_runtime_version",
)  # fmt: skip
BOOK.declare(
    "D014", "error", "virtual_chip_id is -1: a package for several chips, which the driver refuses", stage="E",
    source="DARWINN 2, 4, 8", fix="compile for one chip",
)  # fmt: skip
BOOK.declare(
    "D015", "error", "the multi-executable is absent or empty", stage="E", source="DARWINN 4, 8",
    fix="compile the model again",
)  # fmt: skip
BOOK.declare(
    "D016", "error", "the multi-executable does not verify as a FlatBuffer", stage="E", source="DARWINN 4, 8",
    fix="the file is damaged: compile or copy it again",
)  # fmt: skip
BOOK.declare(
    "D017", "error", "the multi-executable has no executables", stage="E", source="DARWINN 4, 8",
    fix="compile the model again",
)  # fmt: skip
BOOK.declare(
    "D018", "error", "an executable does not verify as a FlatBuffer", stage="E", source="DARWINN 4, 8",
    fix="the file is damaged: compile or copy it again",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reading:
    """The diagnostics of reading; `package` is None where nothing could be read."""

    diagnostics: tuple[Diagnostic, ...]
    package: Package | None


def contents(source: Source, path: str = "") -> tuple[bytes, str]:
    """Return the bytes of a file or of an object in memory, and a name for them: `path`, or else the file's own. Raises
    OSError for a file that cannot be read."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), path
    return read_whole(source), path or os.fspath(source)


def read_source(data: bytes, path: str = "", runtime: int = RUNTIME) -> Reading:
    """Read a file's bytes as far as possible, judged by a driver of version `runtime`."""
    diagnostics: list[Diagnostic] = []

    def report(rule: str, place: ByteOffset, message: str) -> None:
        """Add the diagnostic of a rule about a place in the file."""
        diagnostics.append(BOOK.diagnostic(path, rule, place, message))

    container = unwrap(memoryview(data))
    for finding in container.findings:
        report(*finding)
    if container.raw is None:
        return Reading(tuple(diagnostics), None)
    base = container.offset
    raw = container.raw
    if bytes(raw[4:8]) != IDENTIFIER:
        report("D010", ByteOffset(base + 4, "identifier"), f"the identifier is {bytes(raw[4:8])!r}")
    try:
        table = read(PackageTable, raw, base)
    except Malformed as error:
        report("D011", ByteOffset(error.offset, "Package"), f"the package does not verify: {error}")
        return Reading(tuple(diagnostics), None)
    _check_versions(table, runtime, report)
    content = _read_executables(raw, base, table, report)
    parts = _read_parts(raw, base, table)
    if content is None and not (table.virtual_chip_id == MULTI_CHIP and parts):
        return Reading(tuple(diagnostics), None)
    executables, places, unread = content or ((), (), 0)
    package = Package(
        raw=bytes(raw),
        table=table,
        executables=executables,
        custom_op=container.custom_op,
        model=container.model,
        path=path,
        source=data,
        unread=unread,
        places=places,
        offset=base,
        parts=parts,
    )
    return Reading(tuple(diagnostics), package)


Reporter: TypeAlias = Callable[[str, ByteOffset, str], None]
_Content: TypeAlias = tuple[tuple[Executable, ...], tuple[tuple[int, int, int], ...], int]


def _read_executables(raw: memoryview, base: int, table: PackageTable, report: Reporter) -> _Content | None:
    """Return the executables, `Package.places` and the number of executables that were not read; None where no
    executable can be read. Problems go to `report`. `base` is the offset of the package, `raw`, in the file."""
    multi = table.serialized_multi_executable
    if not multi:
        message = f"the multi-executable is {'absent' if multi is None else 'empty'}"
        report("D015", ByteOffset(table.at, "Package.serialized_multi_executable"), message)
        return None
    multi = memoryview(multi)
    multi_base = starts(raw, base, table, "serialized_multi_executable")[0]
    try:
        tables = read(MultiExecutable, multi, multi_base)
    except Malformed as error:
        report("D016", ByteOffset(error.offset, "MultiExecutable"), f"the multi-executable does not verify: {error}")
        return None
    blobs = tables.serialized_executables
    if not blobs:
        report("D017", ByteOffset(tables.at, "MultiExecutable.serialized_executables"), "there are no executables")
        return None
    executables: list[Executable] = []
    places: list[tuple[int, int, int]] = []
    positions = starts(multi, multi_base, tables, "serialized_executables")
    for number, (blob, at) in enumerate(list(zip(blobs, positions, strict=True))[:_MOST_EXECUTABLES]):
        try:
            executable = read(Executable, memoryview(blob), at)
        except Malformed as error:
            report("D018", ByteOffset(error.offset, "Executable"), f"executables[{number}] does not verify: {error}")
            continue
        parameters: list[int] = []
        if executable.parameters:
            parameters = starts(memoryview(blob), at, executable, "parameters")
        executables.append(executable)
        places.append((at - base, len(blob), parameters[0] - base if parameters else -1))
    if not executables:
        return None
    return tuple(executables), tuple(places), len(blobs) - len(executables)


def _check_versions(table: PackageTable, runtime: int, report: Reporter) -> None:
    """Report a minimum runtime version that is too old or above the driver's, `runtime`, and a package for several
    chips (D012 to D014)."""
    version = table.min_runtime_version
    if version < OLDEST:
        report("D012", ByteOffset(table.at, "Package.min_runtime_version"), f"min_runtime_version is {version}")
    if version > runtime:
        message = f"min_runtime_version is {version}, the driver's version is {runtime}"
        report("D013", ByteOffset(table.at, "Package.min_runtime_version"), message)
    if table.virtual_chip_id == MULTI_CHIP:
        report("D014", ByteOffset(table.at, "Package.virtual_chip_id"), "a package for several chips")


def _read_parts(raw: memoryview, base: int, table: PackageTable) -> tuple[Package, ...]:
    """Return the packages for single chips, as far as they can be read: they need not verify (DARWINN 2). `base` is
    the offset of the package, `raw`, in the file."""
    packages: list[Package] = []
    for entry in (table.multi_chip_package or ())[:_MOST_PARTS]:
        part = memoryview(entry.serialized_package or b"")
        for at in starts(raw, base, entry, "serialized_package"):
            try:
                root = read(PackageTable, part, at)
            except Malformed:
                continue
            executables, places, unread = _read_executables(part, at, root, _report_nothing) or ((), (), 0)
            packages.append(Package(bytes(part), root, executables, unread=unread, places=places, offset=at))
    return tuple(packages)


def _report_nothing(rule: str, place: ByteOffset, message: str) -> None:
    """Drop a finding: packages inside a package for several chips are shown, not judged."""
