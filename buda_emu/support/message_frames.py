"""Headers of messages between an editor and a language server or debug adapter: lines such as `Content-Length: 17`,
then an empty line, then the message (Language Server Protocol 3.17, "Base Protocol", which the Debug Adapter Protocol
shares).

What follows a header that has no meaning cannot be read, so such a header ends the connection."""

from typing import Final, NamedTuple, Protocol

MAX_BYTES: Final = 64 << 20
"""The length of one message: four times the largest netlist that is read. A longer one ends the connection before
memory for it is asked for."""
MAX_HEADER: Final = 4 << 10
"""The most bytes of a header, which has two short fields."""
_HEADER_FIELDS: Final = (b"content-length", b"content-type")
"""The only legal fields of a header. A browser can be made to send HTTP to a port, whose headers have others."""
_MAX_DIGITS: Final = 10
"""Digits of a Content-Length, so that no number of thousands of digits is made of a text."""


class FrameError(Exception):
    """A header without meaning, after which no further message can be read."""


class ByteSource(Protocol):
    """A stream that bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """Return `size` bytes, fewer only at the end of the stream."""
        ...

    def readline(self, size: int, /) -> bytes:
        """Return a line of at most `size` bytes, b"" at the end of the stream."""
        ...


class Header(NamedTuple):
    """The length of the message that follows a header, and of the header itself, in bytes."""

    length: int
    bytes: int


def read_header(source: ByteSource) -> Header | None:
    """Read the header of the next message; None at the end of the stream. Raises FrameError for a header that is too
    long, lacks a Content-Length, or has another field."""
    length: int | None = None
    seen = 0
    while line := source.readline(MAX_HEADER):
        seen += len(line)
        if seen >= MAX_HEADER:
            raise FrameError("a header without an end")
        if line.strip():
            length = _content_length(line.strip(), length)
        elif length is None:
            raise FrameError("a header without Content-Length")
        else:
            return Header(length, seen)
    return None


def _content_length(line: bytes, earlier: int | None) -> int | None:
    """Return the length that a line of a header gives, or else `earlier`, which an earlier line gave. Raises
    FrameError."""
    name, _, value = line.partition(b":")
    field = name.strip().lower()
    digits = value.strip()
    if field not in _HEADER_FIELDS:
        raise FrameError(f"{line[:40]!r} in a header: only Content-Length and Content-Type may be there")
    if field != b"content-length":
        return earlier
    if earlier is not None:
        raise FrameError("a header with Content-Length twice")
    if not digits.isdigit() or len(digits) > _MAX_DIGITS or int(digits) > MAX_BYTES:
        raise FrameError(f"a Content-Length of {digits[:40]!r}: a message may have {MAX_BYTES} bytes at most")
    return int(digits)


class CheckedSource:
    """A stream of framed messages for a library that takes any number for a length, and skips a header that it does
    not understand: it reads each header in its simplest form, `Content-Length: 17` and an empty line."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._lines: list[bytes] = []

    def readline(self) -> bytes:
        """Return the next line of a header, b"" at the end of the stream. Raises FrameError."""
        if not self._lines:
            header = read_header(self._source)
            if header is None:
                return b""
            self._lines = [b"Content-Length: %d\r\n" % header.length, b"\r\n"]
        return self._lines.pop(0)

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer only at the end of the stream."""
        return self._source.read(size)
