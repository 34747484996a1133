"""L2 of dialect A: addresses, rings, and tensors from snapshot to snapshot: G040 to G043, G046, G047, G054."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from buda_emu.checker import Finding
from buda_emu.gemini.book import BOOK
from buda_emu.gemini.frontend import Network
from buda_emu.gemini.index import Index, Life
from buda_emu.gemini.model import IR, Region, Tensor, Workload
from buda_emu.gemini.rings import pieces, region_of
from buda_emu.gemini.sizes import fmap_bytes, legal, weight_bytes


def _broken_regions(ir: IR, work: Workload) -> str:
    """Why a snapshot's ring regions cannot be used, "" where they can."""
    if work.regions is None:
        return "a region is a pair of first byte and byte after the last"
    if not work.regions:
        return "there is no region"
    top = ir.buffersize or 0
    for low, high in work.regions:
        if not 0 <= low < high <= top:
            return f"region [{low}, {high}] is empty or beyond the buffer of {top} bytes"
    regions = sorted(work.regions)
    for (_, high), (low, _) in pairwise(regions):
        if low < high:
            return f"regions overlap at {low}"
    return ""


@BOOK.rule(
    "G047", "error", "ring regions are empty, overlap, are not pairs, or reach beyond the buffer",
    source="GEMINI 2.4", fix="[[0, buffersize]] is one ring of the whole buffer",
)  # fmt: skip
def rings(index: Index, _: Network | None) -> Iterator[Finding]:
    """Each snapshot."""
    for work in _works(index):
        wrong = _broken_regions(index.ir, work)
        if wrong:
            yield Finding(f"{work.place}/ring_buffer_info", wrong)


def _works(index: Index) -> Sequence[Workload]:
    """Snapshots that have an L2."""
    return index.ir.workloads() if index.ir.form.addressed else ()


def _placed(index: Index) -> Iterator[tuple[Workload, Sequence[Region]]]:
    """Snapshots whose regions can be used."""
    for work in _works(index):
        if work.regions is not None and not _broken_regions(index.ir, work):
            yield work, work.regions


def _held(tensor: Tensor) -> int:
    """Bytes that a tensor holds: where its size and its box differ the smaller of both, since G031 or G032 tells."""
    if tensor.type == "weight":
        return min(tensor.size, weight_bytes(tensor.box))
    return min(tensor.size, fmap_bytes(tensor.box, tensor.bitwidth)) if _legal(tensor) else tensor.size


def _legal(tensor: Tensor) -> bool:
    return legal(tensor.align, tensor.bitwidth)


def _too_much(index: Index, work: Workload) -> int:
    """Bytes of a snapshot beyond the buffer."""
    return sum(map(_held, work.buffer)) - (index.ir.buffersize or 0)


@BOOK.rule(
    "G040", "error", "an address is in no ring region, or a tensor is larger than its region",
    source="GEMINI 2.4", unless=("G042",),
)  # fmt: skip
def in_region(index: Index, _: Network | None) -> Iterator[Finding]:
    """Each tensor, once for each address."""
    seen: set[tuple[int, int, int, int]] = set()
    for work, regions in _placed(index):
        for tensor in work.buffer:
            key = (work.core, tensor.tensor_id, tensor.address, tensor.size)
            region = region_of(regions, tensor.address)
            if key in seen or (region is not None and _held(tensor) <= region[1] - region[0]):
                continue
            seen.add(key)
            if region is None:
                said = f"address {tensor.address} is in no ring region"
                yield Finding(f"{tensor.place}/address", said, about=(work.core, tensor.tensor_id))
            else:
                said = f"tensor {tensor.tensor_id} has {_held(tensor)} bytes, its region {region[1] - region[0]}"
                yield Finding(f"{tensor.place}/size", said, about=(work.core, tensor.tensor_id))


@BOOK.rule(
    "G041", "error", "two tensors of a snapshot share a byte",
    why="A byte past the end of a ring region continues at its first byte.",
    source="GEMINI 2.4", fix="move one of them, or show it in fewer snapshots",
)  # fmt: skip
def shared(index: Index, _: Network | None) -> Iterator[Finding]:
    """Pairs of tensors, each once. Not of one that G042 says was moved, nor where all together are too large (G054)."""
    seen: set[tuple[int, int, int]] = set()
    moved = _moved(index)
    for work, regions in _placed(index):
        if _too_much(index, work) > 0:
            continue
        stretches: list[tuple[int, int, Tensor]] = []
        for tensor in work.buffer:
            region = region_of(regions, tensor.address)
            key = (work.core, tensor.tensor_id)
            if region is None or not 0 < _held(tensor) <= region[1] - region[0] or key in moved:
                continue
            stretches += [(*piece, tensor) for piece in pieces(region, tensor.address, _held(tensor))]
        stretches.sort(key=lambda item: item[:2])
        for number, (low, high, tensor) in enumerate(stretches):
            for other_low, other_high, other in stretches[number + 1 :]:
                if other_low >= high:
                    break
                first, second = sorted((tensor, other), key=lambda item: item.tensor_id)
                key = (work.core, first.tensor_id, second.tensor_id)
                if first.tensor_id == second.tensor_id or key in seen:
                    continue
                seen.add(key)
                both = f"tensors {first.tensor_id} and {second.tensor_id}"
                said = f"{both} share bytes {max(low, other_low)} to {min(high, other_high) - 1} of core {work.core}"
                yield Finding(f"{second.place}/address", said)


def _moved(index: Index) -> set[tuple[int, int]]:
    """Tensors that are said to lie elsewhere, or to be larger, in another snapshot."""
    return {
        key
        for key, life in index.lives.items()
        if any((item.address, item.size) != (life.first.address, life.first.size) for item in life.tensors)
    }


_KEPT = ("address", "size", "box", "type", "bitwidth", "tensor_order")


def _changes(life: Life) -> Iterator[tuple[Tensor, str, object, object]]:
    for before, after in zip(life.tensors, life.tensors[1:], strict=False):
        for name in _KEPT:
            old, new = getattr(before, name), getattr(after, name)
            if name == "bitwidth" and not (legal(before.align, before.bitwidth) and legal(after.align, after.bitwidth)):
                continue  # G030 tells
            if old != new:
                yield after, name, old, new


@BOOK.rule(
    "G042", "error", "a tensor_id is twice in a snapshot, comes back, or changes while it is resident",
    why="A tensor keeps address, size, box, type, bitwidth and tensor_order from the first snapshot that shows "
    "it to the "
    "last, without a gap.",
    source="GEMINI 2.3", unless=("G048",),
)  # fmt: skip
def identity(index: Index, _: Network | None) -> Iterator[Finding]:
    """Each tensor_id of each core."""
    for work in _works(index):
        seen: set[int] = set()
        for tensor in work.buffer:
            if tensor.tensor_id in seen:
                said = f"tensor {tensor.tensor_id} is twice in the snapshot of {work}"
                yield Finding(f"{tensor.place}/tensor_id", said, about=(work.core, tensor.tensor_id))
            seen.add(tensor.tensor_id)
    for key, life in index.lives.items() if index.ir.form.addressed else ():
        name = f"tensor {life.tensor_id} of core {life.core}"
        for before, after, tensor in zip(life.at, life.at[1:], life.tensors[1:], strict=False):
            if after != before + 1:
                said = f"{name} had left after snapshot {before} and is back in snapshot {after}"
                yield Finding(f"{tensor.place}/tensor_id", said, about=key)
        for tensor, field, old, new in _changes(life):
            place = f"{tensor.place}/{'upper' if field == 'box' else field}"
            yield Finding(place, f"{field} of {name} was {old} and is now {new}", about=key)


@BOOK.rule(
    "G043", "error", "newly_added is not \"absent from the snapshot before\"", source="GEMINI 2.3",
    unless=("G042", "G048"),
)  # fmt: skip
def added(index: Index, _: Network | None) -> Iterator[Finding]:
    """Each entry but those that wait to be stored."""
    for works in index.ir.cores.values() if index.ir.form.addressed else ():
        before: set[int] = set()
        for work in works:
            for tensor in work.buffer:
                new = tensor.tensor_id not in before
                if tensor.type != "ofmap" and tensor.newly_added != new:
                    was = "was not" if new else "was"
                    said = f"tensor {tensor.tensor_id} {was} in the snapshot before"
                    yield Finding(f"{tensor.place}/newly_added", said, about=(work.core, tensor.tensor_id))
            before = {tensor.tensor_id for tensor in work.buffer}


@BOOK.rule(
    "G046", "error", "a store falls back to waiting, or never starts",
    why="start_send is true from the snapshot in which the store may begin until the tensor leaves.",
    source="GEMINI 2.3",
)  # fmt: skip
def sending(index: Index, _: Network | None) -> Iterator[Finding]:
    """Each tensor that waits to be stored."""
    for life in index.lives.values() if index.ir.form.addressed else ():
        if life.first.type != "ofmap":
            continue
        for before, after in zip(life.tensors, life.tensors[1:], strict=False):
            if before.start_send and not after.start_send:
                yield Finding(f"{after.place}/start_send", f"tensor {life.tensor_id} had started to be sent")
        last = life.tensors[-1]
        if not any(item.start_send for item in life.tensors):
            yield Finding(f"{last.place}/start_send", f"tensor {life.tensor_id} leaves and is never sent")


@BOOK.rule("G054", "error", "the tensors of a snapshot are together larger than the buffer", source="GEMINI 4")
def room(index: Index, _: Network | None) -> Iterator[Finding]:
    """Each snapshot."""
    top = index.ir.buffersize or 0
    for work in _works(index):
        beyond = _too_much(index, work)
        if beyond > 0:
            yield Finding(f"{work.place}/buffer", f"the snapshot of {work} has {top + beyond} bytes, the buffer {top}")
