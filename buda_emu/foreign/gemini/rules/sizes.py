"""Bytes, and records of one thing that must agree: G030 to G036."""

from collections.abc import Iterator

from buda_emu.foreign.gemini.book import BOOK
from buda_emu.foreign.gemini.boxes import Box, tile
from buda_emu.foreign.gemini.frontend import Network
from buda_emu.foreign.gemini.index import Index, own_entries, read_tensor
from buda_emu.foreign.gemini.model import DramOut, Ifmap, Source, Tensor, Workload
from buda_emu.foreign.gemini.sizes import BITWIDTHS, KIB, UNIT, fmap_bits, fmap_bytes, legal, padded, weight_bytes
from buda_emu.support.checker import Finding

_STREAM_BLOCKS = 10  # of a streaming buffer (B)


def _plain(item: Tensor | Ifmap) -> bool:
    """Its align and bitwidth are legal."""
    return legal(item.align, item.bitwidth)


def _tensors(index: Index) -> Iterator[tuple[Workload, Tensor]]:
    """Buffer entries of all snapshots, each once for as long as it stays the same."""
    seen: set[object] = set()
    for work in index.ir.workloads():
        for item in work.buffer:
            key = (
                work.core,
                item.tensor_id,
                item.type,
                item.box,
                item.size,
                item.align,
                item.bitwidth,
                item.transfer_id,
                item.block,
                item.layer_name,
                tuple((s.transfer_id, s.size, s.box, s.type, s.core_id) for s in item.source),
            )
            if key not in seen:
                seen.add(key)
                yield work, item


@BOOK.rule(
    "G030", "error", "align times bitwidth is not 64, bitwidth is not 8 or 16, or an ifmap's is not its tensor's",
    source="GEMINI 2.6", fix="int8 has align 8 and bitwidth 8, 16 bit has align 4 and bitwidth 16",
)  # fmt: skip
def alignment(index: Index, _: Network | None) -> Iterator[Finding]:
    """Tensors, then operands (A)."""
    if not index.ir.form.addressed:
        return
    for work, tensor in _tensors(index):
        if not _plain(tensor):
            said = f"align {tensor.align} with bitwidth {tensor.bitwidth}"
            yield Finding(f"{tensor.place}/align", said, about=(work.core, tensor.tensor_id))
    for work in index.ir.workloads():
        for item in work.ifmap:
            tensor = read_tensor(work, item)
            if not _plain(item):
                yield Finding(f"{item.place}/align", f"align {item.align} with bitwidth {item.bitwidth}")
            elif tensor is None or (work.core, tensor.tensor_id) in index.wavering:
                continue  # G044, G042 tell
            elif _plain(tensor) and tensor.bitwidth != item.bitwidth:
                said = f"an operand of {item.bitwidth} bits is read from a tensor of {tensor.bitwidth}"
                yield Finding(f"{item.place}/bitwidth", said)


def _sizes(box: Box, bitwidth: int | None) -> tuple[int, ...]:
    """What a feature map may have; any of two where nothing tells its bitwidth."""
    return tuple(fmap_bytes(box, bits) for bits in ((bitwidth,) if bitwidth else BITWIDTHS))


def _fmap_sizes(index: Index) -> Iterator[tuple[str, str, int, tuple[int, ...], object]]:
    """Place, what, stated size, possible sizes, and whose it is."""
    bits = index.bitwidths
    in_bits = index.ir.form.in_bits

    def possible(box: Box, bitwidth: int | None) -> tuple[int, ...]:
        return (fmap_bits(box),) if in_bits else _sizes(box, bitwidth)

    for out in index.ir.dram_out:
        if out.type == "fmap":
            sizes = possible(out.box, bits.get(out.transfer_id))
            yield out.place, f"transfer {out.transfer_id}", out.size, sizes, None
    for work in index.ir.workloads():
        whole = work.box if in_bits else work.box.within(work.box)
        for piece in work.ofmap:
            if piece.box.inside(whole):  # else G038 tells
                sizes = possible(piece.box, bits.get(piece.transfer_id))
                yield piece.place, f"transfer {piece.transfer_id}", piece.size, sizes, None
        for item in () if in_bits else work.ifmap:
            tensor = read_tensor(work, item)
            if _plain(item) and (tensor is None or item.box.inside(tensor.box)):  # else G030, G044
                yield item.place, f"an operand of {work}", item.size, possible(item.box, item.bitwidth), None
    for work, tensor in _tensors(index):
        if tensor.type == "ofmap" if in_bits else (tensor.type != "weight" and _plain(tensor)):
            sizes = possible(tensor.box, tensor.bitwidth)
            yield tensor.place, f"tensor {tensor.tensor_id}", tensor.size, sizes, (work.core, tensor.tensor_id)


@BOOK.rule(
    "G031", "error", "the size of a feature map is not that of its box",
    why="Bytes of dialect A are N * ceil(C / align) * align * H * W * bitwidth / 8; dialect B counts bits "
    "without padding.",
    source="GEMINI 2.6, 3", unless=("G042",),
)  # fmt: skip
def fmap_size(index: Index, _: Network | None) -> Iterator[Finding]:
    """Of `out` entries, ofmaps, operands and tensors."""
    for place, what, size, possible, about in _fmap_sizes(index):
        if size not in possible:
            wanted = " or ".join(map(str, possible))
            yield Finding(f"{place}/size", f"{what} has size {size}; its box makes {wanted}", about=about or place)


@BOOK.rule(
    "G032", "error", "the size of a weight is not its box's, or not a whole number of bytes for each output channel",
    why="Bytes of dialect A are K * (ceil(C / 8) * 8 * R*S + 32). Boxes of dialect B tell K alone.",
    source="GEMINI 2.6, 3", unless=("G035", "G042"),
)  # fmt: skip
def weight_size(index: Index, _: Network | None) -> Iterator[Finding]:
    """Of `out` entries, workloads and tensors."""
    in_bits = index.ir.form.in_bits
    named: list[tuple[str, int, Box, object]] = [
        (out.place, out.size, out.box, out.place) for out in index.ir.dram_out if out.type == "weight"
    ]
    for work in index.ir.workloads():
        if work.weight is not None and work.weight.size is not None:
            named.append((work.weight.place, work.weight.size, work.weight.box, work.weight.place))
    if not in_bits:
        named += [
            (item.place, item.size, item.box, (work.core, item.tensor_id))
            for work, item in _tensors(index)
            if item.type == "weight"
        ]
    for place, size, box, about in named:
        if in_bits and (size < 0 or size % (8 * box.shape[1])):
            said = f"a weight of {size} bits is not a whole number of bytes for each of {box.shape[1]} output channels"
            yield Finding(f"{place}/size", said, about=about)
        elif not in_bits and size != weight_bytes(box):
            yield Finding(f"{place}/size", f"a weight has size {size}; its box makes {weight_bytes(box)}", about=about)


@BOOK.rule(
    "G033", "error", "ofmap_size is not the sum of the pieces (A), or not that of the workload (B)",
    source="GEMINI 2.2, 3", unless=("G037", "G039"),
)  # fmt: skip
def ofmap_size(index: Index, _: Network | None) -> Iterator[Finding]:
    """Each workload; a piece with a wrong size counts with any that its box allows."""
    for work in index.ir.workloads():
        if index.ir.form.in_bits:
            wanted = {fmap_bits(work.box)}
        else:
            wanted = {sum(piece.size for piece in work.ofmap)}
            for bits in BITWIDTHS:
                right = [_sizes(piece.box, index.bitwidths.get(piece.transfer_id, bits)) for piece in work.ofmap]
                if any(piece.size not in sizes for piece, sizes in zip(work.ofmap, right, strict=True)):
                    wanted.add(sum(sizes[0] for sizes in right))
        if work.ofmap_size not in wanted and work.ofmap:
            said = f"{work} has ofmap_size {work.ofmap_size}, its results {min(wanted)}"
            yield Finding(f"{work.place}/ofmap_size", said, about=work.layer_name)


@BOOK.rule(
    "G034", "error", "an address is not a multiple of 64, or `block` is not the size in KiB",
    why="Streaming buffers of dialect B (type ofmap) always have 10 blocks.", source="GEMINI 2.6, 3", unless=("G042",),
)  # fmt: skip
def address(index: Index, _: Network | None) -> Iterator[Finding]:
    """Addresses (A), blocks (B)."""
    if index.ir.form.addressed:
        seen: set[tuple[int, int, int]] = set()
        for work in index.ir.workloads():
            for tensor in work.buffer:
                key = (work.core, tensor.tensor_id, tensor.address)
                if tensor.address % UNIT and key not in seen:
                    seen.add(key)
                    said = f"address {tensor.address} is not a multiple of {UNIT}"
                    yield Finding(f"{tensor.place}/address", said, about=(work.core, tensor.tensor_id))
        return
    for _work, tensor in _tensors(index):
        if tensor.activations:
            continue
        if tensor.type == "ofmap":
            wanted = {_STREAM_BLOCKS}
        elif tensor.type == "ifmap":
            wanted = {padded(fmap_bits(tensor.box), KIB) // KIB}
        elif not tensor.source:
            continue
        else:  # as the sources say, and as what they come from says: G035 and G010 tell where they differ
            outs = [index.outs.get(source.transfer_id) for source in tensor.source]
            stated = sum(source.size for source in tensor.source)
            made = sum(out.size if out else own.size for out, own in zip(outs, tensor.source, strict=True))
            wanted = {padded(size, KIB) // KIB for size in (stated, made)}
        if tensor.block not in wanted:
            yield Finding(f"{tensor.place}/block", f"block is {tensor.block} for {min(wanted)} KiB")


@BOOK.rule(
    "G035", "error", "two records of one transfer disagree: shape, size, core, or box of a weight",
    source="GEMINI 2.1 to 2.3", fix="repeat the maker's values",
)  # fmt: skip
def disagreement(index: Index, _: Network | None) -> Iterator[Finding]:
    """`in` entries, sources, weights: each against its ofmap or `out` entry."""
    for entry in index.ir.dram_in:
        made = index.made.get(entry.transfer_id)
        if made is None or entry.transfer_id in index.doubled or not index.sound(entry.transfer_id):
            continue
        if entry.box.shape != made.piece.box.shape:
            said = f"transfer {entry.transfer_id} arrives as {entry.box}, its ofmap is {made.piece.box}"
            yield Finding(f"{entry.place}/upper", said)
    for work, tensor in _tensors(index):
        for source in tensor.source:
            wrong = _differs(index, source)
            if wrong:
                yield Finding(f"{source.place}/{wrong[0]}", wrong[1], about=(work.core, tensor.tensor_id))
    for work in index.ir.workloads():
        if work.weight is None or work.weight.from_ofmap:
            continue
        for number in work.weight.transfer_id:
            out = index.outs.get(number)
            if out is None or out.type != "weight" or number in index.doubled or not index.sound(number):
                continue
            if out.box != work.weight.box:
                said = f"{work} uses {work.weight.box} of weight {number}, which is {out.box}"
                yield Finding(f"{work.weight.place}/upper", said, about=work.weight.place)


def _differs(index: Index, source: Source) -> tuple[str, str] | None:
    """Key and reason why a source is not what its transfer is."""
    number = source.transfer_id
    maker = index.maker(number)
    if maker is None or number in index.doubled or not index.sound(number):
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
def tiling(index: Index, _: Network | None) -> Iterator[Finding]:
    """Each tensor (A); ids of each workload's operands (B). Not where G016 or G035 tells of a source."""
    if index.ir.form.joint_operands:
        yield from _same_ids(index)
        return
    for work, tensor in _tensors(index):
        if tensor.type == "ofmap":
            continue
        about = (work.core, tensor.tensor_id)
        ids = {source.transfer_id for source in tensor.source}
        if ids != set(tensor.transfer_id):
            said = (
                f"tensor {tensor.tensor_id} has transfers {_some(tensor.transfer_id)}, its sources {_some(sorted(ids))}"
            )
            yield Finding(f"{tensor.place}/transfer_id", said, about=about)
        elif not _odd(index, tensor) and not tile([source.box for source in tensor.source], tensor.box):
            said = f"the sources of tensor {tensor.tensor_id} do not fill {tensor.box}, each element once"
            yield Finding(f"{tensor.place}/source", said, about=about)


def _odd(index: Index, tensor: Tensor) -> bool:
    return any(
        index.maker(source.transfer_id) is None or _differs(index, source) is not None for source in tensor.source
    )


def _same_ids(index: Index) -> Iterator[Finding]:
    for work in index.ir.workloads():
        for item in work.ifmap if work.core not in index.disordered else ():
            entries = own_entries(work)
            ids = {number for entry in entries for number in entry.transfer_id}
            if entries and ids != set(item.transfer_id) and not any(one in index.unmade for one in item.transfer_id):
                said = f"{work} reads {_some(item.transfer_id)}, its buffer entry holds {_some(sorted(ids))}"
                yield Finding(f"{item.place}/transfer_id", said)
            for entry in entries:
                own = {source.transfer_id for source in entry.source}
                if own != set(entry.transfer_id) and ids == set(item.transfer_id):
                    said = f"a buffer entry has transfers {_some(entry.transfer_id)}, its sources {_some(sorted(own))}"
                    yield Finding(f"{entry.place}/transfer_id", said)


def _some(numbers: "tuple[int, ...] | list[int]") -> str:
    shown = ", ".join(map(str, numbers[:8]))
    return f"[{shown}{', ...' if len(numbers) > 8 else ''}]"
