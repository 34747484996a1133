"""Rules of single DMA hints (DARWINN 6, 8)."""

from collections.abc import Iterable, Iterator

from buda_emu.checker import Finding
from buda_emu.checker.suggest import near
from buda_emu.darwinn.book import BOOK
from buda_emu.darwinn.idl import (
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
    InstructionHint,
    InterruptHint,
)
from buda_emu.darwinn.rules.instructions import fields
from buda_emu.darwinn.rules.subject import Subject, finding


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
            legal, what = {INFEED}, "instructions"
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
