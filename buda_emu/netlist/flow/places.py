"""Where the words of an instruction stand."""

from buda_emu.netlist.model import Declare, Param, VarInst
from buda_emu.netlist.nodes import Mapping, Mark, Scalar, Sequence


def operand_mark(step: VarInst, index: int) -> Mark:
    """One word of a varinst."""
    items = step.source.items if isinstance(step.source, Sequence) else ()
    return items[index].mark if index < len(items) else step.at()


def name_mark(step: Declare | Param, name: str) -> Mark:
    """A name that is declared."""
    source = step.source
    keys = [key for key, _ in source.pairs] if isinstance(source, Mapping) else ()
    items = source.items if isinstance(source, Sequence) else keys
    found = (item.mark for item in items if isinstance(item, Scalar) and item.text == name)
    return next(found, step.at())
