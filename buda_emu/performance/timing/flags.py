"""Flags of ops: short words for what an op wastes or what holds it back, as far as netlist and model say so."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from buda_emu.netlist.model import Netlist, Op, Pad
from buda_emu.performance.timing.result import EpochReport, PerfRun
from buda_emu.performance.timing.transfers.flows import channel_name, operand_shape

Flag: TypeAlias = Literal["padding", "recomputed", "one core", "DRAM"]
MOSTLY: Final = 0.5
"""The share of an op's elements from which on it computes mostly padding, and of an epoch of one input from which on an
op bounds it."""
MEANINGS: Final[Mapping[Flag, str]] = {
    "padding": f"over {100 * MOSTLY:.0f} % of the elements that it computes are padding",
    "recomputed": "it computes the same again: for each input, for each repetition of a broadcast, or as another op",
    "one core": "it, or a transfer of its core, bounds its epoch while cores are free",
    "DRAM": "a DRAM channel that it reads or writes works longer than the op itself",
}
"""Each flag with its meaning, in the order in which they are listed."""


def op_flags(netlist: Netlist, run: PerfRun, epoch: EpochReport) -> dict[str, tuple[Flag, ...]]:
    """Return by name the flags of each op of an epoch, which point out waste: mostly padding, a result computed again,
    an op on one core that bounds the epoch while others are free, waiting for DRAM. () for an op without any."""
    ops = [netlist.ops[op_timing.op] for op_timing in epoch.timing.ops]
    read_shares = _read_shares(netlist)
    flagged: dict[Flag, frozenset[str]] = {
        "padding": frozenset(op.name for op in ops if _padding_share(netlist, run, op, read_shares) > MOSTLY),
        "recomputed": frozenset(_repeated_work(netlist, epoch, ops)),
        "one core": frozenset({op_alone_on_a_core(netlist, run.chip.grid, epoch)}),
        "DRAM": frozenset(_bound_by_dram(epoch)),
    }
    return {op.name: tuple(flag for flag in MEANINGS if op.name in flagged[flag]) for op in ops}


# ------------------------------------------------------------------------------------------------------ padding
def _padding_share(netlist: Netlist, run: PerfRun, op: Op, read_shares: Mapping[str, float]) -> float:
    """Return the share (0 to 1) of the elements of an op that are padding: what the compiler recorded, else the tiles
    that the netlist pads itself or that no reader keeps. `read_shares` is that of `_read_shares`."""
    recorded = run.padding.get(op.name, run.padding.get(op.written_name))
    if recorded is not None:
        return recorded
    return max(1 - read_shares.get(op.name, 1.0), _share_of_pads(netlist, op))


def _read_shares(netlist: Netlist) -> dict[str, float]:
    """Return by name of the op the share of its result that is read by the reader which keeps most of it; ops without
    readers are missing."""
    shares = {queue.input: 1.0 for queue in netlist.queues.values()}
    for reader in netlist.ops.values():
        for operand, name in enumerate(reader.inputs):
            source = netlist.ops.get(name)
            if source is None:
                continue
            _, rows, columns = source.blocking.shape
            unpad = _pad_at(reader.input_unpad, operand)
            share = max(rows - unpad.rt, 0) * max(columns - unpad.ct, 0) / max(rows * columns, 1)
            shares[name] = max(shares.get(name, 0.0), share)
    return shares


def _share_of_pads(netlist: Netlist, op: Op) -> float:
    """Return the share of tiles that the op's own `pad` fields add to an operand, of the operand with the smallest
    share; 0 if one has none."""
    shares: list[float] = []
    for operand, name in enumerate(op.inputs):
        pad = _pad_at(op.input_pad, operand)
        source = netlist.queues.get(name) or netlist.ops.get(name)
        if source is None or not (pad.rt or pad.ct):
            return 0.0
        _, rows, columns = operand_shape(op, operand, source.blocking.shape)
        shares.append(1 - (rows - pad.rt) * (columns - pad.ct) / max(rows * columns, 1))
    return min(shares, default=0.0)


def _pad_at(pads: tuple[Pad, ...], operand: int) -> Pad:
    """Return the padding of an operand; one of no tiles where the list is too short."""
    if operand < len(pads):
        return pads[operand]
    return Pad()


# ---------------------------------------------------------------------------------------------------- recomputed
def _repeated_work(netlist: Netlist, epoch: EpochReport, ops: list[Op]) -> Iterator[str]:
    """Yield the names of ops that compute a result that is there already."""
    constant: set[str] = set()
    if epoch.timing.inputs > 1:
        constant = _constant_ops(epoch, ops)
    first_of: dict[object, str] = {}
    for op in ops:
        key = _computation(netlist, op)
        again = key is not None and first_of.setdefault(key, op.name) != op.name
        if again or op.name in constant or _repeats_a_broadcast(op):
            yield op.name


def _constant_ops(epoch: EpochReport, ops: list[Op]) -> set[str]:
    """Return the names of ops whose operands are all loaded once, or come from such ops: each input has the same
    result."""
    steady = {edge.target for edge in epoch.edges if edge.operand >= 0 and not edge.once and edge.memory != "none"}
    constant: set[str] = set()
    for op in ops:
        sources = set(op.inputs).intersection(other.name for other in ops)
        if op.inputs and not op.gradient_op and op.name not in steady and sources <= constant:
            constant.add(op.name)
    return constant


@dataclass(frozen=True, slots=True)
class _Computation:
    """Everything that the result of an op depends on, apart from its place on the chip and its division into blocks."""

    type: str
    operands: tuple[object, ...]
    formats: tuple[object, ...]
    attributes: object
    schedule: object
    shape: tuple[int, ...]
    chip: int


def _computation(netlist: Netlist, op: Op) -> _Computation | None:
    """Return what an op computes, as a key to find ops that compute the same; None for an op that adds to what it
    computed before, or whose attributes depend on its division into blocks."""
    if op.gradient_op or (op.has("cut by its attributes") and not op.has("sub-ops")):
        return None
    attributes = op.attributes
    schedule = None
    if op.has("sub-ops"):
        fused = netlist.fused_ops.get(attributes.fused_op_id)
        if fused is None:
            return None
        schedule = replace(fused, id="")
        attributes = replace(attributes, fused_op_id="")
    return _Computation(
        type=op.type,
        operands=(op.inputs, op.input_tms, op.input_unpad, op.input_pad),
        formats=(op.in_df, op.out_df, op.intermed_df, op.acc_df, op.math_fidelity, op.untilize_output),
        attributes=attributes,
        schedule=schedule,
        shape=op.blocking.shape,
        chip=op.target_device,
    )


def _repeats_a_broadcast(op: Op) -> bool:
    """Return whether an op computes tile by tile on operands that are all repeated along one dimension: it could run
    before that, on one of the repetitions. A copy has no work to spare."""
    if not op.has("tile by tile") or op.has("copies") or not op.inputs:
        return False
    directions: list[frozenset[object]] = []
    for tms in op.input_tms:
        directions.append(
            frozenset(tm.args[0] for tm in tms[-1:] if tm.name == "broadcast" and tm.args[-1] not in (0, 1))
        )
    if len(directions) < len(op.inputs):
        return False
    return any(all(direction in others for others in directions) for direction in directions[0])


# --------------------------------------------------------------------------------------------- cores and memory
def op_alone_on_a_core(netlist: Netlist, grid: tuple[int, int], epoch: EpochReport) -> str:
    """Return the op on one core that bounds the epoch while cores of its chip, which has this grid, are free; "" if
    there is none."""
    return _op_beside_free_cores(netlist, grid, epoch, alone=True)


def op_beside_free_cores(netlist: Netlist, grid: tuple[int, int], epoch: EpochReport) -> str:
    """Return the op that bounds the epoch, on one core or several, while cores of its chip, which has this grid, are
    free; "" if there is none."""
    alone = _op_beside_free_cores(netlist, grid, epoch, alone=True)
    return alone or _op_beside_free_cores(netlist, grid, epoch, alone=False)


def _op_beside_free_cores(netlist: Netlist, grid: tuple[int, int], epoch: EpochReport, *, alone: bool) -> str:
    """Return the first op that bounds the epoch, with `alone` the first on a single core, if cores of its chip are
    free; else ""."""
    limiting = (op for op in _limiting_ops(netlist, epoch) if not op.has("Ethernet"))
    op = next((op for op in limiting if op.blocking.cells == 1 or not alone), None)
    if op is None:
        return ""
    ops = [netlist.ops[op_timing.op] for op_timing in epoch.timing.ops]
    used = sum(other.blocking.cells for other in ops if _on_same_chip(op, other))
    rows, columns = grid
    if used < rows * columns:
        return op.name
    return ""


def _limiting_ops(netlist: Netlist, epoch: EpochReport) -> Iterator[Op]:
    """Yield the op that sets the pace of an epoch, or, if a transfer sets it, the ops at its ends, the receiving one
    first; of an epoch of one input the op that takes most of it. Nothing if memory or a link sets the pace."""
    limit = epoch.bottleneck
    if limit.kind == "latency" and limit.share <= MOSTLY:
        return
    if limit.kind not in ("op", "transfer", "latency"):
        return
    for name in reversed(limit.name.split(" > ")):
        op = netlist.ops.get(name)
        if op is not None:
            yield op


def _on_same_chip(op: Op, other: Op) -> bool:
    """Return whether `other` takes worker cores of the chip of `op`."""
    return other.target_device == op.target_device and not other.has("Ethernet")


def _bound_by_dram(epoch: EpochReport) -> Iterator[str]:
    """Yield the names of ops that a DRAM channel keeps waiting: one that they read or write works longer for each input
    than the op."""
    channels = {unit.name: unit.cycles for unit in epoch.timing.shared.memory}
    slowest: dict[str, float] = {}
    for edge in epoch.edges:
        if edge.memory != "dram" or edge.once:
            continue
        op = edge.target
        if edge.operand < 0:
            op = edge.source
        cycles = max((channels.get(channel_name(number, edge.chip), 0.0) for number in edge.memory_bytes), default=0.0)
        slowest[op] = max(slowest.get(op, 0.0), cycles)
    for op_timing in epoch.timing.ops:
        if slowest.get(op_timing.op, 0.0) > op_timing.cost.cycles:
            yield op_timing.op
