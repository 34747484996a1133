"""An instruction as text, for messages: as it stands in a netlist, an execute with few of its settings."""

from buda_emu.netlist.model import Execute, Instruction, QueueSettings
from buda_emu.netlist.printer import instruction_text as written

_SHOWN_SETTINGS = 3


def instruction_text(instruction: Instruction, queue: str = "") -> str:
    """The instruction as it stands in a netlist; of an execute's settings those of `queue`, else the first few."""
    if isinstance(instruction, Execute):
        return f"execute: {{graph_name: {instruction.graph}, queue_settings: {_settings(instruction, queue)}}}"
    return written(instruction)


def _settings(instruction: Execute, queue: str) -> str:
    chosen = [item for item in instruction.queue_settings if item.queue == queue] if queue else []
    shown = chosen or list(instruction.queue_settings[:_SHOWN_SETTINGS])
    left = len(instruction.queue_settings) - len(shown)
    parts = [f"{item.queue}: {{{_written_settings(item)}}}" for item in shown] + (["..."] if left else [])
    return f"{{{', '.join(parts)}}}"


_SETTINGS = (
    "prologue", "epilogue", "zero", "read_only", "rd_ptr_local", "rd_ptr_global", "wr_ptr_global", "rd_ptr_autoinc",
    "global_rdptr_autoinc", "global_wrptr_autoinc",
)  # fmt: skip


def _written_settings(settings: QueueSettings) -> str:
    """Those settings that are written in the netlist."""
    written = ((name, getattr(settings, name)) for name in _SETTINGS if _is_written(settings, name))
    return ", ".join(f"{name}: {value}" for name, value in written)


def _is_written(settings: QueueSettings, name: str) -> bool:
    value = getattr(settings, name)
    return value != "" and settings.at(name) != settings.at()
