"""What other parts may watch while a program runs: instructions, ops, queue traffic, tensors."""

import numpy as np
from numpy.typing import NDArray

from buda_emu.netlist.model import Instruction, Op
from buda_emu.program.values import VariableValues


def read_only(array: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same memory as an array that nobody can write to, nor make writable: whoever watches a machine is shown its
    own tensors."""
    return np.asarray(memoryview(array.data).toreadonly())


class Listener:
    """Does nothing; override what you want to see (docs/run/listeners.md).

    A program's events come on the thread that runs it, the host's pushes and pops on the thread that does them. A
    listener may push, pop and read, and must not wait for another thread. Its exception stops the program, or the push
    or pop, and comes out of it; what was done before stays done and the machine can go on.

    Inputs of an epoch may run together: `inputs` says how many one call stands for.
    """

    def instruction(self, program: str, index: int, instruction: Instruction, variables: VariableValues) -> None:
        """An instruction is about to run. The variables can be read, not changed."""

    def epoch_start(self, graphs: tuple[str, ...], inputs: int) -> None:
        """A temporal graph starts; `inputs` is its input_count."""

    def epoch_end(self, graphs: tuple[str, ...]) -> None:
        """It is done."""

    def op_start(self, op: Op, inputs: int) -> None:
        """An op is about to run for `inputs` inputs."""

    def op_end(self, op: Op, inputs: int) -> None:
        """It is done."""

    def queue_value(self, queue: str, tiles: NDArray[np.float32], inputs: int) -> None:
        """What the epoch read from a queue or ram for `inputs` inputs: [1 or inputs, tiles, 1024], read-only, not to
        be kept: their memory is used again. Tiles are 32x32, row by row, in the order [t, row, col]; a first axis of 1
        serves every input."""

    def op_value(self, op: Op, tiles: NDArray[np.float32], inputs: int) -> None:
        """What the op gave, as in `queue_value`, after relu, accumulation and output conversion."""

    def queue_push(self, queue: str, slot: int) -> None:
        """An entry was written by the host or an op; those of ops are told when a chunk of inputs is done."""

    def queue_pop(self, queue: str, count: int) -> None:
        """Entries were freed by the host, by a program's pointer settings or by global_rdptr_autoinc."""
