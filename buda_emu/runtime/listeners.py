"""What other parts may watch while a program runs: instructions, ops, queue traffic."""

from buda_emu.netlist.model import Instruction, Op
from buda_emu.program.values import Variables


class Listener:
    """Does nothing; override what you want to see. Called on the thread that called `Emulator.run`.

    Inputs of an epoch may run together: `inputs` says how many one call stands for.
    """

    def instruction(self, program: str, index: int, instruction: Instruction, variables: Variables) -> None:
        """An instruction is about to run."""

    def epoch_start(self, graphs: tuple[str, ...], inputs: int) -> None:
        """A temporal graph starts; `inputs` is its input_count."""

    def epoch_end(self, graphs: tuple[str, ...]) -> None:
        """It is done."""

    def op_start(self, op: Op, inputs: int) -> None:
        """An op is about to run for `inputs` inputs."""

    def op_end(self, op: Op, inputs: int) -> None:
        """It is done."""

    def queue_push(self, queue: str, slot: int) -> None:
        """An entry was written by the host or an op."""

    def queue_pop(self, queue: str, count: int) -> None:
        """Entries were freed by the host or a program."""
