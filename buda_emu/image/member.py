"""A member of an archive, and how much of anything an archive may hold."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds for an image, far above every real one. Bytes unless said otherwise."""

    members: int = 200_000  # files and folders
    total_bytes: int = 256 << 30  # of all members, unpacked
    json_bytes: int = 16 << 20  # of one JSON member
    header_bytes: int = 1 << 20  # of a tar's extension header, or after its end
    directory_bytes: int = 24 << 20  # of a zip's central directory
    ratio: int = 100  # times: unpacked to packed, of a zip larger than `ratio_from` unpacked
    ratio_from: int = 256 << 20


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Member:
    """Where a member's bytes lie: `stored` bytes at `offset`, `size` when unpacked. `crc` None: there is none."""

    name: str
    offset: int
    size: int
    stored: int
    is_folder: bool
    deflated: bool = False
    crc: int | None = None
