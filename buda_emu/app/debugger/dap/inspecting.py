"""Requests that inspect: threads, frames, scopes, variables, memory, expressions."""

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from buda_emu.app.debugger.breakpoints import pointers_of
from buda_emu.app.debugger.console.changing import assign_variable, parse_values
from buda_emu.app.debugger.console.console import find_command, split_tile
from buda_emu.app.debugger.console.execute import complete, execute
from buda_emu.app.debugger.dap.adapter import Adapter, Message, integer_argument, request
from buda_emu.app.debugger.inspection import explain_stop
from buda_emu.app.debugger.session import Session
from buda_emu.app.debugger.tensors import TensorValue, summary, tensor_answer
from buda_emu.emulator.memory.channel import Ram
from buda_emu.netlist.model import Queue
from buda_emu.support.errors import HostError, ProgramError

T = TypeVar("T")
_MAX_ROW = 1024
"""Characters of a row of a tile; longer rows are cut, so that an editor shows a row as one line."""
_READ_ONLY: Message = {"presentationHint": {"attributes": ["readOnly"]}}


def queue_variable(adapter: Adapter, queue: Queue) -> Message:
    """Return a variable for a queue or ram: its pointers in one line; below it these, and the entries that were
    written."""
    session = adapter.session
    channel = session.engine.channels[queue.name]
    values = session.engine.call(lambda: pointers_of(channel))
    pointers = list(zip(("rd", "wr", "local"), values, strict=False))
    text = f"{queue.type} of {queue.entries} x {queue.df}, {', '.join(f'{name} {value}' for name, value in pointers)}"
    if not isinstance(channel, Ram):
        text += f", holds {channel.ring.occupancy}"

    def children(first: int, count: int) -> list[Message]:
        """Return the queue's pointers and those of its filled slots that belong to the page of `count` from
        `first`."""
        slots = session.engine.call(lambda: [slot for slot in range(queue.entries) if channel.view.label(slot)])
        rows: list[Message] = [
            {"name": name, "value": str(value), "type": "pointer", "variablesReference": 0, **_READ_ONLY}
            for name, value in pointers
        ]
        for slot in _rows_of_page(slots, first, count):
            rows.append(tensor_variable(adapter, f"[{slot}]", f"queue:'{queue.name}'[{slot}]"))
        return rows

    return {
        "name": session.names.display_name(queue.name),
        "value": text,
        "type": queue.type,
        "evaluateName": queue.name,
        "variablesReference": adapter.handle(children),
        **_READ_ONLY,
    }


def _rows_of_page(rows: Sequence[T], first: int, count: int) -> Sequence[T]:
    """Return `count` rows from number `first` on; a count of 0 means all rows, whatever `first` is."""
    if count:
        return rows[first : first + count]
    return rows


def tensor_variable(adapter: Adapter, name: str, reference: str) -> Message:
    """Return a variable for a tensor: its figures in one line; below it tiles with rows. It can be read as memory,
    too."""
    try:
        tensor = adapter.tensor(reference)
    except HostError as error:
        return {"name": name, "value": str(error), "variablesReference": 0, **_READ_ONLY}
    return {
        "name": name,
        "value": tensor_text(tensor),
        "type": tensor.df,
        "evaluateName": reference,
        "memoryReference": reference,
        "indexedVariables": len(tensor.tiles),
        "variablesReference": adapter.handle(lambda first, count: _tile_variables(adapter, reference, first, count)),
    }


def tensor_text(tensor: TensorValue) -> str:
    """Return the figures of a tensor, without its name."""
    return summary(tensor).partition(": ")[2]


def _tile_variables(adapter: Adapter, reference: str, first: int, count: int) -> list[Message]:
    """Return variables for `count` tiles of a tensor from number `first` on; a count of 0 means all."""
    tensor = adapter.tensor(reference)
    _, rows, columns = tensor.shape
    numbers = _rows_of_page(range(len(tensor.tiles)), first, count)
    places = ((number // (rows * columns), number // columns % rows, number % columns) for number in numbers)
    return [tile_variable(adapter, reference, place) for place in places]


def tile_variable(adapter: Adapter, reference: str, place: tuple[int, int, int]) -> Message:
    """Return a variable for a tile (t, row, column): its first and last element; below it rows. Raises HostError."""
    tensor = adapter.tensor(reference)
    number = tensor.number(*place)
    (height, width) = tensor.tile_dim
    values = tensor.tiles[number].reshape(32, 32)[:height, :width]
    name = f"tile {','.join(map(str, place))}"
    return {
        "name": name,
        "value": f"{values[0, 0]:.5g} ... {values[-1, -1]:.5g}",
        "indexedVariables": height,
        "evaluateName": f"{reference} {name}",
        "variablesReference": adapter.handle(
            lambda first, count: _row_variables(adapter.tensor(reference), number, first, count)
        ),
    }


def _row_variables(tensor: TensorValue, number: int, first: int, count: int) -> list[Message]:
    """Return variables for `count` rows of tile `number` from row `first` on; a count of 0 means all."""
    height, width = tensor.tile_dim
    values = tensor.tiles[number].reshape(32, 32)[:height, :width].tolist()
    last = first + count if count else height
    return [
        {
            "name": f"row {row}",
            "value": "  ".join(f"{element:.5g}" for element in values[row])[:_MAX_ROW],
            "variablesReference": 0,
            **_READ_ONLY,
        }
        for row in range(first, min(last, height))
    ]


def op_children(adapter: Adapter, name: str) -> list[Message]:
    """Return variables for the operands of an op, and for its result where it has run."""
    session = adapter.session
    op = session.names.ops[name]
    variables = [
        tensor_variable(adapter, f"input {position}: {source}", _reference_to(session, source))
        for position, source in enumerate(op.inputs)
    ]
    if name in session.engine.values:
        variables.append(tensor_variable(adapter, f"result of {name}", f"op:'{name}'"))
    return variables


def _reference_to(session: Session, name: str) -> str:
    """Return the text by which expressions refer to a queue or op of the netlist, such as `op:'exp'`."""
    kind = "queue" if name in session.netlist.queues else "op"
    return f"{kind}:'{name}'"


def values_children(adapter: Adapter) -> list[Message]:
    """Return variables for the entries that the epoch has read, and the results of its ops, for the current input."""
    session = adapter.session
    return [tensor_variable(adapter, name, _reference_to(session, name)) for name in list(session.engine.values)]


Children = Callable[[int, int], list[Message]]
_FRAMES = 16
"""Frames of a chip at most: the id of a frame is its chip's number times this, plus its level."""


@request("threads")
def threads(adapter: Adapter, arguments: Message) -> Message:  # noqa: ARG001
    """Handle `threads`: one for each chip."""
    return {"threads": [{"id": chip + 1, "name": f"chip {chip}"} for chip in adapter.chips()]}


def frames_of(adapter: Adapter, chip: int) -> list[Message]:
    """Return the frames of a chip, innermost first: the op that runs on it, its graphs in the epoch, the program."""
    engine = adapter.session.engine
    source = adapter.source()
    if engine.instruction_now is None or not engine.program:
        texts = {"start": "before the first program", "end": "all programs have run"}
        return [_frame_message(chip, 0, texts.get(adapter.session.stop.reason, "between programs"), source, 1)]
    frames = [*_epoch_frames(adapter.session, chip)]
    place = engine.call(engine.place)
    loops = "".join(f", round {loop.round} of {loop.rounds}" for loop in place.rounds)
    frames.append((f"{engine.program} [{engine.index}]{loops}", place.line))
    return [_frame_message(chip, level, name, source, line) for level, (name, line) in enumerate(frames)]


def _epoch_frames(session: Session, chip: int) -> Iterator[tuple[str, int]]:
    """Yield name and line of the op that runs on the chip, and of the graphs of the epoch there."""
    engine = session.engine
    op = engine.op_now
    if op is not None and op.target_device == chip:
        after = "after " if session.stop.position.step % 2 else ""
        yield f"{after}{op.name} ({op.type})", op.at().line
    input_number = min(engine.done, engine.input_count - 1) + 1
    for name in engine.graphs:
        graph = session.netlist.graphs[name]
        if graph.target_device == chip:
            yield f"epoch {name}, input {input_number} of {engine.input_count}", graph.at().line


def _frame_message(chip: int, level: int, name: str, source: Message, line: int) -> Message:
    """Return a frame of the protocol at one level of a chip."""
    return {"id": chip * _FRAMES + level + 1, "name": name, "line": line, "column": 1, "source": source}


@request("stackTrace")
def stack_trace(adapter: Adapter, arguments: Message) -> Message:
    """Handle `stackTrace`: the frames of a chip."""
    chip = integer_argument(arguments, "threadId") - 1
    if chip not in adapter.chips():
        raise HostError(
            f"there is no thread {chip + 1}; there are {', '.join(str(other + 1) for other in adapter.chips())}"
        )
    frames = frames_of(adapter, chip)
    first = integer_argument(arguments, "startFrame", 0)
    levels = integer_argument(arguments, "levels", 0)
    part = frames[first : first + levels] if levels else frames[first:]
    return {"stackFrames": part, "totalFrames": len(frames)}


@request("scopes")
def scopes(adapter: Adapter, arguments: Message) -> Message:
    """Handle `scopes`: the current op, tensors of the running input, variables of the program, and queues of the
    chip."""
    frame = integer_argument(arguments, "frameId")
    session = adapter.session
    chip = (frame - 1) // _FRAMES
    scope_list: list[Message] = []
    op = session.engine.op_now
    if op is not None and (frame - 1) % _FRAMES == 0 and op.target_device == chip:
        scope_list.append(
            _scope_message(adapter, f"op {op.name}", lambda _first, _count: op_children(adapter, op.name))
        )
    if session.engine.graphs:
        scope_list.append(
            _scope_message(adapter, "values of this input", lambda _first, _count: values_children(adapter))
        )
    scope_list.append(_scope_message(adapter, "variables", lambda _first, _count: _program_variables(session)))
    queues = _scope_message(
        adapter, "queues", lambda first, count: _queue_variables(adapter, chip, first, count), expensive=True
    )
    scope_list.append(queues)
    return {"scopes": scope_list}


def _scope_message(adapter: Adapter, name: str, children: Children, *, expensive: bool = False) -> Message:
    """Return a scope of the protocol; `children` makes its variables when the editor asks for them."""
    return {"name": name, "variablesReference": adapter.handle(children), "expensive": expensive}


def _program_variables(session: Session) -> list[Message]:
    """Return the protocol's variables for the `$` variables of the running program; none between programs."""
    variables = session.engine.variables
    if variables is None:
        return []
    return [
        {"name": name, "value": str(value), "type": "int", "variablesReference": 0, "evaluateName": name}
        for name, value in session.engine.call(variables.snapshot).items()
    ]


def _queue_variables(adapter: Adapter, chip: int, first: int, count: int) -> list[Message]:
    """Return variables for `count` queues of a chip from number `first` on; a count of 0 means all."""
    queues = [queue for queue in adapter.session.netlist.queues.values() if queue.target_device == chip]
    return [queue_variable(adapter, queue) for queue in _rows_of_page(queues, first, count)]


def _children_of(adapter: Adapter, arguments: Message) -> Children:
    """Return the function that lists the variables below the request's variablesReference. Raises HostError for one of
    an earlier stop."""
    reference = integer_argument(arguments, "variablesReference")
    if not 1 <= reference <= len(adapter.handles):
        raise HostError(f"there is no variablesReference {reference}: it was of an earlier stop")
    return adapter.handles[reference - 1]


@request("variables")
def variables(adapter: Adapter, arguments: Message) -> Message:
    """Handle `variables`: what is below a scope or a variable."""
    first = integer_argument(arguments, "start", 0)
    count = integer_argument(arguments, "count", 0)
    return {"variables": _children_of(adapter, arguments)(first, count)}


@request("setVariable")
def set_variable(adapter: Adapter, arguments: Message) -> Message:
    """Handle `setVariable`: change a variable of the program, a tensor or one of its tiles."""
    name = str(arguments["name"])
    handle_count = len(adapter.handles)
    children = _children_of(adapter, arguments)(0, 0)
    del adapter.handles[handle_count:]  # those of the children that were listed only for this
    target = next((variable for variable in children if variable["name"] == name), None)
    if target is None:
        raise HostError(f"there is no {name} here")
    if "presentationHint" in target:
        raise HostError(f"{name} cannot be changed: its tensors can, and their tiles")
    return _assign(adapter, target["evaluateName"], str(arguments["value"]))


@request("setExpression")
def set_expression(adapter: Adapter, arguments: Message) -> Message:
    """Handle `setExpression`: change a variable of the program, a tensor or `TENSOR tile T,R,C`."""
    return _assign(adapter, str(arguments["expression"]).strip(), str(arguments["value"]))


def _assign(adapter: Adapter, target: str, text: str) -> Message:
    """Assign a number, or the array of a .npy file, to a `$` variable, a tensor or a tile, and return the protocol's
    answer with the value that the machine then holds. Raises HostError."""
    if target.startswith("$"):
        assign_variable(adapter.session, target, text)
    else:
        of, tile, rest = split_tile(target)
        if rest.strip():
            raise HostError(f"{target}: nothing comes after the tile")
        adapter.session.write(of, parse_values(text), tile)
    adapter.announce_change()
    return {"value": _evaluate_text(adapter, target)["result"]}


@request("evaluate")
def evaluate(adapter: Adapter, arguments: Message) -> Message:
    """Handle `evaluate`: a tensor, a tile of it, or an expression; in the console a command of `buda-emu debug`."""
    text = str(arguments["expression"]).strip()
    context = arguments.get("context", "watch")
    if context == "repl":
        return _run_command(adapter, text)
    return _evaluate_text(adapter, text, names_only=context == "hover")


def _evaluate_text(adapter: Adapter, text: str, *, names_only: bool = False) -> Message:
    """Return the value of a queue, variable, tensor, tile or expression; `names_only` refuses a bare word that names
    nothing, which an editor sends for any text under the pointer. Raises HostError."""
    session = adapter.session
    queue = session.netlist.queues.get(text)
    if queue is not None:
        return _as_result(queue_variable(adapter, queue))
    if re.fullmatch(r"\$\w+", text):
        return {"result": f"{int(session.evaluate(text))}", "type": "int", "variablesReference": 0}
    of, tile, _ = split_tile(text)
    try:
        adapter.tensor(of)
    except HostError:
        is_bare_word = "(" not in text and "[" not in text and text not in session.names.ops
        if tile is not None or (names_only and is_bare_word):
            raise
        return {"result": f"{session.evaluate(text):g}", "type": "float", "variablesReference": 0}
    if tile is None:
        return _as_result(tensor_variable(adapter, text, of))
    return _as_result(tile_variable(adapter, of, tile))


def _as_result(variable: Message) -> Message:
    """Return a variable in the form of the result of an expression."""
    shared_fields = ("type", "variablesReference", "memoryReference", "indexedVariables")
    return {"result": variable["value"], **{key: variable[key] for key in shared_fields if key in variable}}


def _run_command(adapter: Adapter, line: str) -> Message:
    """Execute a command of the console and return its text as the result of an expression. If it moved the run or
    changed data, the editor is told after the response. Raises HostError for a move while the program runs."""
    session = adapter.session
    before = session.stop
    words = line.split()
    group = find_command(words[0]).group if words else ""
    if adapter.running and group in ("going", "going back"):
        raise HostError("the program runs: pause first")
    result = execute(adapter.console, line)
    if session.stop is not before:
        stop = session.stop
        adapter.drop_references()
        adapter.then = lambda: adapter.send_stop(stop)
    elif group == "changing":
        adapter.announce_change()
    if result.kind == "breakpoint" or words[:1] in (["delete"], ["d"]):
        _forget_deleted_breakpoints(adapter)
    return {"result": "\n".join(result.lines), "variablesReference": 0}


def _forget_deleted_breakpoints(adapter: Adapter) -> None:
    """Drop the numbers of breakpoints that a command of the console has deleted."""
    remaining = adapter.session.breakpoints.items
    for kind, numbers in adapter.by_source.items():
        adapter.by_source[kind] = [number for number in numbers if number in remaining]


@request("completions")
def completions(adapter: Adapter, arguments: Message) -> Message:
    """Handle `completions` for commands of the console."""
    text = str(arguments["text"])
    first = 1 if adapter.client.get("columnsStartAt1", True) else 0
    column = min(integer_argument(arguments, "column", least=first) - first, len(text))
    begin, offers = complete(adapter.console, text[:column])
    return {"targets": [{"label": offer, "start": begin + first, "length": column - begin} for offer in offers]}


@request("readMemory")
def read_memory(adapter: Adapter, arguments: Message) -> Message:
    """Handle `readMemory`: bytes of an entry as they lie in the device's memory, all buffers of its grid one after the
    other. There is nothing before the entry: of bytes from a negative offset on, none is returned, and
    `unreadableBytes` says how many to skip."""
    offset = integer_argument(arguments, "offset", 0)
    count = integer_argument(arguments, "count", least=0)
    data = adapter.session.read_bytes(str(arguments["memoryReference"]))
    part = b"" if offset < 0 else data[offset : offset + count]
    return {
        "address": f"{offset:#x}",
        "data": base64.b64encode(part).decode(),
        "unreadableBytes": min(count, -offset) if offset < 0 else count - len(part),
    }


@request("writeMemory")
def write_memory(adapter: Adapter, arguments: Message) -> Message:
    """Handle `writeMemory` for the bytes of `readMemory`. Bytes beyond the end are refused, or left out where the
    editor allows it. The machine holds values, so the editor is told to read what the format makes of the bytes."""
    reference = str(arguments["memoryReference"])
    offset = integer_argument(arguments, "offset", 0)
    data = base64.b64decode(str(arguments["data"]), validate=True)
    if arguments.get("allowPartial"):
        data = data[: max(0, len(adapter.session.read_bytes(reference)) - max(0, offset))]
    adapter.session.write_bytes(reference, offset, data)
    adapter.announce_change()
    if adapter.client.get("supportsMemoryEvent"):
        adapter.run_after_answer(
            lambda: adapter.channel.event("memory", memoryReference=reference, offset=offset, count=len(data))
        )
    return {"bytesWritten": len(data)}


@request("exceptionInfo")
def exception_info(adapter: Adapter, arguments: Message) -> Message:  # noqa: ARG001
    """Handle `exceptionInfo`: why a program failed, or the figures of the tensor with the NaN."""
    stop = adapter.session.stop
    error = stop.error
    if isinstance(error, ProgramError):
        details = "\n".join(explain_stop(adapter.session).lines)
        return {
            "exceptionId": f"program error: {error.kind}",
            "description": error.problem,
            "breakMode": "unhandled",
            "details": {"message": details, "typeName": "ProgramError"},
        }
    op = adapter.session.engine.op_now
    details = ""
    if op is not None:
        details = "\n".join(tensor_answer(adapter.session.tensor(f"op:'{op.name}'")).lines)
    return {
        "exceptionId": "NaN",
        "description": stop.text,
        "breakMode": "always",
        "details": {"message": details},
    }


@request("source")
def source(adapter: Adapter, arguments: Message) -> Message:  # noqa: ARG001
    """Handle `source`: the netlist inside of an image."""
    return {"content": "\n".join(adapter.session.names.lines), "mimeType": "text/x-yaml"}


@request("loadedSources")
def loaded_sources(adapter: Adapter, arguments: Message) -> Message:  # noqa: ARG001
    """Handle `loadedSources`: the netlist."""
    return {"sources": [adapter.source()]}
