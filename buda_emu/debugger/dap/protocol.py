"""Messages of the protocol on a stream: a header with the length, then JSON."""

import json
import os
from threading import Lock
from typing import Any, Final, Protocol, cast

MOST_BYTES: Final = 64 << 20
"""Of one message; a longer one ends the connection."""
_MOST_HEADER: Final = 64 << 10
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
    """Reads on one thread, writes from any."""

    def __init__(self, source: Source, sink: Sink) -> None:
        self._source = source
        self._sink = sink
        self._lock = Lock()
        self._sequence = 0
        self.open = True

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
        """Of the body; None at the end of the stream."""
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
            if not text:
                if length is None:
                    raise MalformedError("a header without Content-Length")
                return length
            name, _, value = text.partition(b":")
            if name.strip().lower() == b"content-length":
                if not value.strip().isdigit() or int(value) > MOST_BYTES:
                    raise MalformedError(f"a Content-Length of {value.strip()[:40]!r}", fatal=True)
                length = int(value)

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
