"""The use of a fused op's definition by one op, as its rules need it (OPS 8)."""

from collections.abc import Iterator
from re import search

from buda_emu.netlist.model import FusedOp, Op, SubOp, Tm
from buda_emu.netlist.nodes import Mark
from buda_emu.spec.ops import OP_TYPES, Family
from buda_emu.support.checker import Finding
from buda_emu.support.records import dataclass

Dims = tuple[int, int, int, int]  # mblock rows, mblock columns, ublock rows, ublock columns


@dataclass(frozen=True, slots=True)
class SubOpStep:
    """One sub-op in the order of all schedules.

    `input_dims` holds the dims of each input that an earlier step wrote, None for the others (NETLIST 11.1 A6).
    """

    sub: SubOp
    schedule: int
    first: bool
    last: bool
    input_dims: tuple[Dims | None, ...]

    @property
    def family(self) -> Family | None:
        """Return the family of the sub-op's type, None for an unknown type."""
        declaration = OP_TYPES.get(self.sub.type)
        if declaration is not None:
            return declaration.family
        return None

    @property
    def dims(self) -> Dims:
        """Return the blocking of the result: rows and columns of the mblock, then of the ublock."""
        return (*self.sub.mblock, *self.sub.ublock)

    @property
    def quantizes(self) -> bool:
        """Return whether the sub-op is a quantization, requantization or dequantization."""
        return self.family == "quantization"

    def at(self, message: str, *keys: str, hint: str = "") -> Finding:
        """Return a finding about this sub-op, at the first of its fields `keys` that was written."""
        return self.about(self.sub.at(*keys), message, hint)

    def about(self, mark: Mark, message: str, hint: str = "") -> Finding:
        """Return a finding about this sub-op, at the place `mark`."""
        return Finding(mark, message, hint, f"op {self.sub.name}")


@dataclass(frozen=True, slots=True)
class FusedUse:
    """One op of type fused_op, the definition that it uses, and the steps of all schedules in order."""

    op: Op
    definition: FusedOp
    steps: tuple[SubOpStep, ...]

    @classmethod
    def of(cls, op: Op, definition: FusedOp) -> "FusedUse":
        """Return the use of a definition by an op, with the steps of all its schedules."""
        return cls(op, definition, tuple(_steps(definition)))

    def format_of(self, name: str) -> str:
        """Return the format of an operand buffer, "" for an input that does not exist."""
        if name.startswith("input"):
            number = buffer_number(name)
            if 0 <= number < len(self.op.in_df):
                return self.op.in_df[number]
            return ""
        if name.startswith("intermed"):
            return self.op.intermed_df
        return self.op.acc_df

    def adds_int32(self, step: SubOpStep) -> bool:
        """Return whether a step is an add with an Int32 operand, which runs on the SFPU and has rules of its own
        (NETLIST V137, V141)."""
        return step.sub.type == "add" and any(self.format_of(name) == "Int32" for name in step.sub.inputs[:2])


def _steps(definition: FusedOp) -> Iterator[SubOpStep]:
    """Yield the sub-ops of all schedules in order, each with the sizes of the buffers that it reads as they were
    written last.
    """
    written: dict[str, Dims] = {}
    for number, schedule in enumerate(definition.schedules):
        for place, sub in enumerate(schedule):
            step = SubOpStep(
                sub=sub,
                schedule=number,
                first=place == 0,
                last=place == len(schedule) - 1,
                input_dims=tuple(written.get(name) for name in sub.inputs),
            )
            yield step
            written[sub.output] = step.dims


def buffer_number(name: str) -> int:
    """Return the integer that starts at the first digit of a buffer name, -1 without one (NETLIST 11.1 A6, A9)."""
    match = search(r"[0-9]+", name)
    return int(match.group()) if match else -1


def broadcast_factor(step: SubOpStep, index: int, direction: str) -> int:
    """Return the factor of the last broadcast of an input in one direction, 1 without one (NETLIST 11.1 A10).

    A map with several keys accumulates its numbers in `args`; the first one counts.
    """
    factors = [int(tm.args[1]) for tm in broadcasts(step, index) if tm.args[0] == direction]
    return factors[-1] if factors else 1


def broadcasts(step: SubOpStep, index: int) -> list[Tm]:
    """Return the broadcast TMs of input `index`."""
    if index < len(step.sub.input_tms):
        tms = step.sub.input_tms[index]
    else:
        tms = ()
    return [tm for tm in tms if tm.name == "broadcast"]
