"""The kinds of documents: how each is recognised by its content, the functions that open and check it, its rules.

A package that reads another kind of document adds one row to `KINDS`, or, outside of buda-emu, an entry point of the
group `buda_emu.documents` whose object is a `Kind`. The modules of a kind are imported when they are first needed.
"""

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from buda_emu.spec.archs import ARCHS
from buda_emu.support.checker.result import CheckResult, Options
from buda_emu.support.errors import HostError
from buda_emu.support.files import is_model, looks_like_archive, read_whole, refuse_pipe
from buda_emu.support.lazy import lazy
from buda_emu.support.other_packages import DOCUMENTS, declared_by_others
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    import zlib

    from buda_emu.netlist import load as netlists
    from buda_emu.performance.timeline.picture import TimelinePicture
    from buda_emu.support.checker import RuleBook
else:
    zlib = lazy("zlib")
    netlists = lazy("buda_emu.netlist.load")


_HEAD = 1 << 16  # bytes at the beginning of a file that are read to recognise it
_GZIP = b"\x1f\x8b"
_OTHER_STAGE = re.compile(rb'\s*(?:\{\s*"|\[\w+, \{)')
_MLIR = re.compile(
    rb"^[ \t]*(?:func\.func\s[^\n]*@|module\s+(?:@\w+|attributes\b|\{)|#\w+ = affine_map<)", re.MULTILINE
)
_SCHEDULE = re.compile(rb'\s*\{\s*"(-1|[0-9]+|xlen|ylen|buffersize|top_batch_cut)"\s*:')


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of document; `words` is the noun that messages use for it.

    `known_by` recognises a document by its first bytes (`_HEAD` of them, unpacked if they were gzip) and by its name in
    lower case. A file that a search of folders found, instead of the user naming it, may have to pass two more tests:
    `in_folders`, another function of first bytes and name, and `holds`, written `module:name`, a function of all bytes.

    `module` names a module with the functions of `DocumentModule`. `book`, written `module:name`, is the RuleBook of
    the kind; importing its module enters all rules. `prefix` begins the ids of its rules. `archs` lists the
    architectures that a check may ask for.

    `commands` is for messages: where a verb for netlists gets a FILE of this kind, the message names the command that
    serves it instead; OTHER is the second file of the command line. The keys are verbs; "" stands for all that have no
    key. `other_stage`, written `module:name`, is a function of the first bytes, or of all bytes for a kind with
    `holds`. It recognises files of the other stages of the kind's tool chain, and returns an object with `words` and
    `advice`, or None.

    A kind with commands of its own names the package that has them in `command` (with the modules `arguments` and
    `schemas`), their verb, and the verb's line in the help.
    """

    name: str
    words: str
    known_by: Callable[[bytes, str], bool]
    module: str
    book: str
    prefix: str
    archs: tuple[str, ...] = ()
    in_folders: Callable[[bytes, str], bool] | None = None
    holds: str = ""
    command: str = ""
    verb: str = ""
    verb_help: str = ""
    commands: tuple[tuple[str, str], ...] = ()
    other_stage: str = ""

    def rules(self) -> "RuleBook":
        """Import and return the book of the kind's rules."""
        return _import_object(self.book)

    def check(self, path: str, options: Options) -> CheckResult[Any]:
        """Check one such document. Raises OSError, HostError for a file that cannot be read."""
        module: DocumentModule = import_module(self.module)  # type: ignore[assignment]  # held by tests
        if options.arch is not None and options.arch not in self.archs:
            options = replace(options, arch=None)
        return module.check_file(path, options)

    def load(self, path: str) -> "Document":
        """Open one such document. Raises DocumentError, OSError, HostError."""
        module: DocumentModule = import_module(self.module)  # type: ignore[assignment]  # held by tests
        return module.load(path)

    def schemas(self) -> "Mapping[str, Callable[[], Any]]":
        """Import and return the JSON schemas of the kind's own verbs, by verb; none for a kind without verbs."""
        if not self.command:
            return {}
        return import_module(f"{self.command}.schemas").SCHEMAS


def _import_object(place: str) -> Any:
    """Import the object that a text `module:name` names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _is_image(head: bytes, name: str) -> bool:
    """Return whether a file is a device image, by its name's ending or because it begins as a tar or zip does. `head`
    are its first bytes. Models are archives, too: the reader of netlists says what they are."""
    return name.endswith(".tti") or (looks_like_archive(head) and not is_model(name))


def _has_image_name(_first_bytes: bytes, name: str) -> bool:
    """Return whether the name ends as that of a device image; the contents do not count."""
    return name.endswith(".tti")


def _is_schedule(head: bytes, _name: str) -> bool:
    """Return whether the file's first bytes are the beginning of a schedule."""
    return _SCHEDULE.match(head) is not None


def _is_of_gemini(head: bytes, name: str) -> bool:
    """Return whether a file is a schedule, or comes from another stage of the tool chain: the reader of schedules names
    that stage in its message."""
    if _is_schedule(head, name):
        return True
    if _OTHER_STAGE.match(head) is None:
        return False
    return _import_object("buda_emu.foreign.gemini.stages:recognise_beginning")(head) is not None


def _is_package(head: bytes, name: str) -> bool:
    """Return whether a file is a DarwiNN package or a TFLite model, by the mark in its bytes 4 to 7 or by its name, so
    that a damaged one gets the findings of its own kind."""
    return head[4:8] in (b"DWN1", b"TFL3") or name.endswith(".tflite")


def _is_vpux(first_bytes: bytes, name: str) -> bool:
    """Return whether the name ends as that of an MLIR text, or a line of the file's first bytes begins as only MLIR
    does."""
    return _has_vpux_name(first_bytes, name) or _MLIR.search(first_bytes) is not None


def _has_vpux_name(_first_bytes: bytes, name: str) -> bool:
    """Return whether the name ends as that of an MLIR text; the contents do not count."""
    return name.endswith(".mlir")


def _is_anything(_first_bytes: bytes, _name: str) -> bool:
    """Accept every file: for the kind that is tried last."""
    return True


_CHIPS = tuple(ARCHS)
NETLIST = Kind(
    name="netlist",
    words="BUDA netlist",
    known_by=_is_anything,
    module="buda_emu.app.documents.netlists",
    book="buda_emu.netlist.rules:BOOK",
    prefix="V",
    archs=_CHIPS,
)
IMAGE = Kind(
    name="image",
    words="device image",
    known_by=_is_image,
    in_folders=_has_image_name,
    module="buda_emu.app.documents.images",
    book="buda_emu.emulator.image.rules:BOOK",
    prefix="image-",
    archs=_CHIPS,
)
SCHEDULE = Kind(
    name="schedule",
    words="Gemini schedule",
    known_by=_is_of_gemini,
    in_folders=_is_schedule,
    module="buda_emu.foreign.gemini.document",
    book="buda_emu.foreign.gemini.rules:BOOK",
    prefix="G",
    command="buda_emu.foreign.gemini.command",
    verb="gemini",
    verb_help="Check, time, execute and allocate schedules of the Gemini scheduler.",
    commands=(
        ("", "gemini run FILE"),
        ("test", "gemini exec FILE --frontend NETWORK"),
        ("debug", "gemini exec FILE --frontend NETWORK"),
        ("numerics", "gemini exec FILE --frontend NETWORK"),
        ("graph", "info FILE --timeline timeline.html"),
        ("diff", "gemini diff FILE OTHER"),
        ("reduce", "gemini slice FILE --layers NAMES -o SMALL"),
        ("fmt", "gemini check FILE"),
    ),
    other_stage="buda_emu.foreign.gemini.stages:recognise_beginning",
)
VPUX = Kind(
    name="vpux",
    words="VPUX program",
    known_by=_is_vpux,
    in_folders=_has_vpux_name,
    module="buda_emu.foreign.vpux.document",
    book="buda_emu.foreign.vpux.rules:BOOK",
    prefix="X",
    archs=("37XX", "40XX"),
    command="buda_emu.foreign.vpux.command",
    verb="vpux",
    verb_help="Check, run and time software-layer schedules of an NPU compiler (MLIR text).",
    commands=(
        ("", "vpux run FILE"),
        ("diff", "vpux run FILE --compare OTHER"),
        ("graph", "info FILE --timeline timeline.html"),
        ("fmt", "vpux check FILE"),
    ),
)
PACKAGE = Kind(
    name="package",
    words="Edge TPU package",
    known_by=_is_package,
    module="buda_emu.foreign.darwinn.document",
    book="buda_emu.foreign.darwinn.rules:BOOK",
    prefix="D",
    holds="buda_emu.foreign.darwinn.container:holds_package",
    command="buda_emu.foreign.darwinn.command",
    verb="darwinn",
    verb_help="Packages of the Edge TPU compiler: inspect, check, link, replay, run, verify.",
    commands=(
        ("", "darwinn inspect FILE"),
        ("run", "darwinn run FILE"),
        ("perf", "darwinn run FILE"),
        ("test", "darwinn verify FILE --source MODEL"),
        ("graph", "info FILE --timeline timeline.html"),
    ),
    other_stage="buda_emu.foreign.darwinn.stages:recognise_model",
)
KINDS: tuple[Kind, ...] = (IMAGE, SCHEDULE, PACKAGE, VPUX)
"""The kinds of this package, in the order in which they are tried. `NETLIST` is tried last, after the kinds of other
packages: a file of no other kind is read as a netlist, and the message of that reader says what a netlist is."""


@cache
def kinds() -> tuple[Kind, ...]:
    """Return the kinds of this package and of all others, in the order in which they are tried. Raises
    HostError for an entry point whose object is not a `Kind` of the entry point's name."""
    return *KINDS, *declared_by_others(DOCUMENTS, Kind), NETLIST


def kind_by_name(name: str) -> Kind:
    """Return the kind of that name. Raises KeyError where no package declares one."""
    for kind in (*KINDS, NETLIST):
        if kind.name == name:
            return kind
    for kind in kinds():
        if kind.name == name:
            return kind
    raise KeyError(name)


def kind_of(path: str) -> Kind:
    """Return the kind of a file, recognised by its content and name. A file that cannot be read counts as a netlist,
    whose reader reports the failure. Raises HostError for a pipe."""
    head = _first_bytes(path)
    name = path.lower()
    if name.endswith((".yaml", ".yml")):
        candidates = KINDS
    else:
        candidates = kinds()
    return next((kind for kind in candidates if kind.known_by(head, name)), NETLIST)


def require_netlists(verb: str, paths: Iterable[str], *, models: bool = False) -> None:
    """Raise HostError for the first file that is neither a netlist nor an image; the message names the command that
    serves it instead of `verb`. Paths that are not files are skipped, and so are models, with `models`."""
    names = list(paths)
    for path in names:
        name = path.lower()
        if name.endswith(".tti") or not os.path.isfile(path):  # noqa: PTH113 - names are shown as they were given
            continue
        if is_model(path) and models:
            continue
        if is_model(path):
            raise HostError(f"{path} is a model, not a netlist: `buda-emu compile {path}` makes a netlist of it")
        kind = kind_of(path)
        if kind not in (NETLIST, IMAGE):
            beside = next((name for name in names if name != path), "OTHER")
            raise HostError(_describe_other_kind(kind, verb, path, beside=beside))


def require_kind(verb: str, below: str, paths: Iterable[str]) -> None:
    """Raise HostError for the first file that is not of the kind with the verb `verb`, such as "gemini"; the message
    names the command that serves it instead of the verb `below`, such as "run". Paths that are not files, and files
    whose kind is uncertain, are skipped: the verb itself reports what is wrong with them."""
    expected_kind = next(kind for kind in KINDS if kind.verb == verb)
    for path in paths:
        if not os.path.isfile(path):  # noqa: PTH113 - names are shown as they were given
            continue
        if is_model(path):
            raise HostError(f"{path} is a model, not {_with_article(expected_kind.words)}: `buda-emu compile {path}`")
        kind = kind_of(path)
        if kind is not expected_kind and _is_certain(kind, path):
            raise HostError(_describe_other_kind(kind, below, path, _with_article(expected_kind.words)))


def require_model(verb: str, path: str) -> None:
    """Raise HostError for a document where a model is expected; the message names the command that serves it. Other
    files, and paths that are not files, are skipped: the compiler reports what is wrong with them."""
    if is_model(path) or not os.path.isfile(path):  # noqa: PTH113 - names are shown as they were given
        return
    kind = kind_of(path)
    if _is_certain(kind, path):
        raise HostError(_describe_other_kind(kind, verb, path, "an ONNX or PyTorch model"))


def _is_certain(kind: Kind, path: str) -> bool:
    """Return whether the kind that `kind_of` returned for a file is more than its default. `kind_of` takes an unknown
    file for a netlist and any archive for an image: here a netlist needs its sections, an image its name."""
    if kind is NETLIST:
        return netlists.holds_sections(path)
    return kind is not IMAGE or _has_image_name(b"", path.lower())


def stage_of(kind: Kind, path: str) -> "Stage | None":
    """Return the other stage of a kind's tool chain that a file comes from; None for a document of the kind itself."""
    if not kind.other_stage:
        return None
    data = read_whole(path) if kind.holds else _first_bytes(path)
    return _import_object(kind.other_stage)(data)


def _with_article(words: str) -> str:
    """Return a noun with the article that goes with its first letter."""
    if words[0] in "AEIOUaeiou":
        return f"an {words}"
    return f"a {words}"


def _describe_other_kind(
    kind: Kind, verb: str, path: str, expected: str = "a netlist", *, beside: str = "OTHER"
) -> str:
    """Return the message for a file of another kind than `expected`: what it is, and which command serves it in place
    of `verb`. `beside` is the file that the command line names beside it, for a command that takes two."""
    stage = stage_of(kind, path)
    if stage is not None:
        command = dict(kind.commands)[""].replace("FILE", kind.words.split()[-1].upper())
        return f"{path} is {stage.words}, not {expected}: {stage.advice} (`buda-emu {command}`)"
    commands = {"check": "check FILE", **dict(kind.commands)}
    general = "run FILE" if kind in (NETLIST, IMAGE) else "info FILE"
    command = commands.get(verb) or commands.get("", general)
    names = {"FILE": path, "OTHER": beside}
    command = " ".join(names.get(word, word) for word in command.split(" "))
    return f"{path} is {_with_article(kind.words)}, not {expected}: `buda-emu {command}`"


def files_below(
    paths: Iterable[str],
    only: Kind | None = None,
    on_left_out: Callable[[str], object] = lambda _path: None,
    *,
    to_write: bool = False,
) -> list[str]:
    """Return the paths, each once; a pattern is replaced by the paths that match it, a folder by the documents in it
    and below it, sorted by name.

    `only` limits the documents of folders to one kind. `on_left_out` is called with each file of a folder that is left
    out and may be a netlist that was cut off. With `to_write`, links in a folder that lead out of it are left out, so
    that nothing outside of the folder is written. Raises HostError for a folder without documents and a pattern that
    nothing matches.
    """
    files: dict[str, None] = {}
    for path in chain.from_iterable(map(_matches, paths)):
        if not os.path.isdir(path):  # noqa: PTH112 - names are shown as they were given
            files.setdefault(path)
            continue
        documents = sorted(_find_documents(path, only, on_left_out))
        if to_write:
            documents = [name for name in documents if _is_inside(name, path)]
        if not documents:
            noun = only.words if only is not None else "document that can be checked"
            raise HostError(f"{path}: no {noun} in this folder")
        for name in documents:
            files.setdefault(name)
    return list(files)


def _matches(path: str) -> list[str]:
    """Return the paths that a glob pattern stands for, sorted; a path that exists or is no pattern, by itself. Raises
    HostError for a pattern that nothing matches."""
    if os.path.lexists(path) or not glob.has_magic(path):
        return [path]
    matches = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - names are shown as they were given
    if not matches:
        raise HostError(f"{path}: no file matches this pattern")
    return matches


def _is_inside(path: str, folder: str) -> bool:
    """Return whether a file lies in a folder or below it, once symbolic links are resolved."""
    root = os.path.join(os.path.realpath(folder), "")  # noqa: PTH118
    return os.path.realpath(path).startswith(root)


def documents_among(paths: Iterable[str], only: Kind | None = None) -> list[str]:
    """Return the paths without the files that are not recognised as documents by their content. Two of a netlist's
    sections are enough for a netlist, whatever else is wrong with it. Folders, patterns and `-` stay."""
    return [path for path in paths if not os.path.isfile(path) or _has_content_of(path, only)]  # noqa: PTH113


def _has_content_of(path: str, only: Kind | None) -> bool:
    """Return whether the file is a document of kind `only`, or of any kind if that is None; a netlist must also have
    a netlist's sections."""
    kind = kind_of(path)
    if only not in (None, kind):
        return False
    return kind is not NETLIST or netlists.holds_sections(path)


def _find_documents(folder: str, only: Kind | None, on_left_out: Callable[[str], object]) -> Iterator[str]:
    """Yield the regular files of a folder, and of those below it, that are documents (of kind `only` if that is given);
    hidden folders are left out. `on_left_out` gets each other file that may be a netlist that was cut off."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            path = os.path.join(place, name)  # noqa: PTH118
            if not os.path.isfile(path):  # noqa: PTH113
                continue
            if _is_document(path, only):
                yield path
            elif only in (None, NETLIST) and netlists.may_be_cut_off(path):
                on_left_out(path)


def _is_document(path: str, only: Kind | None) -> bool:
    """Return whether a file that a search of folders found is a document. The tests are stricter than those of
    `kind_of`: an archive must have the name of an image, a `.tflite` must hold a package."""
    name = path.lower()
    if name.endswith((".yaml", ".yml")):
        return only in (None, NETLIST) and netlists.looks_like_netlist(path)
    kind = kind_of(path)
    if kind is NETLIST or only not in (None, kind):
        return False
    if kind.in_folders is not None and not kind.in_folders(_first_bytes(path), name):
        return False
    if not kind.holds:
        return True
    return _import_object(kind.holds)(read_whole(path))


def _first_bytes(path: str) -> bytes:
    """Return the first bytes of a file, unpacked if they are gzip; b"" for a file that cannot be read. Raises HostError
    for a pipe."""
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
    """Return the kind of documents that a rule is for, by the prefix of its id; netlists for an unknown prefix."""
    rule_id = rule.lower()
    if rule_id.startswith(NETLIST.prefix.lower()):
        return NETLIST
    return next((kind for kind in kinds() if rule_id.startswith(kind.prefix.lower())), NETLIST)


def books() -> "Mapping[str, RuleBook]":
    """Import the rules of every kind and return them by its name."""
    return {kind.name: kind.rules() for kind in kinds()}


class Stage(Protocol):
    """A file format of another stage of a tool chain, in words, and advice on what to do with such a file."""

    @property
    def words(self) -> str:
        """The noun with its article."""
        ...

    @property
    def advice(self) -> str:
        """The advice on what to do with such a file."""
        ...


class Document(Protocol):
    """A document that was opened. It may break rules: those are tested by a check."""

    def summary(self) -> Mapping[str, int | str]:
        """Return the figures of the document that a short listing shows, by name."""
        ...

    def timeline(self) -> "TimelinePicture":
        """Return a picture of the times of all events, with the defaults of the kind, for a page or a trace.

        Raises UnsupportedError for a document that cannot be emulated, ProgramError for a program that stops.
        """
        ...


class DocumentModule(Protocol):
    """The interface of the module of a kind of document."""

    def load(self, path: str, /) -> Document:
        """Open a file. Raises DocumentError with the findings for a document that cannot be opened, OSError."""
        ...

    def check_file(self, path: str, options: Options, /) -> CheckResult[object]:
        """Return every finding about a file; no contents of a file raise. Raises OSError for a file that cannot be
        read."""
        ...
