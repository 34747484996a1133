"""Weights and the order of the DRAM queue: G050 to G053."""

from collections.abc import Iterator
from itertools import pairwise

from buda_emu.checker import Finding
from buda_emu.gemini.book import BOOK
from buda_emu.gemini.frontend import Network
from buda_emu.gemini.index import Index
from buda_emu.gemini.model import Tensor, Workload


def _works(index: Index) -> list[Workload]:
    return index.ir.workloads() if index.ir.form.addressed else []


def _ids(tensor: Tensor) -> set[int]:
    """As it says itself and as its sources say; G036 tells where they differ."""
    return {*tensor.transfer_id, *(source.transfer_id for source in tensor.source)}


@BOOK.rule(
    "G050", "error", "a weight is neither in L2 nor loaded straight into the weight store",
    source="GEMINI 2.5", fix="show a weight tensor with the id, or a DDR entry, in the workload's snapshot",
)  # fmt: skip
def absent(index: Index, _: Network | None) -> Iterator[Finding]:
    """Each weight of each workload. Not of ids that G016 tells of."""
    for work in _works(index):
        held = {number for item in work.buffer if index.may_be("weight", item, work.core) for number in _ids(item)}
        held |= {number for item in work.wl0 if item.source == "DDR" for number in item.transfer_id}
        for number in work.weight.transfer_id if work.weight else ():
            if number not in held and not index.lost(work):
                yield Finding(f"{work.weight.place}/transfer_id", f"{work} uses weight {number}, which is not there")  # type: ignore[union-attr]


@BOOK.rule("G051", "error", "entries of the weight store overlap", source="GEMINI 2.5")
def rows(index: Index, _: Network | None) -> Iterator[Finding]:
    """Rows of each snapshot."""
    for work in _works(index):
        items = sorted((item for item in work.wl0 if item.size > 0), key=lambda item: (item.address, item.place))
        for first, second in pairwise(items):
            if second.address < first.address + first.size:
                said = f"rows from {second.address} on are also of the entry at {first.address} with {first.size} rows"
                yield Finding(f"{second.place}/address", said)


@BOOK.rule(
    "G052", "error", "an entry of the weight store is taken from L2, where its weight is not",
    source="GEMINI 2.5",
)  # fmt: skip
def from_l2(index: Index, _: Network | None) -> Iterator[Finding]:
    """CORE entries against the weight tensors of their snapshot."""
    for work in _works(index):
        held = [_ids(item) for item in work.buffer if index.may_be("weight", item, work.core)]
        for item in work.wl0:
            if item.source == "CORE" and not any(set(item.transfer_id) <= ids for ids in held):
                said = f"no weight tensor of the snapshot of {work} has transfers {list(item.transfer_id)}"
                yield Finding(f"{item.place}/transfer_id", said)


def _loaded(index: Index, tensor: Tensor) -> bool:
    """It comes from DRAM: as its transfers say, and where nothing makes them, its sources; G035 tells where they
    differ."""
    return any(
        number in index.outs or (index.maker(number) is None and source.type == "DRAM")
        for source in tensor.source
        for number in (source.transfer_id,)
    )


@BOOK.rule(
    "G053", "error", "tensor_order of tensors that go through DRAM is not 0 to n-1, each once",
    why="There is one DRAM queue: loads, stores and weights straight into the weight store, in this order over "
    "all cores.",
    source="GEMINI 2.3", fix="number the loads and stores in the order in which they are to run",
)  # fmt: skip
def orders(index: Index, _: Network | None) -> Iterator[Finding]:
    """All cores together. A tensor whose order changes (G042) may have any of its orders; where a tensor is missing
    (G045, G050), a number may be."""
    if not index.ir.form.addressed:
        return
    claimed: dict[int, list[str]] = {}
    spare: set[int] = set()
    count = 0
    for life in index.lives.values():
        if life.first.type == "ofmap" or _loaded(index, life.first):
            count += 1
            every = {item.tensor_order for item in life.tensors}
            if len(every) == 1:
                claimed.setdefault(life.first.tensor_order, []).append(f"{life.first.place}/tensor_order")
            spare |= every if len(every) > 1 else set()
        elif not life.first.source:
            spare.add(life.first.tensor_order)  # of which nothing tells where it comes from (G036)
    direct: dict[tuple[int, int | None], str] = {}
    for work in _works(index):
        for item in work.wl0:
            if item.source == "DDR":
                direct.setdefault((work.core, item.tensor_order), f"{item.place}/tensor_order")
    for (_core, order), place in direct.items():
        count += 1
        claimed.setdefault(-1 if order is None else order, []).append(place)
    for order, places in sorted(claimed.items()):
        for place in places[1:]:
            yield Finding(place, f"order {order} is also that of {places[0].rsplit('/', 1)[0]}")
    lacking = {
        number
        for work in _works(index)
        for number in (work.weight.transfer_id if work.weight else ())
        if not any(number in item.transfer_id for item in (*work.buffer, *work.wl0))
    }
    lacking |= {
        piece.transfer_id
        for work in _works(index)
        for piece in work.ofmap
        if piece.to_dram and piece.transfer_id not in index.stored_in
    }
    if any(len(places) > 1 for places in claimed.values()) or spare or index.repeated:
        return
    top = count + len(lacking)
    for order in sorted(set(claimed) - set(range(top))):
        yield Finding(claimed[order][0], f"order {order} is beyond those of {count} loads and stores, 0 to {count - 1}")
