"""Count what a schedule moves and computes, without any time: bytes by kind and layer, reuse, traffic of links, and
accesses, which a user's energy table turns into energy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from buda_emu.foreign.gemini.index import Index, tensors_holding
from buda_emu.foreign.gemini.model import IR, Workload
from buda_emu.foreign.gemini.time.plan import Plan, make_plan
from buda_emu.foreign.gemini.time.timing import Link, link_bytes
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError

ACCESSES: Mapping[str, str] = {
    "mac": "multiplications with accumulation of convolutions and dense layers",
    "vector_op": "elements that other layers make",
    "l2_read_byte": "bytes that operands, weights and stores take from L2",
    "l2_write_byte": "bytes that loads, results and pieces of other cores put into L2",
    "dram_read_byte": "bytes that loads and weights take from DRAM",
    "dram_write_byte": "bytes that stores put into DRAM",
    "noc_byte_hop": "bytes between cores, times the links that they go over",
}
"""Name and meaning of each count, for which an energy table may give a value."""


@dataclass(frozen=True, slots=True)
class LayerBytes:
    """Bytes and multiplications of a layer's workloads. `reuse` is the bytes of operands and weights that are read for
    each byte that is loaded, None where nothing is loaded."""

    layer: str
    workloads: int
    loaded: int
    weights: int
    stored: int
    sent: int
    macs: int
    reuse: float | None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of one schedule. `links` gives the bytes on each directed link of the mesh."""

    dialect: str
    cores: int
    workloads: int
    layers: int
    transfers: int
    dram_in: int
    dram_out: int
    bytes: dict[str, int]
    by_layer: tuple[LayerBytes, ...]
    accesses: dict[str, int]
    links: dict[Link, int]


def statistics(ir: IR) -> Statistics:
    """Count what a schedule moves and computes. Raises ProgramError for a schedule whose DRAM queue cannot be
    determined."""
    index = Index(ir)
    plan = make_plan(index)
    moved = {"load": 0, "weight": 0, "store": 0}
    for transfer in plan.queue:
        moved[transfer.kind] += transfer.bytes
    moved["noc"] = sum(send.bytes for send in plan.sends)
    return Statistics(
        dialect=ir.dialect,
        cores=len(ir.cores),
        workloads=len(ir.workloads()),
        layers=len({work.layer_name for work in ir.workloads()}),
        transfers=len(ir.transfers),
        dram_in=len(ir.dram_in),
        dram_out=len(ir.dram_out),
        bytes=moved,
        by_layer=_count_by_layer(index, plan),
        accesses=_count_accesses(index, plan),
        links=link_bytes(ir, plan.sends),
    )


def energy(accesses: Mapping[str, int], table: Mapping[str, object]) -> dict[str, float]:
    """Return accesses times the user's values, and their sum as `total`, in the table's unit. Raises HostError for a
    name that is not counted, or a value that is not a number of 0 or more."""
    energies: dict[str, float] = {}
    for name, value in table.items():
        if name not in ACCESSES:
            hint = near(str(name), ACCESSES)
            raise HostError(f"energy table: {name!r} is not counted ({hint or 'known: ' + ', '.join(ACCESSES)})")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e30:
            raise HostError(f"energy table: {name} is a number of 0 or more, not {value!r}")
        energies[name] = accesses[name] * value
    return {**energies, "total": sum(energies.values())}


def count_macs(index: Index, work: Workload) -> int:
    """Return the multiplications of a workload with weights: its output elements times the weights of an output
    channel; 0 without weights."""
    if work.weight is None:
        return 0
    if not index.ir.form.by_channel:
        return work.box.volume * work.weight.box.shape[2] * work.weight.box.shape[3]
    if work.weight.from_ofmap:
        return work.box.volume * work.weight.box.shape[2]
    outs = [index.outs[number] for number in work.weight.transfer_id if number in index.outs]
    channels = sum(out.box.shape[1] for out in outs)
    if channels:
        return work.box.volume * (sum(out.size for out in outs) // 8 // channels)
    return 0


def _bytes_read(index: Index, work: Workload) -> int:
    """Return the bytes that a workload's tiles (dialect A) or sources (dialect B) take from L2, weights included."""
    total = 0
    for operand in work.ifmap:
        if index.ir.form.tiled:
            word = max(operand.bitwidth // 8, 1)
            total += word * sum(tile.ifmap.volume for tile in work.tiles)
        else:
            total += operand.box.volume
    for number in work.weight.transfer_id if work.weight else ():
        out = index.outs.get(number)
        if out is not None:
            if not index.ir.form.in_bits:
                total += out.size
            else:
                total += -(-out.size // 8)
    return total


def _count_by_layer(index: Index, plan: Plan) -> tuple[LayerBytes, ...]:
    """Return the counts of each layer, in the order in which the file names them."""
    works_by_layer: dict[str, list[Workload]] = {}
    for work in index.ir.workloads():
        works_by_layer.setdefault(work.layer_name, []).append(work)
    sent: dict[str, int] = {}
    for send in plan.sends:
        name = index.ir.cores[send.step[0]][send.step[1]].layer_name
        sent[name] = sent.get(name, 0) + send.bytes
    rows = [_count_layer(index, plan, works, sent.get(name, 0)) for name, works in works_by_layer.items()]
    return tuple(rows)


def _count_layer(index: Index, plan: Plan, works: Sequence[Workload], sent: int) -> LayerBytes:
    """Return the counts of one layer's workloads, of which `sent` bytes go to other cores."""
    moved = _bytes_moved(plan, works)
    loaded = moved["load"] + moved["weight"]
    return LayerBytes(
        layer=works[0].layer_name,
        workloads=len(works),
        loaded=moved["load"],
        weights=moved["weight"],
        stored=moved["store"],
        sent=sent,
        macs=sum(count_macs(index, work) for work in works),
        reuse=sum(_bytes_read(index, work) for work in works) / loaded if loaded else None,
    )


def _bytes_moved(plan: Plan, works: Sequence[Workload]) -> dict[str, int]:
    """Return the bytes between DRAM and the cores that workloads load, load as weights and store, by kind."""
    read_ids = set(chain.from_iterable(work.reads for work in works))
    output_ids = {piece.transfer_id for piece in chain.from_iterable(work.ofmap for work in works)}
    cores = {work.core for work in works} | {-1}
    moved = {"load": 0, "weight": 0, "store": 0}
    for transfer in plan.queue:
        if transfer.kind == "store":
            counts = transfer.transfer_id in output_ids
        else:
            counts = transfer.transfer_id in read_ids and transfer.core in cores
        if counts:
            moved[transfer.kind] += transfer.bytes
    return moved


def _count_accesses(index: Index, plan: Plan) -> dict[str, int]:
    """Return how often each access of ACCESSES happens in one run of the schedule."""
    ir = index.ir
    loaded = sum(transfer.bytes for transfer in plan.queue if transfer.kind != "store")
    stored = sum(transfer.bytes for transfer in plan.queue if transfer.kind == "store")
    read = stored
    written = loaded
    multiplied = other = 0
    for work in ir.workloads():
        read += _bytes_read(index, work)
        multiplied += count_macs(index, work)
        if work.weight is None:
            other += work.box.volume
        for piece in work.ofmap:
            if not ir.form.in_bits:
                size = piece.size
            else:
                size = -(-piece.size // 8)
            rooms = len(tensors_holding(work, piece.transfer_id)) + (piece.transfer_id in index.room_of_output)
            written += size * (rooms if ir.form.addressed else 1)
    written += sum(send.bytes * len(send.cores) for send in plan.sends)
    far = sum(link_bytes(ir, plan.sends).values())
    return {
        "mac": multiplied,
        "vector_op": other,
        "l2_read_byte": read,
        "l2_write_byte": written,
        "dram_read_byte": loaded,
        "dram_write_byte": stored,
        "noc_byte_hop": far,
    }
