"""Cycles of one op on one core: the choice of a parameter set, its provenance, and lower bounds for any op."""

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any, Final, Literal, NamedTuple

from buda_emu.performance.timing.op.call import OpCall
from buda_emu.performance.timing.op.features import (
    DRAM_STAGES,
    FORMS,
    ROUNDS,
    Weights,
    evaluate,
    features,
    form_of,
    fpu_cycles,
    packed_bytes,
)
from buda_emu.performance.timing.op.vendor import vendor_cycles
from buda_emu.performance.timing.uncertainty import Interval, Part, interval_of
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.devices import device
from buda_emu.spec.formats import FORMATS, tile_bytes
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.errors import HostError, InternalError, UnsupportedError

Family = tuple[str, str, bool, bool, str]
"""What shares one set of weights: arch, kind, approximate, l1_acc, number classes `in->out`."""


@dataclass(frozen=True, slots=True)
class ParameterSet:
    """Weights of the cost model for one family of ops, and their origin. `fitted` and `held_out` are relative errors,
    on measured rows that the fit saw and on others."""

    arch: str
    kind: str
    approximate: bool
    l1_acc: bool
    numbers: str
    in_dfs: tuple[str, ...]
    out_dfs: tuple[str, ...]
    phases: tuple[int, ...]
    ranges: Mapping[str, tuple[int, int]]
    weights: Mapping[str, Mapping[str, float]]
    rows: int
    fitted: Mapping[str, float]
    held_out: Mapping[str, float]

    @property
    def family(self) -> Family:
        """Return the key under which the set is found."""
        return self.arch, self.kind, self.approximate, self.l1_acc, self.numbers

    @property
    def label(self) -> str:
        """Return the name of this set in reports."""
        marks = (" approximate" if self.approximate else "") + (" l1_acc" if self.l1_acc else "")
        return f"{self.arch} {self.kind}{marks} {'/'.join(self.out_dfs)}"


def number_class(df: str) -> str:
    """Return the class of a format, whose tiles are all moved alike: all block formats are "block", others kind and
    bits, such as "float16". Raises KeyError for an unknown format."""
    spec = FORMATS[df]
    if spec.kind == "block":
        return "block"
    return f"{spec.kind}{spec.bits}"


def numbers_of(call: OpCall) -> str:
    """Return the number classes of data and result as one word."""
    return f"{number_class(call.data_df)}->{number_class(call.result_df)}"


def family_of(call: OpCall) -> Family:
    """Return the family under which the weights of the call's own kind are found, if it was measured."""
    return call.arch, call.kind, call.approximate, call.l1_acc, numbers_of(call)


def sizes_of(call: OpCall) -> dict[str, int]:
    """Return the sizes whose measured range a set records: ublocks, tiles of one ublock, and the inner dimension in
    tiles (for a sparse matmul the encoded tiles)."""
    if call.sparse:
        inner = call.nz_tiles
    else:
        inner = max(call.z, 1) * max(call.m_k, 1) * max(call.u_kt, 1)
    return {"ublocks": call.ublocks, "ublock_tiles": call.ublock_tiles, "inner": inner}


@cache
def parameter_sets() -> Mapping[Family, ParameterSet]:
    """Return all parameter sets by family, in the order of the file `op_cost.json`. Cached. Raises InternalError for a
    file of another schema version."""
    text = (files("buda_emu.performance.timing") / "data" / "op_cost.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    if content["schema_version"] != 1:
        raise InternalError(f"op_cost.json has schema version {content['schema_version']}, not 1")
    sets = [_read_parameter_set(entry) for entry in content["sets"]]
    return {parameters.family: parameters for parameters in sets}


def _read_parameter_set(entry: dict[str, Any]) -> ParameterSet:
    """Return the parameter set of an entry of the file `op_cost.json`."""
    fields = dict(entry)
    for name in ("in_dfs", "out_dfs", "phases"):
        fields[name] = tuple(fields[name])
    fields["ranges"] = {name: tuple(ends) for name, ends in fields["ranges"].items()}
    return ParameterSet(**fields)


ARCH_RELATIVES: Final[Mapping[str, tuple[str, ...]]] = {
    "grayskull": ("grayskull", "wormhole_b0"),
    "wormhole_b0": ("wormhole_b0", "grayskull"),
    "wormhole": ("wormhole_b0", "grayskull"),
    "blackhole": ("wormhole_b0", "grayskull"),
}
"""Where to look for measurements; the vendor gives blackhole the parameters of wormhole_b0 too (PERF 2)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A parameter set, its weights widened to the op's formats, and the provenance of a result."""

    parameters: ParameterSet
    weights: Weights
    provenance: str


ParameterSets = Mapping[Family, ParameterSet]


def choose(call: OpCall, sets: ParameterSets | None = None) -> Choice:
    """Return the parameter set from which to compute an op's cost: that of its own family, or the nearest one, with a
    provenance that says so. `sets` replaces all sets, to see what the model would say without some."""
    if sets is None:
        sets = parameter_sets()
    parameters = sets.get(family_of(call))
    if parameters is not None:
        return Choice(parameters, _widen(parameters, call), _provenance(parameters, call))
    nearest = _nearest_set(call, sets)
    return Choice(nearest, _widen(nearest, call), f"estimated from {nearest.label}")


Basis = Literal["measured", "interpolated", "another format", "beyond sizes", "another op", "another chip"]
_GROUPS: Final[Mapping[str, str]] = {
    "matmul": "matmul",
    "depthwise": "matmul",
    "matmul_sparse": "sparse matmul",
    "reduce_r": "reduce",
    "reduce_c": "reduce",
    "reduce_z": "reduce",
}


def basis_of(call: OpCall, parameters: ParameterSet) -> Basis:
    """Return what the prediction of an op rests on when it comes from this set. Another format also stands for what
    else differs between ops of one kind, such as tiles and vector modes."""
    if parameters.kind != call.kind:
        return "another op"
    if parameters.arch != call.arch:
        return "another chip"
    if parameters.family != family_of(call):
        return "another format"
    provenance = _provenance(parameters, call)
    if provenance.endswith(_BEYOND):
        return "beyond sizes"
    if provenance == "measured" or provenance == "interpolated":
        return provenance
    return "another format"


def error_family_name(call: OpCall, basis: str) -> str:
    """Return the name of the ops whose cost is wrong by the same factor as this one's (`timing.uncertainty`): chip,
    group of kinds and `basis`, what the estimate rests on."""
    return f"{call.arch} {_GROUPS.get(call.kind, 'other ops')}, {basis}"


def has_measured_shape(call: OpCall) -> bool:
    """Return whether the op has the shape that was measured: full tiles, tilized output, vector mode rc."""
    return (call.tile_rows, call.tile_cols, call.vector_mode, call.untilize) == (32, 32, "rc", False)


def copy_of(call: OpCall) -> OpCall:
    """Return a nop of the same dimensions and formats. Its cost is that of moving the tiles alone."""
    return replace(call, op_type="nop", approximate=False, vector_mode="rc", l1_acc=False, reduce_dim="", z=0)


_BEYOND: Final = ", beyond the measured sizes"


def _provenance(parameters: ParameterSet, call: OpCall) -> str:
    """Return how well the set fits the op: "measured", "interpolated", or "estimated from ..." with the set's label."""
    if not has_measured_shape(call):
        return f"estimated from {parameters.label}"
    sizes = sizes_of(call)
    if any(not least <= sizes[name] <= greatest for name, (least, greatest) in parameters.ranges.items()):
        return f"estimated from {parameters.label}{_BEYOND}"
    same_formats = call.data_df in parameters.in_dfs and call.result_df in parameters.out_dfs
    same_phases = call.phases in parameters.phases or not OP_TYPES[call.op_type].has("multiplies")
    if same_formats and same_phases:
        return "measured"
    return "interpolated"


def _nearest_set(call: OpCall, sets: ParameterSets) -> ParameterSet:
    """Return the set that differs least from the call, among those of its kind or of the kind that its op type costs
    as, on its architecture or a related one."""
    kinds = [call.kind, OP_TYPES[call.op_type].costs_as]
    candidates = [
        candidate
        for candidate in sets.values()
        if candidate.kind in kinds and candidate.arch in ARCH_RELATIVES[call.arch]
    ]
    return min(candidates, key=lambda candidate: _distance(candidate, call, kinds))


def _distance(candidate: ParameterSet, call: OpCall, kinds: list[str]) -> tuple[object, ...]:
    """Return how a set differs from the call, as a key to sort by, most important difference first. `kinds` is in order
    of preference. The family's name breaks ties."""
    return (
        kinds.index(candidate.kind),
        ARCH_RELATIVES[call.arch].index(candidate.arch),
        candidate.approximate != call.approximate,
        candidate.l1_acc != call.l1_acc,
        _number_distance(candidate, call),
        candidate.family,
    )


def _number_distance(candidate: ParameterSet, call: OpCall) -> float:
    """Return how far the formats of set and call are apart: the doublings between their sizes; ten more for an integer
    format against a fraction."""
    if candidate.numbers == numbers_of(call):
        return 0.0
    distance = 0.0
    integer_kinds = ("int", "raw")
    for theirs, ours in ((candidate.in_dfs[0], call.data_df), (candidate.out_dfs[0], call.result_df)):
        integer_differs = (FORMATS[theirs].kind in integer_kinds) != (FORMATS[ours].kind in integer_kinds)
        distance += abs(FORMATS[theirs].bits.bit_length() - FORMATS[ours].bits.bit_length()) + 10 * integer_differs
        distance += 0.1 * (number_class(theirs) != number_class(ours))
    return distance


def widening(parameters: ParameterSet, call: OpCall) -> float:
    """Return the factor by which the op's tiles are wider in bytes than the measured ones, at least 1."""
    return max(
        1.0,
        packed_bytes(call.result_df) / max(map(packed_bytes, parameters.out_dfs)),
        packed_bytes(call.data_df) / max(map(packed_bytes, parameters.in_dfs)),
    )


def _widen(parameters: ParameterSet, call: OpCall) -> Weights:
    """Return the set's weights for the op's tiles if these are wider than the measured ones: stages that move tiles
    take longer by the same factor, math does not.

    For an element-wise op other than a copy the fit does not tell which stage is math, so its weights stay; `op_cost`
    takes a copy of the wider tiles as lower bound instead.
    """
    ratio = widening(parameters, call)
    if ratio == 1 or (parameters.kind not in FORMS and parameters.kind != "nop"):
        return parameters.weights
    return {
        stage: values
        if stage.startswith("math") and parameters.kind != "nop"
        else {name: value * (ratio if "tiles" in name else 1.0) for name, value in values.items()}
        for stage, values in parameters.weights.items()
    }


VECTOR_UNIT: Final[Mapping[str, float]] = {"grayskull": 1.59}
"""Cycles of a vector op that other ops feed, in cycles of the op alone."""


def in_graph(call: OpCall) -> float:
    """Return the factor (1 or more) by which an op takes longer when another op feeds it than when it runs alone."""
    if call.is_sfpu:
        return VECTOR_UNIT.get(call.arch, 1.0)
    return 1.0


ELTWISE_CYCLES = 8
"""FPU cycles of a tile: element-wise operation, copy to Dst, spill and reload of a partial sum (PERF 1.3)."""
UNTILIZE_PACK_BYTES = 16
"""Bytes for each cycle where rows leave through a single packer interface."""


class CoreSpeed(NamedTuple):
    """The factors by which a chip is faster than that on which ops were measured: in the math of a core (FPU and
    vector unit), in its unpackers and packers, and in the DRAM that it reads and writes."""

    math: float = 1.0
    moving: float = 1.0
    dram: float = 1.0


MEASURED: Final = CoreSpeed()
"""The speed of the chip on which ops were measured."""


def ideal_cycles(call: OpCall) -> float:
    """Return a lower bound of the cycles for one input: the slowest of FPU, unpack and pack at full rate."""
    return max(ideal_threads(call))


def ideal_threads(call: OpCall, core: CoreSpeed = MEASURED) -> tuple[float, float, float]:
    """Return the cycles that (unpackers, FPU, packers) need for one input at full rate, on a core of the speed `core`,
    by default the measured chip's."""
    results = call.tiles
    if call.kind == "reduce_r":
        results = call.t * call.mblock_n * call.ublock_ct
    elif call.kind == "reduce_c":
        results = call.t * call.mblock_m * call.ublock_rt
    if call.untilize:
        rate = UNTILIZE_PACK_BYTES
    else:
        rate = device(call.arch).pack_bytes_per_clock
    pack = results * tile_fraction(call) * payload(call.result_df) / rate
    return _ideal_unpack(call) / core.moving, ideal_math(call) / core.math, pack / core.moving


def tile_fraction(call: OpCall) -> float:
    """Return the elements of a tile as a share of the full 32x32."""
    return call.tile_rows * call.tile_cols / TILE_ELEMENTS


def payload(df: str) -> int:
    """Return the bytes of a full tile's datums and exponents, without header."""
    return tile_bytes(df, 32, 32, 32, False)


def ideal_math(call: OpCall) -> float:
    """Return the FPU cycles for one input at full rate, on the measured chip. Work of the vector unit is not
    counted."""
    fraction = tile_fraction(call)
    if call.sparse:
        return call.nz_tiles * call.mblock_n * call.ublock_ct * fpu_cycles(call) * fraction
    if call.op_type == "matmul":
        return call.products * fpu_cycles(call) * fraction
    if call.op_type == "multiply":
        phases = call.phases
    else:
        phases = 1
    return call.tiles * max(call.z if call.kind == "reduce_z" else 1, 1) * ELTWISE_CYCLES / 2 * phases * fraction


def _ideal_unpack(call: OpCall) -> float:
    """Return the unpacker's cycles for one input at full rate; 0 for a sparse matmul, of which no simple bound is
    known."""
    if call.sparse:
        return 0.0  # encoded operand and reuse of the dense one: no simple lower bound
    if call.op_type == "matmul":
        tiles = call.ublocks * call.m_k * call.u_kt * call.ublock_rt  # the left operand, once for each row of an ublock
    else:
        tiles = call.tiles * max(call.z if call.kind == "reduce_z" else 1, 1)
    return tiles * tile_fraction(call) * payload(call.data_df) / device(call.arch).unpack_bytes_per_clock


def math_active_cycles(call: OpCall) -> int:
    """Return the cycles in which the FPU works on one input of a dense matmul, as the chip's own counter reports them.

    They are the FPU cycles of all tile products, and 8 for each partial sum that is spilled and reloaded. With l1_acc
    partial sums stay in L1, and only a block format reloads them once, to round the result. Int32 results accumulate in
    Dst. (Silicon sweeps of wormhole_b0.) Raises UnsupportedError for other ops.
    """
    if call.op_type != "matmul" or call.sparse:
        raise UnsupportedError(f"math-active cycles are known of dense matmul only, not of {call.kind}")
    spills = call.m_k - 1
    if call.l1_acc:
        if call.result_df.startswith("Bfp"):
            spills = min(spills, 1)
        else:
            spills = 0
    if call.result_df == "Int32":
        spills = 0
    return call.products * fpu_cycles(call) + ELTWISE_CYCLES * spills * call.tiles


Model = Literal["fitted", "vendor"]
MODELS: Final = ("fitted", "vendor")

OPERANDS: Final = frozenset((0, 1))  # that DRAM stages tell apart
VECTOR_SHARE: Final = {"rc": 1.0, "c": 0.5116, "r": 0.1440}
"""Vector-unit work of a tile when only rows or columns of it count: the vendor's weights of exp (PERF 2)."""


@dataclass(frozen=True, slots=True)
class OpCost:
    """Cycles of one input on one core that reads from DRAM and writes to DRAM, as measured.

    `core_cycles` leaves out the stages in which DRAM was slower than the core; it applies to a core that other ops
    feed. `ideal_cycles` is the lower bound of the hardware; for `provenance` see `choose`. `family` names the ops that
    share its error (`timing.uncertainty`).
    """

    cycles: float
    core_cycles: float
    ideal_cycles: float
    provenance: str
    model: Model
    family: str

    @property
    def interval(self) -> Interval:
        """Return where `cycles` lie on silicon with a probability of 90 %."""
        return interval_of([Part("op", self.family, self.cycles)])


def op_cycles(call: OpCall, *, model: Model = "fitted") -> float:
    """Return the cycles of one op on one core for one input, with reads from and writes to DRAM. Raises the same errors
    as `op_cost`."""
    return op_cost(call, model=model).cycles


def op_cost(
    call: OpCall,
    *,
    model: Model = "fitted",
    reads: Set[int] = OPERANDS,
    core: CoreSpeed = MEASURED,
    sets: ParameterSets | None = None,
) -> OpCost:
    """Return the cycles of an op with their lower bound and provenance. `model` is "fitted" (on silicon) or "vendor"
    (its formulas, PERF 2). `reads` has the operands of a dense matmul that come from DRAM. `core` is the speed of the
    core; `sets` replaces the fitted parameter sets.

    Raises HostError for an unknown model, if the vendor's model gives no answer, and for a core of another speed under
    the vendor's model.
    """
    ideal = max(ideal_threads(call, core))
    if model == "vendor":
        if (core.math, core.moving) != (1.0, 1.0):
            raise HostError("model: the vendor's formulas know no other speed of FPU, unpackers and packers")
        cycles = float(vendor_cycles(call))
        return OpCost(
            cycles=cycles,
            core_cycles=cycles,
            ideal_cycles=ideal,
            provenance="vendor formula",
            model=model,
            family=error_family_name(call, "vendor formula"),
        )
    if model != "fitted":
        raise HostError(f"model: '{model}' is not one of {', '.join(MODELS)}")
    choice = choose(call, sets)
    with_dram, on_core = (max(_evaluate_choice(call, choice, dram, core), ideal) for dram in (reads, None))
    return OpCost(
        cycles=with_dram,
        core_cycles=on_core,
        ideal_cycles=ideal,
        provenance=choice.provenance,
        model=model,
        family=error_family_name(call, basis_of(call, choice.parameters)),
    )


def _evaluate_choice(call: OpCall, choice: Choice, dram: Set[int] | None, core: CoreSpeed) -> float:
    """Return the cycles of an op by the chosen set, shortened for vector modes and tiny tiles, lengthened for untilized
    output.

    `dram` has the operands that come from DRAM; None leaves the stages of DRAM out. If work on tiles is shorter or
    tiles are wider than measured, a plain copy of the tiles may be slower; the slower one counts. So it does for an op
    of the vector unit on a core of another speed: what was measured is the vector unit alone.
    """
    counted = _stand_in(call, choice)
    share = tile_fraction(call)
    if call.is_sfpu:
        share *= VECTOR_SHARE[call.vector_mode]
    cycles = _evaluate(counted, choice, share, dram, core)
    if call.kind not in FORMS and (share < tile_fraction(call) or widening(choice.parameters, call) > 1):
        copy = copy_of(call)
        cycles = max(cycles, _evaluate(copy, choose(copy), tile_fraction(call), dram, core))
    elif call.is_sfpu and core != MEASURED:
        cycles = max(cycles, _moving_alone(call, _evaluate(counted, choice, share, dram, MEASURED), dram, core))
    if call.untilize:
        cycles += call.tiles * tile_fraction(call) * payload(call.result_df) / (UNTILIZE_PACK_BYTES * core.moving)
    return cycles


def _moving_alone(call: OpCall, measured: float, dram: Set[int] | None, core: CoreSpeed) -> float:
    """Return the cycles in which a core of the speed `core` moves the tiles of a vector op that takes `measured` cycles
    on the chip: those of a copy, as far as the copy takes no longer than the op there."""
    copy = copy_of(call)
    choice = choose(copy)
    on_chip = _evaluate(copy, choice, tile_fraction(call), dram, MEASURED)
    return _evaluate(copy, choice, tile_fraction(call), dram, core) * min(1.0, measured / max(on_chip, 1.0))


def _stand_in(call: OpCall, choice: Choice) -> OpCall:
    """Return the op, or, if the chosen set is of another kind, an op of that kind with the same dimensions and
    formats."""
    if call.kind == choice.parameters.kind:
        return call
    return replace(copy_of(call), op_type=choice.parameters.kind)


def _evaluate(call: OpCall, choice: Choice, share: float, dram: Set[int] | None, core: CoreSpeed) -> float:
    """Return the cycles of a call by a set, on a core of the speed `core`, if only a share (0 to 1) of each tile is
    worked on. `dram` has the operands that come from DRAM; None leaves the stages of DRAM out."""
    if share == 1.0:
        weights = choice.weights
    else:
        weights = _scale_to_share(choice.weights, share)
    weights = {stage: _without_other_dram_reads(stage, stage_weights, dram) for stage, stage_weights in weights.items()}
    if core != MEASURED:
        weights = {
            stage: {name: value / _stage_speed(call, stage, core) for name, value in stage_weights.items()}
            for stage, stage_weights in weights.items()
        }
    product_cycles = fpu_cycles(call) * tile_fraction(call) / core.math
    return evaluate(form_of(choice.parameters.kind), weights, features(call), product_cycles)


_LATENCIES: Final = ("fixed", "turn", "block")
"""Beginnings of the names of stages that no faster unit shortens: set-up, and waits of one unit for another."""


def _stage_speed(call: OpCall, stage: str, core: CoreSpeed) -> float:
    """Return the factor by which the unit that works in a stage is faster than on the measured chip; 1 for latencies.

    Of an element-wise op the fit does not tell the units apart: it is the vector unit if the op runs there, else
    unpackers and packers, which take longer for a tile than the FPU (`ideal_threads`).
    """
    if stage in DRAM_STAGES:
        return core.dram
    if stage.startswith(_LATENCIES):
        return 1.0
    if call.kind not in FORMS:
        if call.is_sfpu:
            return core.math
        return core.moving
    if stage.startswith("math"):
        return core.math
    return core.moving


def _without_other_dram_reads(stage: str, weights: Mapping[str, float], dram: Set[int] | None) -> Mapping[str, float]:
    """Return the weights of a stage with those set to 0 that belong to operands which do not come from DRAM. `dram` has
    the operands that do; None if none does and nothing is written there."""
    operands = DRAM_STAGES.get(stage)
    if operands is None:
        return weights
    if dram is None:
        return dict.fromkeys(weights, 0.0)
    return {count: 0.0 if operands.get(count, -1) not in {-1, *dram} else paid for count, paid in weights.items()}


def _scale_to_share(weights: Weights, share: float) -> Weights:
    """Return the weights for tiles of which only a share (0 to 1) is worked on: set-up stays, work on tiles shrinks."""
    per_tile = tuple("".join(words) for words in product(("tiles", "products", "results"), ROUNDS))
    return {
        stage: {name: value * (share if name.endswith(per_tile) else 1.0) for name, value in values.items()}
        for stage, values in weights.items()
    }
