"""The kinds of documents: how each is recognised by its content, the functions that open and check it, its rules.

A room that reads another kind of document adds one row to `KINDS`. Its modules are imported when such a document comes.
"""

import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from buda_emu.checker.result import CheckResult, Options
from buda_emu.errors import HostError
from buda_emu.files import read_whole, refuse_pipe
from buda_emu.records import dataclass
from buda_emu.spec.archs import ARCHS

if TYPE_CHECKING:
    from buda_emu.checker import RuleBook
    from buda_emu.documents.protocol import Document, DocumentModule

_HEAD = 1 << 16  # bytes from which a document is known
_GZIP = b"\x1f\x8b"
_TAR = b"ustar"
_TAR_AT = 257
_ZIP = b"PK\x03\x04"
_OTHER_STAGE = re.compile(rb'\s*(?:\{\s*"|\[\w+, \{)')
_SCHEDULE = re.compile(rb'\s*\{\s*"(-1|[0-9]+|xlen|ylen|buffersize|top_batch_cut)"\s*:')


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of document; `words`: what to call one.

    `known_by` recognises one by its first bytes (`_HEAD`), unpacked if they were gzip, and the name in small letters.
    `module` is a module of buda_emu as `protocol.DocumentModule` describes it. `book`, written `module:name`, is a
    RuleBook all of whose rules are entered when its module is imported; `prefix` is that book's. `archs`: architectures
    that a check may ask for.
    """

    name: str
    words: str
    known_by: Callable[[bytes, str], bool]
    module: str
    book: str
    prefix: str
    archs: tuple[str, ...] = ()

    def rules(self) -> "RuleBook":
        """The book of its rules."""
        module, _, name = self.book.partition(":")
        return getattr(import_module(f"buda_emu.{module}"), name)

    def check(self, path: str, options: Options) -> CheckResult[Any]:
        """Check one such document. Raises OSError, HostError for a file that cannot be read."""
        module: DocumentModule = import_module(f"buda_emu.{self.module}")  # type: ignore[assignment]  # held by tests
        if options.arch is not None and options.arch not in self.archs:
            options = replace(options, arch=None)
        return module.check_file(path, options)

    def load(self, path: str) -> "Document":
        """Open one such document. Raises DocumentError, OSError, HostError."""
        module: DocumentModule = import_module(f"buda_emu.{self.module}")  # type: ignore[assignment]  # held by tests
        return module.load(path)


def _is_image(head: bytes, name: str) -> bool:
    return name.endswith(".tti") or head[_TAR_AT:].startswith(_TAR) or head.startswith(_ZIP)


def _is_schedule(head: bytes) -> bool:
    return _SCHEDULE.match(head) is not None


def _is_of_gemini(head: bytes, _name: str) -> bool:
    """A schedule, or what the tool chain writes at another stage: the schedule's reader says where that belongs."""
    if _is_schedule(head):
        return True
    if _OTHER_STAGE.match(head) is None:
        return False
    from buda_emu.gemini.stages import recognise_beginning

    return recognise_beginning(head) is not None


def _is_package(head: bytes, _name: str) -> bool:
    return head[4:8] in (b"DWN1", b"TFL3")


def _is_vpux(_head: bytes, name: str) -> bool:
    return name.endswith(".mlir")


def _is_anything(_head: bytes, _name: str) -> bool:
    return True


_CHIPS = tuple(ARCHS)
NETLIST = Kind("netlist", "BUDA netlist", _is_anything, "documents.netlists", "netlist.rules:BOOK", "V", _CHIPS)
KINDS: tuple[Kind, ...] = (
    Kind("image", "device image", _is_image, "documents.images", "image.rules:BOOK", "image-", _CHIPS),
    Kind("schedule", "Gemini schedule", _is_of_gemini, "gemini.document", "gemini.rules:BOOK", "G"),
    Kind("package", "Edge TPU package", _is_package, "darwinn.document", "darwinn.rules:BOOK", "D"),
    Kind("vpux", "VPUX program", _is_vpux, "vpux.document", "vpux.rules:BOOK", "X", ("37XX", "40XX")),
    NETLIST,  # last: whatever is nothing else is read as one, and told what a netlist is
)
"""In the order in which they are asked."""


def kind_named(name: str) -> Kind:
    """The kind of that name."""
    return next(kind for kind in KINDS if kind.name == name)


def kind_of(path: str) -> Kind:
    """The kind of a file, by what it holds. One that cannot be read is the netlist room's to complain about. Raises
    HostError for a pipe."""
    head, name = _head(path), path.lower()
    return next(kind for kind in KINDS if kind.known_by(head, name))


def files_below(paths: Iterable[str], only: Kind | None = None) -> list[str]:
    """The paths, each once, and instead of a folder the documents in it and below it, of one kind or of all, by name.
    Raises HostError for a folder without any."""
    found: dict[str, None] = {}
    for path in paths:
        if not os.path.isdir(path):  # noqa: PTH112 - names are shown as they were given
            found.setdefault(path)
            continue
        inside = sorted(_documents(path, only))
        if not inside:
            what = f"no {only.words}" if only is not None else "no document that can be checked"
            raise HostError(f"{path}: {what} in this folder")
        for name in inside:
            found.setdefault(name)
    return list(found)


def _documents(folder: str, only: Kind | None) -> Iterator[str]:
    """Regular files of a folder and those below it that are documents."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            path = os.path.join(place, name)  # noqa: PTH118
            if os.path.isfile(path) and _is_document(path, only):  # noqa: PTH113
                yield path


def _is_document(path: str, only: Kind | None) -> bool:
    """What nobody named has to say more clearly what it is: an archive by its name, a `.tflite` by a package in it."""
    name = path.lower()
    if name.endswith((".yaml", ".yml")):
        from buda_emu.netlist.known import looks_like_netlist

        return only in (None, NETLIST) and looks_like_netlist(path)
    kind = kind_of(path)
    if kind is NETLIST or only not in (None, kind) or (kind.name == "image" and not name.endswith(".tti")):
        return False
    if kind.name == "schedule":
        return _is_schedule(_head(path))
    if kind.name == "package":
        from buda_emu.darwinn.container import holds_package

        return holds_package(read_whole(path))
    return True


def _head(path: str) -> bytes:
    """The first bytes of a file, unpacked if they are gzip; none where it cannot be read. Raises HostError for a
    pipe."""
    refuse_pipe(path)
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - importing pathlib takes longer than all of this
            head = file.read(_HEAD)
    except (OSError, ValueError):
        return b""
    if not head.startswith(_GZIP):
        return head
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, _HEAD)
    except zlib.error:
        return b""


def rule_kind(rule: str) -> Kind:
    """The kind whose rules have ids like this one."""
    return next((kind for kind in KINDS if rule.lower().startswith(kind.prefix.lower())), NETLIST)


def books() -> "Mapping[str, RuleBook]":
    """The rules of every kind, by its name."""
    return {kind.name: kind.rules() for kind in KINDS}
