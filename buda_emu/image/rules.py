"""What an image must be, rule by rule, and the error that says which rule it breaks."""

from collections.abc import Mapping
from dataclasses import dataclass

from buda_emu.errors import HostError

_SHOWN = 160  # characters of a name or value in a message


@dataclass(frozen=True, slots=True)
class ImageRule:
    """One rule: what holds of every image, and what to do about one of which it does not hold."""

    id: str
    says: str
    fix: str


RULES: Mapping[str, ImageRule] = {
    rule.id: rule
    for rule in (
        ImageRule(
            "image-archive",
            "an image is an uncompressed tar or a zip, whole to its end",
            "copy the file again, or write it again with `tar cf image.tti unzipped_tti` or `buda-emu pack`",
        ),
        ImageRule(
            "image-path",
            "names of members are plain relative paths below unzipped_tti/",
            "write the archive again from a folder unzipped_tti",
        ),
        ImageRule(
            "image-kind",
            "members are files and folders, nothing else",
            "write the archive again with the files that links stand for (tar --dereference --hard-dereference)",
        ),
        ImageRule(
            "image-twice",
            "each name stands once, whatever the case of its letters, and nothing lies below a file",
            "write the archive again from a folder",
        ),
        ImageRule(
            "image-size",
            "sizes and counts stay within limits that no real image comes near",
            "do not use this file unless you know who made it; load_image(limits=...) takes wider limits",
        ),
        ImageRule(
            "image-nested",
            "no archive lies inside of an image",
            "take it out: nothing in an image is an archive",
        ),
        ImageRule(
            "image-json",
            "JSON members are strict JSON in UTF-8: no NaN, no key twice, numbers of 64 bits, at most 64 levels",
            "write the member again with a JSON library",
        ),
        ImageRule(
            "image-version",
            "device.json has version 1.1.0",
            "make the image again with a compiler that writes this version",
        ),
        ImageRule(
            "image-field",
            "fields of device.json are there and have the type that the format gives them",
            "make the image again, or correct the field",
        ),
        ImageRule(
            "image-member",
            "every member that device.json names is in the archive",
            "make the image again: files are missing",
        ),
        ImageRule(
            "image-tensor",
            "a tensor's file has exactly the bytes that its shape and format take",
            "make the image again: metadata and tensor files do not belong together",
        ),
        ImageRule(
            "image-pickle",
            "tensors are no pickles",
            "have the image made with tti_dump_format BACKEND or BACKEND_TILIZED; or, if you know who made it and "
            "trust them, give --allow-pickle (load_image: allow_pickle=True)",
        ),
        ImageRule(
            "image-queue",
            "the names that device.json gives are queues of the netlist, and tensors fit their queues",
            "make the image again: netlist and metadata do not belong together",
        ),
        ImageRule(
            "image-device",
            "the image is for one architecture, which its netlist has too, and for a device that exists",
            "leave out --arch, or make the image again for the other architecture",
        ),
        ImageRule(
            "image-changed",
            "an image that is in use does not change",
            "load it again",
        ),
    )
}
"""By id, as messages give it."""


class ImageError(HostError):
    """A device image is refused. The message names archive, member, what is wrong, the rule, and what to do.

    `archive`, `member` ("" for the archive as a whole), `rule` (an id of RULES) and `problem` are its parts.
    """

    def __init__(self, archive: str, member: str, rule: str, problem: str) -> None:
        self.archive, self.member, self.rule, self.problem = archive, member, rule, problem
        where = f"{archive}: {shown(member)}" if member else archive
        super().__init__(f"{where}: {problem} [{rule}: {RULES[rule].says}]; {RULES[rule].fix}")


@dataclass(frozen=True, slots=True)
class Place:
    """Where in an image something stands: for messages."""

    archive: str
    member: str = ""

    def at(self, member: str) -> "Place":
        """The place of a member."""
        return Place(self.archive, member)

    def error(self, rule: str, problem: str) -> ImageError:
        """The error to raise."""
        return ImageError(self.archive, self.member, rule, problem)


def shown(text: object) -> str:
    """A name or value from an image as one short line of printable characters."""
    line = str(text)
    line = line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."
    return line if line.isprintable() else ascii(line)[1:-1]
