"""Where in a program something happens: instruction, loop rounds, variables."""

from collections.abc import Mapping

from buda_emu.netlist.model import Instruction
from buda_emu.records import dataclass
from buda_emu.stopped import Round


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction while it runs."""

    program: str
    index: int
    instruction: Instruction
    rounds: tuple[Round, ...]  # outermost first
    variables: Mapping[str, int]

    @property
    def line(self) -> int:
        """Of the instruction."""
        return self.instruction.at().line

    def __str__(self) -> str:
        kind = type(self.instruction).__name__.lower()
        return f"program {self.program}, instruction {self.index} ({kind}, line {self.line})"
