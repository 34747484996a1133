"""Refusals of netlists that cannot be turned into pipes."""

from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refusal of the vendor's net2pipe. `rule` is an id of the netlist catalogue.

    `op` is the op or queue that is at fault; `input` its operand, -1 if none is meant; `core` the row and column of a
    worker core that has too little of a resource: `used` of `limit`.
    """

    rule: str
    what: str
    hint: str = ""
    op: str = ""
    input: int = -1
    core: tuple[int, int] | None = None
    used: int = -1
    limit: int = -1


class RefusedError(Exception):
    """The refusal of an edge or op by net2pipe. Internal to `routing`: callers get `Refusal`s."""

    def __init__(self, rule: str, what: str, hint: str = "", op: str = "") -> None:
        super().__init__(what)
        self.rule = rule
        self.what = what
        self.hint = hint
        self.op = op
        self.input = -1

    def refusal(self, op: str = "") -> Refusal:
        """Return the refusal as data; `op` is the op or queue at fault, if the error does not name one."""
        return Refusal(rule=self.rule, what=self.what, hint=self.hint, op=self.op or op, input=self.input)
