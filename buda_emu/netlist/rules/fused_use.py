"""A fused op as its rules see it: one definition as used by one op (OPS 8)."""

from collections.abc import Iterator
from re import search

from buda_emu.netlist.model import FusedOp, Op, SubOp, Tm
from buda_emu.netlist.nodes import Mark
from buda_emu.spec.ops import OP_TYPES, Family
from buda_emu.support.checker import Finding
from buda_emu.support.records import dataclass

Dims = tuple[int, int, int, int]  # mblock rows, mblock columns, ublock rows, ublock columns


@dataclass(frozen=True, slots=True)
class Step:
    """One sub-op at its place. `known`: dims of the inputs that an earlier step wrote, by name (NETLIST 11.1 A6)."""

    sub: SubOp
    schedule: int
    first: bool
    last: bool
    known: tuple[Dims | None, ...]

    @property
    def family(self) -> Family | None:
        """Family of the sub-op's type, None for an unknown type."""
        known = OP_TYPES.get(self.sub.type)
        return known.family if known is not None else None

    @property
    def dims(self) -> Dims:
        """Blocking of the result."""
        return (*self.sub.mblock, *self.sub.ublock)

    @property
    def quantizes(self) -> bool:
        """quantization, requantization or dequantization."""
        return self.family == "quantization"

    def at(self, message: str, *keys: str, hint: str = "") -> Finding:
        """A finding about this sub-op, at the first of `keys` that was written."""
        return self.about(self.sub.at(*keys), message, hint)

    def about(self, mark: Mark, message: str, hint: str = "") -> Finding:
        """A finding about this sub-op at a place of its own."""
        return Finding(mark, message, hint, f"op {self.sub.name}")


@dataclass(frozen=True, slots=True)
class FusedUse:
    """The base op and the steps of its schedules in order."""

    op: Op
    definition: FusedOp
    steps: tuple[Step, ...]

    @classmethod
    def of(cls, op: Op, definition: FusedOp) -> "FusedUse":
        """Flatten the schedules."""
        return cls(op, definition, tuple(_steps(definition)))

    def format_of(self, name: str) -> str:
        """Format of an operand buffer; "" for one that does not exist."""
        if name.startswith("input"):
            number = buffer_number(name)
            return self.op.in_df[number] if 0 <= number < len(self.op.in_df) else ""
        return self.op.intermed_df if name.startswith("intermed") else self.op.acc_df

    def adds_int32(self, step: Step) -> bool:
        """An add with an Int32 operand, which runs on the SFPU and has rules of its own (NETLIST V137, V141)."""
        return step.sub.type == "add" and any(self.format_of(name) == "Int32" for name in step.sub.inputs[:2])


def _steps(definition: FusedOp) -> Iterator[Step]:
    written: dict[str, Dims] = {}
    for number, schedule in enumerate(definition.schedules):
        for place, sub in enumerate(schedule):
            known = tuple(written.get(name) for name in sub.inputs)
            step = Step(sub=sub, schedule=number, first=place == 0, last=place == len(schedule) - 1, known=known)
            yield step
            written[sub.output] = step.dims


def buffer_number(name: str) -> int:
    """The integer that starts at the first digit of a buffer name, -1 without one (NETLIST 11.1 A6, A9)."""
    found = search(r"[0-9]+", name)
    return int(found.group()) if found else -1


def broadcast_factor(step: Step, index: int, direction: str) -> int:
    """Factor of the last broadcast of an input in one direction, 1 without one (NETLIST 11.1 A10).

    A map with several keys accumulates its numbers in `args`; the first one counts.
    """
    factors = [int(tm.args[1]) for tm in broadcasts(step, index) if tm.args[0] == direction]
    return factors[-1] if factors else 1


def broadcasts(step: Step, index: int) -> list[Tm]:
    """The broadcast TMs of an input."""
    tms = step.sub.input_tms[index] if index < len(step.sub.input_tms) else ()
    return [tm for tm in tms if tm.name == "broadcast"]
