"""Unrolls a fused op: its schedules as one list of sub-ops, each an op call on named buffers (OPS 8.1).

Every sub-op runs once on the whole tensor. Schedules that the reference aborts on are refused here, before data
flows."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Final

from buda_emu.arithmetic.tensor.tilemap import TileMap, TmError
from buda_emu.emulator import ops
from buda_emu.emulator.ops.base import Implementation, Operand, PlannedOp
from buda_emu.netlist.model import FusedOp, SubOp, Tm
from buda_emu.spec.attributes import Attributes
from buda_emu.spec.blocking import Blocking, Shape
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.errors import InternalError, ProgramError, UnsupportedError

DEST: Final = "dest"
OUTPUT: Final = "output"


@dataclass(frozen=True, slots=True)
class OperandOrigin:
    """The origin of an operand of a sub-op: an external operand of the base op, or a buffer. `tms` are those of the
    sub-op."""

    external: int = -1
    buffer: str = ""
    tms: tuple[Tm, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedSubOp:
    """One sub-op. `call.operands` are parallel to `sources`, in the order in which the function takes them."""

    implementation: Implementation
    call: PlannedOp
    sources: tuple[OperandOrigin, ...]
    target: str  # buffer that receives the result: intermedK, dest or output
    shape: Shape
    relu: tuple[str, float] | None  # mode and threshold
    convert: str  # integer format of the result, "" for none
    in_place: bool  # an SFPU function writes a part of each tile of its own input; the rest stays as it is (OPS 5.2)
    emptied: tuple[str, ...]  # buffers whose content is no longer needed after this step


@dataclass(frozen=True, slots=True)
class FusedPlan:
    """The steps of a fused op in order, and the shape and the format label of its result."""

    steps: tuple[PlannedSubOp, ...]
    shape: Shape
    label: str


@dataclass(frozen=True, slots=True)
class _Content:
    shape: Shape
    label: str


class SameCall:
    """A call as the key of a cache. Only keys of the same object are equal, since two calls that compare equal may bind
    different definitions of the op."""

    def __init__(self, call: PlannedOp) -> None:
        self.call = call

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameCall) and other.call is self.call

    def __hash__(self) -> int:
        return id(self.call)


def fused_plan(call: PlannedOp) -> FusedPlan:
    """Return the plan of a fused op, made at the first request for this call object. Raises ProgramError, naming op and
    sub-op, where the reference aborts, UnsupportedError for what is not emulated."""
    return _remembered_plan(SameCall(call))


@lru_cache(maxsize=256)
def _remembered_plan(key: SameCall) -> FusedPlan:
    """Return the plan of a fused op; remembered for each call object. Raises InternalError for a call without a
    definition of its schedules."""
    if key.call.fused is None:
        raise InternalError(f"op {key.call.name}: fused op without a definition")
    return _Planner(key.call, key.call.fused).plan()


class _Planner:
    """Walks the schedules and tracks the content of each buffer."""

    def __init__(self, base: PlannedOp, fused: FusedOp) -> None:
        self._base = base
        self._fused = fused
        self._live: dict[str, _Content] = {}
        self._result: _Content | None = None

    def plan(self) -> FusedPlan:
        """Return the plan of all schedules. Raises ProgramError for a sub-op that the reference refuses, and where a
        buffer is not popped at the end or `output` is not written."""
        steps = tuple(map(self._plan_sub_op, chain.from_iterable(self._fused.schedules)))
        unpopped = sorted(name for name in self._live if name != DEST)
        if unpopped:
            raise ProgramError(f"op {self._base.name}: {unpopped[0]} is not popped at the end of the schedules")
        if self._result is None:
            raise ProgramError(f"op {self._base.name}: no sub-op of its schedules writes output")
        return FusedPlan(steps, self._result.shape, self._result.label)

    def _plan_sub_op(self, sub: SubOp) -> PlannedSubOp:
        """Return the plan of the next sub-op, and update which buffers hold what after it. Raises ProgramError,
        UnsupportedError."""
        name = f"{self._base.name}, sub-op {sub.name}"
        op_type = OP_TYPES.get(sub.type)
        if op_type is None or not op_type.in_fused:
            raise ProgramError(f"op {name}: {sub.type} cannot be part of a fused op")
        sources = tuple(self._find_source(name, sub, position) for position in range(len(sub.inputs)))
        read = {source.buffer for source in sources if source.buffer}
        dropped = self._drop_dest(read)
        operands = tuple(self._operand(name, sub, position, source) for position, source in enumerate(sources))
        if sub.type == "dequantization" and sources[-1].buffer == DEST:
            # The function takes the data first, and here dest holds it and input 0 the scale (OPS 8.1).
            sources = sources[::-1]
            operands = operands[::-1]
        target = _buffer_of_word(sub.output) or OUTPUT
        call = self._make_call(name, sub, operands, target)
        implementation = ops.implementation(sub.type)
        shape = implementation.shape(call)
        convert = self._integer_format(sub, call)
        content = _Content(shape, convert or implementation.label(call))
        in_place = op_type.has("vector unit") and call.vector != "rc" and target in read
        if in_place and operands[0].map.shape != self._live[target].shape:
            raise UnsupportedError(f"op {name}: vector mode on a broadcast input that is also the output")
        emptied = dropped + self._account_for_result(name, sub, call, target, content, read)
        relu = _relu(name, self._base.attributes, sub)
        return PlannedSubOp(
            implementation=implementation,
            call=call,
            sources=sources,
            target=target,
            shape=shape,
            relu=relu,
            convert=convert,
            in_place=in_place,
            emptied=emptied,
        )

    def _find_source(self, name: str, sub: SubOp, position: int) -> OperandOrigin:
        """Return the origin of the input at `position` of a sub-op. `name`: op and sub-op for messages. Raises
        ProgramError for a buffer that holds nothing and an input that the op does not have."""
        word = sub.inputs[position]
        if position < len(sub.input_tms):
            tms = sub.input_tms[position]
        else:
            tms = ()
        buffer = _buffer_of_word(word)
        if buffer:
            if buffer not in self._live:
                raise ProgramError(f"op {name}: {word} is read before it is written")
            if buffer == DEST and tms:
                raise ProgramError(f"op {name}: a TM on dest")
            return OperandOrigin(buffer=buffer, tms=tms)
        if word.startswith("input"):
            external = _first_number(word)
        else:
            external = -1
        if not 0 <= external < len(self._base.operands):
            raise ProgramError(f"op {name}: there is no input {word!r}")
        return OperandOrigin(external=external, tms=tms)

    def _drop_dest(self, read: set[str]) -> tuple[str, ...]:
        """Forget the content of dest unless the sub-op reads it (`read`), since a sub-op that does not overwrites it.
        Returns the buffers that became empty: (dest,) or ()."""
        if DEST in read or DEST not in self._live:
            return ()
        del self._live[DEST]
        return (DEST,)

    def _operand(self, name: str, sub: SubOp, position: int, source: OperandOrigin) -> Operand:
        """Return the input at `position` as an operand: the content of its source after the broadcasts of the sub-op's
        TMs. Raises ProgramError for TMs that cannot run here."""
        if source.external >= 0:
            operand = self._base.operands[source.external]
        else:
            content = self._live[source.buffer]
            operand = Operand(TileMap.identity(content.shape), label=content.label)
        tiles = operand.map
        spread = ""
        for tm in source.tms:
            match tm.name, tm.args:
                case "broadcast", (dim, factor):
                    try:
                        tiles = tiles.broadcast(str(dim), int(factor))
                    except TmError as error:
                        raise ProgramError(f"op {name}: {error}") from None
                case "tile_broadcast", (("r" | "c" | "rc") as dim,):
                    if not OP_TYPES[sub.type].is_binary or position != 1:
                        raise ProgramError(f"op {name}: tile_broadcast is for input 1 of a binary sub-op only")
                    spread = dim if spread in ("", dim) else "rc"
                case _:
                    raise ProgramError(f"op {name}: TM {tm.name} with {list(tm.args)} cannot run in a fused op")
        return replace(operand, map=tiles, tile_broadcast=spread)

    def _make_call(self, name: str, sub: SubOp, operands: tuple[Operand, ...], target: str) -> PlannedOp:
        """Return the call of a sub-op on these operands. It has the formats of the base op, and the base op's m_k,
        u_kt, dim and type where it has none of its own. `target`: the buffer that it writes. Raises ProgramError for
        attributes that a fused op refuses."""
        base = self._base
        if sub.type == "matmul" and base.attributes.identity:
            raise ProgramError(f"op {name}: an identity matmul cannot be part of a fused op")
        written = sub.attributes
        attributes = replace(
            written,
            # The sub-op's value if it has one, else the base op's (OPS 8).
            m_k=written.m_k if written.m_k > 0 else base.attributes.m_k,
            u_kt=written.u_kt if written.u_kt > 0 else base.attributes.u_kt,
            dim=written.dim or base.attributes.dim,
            type=written.type or base.attributes.type,
            zero_point=sub.zero_point,
        )
        if sub.has("reduces") and attributes.dim not in ("r", "c"):
            raise ProgramError(f"op {name}: reduce in a fused op has dim r or c, not {attributes.dim!r}")
        blocking = Blocking(
            grid_size=base.blocking.grid_size,
            t=base.blocking.t,
            mblock=sub.mblock,
            ublock=sub.ublock,
            ublock_order=base.blocking.ublock_order,
            tile_dim=base.blocking.tile_dim,
        )
        # The base op's vector mode is not used, and an unknown mode counts as absent.
        vector = "rc"
        if written.vector in ("r", "c"):
            vector = written.vector
        formats = {DEST: base.acc_df, OUTPUT: base.out_df}
        return PlannedOp(
            name=name,
            type=sub.type,
            attributes=attributes,
            blocking=blocking,
            operands=operands,
            vector=vector,
            out_df=formats.get(target, base.intermed_df),
            intermed_df=base.intermed_df,
            acc_df=base.acc_df,
            undefined_is_nan=base.undefined_is_nan,
        )

    def _integer_format(self, sub: SubOp, call: PlannedOp) -> str:
        """Return the integer format that the result is converted to, "" for none (OPS 8.1 step 5)."""
        if sub.has("rounds to Int8"):
            return "Int8"
        if call.out_df in ("Int8", "Int32"):
            return call.out_df
        return ""

    def _account_for_result(
        self, name: str, sub: SubOp, call: PlannedOp, target: str, content: _Content, read: set[str]
    ) -> tuple[str, ...]:
        """Empty the buffers that a sub-op pops, and record its result, `content`, in the buffer `target`. `read`: the
        buffers that it reads. Returns the buffers whose content is gone, also that which is overwritten. Raises
        ProgramError for pops and writes out of order."""
        popped = [_buffer_of_word(word) for word in (*sub.pop, *sub.pop_last) if word.startswith("intermed")]
        missing = [buffer for buffer in popped if buffer not in self._live]
        if missing:
            raise ProgramError(f"op {name}: {missing[0]} is popped before it is written")
        if target.startswith("intermed") and target in self._live:
            if target not in popped or target not in read:
                raise ProgramError(f"op {name}: {target} is written again before it is popped")
            if sub.type == "matmul" and call.attributes.m_k > 1:
                raise ProgramError(f"op {name}: a matmul with m_k > 1 cannot pop the {target} that it writes")
        emptied = tuple(dict.fromkeys(buffer for buffer in (*popped, target) if buffer in self._live))
        for buffer in emptied:
            del self._live[buffer]
        if target == OUTPUT:
            self._result = content
        else:
            self._live[target] = content
        return emptied


def _buffer_of_word(word: str) -> str:
    """Return the buffer that a name in a netlist means: `dest`, or `intermedK` with K its last character (OPS 8); ""
    for other names, such as output."""
    if word.startswith("intermed"):
        return f"intermed{word[-1]}"
    return DEST if word == DEST else ""


def _first_number(word: str) -> int:
    """Return the integer that starts at the first digit of a name; -1 without one (NETLIST 11.1 A9)."""
    digits = re.search("[0-9]+", word)
    return int(digits[0]) if digits else -1


def _relu(name: str, base: Attributes, sub: SubOp) -> tuple[str, float] | None:
    """Return mode and threshold of a sub-op's relu, None without one. A sub-op that writes `output` also has the relu
    of the base op (OPS 8.1 step 4). Raises ProgramError if the two differ."""
    relu = sub.attributes.relu
    if sub.output != OUTPUT or base.relu is None:
        return relu
    if relu is not None and relu != base.relu:
        raise ProgramError(f"op {name}: its relu differs from the relu of the base op")
    return base.relu
