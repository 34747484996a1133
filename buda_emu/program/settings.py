"""One execute's queue settings with their values at that moment (NETLIST 3.5), and the texts they came from."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias

from buda_emu.errors import ProgramError
from buda_emu.netlist.for_each import ForEach
from buda_emu.netlist.model import Execute, Netlist, QueueSettings
from buda_emu.program.values import Variables
from buda_emu.spec.operands import immediate, is_variable, stored_name


class EvaluatedSettings(NamedTuple):
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


_FIELDS: Final = EvaluatedSettings._fields[1:]  # but for the source
_FLAGS: Final = ("prologue", "epilogue", "zero", "read_only")
_NOT_A_PARAMETER: Final = ("prologue", "epilogue")


class PreparedSettings:
    """Settings of one queue in one execute, read once, evaluated every time that it runs.

    For a ram rd_ptr_local is not evaluated, for a queue wr_ptr_global is not (NETLIST 3.5).
    """

    __slots__ = ("_constants", "_latest", "_open", "_places", "is_plain", "names", "queue", "source", "texts")

    def __init__(self, source: QueueSettings, is_ram: bool) -> None:
        self.source = source
        self.queue = source.queue
        self._constants: list[Any] = []  # of all fields; those that are open get their value later
        self._open: list[tuple[int, str, str]] = []  # number, name and text of fields that name a variable, or nothing
        unused = "rd_ptr_local" if is_ram else "wr_ptr_global"
        for number, field in enumerate(_FIELDS):
            text = getattr(source, field)
            value = 0 if field == unused else _constant(text)
            if value is None:
                self._open.append((number, field, text))
            self._constants.append(bool(value) if field in _FLAGS else value)
        self.texts = frozenset(text for _, _, text in self._open)
        self.names = tuple(dict.fromkeys(stored_name(text) for _, _, text in self._open))
        self._places = [
            (number, self.names.index(stored_name(text)), field in _FLAGS) for number, field, text in self._open
        ]
        # Whether there is nothing to complain about once the variables are there.
        self.is_plain = all(is_variable(text) and field not in _NOT_A_PARAMETER for _, field, text in self._open)
        self._latest: tuple[tuple[int | None, ...], EvaluatedSettings] | None = None

    def evaluate(self, variables: Variables) -> EvaluatedSettings:
        """Settings with the variables' values now: the same object as long as these do not change. Raises ProgramError
        naming queue and field."""
        values = variables.values_of(self.names)
        latest = self._latest
        if latest is not None and latest[0] == values:
            return latest[1]
        if None in values or not self.is_plain:
            return self._checked(variables)
        fields = self._constants.copy()
        for number, place, flag in self._places:
            fields[number] = bool(values[place]) if flag else values[place]
        found = EvaluatedSettings(self.source, *fields)
        self._latest = values, found
        return found

    def _checked(self, variables: Variables) -> EvaluatedSettings:
        values = self._constants.copy()
        for _, field, text in self._open:
            if field in _NOT_A_PARAMETER and variables.is_param(text):
                raise ProgramError(
                    f"queue_settings of {self.source.queue}: {field} may not be the parameter {text}",
                    kind="settings",
                    queue=self.source.queue,
                )
        for number, field, text in self._open:
            try:
                value = variables.value(text)
            except ProgramError as error:
                error.within(f"queue_settings of {self.source.queue}, {field}")
                error.queue = self.source.queue
                raise
            values[number] = bool(value) if field in _FLAGS else value
        return EvaluatedSettings(self.source, *values)


def _constant(text: str) -> int | None:
    """What an operand says by itself; None for a variable, and for what has no value: evaluating it says so."""
    if not is_variable(text):
        with suppress(ProgramError):
            return immediate(text)
    return None


Evaluated: TypeAlias = tuple[PreparedSettings, EvaluatedSettings]


class ExecuteSettings:
    """Settings of all queues in one execute, in order."""

    __slots__ = ("_is_plain", "_latest", "_names", "prepared")

    def __init__(self, prepared: tuple[PreparedSettings, ...]) -> None:
        self.prepared = prepared
        self._names = tuple(dict.fromkeys(name for one in prepared for name in one.names))
        self._is_plain = all(one.is_plain for one in prepared)
        self._latest: tuple[tuple[int | None, ...], tuple[Evaluated, ...]] | None = None

    def evaluated(self, variables: Variables) -> Iterable[Evaluated]:
        """Each with its values now. Raises ProgramError, as `PreparedSettings.evaluate` does, when it comes to it."""
        values = variables.values_of(self._names)
        latest = self._latest
        return latest[1] if latest is not None and latest[0] == values else self._one_by_one(variables, values)

    def _one_by_one(self, variables: Variables, values: tuple[int | None, ...]) -> Iterator[Evaluated]:
        found: list[Evaluated] = []
        for one in self.prepared:
            found.append((one, one.evaluate(variables)))
            yield found[-1]
        if self._is_plain:
            self._latest = values, tuple(found)


class AllSettings:
    """Settings of a netlist's executes, prepared when they are first asked for, for all who run it."""

    __slots__ = ("_prepared", "_queues")

    def __init__(self, netlist: Netlist) -> None:
        self._queues = netlist.queues
        self._prepared: dict[int, tuple[Execute, ExecuteSettings]] = {}  # by the id of the first

    def of(self, execute: Execute) -> ExecuteSettings:
        """Those of one execute."""
        found = self._prepared.get(id(execute))
        if found is None:
            prepared = tuple(PreparedSettings(item, self._queues[item.queue].is_ram) for item in execute.queue_settings)
            found = self._prepared[id(execute)] = execute, ExecuteSettings(prepared)
        return found[1]


ALL_SETTINGS: Final = ForEach(AllSettings)
