"""Cycles of one op on one core."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Final, Literal

from buda_emu.errors import HostError
from buda_emu.timing.op.bounds import UNTILIZE_PACK_BYTES, ideal_cycles, payload, tile_fraction
from buda_emu.timing.op.call import OpCall
from buda_emu.timing.op.choose import Choice, choose, copy_of, widening
from buda_emu.timing.op.features import ROUNDS, features
from buda_emu.timing.op.forms import DRAM_STAGES, FORMS, Weights, evaluate, form_of, fpu_cycles
from buda_emu.timing.op.vendor import vendor_cycles

Model = Literal["fitted", "vendor"]
MODELS: Final = ("fitted", "vendor")

OPERANDS: Final = frozenset((0, 1))  # that DRAM stages tell apart
VECTOR_SHARE: Final = {"rc": 1.0, "c": 0.5116, "r": 0.1440}
"""Vector-unit work of a tile when only rows or columns of it count: the vendor's weights of exp (PERF 2)."""


@dataclass(frozen=True, slots=True)
class OpCost:
    """What one input costs one core that reads from DRAM and writes to DRAM, as measured.

    `core_cycles` leaves out the stages in which DRAM was slower than the core: for a core fed by others. `ideal_cycles`
    is the bound that hardware sets; `provenance`: see `choose`.
    """

    cycles: float
    core_cycles: float
    ideal_cycles: float
    provenance: str
    model: Model


def op_cycles(call: OpCall, *, model: Model = "fitted") -> float:
    """Cycles of one op on one core for one input."""
    return op_cost(call, model=model).cycles


def op_cost(call: OpCall, *, model: Model = "fitted", reads: Set[int] = OPERANDS) -> OpCost:
    """Cycles with their bound and provenance. `model`: "fitted" on silicon, or the "vendor"'s formulas (PERF 2);
    `reads`: operands of a dense matmul that come from DRAM, where not both do.

    Raises HostError for an unknown model, and where the vendor's model gives no answer.
    """
    ideal = ideal_cycles(call)
    if model == "vendor":
        cycles = float(vendor_cycles(call))
        return OpCost(cycles, cycles, ideal, "vendor formula", model)
    if model != "fitted":
        raise HostError(f"model: '{model}' is not one of {', '.join(MODELS)}")
    choice = choose(call)
    with_dram, on_core = (max(_fitted(call, choice, dram), ideal) for dram in (reads, None))
    return OpCost(with_dram, on_core, ideal, choice.provenance, model)


def _fitted(call: OpCall, choice: Choice, dram: Set[int] | None) -> float:
    """What the chosen set says, shortened for vector modes and tiny tiles, lengthened for untilized output.

    `dram`: operands that come from there; None: what it adds is left out altogether. Where work on tiles is shorter or
    tiles are wider than measured, a copy of the tiles may come to govern.
    """
    counted = _as(call, choice)
    share = tile_fraction(call)
    if call.is_sfpu:
        share *= VECTOR_SHARE[call.vector_mode]
    cycles = _evaluate(counted, choice, share, dram)
    if call.kind not in FORMS and (share < tile_fraction(call) or widening(choice.parameters, call) > 1):
        copy = copy_of(call)
        cycles = max(cycles, _evaluate(copy, choose(copy), tile_fraction(call), dram))
    if call.untilize:
        cycles += call.tiles * tile_fraction(call) * payload(call.result_df) / UNTILIZE_PACK_BYTES
    return cycles


def _as(call: OpCall, choice: Choice) -> OpCall:
    """The op itself, or its relative of another kind that has been measured."""
    return call if call.kind == choice.parameters.kind else replace(copy_of(call), op_type=choice.parameters.kind)


def _evaluate(call: OpCall, choice: Choice, share: float, dram: Set[int] | None) -> float:
    weights = choice.weights if share == 1.0 else _shared(choice.weights, share)
    weights = {stage: _paid(stage, own, dram) for stage, own in weights.items()}
    return evaluate(form_of(choice.parameters.kind), weights, features(call), fpu_cycles(call) * tile_fraction(call))


def _paid(stage: str, weights: Mapping[str, float], dram: Set[int] | None) -> Mapping[str, float]:
    operands = DRAM_STAGES.get(stage)
    if operands is None:
        return weights
    if dram is None:
        return dict.fromkeys(weights, 0.0)
    return {count: 0.0 if operands.get(count, -1) not in {-1, *dram} else paid for count, paid in weights.items()}


def _shared(weights: Weights, share: float) -> Weights:
    """Weights for tiles of which only a share is worked on: set-up stays, work on tiles shrinks."""
    per_tile = tuple(f"{count}{ending}" for count in ("tiles", "products", "results") for ending in ROUNDS)
    return {
        stage: {name: value * (share if name.endswith(per_tile) else 1.0) for name, value in values.items()}
        for stage, values in weights.items()
    }
