"""The rules of images, and the error that names the rule that an image breaks."""

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
"""The rules by id; the summary of a rule states what holds of every image."""


class ImageError(DocumentError, HostError):
    """The error for a device image that is refused. Its message names archive, member, place in it, the problem, the
    rule and the fix.

    `archive`, `member` ("" for the archive as a whole), `pointer` (a JSON pointer, "" for the member as a whole),
    `rule` (an id of RULES) and `problem` are its parts, and its first diagnostic. `further` has the diagnostics of
    other problems."""

    is_report = False

    def __init__(
        self, archive: str, member: str, rule: str, problem: str, pointer: str = "", further: Sequence[Diagnostic] = ()
    ) -> None:
        self.archive = archive
        self.member = member
        self.rule = rule
        self.problem = problem
        self.pointer = pointer
        location = ": ".join(filter(None, (archive, short_line(member), short_line(pointer))))
        others = ""
        if further:
            others = f" (and {len(further)} more, which `buda-emu check` shows)"
        message = f"{location}: {problem} [{rule}: {RULES[rule].summary}]{others}; {RULES[rule].fix}"
        super().__init__(message, [finding(archive, member, rule, problem, pointer=pointer), *further])


def combine_errors(errors: Sequence[ImageError]) -> ImageError:
    """Return several errors, at least one, as a single one: it states the first problem and has all diagnostics."""
    first, *others = errors
    further = list(first.diagnostics[1:])
    for error in others:
        further += error.diagnostics
    return ImageError(
        archive=first.archive,
        member=first.member,
        rule=first.rule,
        problem=first.problem,
        pointer=first.pointer,
        further=further,
    )


@dataclass(frozen=True, slots=True)
class Place:
    """A place in an image, for messages: archive, member, and steps into its JSON."""

    archive: str
    member: str = ""
    steps: Steps = ()

    def at(self, member: str) -> "Place":
        """Return the place of a whole member of the same archive."""
        return Place(self.archive, member)

    def below(self, *steps: str | int) -> "Place":
        """Return the place of a value inside of this one, by keys of objects and numbers of list entries."""
        return Place(self.archive, self.member, (*self.steps, *steps))

    def error(self, rule: str, problem: str) -> ImageError:
        """Return the error for a problem at this place that breaks `rule`, to be raised by the caller."""
        return ImageError(
            archive=self.archive, member=self.member, rule=rule, problem=problem, pointer=pointer(self.steps)
        )


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A contradiction between parts of an image, seen in a member at `steps` below its root. Errors refuse the
    image."""

    member: str
    rule: str
    problem: str
    severity: Severity = "error"
    steps: Steps = ()


def pointer(steps: Steps) -> str:
    """Return the JSON pointer of keys and numbers (RFC 6901, without its first slash)."""
    return "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def finding(
    archive: str, member: str, rule: str, problem: str, severity: Severity = "error", pointer: str = ""
) -> Diagnostic:
    """Return a diagnostic about a member of an image, or about the archive where `member` is "". `pointer` is a JSON
    pointer into the member, "" for the whole."""
    path = f"{archive}!{short_line(member)}" if member else archive
    if pointer:
        return Diagnostic(path, rule, severity, problem, pointer=short_line(pointer))
    return Diagnostic(path=path, rule=rule, severity=severity, message=problem, line=1, column=1)
