"""Where in a program something happens: instruction, loop rounds, variables."""

from collections.abc import Mapping

from buda_emu.netlist.model import (
    Allocate,
    Deallocate,
    Declare,
    EndLoop,
    Execute,
    Instruction,
    Loop,
    Param,
    QueueSettings,
    VarInst,
)
from buda_emu.records import dataclass
from buda_emu.stopped import Round

_SHOWN_SETTINGS = 3


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


def instruction_text(instruction: Instruction, queue: str = "") -> str:
    """The instruction as it stands in a netlist; of an execute's settings those of `queue`, else the first few."""
    match instruction:
        case Execute():
            return f"execute: {{graph_name: {instruction.graph}, queue_settings: {_settings(instruction, queue)}}}"
        case VarInst():
            return f"varinst: [{', '.join((instruction.out, instruction.opcode, *instruction.args))}]"
        case Loop():
            return f"loop: {instruction.count}"
        case EndLoop():
            return "endloop"
        case Declare():
            values = ", ".join(f"{name}: {text}" for name, text in instruction.variables)
            return f"{instruction.kind}: {{{values}}}"
        case Param():
            return f"param: [{', '.join(instruction.names)}]"
        case Allocate():
            return f"allocate_queue: [{', '.join(instruction.queues)}]"
        case Deallocate():
            return f"deallocate_queue: [{', '.join(instruction.queues)}]"


def _settings(instruction: Execute, queue: str) -> str:
    chosen = [item for item in instruction.queue_settings if item.queue == queue] if queue else []
    shown = chosen or list(instruction.queue_settings[:_SHOWN_SETTINGS])
    left = len(instruction.queue_settings) - len(shown)
    parts = [f"{item.queue}: {{{settings_text(item)}}}" for item in shown] + (["..."] if left else [])
    return f"{{{', '.join(parts)}}}"


_SETTINGS = (
    "prologue", "epilogue", "zero", "read_only", "rd_ptr_local", "rd_ptr_global", "wr_ptr_global", "rd_ptr_autoinc",
    "global_rdptr_autoinc", "global_wrptr_autoinc",
)  # fmt: skip


def settings_text(settings: QueueSettings) -> str:
    """Those settings that are written in the netlist."""
    written = ((name, getattr(settings, name)) for name in _SETTINGS if _is_written(settings, name))
    return ", ".join(f"{name}: {value}" for name, value in written)


def _is_written(settings: QueueSettings, name: str) -> bool:
    value = getattr(settings, name)
    return value != "" and settings.at(name) != settings.at()
