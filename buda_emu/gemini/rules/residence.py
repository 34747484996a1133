"""Where operands and results lie in L2: G044, G045, G048."""

from collections.abc import Iterator

from buda_emu.checker import Finding
from buda_emu.gemini.book import BOOK
from buda_emu.gemini.frontend import Network
from buda_emu.gemini.index import Index, own_entries, read_tensor, touched
from buda_emu.gemini.model import Tensor, Workload
from buda_emu.gemini.sizes import fmap_bytes, legal


@BOOK.rule(
    "G044", "error", "an operand has no flagged tensor or reads outside of it, or a flagged tensor has no reader",
    why="The entry of `buffer` that an operand is read from has cur_wl_ifmap, and its ids contain the "
    "operand's, which are "
    "those of the sources that the operand's box reaches.",
    source="GEMINI 2.2", unless=("G036", "G042"),
)  # fmt: skip
def operands(index: Index, _: Network | None) -> Iterator[Finding]:
    """Each operand, then each flag (A); the workload's own buffer entry (B)."""
    if index.ir.form.joint_operands:
        for work in index.ir.workloads():
            known = work.core not in index.disordered and not index.lost(work)
            if known and work.ifmap and not own_entries(work):
                said = f"the buffer of {work} has no entry of its layer and id"
                yield Finding(f"{work.place}/buffer", said)
        return
    for work in index.ir.workloads():
        wavers = any((work.core, item.tensor_id) in index.wavering for item in work.buffer)
        if not index.lost(work) and not wavers and not any(_torn(item) for item in work.buffer):
            yield from _operands(work)


def _torn(tensor: Tensor) -> bool:
    """Its ids are not those of its sources, which G036 tells."""
    return tensor.type == "ifmap" and set(tensor.transfer_id) != {source.transfer_id for source in tensor.source}


def _operands(work: Workload) -> Iterator[Finding]:
    read: set[str] = set()
    missing = False
    for item in work.ifmap:
        tensor = read_tensor(work, item)
        about = (work.core, tensor.tensor_id) if tensor else None
        if tensor is None:
            missing = True
            said = f"no tensor that {work} reads (cur_wl_ifmap) holds transfers {list(item.transfer_id)}"
            yield Finding(f"{item.place}/transfer_id", said, about=(work.core, work.index, item.place))
            continue
        read.add(tensor.place)
        if not item.box.inside(tensor.box):
            said = f"{work} reads {item.box} of tensor {tensor.tensor_id}, which is {tensor.box}"
            yield Finding(f"{item.place}/upper", said, about=about)
        elif touched(tensor, item) != set(item.transfer_id):
            said = f"{item.box} reaches transfers {sorted(touched(tensor, item))}, not {list(item.transfer_id)}"
            yield Finding(f"{item.place}/transfer_id", said, about=about)
    for tensor in work.buffer:
        if tensor.cur_wl_ifmap and tensor.place not in read and not missing:
            said = f"tensor {tensor.tensor_id} is flagged, and no operand of {work} reads it"
            yield Finding(f"{tensor.place}/cur_wl_ifmap", said, about=(work.core, tensor.tensor_id))


def _homeless(index: Index) -> Iterator[tuple[Workload, str, int, str]]:
    """Results without room: who makes it, place, transfer, why."""
    for work in index.ir.workloads():
        for piece in work.ofmap:
            number = piece.transfer_id
            if number in index.doubled or not index.sound(number):
                continue
            readers = [index.target(to) for to in piece.destination if to.type == "core" and to.core_id == work.core]
            read = any(item and number in item.reads for item in readers)
            if read and not _holds(index, work, number) and not _gone(index, work, number):
                yield work, piece.place, number, "no tensor of its snapshot has it as source"
            if piece.to_dram and number in index.ins and number not in index.stored_in and not _bent(index, work):
                why = (
                    f"its snapshot has no `ofmap` tensor of layer {work.layer_name!r} and shape {list(piece.box.shape)}"
                )
                yield work, piece.place, number, why


def _holds(index: Index, work: Workload, number: int) -> list[Tensor]:
    """`ifmap` tensors of a snapshot that say to hold a transfer, themselves or by their sources: where the two differ
    G016 or G036 tells."""
    return [
        item
        for item in work.buffer
        if index.may_be("ifmap", item, work.core)
        and number in {*item.transfer_id, *(source.transfer_id for source in item.source)}
    ]


def _gone(index: Index, work: Workload, number: int) -> bool:
    """A tensor with the transfer was there before and comes back after: G042 and G048 tell."""
    return any(
        life.core == work.core
        and life.at[0] < work.index < life.at[-1]
        and any(source.transfer_id == number for source in life.first.source)
        for life in index.lives.values()
    )


def _bent(index: Index, work: Workload) -> bool:
    """Its snapshot has room for a result of its layer that belongs to nobody, with a size that is not of its box, or a
    box that it has in this snapshot only: G031 and G042 tell."""
    for tensor in work.buffer:
        key = (work.core, tensor.tensor_id)
        if tensor.type == "ofmap" and tensor.layer_name == work.layer_name and key not in index.rooms:
            size = fmap_bytes(tensor.box, tensor.bitwidth) if legal(tensor.align, tensor.bitwidth) else -1
            if tensor.size != size or any(item.box != tensor.box for item in index.lives[key].tensors):
                return True
    return False


@BOOK.rule(
    "G045", "error", "there is no room for a result while its workload runs",
    why="A result for the same core has its id among the sources of an ifmap tensor of the workload's own "
    "snapshot; one for "
    "DRAM has an `ofmap` entry with its layer and shape. Pieces for other cores need none.",
    source="GEMINI 2.3",
)  # fmt: skip
def results(index: Index, _: Network | None) -> Iterator[Finding]:
    """Each piece."""
    for work, place, number, why in _homeless(index) if index.ir.form.addressed else ():
        yield Finding(f"{place}/destination", f"{work} makes transfer {number}, but {why}", about=number)


@BOOK.rule(
    "G048", "error", "a tensor that a core makes and reads itself is not resident all the time in between",
    source="GEMINI 4", fix="keep one tensor from the maker's snapshot to the reader's",
)  # fmt: skip
def kept(index: Index, _: Network | None) -> Iterator[Finding]:
    """Each operand that its own core makes. Not where G045 tells, nor of ids that are defined twice."""
    if not index.ir.form.addressed:
        return
    homeless = {number for _work, _place, number, _why in _homeless(index)}
    for work in index.ir.workloads():
        for item in work.ifmap:
            for number in item.transfer_id:
                made = index.made.get(number)
                if made is None or number in index.outs or number in index.doubled or number in homeless:
                    continue
                if made.work.core != work.core or made.work.index >= work.index:
                    continue
                held = [(work.core, tensor.tensor_id) for tensor in _holds(index, made.work, number)]
                wanted = set(range(made.work.index, work.index + 1))
                if any((work.core, at) in index.repeated for at in wanted):
                    continue  # G042 tells
                if not any(wanted <= set(index.lives[key].at) for key in held):
                    said = (
                        f"{work} reads transfer {number}, which L2 does not keep all the time since {made.work} made it"
                    )
                    yield Finding(f"{item.place}/transfer_id", said, about=held[0] if held else number)
