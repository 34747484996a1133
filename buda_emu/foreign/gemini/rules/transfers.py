"""Transfers, through DRAM and between workloads: G010 to G019."""

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from buda_emu.foreign.gemini.book import BOOK
from buda_emu.foreign.gemini.frontend import Network
from buda_emu.foreign.gemini.index import Index, Made
from buda_emu.foreign.gemini.model import DramIn, DramOut, Workload
from buda_emu.support.checker import Finding


@BOOK.rule(
    "G010", "error", "a transfer id is defined twice",
    why="Ids of tensors that leave DRAM and of results of workloads are unique in the whole file; a tensor "
    "that arrives in DRAM repeats the id of its ofmap, once.",
    source="GEMINI 2.1, 8", fix="give one of them another id",
)  # fmt: skip
def twice(index: Index, _: Network | None) -> Iterator[Finding]:
    """By `out` entries and ofmaps together, or within `in`."""
    for number, place in index.doubled.items():
        yield Finding(place, f"transfer {number} is defined before", about=number)


def _astray(index: Index, entry: DramIn) -> tuple[str, str] | None:
    """Key and reason why an `in` entry is not its ofmap's."""
    made = index.made.get(entry.transfer_id)
    if made is None:
        return "transfer_id", "no workload makes it"
    work = made.work
    if (entry.core_id, entry.workload_id) != (work.core, work.workload_id):
        key = "core_id" if entry.core_id != work.core else "workload_id"
        return key, f"{work} makes it, not core {entry.core_id} workload {entry.workload_id}"
    if entry.layer_name is not None and entry.layer_name != work.layer_name:
        return "layer_name", f"it is of layer {work.layer_name!r}, not {entry.layer_name!r}"
    return None if made.piece.to_dram else ("transfer_id", f"{work} does not send it to DRAM")


def _arrives_astray(index: Index) -> Iterator[tuple[DramIn, str, str]]:
    for entry in index.ir.dram_in:
        wrong = _astray(index, entry)
        named = index.by_id.get((entry.core_id, entry.workload_id))
        if named is not None and not named.ofmap and entry.transfer_id not in index.made:
            continue  # G038 tells
        if wrong and entry.transfer_id not in index.doubled and entry.core_id not in index.disordered:
            yield entry, *wrong


@BOOK.rule(
    "G011", "error", "what arrives in DRAM is not an ofmap of that workload that goes to DRAM",
    source="GEMINI 2.1", fix="repeat id, core, workload and layer of the ofmap that is stored",
)  # fmt: skip
def arrivals(index: Index, _: Network | None) -> Iterator[Finding]:
    """Of each `in` entry: id, core, workload, layer (A), destination."""
    for entry, key, reason in _arrives_astray(index):
        yield Finding(f"{entry.place}/{key}", f"transfer {entry.transfer_id} arrives in DRAM, but {reason}")


@BOOK.rule(
    "G012", "error", "an ofmap goes to DRAM and is not among what arrives there",
    source="GEMINI 2.1", fix="add it to the list `in` below \"-1\"",
)  # fmt: skip
def unlisted(index: Index, _: Network | None) -> Iterator[Finding]:
    """Each ofmap; not where an `in` entry of the workload has another fault."""
    astray = {(entry.core_id, entry.workload_id) for entry, *_rest in _arrives_astray(index)}
    for work in index.ir.workloads():
        for piece in work.ofmap:
            if piece.to_dram and piece.transfer_id not in index.ins and (work.core, work.workload_id) not in astray:
                said = f"{work} sends transfer {piece.transfer_id} to DRAM, where nothing arrives under that id"
                yield Finding(f"{piece.place}/transfer_id", said, about=piece.transfer_id)


def _mirrored(index: Index) -> Iterator[tuple[DramIn, DramOut]]:
    """What arrives and what leaves, where both name each other."""
    for entry in index.ir.dram_in:
        for number in entry.related_ofmap:
            out = index.outs.get(number)
            if out is not None and entry.transfer_id in out.related_ifmap:
                yield entry, out


@BOOK.rule(
    "G013", "error", "related_ofmap and related_ifmap do not name each other, or name an unknown id",
    source="GEMINI 2.1", fix="name each reader where it arrives, and each piece where it leaves",
)  # fmt: skip
def related(index: Index, _: Network | None) -> Iterator[Finding]:
    """From both sides. An id that G012 or G016 tells of is not unknown here."""
    for entry in index.ir.dram_in:
        for number in entry.related_ofmap:
            out = index.outs.get(number)
            if number in index.doubled or entry.transfer_id in index.doubled or (not out and number in index.unmade):
                continue
            if out is None or entry.transfer_id not in out.related_ifmap:
                why = "nothing leaves under that id" if out is None else "that does not name it in related_ifmap"
                said = f"what arrives as {entry.transfer_id} is said to be read by {number}, but {why}"
                yield Finding(f"{entry.place}/related_ofmap", said)
    for out in index.ir.dram_out:
        for number in out.related_ifmap:
            entry = index.ins.get(number)
            made = index.made.get(number)
            told = made is not None and made.piece.to_dram and entry is None
            if number in index.doubled or out.transfer_id in index.doubled or told:
                continue
            if entry is None or out.transfer_id not in entry.related_ofmap:
                why = "nothing arrives under that id" if entry is None else "that does not name it in related_ofmap"
                said = f"what leaves as {out.transfer_id} is said to need {number}, but {why}"
                yield Finding(f"{out.place}/related_ifmap", said)


@BOOK.rule(
    "G014", "error", "a load and the store that it is said to need share no element",
    source="GEMINI 2.1", fix="relate only transfers whose boxes meet",
)  # fmt: skip
def apart(index: Index, _: Network | None) -> Iterator[Finding]:
    """Boxes of related transfers, absolute in the layer's output."""
    for entry, out in _mirrored(index):
        if out.type == "fmap" and not entry.box.meets(out.box):
            said = (
                f"transfer {out.transfer_id} reads {out.box}, of which {entry.transfer_id} ({entry.box}) holds nothing"
            )
            yield Finding(f"{out.place}/related_ifmap", said)


@BOOK.rule(
    "G015", "error", "a destination names a workload that does not exist, or that does not read what leaves DRAM",
    source="GEMINI 2.1, 2.2", fix="name the workloads whose ifmap or weight has the id",
)  # fmt: skip
def targets(index: Index, _: Network | None) -> Iterator[Finding]:
    """Of ofmaps: that it exists. Of `out` entries: also that it reads."""
    for number, maker, to in index.destinations():
        known = to.core_id in index.ir.cores and to.core_id not in index.disordered
        if to.type != "core" or not known or number in index.doubled:
            continue
        work = index.target(to)
        place = f"{to.place}/workload_id"
        name = f"core {to.core_id} workload {to.workload_id}"
        if work is None:
            yield Finding(place, f"transfer {number} goes to {name}, which does not exist")
        elif isinstance(maker, DramOut) and number not in work.reads:
            if index.lost(work) or (work.core, work.index) in index.misread:
                continue
            yield Finding(place, f"transfer {number} goes to {work}, which does not read it")


@BOOK.rule(
    "G016", "error", "something is read that nothing makes, or a weight as an operand or the reverse",
    source="GEMINI 2.1, 2.2", fix="read an id of `out` or of an ofmap",
)  # fmt: skip
def unmade(index: Index, _: Network | None) -> Iterator[Finding]:
    """Operands, weights, then sources of tensors that nobody reads."""
    for work in index.ir.workloads():
        named = [("operand", item.place, number) for item in work.ifmap for number in item.transfer_id]
        if work.weight is not None:
            named += [("weight", work.weight.place, number) for number in work.weight.transfer_id]
        for what, place, number in named:
            maker = index.maker(number)
            if maker is None and number in index.barren:
                continue  # G038 tells
            if maker is None:
                yield Finding(
                    f"{place}/transfer_id", f"{work} reads {what} {number}, which nothing makes", about=number
                )
            elif not index.ir.form.activations_as_weights and number not in index.doubled:
                is_weight = isinstance(maker, DramOut) and maker.type == "weight"
                if is_weight != (what == "weight"):
                    said = f"{work} reads {number} as {what}, which is {'a weight' if is_weight else 'a feature map'}"
                    yield Finding(f"{place}/transfer_id", said, about=number)
    seen: set[tuple[int, int]] = set()
    for work in index.ir.workloads():
        for tensor in work.buffer:
            for source in tensor.source:
                number = source.transfer_id
                if number in index.barren:
                    continue
                if index.maker(number) is None and number not in index.unmade and (work.core, number) not in seen:
                    seen.add((work.core, number))
                    said = f"a tensor's source is transfer {number}, which nothing makes"
                    yield Finding(f"{source.place}/transfer_id", said, about=(work.core, tensor.tensor_id))


@BOOK.rule(
    "G017", "error", "a reader is not among the destinations of what it reads",
    why="Weights name only their first readers; everything else names all.",
    source="GEMINI 2.1, 2.2", fix="add the reader to the destinations",
)  # fmt: skip
def unnamed(index: Index, _: Network | None) -> Iterator[Finding]:
    """Each reader of each feature map; not of transfers with a destination that does not exist, and not by workloads
    whose operands G016 and G044 tell of."""
    for number, works in index.readers.items():
        maker = index.maker(number)
        if maker is None or number in index.doubled or number in index.misled:
            continue
        if isinstance(maker, DramOut) and maker.type == "weight":
            continue
        item = maker if isinstance(maker, DramOut) else maker.piece
        named = {(to.core_id, to.workload_id) for to in item.destination}
        for work in works:
            if index.lost(work) or (work.core, work.index) in index.misread or work.core in index.disordered:
                continue
            if (work.core, work.workload_id) not in named:
                said = f"{work} reads transfer {number} and is not among its destinations"
                yield Finding(f"{item.place}/destination", said)


def _makers_of(index: Index, number: int) -> list[tuple[Made, str]]:
    """Workloads whose results a transfer carries, directly or through DRAM."""
    out = index.outs.get(number)
    if out is None:
        made = index.made.get(number)
        return [(made, "")] if made else []
    through = [
        index.made[entry]
        for entry in out.related_ifmap
        if entry in index.made
        and entry not in index.doubled
        and entry in index.ins
        and number in index.ins[entry].related_ofmap  # else G013 tells
    ]
    return [(made, " through DRAM") for made in through]


@BOOK.rule(
    "G018", "error", "a workload reads a result that is made later, or workloads wait for each other in a cycle",
    why="Workloads of a core run one after the other; in dialect B a maker has a smaller id than every reader, "
    "over all "
    "cores.",
    source="GEMINI 2.2, 3", fix="put the maker before the reader",
)  # fmt: skip
def backwards(index: Index, _: Network | None) -> Iterator[Finding]:
    """Same core (A), all cores by id (B), then circles over cores (A)."""
    found = False
    all_cores = index.ir.form.global_ids
    for work in index.ir.workloads():
        if work.core in index.disordered or index.lost(work) or (work.core, work.index) in index.misread:
            continue
        for number in work.reads:
            for made, how in () if number in index.doubled else _makers_of(index, number):
                other = made.work
                same = all_cores or other.core == work.core
                late = other.workload_id >= work.workload_id if all_cores else other.index >= work.index
                if same and late and other.core not in index.disordered:
                    found = True
                    said = f"{work} reads transfer {number}{how}, which {other} makes " + (
                        "itself" if other is work else "later"
                    )
                    yield Finding(f"{work.place}/ifmap", said)
    if not found and not all_cores:
        yield from _circle(index)


def _circle(index: Index) -> Iterator[Finding]:
    """A circle of workloads over cores, told at its first."""
    order: TopologicalSorter[tuple[int, int]] = TopologicalSorter()
    for work in index.ir.workloads():
        before = [(work.core, work.index - 1)] if work.index else []
        reads = () if index.lost(work) or (work.core, work.index) in index.misread else work.reads
        makers = [made.work for number in reads for made, _how in _makers_of(index, number)]
        order.add((work.core, work.index), *before, *((item.core, item.index) for item in makers))
    try:
        order.prepare()
    except CycleError as error:
        circle: list[tuple[int, int]] = error.args[1]
        works: list[Workload] = [index.ir.cores[core][at] for core, at in circle]
        first = min(works, key=lambda item: (item.core, item.index))
        names = " <- ".join(str(item) for item in works[:6])
        yield Finding(f"{first.place}/ifmap", f"workloads wait for each other: {names}")


@BOOK.rule(
    "G019", "note", "an ofmap names a reader that does not read it",
    why="A tensor that is merged from several pieces lists every reader of the whole for every piece; the "
    "readers' ifmap says who really reads.",
    source="GEMINI 4",
)  # fmt: skip
def superfluous(index: Index, _: Network | None) -> Iterator[Finding]:
    """Destinations of ofmaps on cores."""
    for number, maker, to in index.destinations():
        work = index.target(to)
        if isinstance(maker, Made) and work is not None and number not in work.reads:
            yield Finding(to.place, f"transfer {number} names {work}, which does not read it")
