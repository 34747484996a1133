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


def distinct_hints(executable: Executable) -> Iterator[tuple[int, DmaHint]]:
    """Yield an executable's hints with their numbers; a table that is referred to twice comes once."""
    seen: set[int] = set()
    for number, hint in enumerate(executable.hints):
        if id(hint) not in seen:
            seen.add(id(hint))
            yield number, hint


def _hints(subject: Subject) -> Iterator[tuple[str, Executable, DmaHint]]:
    """Yield every distinct hint with the name of its place and its executable."""
    for name, executable in subject.executables:
        for number, hint in distinct_hints(executable):
            yield f"{name}, hint {number}", executable, hint


def _transfers(subject: Subject) -> Iterator[tuple[str, Executable, DmaHint, DmaDescriptorHint]]:
    """Yield every distinct hint of a transfer: the name of its place, its executable, itself and its content."""
    for name, executable, hint in _hints(subject):
        if isinstance(hint.any_hint, DmaDescriptorHint):
            yield name, executable, hint, hint.any_hint


def end_of_input(actual_bytes: int) -> int:
    """Return the bytes up to which an input DMA may go: to the end of the page with the buffer's last byte (DARWINN
    6)."""
    return -(-actual_bytes // PAGE) * PAGE


@BOOK.rule(
    "D050", "error", "an executable has no DMA hints: over USB the driver aborts", stage="F", source="DARWINN 6, 8",
    fix="compile the model again; over PCIe it would run",
)  # fmt: skip
def _no_hints(subject: Subject) -> Iterable[Finding]:
    """Refuse an executable without DMA hints (D050)."""
    for name, executable in subject.executables:
        if executable.dma_hints is None:
            yield finding(executable, "dma_hints", name, "there are no DMA hints")
        elif executable.dma_hints.hints is None:
            yield finding(executable.dma_hints, "hints", name, "the list of DMA hints is absent")


@BOOK.rule(
    "D051", "error", "a DMA hint has no meta, or is for a layer that the executable does not have", stage="F",
    source="DARWINN 6, 8", fix="name a layer of the executable",
)  # fmt: skip
def _hint_layer(subject: Subject) -> Iterable[Finding]:
    """Refuse a transfer's hint without meta, or for a layer that its executable does not have (D051)."""
    for name, executable, _hint, dma in _transfers(subject):
        meta = dma.meta
        if meta is None:
            yield finding(dma, "meta", name, "the hint has no meta")
        elif meta.desc in (INPUT, OUTPUT) and executable.layer(meta.desc, meta.name) is None:
            if meta.desc == INPUT:
                layers = executable.inputs
            else:
                layers = executable.outputs
            hint = near(meta.name or "", [layer.name or "" for layer in layers])
            kind = "input" if meta.desc == INPUT else "output"
            yield finding(meta, "name", name, f"there is no {kind} {meta.name!r}", hint=hint)


@BOOK.rule(
    "D052", "error", "a DMA hint is for a batch that the executable does not have", stage="F", source="DARWINN 6, 8",
    fix="batches count from 0 to batch_size - 1",
)  # fmt: skip
def _hint_batch(subject: Subject) -> Iterable[Finding]:
    """Refuse a hint for a batch of an input or output that its executable does not have (D052)."""
    for name, executable, _hint, dma in _transfers(subject):
        if dma.meta and dma.meta.desc in (INPUT, OUTPUT) and not 0 <= dma.meta.batch < executable.batch_size:
            yield finding(dma.meta, "batch", name, f"batch {dma.meta.batch} of {executable.batch_size}")


def _range_text(dma: DmaDescriptorHint) -> str:
    """Describe the bytes that a transfer moves, for messages."""
    return f"{dma.size_in_bytes} bytes at {dma.offset_in_bytes}"


def _fits(dma: DmaDescriptorHint, end: int) -> bool:
    """Return whether a transfer stays within the first `end` bytes of its buffer; a negative offset or size does
    not."""
    return dma.offset_in_bytes >= 0 <= dma.size_in_bytes and dma.offset_in_bytes + dma.size_in_bytes <= end


@BOOK.rule(
    "D053", "error", "an input's DMA leaves the pages of its buffer", stage="F", source="DARWINN 6, 8",
    fix="do not run this package: compile the model again",
)  # fmt: skip
def _input_range(subject: Subject) -> Iterable[Finding]:
    """Refuse a transfer that leaves the pages of its input's buffer (D053)."""
    for name, executable, _hint, dma in _transfers(subject):
        if dma.meta is None or dma.meta.desc != INPUT:
            continue
        layer = executable.layer(INPUT, dma.meta.name)
        if layer is not None and layer.element is not None and not _fits(dma, end_of_input(layer.actual_bytes)):
            message = f"{_range_text(dma)} of input {layer.name!r}, which has {layer.actual_bytes} bytes"
            yield finding(dma, "size_in_bytes", name, message)


@BOOK.rule(
    "D054", "error", "a DMA leaves its output, the parameters or scratch, or there is no such buffer", stage="F",
    source="DARWINN 6, 8", fix="do not run this package: compile the model again",
)  # fmt: skip
def _buffer_range(subject: Subject) -> Iterable[Finding]:
    """Refuse a transfer that leaves its output, the parameters or scratch, or for which there is no such buffer
    (D054)."""
    for name, executable, _hint, dma in _transfers(subject):
        desc = dma.meta.desc if dma.meta else None
        if dma.meta is None or desc not in (OUTPUT, PARAMETER, SCRATCH):
            continue
        layer = executable.layer(OUTPUT, dma.meta.name)
        if desc == OUTPUT and layer is None:
            continue  # D051
        sizes = {
            PARAMETER: ("parameters", executable.parameter_bytes),
            SCRATCH: ("scratch", executable.scratch_size_bytes),
        }
        if layer is not None:
            sizes[OUTPUT] = (f"output {layer.name!r}", layer.padded_bytes)
        buffer, size = sizes[desc]
        if size <= 0 and desc != OUTPUT:
            yield finding(dma, "meta", name, f"{_range_text(dma)} of {buffer}, which the executable does not have")
        elif not _fits(dma, size):
            yield finding(dma, "size_in_bytes", name, f"{_range_text(dma)} of {buffer} of {size} bytes")


@BOOK.rule(
    "D055", "error", "an instruction hint is for a chunk that the executable does not have", stage="F",
    source="DARWINN 6, 8", fix="compile the model again",
)  # fmt: skip
def _chunk_index(subject: Subject) -> Iterable[Finding]:
    """Refuse an instruction hint for a chunk that its executable does not have (D055)."""
    for name, executable, hint in _hints(subject):
        content = hint.any_hint
        if isinstance(content, InstructionHint) and not 0 <= content.instruction_chunk_index < len(executable.chunks):
            message = f"chunk {content.instruction_chunk_index} of {len(executable.chunks)}"
            yield finding(content, "instruction_chunk_index", name, message)


@BOOK.rule(
    "D056", "error", "a hint has no content: the driver aborts", stage="F", source="DARWINN 6, 8",
    fix="compile the model again",
)  # fmt: skip
def _no_content(subject: Subject) -> Iterable[Finding]:
    """Refuse a hint of a known type, or of type 0, without content (D056)."""
    for name, _item, hint in _hints(subject):
        if hint.any_hint is None and (hint.any_hint_type == 0 or hint.any_hint_type in ANY_HINT):
            yield finding(hint, "any_hint", name, "the hint has no content")


@BOOK.rule(
    "D057", "warning", "a hint's direction contradicts what it moves; the driver ignores it", stage="W",
    source="DARWINN 6, 8", fix="INFEED for input, parameters and instructions, OUTFEED for outputs",
)  # fmt: skip
def _direction(subject: Subject) -> Iterable[Finding]:
    """Warn of a hint whose direction contradicts what it moves (D057)."""
    for name, _item, hint in _hints(subject):
        legal = {INFEED, OUTFEED}
        content = "scratch"
        if isinstance(hint.any_hint, InstructionHint):
            legal = {INFEED}
            content = "instructions"
        elif isinstance(hint.any_hint, DmaDescriptorHint) and hint.any_hint.meta is not None:
            desc = hint.any_hint.meta.desc
            legal = {OUTPUT: {OUTFEED}, INPUT: {INFEED}, PARAMETER: {INFEED}}.get(desc, legal)
            content = DESCRIPTIONS.get(desc, str(desc))
        else:
            continue
        if hint.direction not in legal:
            yield finding(hint, "direction", name, f"direction {hint.direction} for {content}")


@BOOK.rule(
    "D058", "error", "an interrupt is not 0 to 3; the driver would take it for a fence", stage="F",
    source="DARWINN 6, 8", fix="compile the model again",
)  # fmt: skip
def _interrupt(subject: Subject) -> Iterable[Finding]:
    """Refuse a hint for an interrupt that the chip does not have (D058)."""
    for name, _item, hint in _hints(subject):
        if isinstance(hint.any_hint, InterruptHint) and hint.any_hint.type not in INTERRUPTS:
            yield finding(hint.any_hint, "type", name, f"interrupt {hint.any_hint.type}")


@BOOK.rule(
    "D059", "warning", "a hint is of an unknown type", stage="W", source="DARWINN 6, 8",
    fix="check with a newer buda-emu, if the compiler is newer",
)  # fmt: skip
def _unknown_hint(subject: Subject) -> Iterable[Finding]:
    """Warn of a hint of an unknown type (D059)."""
    for name, _item, hint in _hints(subject):
        if hint.any_hint_type and hint.any_hint_type not in ANY_HINT:
            yield finding(hint, "any_hint_type", name, f"type {hint.any_hint_type}")


@BOOK.rule(
    "D043", "warning", "a field or hint is for an unknown kind of address; the driver ignores it", stage="W",
    source="DARWINN 5, 8", fix="compile for the Edge TPU",
)  # fmt: skip
def _unknown_desc(subject: Subject) -> Iterable[Finding]:
    """Warn of a field or transfer for an unknown kind of address (D043)."""
    transfers = [(name, dma.meta) for name, _item, _hint, dma in _transfers(subject)]
    for name, meta in (*((name, field.meta) for name, _, _, field in fields(subject)), *transfers):
        if meta is not None and meta.desc not in DESCRIPTIONS:
            yield finding(meta, "desc", name, f"desc is {meta.desc}")


Range = tuple[int, int]


def _executables_with_complete_list(subject: Subject) -> Iterator[tuple[str, Executable]]:
    """Yield name and executable of each executable that marks its DMA list as complete."""
    for name, executable in subject.executables:
        if (
            executable.fully_deterministic
            and executable.dma_hints is not None
            and executable.dma_hints.hints is not None
        ):
            yield name, executable


def _moved_ranges(executable: Executable, desc: int) -> dict[tuple[str | None, int], list[Range]]:
    """Return the ranges of bytes that hints move of buffers of one kind, `desc` (such as OUTPUT), by name and
    batch; all parameters are under (None, 0). The end of a range is not part of it."""
    ranges: dict[tuple[str | None, int], list[Range]] = defaultdict(list)
    for hint in executable.hints:
        dma = hint.any_hint
        if isinstance(dma, DmaDescriptorHint) and dma.meta is not None and dma.meta.desc == desc:
            if desc == PARAMETER:
                key = (None, 0)
            else:
                key = (dma.meta.name, dma.meta.batch)
            ranges[key].append((dma.offset_in_bytes, dma.offset_in_bytes + max(dma.size_in_bytes, 0)))
    return ranges


def _first_gap(ranges: list[Range], size: int) -> Range | None:
    """Return the first bytes of 0 to size - 1 that are in no range, as start and end; None where all are in one."""
    reached = 0
    for start, end in sorted(ranges):
        if reached >= size:
            break
        if start > reached:
            return reached, min(start, size)
        reached = max(reached, end)
    if reached >= size:
        return None
    return (reached, size)


def _first_overlap(ranges: list[Range]) -> Range | None:
    """Return the first bytes that are in two ranges, as start and end; None where there are none."""
    reached = 0
    not_empty = sorted((start, end) for start, end in ranges if start < end)
    for number, (start, end) in enumerate(not_empty):
        if number and start < reached:
            return start, min(end, reached)
        reached = max(reached, end)
    return None


def _not_once(ranges: list[Range], size: int) -> str:
    """Describe the first bytes that are in no range, or else in two; "" where every byte is in exactly one."""
    gap = _first_gap(ranges, size)
    if gap is not None:
        return f"bytes {gap[0]} to {gap[1] - 1} of {size} are not moved"
    overlap = _first_overlap(ranges)
    if overlap is not None:
        return f"bytes {overlap[0]} to {overlap[1] - 1} are moved twice"
    return ""


@BOOK.rule(
    "D060", "warning", "a complete DMA list does not move every byte of an output exactly once", stage="W",
    source="DARWINN 8", fix="bytes that are not moved keep the content of the host's buffer",
)  # fmt: skip
def _outputs(subject: Subject) -> Iterable[Finding]:
    """Warn of an output of which a complete DMA list does not move every byte exactly once (D060)."""
    for name, executable in _executables_with_complete_list(subject):
        moved = _moved_ranges(executable, OUTPUT)
        for layer in {layer.name: layer for layer in executable.outputs}.values():
            for batch in _batches(executable):
                wrong = _not_once(moved.get((layer.name, batch), []), layer.padded_bytes)
                if wrong:
                    yield finding(layer, "size_bytes", f"{name}, output {layer.name!r}, batch {batch}", wrong)


@BOOK.rule(
    "D061", "warning", "a complete DMA list does not move every byte of an input", stage="W", source="DARWINN 8",
    fix="compile the model again",
)  # fmt: skip
def _inputs(subject: Subject) -> Iterable[Finding]:
    """Warn of an input of which a complete DMA list does not move every byte (D061)."""
    for name, executable in _executables_with_complete_list(subject):
        moved = _moved_ranges(executable, INPUT)
        for layer in {layer.name: layer for layer in executable.inputs}.values():
            for batch in _batches(executable):
                gap = _first_gap(moved.get((layer.name, batch), []), layer.actual_bytes)
                if gap is not None:
                    message = f"bytes {gap[0]} to {gap[1] - 1} of {layer.actual_bytes} are not moved"
                    yield finding(layer, "size_bytes", f"{name}, input {layer.name!r}, batch {batch}", message)


_MOST_BATCHES = 1024  # so that the check of a forged batch size ends; public packages have 1


def _batches(executable: Executable) -> range:
    """Return the batches that are checked: of a forged batch size the first are enough for a finding."""
    return range(min(executable.batch_size, _MOST_BATCHES))


@BOOK.rule(
    "D062", "warning", "a complete DMA list does not move the parameters exactly once", stage="W", source="DARWINN 8",
    fix="compile the model again",
)  # fmt: skip
def _parameters(subject: Subject) -> Iterable[Finding]:
    """Warn of parameters that a complete DMA list does not move exactly once (D062)."""
    for name, executable in _executables_with_complete_list(subject):
        wrong = _not_once(_moved_ranges(executable, PARAMETER).get((None, 0), []), executable.parameter_bytes)
        if wrong:
            yield finding(executable, "parameters", name, wrong)


@BOOK.rule(
    "D063", "warning", "a complete DMA list does not send every chunk of instructions once", stage="W",
    source="DARWINN 8", fix="compile the model again",
)  # fmt: skip
def _chunks(subject: Subject) -> Iterable[Finding]:
    """Warn of a complete DMA list that does not send every chunk of instructions once (D063)."""
    for name, executable in _executables_with_complete_list(subject):
        sent = Counter(
            hint.any_hint.instruction_chunk_index
            for hint in executable.hints
            if isinstance(hint.any_hint, InstructionHint)
        )
        wrong = [number for number in range(len(executable.chunks)) if sent[number] != 1]
        if wrong:
            if len(wrong) > 1:
                others = f", and so are {len(wrong) - 1} others"
            else:
                others = ""
            yield finding(executable, "dma_hints", name, f"chunk {wrong[0]} is sent {sent[wrong[0]]} times{others}")


@BOOK.rule(
    "D064", "warning", "a complete DMA list does not end with an interrupt, or has not exactly one interrupt 0",
    stage="W", source="DARWINN 8", fix="the driver waits for interrupt 0 to complete the request",
)  # fmt: skip
def _interrupts(subject: Subject) -> Iterable[Finding]:
    """Warn of a complete DMA list that does not end with an interrupt, or has not exactly one interrupt 0 (D064)."""
    for name, executable in _executables_with_complete_list(subject):
        zeros = sum(isinstance(hint.any_hint, InterruptHint) and hint.any_hint.type == 0 for hint in executable.hints)
        if zeros != 1:
            yield finding(executable, "dma_hints", name, f"{zeros} interrupts 0")
        elif not isinstance(executable.hints[-1].any_hint, InterruptHint):
            yield finding(executable.hints[-1], "any_hint", name, "the last hint is not an interrupt")


@BOOK.rule(
    "D065", "warning", "a fence comes first, last or after a fence, where it does nothing", stage="W",
    source="DARWINN 8", fix="leave it out",
)  # fmt: skip
def _fences(subject: Subject) -> Iterable[Finding]:
    """Warn of a fence that separates nothing: it comes first, last or after a fence (D065)."""
    for name, executable in subject.executables:
        before = True
        for number, hint in enumerate(executable.hints):
            fence = isinstance(hint.any_hint, FenceHint)
            if fence and (before or number == len(executable.hints) - 1):
                yield finding(hint, "any_hint", f"{name}, hint {number}", "a fence that separates nothing")
            before = fence


def _layout_check(rule: str) -> Callable[[Subject], Iterable[Finding]]:
    """Return the check of one of the rules D076 to D080, whose problems `places` finds together."""

    def check(subject: Subject) -> Iterable[Finding]:
        """Yield a finding for each problem of an output's layout that belongs to the rule."""
        for name, layer_name, layer, problems in subject.output_problems:
            for problem_rule, field, message in problems:
                if problem_rule == rule:
                    yield finding(layer, field, f"{name}, {layer_name}", message)

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
    BOOK.check(_id)(_layout_check(_id))
