"""Finds the origin of an output that is all zero, or not finite: the first op upstream whose own operands are sound."""

from collections import deque
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.runtime.machine.listeners import Listener
from buda_emu.netlist.model import Netlist, Op
from buda_emu.support.records import dataclass

Flaw = Literal["zero", "not finite"]


@dataclass(slots=True, eq=False)
class Flaws(Listener):
    """A listener that records, for the results of each op and for each queue that is read, whether all of it was zero,
    or any of it not finite."""

    found: dict[str, set[Flaw]] = field(default_factory=dict[str, set[Flaw]])

    def queue_value(self, queue: str, tiles: NDArray[np.float32], inputs: int) -> None:  # noqa: ARG002
        """Record the flaws of entries that an epoch reads from a queue."""
        self._add_flaws(queue, tiles)

    def op_value(self, op: Op, tiles: NDArray[np.float32], inputs: int) -> None:  # noqa: ARG002
        """Record the flaws of an op's result."""
        self._add_flaws(op.name, tiles)

    def _add_flaws(self, name: str, tiles: NDArray[np.float32]) -> None:
        """Update the record of an op or queue by more of its tiles: it stays "zero" only while all of them are zero,
        and is "not finite" once any element is."""
        before = self.found.get(name)
        if np.isfinite(tiles).all():
            flaws: set[Flaw] = set()
        else:
            flaws = {"not finite"}
        if not tiles.any():
            flaws.add("zero")
        if before is not None:  # zero as long as all of it was, not finite as soon as any of it is
            flaws = {flaw for flaw in before | flaws if flaw == "not finite" or (flaw in before and flaw in flaws)}
        self.found[name] = flaws


class OriginsKnownError(Exception):
    """Ends a run that is only made to find origins, once all of them are known."""


class OriginSearch(Flaws):
    """A listener that finds where flaws of outputs began. It raises OriginsKnownError as soon as an origin is known for
    each of them; that an output is all zero is only known when everything has run."""

    def __init__(self, netlist: Netlist, flaws: Mapping[str, Flaw]) -> None:
        """`flaws`: by the queue of the output."""
        super().__init__()
        self._netlist = netlist
        self._flaws = flaws
        self._outputs_of: dict[str, list[str]] = {}
        for output, flaw in flaws.items():
            if flaw == "not finite":
                self._outputs_of.setdefault(netlist.queues[output].input, []).append(output)
        self._known: dict[str, str] = {}

    def op_value(self, op: Op, tiles: NDArray[np.float32], inputs: int) -> None:
        """Record the flaws of an op's result, and if it feeds an output with a flaw, look for the origin. Raises
        OriginsKnownError once all origins are known."""
        super().op_value(op, tiles, inputs)
        outputs = self._outputs_of.get(op.name, ())
        if not outputs or "not finite" not in self.found[op.name]:
            return
        for output in outputs:
            origin = locate_origin(self._netlist, self, output, "not finite")
            if origin:
                self._known.setdefault(output, origin)
        if len(self._known) == len(self._flaws):
            raise OriginsKnownError

    @property
    def origins(self) -> dict[str, str]:
        """The origin of each output's flaw, as `locate_origin` returns it; "" where one cannot be decided."""
        later = {
            output: locate_origin(self._netlist, self, output, flaw)
            for output, flaw in self._flaws.items()
            if output not in self._known
        }
        return {**later, **self._known}


def locate_origin(netlist: Netlist, flaws: Flaws, output: str, flaw: Flaw) -> str:
    """Return "op x", or "queue x" for one that the host fills, where the flaw of an output began: the first op upstream
    that has the flaw while none of its operands has. "" where that cannot be decided."""
    seen: set[str] = set()
    ahead = deque([netlist.queues[output].input])
    while ahead:
        name = ahead.popleft()
        if name in seen:
            continue
        seen.add(name)
        queue = netlist.queues.get(name)
        if queue is not None:
            if queue.host_fed and name in flaws.found and flaw in flaws.found[name]:
                return f"queue {name}"
            if not queue.host_fed:
                ahead.append(queue.input)
            continue
        op = netlist.ops.get(name)
        if op is None or (name in flaws.found and flaw not in flaws.found[name]):
            continue
        if name in flaws.found and not any(_operand_has(netlist, flaws, source, flaw) for source in op.inputs):
            return f"op {name}"
        ahead.extend(op.inputs)
    return ""


def _operand_has(netlist: Netlist, flaws: Flaws, name: str, flaw: Flaw) -> bool:
    """Return whether the queue or op of that name has the flaw. One that was not recorded passes on what it reads, so
    its own source is asked; False where there is none."""
    for _ in range(len(netlist.ops) + 1):
        if name in flaws.found:
            return flaw in flaws.found[name]
        queue = netlist.queues.get(name)
        op = netlist.ops.get(name)
        if queue is not None and not queue.host_fed:
            name = queue.input
        elif op is not None and op.inputs:
            name = op.inputs[0]
        else:
            break
    return False
