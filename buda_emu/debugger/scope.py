"""The meaning of names in expressions at a moment of a machine."""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from buda_emu.debugger.expressions.tree import Tensor
from buda_emu.debugger.machine.steps import Steps
from buda_emu.debugger.names import Names
from buda_emu.debugger.tensors import Found
from buda_emu.device.channel import Ram
from buda_emu.errors import HostError, ProgramError
from buda_emu.records import dataclass


@dataclass(frozen=True, slots=True)
class MomentScope:
    """Is an `expressions.evaluate.Scope`. `find`: a tensor, of the run, or as precision "ideal" has it."""

    engine: Steps
    names: Names
    find: Callable[[Tensor, bool], Found]

    def tensor(self, which: Tensor, *, ideal: bool = False) -> NDArray[Any]:
        return self.find(which, ideal).values()

    def pointer(self, queue: Tensor, which: str) -> int:
        channel = self.engine.channels[self.names.queue(queue.name).name]
        if isinstance(channel, Ram):
            if which not in ("rd", "wr"):
                raise HostError(f"{which}({queue.name}): a ram has rd and wr only")
            return channel.rd if which == "rd" else channel.wr
        ring = channel.ring
        return {"rd": ring.rd, "wr": ring.wr, "local": ring.local, "occupancy": ring.occupancy}[which]

    def variable(self, name: str) -> int:
        if self.engine.variables is None:
            raise HostError(f"{name}: no program runs")
        try:
            return self.engine.variables.value(name)
        except ProgramError as error:
            raise HostError(str(error)) from None

    def word(self, name: str) -> int:
        engine = self.engine
        own = {
            "input": engine.done + 1 if engine.graphs else 0,
            "inputs": engine.input_count,
            "instruction": engine.count,
        }
        return own[name]
