"""A small client of the Debug Adapter Protocol: sends requests, waits for answers and events."""

import json
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from queue import Empty, Queue

import buda_emu.app.debugger.dap.serve  # noqa: F401 - fills the table of requests
from buda_emu.app.debugger.dap.adapter import Adapter

COMMAND = [sys.executable, "-m", "buda_emu", "debug", "--dap"]


def _message(number, command, arguments):
    body = json.dumps({"seq": number, "type": "request", "command": command, "arguments": arguments}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Client:
    """On two streams. `events` and `answers` as they came."""

    def __init__(self, source, sink):
        self._source, self._sink = source, sink
        self._sequence = 0
        self._incoming = Queue()
        self.events = []
        self._answers = {}
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            while line := self._source.readline():
                length = int(line.split(b":")[1])
                assert self._source.readline() == b"\r\n"
                self._incoming.put(json.loads(self._source.read(length)))
        except (OSError, ValueError):
            pass
        self._incoming.put(None)

    def raw(self, data):
        self._sink.write(data)
        self._sink.flush()

    def begin(self, command, **arguments):
        """Send a request, and do not wait; its number."""
        self._sequence += 1
        self.raw(_message(self._sequence, command, arguments))
        return self._sequence

    def begin_all(self, *commands, **arguments):
        """Send several requests in one piece, the first with these arguments; their numbers."""
        first, self._sequence = self._sequence + 1, self._sequence + len(commands)
        given = [arguments, *[{}] * (len(commands) - 1)]
        self.raw(
            b"".join(
                _message(number, *request) for number, request in enumerate(zip(commands, given, strict=True), first)
            )
        )
        return range(first, first + len(commands))

    def answer(self, number, seconds=60):
        """Of a request: the whole message."""
        while number not in self._answers:
            self._next(seconds)
        return self._answers.pop(number)

    def ask(self, command, **arguments):
        """Send a request and wait; its body. Fails where it is refused."""
        found = self.answer(self.begin(command, **arguments))
        assert found["success"], found
        return found.get("body", {})

    def refused(self, command, **arguments):
        """The same of one that has to be refused; the message."""
        found = self.answer(self.begin(command, **arguments))
        assert not found["success"], found
        return found["message"]

    def event(self, name, seconds=60):
        """The next event of a name."""
        while True:
            for index, event in enumerate(self.events):
                if event["event"] == name:
                    del self.events[index]
                    return event.get("body", {})
            self._next(seconds)

    def ended(self, seconds=60):
        """Wait until the other side closed."""
        while True:
            try:
                self._next(seconds)
            except EOFError:
                return

    def _next(self, seconds):
        try:
            message = self._incoming.get(timeout=seconds)
        except Empty:
            raise AssertionError(f"nothing came; events so far: {self.events}") from None
        if message is None:
            self._incoming.put(None)
            raise EOFError
        if message["type"] == "event":
            self.events.append(message)
        else:
            self._answers[message["request_seq"]] = message

    # ---------------------------------------------------------------------------------------------- whole steps
    def launch(self, path, *, lines=(), functions=(), filters=("error",), **more):
        """initialize, launch, breakpoints, configurationDone; answers of the breakpoints."""
        self.ask("initialize", adapterID="buda", linesStartAt1=True, columnsStartAt1=True)
        self.ask("launch", program=path, threads=1, **more)
        self.event("initialized")
        found = self.ask("setBreakpoints", source={"path": path}, breakpoints=list(lines))["breakpoints"]
        found += self.ask("setFunctionBreakpoints", breakpoints=list(functions))["breakpoints"]
        self.ask("setExceptionBreakpoints", filters=list(filters))
        self.ask("configurationDone")
        return found

    def frames(self, thread=1):
        return self.ask("stackTrace", threadId=thread)["stackFrames"]

    def scope(self, name, level=0):
        frame = self.frames()[level]["id"]
        found = {scope["name"]: scope for scope in self.ask("scopes", frameId=frame)["scopes"]}
        return {item["name"]: item for item in self.children(found[name])}

    def children(self, item, **more):
        return self.ask("variables", variablesReference=item["variablesReference"], **more)["variables"]


class Here(Client):
    """An adapter on a thread of this process."""

    def __init__(self):
        self._own, self._theirs = socket.socketpair()
        self._stream, stream = self._own.makefile("rwb"), self._theirs.makefile("rwb")
        self._thread = threading.Thread(target=self._serve, args=(stream,), daemon=True)
        self._thread.start()
        super().__init__(self._stream, self._stream)

    def _serve(self, stream):
        with suppress(OSError), self._theirs, stream:  # whoever reads may be gone
            try:
                Adapter(stream, stream).serve()
            finally:
                self._theirs.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with suppress(OSError):
            self._own.shutdown(socket.SHUT_RDWR)
        self._thread.join(30)
        assert not self._thread.is_alive()
        with suppress(OSError):
            self._stream.close()
        self._own.close()


class Process(Client):
    """An adapter of its own on stdio."""

    def __init__(self, environment, *arguments):
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        super().__init__(self.process.stdout, self.process.stdin)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with suppress(OSError):
                stream.close()


class Connection(Client):
    """To a port. `token`: what `launch` tells."""

    def __init__(self, port, token=None):
        self._token = token
        self.socket = socket.create_connection(("127.0.0.1", port))
        self._stream = self.socket.makefile("rwb")
        super().__init__(self._stream, self._stream)

    def begin(self, command, **arguments):
        if command == "launch" and self._token is not None:
            arguments["token"] = self._token
        return super().begin(command, **arguments)

    def kill(self):
        """As a client that dies."""
        self.socket.shutdown(socket.SHUT_RDWR)
        self.close()

    def close(self):
        with suppress(OSError):
            self._stream.close()
        self.socket.close()
