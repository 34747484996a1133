"""Pushes inputs, wherever they come from. Apart from `feed`: a plain run needs none of the tensors of files."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from buda_emu.verify.inputs.default import InputBlock
from buda_emu.verify.inputs.input_used import InputUsed

if TYPE_CHECKING:
    from buda_emu.machines.machines import Machines
    from buda_emu.runtime.emulator import Emulator


def push(
    emulator: "Emulator | Machines", blocks: Iterable[InputBlock], progress: Callable[[str], None] = lambda _: None
) -> tuple[InputUsed, ...]:
    """Push them all; says what was pushed."""
    queues = emulator.netlist.queues
    pushed: dict[str, InputUsed] = {}
    for block in blocks:
        progress(f"input {block.queue}")
        emulator.push(block.queue, block.array, block.slot)
        before = pushed.get(block.queue)
        entries = (before.shape[0] if before else 0) + block.array.shape[0]
        shape = (entries, *block.array.shape[1:])
        pushed[block.queue] = InputUsed(block.queue, queues[block.queue].df, shape, block.source)
        del block  # before the next is made
    return tuple(pushed.values())
