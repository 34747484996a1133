"""Requests that inspect: threads, frames, scopes, variables, memory, expressions."""

import base64
import re
from collections.abc import Callable

from buda_emu.app.debugger.breakpoints import pointers_of
from buda_emu.app.debugger.console.changing import set_to, values_of
from buda_emu.app.debugger.console.console import find, split_tile
from buda_emu.app.debugger.console.execute import complete, execute
from buda_emu.app.debugger.dap.adapter import Adapter, Message, number, request
from buda_emu.app.debugger.inspection import why_not
from buda_emu.app.debugger.session import Session
from buda_emu.app.debugger.tensors import Found, summary, whole
from buda_emu.emulator.memory.channel import Ram
from buda_emu.netlist.model import Queue
from buda_emu.support.errors import HostError, ProgramError

_MOST_ROW = 1024
"""Characters of a row."""
_READ_ONLY: Message = {"presentationHint": {"attributes": ["readOnly"]}}


def queue_variable(adapter: Adapter, queue: Queue) -> Message:
    """A queue or ram: its pointers in one line; below it these, and the entries that were written."""
    session = adapter.session
    channel = session.engine.channels[queue.name]
    values = session.engine.call(lambda: pointers_of(channel))
    names = ("rd", "wr") if isinstance(channel, Ram) else ("rd", "wr", "local")
    pointers = ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))
    held = "" if isinstance(channel, Ram) else f", holds {channel.ring.occupancy}"
    text = f"{queue.type} of {queue.entries} x {queue.df}, {pointers}{held}"

    def children(first: int, count: int) -> list[Message]:
        slots = session.engine.call(lambda: [slot for slot in range(queue.entries) if channel.view.label(slot)])
        own = [
            {"name": name, "value": str(value), "type": "pointer", "variablesReference": 0, **_READ_ONLY}
            for name, value in zip(names, values, strict=True)
        ]
        part = slots[first : first + count] if count else slots
        return [*own, *(tensor_variable(adapter, f"[{slot}]", f"queue:'{queue.name}'[{slot}]") for slot in part)]

    return {
        "name": session.names.shown(queue.name),
        "value": text,
        "type": queue.type,
        "evaluateName": queue.name,
        "variablesReference": adapter.handle(children),
        **_READ_ONLY,
    }


def tensor_variable(adapter: Adapter, name: str, reference: str) -> Message:
    """A tensor: its figures in one line; below it tiles, below these rows; and as memory."""
    try:
        found = adapter.tensor(reference)
    except HostError as error:
        return {"name": name, "value": str(error), "variablesReference": 0, **_READ_ONLY}
    return {
        "name": name,
        "value": tensor_text(found),
        "type": found.df,
        "evaluateName": reference,
        "memoryReference": reference,
        "indexedVariables": len(found.tiles),
        "variablesReference": adapter.handle(lambda first, count: _tiles(adapter, reference, first, count)),
    }


def tensor_text(found: Found) -> str:
    """Figures, without the name."""
    return summary(found).partition(": ")[2]


def _tiles(adapter: Adapter, reference: str, first: int, count: int) -> list[Message]:
    found = adapter.tensor(reference)
    _, rows, columns = found.shape
    every = range(len(found.tiles))[first : first + count] if count else range(len(found.tiles))
    places = ((number // (rows * columns), number // columns % rows, number % columns) for number in every)
    return [tile_variable(adapter, reference, place) for place in places]


def tile_variable(adapter: Adapter, reference: str, place: tuple[int, int, int]) -> Message:
    """A tile (t, row, column) of a tensor, its first and last element; below it rows. Raises HostError."""
    found = adapter.tensor(reference)
    number = found.number(*place)
    (height, width) = found.tile_dim
    values = found.tiles[number].reshape(32, 32)[:height, :width]
    name = f"tile {','.join(map(str, place))}"
    return {
        "name": name,
        "value": f"{values[0, 0]:.5g} ... {values[-1, -1]:.5g}",
        "indexedVariables": height,
        "evaluateName": f"{reference} {name}",
        "variablesReference": adapter.handle(
            lambda first, count: _rows(adapter.tensor(reference), number, first, count)
        ),
    }


def _rows(found: Found, number: int, first: int, count: int) -> list[Message]:
    height, width = found.tile_dim
    values = found.tiles[number].reshape(32, 32)[:height, :width].tolist()
    last = first + count if count else height
    return [
        {
            "name": f"row {row}",
            "value": "  ".join(f"{one:.5g}" for one in values[row])[:_MOST_ROW],
            "variablesReference": 0,
            **_READ_ONLY,
        }
        for row in range(first, min(last, height))
    ]


def op_children(adapter: Adapter, name: str) -> list[Message]:
    """What an op reads, and what it gave where it has run."""
    session = adapter.session
    op = session.names.ops[name]
    found: list[Message] = []
    for position, source in enumerate(op.inputs):
        own = source in session.netlist.queues
        reference = f"queue:'{source}'" if own else f"op:'{source}'"
        found.append(tensor_variable(adapter, f"input {position}: {source}", reference))
    if name in session.engine.values:
        found.append(tensor_variable(adapter, f"result of {name}", f"op:'{name}'"))
    return found


def values_children(adapter: Adapter) -> list[Message]:
    """What the epoch read and what its ops gave in this input."""
    session = adapter.session
    return [
        tensor_variable(adapter, name, f"op:'{name}'" if name in session.names.ops else f"queue:'{name}'")
        for name in list(session.engine.values)
    ]


Children = Callable[[int, int], list[Message]]
_FRAMES = 16
"""Frames of a chip at most: the id of a frame is its chip's number times this, plus its level."""


@request("threads")
def threads(adapter: Adapter, arguments: Message) -> Message:  # noqa: ARG001
    """One for each chip."""
    return {"threads": [{"id": chip + 1, "name": f"chip {chip}"} for chip in adapter.chips()]}


def frames_of(adapter: Adapter, chip: int) -> list[Message]:
    """Innermost first: the op that runs on the chip, its epoch, the program."""
    session = adapter.session
    engine = session.engine
    source = adapter.source()
    if engine.instruction_now is None or not engine.program:
        text = {"start": "before the first program", "end": "all programs have run"}.get(session.stop.reason, "")
        return [_frame(chip, 0, text or "between programs", source, 1)]
    found: list[tuple[str, int]] = []
    op = engine.op_now
    if op is not None and op.target_device == chip:
        after = "after " if session.stop.position.step % 2 else ""
        found.append((f"{after}{op.name} ({op.type})", op.at().line))
    own = [name for name in engine.graphs if session.netlist.graphs[name].target_device == chip]
    for name in own:
        now = min(engine.done, engine.input_count - 1) + 1
        found.append((f"epoch {name}, input {now} of {engine.input_count}", session.netlist.graphs[name].at().line))
    place = session.engine.call(engine.place)
    loops = "".join(f", round {loop.round} of {loop.rounds}" for loop in place.rounds)
    found.append((f"{engine.program} [{engine.index}]{loops}", place.line))
    return [_frame(chip, level, name, source, line) for level, (name, line) in enumerate(found)]


def _frame(chip: int, level: int, name: str, source: Message, line: int) -> Message:
    return {"id": chip * _FRAMES + level + 1, "name": name, "line": line, "column": 1, "source": source}


@request("stackTrace")
def stack_trace(adapter: Adapter, arguments: Message) -> Message:
    """Frames of a chip."""
    chip = number(arguments, "threadId") - 1
    if chip not in adapter.chips():
        raise HostError(
            f"there is no thread {chip + 1}; there are {', '.join(str(one + 1) for one in adapter.chips())}"
        )
    frames = frames_of(adapter, chip)
    first = number(arguments, "startFrame", 0)
    levels = number(arguments, "levels", 0)
    part = frames[first : first + levels] if levels else frames[first:]
    return {"stackFrames": part, "totalFrames": len(frames)}


@request("scopes")
def scopes(adapter: Adapter, arguments: Message) -> Message:
    """Variables of the program, queues, and in an epoch what its ops read and gave."""
    frame = number(arguments, "frameId")
    session = adapter.session
    chip = (frame - 1) // _FRAMES
    found: list[Message] = []
    op = session.engine.op_now
    if op is not None and (frame - 1) % _FRAMES == 0 and op.target_device == chip:
        found.append(_scope(adapter, f"op {op.name}", lambda _first, _count: op_children(adapter, op.name)))
    if session.engine.graphs:
        found.append(_scope(adapter, "values of this input", lambda _first, _count: values_children(adapter)))
    found.append(_scope(adapter, "variables", lambda _first, _count: _variables(session)))
    queues = _scope(adapter, "queues", lambda first, count: _queues(adapter, chip, first, count), expensive=True)
    found.append(queues)
    return {"scopes": found}


def _scope(adapter: Adapter, name: str, children: Children, *, expensive: bool = False) -> Message:
    return {"name": name, "variablesReference": adapter.handle(children), "expensive": expensive}


def _variables(session: Session) -> list[Message]:
    variables = session.engine.variables
    known = session.engine.call(variables.snapshot) if variables is not None else {}
    return [
        {"name": name, "value": str(value), "type": "int", "variablesReference": 0, "evaluateName": name}
        for name, value in known.items()
    ]


def _queues(adapter: Adapter, chip: int, first: int, count: int) -> list[Message]:
    queues = [item for item in adapter.session.netlist.queues.values() if item.target_device == chip]
    part = queues[first : first + count] if count else queues
    return [queue_variable(adapter, item) for item in part]


def _children(adapter: Adapter, arguments: Message) -> Children:
    """Of a variablesReference. Raises HostError."""
    reference = number(arguments, "variablesReference")
    if not 1 <= reference <= len(adapter.handles):
        raise HostError(f"there is no variablesReference {reference}: it was of an earlier stop")
    return adapter.handles[reference - 1]


@request("variables")
def variables(adapter: Adapter, arguments: Message) -> Message:
    """What is below a scope or a variable."""
    first = number(arguments, "start", 0)
    count = number(arguments, "count", 0)
    return {"variables": _children(adapter, arguments)(first, count)}


@request("setVariable")
def set_variable(adapter: Adapter, arguments: Message) -> Message:
    """What is below a scope or a variable: a variable of the program, a tensor or one of its tiles."""
    name = str(arguments["name"])
    known = len(adapter.handles)
    found = next((item for item in _children(adapter, arguments)(0, 0) if item["name"] == name), None)
    del adapter.handles[known:]
    if found is None:
        raise HostError(f"there is no {name} here")
    if "presentationHint" in found:
        raise HostError(f"{name} cannot be changed: its tensors can, and their tiles")
    return _assign(adapter, found["evaluateName"], str(arguments["value"]))


@request("setExpression")
def set_expression(adapter: Adapter, arguments: Message) -> Message:
    """A variable of the program, a tensor or `TENSOR tile T,R,C`."""
    return _assign(adapter, str(arguments["expression"]).strip(), str(arguments["value"]))


def _assign(adapter: Adapter, target: str, text: str) -> Message:
    """A number, or the array of a file; what the machine holds of it then."""
    if target.startswith("$"):
        set_to(adapter.session, target, text)
    else:
        of, tile, rest = split_tile(target)
        if rest.strip():
            raise HostError(f"{target}: nothing comes after the tile")
        adapter.session.write(of, values_of(text), tile)
    adapter.changed()
    return {"value": _value(adapter, target)["result"]}


@request("evaluate")
def evaluate(adapter: Adapter, arguments: Message) -> Message:
    """A tensor or a tile of it, an expression; in the console a command of `buda-emu debug`."""
    text = str(arguments["expression"]).strip()
    context = arguments.get("context", "watch")
    if context == "repl":
        return _command(adapter, text)
    return _value(adapter, text, names_only=context == "hover")


def _value(adapter: Adapter, text: str, *, names_only: bool = False) -> Message:
    session = adapter.session
    queue = session.netlist.queues.get(text)
    if queue is not None:
        return _shown(queue_variable(adapter, queue))
    if re.fullmatch(r"\$\w+", text):
        return {"result": f"{int(session.evaluate(text))}", "type": "int", "variablesReference": 0}
    of, tile, _ = split_tile(text)
    try:
        adapter.tensor(of)
    except HostError:
        if tile is not None or (names_only and "(" not in text and "[" not in text and text not in session.names.ops):
            raise
        return {"result": f"{session.evaluate(text):g}", "type": "float", "variablesReference": 0}
    return _shown(tensor_variable(adapter, text, of) if tile is None else tile_variable(adapter, of, tile))


def _shown(variable: Message) -> Message:
    """What a variable is, as the answer of an expression."""
    kept = ("type", "variablesReference", "memoryReference", "indexedVariables")
    return {"result": variable["value"], **{key: variable[key] for key in kept if key in variable}}


def _command(adapter: Adapter, line: str) -> Message:
    session = adapter.session
    before = session.stop
    word = line.split()[0] if line else ""
    if adapter.running and word and find(word).group in ("going", "going back"):
        raise HostError("the program runs: pause first")
    found = execute(adapter.console, line)
    if session.stop is not before:
        stop = session.stop
        adapter.moved()
        adapter.then = lambda: adapter.tell(stop)
    elif word and find(word).group == "changing":
        adapter.changed()
    if found.kind == "breakpoint" or line.split()[:1] in (["delete"], ["d"]):
        known = set(session.breakpoints.items)
        adapter.by_source = {kind: [n for n in own if n in known] for kind, own in adapter.by_source.items()}
    return {"result": "\n".join(found.lines), "variablesReference": 0}


@request("completions")
def completions(adapter: Adapter, arguments: Message) -> Message:
    """Of the console's commands."""
    text = str(arguments["text"])
    first = 1 if adapter.client.get("columnsStartAt1", True) else 0
    column = number(arguments, "column") - first
    begin, offers = complete(adapter.console, text[:column])
    return {"targets": [{"label": offer, "start": begin + first, "length": column - begin} for offer in offers]}


@request("readMemory")
def read_memory(adapter: Adapter, arguments: Message) -> Message:
    """Bytes of an entry as they lie in the device's memory, all buffers of its grid one after the other."""
    offset = number(arguments, "offset", 0)
    count = number(arguments, "count")
    data = adapter.session.read_bytes(str(arguments["memoryReference"]))
    start = max(0, offset)
    part = data[start : start + max(0, count - (start - offset))]
    return {
        "address": f"{start:#x}",
        "data": base64.b64encode(part).decode(),
        "unreadableBytes": max(0, count - len(part) - (start - offset)),
    }


@request("writeMemory")
def write_memory(adapter: Adapter, arguments: Message) -> Message:
    """The same bytes; what does not fit is refused, or left out where the editor allows it. The machine holds values: a
    client is told to read what its format makes of them."""
    reference = str(arguments["memoryReference"])
    offset = number(arguments, "offset", 0)
    data = base64.b64decode(str(arguments["data"]), validate=True)
    if arguments.get("allowPartial"):
        data = data[: max(0, len(adapter.session.read_bytes(reference)) - max(0, offset))]
    adapter.session.write_bytes(reference, offset, data)
    adapter.changed()
    if adapter.client.get("supportsMemoryEvent"):
        adapter.after(
            lambda: adapter.channel.event("memory", memoryReference=reference, offset=offset, count=len(data))
        )
    return {"bytesWritten": len(data)}


@request("exceptionInfo")
def exception_info(adapter: Adapter, arguments: Message) -> Message:  # noqa: ARG001
    """Why a program failed, or where the NaN is."""
    stop = adapter.session.stop
    error = stop.error
    if isinstance(error, ProgramError):
        details = "\n".join(why_not(adapter.session).lines)
        return {
            "exceptionId": f"program error: {error.kind}",
            "description": error.problem,
            "breakMode": "unhandled",
            "details": {"message": details, "typeName": "ProgramError"},
        }
    op = adapter.session.engine.op_now
    details = "\n".join(whole(adapter.session.tensor(f"op:'{op.name}'")).lines) if op is not None else ""
    return {
        "exceptionId": "NaN",
        "description": stop.text,
        "breakMode": "always",
        "details": {"message": details},
    }


@request("source")
def source(adapter: Adapter, arguments: Message) -> Message:  # noqa: ARG001
    """The netlist inside of an image."""
    return {"content": "\n".join(adapter.session.names.lines), "mimeType": "text/x-yaml"}


@request("loadedSources")
def loaded_sources(adapter: Adapter, arguments: Message) -> Message:  # noqa: ARG001
    """The netlist."""
    return {"sources": [adapter.source()]}
