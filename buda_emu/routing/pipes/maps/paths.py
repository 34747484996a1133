"""What stands between an operand and its source: unpadding, TMs, padding."""

from buda_emu.netlist.model import Op, Pad
from buda_emu.routing.pipes.maps.edge import Path
from buda_emu.spec.blocking import Blocking, Shape

_NO_PAD = Pad()


def path_of(op: Op, index: int) -> Path:
    """Of operand `index`."""
    pads = [pads[index] if index < len(pads) else _NO_PAD for pads in (op.input_unpad, op.input_pad)]
    tms = op.input_tms[index] if index < len(op.input_tms) else ()
    return Path(tms, pads[0], pads[1])


def shape_after(source: Blocking, path: Path) -> Shape:
    """(t, tile rows, tile columns) of a source after its TMs; where one does not fit, what is left of it."""
    t, rows, columns = source.shape
    rows, columns = rows - path.unpad.rt, columns - path.unpad.ct
    for tm in path.tms:
        if tm.name == "transpose":
            rows, columns = columns, rows
        elif tm.name == "broadcast":
            factor = int(tm.args[1])
            t, rows, columns = (
                size * factor if axis == tm.args[0] else size
                for axis, size in zip("zrc", (t, rows, columns), strict=True)
            )
        elif tm.name == "pad":
            rows, columns = rows + int(tm.args[0]), columns + int(tm.args[1])
        elif tm.name == "hslice":
            t, columns = t * int(tm.args[0]), columns // int(tm.args[0])
        elif tm.name == "vslice":
            t, rows = t * int(tm.args[0]), rows // int(tm.args[0])
        elif tm.name == "hstack":
            t, columns = t // int(tm.args[0]), columns * int(tm.args[0])
        elif tm.name == "vstack":
            t, rows = t // int(tm.args[0]), rows * int(tm.args[0])
    return t, rows + path.pad.rt, columns + path.pad.ct
