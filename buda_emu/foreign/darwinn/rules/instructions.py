"""Rules of the instruction chunks and of the fields that are linked into them (DARWINN 5, 8)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

from buda_emu.foreign.darwinn.idl import (
    DESCRIPTIONS,
    INPUT,
    LOWER,
    OUTPUT,
    POSITIONS,
    SCRATCH,
    UPPER,
    Executable,
    FieldOffset,
    InstructionBitstream,
)
from buda_emu.foreign.darwinn.model import BOOK
from buda_emu.foreign.darwinn.rules.subject import Subject, finding
from buda_emu.support.checker import Finding
from buda_emu.support.checker.suggest import near

BITS = 32  # of a field (DARWINN 3)
_CHUNK_UNIT = 16  # bytes; the length of every chunk in public packages is a multiple (DARWINN 3)
_USUAL_PLACE = 70  # bit of a bundle at which the fields of all public packages begin (DARWINN 3)
_BUNDLE = 128  # bits


def _chunks(subject: Subject) -> Iterator[tuple[str, Executable, InstructionBitstream]]:
    """Yield every distinct chunk with the name of its place and its executable."""
    for name, executable in subject.executables:
        seen: set[int] = set()
        for number, chunk in enumerate(executable.chunks):
            if id(chunk) not in seen:
                seen.add(id(chunk))
                yield f"{name}, chunk {number}", executable, chunk


def fields(subject: Subject) -> Iterator[tuple[str, Executable, InstructionBitstream, FieldOffset]]:
    """Yield every field of every distinct chunk, with the name of its place, its executable and its chunk."""
    for name, executable, chunk in _chunks(subject):
        for number, field in enumerate(chunk.field_offsets or ()):
            yield f"{name}, field {number}", executable, chunk, field


def inside(chunk: InstructionBitstream, field: FieldOffset) -> bool:
    """Return whether all 32 bits of a field are in its chunk."""
    return 0 <= field.offset_bit <= 8 * len(chunk.bitstream or b"") - BITS


@BOOK.rule(
    "D032", "error", "an executable has no chunk of instructions: every request fails", stage="F",
    source="DARWINN 4, 8", fix="compile the model again",
)  # fmt: skip
def _no_chunks(subject: Subject) -> Iterable[Finding]:
    """Refuse an executable without a chunk of instructions (D032)."""
    for name, executable in subject.executables:
        if not executable.chunks:
            yield finding(executable, "instruction_bitstreams", name, "there are no chunks")


@BOOK.rule(
    "D033", "error", "a chunk of instructions is empty: every request fails", stage="F", source="DARWINN 4, 8",
    fix="compile the model again",
)  # fmt: skip
def _empty_chunk(subject: Subject) -> Iterable[Finding]:
    """Refuse an empty chunk of instructions (D033)."""
    for name, _item, chunk in _chunks(subject):
        if not chunk.bitstream:
            yield finding(chunk, "bitstream", name, "the chunk is empty")


@BOOK.rule(
    "D034", "warning", f"a chunk's length is not a multiple of {_CHUNK_UNIT} bytes", stage="W", source="DARWINN 3, 8",
    fix="compile the model again; the chunk may be cut",
)  # fmt: skip
def _odd_chunk(subject: Subject) -> Iterable[Finding]:
    """Warn of a chunk whose length is not a multiple of 16 bytes (D034)."""
    for name, _item, chunk in _chunks(subject):
        if len(chunk.bitstream or b"") % _CHUNK_UNIT:
            yield finding(chunk, "bitstream", name, f"{len(chunk.bitstream or b'')} bytes")


@BOOK.rule(
    "D035", "error", "a field lies outside of its chunk: the driver would write where it must not", stage="F",
    source="DARWINN 5, 8", fix="do not run this package: compile the model again",
)  # fmt: skip
def _outside(subject: Subject) -> Iterable[Finding]:
    """Refuse a field that lies outside of its chunk (D035)."""
    for name, _item, chunk, field in fields(subject):
        if not inside(chunk, field):
            message = f"bits {field.offset_bit} to {field.offset_bit + BITS - 1} of {8 * len(chunk.bitstream or b'')}"
            yield finding(field, "offset_bit", name, message)


@BOOK.rule(
    "D036", "warning", "the bits of a field are not 0 before linking", stage="W", source="DARWINN 3, 8",
    fix="the package may have been linked already: take the original",
)  # fmt: skip
def _bits_set(subject: Subject) -> Iterable[Finding]:
    """Warn of a field whose bits are not 0 before linking (D036)."""
    for name, _item, chunk, field in fields(subject):
        if inside(chunk, field):
            first, shift = divmod(field.offset_bit, 8)
            window = int.from_bytes((chunk.bitstream or b"")[first : first + 5], "little")
            bits = window >> shift & (1 << BITS) - 1
            if bits:
                yield finding(field, "offset_bit", name, f"the bits hold {bits:#x}")


@BOOK.rule(
    "D037", "note", f"a field is not at bit {_USUAL_PLACE} of {_BUNDLE}, where all known ones are", stage="N",
    source="DARWINN 3, 8", fix="nothing, if it comes from a new compiler",
)  # fmt: skip
def _unusual_place(subject: Subject) -> Iterable[Finding]:
    """Note a field that is not at the bit of a bundle at which all public packages have theirs (D037)."""
    for name, _item, chunk, field in fields(subject):
        if inside(chunk, field) and field.offset_bit % _BUNDLE != _USUAL_PLACE:
            yield finding(
                field, "offset_bit", name, f"bit {field.offset_bit} is {field.offset_bit % _BUNDLE} mod {_BUNDLE}"
            )


@BOOK.rule(
    "D038", "error", "a field is for an input or output that the executable does not have", stage="F",
    source="DARWINN 5, 8", fix="name a layer of the executable",
)  # fmt: skip
def _unknown_layer(subject: Subject) -> Iterable[Finding]:
    """Refuse a field for an input or output that its executable does not have (D038)."""
    for name, executable, _chunk, field in fields(subject):
        meta = field.meta
        if (
            meta
            and meta.desc in (INPUT, OUTPUT)
            and meta.name is not None
            and not executable.layer(meta.desc, meta.name)
        ):
            if meta.desc == INPUT:
                layers = executable.inputs
            else:
                layers = executable.outputs
            hint = near(meta.name, [layer.name or "" for layer in layers])
            kind = "input" if meta.desc == INPUT else "output"
            yield finding(meta, "name", name, f"there is no {kind} {meta.name!r}", hint=hint)


@BOOK.rule(
    "D039", "error", "a field is for a batch that the executable does not have", stage="F", source="DARWINN 5, 8",
    fix="batches count from 0 to batch_size - 1; scratch has batch 0 only",
)  # fmt: skip
def _field_batch(subject: Subject) -> Iterable[Finding]:
    """Refuse a field for a batch that its executable does not have; scratch has batch 0 only (D039)."""
    for name, executable, _chunk, field in fields(subject):
        meta = field.meta
        if meta and meta.desc in (INPUT, OUTPUT) and not 0 <= meta.batch < executable.batch_size:
            yield finding(meta, "batch", name, f"batch {meta.batch} of {executable.batch_size}")
        if meta and meta.desc == SCRATCH and meta.batch:
            yield finding(meta, "batch", name, f"batch {meta.batch} of scratch")


@BOOK.rule(
    "D040", "error", "the purpose of a field is missing: no meta, or an input or output without a name", stage="F",
    source="DARWINN 5, 8", fix="compile the model again",
)  # fmt: skip
def _no_meta(subject: Subject) -> Iterable[Finding]:
    """Refuse a field whose purpose is missing: without meta, or for an input or output without a name (D040)."""
    for name, _item, chunk, field in fields(subject):
        if field.meta is None:
            yield finding(field, "meta", name, "the field has no meta", about=id(chunk))
        elif field.meta.desc in (INPUT, OUTPUT) and field.meta.name is None:
            message = f"{DESCRIPTIONS[field.meta.desc]} without a name"
            yield finding(field.meta, "name", name, message, about=id(chunk))


@BOOK.rule(
    "D041", "warning", "a base address has not as many lower as upper halves in a chunk", stage="W",
    unless=("D040", "D042"), source="DARWINN 3, 8", fix="compile the model again",
)  # fmt: skip
def _halves(subject: Subject) -> Iterable[Finding]:
    """Warn of a chunk of instructions in which a base address has more lower than upper halves to fill in, or fewer
    (D041)."""
    for name, _item, chunk in _chunks(subject):
        counts: dict[tuple[int, str | None, int], list[int]] = defaultdict(lambda: [0, 0])
        for field in chunk.field_offsets or ():
            if field.meta is not None and field.meta.position in POSITIONS:
                counts[field.meta.desc, field.meta.name, field.meta.batch][field.meta.position] += 1
        for (desc, layer, batch), halves in counts.items():
            if halves[LOWER] != halves[UPPER]:
                buffer = f"{DESCRIPTIONS.get(desc, desc)} {layer or ''}".rstrip()
                message = f"{buffer}, batch {batch}: {halves[LOWER]} lower and {halves[UPPER]} upper halves"
                yield finding(chunk, "field_offsets", name, message, about=id(chunk))


@BOOK.rule(
    "D042", "error", "a field's position is neither LOWER_32BIT nor UPPER_32BIT", stage="F", source="DARWINN 5, 8",
    fix="compile the model again",
)  # fmt: skip
def _position(subject: Subject) -> Iterable[Finding]:
    """Refuse a field whose position is neither the lower nor the upper half of an address (D042)."""
    for name, _item, chunk, field in fields(subject):
        if field.meta is not None and field.meta.desc in DESCRIPTIONS and field.meta.position not in POSITIONS:
            yield finding(field.meta, "position", name, f"the position is {field.meta.position}", about=id(chunk))


@BOOK.rule(
    "D044", "error", "two fields of a chunk share bits", stage="F", source="DARWINN 5, 8",
    fix="compile the model again",
)  # fmt: skip
def _overlap(subject: Subject) -> Iterable[Finding]:
    """Refuse two fields of a chunk that share bits (D044)."""
    for name, _item, chunk in _chunks(subject):
        for first, second in pairwise(sorted(chunk.field_offsets or (), key=lambda field: field.offset_bit)):
            if second.offset_bit - first.offset_bit < BITS:
                message = f"fields at bits {first.offset_bit} and {second.offset_bit} overlap"
                yield finding(second, "offset_bit", name, message)
