"""Rules of L2 and of the DRAM queue: addresses, rings, residence, weights (G044 to G053)."""

from collections.abc import Iterator, Sequence, Set
from itertools import pairwise

from buda_emu.foreign.gemini.book import BOOK
from buda_emu.foreign.gemini.frontend import Network
from buda_emu.foreign.gemini.index import Index, Life, find_read_tensor, operand_entries, reached_sources
from buda_emu.foreign.gemini.model import IR, Ofmap, Region, Tensor, Workload
from buda_emu.foreign.gemini.sizes import fmap_bytes, is_legal_alignment, pieces, region_of, weight_bytes
from buda_emu.support.checker import Finding


def _broken_regions(ir: IR, work: Workload) -> str:
    """Return why a snapshot's ring regions cannot be used, "" where they can."""
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
def check_rings(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report ring regions of a snapshot that are empty, overlap, are no pairs, or reach beyond the buffer (G047)."""
    for work in _snapshots(index):
        wrong = _broken_regions(index.ir, work)
        if wrong:
            yield Finding(f"{work.place}/ring_buffer_info", wrong)


def _snapshots(index: Index) -> Sequence[Workload]:
    """Return the workloads whose snapshots describe an L2: all of dialect A, none of dialect B."""
    if index.ir.form.addressed:
        return index.ir.workloads()
    return ()


def _snapshots_with_regions(index: Index) -> Iterator[tuple[Workload, Sequence[Region]]]:
    """Yield the workloads whose ring regions can be used, with the regions."""
    for work in _snapshots(index):
        if work.regions is not None and not _broken_regions(index.ir, work):
            yield work, work.regions


def _count_bytes(tensor: Tensor) -> int:
    """Return the bytes that a tensor holds. Where its size and its box differ, which G031 or G032 reports, the smaller
    one counts."""
    if tensor.type == "weight":
        return min(tensor.size, weight_bytes(tensor.box))
    if _has_legal_alignment(tensor):
        return min(tensor.size, fmap_bytes(tensor.box, tensor.bitwidth))
    return tensor.size


def _has_legal_alignment(tensor: Tensor) -> bool:
    """Return whether a tensor has a bitwidth of 8 or 16, and the align that belongs to it (G030)."""
    return is_legal_alignment(tensor.align, tensor.bitwidth)


def _bytes_beyond_buffer(index: Index, work: Workload) -> int:
    """Return how many bytes a snapshot needs beyond the buffer; negative where it fits."""
    return sum(map(_count_bytes, work.buffer)) - (index.ir.buffersize or 0)


@BOOK.rule(
    "G040", "error", "an address is in no ring region, or a tensor is larger than its region",
    source="GEMINI 2.4", unless=("G042",),
)  # fmt: skip
def check_regions(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a tensor whose address is in no ring region or that is larger than its region, once for each address
    (G040)."""
    seen: set[tuple[int, int, int, int]] = set()
    for work, regions in _snapshots_with_regions(index):
        for tensor in work.buffer:
            key = (work.core, tensor.tensor_id, tensor.address, tensor.size)
            region = region_of(regions, tensor.address)
            if key in seen or (region is not None and _count_bytes(tensor) <= region[1] - region[0]):
                continue
            seen.add(key)
            if region is None:
                problem = f"address {tensor.address} is in no ring region"
                yield Finding(f"{tensor.place}/address", problem, about=(work.core, tensor.tensor_id))
            else:
                problem = (
                    f"tensor {tensor.tensor_id} has {_count_bytes(tensor)} bytes, its region {region[1] - region[0]}"
                )
                yield Finding(f"{tensor.place}/size", problem, about=(work.core, tensor.tensor_id))


@BOOK.rule(
    "G041", "error", "two tensors of a snapshot share a byte",
    why="A byte past the end of a ring region continues at its first byte.",
    source="GEMINI 2.4", fix="move one of them, or show it in fewer snapshots",
)  # fmt: skip
def check_overlaps(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report pairs of tensors that share a byte in a snapshot, each pair once (G041). Tensors that G042 reports as
    moved are left out, and snapshots that are too large as a whole (G054)."""
    seen: set[tuple[int, int, int]] = set()
    moved = _tensors_that_move(index)
    for work, regions in _snapshots_with_regions(index):
        if _bytes_beyond_buffer(index, work) > 0:
            continue
        for first, second, (low, high) in _overlapping_tensors(_list_stretches(work, regions, moved)):
            key = (work.core, first.tensor_id, second.tensor_id)
            if first.tensor_id != second.tensor_id and key not in seen:
                seen.add(key)
                names = f"tensors {first.tensor_id} and {second.tensor_id}"
                problem = f"{names} share bytes {low} to {high - 1} of core {work.core}"
                yield Finding(f"{second.place}/address", problem)


def _list_stretches(
    work: Workload, regions: Sequence[Region], moved: Set[tuple[int, int]]
) -> list[tuple[int, int, Tensor]]:
    """Return the byte ranges of a snapshot's tensors in ascending order, without tensors that fit no region and
    without `moved` ones, given by core and tensor_id."""
    stretches: list[tuple[int, int, Tensor]] = []
    for tensor in work.buffer:
        region = region_of(regions, tensor.address)
        if region is None or (work.core, tensor.tensor_id) in moved:
            continue
        if 0 < _count_bytes(tensor) <= region[1] - region[0]:
            stretches += [(*piece, tensor) for piece in pieces(region, tensor.address, _count_bytes(tensor))]
    return sorted(stretches, key=lambda stretch: stretch[:2])


def _overlapping_tensors(
    stretches: Sequence[tuple[int, int, Tensor]],
) -> Iterator[tuple[Tensor, Tensor, tuple[int, int]]]:
    """Yield pairs of tensors, the smaller tensor_id first, with the bytes that they share."""
    for number, (low, high, tensor) in enumerate(stretches):
        for other_low, other_high, other in stretches[number + 1 :]:
            if other_low >= high:
                break
            first, second = sorted((tensor, other), key=lambda entry: entry.tensor_id)
            yield first, second, (max(low, other_low), min(high, other_high))


def _tensors_that_move(index: Index) -> set[tuple[int, int]]:
    """Return core and tensor_id of the tensors that another snapshot shows at another address or with another size."""
    return {
        key
        for key, life in index.lives.items()
        if any((tensor.address, tensor.size) != (life.first.address, life.first.size) for tensor in life.tensors)
    }


_CONSTANT_FIELDS = ("address", "size", "box", "type", "bitwidth", "tensor_order")


def _find_changes(life: Life) -> Iterator[tuple[Tensor, str, object, object]]:
    """Yield entry, field, old and new value for each field that changes while the tensor is resident."""
    for before, after in zip(life.tensors, life.tensors[1:], strict=False):
        for name in _CONSTANT_FIELDS:
            old = getattr(before, name)
            new = getattr(after, name)
            if name == "bitwidth" and not (
                is_legal_alignment(before.align, before.bitwidth) and is_legal_alignment(after.align, after.bitwidth)
            ):
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
def check_identity(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a tensor_id that is twice in a snapshot, comes back after it had left, or changes while it is resident
    (G042)."""
    for work in _snapshots(index):
        seen: set[int] = set()
        for tensor in work.buffer:
            if tensor.tensor_id in seen:
                problem = f"tensor {tensor.tensor_id} is twice in the snapshot of {work}"
                yield Finding(f"{tensor.place}/tensor_id", problem, about=(work.core, tensor.tensor_id))
            seen.add(tensor.tensor_id)
    for key, life in index.lives.items() if index.ir.form.addressed else ():
        name = f"tensor {life.tensor_id} of core {life.core}"
        for before, after, tensor in zip(life.at, life.at[1:], life.tensors[1:], strict=False):
            if after != before + 1:
                problem = f"{name} had left after snapshot {before} and is back in snapshot {after}"
                yield Finding(f"{tensor.place}/tensor_id", problem, about=key)
        for tensor, field, old, new in _find_changes(life):
            place = f"{tensor.place}/{'upper' if field == 'box' else field}"
            yield Finding(place, f"{field} of {name} was {old} and is now {new}", about=key)


@BOOK.rule(
    "G043", "error", "newly_added is not \"absent from the snapshot before\"", source="GEMINI 2.3",
    unless=("G042", "G048"),
)  # fmt: skip
def check_newly_added_flags(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a newly_added that does not say whether the snapshot before lacks the tensor (G043). Tensors that wait
    to be stored have no newly_added."""
    for works in index.ir.cores.values() if index.ir.form.addressed else ():
        before: set[int] = set()
        for work in works:
            for tensor in work.buffer:
                new = tensor.tensor_id not in before
                if tensor.type != "ofmap" and tensor.newly_added != new:
                    was = "was not" if new else "was"
                    problem = f"tensor {tensor.tensor_id} {was} in the snapshot before"
                    yield Finding(f"{tensor.place}/newly_added", problem, about=(work.core, tensor.tensor_id))
            before = {tensor.tensor_id for tensor in work.buffer}


@BOOK.rule(
    "G046", "error", "a store falls back to waiting, or never starts",
    why="start_send is true from the snapshot in which the store may begin until the tensor leaves.",
    source="GEMINI 2.3",
)  # fmt: skip
def check_start_send(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a tensor to be stored whose start_send falls back to false, or that leaves and is never sent (G046)."""
    for life in index.lives.values() if index.ir.form.addressed else ():
        if life.first.type != "ofmap":
            continue
        for before, after in zip(life.tensors, life.tensors[1:], strict=False):
            if before.start_send and not after.start_send:
                yield Finding(f"{after.place}/start_send", f"tensor {life.tensor_id} had started to be sent")
        last = life.tensors[-1]
        if not any(tensor.start_send for tensor in life.tensors):
            yield Finding(f"{last.place}/start_send", f"tensor {life.tensor_id} leaves and is never sent")


@BOOK.rule("G054", "error", "the tensors of a snapshot are together larger than the buffer", source="GEMINI 4")
def check_room(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a snapshot whose tensors are together larger than the buffer (G054)."""
    top = index.ir.buffersize or 0
    for work in _snapshots(index):
        beyond = _bytes_beyond_buffer(index, work)
        if beyond > 0:
            yield Finding(f"{work.place}/buffer", f"the snapshot of {work} has {top + beyond} bytes, the buffer {top}")


@BOOK.rule(
    "G044", "error", "an operand has no flagged tensor or reads outside of it, or a flagged tensor has no reader",
    why="The entry of `buffer` that an operand is read from has cur_wl_ifmap, and its ids contain the "
    "operand's, which are "
    "those of the sources that the operand's box reaches.",
    source="GEMINI 2.2", unless=("G036", "G042"),
)  # fmt: skip
def check_operands(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report an operand without a flagged tensor or outside of it, and a flagged tensor without a reader (dialect
    A), or a workload without a buffer entry of its own (dialect B) (G044)."""
    for work in index.ir.workloads():
        if index.reads_missing_transfer(work):
            continue  # G016 tells
        if not index.ir.form.joint_operands:
            if not any(_has_other_fault(index, work, tensor) for tensor in work.buffer):
                yield from _check_workload_operands(work)
        elif work.core not in index.unordered_cores and work.ifmap and not operand_entries(work):
            problem = f"the buffer of {work} has no entry of its layer and id"
            yield Finding(f"{work.place}/buffer", problem)


def _has_other_fault(index: Index, work: Workload, tensor: Tensor) -> bool:
    """Return whether G036 or G042 reports the tensor, whose ids then say nothing about operands."""
    return (work.core, tensor.tensor_id) in index.changing_tensors or _disagrees_with_sources(tensor)


def _disagrees_with_sources(tensor: Tensor) -> bool:
    """Return whether the ids of an operand tensor are not those of its sources, which G036 reports."""
    return tensor.type == "ifmap" and set(tensor.transfer_id) != {source.transfer_id for source in tensor.source}


def _check_workload_operands(work: Workload) -> Iterator[Finding]:
    """Yield the findings of G044 for a workload of dialect A: about each operand and the tensor that it is read
    from, then about flagged tensors that no operand reads."""
    read: set[str] = set()
    missing = False
    for ifmap in work.ifmap:
        tensor = find_read_tensor(work, ifmap)
        if tensor:
            about = (work.core, tensor.tensor_id)
        else:
            about = None
        if tensor is None:
            missing = True
            problem = f"no tensor that {work} reads (cur_wl_ifmap) holds transfers {list(ifmap.transfer_id)}"
            yield Finding(f"{ifmap.place}/transfer_id", problem, about=(work.core, work.index, ifmap.place))
            continue
        read.add(tensor.place)
        if not ifmap.box.inside(tensor.box):
            problem = f"{work} reads {ifmap.box} of tensor {tensor.tensor_id}, which is {tensor.box}"
            yield Finding(f"{ifmap.place}/upper", problem, about=about)
        elif reached_sources(tensor, ifmap) != set(ifmap.transfer_id):
            problem = (
                f"{ifmap.box} reaches transfers {sorted(reached_sources(tensor, ifmap))}, not {list(ifmap.transfer_id)}"
            )
            yield Finding(f"{ifmap.place}/transfer_id", problem, about=about)
    for tensor in work.buffer:
        if tensor.cur_wl_ifmap and tensor.place not in read and not missing:
            problem = f"tensor {tensor.tensor_id} is flagged, and no operand of {work} reads it"
            yield Finding(f"{tensor.place}/cur_wl_ifmap", problem, about=(work.core, tensor.tensor_id))


def _outputs_without_room(index: Index) -> Iterator[tuple[Workload, str, int, str]]:
    """Yield the results without room: the workload, the place, the transfer, and the reason."""
    for work in index.ir.workloads():
        for piece in work.ofmap:
            number = piece.transfer_id
            if number in index.duplicate_ids or not index.is_consistent(number):
                continue
            if _lacks_local_room(index, work, piece):
                yield work, piece.place, number, "no tensor of its snapshot has it as source"
            if _lacks_store_room(index, work, piece):
                shape = list(piece.box.shape)
                why = f"its snapshot has no `ofmap` tensor of layer {work.layer_name!r} and shape {shape}"
                yield work, piece.place, number, why


def _lacks_local_room(index: Index, work: Workload, piece: Ofmap) -> bool:
    """Return whether the core itself reads the piece, and no tensor holds it while the workload runs."""
    number = piece.transfer_id
    local = [to for to in piece.destination if to.type == "core" and to.core_id == work.core]
    readers = [index.find_target(to) for to in local]
    if not any(reader and number in reader.reads for reader in readers):
        return False
    return not _tensors_claiming(index, work, number) and not _comes_back_later(index, work, number)


def _lacks_store_room(index: Index, work: Workload, piece: Ofmap) -> bool:
    """Return whether the piece goes to DRAM and no `ofmap` tensor holds it, unless a fault of such a tensor is the
    reason."""
    number = piece.transfer_id
    stored = piece.to_dram and number in index.ins
    return stored and number not in index.room_of_output and not _has_faulty_room(index, work)


def _tensors_claiming(index: Index, work: Workload, number: int) -> list[Tensor]:
    """Return the `ifmap` tensors of a snapshot that claim to hold transfer `number`, themselves or by their
    sources. G016 or G036 reports where the two differ."""
    return [
        tensor
        for tensor in work.buffer
        if index.may_be("ifmap", tensor, work.core)
        and number in {*tensor.transfer_id, *(source.transfer_id for source in tensor.source)}
    ]


def _comes_back_later(index: Index, work: Workload, number: int) -> bool:
    """Return whether a tensor with transfer `number` was resident before this workload and is again later; G042 and
    G048 report the gap."""
    return any(
        life.core == work.core
        and life.at[0] < work.index < life.at[-1]
        and any(source.transfer_id == number for source in life.first.source)
        for life in index.lives.values()
    )


def _has_faulty_room(index: Index, work: Workload) -> bool:
    """Return whether the snapshot has an `ofmap` tensor of the layer that belongs to no result and is itself faulty:
    its size is not that of its box, or its box changes. G031 and G042 report these faults."""
    for tensor in work.buffer:
        key = (work.core, tensor.tensor_id)
        if tensor.type == "ofmap" and tensor.layer_name == work.layer_name and key not in index.output_by_room:
            if is_legal_alignment(tensor.align, tensor.bitwidth):
                size = fmap_bytes(tensor.box, tensor.bitwidth)
            else:
                size = -1
            if tensor.size != size or any(other.box != tensor.box for other in index.lives[key].tensors):
                return True
    return False


@BOOK.rule(
    "G045", "error", "there is no room for a result while its workload runs",
    why="A result for the same core has its id among the sources of an ifmap tensor of the workload's own "
    "snapshot; one for "
    "DRAM has an `ofmap` entry with its layer and shape. Pieces for other cores need none.",
    source="GEMINI 2.3",
)  # fmt: skip
def check_results(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a piece of a workload's output that has no room in L2 while the workload runs (G045)."""
    for work, place, number, why in _outputs_without_room(index) if index.ir.form.addressed else ():
        yield Finding(f"{place}/destination", f"{work} makes transfer {number}, but {why}", about=number)


@BOOK.rule(
    "G048", "error", "a tensor that a core makes and reads itself is not resident all the time in between",
    source="GEMINI 4", fix="keep one tensor from the maker's snapshot to the reader's",
)  # fmt: skip
def check_residence(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report an operand that its own core makes and that is not resident all the time in between (G048). Those that
    G045 reports and ids that are defined twice are left out."""
    if not index.ir.form.addressed:
        return
    without_room = {number for _work, _place, number, _why in _outputs_without_room(index)}
    left_out = {*index.outs, *index.duplicate_ids, *without_room}
    for work in index.ir.workloads():
        for ifmap in work.ifmap:
            for number in ifmap.transfer_id:
                output = index.outputs_by_id.get(number)
                if output is None or number in left_out:
                    continue
                if output.work.core == work.core and output.work.index < work.index:
                    yield from _check_resident(index, work, output.work, number, f"{ifmap.place}/transfer_id")


def _check_resident(index: Index, reader: Workload, maker: Workload, number: int, place: str) -> Iterator[Finding]:
    """Yield a finding, at `place`, unless one tensor holds transfer `number` in every snapshot from the maker's to
    the reader's."""
    keys = [(reader.core, tensor.tensor_id) for tensor in _tensors_claiming(index, maker, number)]
    snapshots = set(range(maker.index, reader.index + 1))
    if any((reader.core, at) in index.snapshots_with_duplicates for at in snapshots):
        return  # G042 tells
    if not any(snapshots <= set(index.lives[key].at) for key in keys):
        problem = f"{reader} reads transfer {number}, which L2 does not keep all the time since {maker} made it"
        yield Finding(place, problem, about=keys[0] if keys else number)


def _weight_workloads(index: Index) -> list[Workload]:
    """Return the workloads that have a weight store: all of dialect A, none of dialect B."""
    if index.ir.form.addressed:
        return index.ir.workloads()
    return []


def _all_ids(tensor: Tensor) -> set[int]:
    """Return the ids that a tensor names itself or by its sources; G036 reports where they differ."""
    return {*tensor.transfer_id, *(source.transfer_id for source in tensor.source)}


@BOOK.rule(
    "G050", "error", "a weight is neither in L2 nor loaded straight into the weight store",
    source="GEMINI 2.5", fix="show a weight tensor with the id, or a DDR entry, in the workload's snapshot",
)  # fmt: skip
def check_weights_exist(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a weight of a workload that is neither in L2 nor loaded straight into the weight store, except ids
    that G016 reports (G050)."""
    for work in _weight_workloads(index):
        weight = work.weight
        if weight is None or index.reads_missing_transfer(work):
            continue
        shown_ids = _visible_weight_ids(index, work)
        for number in weight.transfer_id:
            if number not in shown_ids:
                yield Finding(f"{weight.place}/transfer_id", f"{work} uses weight {number}, which is not there")


def _visible_weight_ids(index: Index, work: Workload) -> set[int]:
    """Return the ids of weights that a workload's snapshot shows, in L2 or as loads straight from DRAM."""
    ids: set[int] = set()
    for tensor in work.buffer:
        if index.may_be("weight", tensor, work.core):
            ids |= _all_ids(tensor)
    for store in work.wl0:
        if store.source == "DDR":
            ids.update(store.transfer_id)
    return ids


@BOOK.rule("G051", "error", "entries of the weight store overlap", source="GEMINI 2.5")
def check_weight_store_rows(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report entries of a snapshot's weight store that share rows (G051)."""
    for work in _weight_workloads(index):
        items = sorted((entry for entry in work.wl0 if entry.size > 0), key=lambda entry: (entry.address, entry.place))
        for first, second in pairwise(items):
            if second.address < first.address + first.size:
                problem = (
                    f"rows from {second.address} on are also of the entry at {first.address} with {first.size} rows"
                )
                yield Finding(f"{second.place}/address", problem)


@BOOK.rule(
    "G052", "error", "an entry of the weight store is taken from L2, where its weight is not",
    source="GEMINI 2.5",
)  # fmt: skip
def check_core_entries(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report an entry of the weight store that is taken from L2, where no tensor has its weight (G052)."""
    for work in _weight_workloads(index):
        held = [_all_ids(entry) for entry in work.buffer if index.may_be("weight", entry, work.core)]
        for entry in work.wl0:
            if entry.source == "CORE" and not any(set(entry.transfer_id) <= ids for ids in held):
                problem = f"no weight tensor of the snapshot of {work} has transfers {list(entry.transfer_id)}"
                yield Finding(f"{entry.place}/transfer_id", problem)


def _comes_from_dram(index: Index, tensor: Tensor) -> bool:
    """Return whether a tensor comes from DRAM, by the producer of its transfers, or by its sources where nothing makes
    them; G035 reports where they differ."""
    for source in tensor.source:
        unmade = index.producer(source.transfer_id) is None
        if source.transfer_id in index.outs or (unmade and source.type == "DRAM"):
            return True
    return False


@BOOK.rule(
    "G053", "error", "tensor_order of tensors that go through DRAM is not 0 to n-1, each once",
    why="There is one DRAM queue: loads, stores and weights straight into the weight store, in this order over "
    "all cores.",
    source="GEMINI 2.3", fix="number the loads and stores in the order in which they are to run",
)  # fmt: skip
def check_orders(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a tensor_order of the DRAM queue that is used twice, or that is beyond the number of loads and stores
    of all cores (G053). A tensor whose order changes (G042) may have any of its orders; where a tensor is missing
    (G045, G050), a number may be missing."""
    if not index.ir.form.addressed:
        return
    places_by_order, spare_orders, count = _collect_orders(index)
    for order, places in sorted(places_by_order.items()):
        for place in places[1:]:
            yield Finding(place, f"order {order} is also that of {places[0].rsplit('/', 1)[0]}")
    repeated = any(len(places) > 1 for places in places_by_order.values())
    if repeated or spare_orders or index.snapshots_with_duplicates:
        return
    top = count + len(_weights_without_entry(index) | _stores_without_room(index))
    for order in sorted(set(places_by_order) - set(range(top))):
        problem = f"order {order} is beyond those of {count} loads and stores, 0 to {count - 1}"
        yield Finding(places_by_order[order][0], problem)


def _collect_orders(index: Index) -> tuple[dict[int, list[str]], set[int], int]:
    """Return the places that claim each order, the orders of tensors that may have several or whose source is unknown,
    and the number of DRAM transfers."""
    places_by_order: dict[int, list[str]] = {}
    spare_orders: set[int] = set()
    count = 0
    for life in index.lives.values():
        if life.first.type == "ofmap" or _comes_from_dram(index, life.first):
            count += 1
            orders = {tensor.tensor_order for tensor in life.tensors}
            if len(orders) == 1:
                places_by_order.setdefault(life.first.tensor_order, []).append(f"{life.first.place}/tensor_order")
            else:
                spare_orders |= orders
        elif not life.first.source:
            spare_orders.add(life.first.tensor_order)  # nothing tells where it comes from (G036)
    for order, place in _direct_orders(index):
        count += 1
        places_by_order.setdefault(-1 if order is None else order, []).append(place)
    return places_by_order, spare_orders, count


def _direct_orders(index: Index) -> list[tuple[int | None, str]]:
    """Return order and first place of each weight that goes straight from DRAM to a core's weight store."""
    places: dict[tuple[int, int | None], str] = {}
    for work in _weight_workloads(index):
        for entry in work.wl0:
            if entry.source == "DDR":
                places.setdefault((work.core, entry.tensor_order), f"{entry.place}/tensor_order")
    return [(order, place) for (_core, order), place in places.items()]


def _weights_without_entry(index: Index) -> set[int]:
    """Return the ids of weights that their workload's snapshot does not show."""
    numbers: set[int] = set()
    for work in _weight_workloads(index):
        for number in work.weight.transfer_id if work.weight else ():
            if not any(number in entry.transfer_id for entry in (*work.buffer, *work.wl0)):
                numbers.add(number)
    return numbers


def _stores_without_room(index: Index) -> set[int]:
    """Return the ids of results for DRAM that no `ofmap` tensor holds."""
    numbers: set[int] = set()
    for work in _weight_workloads(index):
        for piece in work.ofmap:
            if piece.to_dram and piece.transfer_id not in index.room_of_output:
                numbers.add(piece.transfer_id)
    return numbers
