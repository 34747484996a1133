"""One execute's settings of a queue with what is known of their values (NETLIST 3.5)."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from buda_emu.netlist.flow.notes import Notes
from buda_emu.netlist.flow.variables import Value, Variables
from buda_emu.netlist.model import Queue, QueueSettings
from buda_emu.spec.operands import is_variable

EXCLUDED, ZEROED = "V275", "V289"
FLAGS: Final = ("prologue", "epilogue", "zero", "read_only")
NUMBERS: Final = (
    "rd_ptr_global", "rd_ptr_local", "wr_ptr_global", "rd_ptr_autoinc", "global_rdptr_autoinc", "global_wrptr_autoinc",
)  # fmt: skip


class KnownSettings(NamedTuple):
    """Values by field, None where they cannot be said; `texts`: the variables that they name, as written."""

    source: QueueSettings
    values: Mapping[str, Value]
    texts: frozenset[str]

    @property
    def queue(self) -> str:
        """The queue that they are for."""
        return self.source.queue

    def number(self, field: str) -> Value:
        """Of a pointer or autoincrement."""
        return self.values[field]

    def flag(self, field: str) -> bool | None:
        """Of prologue, epilogue, zero or read_only."""
        value = self.values[field]
        return None if value is None else bool(value)

    @property
    def still(self) -> bool | None:
        """Does every input read the same entry: prologue or epilogue (NETLIST 4.4)?"""
        flags = (self.flag("prologue"), self.flag("epilogue"))
        return True if True in flags else None if None in flags else False

    def changed(self, text: str, value: Value) -> "KnownSettings":
        """With another value of the variable `text`: what a varinst does to the queues that were executed before."""
        return self._replace(
            values={field: value if getattr(self.source, field) == text else old for field, old in self.values.items()}
        )

    def forgotten(self) -> "KnownSettings":
        """Without the values."""
        return self._replace(values=dict.fromkeys(self.values))


def evaluated(source: QueueSettings, queue: Queue, variables: Variables, notes: Notes) -> KnownSettings:
    """The settings at an execute. For a ram rd_ptr_local is not evaluated, for a queue wr_ptr_global is not."""
    unused = "rd_ptr_local" if queue.is_ram else "wr_ptr_global"
    values: dict[str, Value] = {unused: 0}
    texts: set[str] = set()
    for field in (*FLAGS, *NUMBERS):
        text = getattr(source, field)
        if field == unused:
            continue
        values[field] = variables.value(text, source.at(field), f"{field} of {queue.name}: ")
        if is_variable(text):
            texts.add(text)
        if field in ("prologue", "epilogue") and variables.is_param(text):
            what = f"{field} of {queue.name} is the parameter {text}; it may not depend on the caller"
            notes.add(EXCLUDED, source.at(field), what)
    return KnownSettings(source, values, frozenset(texts))


def differ(one: KnownSettings, other: KnownSettings) -> bool:
    """Are the settings of two graphs of one temporal graph certain to differ (NETLIST 4.3 step 1)?"""
    if one.source != other.source:
        return True
    pairs = ((value, other.values[field]) for field, value in one.values.items())
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def require_sense(settings: KnownSettings, queue: Queue, notes: Notes, *, sums: bool) -> None:
    """NETLIST 4.3 steps 3a and 3b. `sums`: a gradient op adds up in this queue."""
    source, zero, prologue = settings.source, settings.flag("zero"), settings.flag("prologue")
    if zero and prologue is False:
        notes.add(EXCLUDED, source.at("zero"), f"zero without prologue on {queue.name}", "set prologue, too")
    elif zero and not sums:
        notes.add(ZEROED, source.at("zero"), f"zero on {queue.name}, which no gradient op feeds")
    if queue.is_ram and settings.number("global_wrptr_autoinc"):
        flags = [field for field in ("prologue", "epilogue", "zero") if settings.flag(field)]
        if flags:
            what = f"global_wrptr_autoinc together with {flags[0]} on ram {queue.name}"
            notes.add(EXCLUDED, source.at("global_wrptr_autoinc"), what)
