"""The interface for stopping a program between two of its steps, inspecting its values and changing them: what a
debugger needs.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from buda_emu.netlist.model import Instruction, Op
from buda_emu.program.values import Variables

Tiles = NDArray[np.float32]
"""float32[inputs or 1, tiles, 1024]."""


class Stepper:
    """Lets everything pass; a subclass holds what it wants to see by not returning from a method.

    All calls come on the thread that runs the program. What a method raises ends the program, whose pointers go back to
    where the chunk of inputs began. `ops`: whether it is called around ops; `most_inputs`: how many inputs of an epoch
    may run together at most, None for as many as without it. Both may be changed at any time.
    """

    ops = False
    most_inputs: int | None = None

    def instruction(self, program: str, index: int, instruction: Instruction, variables: Variables) -> None:
        """An instruction is about to run."""

    def epoch(self, graphs: tuple[str, ...], inputs: int) -> None:
        """A temporal graph starts; `inputs` is its input_count."""

    def inputs(self, reads: Mapping[str, Sequence[int]], writes: Mapping[str, Sequence[int]], inputs: int) -> None:
        """So many inputs are about to run; `reads` and `writes`: a slot of each queue and ram for each of them."""

    def inputs_done(self, inputs: int) -> None:
        """Their results are in their queues and rams."""

    def read(self, queue: str, tiles: Tiles, inputs: int) -> None:
        """What the epoch read from a queue or ram. Only with `ops`, as what follows."""

    def op(self, op: Op, inputs: int) -> bool:  # noqa: ARG002
        """An op is about to run. False: it is skipped, and its result is zero."""
        return True

    def result(self, op: Op, tiles: Tiles, put: Callable[[Tiles], None] | None, inputs: int) -> None:
        """What an op gave; not to be kept. `put` replaces it; None where the op passes on the tensor that it reads, or
        adds to a sum."""
