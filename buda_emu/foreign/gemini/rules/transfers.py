"""Rules on transfers through DRAM and between workloads: G010 to G019."""

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from buda_emu.foreign.gemini.book import BOOK
from buda_emu.foreign.gemini.frontend import Network
from buda_emu.foreign.gemini.index import Index, WorkloadOutput
from buda_emu.foreign.gemini.model import DramIn, DramOut, Ofmap, Workload
from buda_emu.support.checker import Finding


@BOOK.rule(
    "G010", "error", "a transfer id is defined twice",
    why="Ids of tensors that leave DRAM and of results of workloads are unique in the whole file; a tensor "
    "that arrives in DRAM repeats the id of its ofmap, once.",
    source="GEMINI 2.1, 8", fix="give one of them another id",
)  # fmt: skip
def check_unique_ids(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a transfer id that is defined twice, over `out` entries and ofmaps together, or within `in` (G010)."""
    for number, place in index.duplicate_ids.items():
        yield Finding(place, f"transfer {number} is defined before", about=number)


def _find_arrival_fault(index: Index, entry: DramIn) -> tuple[str, str] | None:
    """Return the key and the reason why an `in` entry does not match its ofmap, None where it does."""
    output = index.outputs_by_id.get(entry.transfer_id)
    if output is None:
        return "transfer_id", "no workload makes it"
    work = output.work
    if (entry.core_id, entry.workload_id) != (work.core, work.workload_id):
        if entry.core_id != work.core:
            key = "core_id"
        else:
            key = "workload_id"
        return key, f"{work} makes it, not core {entry.core_id} workload {entry.workload_id}"
    if entry.layer_name is not None and entry.layer_name != work.layer_name:
        return "layer_name", f"it is of layer {work.layer_name!r}, not {entry.layer_name!r}"
    if output.piece.to_dram:
        return None
    return ("transfer_id", f"{work} does not send it to DRAM")


def _faulty_arrivals(index: Index) -> Iterator[tuple[DramIn, str, str]]:
    """Yield each `in` entry that does not match its ofmap, with the key and the reason. Entries that other rules
    report are left out."""
    for entry in index.ir.dram_in:
        wrong = _find_arrival_fault(index, entry)
        named = index.by_id.get((entry.core_id, entry.workload_id))
        if named is not None and not named.ofmap and entry.transfer_id not in index.outputs_by_id:
            continue  # G038 tells
        if wrong and entry.transfer_id not in index.duplicate_ids and entry.core_id not in index.unordered_cores:
            yield entry, *wrong


@BOOK.rule(
    "G011", "error", "what arrives in DRAM is not an ofmap of that workload that goes to DRAM",
    source="GEMINI 2.1", fix="repeat id, core, workload and layer of the ofmap that is stored",
)  # fmt: skip
def check_arrivals(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report an `in` entry that is not an ofmap of the workload it names that goes to DRAM (G011)."""
    for entry, key, reason in _faulty_arrivals(index):
        yield Finding(f"{entry.place}/{key}", f"transfer {entry.transfer_id} arrives in DRAM, but {reason}")


@BOOK.rule(
    "G012", "error", "an ofmap goes to DRAM and is not among what arrives there",
    source="GEMINI 2.1", fix="add it to the list `in` below \"-1\"",
)  # fmt: skip
def check_stores_arrive(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report an ofmap that goes to DRAM and is not among what arrives there, except where an `in` entry of the
    workload has another fault (G012)."""
    astray = {(entry.core_id, entry.workload_id) for entry, *_rest in _faulty_arrivals(index)}
    for work in index.ir.workloads():
        for piece in work.ofmap:
            if piece.to_dram and piece.transfer_id not in index.ins and (work.core, work.workload_id) not in astray:
                problem = f"{work} sends transfer {piece.transfer_id} to DRAM, where nothing arrives under that id"
                yield Finding(f"{piece.place}/transfer_id", problem, about=piece.transfer_id)


def _related_pairs(index: Index) -> Iterator[tuple[DramIn, DramOut]]:
    """Yield what arrives in DRAM with what leaves it, where both name each other."""
    for entry in index.ir.dram_in:
        for number in entry.related_ofmap:
            out = index.outs.get(number)
            if out is not None and entry.transfer_id in out.related_ifmap:
                yield entry, out


@BOOK.rule(
    "G013", "error", "related_ofmap and related_ifmap do not name each other, or name an unknown id",
    source="GEMINI 2.1", fix="name each reader where it arrives, and each piece where it leaves",
)  # fmt: skip
def check_related_ids(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report related_ofmap and related_ifmap that do not name each other or that name an unknown id (G013). An id
    that G012 or G016 reports counts as known."""
    yield from _check_related_ofmaps(index)
    yield from _check_related_ifmaps(index)


def _check_related_ofmaps(index: Index) -> Iterator[Finding]:
    """Yield the findings of G013 about pieces that claim to be read by a tensor that leaves DRAM and does not name
    them."""
    for entry in index.ir.dram_in:
        for number in entry.related_ofmap:
            out = index.outs.get(number)
            if index.duplicate_ids.keys() & {number, entry.transfer_id}:
                continue
            if out is None:
                why = "nothing leaves under that id"
                if number in index.ids_without_producer:
                    continue  # G016 tells
            elif entry.transfer_id not in out.related_ifmap:
                why = "that does not name it in related_ifmap"
            else:
                continue
            problem = f"what arrives as {entry.transfer_id} is said to be read by {number}, but {why}"
            yield Finding(f"{entry.place}/related_ofmap", problem)


def _check_related_ifmaps(index: Index) -> Iterator[Finding]:
    """Yield the findings of G013 about loads that claim to need a piece that arrives in DRAM and does not name
    them."""
    for out in index.ir.dram_out:
        for number in out.related_ifmap:
            entry = index.ins.get(number)
            if index.duplicate_ids.keys() & {number, out.transfer_id}:
                continue
            if entry is None:
                why = "nothing arrives under that id"
                output = index.outputs_by_id.get(number)
                if output is not None and output.piece.to_dram:
                    continue  # G012 tells
            elif out.transfer_id not in entry.related_ofmap:
                why = "that does not name it in related_ofmap"
            else:
                continue
            problem = f"what leaves as {out.transfer_id} is said to need {number}, but {why}"
            yield Finding(f"{out.place}/related_ifmap", problem)


@BOOK.rule(
    "G014", "error", "a load and the store that it is said to need share no element",
    source="GEMINI 2.1", fix="relate only transfers whose boxes meet",
)  # fmt: skip
def check_related_boxes(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a load and the store that it is said to need whose boxes, both in the layer's output, do not meet
    (G014)."""
    for entry, out in _related_pairs(index):
        if out.type == "fmap" and not entry.box.meets(out.box):
            problem = (
                f"transfer {out.transfer_id} reads {out.box}, of which {entry.transfer_id} ({entry.box}) holds nothing"
            )
            yield Finding(f"{out.place}/related_ifmap", problem)


@BOOK.rule(
    "G015", "error", "a destination names a workload that does not exist, or that does not read what leaves DRAM",
    source="GEMINI 2.1, 2.2", fix="name the workloads whose ifmap or weight has the id",
)  # fmt: skip
def check_targets(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a destination that names a workload which does not exist, or which does not read what leaves DRAM
    (G015)."""
    for number, maker, to in index.destinations():
        core_known = to.core_id in index.ir.cores and to.core_id not in index.unordered_cores
        if to.type != "core" or not core_known or number in index.duplicate_ids:
            continue
        work = index.find_target(to)
        place = f"{to.place}/workload_id"
        name = f"core {to.core_id} workload {to.workload_id}"
        if work is None:
            yield Finding(place, f"transfer {number} goes to {name}, which does not exist")
        elif isinstance(maker, DramOut) and number not in work.reads:
            if index.reads_missing_transfer(work) or (work.core, work.index) in index.inconsistent_readers:
                continue
            yield Finding(place, f"transfer {number} goes to {work}, which does not read it")


@BOOK.rule(
    "G016", "error", "something is read that nothing makes, or a weight as an operand or the reverse",
    source="GEMINI 2.1, 2.2", fix="read an id of `out` or of an ofmap",
)  # fmt: skip
def check_reads(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report operands, weights, and sources of tensors that nothing makes, and a weight that is read as an operand
    or the reverse (G016)."""
    for work in index.ir.workloads():
        for ifmap in work.ifmap:
            for number in ifmap.transfer_id:
                yield from _check_read(index, work, "operand", ifmap.place, number)
        if work.weight is not None:
            for number in work.weight.transfer_id:
                yield from _check_read(index, work, "weight", work.weight.place, number)
    yield from _check_sources(index)


def _check_read(index: Index, work: Workload, role: str, place: str, number: int) -> Iterator[Finding]:
    """Yield a finding, at `place`, where nothing makes transfer `number`, which a workload reads as `role`,
    "operand" or "weight", or where it is of the other kind."""
    producer = index.producer(number)
    if producer is None:
        if number not in index.ids_of_empty_workloads:  # else G038 tells
            problem = f"{work} reads {role} {number}, which nothing makes"
            yield Finding(f"{place}/transfer_id", problem, about=number)
    elif not index.ir.form.activations_as_weights and number not in index.duplicate_ids:
        is_weight = isinstance(producer, DramOut) and producer.type == "weight"
        if is_weight != (role == "weight"):
            kind = "a weight" if is_weight else "a feature map"
            yield Finding(f"{place}/transfer_id", f"{work} reads {number} as {role}, which is {kind}", about=number)


def _check_sources(index: Index) -> Iterator[Finding]:
    """Yield the findings of G016 about sources of tensors that nothing makes, each once for a core. Ids that a
    workload reads, and those of workloads without ofmaps, are left out."""
    seen: set[tuple[int, int]] = set()
    for work in index.ir.workloads():
        for tensor in work.buffer:
            for source in tensor.source:
                number = source.transfer_id
                if number in index.ids_of_empty_workloads or number in index.ids_without_producer:
                    continue
                if index.producer(number) is None and (work.core, number) not in seen:
                    seen.add((work.core, number))
                    problem = f"a tensor's source is transfer {number}, which nothing makes"
                    yield Finding(f"{source.place}/transfer_id", problem, about=(work.core, tensor.tensor_id))


@BOOK.rule(
    "G017", "error", "a reader is not among the destinations of what it reads",
    why="Weights name only their first readers; everything else names all.",
    source="GEMINI 2.1, 2.2", fix="add the reader to the destinations",
)  # fmt: skip
def check_reader_names(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a workload that is not among the destinations of a feature map that it reads (G017). Transfers with a
    destination that does not exist are left out, and workloads whose operands G016 or G044 reports."""
    for number, works in index.readers.items():
        if number in index.duplicate_ids or number in index.ids_sent_nowhere:
            continue
        record = _feature_map_record(index, number)
        if record is None:
            continue
        named = {(to.core_id, to.workload_id) for to in record.destination}
        for work in works:
            if (work.core, work.workload_id) not in named and not _has_faulty_reads(index, work):
                problem = f"{work} reads transfer {number} and is not among its destinations"
                yield Finding(f"{record.place}/destination", problem)


def _feature_map_record(index: Index, number: int) -> DramOut | Ofmap | None:
    """Return the record that lists the destinations of a feature map; None for a transfer that nothing produces, and
    for weights."""
    producer = index.producer(number)
    if producer is None:
        return None
    if not isinstance(producer, DramOut):
        return producer.piece
    if producer.type == "weight":
        return None
    return producer


def _has_faulty_reads(index: Index, work: Workload) -> bool:
    """Return whether another rule reports the ids or the operands of a workload (G005, G016, G044)."""
    inconsistent = (work.core, work.index) in index.inconsistent_readers
    return inconsistent or index.reads_missing_transfer(work) or work.core in index.unordered_cores


def _makers_of(index: Index, number: int) -> list[tuple[WorkloadOutput, str]]:
    """Return the workload outputs that transfer `number` carries, each with "" or " through DRAM" for a message."""
    out = index.outs.get(number)
    if out is None:
        output = index.outputs_by_id.get(number)
        return [(output, "")] if output else []
    through = [
        index.outputs_by_id[entry]
        for entry in out.related_ifmap
        if entry in index.outputs_by_id
        and entry not in index.duplicate_ids
        and entry in index.ins
        and number in index.ins[entry].related_ofmap  # else G013 tells
    ]
    return [(output, " through DRAM") for output in through]


@BOOK.rule(
    "G018", "error", "a workload reads a result that is made later, or workloads wait for each other in a cycle",
    why="Workloads of a core run one after the other; in dialect B a maker has a smaller id than every reader, "
    "over all "
    "cores.",
    source="GEMINI 2.2, 3", fix="put the maker before the reader",
)  # fmt: skip
def check_order(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a workload that reads a result made later, on its own core (dialect A) or by ids over all cores
    (dialect B), or else a cycle of workloads that wait for each other (dialect A) (G018)."""
    findings = list(_find_late_makers(index))
    if findings or index.ir.form.global_ids:
        yield from findings
    else:
        yield from _find_circle(index)


def _find_late_makers(index: Index) -> Iterator[Finding]:
    """Yield a finding for each result that is made after the workload that reads it, or by that workload."""
    for work in index.ir.workloads():
        inconsistent = (work.core, work.index) in index.inconsistent_readers
        if work.core in index.unordered_cores or index.reads_missing_transfer(work) or inconsistent:
            continue
        for number in work.reads:
            if number not in index.duplicate_ids:
                yield from _find_late_makers_of_read(index, work, number)


def _find_late_makers_of_read(index: Index, work: Workload, number: int) -> Iterator[Finding]:
    """Yield a finding for each maker of a transfer that makes it after, or in, the workload that reads it."""
    for output, route in _makers_of(index, number):
        maker = output.work
        if maker.core not in index.unordered_cores and _is_late(index, maker, work):
            when = "itself" if maker is work else "later"
            problem = f"{work} reads transfer {number}{route}, which {maker} makes {when}"
            yield Finding(f"{work.place}/ifmap", problem)


def _is_late(index: Index, maker: Workload, reader: Workload) -> bool:
    """Return whether the maker does not come before the reader, in an order that both belong to."""
    if index.ir.form.global_ids:
        return maker.workload_id >= reader.workload_id
    return maker.core == reader.core and maker.index >= reader.index


def _find_circle(index: Index) -> Iterator[Finding]:
    """Yield a finding for a cycle of workloads that wait for each other, at the first workload of it."""
    order: TopologicalSorter[tuple[int, int]] = TopologicalSorter()
    for work in index.ir.workloads():
        order.add((work.core, work.index), *_steps_before(index, work))
    try:
        order.prepare()
    except CycleError as error:
        circle: list[tuple[int, int]] = error.args[1]
        works: list[Workload] = [index.ir.cores[core][at] for core, at in circle]
        first = min(works, key=lambda work: (work.core, work.index))
        names = " <- ".join(str(work) for work in works[:6])
        yield Finding(f"{first.place}/ifmap", f"workloads wait for each other: {names}")


def _steps_before(index: Index, work: Workload) -> list[tuple[int, int]]:
    """Return the workloads (core, position) that a workload waits for: the one before it, and the makers of its
    operands unless another rule reports these."""
    steps: list[tuple[int, int]] = []
    if work.index:
        steps.append((work.core, work.index - 1))
    if not index.reads_missing_transfer(work) and (work.core, work.index) not in index.inconsistent_readers:
        for number in work.reads:
            steps += [(output.work.core, output.work.index) for output, _route in _makers_of(index, number)]
    return steps


@BOOK.rule(
    "G019", "note", "an ofmap names a reader that does not read it",
    why="A tensor that is merged from several pieces lists every reader of the whole for every piece; the "
    "readers' ifmap says who really reads.",
    source="GEMINI 4",
)  # fmt: skip
def check_superfluous(index: Index, _: Network | None) -> Iterator[Finding]:
    """Note a destination of an ofmap that does not read it (G019)."""
    for number, maker, to in index.destinations():
        work = index.find_target(to)
        if isinstance(maker, WorkloadOutput) and work is not None and number not in work.reads:
            yield Finding(to.place, f"transfer {number} names {work}, which does not read it")
