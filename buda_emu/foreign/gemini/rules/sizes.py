"""Rules on sizes, and on records that must agree with each other: G030 to G036."""

from collections.abc import Iterator, Sequence

from buda_emu.foreign.gemini.book import BOOK
from buda_emu.foreign.gemini.boxes import Box, fills
from buda_emu.foreign.gemini.frontend import Network
from buda_emu.foreign.gemini.index import Index, find_read_tensor, operand_entries
from buda_emu.foreign.gemini.model import DramOut, Ifmap, Source, Tensor, Weight, Workload
from buda_emu.foreign.gemini.sizes import (
    BITWIDTHS,
    KIB,
    UNIT,
    fmap_bits,
    fmap_bytes,
    is_legal_alignment,
    round_up,
    weight_bytes,
)
from buda_emu.support.checker import Finding

_STREAM_BLOCKS = 10  # of a streaming buffer (B)


def _has_legal_alignment(record: Tensor | Ifmap) -> bool:
    """Return whether a tensor or an operand has a bitwidth of 8 or 16, and the align that belongs to it (G030)."""
    return is_legal_alignment(record.align, record.bitwidth)


def _distinct_tensors(index: Index) -> Iterator[tuple[Workload, Tensor]]:
    """Yield the buffer entries of all snapshots, each once for as long as it stays the same."""
    seen: set[object] = set()
    for work in index.ir.workloads():
        for tensor in work.buffer:
            key = (
                work.core,
                tensor.tensor_id,
                tensor.type,
                tensor.box,
                tensor.size,
                tensor.align,
                tensor.bitwidth,
                tensor.transfer_id,
                tensor.block,
                tensor.layer_name,
                tuple((s.transfer_id, s.size, s.box, s.type, s.core_id) for s in tensor.source),
            )
            if key not in seen:
                seen.add(key)
                yield work, tensor


@BOOK.rule(
    "G030", "error", "align times bitwidth is not 64, bitwidth is not 8 or 16, or an ifmap's is not its tensor's",
    source="GEMINI 2.6", fix="int8 has align 8 and bitwidth 8, 16 bit has align 4 and bitwidth 16",
)  # fmt: skip
def check_alignment(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report tensors and operands of dialect A whose align and bitwidth do not go together, and an operand whose
    bitwidth is not its tensor's (G030)."""
    if not index.ir.form.addressed:
        return
    for work, tensor in _distinct_tensors(index):
        if not _has_legal_alignment(tensor):
            problem = f"align {tensor.align} with bitwidth {tensor.bitwidth}"
            yield Finding(f"{tensor.place}/align", problem, about=(work.core, tensor.tensor_id))
    for work in index.ir.workloads():
        yield from _check_operand_alignment(index, work)


def _check_operand_alignment(index: Index, work: Workload) -> Iterator[Finding]:
    """Yield the findings of G030 about the operands of a workload, each with the tensor that it reads."""
    for ifmap in work.ifmap:
        tensor = find_read_tensor(work, ifmap)
        if not _has_legal_alignment(ifmap):
            yield Finding(f"{ifmap.place}/align", f"align {ifmap.align} with bitwidth {ifmap.bitwidth}")
        elif tensor is None or (work.core, tensor.tensor_id) in index.changing_tensors:
            continue  # G044, G042 tell
        elif _has_legal_alignment(tensor) and tensor.bitwidth != ifmap.bitwidth:
            problem = f"an operand of {ifmap.bitwidth} bits is read from a tensor of {tensor.bitwidth}"
            yield Finding(f"{ifmap.place}/bitwidth", problem)


def _possible_sizes(box: Box, bitwidth: int | None) -> tuple[int, ...]:
    """Return the bytes that a feature map may have: one size where its bitwidth is known, else one for each
    bitwidth."""
    return tuple(fmap_bytes(box, bits) for bits in ((bitwidth,) if bitwidth else BITWIDTHS))


def _fmap_sizes(index: Index) -> Iterator[tuple[str, str, int, tuple[int, ...], object]]:
    """Yield place, description, stated size, possible sizes and owner of every feature map that states a size. The
    owner is core and tensor_id of a tensor, None for others."""
    for out in index.ir.dram_out:
        if out.type == "fmap":
            sizes = _sizes_in_dialect(index, out.box, index.bitwidths.get(out.transfer_id))
            yield out.place, f"transfer {out.transfer_id}", out.size, sizes, None
    for work in index.ir.workloads():
        yield from _sizes_of_workload(index, work)
    for work, tensor in _distinct_tensors(index):
        if index.ir.form.in_bits:
            has_size = tensor.type == "ofmap"
        else:
            has_size = tensor.type != "weight" and _has_legal_alignment(tensor)
        if has_size:
            sizes = _sizes_in_dialect(index, tensor.box, tensor.bitwidth)
            yield tensor.place, f"tensor {tensor.tensor_id}", tensor.size, sizes, (work.core, tensor.tensor_id)


def _sizes_in_dialect(index: Index, box: Box, bitwidth: int | None) -> tuple[int, ...]:
    """Return the sizes that a feature map may state, in bytes (dialect A) or bits (dialect B)."""
    if index.ir.form.in_bits:
        return (fmap_bits(box),)
    return _possible_sizes(box, bitwidth)


def _sizes_of_workload(index: Index, work: Workload) -> Iterator[tuple[str, str, int, tuple[int, ...], object]]:
    """Yield place, description, stated size, possible sizes and owner (None) of a workload's results and operands."""
    in_bits = index.ir.form.in_bits
    if in_bits:
        extent = work.box
    else:
        extent = work.box.within(work.box)
    for piece in work.ofmap:
        if piece.box.inside(extent):  # else G038 tells
            sizes = _sizes_in_dialect(index, piece.box, index.bitwidths.get(piece.transfer_id))
            yield piece.place, f"transfer {piece.transfer_id}", piece.size, sizes, None
    for ifmap in () if in_bits else work.ifmap:
        tensor = find_read_tensor(work, ifmap)
        if _has_legal_alignment(ifmap) and (tensor is None or ifmap.box.inside(tensor.box)):  # else G030, G044
            sizes = _sizes_in_dialect(index, ifmap.box, ifmap.bitwidth)
            yield ifmap.place, f"an operand of {work}", ifmap.size, sizes, None


@BOOK.rule(
    "G031", "error", "the size of a feature map is not that of its box",
    why="Bytes of dialect A are N * ceil(C / align) * align * H * W * bitwidth / 8; dialect B counts bits "
    "without padding.",
    source="GEMINI 2.6, 3", unless=("G042",),
)  # fmt: skip
def check_fmap_size(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a feature map whose stated size is not that of its box: `out` entries, ofmaps, operands and tensors
    (G031)."""
    for place, name, size, possible, about in _fmap_sizes(index):
        if size not in possible:
            expected = " or ".join(map(str, possible))
            yield Finding(f"{place}/size", f"{name} has size {size}; its box makes {expected}", about=about or place)


@BOOK.rule(
    "G032", "error", "the size of a weight is not its box's, or not a whole number of bytes for each output channel",
    why="Bytes of dialect A are K * (ceil(C / 8) * 8 * R*S + 32). Boxes of dialect B tell K alone.",
    source="GEMINI 2.6, 3", unless=("G035", "G042"),
)  # fmt: skip
def check_weight_size(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a weight whose size is not that of its box (dialect A), or no whole number of bytes for each output
    channel (dialect B) (G032)."""
    for place, size, box, about in _weight_sizes(index):
        if not index.ir.form.in_bits:
            if size != weight_bytes(box):
                problem = f"a weight has size {size}; its box makes {weight_bytes(box)}"
                yield Finding(f"{place}/size", problem, about=about)
        elif size < 0 or size % (8 * box.shape[1]):
            channels = f"{box.shape[1]} output channels"
            problem = f"a weight of {size} bits is not a whole number of bytes for each of {channels}"
            yield Finding(f"{place}/size", problem, about=about)


def _weight_sizes(index: Index) -> Iterator[tuple[str, int, Box, object]]:
    """Yield place, stated size, box and owner of every weight that states a size. The owner is core and tensor_id
    of a tensor, the place for others."""
    for out in index.ir.dram_out:
        if out.type == "weight":
            yield out.place, out.size, out.box, out.place
    for work in index.ir.workloads():
        if work.weight is not None and work.weight.size is not None:
            yield work.weight.place, work.weight.size, work.weight.box, work.weight.place
    if index.ir.form.in_bits:
        return  # tensors of dialect B state blocks (G034)
    for work, tensor in _distinct_tensors(index):
        if tensor.type == "weight":
            yield tensor.place, tensor.size, tensor.box, (work.core, tensor.tensor_id)


@BOOK.rule(
    "G033", "error", "ofmap_size is not the sum of the pieces (A), or not that of the workload (B)",
    source="GEMINI 2.2, 3", unless=("G037", "G039"),
)  # fmt: skip
def check_ofmap_size(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a workload whose ofmap_size is not that of its results (G033). A piece whose size is wrong counts with
    any size that its box allows."""
    for work in index.ir.workloads():
        if index.ir.form.in_bits:
            expected = {fmap_bits(work.box)}
        else:
            expected = _possible_totals(index, work)
        if work.ofmap_size not in expected and work.ofmap:
            problem = f"{work} has ofmap_size {work.ofmap_size}, its results {min(expected)}"
            yield Finding(f"{work.place}/ofmap_size", problem, about=work.layer_name)


def _possible_totals(index: Index, work: Workload) -> set[int]:
    """Return the sizes that the results of a workload may have together: that of its pieces, and with each width of
    elements with which a piece is wrong the one that is right."""
    totals = {sum(piece.size for piece in work.ofmap)}
    for bits in BITWIDTHS:
        right = [_possible_sizes(piece.box, index.bitwidths.get(piece.transfer_id, bits)) for piece in work.ofmap]
        if any(piece.size not in sizes for piece, sizes in zip(work.ofmap, right, strict=True)):
            totals.add(sum(sizes[0] for sizes in right))
    return totals


@BOOK.rule(
    "G034", "error", "an address is not a multiple of 64, or `block` is not the size in KiB",
    why="Streaming buffers of dialect B (type ofmap) always have 10 blocks.", source="GEMINI 2.6, 3", unless=("G042",),
)  # fmt: skip
def check_address(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report addresses that are not multiples of 64 (dialect A), or a `block` that is not the size in KiB (dialect
    B) (G034)."""
    if index.ir.form.addressed:
        yield from _check_addresses(index)
    else:
        yield from _check_blocks(index)


def _check_addresses(index: Index) -> Iterator[Finding]:
    """Yield the findings of G034 about addresses that are not multiples of 64, each address of a tensor once."""
    seen: set[tuple[int, int, int]] = set()
    for work in index.ir.workloads():
        for tensor in work.buffer:
            key = (work.core, tensor.tensor_id, tensor.address)
            if tensor.address % UNIT and key not in seen:
                seen.add(key)
                problem = f"address {tensor.address} is not a multiple of {UNIT}"
                yield Finding(f"{tensor.place}/address", problem, about=(work.core, tensor.tensor_id))


def _check_blocks(index: Index) -> Iterator[Finding]:
    """Yield the findings of G034 about tensors whose `block` is not their size in KiB."""
    for _work, tensor in _distinct_tensors(index):
        if not tensor.activations:
            expected = _possible_blocks(index, tensor)
            if expected and tensor.block not in expected:
                yield Finding(f"{tensor.place}/block", f"block is {tensor.block} for {min(expected)} KiB")


def _possible_blocks(index: Index, tensor: Tensor) -> set[int]:
    """Return the numbers of blocks that a tensor may have, none for a weight without sources."""
    if tensor.type == "ofmap":
        return {_STREAM_BLOCKS}
    if tensor.type == "ifmap":
        return {round_up(fmap_bits(tensor.box), KIB) // KIB}
    if not tensor.source:
        return set()
    # by the sources' sizes and by those of their producers: G035 and G010 tell where they differ
    stated = sum(source.size for source in tensor.source)
    produced = 0
    for source in tensor.source:
        out = index.outs.get(source.transfer_id)
        produced += out.size if out else source.size
    return {round_up(size, KIB) // KIB for size in (stated, produced)}


@BOOK.rule(
    "G035", "error", "two records of one transfer disagree: shape, size, core, or box of a weight",
    source="GEMINI 2.1 to 2.3", fix="repeat the maker's values",
)  # fmt: skip
def check_records_agree(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report an `in` entry, a source or a weight that differs from the ofmap or `out` entry of its transfer in
    shape, size, core or box (G035)."""
    for entry in index.ir.dram_in:
        output = index.outputs_by_id.get(entry.transfer_id)
        if output is None or not _is_reliable(index, entry.transfer_id):
            continue
        if entry.box.shape != output.piece.box.shape:
            problem = f"transfer {entry.transfer_id} arrives as {entry.box}, its ofmap is {output.piece.box}"
            yield Finding(f"{entry.place}/upper", problem)
    for work, tensor in _distinct_tensors(index):
        yield from _check_sources(index, work, tensor)
    for work in index.ir.workloads():
        if work.weight is not None and not work.weight.from_ofmap:
            yield from _check_weight_boxes(index, work, work.weight)


def _check_sources(index: Index, work: Workload, tensor: Tensor) -> Iterator[Finding]:
    """Yield the findings of G035 about the sources of a tensor, each against its transfer's producer."""
    for source in tensor.source:
        difference = _find_difference(index, source)
        if difference:
            key, reason = difference
            yield Finding(f"{source.place}/{key}", reason, about=(work.core, tensor.tensor_id))


def _is_reliable(index: Index, number: int) -> bool:
    """Return whether the transfer is defined once, by a record that agrees with itself."""
    return number not in index.duplicate_ids and index.is_consistent(number)


def _check_weight_boxes(index: Index, work: Workload, weight: Weight) -> Iterator[Finding]:
    """Yield the findings of G035 about a workload's weight that has another box than the `out` entries it comes
    from."""
    for number in weight.transfer_id:
        out = index.outs.get(number)
        if out is None or out.type != "weight" or not _is_reliable(index, number):
            continue
        if out.box != weight.box:
            problem = f"{work} uses {weight.box} of weight {number}, which is {out.box}"
            yield Finding(f"{weight.place}/upper", problem, about=weight.place)


def _find_difference(index: Index, source: Source) -> tuple[str, str] | None:
    """Return key and reason of the first difference between a source and its transfer's producer; None where they
    agree, and for ids that other rules report."""
    number = source.transfer_id
    maker = index.producer(number)
    if maker is None or number in index.duplicate_ids or not index.is_consistent(number):
        return None
    in_bits = index.ir.form.in_bits
    if isinstance(maker, DramOut):
        kind = "DRAM"
        core = 0 if in_bits else -1
        box = maker.box
        size = maker.size
    else:
        kind = "core"
        core = maker.work.core
        box = maker.piece.box
        size = maker.piece.size
    if source.type != kind:
        return "type", f"transfer {number} is said to come from {source.type}, it comes from {kind}"
    if source.core_id != core:
        key = "id" if in_bits else "core_id"
        return key, f"transfer {number} is said to come from core {source.core_id}, it comes from {core}"
    if source.box.shape != box.shape:
        return "upper", f"a source of transfer {number} is {source.box}, the transfer {box}"
    if source.size != size:
        return "size", f"a source of transfer {number} has size {source.size}, the transfer {size}"
    return None


@BOOK.rule(
    "G036", "error", "the sources do not tile their tensor, or transfer_id is not the set of its sources",
    source="GEMINI 2.3, 3", unless=("G016", "G031", "G032", "G035", "G042"),
)  # fmt: skip
def check_tiling(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a tensor that its sources do not fill, or whose transfer_id is not the set of its sources (dialect A),
    or the like for the ids of a workload's operands (dialect B) (G036). Tensors with a source that G016 or G035
    reports are left out."""
    if index.ir.form.joint_operands:
        yield from _check_joint_ids(index)
        return
    for work, tensor in _distinct_tensors(index):
        if tensor.type == "ofmap":
            continue
        about = (work.core, tensor.tensor_id)
        ids = {source.transfer_id for source in tensor.source}
        if ids != set(tensor.transfer_id):
            stated = _list_ids(tensor.transfer_id)
            problem = f"tensor {tensor.tensor_id} has transfers {stated}, its sources {_list_ids(sorted(ids))}"
            yield Finding(f"{tensor.place}/transfer_id", problem, about=about)
        elif not _has_wrong_source(index, tensor) and not fills([source.box for source in tensor.source], tensor.box):
            problem = f"the sources of tensor {tensor.tensor_id} do not fill {tensor.box}, each element once"
            yield Finding(f"{tensor.place}/source", problem, about=about)


def _has_wrong_source(index: Index, tensor: Tensor) -> bool:
    """Return whether a source of the tensor has no producer (G016) or differs from it (G035)."""
    return any(
        index.producer(source.transfer_id) is None or _find_difference(index, source) is not None
        for source in tensor.source
    )


def _check_joint_ids(index: Index) -> Iterator[Finding]:
    """Yield the findings of G036 for dialect B: ids of a workload's joint operand that are not those of its buffer
    entries, or, where they agree, an entry whose ids are not those of its sources. Cores without order and ids without
    a producer are left out."""
    for work in index.ir.workloads():
        for ifmap in work.ifmap if work.core not in index.unordered_cores else ():
            entries = operand_entries(work)
            held_ids = _ids_of_entries(entries)
            if held_ids == set(ifmap.transfer_id):
                yield from _check_entry_sources(entries)
            elif entries and not index.ids_without_producer.intersection(ifmap.transfer_id):
                held = _list_ids(sorted(held_ids))
                problem = f"{work} reads {_list_ids(ifmap.transfer_id)}, its buffer entry holds {held}"
                yield Finding(f"{ifmap.place}/transfer_id", problem)


def _ids_of_entries(entries: Sequence[Tensor]) -> set[int]:
    """Return the transfer ids that the buffer entries name."""
    ids: set[int] = set()
    for entry in entries:
        ids.update(entry.transfer_id)
    return ids


def _check_entry_sources(entries: Sequence[Tensor]) -> Iterator[Finding]:
    """Yield the findings of G036 about buffer entries that do not name the ids of their sources."""
    for entry in entries:
        source_ids = {source.transfer_id for source in entry.source}
        if source_ids != set(entry.transfer_id):
            stated = _list_ids(entry.transfer_id)
            problem = f"a buffer entry has transfers {stated}, its sources {_list_ids(sorted(source_ids))}"
            yield Finding(f"{entry.place}/transfer_id", problem)


def _list_ids(numbers: "tuple[int, ...] | list[int]") -> str:
    """Return transfer ids as text for a message, the first eight of them."""
    shown = ", ".join(map(str, numbers[:8]))
    return f"[{shown}{', ...' if len(numbers) > 8 else ''}]"
