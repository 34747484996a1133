"""The variables of a program with what is known of their values (NETLIST 3.1, 3.2)."""

from functools import partial

from buda_emu.checker.suggest import near
from buda_emu.errors import ProgramError
from buda_emu.netlist.flow.notes import Notes
from buda_emu.netlist.flow.places import operand_mark
from buda_emu.netlist.model import Declare, Param, Program, VarInst
from buda_emu.netlist.nodes import Mark
from buda_emu.spec.operands import immediate, is_variable, stored_name, wrap32
from buda_emu.spec.varinst import OPCODES

Value = int | None
"""What an operand is: None where it cannot be said."""

UNDEFINED, IMPOSSIBLE, TWICE, UNDECLARED = "V270", "V271", "V272", "V278"


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
