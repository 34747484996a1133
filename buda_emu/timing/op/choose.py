"""Chooses the parameter set for an op, and states how well founded it is.

"measured": the op's own family, formats and fidelity among those measured, sizes within the measured range.
"interpolated": its own family, but another format of the class or another fidelity.
"estimated from X": nothing like it was measured; X is the nearest relative that was.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from buda_emu.spec.formats import FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.timing.op.call import OpCall
from buda_emu.timing.op.features import packed_bytes
from buda_emu.timing.op.forms import FORMS, Weights
from buda_emu.timing.op.parameters import ParameterSet, family_of, number_class, numbers_of, parameter_sets, sizes_of

ARCH_RELATIVES: Final[Mapping[str, tuple[str, ...]]] = {
    "grayskull": ("grayskull", "wormhole_b0"),
    "wormhole_b0": ("wormhole_b0", "grayskull"),
    "wormhole": ("wormhole_b0", "grayskull"),
    "blackhole": ("wormhole_b0", "grayskull"),
}
"""Where to look for measurements; the vendor gives blackhole the parameters of wormhole_b0 too (PERF 2)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A parameter set, its weights widened to the op's formats, and what may be said of the result."""

    parameters: ParameterSet
    weights: Weights
    provenance: str


def choose(call: OpCall) -> Choice:
    """The parameter set for an op. Every op type has one."""
    own = parameter_sets().get(family_of(call))
    if own is not None:
        return Choice(own, _widened(own, call), _provenance(own, call))
    nearest = _nearest(call)
    return Choice(nearest, _widened(nearest, call), f"estimated from {nearest.label}")


def plain(call: OpCall) -> bool:
    """Whether the op is of the shape that was measured: full tiles, tilized output, the whole tile in vector mode."""
    return (call.tile_rows, call.tile_cols, call.vector_mode, call.untilize) == (32, 32, "rc", False)


def copy_of(call: OpCall) -> OpCall:
    """A nop of the same dimensions and formats: what moving the tiles costs, whatever is computed on them."""
    return replace(call, op_type="nop", approximate=False, vector_mode="rc", l1_acc=False, reduce_dim="", z=0)


def _provenance(own: ParameterSet, call: OpCall) -> str:
    if not plain(call):
        return f"estimated from {own.label}"
    sizes = sizes_of(call)
    if any(not least <= sizes[name] <= most for name, (least, most) in own.ranges.items()):
        return f"estimated from {own.label}, beyond the measured sizes"
    same_formats = call.data_df in own.in_dfs and call.result_df in own.out_dfs
    same_phases = call.phases in own.phases or not OP_TYPES[call.op_type].has("multiplies")
    return "measured" if same_formats and same_phases else "interpolated"


def _nearest(call: OpCall) -> ParameterSet:
    kinds = [call.kind, OP_TYPES[call.op_type].costs_as]
    sets = [one for one in parameter_sets().values() if one.kind in kinds and one.arch in ARCH_RELATIVES[call.arch]]
    return min(sets, key=lambda one: _distance(one, call, kinds))


def _distance(one: ParameterSet, call: OpCall, kinds: list[str]) -> tuple[object, ...]:
    """What sets apart, the worst first; ties end at the family's name."""
    return (
        kinds.index(one.kind),
        ARCH_RELATIVES[call.arch].index(one.arch),
        one.approximate != call.approximate,
        one.l1_acc != call.l1_acc,
        _number_distance(one, call),
        one.family,
    )


def _number_distance(one: ParameterSet, call: OpCall) -> float:
    """Doublings between tile sizes; more than any of them where integers meet fractions."""
    if one.numbers == numbers_of(call):
        return 0.0
    distance = 0.0
    whole_kinds = ("int", "raw")
    for theirs, ours in ((one.in_dfs[0], call.data_df), (one.out_dfs[0], call.result_df)):
        whole = (FORMATS[theirs].kind in whole_kinds) != (FORMATS[ours].kind in whole_kinds)
        distance += abs(FORMATS[theirs].bits.bit_length() - FORMATS[ours].bits.bit_length()) + 10 * whole
        distance += 0.1 * (number_class(theirs) != number_class(ours))
    return distance


def widening(own: ParameterSet, call: OpCall) -> float:
    """How much wider the op's tiles are than the measured ones, at least 1."""
    return max(
        1.0,
        packed_bytes(call.result_df) / max(map(packed_bytes, own.out_dfs)),
        packed_bytes(call.data_df) / max(map(packed_bytes, own.in_dfs)),
    )


def _widened(own: ParameterSet, call: OpCall) -> Weights:
    """Weights for wider tiles than the measured ones: whatever moves tiles takes longer by as much, math does not.

    Of an element-wise op other than a copy the stages do not say which of them is math; `op_cost` sets a copy of the
    wider tiles beside it instead.
    """
    ratio = widening(own, call)
    if ratio == 1 or (own.kind not in FORMS and own.kind != "nop"):
        return own.weights
    return {
        stage: values
        if stage.startswith("math") and own.kind != "nop"
        else {name: value * (ratio if "tiles" in name else 1.0) for name, value in values.items()}
        for stage, values in own.weights.items()
    }
