"""Queues and tensors as variables that an editor unfolds and changes: pointers, entries, tiles, rows."""

from buda_emu.debugger.breakpoints import pointers_of
from buda_emu.debugger.dap.adapter import Adapter
from buda_emu.debugger.dap.protocol import Message
from buda_emu.debugger.figures import summary
from buda_emu.debugger.tensors import Found
from buda_emu.device.channel import Ram
from buda_emu.errors import HostError
from buda_emu.netlist.model import Queue

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
    number, (height, width) = found.number(*place), found.tile_dim
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
