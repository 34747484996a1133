"""The kinds of documents that `check` and `explain` know: how each is told by what it holds, who checks it, its rules.

A room that reads another kind of document adds one row to `KINDS`. Its modules are imported when such a document comes.
"""

import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, Protocol

from buda_emu.errors import HostError
from buda_emu.records import dataclass

if TYPE_CHECKING:
    from buda_emu.checker import Diagnostic, RuleBook

_HEAD = 4096  # bytes from which a document is known
_GZIP = b"\x1f\x8b"
_TAR = b"ustar"
_TAR_AT = 257
_ZIP = b"PK\x03\x04"
_SCHEDULE = re.compile(rb'\s*\{\s*"(-1|[0-9]+|xlen|ylen|buffersize|top_batch_cut)"\s*:')


class Checked(Protocol):
    """What a check found; `CheckResult` of the netlists is one."""

    @property
    def ok(self) -> bool:
        """Whether the document is accepted."""
        ...

    @property
    def diagnostics(self) -> "tuple[Diagnostic, ...]":
        """Sorted by place."""
        ...


@dataclass(frozen=True, slots=True)
class Options:
    """What `check` was asked for. `arch` and `cache` are for netlists and their images."""

    strict: bool = False
    arch: str | None = None
    cache: bool = True


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of document.

    `known_by` judges the first 4096 bytes, unpacked if they were gzip, and the name in small letters. `check` and
    `book` are written `module:name`: a function (path, Options) -> Checked that never raises for what is in the file,
    and a RuleBook, all of whose rules are entered when its module is imported. `prefix` is that book's.
    """

    name: str
    known_by: Callable[[bytes, str], bool]
    check: str
    book: str
    prefix: str

    def rules(self) -> "RuleBook":
        """The book of its rules."""
        return _named(self.book)

    def judge(self, path: str, options: Options) -> Checked:
        """Check one such document."""
        return _named(self.check)(path, options)


def _is_image(head: bytes, name: str) -> bool:
    return name.endswith(".tti") or head[_TAR_AT:].startswith(_TAR) or head.startswith(_ZIP)


def _is_schedule(head: bytes, _name: str) -> bool:
    return _SCHEDULE.match(head) is not None


def _is_package(head: bytes, _name: str) -> bool:
    return head[4:8] in (b"DWN1", b"TFL3")


def _is_vpux(_head: bytes, name: str) -> bool:
    return name.endswith(".mlir")


def _is_anything(_head: bytes, _name: str) -> bool:
    return True


NETLIST = Kind("netlist", _is_anything, "buda_emu.cli.documents:check_netlist", "buda_emu.netlist.rules:BOOK", "V")
KINDS: tuple[Kind, ...] = (
    Kind("image", _is_image, "buda_emu.cli.documents:check_device_image", "buda_emu.image.rules:BOOK", "image-"),
    Kind("schedule", _is_schedule, "buda_emu.cli.documents:check_schedule", "buda_emu.gemini.rules:BOOK", "G"),
    Kind("package", _is_package, "buda_emu.cli.documents:check_package", "buda_emu.darwinn.rules.catalogue:BOOK", "D"),
    Kind("vpux", _is_vpux, "buda_emu.cli.documents:check_vpux", "buda_emu.vpux.rules:BOOK", "X"),
    NETLIST,  # last: whatever is nothing else is read as one, and told what a netlist is
)
"""In the order in which they are asked."""


def kind_of(path: str) -> Kind:
    """The kind of a file, by what it holds. One that cannot be read is the netlist room's to complain about."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - importing pathlib takes longer than all of this
            head = file.read(_HEAD)
    except (OSError, ValueError):
        head = b""
    if head.startswith(_GZIP):
        head = _unpacked(head)
    name = path.lower()
    return next(kind for kind in KINDS if kind.known_by(head, name))


def files_below(paths: Iterable[str]) -> list[str]:
    """The paths, each once, and instead of a folder the documents in it and below it, by name. Raises HostError for a
    folder without any."""
    found: dict[str, None] = {}
    for path in paths:
        if not os.path.isdir(path):  # noqa: PTH112 - names are shown as they were given
            found.setdefault(path)
            continue
        inside = sorted(_documents(path))
        if not inside:
            raise HostError(f"{path}: no document that can be checked in this folder")
        for name in inside:
            found.setdefault(name)
    return list(found)


def _documents(folder: str) -> Iterator[str]:
    """Files of a folder and those below it that are netlists, or have the name of another kind of document."""
    from buda_emu.netlist.known import looks_like_netlist

    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            path = os.path.join(place, name)  # noqa: PTH118
            if looks_like_netlist(path) or any(kind.known_by(b"", name.lower()) for kind in KINDS[:-1]):
                yield path


def check_stream(stream: IO[bytes], options: Options) -> Checked:
    """A netlist from a stream."""
    from buda_emu.netlist.load import check_bytes

    data = stream.read()
    result = check_bytes(data, "-", options.arch, strict=options.strict)
    if options.strict and result.ok:
        from buda_emu.netlist.yaml_reader import decode
        from buda_emu.routing.checking import with_routes

        return with_routes(result, decode(data))
    return result


def rule_kind(rule: str) -> Kind:
    """The kind whose rules have ids like this one."""
    return next((kind for kind in KINDS if rule.lower().startswith(kind.prefix.lower())), NETLIST)


def books() -> "Mapping[str, RuleBook]":
    """The rules of every kind, by its name."""
    return {kind.name: kind.rules() for kind in KINDS}


def check_netlist(path: str, options: Options) -> Checked:
    """A netlist."""
    if options.strict:
        from buda_emu.routing import checking  # only then: it makes pipes and streams

        return checking.check(path, options.arch, cache=options.cache)
    from buda_emu.netlist.load import check

    return check(path, options.arch, strict=False, cache=options.cache)


def check_device_image(path: str, options: Options) -> Checked:
    """A device image."""
    from buda_emu.image.device_image import check_image

    return check_image(path, options.arch, strict=options.strict)


def check_schedule(path: str, _options: Options) -> Checked:
    """A Gemini schedule."""
    from buda_emu.gemini.judge import judge

    return judge(path)


def check_package(path: str, _options: Options) -> Checked:
    """An Edge TPU package, bare or in a `.tflite`."""
    from buda_emu.darwinn.checking import check

    return check(path)


@dataclass(frozen=True, slots=True)
class Findings:
    """What a check of a document found that is not kept for anything else."""

    diagnostics: "tuple[Diagnostic, ...]"

    @property
    def ok(self) -> bool:
        """Whether the document is accepted."""
        return not any(item.severity == "error" for item in self.diagnostics)


def check_vpux(path: str, options: Options) -> Checked:
    """Software-layer schedules; `arch` is 37XX unless 40XX is given."""
    from buda_emu.vpux.reader import load

    return Findings(tuple(load(path).check(arch=options.arch or "37XX")))


def _unpacked(head: bytes) -> bytes:
    """What the first bytes of a gzip file unpack to, at most as many; "" where they are no gzip."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, _HEAD)
    except zlib.error:
        return b""


def _named(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
