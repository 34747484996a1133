"""The variables of a program (NETLIST 3.2)."""

from collections.abc import Mapping
from enum import Enum

from buda_emu.errors import ProgramError
from buda_emu.spec.operands import immediate, is_variable, stored_name


class Kind(Enum):
    """Who declared a variable; decides whether it survives the run (NETLIST 3.2)."""

    LOCAL = "var"
    PARAM = "param"
    STATIC = "staticvar"
    UNTYPED = "varinst"


class Variables:
    """The variables of one program, kept for the life of the machine."""

    __slots__ = ("_kinds", "_params", "_values")

    def __init__(self) -> None:
        self._values: dict[str, int] = {}
        self._kinds: dict[str, Kind] = {}
        self._params: dict[str, str] = {}

    def begin_run(self, parameters: Mapping[str, str]) -> None:
        """Forget locals and params; merge the caller's parameters into those of earlier runs."""
        for name in [n for n, kind in self._kinds.items() if kind in (Kind.LOCAL, Kind.PARAM)]:
            del self._values[name], self._kinds[name]
        self._params.update(parameters)

    def declare(self, text: str, kind: Kind, value: int) -> None:
        """`var` or `staticvar` (NETLIST 3.2). Raises ProgramError for a name in use or without `$`."""
        if not is_variable(text):
            raise ProgramError(f"{kind.value} {text}: a variable's name starts with $")
        name = stored_name(text)
        known = self._kinds.get(name)
        if known is Kind.STATIC and kind is Kind.STATIC:
            return  # the initial value counts only the first time
        if known is not None:
            raise ProgramError(
                f"{kind.value} {text}: the name is already in use ({known.value}); a var inside a loop is declared "
                "again in its second round: move it before the loop"
            )
        self._values[name], self._kinds[name] = value, kind

    def bind_param(self, text: str) -> None:
        """`param`: take the caller's value, looked up exactly as written."""
        given = self._params.get(text)
        if given is None:
            known = ", ".join(sorted(self._params)) or "none"
            raise ProgramError(f"param {text} has no value; parameters given: {known}")
        if is_variable(given):
            raise ProgramError(f"param {text}: the value {given!r} must be a number, true or false")
        self.declare(text, Kind.PARAM, immediate(given))

    def assign(self, text: str, value: int) -> None:
        """Write a varinst's result; an undeclared name comes to be and survives like a static (NETLIST 3.2 untyped)."""
        name = stored_name(text)
        self._kinds.setdefault(name, Kind.UNTYPED)
        self._values[name] = value

    def value(self, text: str) -> int:
        """Value of an operand: variable or immediate (NETLIST 3.1)."""
        if not is_variable(text):
            return immediate(text)
        name = stored_name(text)
        if name not in self._values:
            known = ", ".join("$" + n for n in sorted(self._values)) or "none"
            raise ProgramError(f"unknown variable {text}; known: {known}")
        return self._values[name]

    def values_of(self, names: tuple[str, ...]) -> tuple[int | None, ...]:
        """Values by stored name, None for a name that is not in use."""
        return tuple(map(self._values.get, names))

    def is_param(self, text: str) -> bool:
        """Does the text name a parameter?"""
        return is_variable(text) and self._kinds.get(stored_name(text)) is Kind.PARAM

    def state(self) -> tuple[dict[str, int], dict[str, Kind], dict[str, str]]:
        """Copies of values and kinds by stored name, and of the callers' parameters."""
        return dict(self._values), dict(self._kinds), dict(self._params)

    def set_state(self, values: Mapping[str, int], kinds: Mapping[str, Kind], params: Mapping[str, str]) -> None:
        """Replace all of what `state` gives."""
        self._values, self._kinds, self._params = dict(values), dict(kinds), dict(params)

    def values(self) -> dict[str, int]:
        """A copy of all values by stored name."""
        return self._values.copy()

    def snapshot(self) -> dict[str, int]:
        """All values by `$name`, for listeners and error texts."""
        return by_text(self._values)


class VariableValues:
    """The variables of a running program as those who watch it see them: every method that reads, none that writes."""

    __slots__ = ("is_param", "snapshot", "value", "values", "values_of")

    def __init__(self, variables: Variables) -> None:
        self.is_param = variables.is_param
        self.snapshot = variables.snapshot
        self.value = variables.value
        self.values = variables.values
        self.values_of = variables.values_of


def by_text(values: Mapping[str, int]) -> dict[str, int]:
    """Values by stored name, by `$name`."""
    return {"$" + name: value for name, value in values.items()}
