"""Why a netlist cannot be turned into pipes: raised where it is found, gathered by who asks for a whole graph."""

from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One thing that the vendor's net2pipe refuses. `rule`: an id of the netlist catalogue.

    `op` is the op or queue that reads or holds it; `input` its operand, -1 where none is meant; `core` the row and
    column of a worker core, for what one core has too little of: `used` of `limit`.
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
    """An edge or op that net2pipe refuses. Internal to `routing`: callers get `Refusal`s."""

    def __init__(self, rule: str, what: str, hint: str = "", op: str = "") -> None:
        super().__init__(what)
        self.rule = rule
        self.what = what
        self.hint = hint
        self.op = op
        self.input = -1

    def refusal(self, op: str = "") -> Refusal:
        """As data; `op`: the op or queue that it is about, where who raised it did not know."""
        return Refusal(rule=self.rule, what=self.what, hint=self.hint, op=self.op or op, input=self.input)
