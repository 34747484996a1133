"""One execute's queue settings with their values at that moment (NETLIST 3.5), and the texts they came from."""

from dataclasses import dataclass

from buda_emu.errors import ProgramError
from buda_emu.netlist.model import QueueSettings
from buda_emu.program.values import Variables


@dataclass(frozen=True, slots=True)
class EvaluatedSettings:
    """Settings of one queue. `source` keeps the texts, which later varinsts are matched against (NETLIST 4.3)."""

    source: QueueSettings
    prologue: bool
    epilogue: bool
    zero: bool
    read_only: bool
    rd_ptr_global: int
    rd_ptr_local: int
    wr_ptr_global: int
    rd_ptr_autoinc: int
    global_rdptr_autoinc: int
    global_wrptr_autoinc: int

    @property
    def queue(self) -> str:
        """The queue that they are for."""
        return self.source.queue


def evaluate(settings: QueueSettings, is_ram: bool, variables: Variables) -> EvaluatedSettings:
    """Settings with the variables' values now. Raises ProgramError naming queue and field.

    For a ram rd_ptr_local is not evaluated, for a queue wr_ptr_global is not (NETLIST 3.5).
    """

    def value(field: str, text: str) -> int:
        try:
            return variables.value(text)
        except ProgramError as error:
            error.within(f"queue_settings of {settings.queue}, {field}")
            error.queue = settings.queue
            raise

    for field, text in (("prologue", settings.prologue), ("epilogue", settings.epilogue)):
        if variables.is_param(text):
            raise ProgramError(
                f"queue_settings of {settings.queue}: {field} may not be the parameter {text}",
                kind="settings", queue=settings.queue,
            )  # fmt: skip
    return EvaluatedSettings(
        source=settings,
        prologue=bool(value("prologue", settings.prologue)),
        epilogue=bool(value("epilogue", settings.epilogue)),
        zero=bool(value("zero", settings.zero)),
        read_only=bool(value("read_only", settings.read_only)),
        rd_ptr_global=value("rd_ptr_global", settings.rd_ptr_global),
        rd_ptr_local=0 if is_ram else value("rd_ptr_local", settings.rd_ptr_local),
        wr_ptr_global=value("wr_ptr_global", settings.wr_ptr_global) if is_ram else 0,
        rd_ptr_autoinc=value("rd_ptr_autoinc", settings.rd_ptr_autoinc),
        global_rdptr_autoinc=value("global_rdptr_autoinc", settings.global_rdptr_autoinc),
        global_wrptr_autoinc=value("global_wrptr_autoinc", settings.global_wrptr_autoinc),
    )
