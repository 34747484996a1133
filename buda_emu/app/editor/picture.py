"""The core grid beside an open text: the epoch at the cursor."""

from typing import Any

from buda_emu.app.editor.text import OpenText
from buda_emu.netlist.model import Netlist
from buda_emu.report.pictures.grid_svg import grid_svg


def picture_at(text: OpenText, netlist: Netlist | None, line: int) -> dict[str, Any]:
    """Return the grid of the epoch whose op is defined on `line`, which counts from 1, or last before it: the picture
    as `svg`, the `lines` that define the ops of the netlist, by name, and the names of the ops that are `shown`.

    `netlist` is that of the last version of the text without errors; without one the picture is empty.
    """
    if netlist is None:
        return {"svg": "", "lines": {}, "shown": []}
    lines: dict[str, int] = {}
    for op in netlist.ops.values():
        place = _line_of(text, op.written_name)
        if place:
            lines[op.name] = place
    above = [op for op in netlist.ops.values() if lines.get(op.name, line + 1) <= line]
    nearest = max(above, key=lambda op: lines[op.name], default=next(iter(netlist.ops.values()), None))
    epoch = None
    if nearest is not None:
        epoch = next((epoch for epoch in netlist.temporal_graphs if nearest.graph in epoch.graphs), None)
    if epoch is None:
        return {"svg": grid_svg(netlist, epochs=[]), "lines": lines, "shown": []}
    shown = [op.name for op in netlist.ops.values() if op.graph in epoch.graphs]
    return {"svg": grid_svg(netlist, epochs=[epoch.id]), "lines": lines, "shown": shown}


def _line_of(text: OpenText, op: str) -> int:
    """Return the line that defines an op, 0 for an op that the text does not have any more."""
    places = text.names.by_key.get(("op", op, ""), [])
    return next((name.line for name in places if name.defines), 0)
