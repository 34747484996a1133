"""Variables of a program with their values (NETLIST 3.2), queue settings of an execute, and places and texts of
instructions for messages."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

from buda_emu.netlist.for_each import ForEach
from buda_emu.netlist.model import Execute, Instruction, Netlist, QueueSettings
from buda_emu.netlist.printer import instruction_text as written
from buda_emu.spec.varinst import immediate, is_variable, stored_name
from buda_emu.support.errors import ProgramError
from buda_emu.support.records import dataclass
from buda_emu.support.stopped import Round


class Kind(Enum):
    """The instruction that declared a variable; it decides whether the variable survives the run (NETLIST 3.2)."""

    LOCAL = "var"
    PARAM = "param"
    STATIC = "staticvar"
    UNTYPED = "varinst"


class Variables:
    """The variables of one program, which live as long as the machine."""

    __slots__ = ("_kinds", "_params", "_values")

    def __init__(self) -> None:
        self._values: dict[str, int] = {}
        self._kinds: dict[str, Kind] = {}
        self._params: dict[str, str] = {}

    def begin_run(self, parameters: Mapping[str, str]) -> dict[str, str]:
        """Drop locals and params, and merge the caller's parameters into those of earlier runs. Returns the parameters
        of the earlier runs alone, for `forget_parameters`."""
        earlier = dict(self._params)
        for name in [name for name, kind in self._kinds.items() if kind in (Kind.LOCAL, Kind.PARAM)]:
            del self._values[name]
            del self._kinds[name]
        self._params.update(parameters)
        return earlier

    def forget_parameters(self, earlier: Mapping[str, str]) -> None:
        """Take the parameters of a run back that failed; `earlier` is what `begin_run` returned."""
        self._params = dict(earlier)

    def declare(self, text: str, kind: Kind, value: int) -> None:
        """Declare a `var` or `staticvar` (NETLIST 3.2). Raises ProgramError for a name in use or without `$`."""
        if not is_variable(text):
            raise ProgramError(f"{kind.value} {text}: a variable's name starts with $")
        name = stored_name(text)
        earlier_kind = self._kinds.get(name)
        if earlier_kind is Kind.STATIC and kind is Kind.STATIC:
            return  # the initial value counts only the first time
        if earlier_kind is not None:
            raise ProgramError(
                f"{kind.value} {text}: the name is already in use ({earlier_kind.value}); "
                "a var inside a loop is declared again in its second round: move it before the loop"
            )
        self._values[name] = value
        self._kinds[name] = kind

    def bind_param(self, text: str) -> None:
        """Declare a `param` with the caller's value, looked up exactly as written. Raises ProgramError if there is
        none, if it is no number or boolean, and for a name in use."""
        argument = self._params.get(text)
        if argument is None:
            names = ", ".join(sorted(self._params)) or "none"
            raise ProgramError(f"param {text} has no value; parameters given: {names}")
        if is_variable(argument):
            raise ProgramError(f"param {text}: the value {argument!r} must be a number, true or false")
        self.declare(text, Kind.PARAM, immediate(argument))

    def assign(self, text: str, value: int) -> None:
        """Write the result of a varinst; an undeclared name is created and survives like a static (NETLIST 3.2
        untyped)."""
        name = stored_name(text)
        self._kinds.setdefault(name, Kind.UNTYPED)
        self._values[name] = value

    def value(self, text: str) -> int:
        """Return the value of an operand, a variable or an immediate (NETLIST 3.1). Raises ProgramError for an unknown
        variable and for a text that is no value."""
        if not is_variable(text):
            return immediate(text)
        name = stored_name(text)
        if name not in self._values:
            names = ", ".join("$" + n for n in sorted(self._values)) or "none"
            raise ProgramError(f"unknown variable {text}; known: {names}")
        return self._values[name]

    def values_of(self, names: tuple[str, ...]) -> tuple[int | None, ...]:
        """Return the values of the variables with these stored names, None for a name that is not in use."""
        return tuple(map(self._values.get, names))

    def is_param(self, text: str) -> bool:
        """Return whether an operand names a variable that `param` declared."""
        return is_variable(text) and self._kinds.get(stored_name(text)) is Kind.PARAM

    def state(self) -> tuple[dict[str, int], dict[str, Kind], dict[str, str]]:
        """Return copies of values and kinds by stored name, and of the callers' parameters."""
        return dict(self._values), dict(self._kinds), dict(self._params)

    def set_state(self, values: Mapping[str, int], kinds: Mapping[str, Kind], params: Mapping[str, str]) -> None:
        """Replace all variables by a result of `state`."""
        self._values = dict(values)
        self._kinds = dict(kinds)
        self._params = dict(params)

    def values(self) -> dict[str, int]:
        """Return a copy of the values of all variables, by stored name (without `$`)."""
        return self._values.copy()

    def snapshot(self) -> dict[str, int]:
        """Return all values by `$name`, for listeners and error texts."""
        return by_text(self._values)


class VariableValues:
    """A read-only view of the variables of a running program, for listeners."""

    __slots__ = ("is_param", "snapshot", "value", "values", "values_of")

    def __init__(self, variables: Variables) -> None:
        self.is_param = variables.is_param
        self.snapshot = variables.snapshot
        self.value = variables.value
        self.values = variables.values
        self.values_of = variables.values_of


def by_text(values: Mapping[str, int]) -> dict[str, int]:
    """Return values by `$name`, from values by stored name."""
    return {"$" + name: value for name, value in values.items()}


class EvaluatedSettings(NamedTuple):
    """Values of one queue's settings. `source` keeps the texts, against which later varinsts are matched (NETLIST
    4.3)."""

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
        """Return the name of the queue."""
        return self.source.queue


_FIELDS: Final = EvaluatedSettings._fields[1:]  # but for the source
_FLAGS: Final = ("prologue", "epilogue", "zero", "read_only")
_NOT_A_PARAMETER: Final = ("prologue", "epilogue")


class PreparedSettings:
    """Settings of one queue in one execute: parsed once, evaluated every time that the execute runs.

    For a ram rd_ptr_local is not evaluated, for a queue wr_ptr_global is not (NETLIST 3.5).
    """

    __slots__ = ("_constants", "_latest", "_open", "_places", "is_plain", "names", "queue", "source", "texts")

    def __init__(self, source: QueueSettings, is_ram: bool) -> None:
        self.source = source
        self.queue = source.queue
        self._constants: list[Any] = []  # values of all fields; None for an open one
        self._open: list[tuple[int, str, str]] = []  # number, name and text of the fields that are no constants
        self._split_fields("rd_ptr_local" if is_ram else "wr_ptr_global")
        self.texts = frozenset(text for _, _, text in self._open)
        self.names = tuple(dict.fromkeys(stored_name(text) for _, _, text in self._open))
        self._places = [
            (number, self.names.index(stored_name(text)), field in _FLAGS) for number, field, text in self._open
        ]
        # True if evaluation cannot fail once all variables have values.
        self.is_plain = all(is_variable(text) and field not in _NOT_A_PARAMETER for _, field, text in self._open)
        self._latest: tuple[tuple[int | None, ...], EvaluatedSettings] | None = None

    def _split_fields(self, unused: str) -> None:
        """Split the fields into constants and open ones; the `unused` one is 0."""
        for number, field in enumerate(_FIELDS):
            text = getattr(self.source, field)
            value = 0 if field == unused else _constant_value(text)
            if value is None:
                self._open.append((number, field, text))
            self._constants.append(bool(value) if field in _FLAGS else value)

    def evaluate(self, variables: Variables) -> EvaluatedSettings:
        """Return the settings with the variables' present values, the same object as long as these do not change.
        Raises ProgramError that names queue and field."""
        values = variables.values_of(self.names)
        latest = self._latest
        if latest is not None and latest[0] == values:
            return latest[1]
        if None in values or not self.is_plain:
            return self._evaluate_fields(variables)
        fields = self._constants.copy()
        for number, place, flag in self._places:
            fields[number] = bool(values[place]) if flag else values[place]
        evaluated = EvaluatedSettings(self.source, *fields)
        self._latest = values, evaluated
        return evaluated

    def _evaluate_fields(self, variables: Variables) -> EvaluatedSettings:
        """Return the settings evaluated field by field. Raises ProgramError for the first field that has no value
        or may not have it.
        """
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


def _constant_value(text: str) -> int | None:
    """Return the value of an immediate operand; None for a variable, and for a text without a value, which
    evaluation reports."""
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
        self._names = tuple(dict.fromkeys(chain.from_iterable(settings.names for settings in prepared)))
        self._is_plain = all(settings.is_plain for settings in prepared)
        self._latest: tuple[tuple[int | None, ...], tuple[Evaluated, ...]] | None = None

    def evaluate_all(self, variables: Variables) -> Iterable[Evaluated]:
        """Return the settings of each queue with their present values. An iteration raises ProgramError as
        `PreparedSettings.evaluate` does."""
        values = variables.values_of(self._names)
        latest = self._latest
        if latest is not None and latest[0] == values:
            return latest[1]
        return self._evaluate_and_store(variables, values)

    def _evaluate_and_store(self, variables: Variables, values: tuple[int | None, ...]) -> Iterator[Evaluated]:
        """Yield the settings of each queue, evaluated one after the other; once all are, they are stored for the
        same `values` of the variables if evaluation cannot fail.
        """
        results: list[Evaluated] = []
        for settings in self.prepared:
            results.append((settings, settings.evaluate(variables)))
            yield results[-1]
        if self._is_plain:
            self._latest = values, tuple(results)


class AllSettings:
    """The settings of all executes of a netlist, prepared on first use and shared by all machines that run it."""

    __slots__ = ("_prepared", "_queues")

    def __init__(self, netlist: Netlist) -> None:
        self._queues = netlist.queues
        self._prepared: dict[
            int, tuple[Execute, ExecuteSettings]
        ] = {}  # by the id of the execute, which it keeps alive

    def of(self, execute: Execute) -> ExecuteSettings:
        """Return the settings of one execute of the netlist, prepared when it is first asked for."""
        entry = self._prepared.get(id(execute))
        if entry is None:
            prepared = tuple(
                PreparedSettings(settings, self._queues[settings.queue].is_ram) for settings in execute.queue_settings
            )
            entry = self._prepared[id(execute)] = execute, ExecuteSettings(prepared)
        return entry[1]


ALL_SETTINGS: Final = ForEach(AllSettings)


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction at one moment of a run, with the rounds of its loops and the variables."""

    program: str
    index: int
    instruction: Instruction
    rounds: tuple[Round, ...]  # outermost first
    variables: Mapping[str, int]

    @property
    def line(self) -> int:
        """Return the line of the instruction."""
        return self.instruction.at().line

    def __str__(self) -> str:
        kind = type(self.instruction).__name__.lower()
        return f"program {self.program}, instruction {self.index} ({kind}, line {self.line})"


_SHOWN_SETTINGS = 3  # queues in a representation, so that it fits a line


def instruction_text(instruction: Instruction, queue: str = "") -> str:
    """Return an instruction as it stands in a netlist. Of an execute's settings those of `queue` are shown or, if it
    has none there, those of the first few queues."""
    if isinstance(instruction, Execute):
        return f"execute: {{graph_name: {instruction.graph}, queue_settings: {_settings_text(instruction, queue)}}}"
    return written(instruction)


def _settings_text(instruction: Execute, queue: str) -> str:
    """Return the text of an execute's queue_settings: those of `queue` or, if it has none there, of the first few
    queues. Dots stand for the queues left out."""
    shown = [settings for settings in instruction.queue_settings if queue and settings.queue == queue]
    if not shown:
        shown = list(instruction.queue_settings[:_SHOWN_SETTINGS])
    parts = [f"{settings.queue}: {{{_explicit_settings(settings)}}}" for settings in shown]
    if len(shown) < len(instruction.queue_settings):
        parts.append("...")
    return f"{{{', '.join(parts)}}}"


_SETTINGS = (
    "prologue", "epilogue", "zero", "read_only", "rd_ptr_local", "rd_ptr_global", "wr_ptr_global", "rd_ptr_autoinc",
    "global_rdptr_autoinc", "global_wrptr_autoinc",
)  # fmt: skip


def _explicit_settings(settings: QueueSettings) -> str:
    """Return the settings of a queue that stand in the netlist, without defaults."""
    pairs = ((name, getattr(settings, name)) for name in _SETTINGS if _stands_in_text(settings, name))
    return ", ".join(f"{name}: {value}" for name, value in pairs)


def _stands_in_text(settings: QueueSettings, name: str) -> bool:
    """Return whether a setting is written in the file, and not a default."""
    value = getattr(settings, name)
    return value != "" and settings.at(name) != settings.at()
