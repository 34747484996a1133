"""The variables of a program with what is known of their values (NETLIST 3.1, 3.2)."""

from collections.abc import Callable
from collections.abc import Mapping as AnyMapping
from functools import partial
from typing import Final, NamedTuple

from buda_emu.netlist.model import Declare, Param, Program, Queue, QueueSettings, VarInst
from buda_emu.netlist.nodes import Mapping, Mark, Scalar, Sequence
from buda_emu.spec.varinst import OPCODES, immediate, is_variable, stored_name, wrap32
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import ProgramError
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """A finding to be: the rule's id, place, message and hint, as in `checker.Finding`."""

    rule: str
    place: Mark
    message: str
    hint: str | Callable[[], str] = ""


class Notes:
    """Notes in the order in which they were made. A place breaks a rule once, however often it is passed."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Mark, str], Note] = {}

    def add(self, rule: str, place: Mark, message: str, hint: str | Callable[[], str] = "", about: str = "") -> None:
        """`about`: what stands at the place, where several things do."""
        self._found.setdefault((rule, place, about), Note(rule, place, message, hint))

    def all(self) -> tuple[Note, ...]:
        """All of them."""
        return tuple(self._found.values())


def operand_mark(step: VarInst, index: int) -> Mark:
    """One word of a varinst."""
    items = step.source.items if isinstance(step.source, Sequence) else ()
    return items[index].mark if index < len(items) else step.at()


def name_mark(step: Declare | Param, name: str) -> Mark:
    """A name that is declared."""
    source = step.source
    keys = [key for key, _ in source.pairs] if isinstance(source, Mapping) else ()
    items = source.items if isinstance(source, Sequence) else keys
    found = (item.mark for item in items if isinstance(item, Scalar) and item.text == name)
    return next(found, step.at())


Value = int | None
"""What an operand is: None where it cannot be said."""

UNDEFINED = "V270"
IMPOSSIBLE = "V271"
TWICE = "V272"
UNDECLARED = "V278"


class Variables:
    """As `program.values.Variables` in the first run of a program; what is wrong becomes a note."""

    def __init__(self, program: Program, notes: Notes) -> None:
        self._notes = notes
        self._blind = False
        self._kinds: dict[str, str] = {}
        self._values: dict[str, Value] = {}
        self._declared = [*_names(program, Declare), *_names(program, Param)]
        self._writable = _names(program, Declare)

    def value(self, text: str, place: Mark, said: str = "") -> Value:
        """Of an operand; `said` begins messages."""
        if not is_variable(text):
            try:
                return immediate(text)
            except ProgramError as error:
                self._notes.add(IMPOSSIBLE, place, f"{said}{error}", about=said)
                return None
        name = stored_name(text)
        if name not in self._kinds:
            later = any(stored_name(other) == name for other in self._declared)
            hint = "it is declared further down" if later else partial(near, text, self._declared)
            self._notes.add(UNDEFINED, place, f"{said}variable {text} has no value here", hint, said)
            return None
        return None if self._blind else self._values[name]

    def is_param(self, text: str) -> bool:
        """Does the text name a parameter?"""
        return is_variable(text) and self._kinds.get(stored_name(text)) == "param"

    def declare(self, text: str, kind: str, value: Value, place: Mark) -> None:
        """var, staticvar or param."""
        if not is_variable(text):
            self._notes.add(IMPOSSIBLE, place, f"{kind} {text}: a variable's name starts with $", about=text)
            return
        name = stored_name(text)
        known = self._kinds.get(name)
        if known is not None and not known == kind == "staticvar":
            self._notes.add(TWICE, place, f"{kind} {text}: the name is in use already ({known})", about=name)
        elif known is None:
            self._kinds[name], self._values[name] = kind, value

    def calculate(self, step: VarInst) -> Value:
        """Carry a varinst out; the value that it writes."""
        opcode = OPCODES[step.opcode]
        place = step.at()
        if len(step.args) != opcode.operands:
            what = f"{opcode.name} takes {opcode.operands} operands, {len(step.args)} given"
            self._notes.add(IMPOSSIBLE, place, what, f"write {opcode.doc}")
            return None
        if not is_variable(step.out):
            self._notes.add(IMPOSSIBLE, place, f"varinst writes {step.out!r}, which is not a $variable")
            return None
        current = self.value(step.out, operand_mark(step, 0)) if opcode.reads_out else 0
        args = [self.value(text, operand_mark(step, number)) for number, text in enumerate(step.args, 2)]
        known = [arg for arg in args if arg is not None]
        result: Value = None
        if current is not None and len(known) == len(args):
            try:
                result = wrap32(opcode.result(current, tuple(known)))
            except ProgramError as error:
                self._notes.add(IMPOSSIBLE, place, str(error))
        self._assign(step, result)
        return result

    def _assign(self, step: VarInst, value: Value) -> None:
        name = stored_name(step.out)
        if name not in self._kinds:
            self._kinds[name] = "varinst"
            if not OPCODES[step.opcode].reads_out:
                what = f"writes {step.out}, which is declared nowhere before"
                self._notes.add(UNDECLARED, operand_mark(step, 0), what, partial(near, step.out, self._writable))
        self._values[name] = value

    def forget_all(self) -> None:
        """No value of a variable is known any more."""
        self._blind = True

    def forget(self, texts: frozenset[str]) -> None:
        """The values of these variables cannot be said any longer."""
        for text in texts:
            name = stored_name(text)
            if name in self._values:
                self._values[name] = None


def _names(program: Program, kind: type[Declare | Param]) -> list[str]:
    """Every variable that instructions of this kind declare, as it is written."""
    names: list[str] = []
    for step in program.instructions:
        if isinstance(step, Declare) and kind is Declare:
            names += [name for name, _ in step.variables]
        elif isinstance(step, Param) and kind is Param:
            names += step.names
    return list(dict.fromkeys(names))


EXCLUDED = "V275"
ZEROED = "V289"
FLAGS: Final = ("prologue", "epilogue", "zero", "read_only")
NUMBERS: Final = (
    "rd_ptr_global", "rd_ptr_local", "wr_ptr_global", "rd_ptr_autoinc", "global_rdptr_autoinc", "global_wrptr_autoinc",
)  # fmt: skip


class KnownSettings(NamedTuple):
    """Values by field, None where they cannot be said; `texts`: the variables that they name, as written."""

    source: QueueSettings
    values: AnyMapping[str, Value]
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
    source = settings.source
    zero = settings.flag("zero")
    prologue = settings.flag("prologue")
    if zero and prologue is False:
        notes.add(EXCLUDED, source.at("zero"), f"zero without prologue on {queue.name}", "set prologue, too")
    elif zero and not sums:
        notes.add(ZEROED, source.at("zero"), f"zero on {queue.name}, which no gradient op feeds")
    if queue.is_ram and settings.number("global_wrptr_autoinc"):
        flags = [field for field in ("prologue", "epilogue", "zero") if settings.flag(field)]
        if flags:
            what = f"global_wrptr_autoinc together with {flags[0]} on ram {queue.name}"
            notes.add(EXCLUDED, source.at("global_wrptr_autoinc"), what)
