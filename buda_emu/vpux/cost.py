"""A labelled model of durations. Nobody publishes real ones: its parameters are assumptions, always printed."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from buda_emu.checker.suggest import near
from buda_emu.errors import HostError
from buda_emu.vpux.program import Task, read_uses, written_uses


@dataclass(frozen=True, slots=True)
class CostModel:
    """Cycles that a task takes, by assumption.

    A transfer takes `dma_start` and one cycle for each `dma_bytes`; a kernel takes `kernel_start` and one cycle for
    each `kernel_bytes` that it reads and writes; anything else takes one cycle.
    """

    dma_start: int = 500
    dma_bytes: int = 32
    kernel_start: int = 2000
    kernel_bytes: int = 8

    @classmethod
    def from_text(cls, text: str) -> "CostModel":
        """From `dma_bytes=64,kernel_start=1000`; what is not named keeps its value. Raises HostError."""
        known = [field.name for field in fields(cls)]
        values: dict[str, int] = {}
        for item in filter(None, text.split(",")):
            name, _, value = item.partition("=")
            if name not in known:
                raise HostError(f"the model has no parameter {name!r}: {', '.join(known)}. {near(name, known)}".strip())
            if not value.isdecimal() or (name.endswith("bytes") and not int(value)) or len(value) > 12:
                raise HostError(
                    f"{name} is an integer number of {'bytes' if name.endswith('bytes') else 'cycles'}: {item}"
                )
            values[name] = int(value)
        return replace(cls(), **values)

    @property
    def parameters(self) -> Mapping[str, int]:
        """By name, for print."""
        return {field.name: int(getattr(self, field.name)) for field in fields(self)}

    def duration(self, task: Task) -> int:
        """Cycles of a task."""
        uses = [*read_uses(task.op), *written_uses(task.op)]
        sizes = [use.type.compact_bytes for use in uses if use.type is not None and use.type.is_buffer]
        if task.unit.startswith("DMA"):
            return self.dma_start + -(-max(sizes, default=0) // self.dma_bytes)
        if task.unit.startswith("SHAVE"):
            return self.kernel_start + -(-sum(sizes) // self.kernel_bytes)
        return 1
