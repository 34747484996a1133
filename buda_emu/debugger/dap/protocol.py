"""Messages of the protocol on a stream: a header with the length, then JSON."""

import json
import os
from threading import Lock
from typing import Any, Final, Protocol, cast

MOST_BYTES: Final = 64 << 20
"""Of one message; a longer one ends the connection."""
MOST_BYTES_OF_STRANGERS: Final = 64 << 10
"""Of all messages before the sender has shown that it may send any."""
_MOST_HEADER: Final = 4 << 10
_HEADER_FIELDS: Final = (b"content-length", b"content-type")
"""A header with any other line is not of this protocol: a web page can have a browser send one of HTTP."""
_MOST_DIGITS: Final = 10  # of a length
CANCELLED: Final = "cancelled"
"""Why a request that was cancelled fails: the protocol's own word, of which nobody is told."""
_SHOWN: Final = ("evaluate", "setExpression", "setVariable")  # the editor shows why they fail where they were typed
Message = dict[str, Any]


class Source(Protocol):
    """Where bytes come from."""

    def read(self, size: int, /) -> bytes:
        """So many, fewer at the end."""
        ...

    def readline(self, size: int, /) -> bytes:
        """A line, of so many at most."""
        ...


class Sink(Protocol):
    """Where bytes go."""

    def write(self, data: bytes, /) -> object:
        """All of them."""
        ...

    def flush(self) -> object:
        """Now."""
        ...


class MalformedError(Exception):
    """A message that means nothing; the next one can be read. `fatal`: it cannot."""

    def __init__(self, problem: str, *, fatal: bool = False) -> None:
        super().__init__(problem)
        self.fatal = fatal


class Channel:
    """Reads on one thread, writes from any. `trusted`: the sender may send as much as it likes."""

    def __init__(self, source: Source, sink: Sink, *, trusted: bool = True) -> None:
        self._source = source
        self._sink = sink
        self._lock = Lock()
        self._sequence = 0
        self.open = True
        self.trusted = trusted
        self._received = 0  # bytes of all messages

    def read(self) -> Message | None:
        """The next message; None at the end of the stream. Raises MalformedError."""
        length = self._length()
        if length is None:
            return None
        body = self._source.read(length)
        if len(body) < length:
            return None
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise MalformedError(f"a message that is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise MalformedError("a message that is not a JSON object")
        return cast("Message", found)

    def _length(self) -> int | None:
        """The length of the body, from the header; None at the end of the stream."""
        length: int | None = None
        seen = 0
        while True:
            line = self._source.readline(_MOST_HEADER)
            if not line:
                return None
            seen += len(line)
            if seen >= _MOST_HEADER:
                raise MalformedError("a header without an end", fatal=True)
            text = line.strip()
            if text:
                length = _length_of(text, length)
                continue
            if length is None:
                raise MalformedError("a header without Content-Length", fatal=True)
            self._received += seen + length
            if not self.trusted and self._received > MOST_BYTES_OF_STRANGERS:
                raise MalformedError("more bytes than may come before launch", fatal=True)
            return length

    def write(self, message: Message) -> None:
        """Send it with its number. Where nobody listens any more, `open` becomes False."""
        with self._lock:
            self._sequence += 1
            body = json.dumps({"seq": self._sequence, **message}, allow_nan=False).encode()
            try:
                self._sink.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
                self._sink.flush()
            except (OSError, ValueError):
                self.open = False

    def event(self, name: str, **body: Any) -> None:
        """Tell of something."""
        self.write({"type": "event", "event": name, "body": body})

    def answer(self, request: Message, body: Message | None = None, error: str = "") -> None:
        """To a request, with what was asked or why not."""
        content: Message = {
            "type": "response",
            "request_seq": request["seq"],
            "command": request["command"],
            "success": not error,
        }
        if error == CANCELLED:
            content["message"] = error
        elif error:
            show = request["command"] not in _SHOWN
            content |= {
                "message": error,
                "body": {"error": {"id": 1, "format": error.replace("{", "{{"), "showUser": show}},
            }
        elif body is not None:
            content["body"] = body
        self.write(content)


def _length_of(line: bytes, before: int | None) -> int | None:
    """The length that a line of a header tells, else that of an earlier line. Raises MalformedError."""
    name, _, value = line.partition(b":")
    field, digits = name.strip().lower(), value.strip()
    if field not in _HEADER_FIELDS:
        raise MalformedError(
            f"{line[:40]!r} in a header: only Content-Length and Content-Type may be there", fatal=True
        )
    if field != b"content-length":
        return before
    if before is not None:
        raise MalformedError("a header with Content-Length twice", fatal=True)
    if not digits.isdigit() or len(digits) > _MOST_DIGITS or int(digits) > MOST_BYTES:
        raise MalformedError(f"a Content-Length of {digits[:40]!r}", fatal=True)
    return int(digits)


def is_request(message: Message) -> bool:
    """Has it what a request has?"""
    return (
        message.get("type") == "request"
        and isinstance(message.get("command"), str)
        and isinstance(message.get("seq"), int)
        and isinstance(message.get("arguments", {}), dict | None)
    )


def same_file(a: str, b: str) -> bool:
    """Two paths of one file."""
    return os.path.realpath(a) == os.path.realpath(b)
