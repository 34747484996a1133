"""Variables of a program with abstract values (NETLIST 3.1, 3.2), and the notes that become findings."""

from collections.abc import Callable
from collections.abc import Mapping as AnyMapping
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

from buda_emu.netlist.model import Declare, Param, Program, Queue, QueueSettings, VarInst
from buda_emu.netlist.nodes import Mapping, Mark, Node, Scalar, Sequence
from buda_emu.spec.varinst import OPCODES, immediate, is_variable, stored_name, wrap32
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import ProgramError
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """A future finding: the rule's id, place, message and hint, as in `checker.Finding`."""

    rule: str
    place: Mark
    message: str
    hint: str | Callable[[], str] = ""


class Notes:
    """Notes in the order in which they were made. A place breaks a rule once, however often the walk passes it."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Mark, str], Note] = {}

    def add(self, rule: str, place: Mark, message: str, hint: str | Callable[[], str] = "", about: str = "") -> None:
        """Add a note. `about` names its subject where several may break the rule at one place."""
        self._found.setdefault((rule, place, about), Note(rule, place, message, hint))

    def all(self) -> tuple[Note, ...]:
        """Return all notes in the order in which they were first made."""
        return tuple(self._found.values())


def operand_mark(step: VarInst, index: int) -> Mark:
    """Return the place of word `index` of a varinst `[out, opcode, args...]`, counted from 0; that of the instruction
    if it has no such word."""
    if isinstance(step.source, Sequence) and index < len(step.source.items):
        return step.source.items[index].mark
    return step.at()


def name_mark(step: Declare | Param, name: str) -> Mark:
    """Return the place of a name among those that an instruction declares; that of the instruction if it is not found
    there."""
    source = step.source
    candidates: list[Node] = []
    if isinstance(source, Sequence):
        candidates = source.items
    elif isinstance(source, Mapping):
        candidates = [key for key, _ in source.pairs]
    for node in candidates:
        if isinstance(node, Scalar) and node.text == name:
            return node.mark
    return step.at()


Value = int | None
"""The value of an operand, None if it is not known."""

_BOOLEAN_WORDS: Final = MappingProxyType({"yes": "true", "on": "true", "no": "false", "off": "false"})
"""Words that are booleans in YAML 1.1 but not in programs of the reference, and what to write instead (NETLIST 3.1)."""
UNDEFINED = "V270"
IMPOSSIBLE = "V271"
TWICE = "V272"
UNDECLARED = "V278"


class Variables:
    """The variables of `program.settings.Variables` with abstract values, in the first run of a program. Errors
    become notes."""

    def __init__(self, program: Program, notes: Notes) -> None:
        self._notes = notes
        self._blind = False
        self._kinds: dict[str, str] = {}
        self._values: dict[str, Value] = {}
        self._declared = [*_names(program, Declare), *_names(program, Param)]
        self._writable = _names(program, Declare)

    def value(self, text: str, place: Mark, prefix: str = "") -> Value:
        """Return the value of an operand, None if it is not known. An operand that would have no value in a run is
        noted at `place`; `prefix` begins the message.
        """
        if not is_variable(text):
            try:
                return immediate(text)
            except ProgramError as error:
                self._notes.add(IMPOSSIBLE, place, f"{prefix}{error}", partial(self._operand_hint, text), prefix)
                return None
        name = stored_name(text)
        if name not in self._kinds:
            later = any(stored_name(other) == name for other in self._declared)
            if later:
                hint = "it is declared further down"
            else:
                hint = partial(near, text, self._declared)
            self._notes.add(UNDEFINED, place, f"{prefix}variable {text} has no value here", hint, prefix)
            return None
        return None if self._blind else self._values[name]

    def _operand_hint(self, text: str) -> str:
        """Return a hint for an operand that has no value: it may be a boolean word of YAML that programs do not
        know, or a variable without its $; "" for neither."""
        word = _BOOLEAN_WORDS.get(text.lower())
        if word is not None:
            return f"write {word}"
        if f"${text}" in self._declared:
            return f"did you mean '${text}'?"
        return ""

    def is_param(self, text: str) -> bool:
        """Return whether `text` is the name, with `$`, of a variable that a `param` instruction declared."""
        return is_variable(text) and self._kinds.get(stored_name(text)) == "param"

    def declare(self, text: str, kind: str, value: Value, place: Mark) -> None:
        """Declare a variable of the kind var, staticvar or param. A name that is in use or has no `$` is noted."""
        if not is_variable(text):
            self._notes.add(IMPOSSIBLE, place, f"{kind} {text}: a variable's name starts with $", about=text)
            return
        name = stored_name(text)
        earlier_kind = self._kinds.get(name)
        if earlier_kind is not None and not earlier_kind == kind == "staticvar":
            self._notes.add(TWICE, place, f"{kind} {text}: the name is in use already ({earlier_kind})", about=name)
        elif earlier_kind is None:
            self._kinds[name] = kind
            self._values[name] = value

    def calculate(self, step: VarInst) -> Value:
        """Carry out a varinst and return the value that it writes, None if it is not known. What a run would refuse is
        noted.
        """
        opcode = OPCODES[step.opcode]
        place = step.at()
        if len(step.args) != opcode.operands:
            message = f"{opcode.name} takes {opcode.operands} operands, {len(step.args)} given"
            self._notes.add(IMPOSSIBLE, place, message, f"write {opcode.doc}")
            return None
        if not is_variable(step.out):
            self._notes.add(IMPOSSIBLE, place, f"varinst writes {step.out!r}, which is not a $variable")
            return None
        if opcode.reads_out:
            current = self.value(step.out, operand_mark(step, 0))
        else:
            current = 0
        args = [self.value(text, operand_mark(step, number)) for number, text in enumerate(step.args, 2)]
        values = [arg for arg in args if arg is not None]
        result: Value = None
        if current is not None and len(values) == len(args):
            try:
                result = wrap32(opcode.result(current, tuple(values)))
            except ProgramError as error:
                self._notes.add(IMPOSSIBLE, place, str(error))
        self._assign(step, result)
        return result

    def _assign(self, step: VarInst, value: Value) -> None:
        """Store the value that a varinst writes. This declares a variable that was not declared before, with a note. No
        note is made if the instruction also reads the variable: `value` has noted that it has none.
        """
        name = stored_name(step.out)
        if name not in self._kinds:
            self._kinds[name] = "varinst"
            if not OPCODES[step.opcode].reads_out:
                message = f"writes {step.out}, which is declared nowhere before"
                self._notes.add(UNDECLARED, operand_mark(step, 0), message, partial(near, step.out, self._writable))
        self._values[name] = value

    def forget_all(self) -> None:
        """Make the values of all variables unknown, also of those that are written later."""
        self._blind = True

    def forget(self, texts: frozenset[str]) -> None:
        """Make the values of these variables unknown."""
        for text in texts:
            name = stored_name(text)
            if name in self._values:
                self._values[name] = None


def _names(program: Program, kind: type[Declare | Param]) -> list[str]:
    """Return every variable that instructions of this kind declare, as it is written."""
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
    """Values of one queue's settings by field, None where they are not known. `texts` holds the variables that they
    name, as written."""

    source: QueueSettings
    values: AnyMapping[str, Value]
    texts: frozenset[str]

    @property
    def queue(self) -> str:
        """Return the name of the queue."""
        return self.source.queue

    def number(self, field: str) -> Value:
        """Return the value of a pointer or autoincrement, or None if it is not known."""
        return self.values[field]

    def flag(self, field: str) -> bool | None:
        """Return the value of prologue, epilogue, zero or read_only, or None if it is not known."""
        value = self.values[field]
        return None if value is None else bool(value)

    @property
    def still(self) -> bool | None:
        """Return whether every input reads the same entry, by prologue or epilogue (NETLIST 4.4); None if not known."""
        flags = (self.flag("prologue"), self.flag("epilogue"))
        if True in flags:
            return True
        return None if None in flags else False

    def with_variable(self, text: str, value: Value) -> "KnownSettings":
        """Return the settings with a new value in each field that names the variable `text`: a varinst also changes the
        settings of queues that were executed before."""
        values = dict(self.values)
        for field in values:
            if getattr(self.source, field) == text:
                values[field] = value
        return self._replace(values=values)

    def without_values(self) -> "KnownSettings":
        """Return the settings with all values unknown."""
        return self._replace(values=dict.fromkeys(self.values))


def evaluate_settings(source: QueueSettings, queue: Queue, variables: Variables, notes: Notes) -> KnownSettings:
    """Evaluate the settings of a queue at an execute, with the present values of the variables. A ram has no
    rd_ptr_local and a queue no wr_ptr_global: these are not evaluated. A parameter as prologue or epilogue is noted.
    """
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
            message = f"{field} of {queue.name} is the parameter {text}; it may not depend on the caller"
            notes.add(EXCLUDED, source.at(field), message)
    return KnownSettings(source, values, frozenset(texts))


def differ(left: KnownSettings, right: KnownSettings) -> bool:
    """Return whether two graphs of one temporal graph certainly have different settings for a queue (NETLIST 4.3
    step 1).
    """
    if left.source != right.source:
        return True
    pairs = ((value, right.values[field]) for field, value in left.values.items())
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def require_sense(settings: KnownSettings, queue: Queue, notes: Notes, *, sums: bool) -> None:
    """Note settings that exclude each other (NETLIST 4.3 steps 3a and 3b), and `zero` on a queue that no gradient op
    feeds. `sums`: a gradient op accumulates in the queue."""
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
            message = f"global_wrptr_autoinc together with {flags[0]} on ram {queue.name}"
            notes.add(EXCLUDED, source.at("global_wrptr_autoinc"), message)
