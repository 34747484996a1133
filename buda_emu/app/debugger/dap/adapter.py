"""One editor's session. One thread reads messages, another executes them in order.

A request that comes while the program runs holds it at its next step, is served, and the program goes on; `pause` and
what ends a session hold it for good.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, Protocol, cast

from buda_emu.app.debugger.console.console import Console
from buda_emu.app.debugger.machine.stop import Kind, Stop
from buda_emu.app.debugger.session import Session
from buda_emu.app.debugger.tensors import TensorValue
from buda_emu.support.checker.suggest import hint_in_parentheses
from buda_emu.support.errors import BudaError, Exit, HostError
from buda_emu.support.message_frames import ByteSource, FrameError, read_header
from buda_emu.support.version import __version__

MAX_BYTES_BEFORE_TOKEN: Final = 64 << 10
"""The length of all messages together before the sender has shown the token."""
CANCELLED: Final = "cancelled"
"""The reason for the failure of a cancelled request, in the protocol's word: editors do not show it."""
_ERRORS_SHOWN_IN_PLACE: Final = (
    "evaluate",
    "setExpression",
    "setVariable",
)  # the editor shows why they fail where they were typed
Message = dict[str, Any]


class Sink(Protocol):
    """A stream that bytes are written to."""

    def write(self, data: bytes, /) -> object:
        """Write all of the bytes."""
        ...

    def flush(self) -> object:
        """Pass on what was written so far."""
        ...


class Gate(Protocol):
    """The decision whether a sender of requests may launch."""

    def note_initialize(self) -> None:
        """Give the sender, which has sent `initialize`, time until its `launch` before its connection may be closed for
        a newer one. It is not admitted by this."""
        ...

    def admit(self, token: object) -> None:
        """Admit the sender. Raises HostError if this is not the token that `launch` must hold."""
        ...


class MalformedError(Exception):
    """A message without meaning. After a fatal one no further message can be read."""

    def __init__(self, problem: str, *, fatal: bool = False) -> None:
        super().__init__(problem)
        self.fatal = fatal


class Channel:
    """Messages of the protocol over a pair of streams, read on one thread and written from any. A sender that is not
    `trusted` may send MAX_BYTES_BEFORE_TOKEN at most."""

    def __init__(self, source: ByteSource, sink: Sink, *, trusted: bool = True) -> None:
        self._source = source
        self._sink = sink
        self._lock = Lock()
        self._sequence = 0
        self.open = True
        self.trusted = trusted
        self._received = 0  # bytes of all messages

    def read(self) -> Message | None:
        """Return the next message, or None at the end of the stream. Raises MalformedError."""
        length = self._read_length()
        if length is None:
            return None
        body = self._source.read(length)
        if len(body) < length:
            return None
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise MalformedError(f"a message that is not JSON: {error}") from None
        if not isinstance(message, dict):
            raise MalformedError("a message that is not a JSON object")
        return cast("Message", message)

    def _read_length(self) -> int | None:
        """Read a header and return the length of the body that follows, or None at the end of the stream. Raises
        MalformedError, also for more bytes than a sender without the token may send."""
        try:
            header = read_header(self._source)
        except FrameError as error:
            raise MalformedError(str(error), fatal=True) from None
        if header is None:
            return None
        self._received += header.bytes + header.length
        if not self.trusted and self._received > MAX_BYTES_BEFORE_TOKEN:
            raise MalformedError("more bytes than may come before launch", fatal=True)
        return header.length

    def write(self, message: Message) -> None:
        """Send a message with the next number. If the other end of the stream is closed, set `open` to False."""
        with self._lock:
            self._sequence += 1
            body = json.dumps({"seq": self._sequence, **message}, allow_nan=False).encode()
            try:
                self._sink.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
                self._sink.flush()
            except (OSError, ValueError):
                self.open = False

    def event(self, name: str, **body: Any) -> None:
        """Send an event of this name, with the given fields in its body."""
        self.write({"type": "event", "event": name, "body": body})

    def answer(self, request: Message, body: Message | None = None, error: str = "") -> None:
        """Send the response to a request: with `body`, or, if there is an error, the reason why it failed."""
        content: Message = {
            "type": "response",
            "request_seq": request["seq"],
            "command": request["command"],
            "success": not error,
        }
        if error == CANCELLED:
            content["message"] = error
        elif error:
            show = request["command"] not in _ERRORS_SHOWN_IN_PLACE
            content |= {
                "message": error,
                "body": {"error": {"id": 1, "format": error.replace("{", "{{"), "showUser": show}},
            }
        elif body is not None:
            content["body"] = body
        self.write(content)


def is_request(message: Message) -> bool:
    """Return whether a message has the fields of a request, with values of their types."""
    return (
        message.get("type") == "request"
        and isinstance(message.get("command"), str)
        and isinstance(message.get("seq"), int)
        and isinstance(message.get("arguments", {}), dict | None)
    )


def same_file(a: str, b: str) -> bool:
    """Return whether two paths lead to one file."""
    return os.path.realpath(a) == os.path.realpath(b)


Handler = Callable[["Adapter", Message], Message | None]
HANDLERS: Final[dict[str, Handler]] = {}
"""The function that executes each request, by the request's name; filled by the other modules of this package."""
_ENDS: Final = ("disconnect", "terminate")
_BEFORE_LAUNCH: Final = ("initialize", *_ENDS)
"""Requests that a connection without the token may send."""
_REASONS: Final = {"start": "entry", "step": "step", "breakpoint": "breakpoint", "interrupted": "pause", "end": "step"}
NAN_FILTERS: Final = ("nan", "inf")
ERROR_FILTER: Final = "error"


def request(name: str) -> Callable[[Handler], Handler]:
    """Return a decorator that puts a handler into the table under the name of a request."""

    def put(handler: Handler) -> Handler:
        """Enter the handler in the table of requests, and return it unchanged."""
        HANDLERS[name] = handler
        return handler

    return put


class Adapter:
    """Serves a stream of requests until it ends, or `disconnect` comes. The `gate` admits the sender; None means that
    every sender is trusted."""

    def __init__(
        self,
        source: ByteSource,
        sink: Sink,
        gate: Gate | None = None,
        *,
        on_departure: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_departure` is called when the stream of requests has ended, whatever request is still executed."""
        self.channel = Channel(source, sink, trusted=gate is None)
        self._gate = gate
        self._on_departure = on_departure
        self._requests: SimpleQueue[Message | None] = SimpleQueue()
        self._lock = Lock()
        self._waiting = 0  # requests that were read and not begun
        self._cancelled: set[int] = set()
        self.running = False
        self._interruptible = False  # a forward move is under way, which requests may hold
        self.paused = False  # `pause` was served
        self._over = False
        self._session: Session | None = None
        self.then: Callable[[], None] | None = None  # what the current request begins after its response
        self.client: Message = {}  # arguments of initialize
        self.launched: Message = {}  # arguments of launch
        self.filters: tuple[str, ...] = (ERROR_FILTER,)
        self.by_source: dict[str, list[int]] = {}  # numbers of breakpoints of each kind of request
        self.handles: list[Callable[[int, int], list[Message]]] = []  # what variablesReference 1, 2, ... stand for
        self._tensors: dict[str, TensorValue] = {}

    @property
    def session(self) -> Session:
        """The session that `launch` has opened. Raises HostError before it."""
        if self._session is None:
            raise HostError("nothing is debugged yet: launch comes first")
        return self._session

    @session.setter
    def session(self, session: Session) -> None:
        """Start to debug with this session: connect its engine and breakpoints to the adapter, open a console on it.
        Raise HostError if another session is active."""
        if self._session is not None:
            raise HostError("launch: something is debugged already; restart, or connect again")
        self._session = session
        session.engine.pending = lambda: self._waiting > 0
        session.breakpoints.on_log = self._send_log
        self.console = Console(session)

    def serve(self) -> None:
        """Execute requests until the session is over, then close the debugged program."""
        reader = Thread(target=self._read, name="buda-emu dap", daemon=True)
        reader.start()
        try:
            while not self._over and self.channel.open:
                message = self._requests.get()
                if message is None:
                    break
                self._serve_one(message)
        finally:
            if self._session is not None:
                self._session.close()

    # ---------------------------------------------------------------------------------------------- reading thread
    def _read(self) -> None:
        """Read and queue messages until the stream ends; then interrupt the run and let `serve` end. Runs on a thread
        of its own."""
        try:
            while True:
                try:
                    message = self.channel.read()
                except MalformedError as error:
                    self.channel.event("output", category="stderr", output=f"buda-emu debug: {error}\n")
                    if error.fatal:
                        break
                    continue
                if message is None:
                    break
                self._queue_request(message)
        except (OSError, ValueError):
            pass
        self._on_departure()
        self._requests.put(None)
        with self._lock:
            self._waiting += 1
        if self._session is not None:
            self._session.interrupt()

    def _queue_request(self, message: Message) -> None:
        """Queue a request for the serving thread, and interrupt a program that runs, so that the request is served
        soon. A `cancel` is served at once; other messages are dropped."""
        if message.get("type") in ("response", "event"):
            return
        if not is_request(message):
            self.channel.event("output", category="stderr", output="buda-emu debug: a message that is not a request\n")
            return
        command = message["command"]
        if command == "cancel":
            self._cancel(message)
            return
        with self._lock:
            self._waiting += 1
            self._requests.put(message)
        if self._session is not None and (self._interruptible or command == "pause" or command in _ENDS):
            self._session.interrupt()

    def _cancel(self, message: Message) -> None:
        """Remember that the request which `cancel` names is cancelled, so that it fails when its turn comes, and
        answer."""
        arguments: Message = message.get("arguments") or {}
        if isinstance(arguments.get("requestId"), int):
            self._cancelled.add(arguments["requestId"])
        self.channel.answer(message, {})

    # ------------------------------------------------------------------------------------------- serving thread
    def _serve_one(self, message: Message) -> None:
        """Execute a request and send its response, then call `then`, by which a handler begins a move after the
        response."""
        with self._lock:
            self._waiting -= 1
        self.then = None
        command = message["command"]
        handler = HANDLERS.get(command)
        if message["seq"] in self._cancelled:
            self._cancelled.discard(message["seq"])
            self.channel.answer(message, error=CANCELLED)
            return
        if handler is None:
            hint = hint_in_parentheses(command, HANDLERS)
            self.channel.answer(message, error=f"no request {command!r}{hint}")
            return
        try:
            self._require_admission(message)
            body = handler(self, message.get("arguments") or {})
        except Exception as error:  # noqa: BLE001 - no request may end the session
            self.channel.answer(message, error=self._error_text(command, error))
            return
        self.channel.answer(message, body or {})
        self._over = command in _ENDS
        then = self.then
        if then is None:
            return
        try:
            then()
        except Exception as error:  # noqa: BLE001 - nor what follows a request
            self.channel.event("output", category="stderr", output=f"{self._error_text(command, error)}\n")

    def _error_text(self, command: str, error: Exception) -> str:
        """Return the text that an editor shows for an error. A bug also prints its traceback to standard error."""
        if isinstance(error, BudaError) and error.exit_code != Exit.INTERNAL:
            return str(error)
        if isinstance(error, OSError):
            return f"{error.filename or ''}: {error.strerror or error}"
        if isinstance(error, MemoryError):
            return f"{command}: not enough memory"
        if isinstance(error, KeyError):
            return f"{command}: arguments that do not fit: {error.args[0]} is missing" if error.args else command
        if isinstance(error, (TypeError, ValueError, AttributeError)):
            return f"{command}: arguments that do not fit: a value of another type or form than the protocol says"
        traceback.print_exception(error, file=sys.stderr)
        return f"{command}: internal error: this is a bug of buda-emu {__version__}, please report it ({error!r})"

    def _require_admission(self, message: Message) -> None:
        """Raise HostError for a request that a connection without the token may not send. A `launch` with the token
        admits the connection; one with a wrong token ends it."""
        command = message["command"]
        if self._gate is None:
            return
        if command in _BEFORE_LAUNCH:
            if command == "initialize":
                self._gate.note_initialize()
            return
        if command != "launch":
            raise HostError(f"{command}: nothing is debugged yet: launch comes first, with the token")
        arguments: Message = message.get("arguments") or {}
        self._over = True
        self._gate.admit(arguments.get("token"))
        self._over = False
        self._gate = None
        self.channel.trusted = True

    # ---------------------------------------------------------------------------------------------- running
    def go(self, kind: Kind) -> None:
        """Plan a forward move of this kind for after the response to the current request; the editor is told where it
        stopped."""
        self.then = lambda: self._run(lambda: self.session.go(kind), forward=True)

    def go_elsewhere(self, move: Callable[[], Stop]) -> None:
        """Plan another move, such as one backward, for after the response to the current request; the editor is told
        where it led."""
        self.then = lambda: self._run(move, forward=False)

    def _run(self, move: Callable[[], Stop], *, forward: bool) -> None:
        """Make a move and report the stop. While a forward move runs, requests that come interrupt it, are served, and
        it goes on."""
        self.drop_references()
        self.paused = False
        self.running = True
        self._interruptible = forward
        self.session.clear_interrupt()
        try:
            stop = move()
            while stop.reason == "interrupted":
                self._serve_waiting()
                if self._over or self.paused:
                    break
                stop = self.session.resume()
        except Exception as error:  # noqa: BLE001 - no move may end the session
            self.channel.event("output", category="stderr", output=f"{self._error_text('run', error)}\n")
            stop = self.session.stop
        finally:
            self.running = self._interruptible = False
        if not self._over:
            self.send_stop(stop)

    def _serve_waiting(self) -> None:
        """Serve the requests that came during a move. One that would begin another move is refused."""
        while self._waiting and not self._over:
            message = self._requests.get()
            if message is None:
                self._over = True
            elif message["command"] in MOVES:
                with self._lock:
                    self._waiting -= 1
                self.channel.answer(message, error="the program runs already: pause first")
            else:
                self._serve_one(message)

    def send_stop(self, stop: Stop) -> None:
        """Tell the editor that the program has stopped, or that the session has ended."""
        if stop.reason == "error":
            self.channel.event("output", category="stderr", output=f"{stop.error}\n")
        if self._ends_session(stop):
            code = Exit.FAILED if stop.reason == "error" else Exit.OK
            self.channel.event("exited", exitCode=int(code))
            self.channel.event("terminated")
            return
        text = self._stop_text(stop)
        self.channel.event(
            "stopped",
            reason=self._stop_reason(stop),
            threadId=self.chip() + 1,
            allThreadsStopped=True,
            text=text,
            description=text or None,
            hitBreakpointIds=list(stop.breakpoints),
        )

    def _ends_session(self, stop: Stop) -> bool:
        """Return whether the editor's session ends with this stop: at the end, unless `launch` has `stopAtEnd`, and
        after an error whose filter is off."""
        if stop.reason == "end":
            return not self.launched.get("stopAtEnd")
        return stop.reason == "error" and ERROR_FILTER not in self.filters

    def _stop_reason(self, stop: Stop) -> str:
        """Return the protocol's word for the reason of a stop."""
        if stop.reason == "breakpoint":
            points = self.session.breakpoints.items
            kinds = {points[number].kind for number in stop.breakpoints if number in points}
            if kinds and kinds <= set(NAN_FILTERS):
                return "exception"
            if kinds <= {"watch"}:
                return "data breakpoint"
        return _REASONS.get(stop.reason, "exception")

    @staticmethod
    def _stop_text(stop: Stop) -> str:
        """Return what happened at a stop, in one line."""
        if stop.reason == "error":
            return str(stop.error).partition("\n")[0]
        if stop.reason == "end":
            return "all programs have run"
        return stop.text

    def _send_log(self, text: str) -> None:
        """Send the text of a log point to the editor's console."""
        self.channel.event("output", category="console", output=f"{text}\n")

    def chip(self) -> int:
        """Return the chip of the current op, else that of the epoch, else the first chip."""
        session = self.session
        engine = session.engine
        if engine.op_now is not None:
            return engine.op_now.target_device
        if engine.graphs:
            return session.netlist.graphs[engine.graphs[0]].target_device
        return self.chips()[0]

    def chips(self) -> list[int]:
        """Return the chips that graphs run on."""
        return sorted({graph.target_device for graph in self.session.netlist.graphs.values()}) or [0]

    def source(self) -> Message:
        """Return the netlist's text as a source of the protocol: a file, or a reference where it is inside of an
        image."""
        session = self.session
        name = os.path.basename(session.netlist.path)  # noqa: PTH119
        if session.image is not None:
            return {"name": name, "sourceReference": 1, "path": session.netlist.path}
        return {"name": name, "path": os.path.abspath(session.netlist.path)}  # noqa: PTH100

    def tensor(self, reference: str) -> TensorValue:
        """Return the tensor that a reference of expressions names, at the current stop. It is remembered until the next
        stop or change. Raises HostError."""
        if reference not in self._tensors:
            self._tensors[reference] = self.session.tensor(reference)
        return self._tensors[reference]

    def drop_references(self) -> None:
        """Invalidate the references to variables and the remembered tensors, because the run stands elsewhere."""
        self.handles.clear()
        self._tensors.clear()

    def announce_change(self) -> None:
        """Drop remembered tensors after a change by the user, and tell the editor to read the variables on display
        again."""
        self._tensors.clear()
        if self.client.get("supportsInvalidatedEvent"):
            self.run_after_answer(lambda: self.channel.event("invalidated", areas=["variables"]))

    def run_after_answer(self, act: Callable[[], None]) -> None:
        """Call `act` after the response to the current request, behind what is planned already."""
        before = self.then

        def both() -> None:
            """Do what was planned before, then `act`."""
            if before is not None:
                before()
            act()

        self.then = both

    def handle(self, children: Callable[[int, int], list[Message]]) -> int:
        """Return a new variablesReference, by which the editor asks for the variables below one. `children(first,
        count)` returns them; a count of 0 means all."""
        self.handles.append(children)
        return len(self.handles)


MOVES: Final = frozenset(
    {"continue", "next", "stepIn", "stepOut", "stepBack", "reverseContinue", "restart", "configurationDone"}
)
"""Requests that run the program."""


def integer_argument(arguments: Message, name: str, default: int | None = None, *, least: int | None = None) -> int:
    """Return the argument `name` of a request, `default` if it is absent. Raises HostError for one that is no integer,
    or less than `least`."""
    argument: Any = arguments.get(name, default)
    if not isinstance(argument, int) or isinstance(argument, bool):
        raise HostError(f"{name} has to be an integer")
    if least is not None and argument < least:
        raise HostError(f"{name} has to be {least} or more, not {argument}")
    return argument
