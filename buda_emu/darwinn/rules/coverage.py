"""Rules of a whole DMA list: what a list that says it is complete must move (DARWINN 8)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from buda_emu.checker import Finding
from buda_emu.darwinn.book import BOOK
from buda_emu.darwinn.idl import (
    INPUT,
    OUTPUT,
    PARAMETER,
    DmaDescriptorHint,
    Executable,
    FenceHint,
    InstructionHint,
    InterruptHint,
)
from buda_emu.darwinn.rules.subject import Subject, finding

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
    gap, overlap = _gap(ranges, size), _overlap(ranges)
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
