"""Rules of DMA hints and of whole DMA lists (DARWINN 6, 8)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator

from buda_emu.foreign.darwinn.idl import (
    ANY_HINT,
    DESCRIPTIONS,
    INFEED,
    INPUT,
    INTERRUPTS,
    OUTFEED,
    OUTPUT,
    PAGE,
    PARAMETER,
    SCRATCH,
    DmaDescriptorHint,
    DmaHint,
    Executable,
    FenceHint,
    InstructionHint,
    InterruptHint,
)
from buda_emu.foreign.darwinn.model import BOOK
from buda_emu.foreign.darwinn.rules.instructions import fields
from buda_emu.foreign.darwinn.rules.subject import Subject, finding
from buda_emu.support.checker import Finding
from buda_emu.support.checker.suggest import near


def distinct_hints(item: Executable) -> Iterator[tuple[int, DmaHint]]:
    """Hints with their numbers; a table that is referred to twice comes once."""
    seen: set[int] = set()
    for number, hint in enumerate(item.hints):
        if id(hint) not in seen:
            seen.add(id(hint))
            yield number, hint


def _hints(subject: Subject) -> Iterator[tuple[str, Executable, DmaHint]]:
    for name, item in subject.executables:
        for number, hint in distinct_hints(item):
            yield f"{name}, hint {number}", item, hint


def _transfers(subject: Subject) -> Iterator[tuple[str, Executable, DmaHint, DmaDescriptorHint]]:
    for name, item, hint in _hints(subject):
        if isinstance(hint.any_hint, DmaDescriptorHint):
            yield name, item, hint, hint.any_hint


def end_of_input(actual_bytes: int) -> int:
    """Up to where an input DMA may go: the end of the page that holds the buffer's last byte (DARWINN 6)."""
    return -(-actual_bytes // PAGE) * PAGE


@BOOK.rule(
    "D050", "error", "an executable has no DMA hints: over USB the driver aborts", stage="F", source="DARWINN 6, 8",
    fix="compile the model again; over PCIe it would run",
)  # fmt: skip
def _no_hints(subject: Subject) -> Iterable[Finding]:
    for name, item in subject.executables:
        if item.dma_hints is None:
            yield finding(item, "dma_hints", name, "there are no DMA hints")
        elif item.dma_hints.hints is None:
            yield finding(item.dma_hints, "hints", name, "the list of DMA hints is absent")


@BOOK.rule(
    "D051", "error", "a DMA hint has no meta, or is for a layer that the executable does not have", stage="F",
    source="DARWINN 6, 8", fix="name a layer of the executable",
)  # fmt: skip
def _hint_layer(subject: Subject) -> Iterable[Finding]:
    for name, item, _hint, dma in _transfers(subject):
        meta = dma.meta
        if meta is None:
            yield finding(dma, "meta", name, "the hint has no meta")
        elif meta.desc in (INPUT, OUTPUT) and item.layer(meta.desc, meta.name) is None:
            layers = item.inputs if meta.desc == INPUT else item.outputs
            hint = near(meta.name or "", [layer.name or "" for layer in layers])
            what = "input" if meta.desc == INPUT else "output"
            yield finding(meta, "name", name, f"there is no {what} {meta.name!r}", hint=hint)


@BOOK.rule(
    "D052", "error", "a DMA hint is for a batch that the executable does not have", stage="F", source="DARWINN 6, 8",
    fix="batches count from 0 to batch_size - 1",
)  # fmt: skip
def _hint_batch(subject: Subject) -> Iterable[Finding]:
    for name, item, _hint, dma in _transfers(subject):
        if dma.meta and dma.meta.desc in (INPUT, OUTPUT) and not 0 <= dma.meta.batch < item.batch_size:
            yield finding(dma.meta, "batch", name, f"batch {dma.meta.batch} of {item.batch_size}")


def _range(dma: DmaDescriptorHint) -> str:
    return f"{dma.size_in_bytes} bytes at {dma.offset_in_bytes}"


def _fits(dma: DmaDescriptorHint, end: int) -> bool:
    return dma.offset_in_bytes >= 0 <= dma.size_in_bytes and dma.offset_in_bytes + dma.size_in_bytes <= end


@BOOK.rule(
    "D053", "error", "an input's DMA leaves the pages of its buffer", stage="F", source="DARWINN 6, 8",
    fix="do not run this package: compile the model again",
)  # fmt: skip
def _input_range(subject: Subject) -> Iterable[Finding]:
    for name, item, _hint, dma in _transfers(subject):
        layer = item.layer(INPUT, dma.meta.name) if dma.meta and dma.meta.desc == INPUT else None
        if layer is not None and layer.element is not None and not _fits(dma, end_of_input(layer.actual_bytes)):
            message = f"{_range(dma)} of input {layer.name!r}, which has {layer.actual_bytes} bytes"
            yield finding(dma, "size_in_bytes", name, message)


@BOOK.rule(
    "D054", "error", "a DMA leaves its output, the parameters or scratch, or there is no such buffer", stage="F",
    source="DARWINN 6, 8", fix="do not run this package: compile the model again",
)  # fmt: skip
def _buffer_range(subject: Subject) -> Iterable[Finding]:
    for name, item, _hint, dma in _transfers(subject):
        desc = dma.meta.desc if dma.meta else None
        if dma.meta is None or desc not in (OUTPUT, PARAMETER, SCRATCH):
            continue
        layer = item.layer(OUTPUT, dma.meta.name)
        if desc == OUTPUT and layer is None:
            continue  # D051
        sizes = {PARAMETER: ("parameters", item.parameter_bytes), SCRATCH: ("scratch", item.scratch_size_bytes)}
        if layer is not None:
            sizes[OUTPUT] = (f"output {layer.name!r}", layer.padded_bytes)
        what, size = sizes[desc]
        if size <= 0 and desc != OUTPUT:
            yield finding(dma, "meta", name, f"{_range(dma)} of {what}, which the executable does not have")
        elif not _fits(dma, size):
            yield finding(dma, "size_in_bytes", name, f"{_range(dma)} of {what} of {size} bytes")


@BOOK.rule(
    "D055", "error", "an instruction hint is for a chunk that the executable does not have", stage="F",
    source="DARWINN 6, 8", fix="compile the model again",
)  # fmt: skip
def _chunk_index(subject: Subject) -> Iterable[Finding]:
    for name, item, hint in _hints(subject):
        what = hint.any_hint
        if isinstance(what, InstructionHint) and not 0 <= what.instruction_chunk_index < len(item.chunks):
            message = f"chunk {what.instruction_chunk_index} of {len(item.chunks)}"
            yield finding(what, "instruction_chunk_index", name, message)


@BOOK.rule(
    "D056", "error", "a hint has no content: the driver aborts", stage="F", source="DARWINN 6, 8",
    fix="compile the model again",
)  # fmt: skip
def _no_content(subject: Subject) -> Iterable[Finding]:
    for name, _item, hint in _hints(subject):
        if hint.any_hint is None and (hint.any_hint_type == 0 or hint.any_hint_type in ANY_HINT):
            yield finding(hint, "any_hint", name, "the hint has no content")


@BOOK.rule(
    "D057", "warning", "a hint's direction contradicts what it moves; the driver ignores it", stage="W",
    source="DARWINN 6, 8", fix="INFEED for input, parameters and instructions, OUTFEED for outputs",
)  # fmt: skip
def _direction(subject: Subject) -> Iterable[Finding]:
    for name, _item, hint in _hints(subject):
        legal = {INFEED, OUTFEED}
        what = "scratch"
        if isinstance(hint.any_hint, InstructionHint):
            legal = {INFEED}
            what = "instructions"
        elif isinstance(hint.any_hint, DmaDescriptorHint) and hint.any_hint.meta is not None:
            desc = hint.any_hint.meta.desc
            legal = {OUTPUT: {OUTFEED}, INPUT: {INFEED}, PARAMETER: {INFEED}}.get(desc, legal)
            what = DESCRIPTIONS.get(desc, str(desc))
        else:
            continue
        if hint.direction not in legal:
            yield finding(hint, "direction", name, f"direction {hint.direction} for {what}")


@BOOK.rule(
    "D058", "error", "an interrupt is not 0 to 3; the driver would take it for a fence", stage="F",
    source="DARWINN 6, 8", fix="compile the model again",
)  # fmt: skip
def _interrupt(subject: Subject) -> Iterable[Finding]:
    for name, _item, hint in _hints(subject):
        if isinstance(hint.any_hint, InterruptHint) and hint.any_hint.type not in INTERRUPTS:
            yield finding(hint.any_hint, "type", name, f"interrupt {hint.any_hint.type}")


@BOOK.rule(
    "D059", "warning", "a hint is of an unknown type", stage="W", source="DARWINN 6, 8",
    fix="check with a newer buda-emu, if the compiler is newer",
)  # fmt: skip
def _unknown_hint(subject: Subject) -> Iterable[Finding]:
    for name, _item, hint in _hints(subject):
        if hint.any_hint_type and hint.any_hint_type not in ANY_HINT:
            yield finding(hint, "any_hint_type", name, f"type {hint.any_hint_type}")


@BOOK.rule(
    "D043", "warning", "a field or hint is for an unknown kind of address; the driver ignores it", stage="W",
    source="DARWINN 5, 8", fix="compile for the Edge TPU",
)  # fmt: skip
def _unknown_desc(subject: Subject) -> Iterable[Finding]:
    transfers = [(name, dma.meta) for name, _item, _hint, dma in _transfers(subject)]
    for name, meta in (*((name, field.meta) for name, _, _, field in fields(subject)), *transfers):
        if meta is not None and meta.desc not in DESCRIPTIONS:
            yield finding(meta, "desc", name, f"desc is {meta.desc}")


Range = tuple[int, int]


def _complete(subject: Subject) -> Iterator[tuple[str, Executable]]:
    """Executables whose list says that it is complete."""
    for name, item in subject.executables:
        if item.fully_deterministic and item.dma_hints is not None and item.dma_hints.hints is not None:
            yield name, item


def _moved(item: Executable, wanted: int) -> dict[tuple[str | None, int], list[Range]]:
    """Ranges that hints move of buffers of one kind, by name and batch."""
    found: dict[tuple[str | None, int], list[Range]] = defaultdict(list)
    for hint in item.hints:
        dma = hint.any_hint
        if isinstance(dma, DmaDescriptorHint) and dma.meta is not None and dma.meta.desc == wanted:
            key = (None, 0) if wanted == PARAMETER else (dma.meta.name, dma.meta.batch)
            found[key].append((dma.offset_in_bytes, dma.offset_in_bytes + max(dma.size_in_bytes, 0)))
    return found


def _gap(ranges: list[Range], size: int) -> Range | None:
    """The first bytes of 0 to size - 1 that no range has."""
    reached = 0
    for start, end in sorted(ranges):
        if reached >= size:
            break
        if start > reached:
            return reached, min(start, size)
        reached = max(reached, end)
    return (reached, size) if reached < size else None


def _overlap(ranges: list[Range]) -> Range | None:
    """The first bytes that two ranges have."""
    reached = 0
    for number, (start, end) in enumerate(sorted(item for item in ranges if item[0] < item[1])):
        if number and start < reached:
            return start, min(end, reached)
        reached = max(reached, end)
    return None


def _not_once(ranges: list[Range], size: int) -> str:
    """What is wrong with ranges that are to have every byte exactly once; "" for nothing."""
    gap = _gap(ranges, size)
    overlap = _overlap(ranges)
    if gap is not None:
        return f"bytes {gap[0]} to {gap[1] - 1} of {size} are not moved"
    return f"bytes {overlap[0]} to {overlap[1] - 1} are moved twice" if overlap is not None else ""


@BOOK.rule(
    "D060", "warning", "a complete DMA list does not move every byte of an output exactly once", stage="W",
    source="DARWINN 8", fix="bytes that are not moved keep the content of the host's buffer",
)  # fmt: skip
def _outputs(subject: Subject) -> Iterable[Finding]:
    for name, item in _complete(subject):
        moved = _moved(item, OUTPUT)
        for layer in {layer.name: layer for layer in item.outputs}.values():
            for batch in _batches(item):
                wrong = _not_once(moved.get((layer.name, batch), []), layer.padded_bytes)
                if wrong:
                    yield finding(layer, "size_bytes", f"{name}, output {layer.name!r}, batch {batch}", wrong)


@BOOK.rule(
    "D061", "warning", "a complete DMA list does not move every byte of an input", stage="W", source="DARWINN 8",
    fix="compile the model again",
)  # fmt: skip
def _inputs(subject: Subject) -> Iterable[Finding]:
    for name, item in _complete(subject):
        moved = _moved(item, INPUT)
        for layer in {layer.name: layer for layer in item.inputs}.values():
            for batch in _batches(item):
                gap = _gap(moved.get((layer.name, batch), []), layer.actual_bytes)
                if gap is not None:
                    message = f"bytes {gap[0]} to {gap[1] - 1} of {layer.actual_bytes} are not moved"
                    yield finding(layer, "size_bytes", f"{name}, input {layer.name!r}, batch {batch}", message)


_MOST_BATCHES = 1024


def _batches(item: Executable) -> range:
    """Batches that are looked at: no executable has so many that the first would not say enough."""
    return range(min(item.batch_size, _MOST_BATCHES))


@BOOK.rule(
    "D062", "warning", "a complete DMA list does not move the parameters exactly once", stage="W", source="DARWINN 8",
    fix="compile the model again",
)  # fmt: skip
def _parameters(subject: Subject) -> Iterable[Finding]:
    for name, item in _complete(subject):
        wrong = _not_once(_moved(item, PARAMETER).get((None, 0), []), item.parameter_bytes)
        if wrong:
            yield finding(item, "parameters", name, wrong)


@BOOK.rule(
    "D063", "warning", "a complete DMA list does not send every chunk of instructions once", stage="W",
    source="DARWINN 8", fix="compile the model again",
)  # fmt: skip
def _chunks(subject: Subject) -> Iterable[Finding]:
    for name, item in _complete(subject):
        sent = Counter(
            hint.any_hint.instruction_chunk_index for hint in item.hints if isinstance(hint.any_hint, InstructionHint)
        )
        wrong = [number for number in range(len(item.chunks)) if sent[number] != 1]
        if wrong:
            more = f", and so are {len(wrong) - 1} others" if len(wrong) > 1 else ""
            yield finding(item, "dma_hints", name, f"chunk {wrong[0]} is sent {sent[wrong[0]]} times{more}")


@BOOK.rule(
    "D064", "warning", "a complete DMA list does not end with an interrupt, or has not exactly one interrupt 0",
    stage="W", source="DARWINN 8", fix="the driver waits for interrupt 0 to complete the request",
)  # fmt: skip
def _interrupts(subject: Subject) -> Iterable[Finding]:
    for name, item in _complete(subject):
        zeros = sum(isinstance(hint.any_hint, InterruptHint) and hint.any_hint.type == 0 for hint in item.hints)
        if zeros != 1:
            yield finding(item, "dma_hints", name, f"{zeros} interrupts 0")
        elif not isinstance(item.hints[-1].any_hint, InterruptHint):
            yield finding(item.hints[-1], "any_hint", name, "the last hint is not an interrupt")


@BOOK.rule(
    "D065", "warning", "a fence comes first, last or after a fence, where it does nothing", stage="W",
    source="DARWINN 8", fix="leave it out",
)  # fmt: skip
def _fences(subject: Subject) -> Iterable[Finding]:
    for name, item in subject.executables:
        before = True
        for number, hint in enumerate(item.hints):
            fence = isinstance(hint.any_hint, FenceHint)
            if fence and (before or number == len(item.hints) - 1):
                yield finding(hint, "any_hint", f"{name}, hint {number}", "a fence that separates nothing")
            before = fence


def _rule_of(rule: str) -> Callable[[Subject], Iterable[Finding]]:
    def check(subject: Subject) -> Iterable[Finding]:
        for name, which, layer, problems in subject.placed:
            for found, field, message in problems:
                if found == rule:
                    yield finding(layer, field, f"{name}, {which}", message)

    return check


for _id, _severity, _stage, _summary, _fix in (
    ("D076", "error", "F", "an output has no layout, or a map that is too short", "compile the model again"),
    (
        "D077",
        "error",
        "F",
        ("an output's layout leads out of it: a tile without offset, or an element outside of size_bytes"),
        "do not run this package: compile the model again",
    ),
    ("D078", "error", "F", "an output's layout puts two elements at one place", "compile the model again"),
    (
        "D079",
        "warning",
        "W",
        "the driver's shortcuts read an output otherwise than its maps say",
        "expect wrong values from the driver: use relayout on the raw bytes",
    ),
    (
        "D080",
        "error",
        "F",
        "an output's slices are invalid, outside, incomplete or overlapping",
        "compile the model again",
    ),
):
    BOOK.declare(_id, _severity, _summary, stage=_stage, source="DARWINN 7, 8", fix=_fix)  # pyright: ignore[reportArgumentType]
    BOOK.check(_id)(_rule_of(_id))
