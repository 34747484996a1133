"""What an image must be, rule by rule, and the error that says which rule it breaks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from buda_emu.support.checker import Diagnostic, Rule, RuleBook, Severity
from buda_emu.support.checker.text import short_line
from buda_emu.support.errors import DocumentError, HostError

Steps = tuple[str | int, ...]
BOOK: Final = RuleBook("device image", "image-")

BOOK.declare(
    "image-archive",
    "error",
    "an image is an uncompressed tar or a zip, whole to its end",
    fix="copy the file again, or write it again with `tar cf image.tti unzipped_tti` or `buda-emu pack`",
)
BOOK.declare(
    "image-path",
    "error",
    "names of members are plain relative paths below unzipped_tti/",
    fix="write the archive again from a folder unzipped_tti",
)
BOOK.declare(
    "image-kind",
    "error",
    "members are files and folders, nothing else",
    fix="write the archive again with the files that links stand for (tar --dereference --hard-dereference)",
)
BOOK.declare(
    "image-twice",
    "error",
    "each name occurs once, ignoring the case of its letters, and nothing lies below a file",
    fix="write the archive again from a folder",
)
BOOK.declare(
    "image-size",
    "error",
    "sizes and counts stay within limits that no real image comes near",
    fix="do not use this file unless you know who made it; load_image(limits=...) takes wider limits",
)
BOOK.declare(
    "image-nested", "error", "no archive lies inside of an image", fix="take it out: nothing in an image is an archive"
)
BOOK.declare(
    "image-json",
    "error",
    "JSON members are strict JSON in UTF-8: no NaN, no key twice, numbers of 64 bits, at most 64 levels",
    fix="write the member again with a JSON library",
)
BOOK.declare(
    "image-version",
    "error",
    "device.json has version 1.1.0",
    fix="make the image again with a compiler that writes this version",
)
BOOK.declare(
    "image-field",
    "error",
    "fields of device.json are there and have the type that the format gives them",
    fix="make the image again, or correct the field",
)
BOOK.declare(
    "image-member",
    "error",
    "every member that device.json names is in the archive",
    fix="make the image again: files are missing",
)
BOOK.declare(
    "image-tensor",
    "error",
    "a tensor's file has exactly the bytes that its shape and format take",
    fix="make the image again: metadata and tensor files do not belong together",
)
BOOK.declare(
    "image-pickle",
    "error",
    "tensors are not pickles",
    fix=(
        "have the image made with tti_dump_format BACKEND or BACKEND_TILIZED; or, if you know who made it and "
        "trust them, give --allow-pickle (load_image: allow_pickle=True)"
    ),
)
BOOK.declare(
    "image-queue",
    "error",
    "the names that device.json gives are queues of the netlist, and tensors fit their queues",
    fix="make the image again: netlist and metadata do not belong together",
)
BOOK.declare(
    "image-device",
    "error",
    "the image is for one architecture, which its netlist has too, and for a device that exists",
    fix="leave out --arch, or make the image again for the other architecture",
)
BOOK.declare("image-changed", "error", "an image that is in use does not change", fix="load it again")

RULES: Mapping[str, Rule] = BOOK.rules
"""By id, as messages give it; the summary of a rule says what holds of every image."""


class ImageError(DocumentError, HostError):
    """A device image is refused. The message names archive, member, place in it, what is wrong, the rule, what to do.

    `archive`, `member` ("" for the archive as a whole), `pointer` (a JSON pointer, "" for the member as a whole),
    `rule` (an id of RULES) and `problem` are its parts, and its first diagnostic. `more`: what else is wrong.
    """

    is_report = False

    def __init__(
        self, archive: str, member: str, rule: str, problem: str, pointer: str = "", more: Sequence[Diagnostic] = ()
    ) -> None:
        self.archive = archive
        self.member = member
        self.rule = rule
        self.problem = problem
        self.pointer = pointer
        where = ": ".join(filter(None, (archive, short_line(member), short_line(pointer))))
        others = f" (and {len(more)} more, which `buda-emu check` shows)" if more else ""
        message = f"{where}: {problem} [{rule}: {RULES[rule].summary}]{others}; {RULES[rule].fix}"
        super().__init__(message, [finding(archive, member, rule, problem, pointer=pointer), *more])


def together(errors: Sequence[ImageError]) -> ImageError:
    """Several errors as one, which says the first and has all diagnostics."""
    first, *others = errors
    more = [*first.diagnostics[1:], *(item for error in others for item in error.diagnostics)]
    return ImageError(
        archive=first.archive,
        member=first.member,
        rule=first.rule,
        problem=first.problem,
        pointer=first.pointer,
        more=more,
    )


@dataclass(frozen=True, slots=True)
class Place:
    """Where in an image something stands: for messages."""

    archive: str
    member: str = ""
    steps: Steps = ()

    def at(self, member: str) -> "Place":
        """The place of a member."""
        return Place(self.archive, member)

    def below(self, *steps: str | int) -> "Place":
        """The place of a value inside of the one here: keys of objects, numbers of items."""
        return Place(self.archive, self.member, (*self.steps, *steps))

    def error(self, rule: str, problem: str) -> ImageError:
        """The error to raise."""
        return ImageError(
            archive=self.archive, member=self.member, rule=rule, problem=problem, pointer=pointer(self.steps)
        )


def pointer(steps: Steps) -> str:
    """The JSON pointer (RFC 6901, without its first slash) of keys and numbers."""
    return "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def finding(
    archive: str, member: str, rule: str, problem: str, severity: Severity = "error", pointer: str = ""
) -> Diagnostic:
    """What is wrong with a member, at a place in it, or with the archive where `member` is ""."""
    path = f"{archive}!{short_line(member)}" if member else archive
    if pointer:
        return Diagnostic(path, rule, severity, problem, pointer=short_line(pointer))
    return Diagnostic(path=path, rule=rule, severity=severity, message=problem, line=1, column=1)
