"""Rules on data movements."""

from collections.abc import Iterator
from typing import Final

from buda_emu.foreign.vpux.model import Op, Type
from buda_emu.foreign.vpux.program import Program
from buda_emu.foreign.vpux.reader.table import OPS
from buda_emu.foreign.vpux.rules.book import BOOK, finding
from buda_emu.support.checker import Finding

MOST_BYTES: Final = 16_777_215
MOST_INDICES: Final = 65_536
_UNLIMITED: Final = ("VPUIP.Copy", "VPUIP.CompressDMAOp", "VPUIP.DecompressDMAOp", "VPUIP.GatherDMA")
_LIMITED_BY_DESCRIPTOR: Final = ("VPUIP.ExpandDMA", "VPUIP.UpsamplingDMAOp")


def transfers(program: Program) -> Iterator[Op]:
    """Yield every op that moves data."""
    return (op for op in program.ops if op.known and OPS[op.name].role == "dma")


def operand_type(op: Op, clause: str) -> Type | None:
    """Return the type of the first operand of a clause, None where there is none."""
    uses = op.clause(clause)
    return uses[0].type if uses else None


@BOOK.rule(
    "X003", "error", "a DMA moves more than 16 777 215 bytes", stage="public", source="VPUX 7",
    fix="split the transfer",
)  # fmt: skip
def check_size(program: Program) -> Iterator[Finding]:
    """Check the compact bytes of the input."""
    for op in transfers(program):
        if op.name in _UNLIMITED or (op.name in _LIMITED_BY_DESCRIPTOR and "dma_descriptor" not in op.attributes):
            continue
        of = operand_type(op, "inputs")
        if of is not None and of.kind == "memref" and of.is_laid_out and of.compact_bytes > MOST_BYTES:
            yield finding(program, op, f"{of.compact_bytes} bytes are more than {MOST_BYTES}")


@BOOK.rule(
    "X024", "error", "an NNDMA reads and writes different numbers of bytes", stage="emulator", source="VPUX 7",
    fix="give input and output shapes of the same size",
)  # fmt: skip
def check_equal_sizes(program: Program) -> Iterator[Finding]:
    """Check plain memrefs only."""
    for op in program.ops_of("VPUIP.NNDMA", "VPUIP.DMA"):
        source = operand_type(op, "inputs")
        target = operand_type(op, "outputs")
        if source is None or target is None or source.kind != "memref" or target.kind != "memref":
            continue
        if source.is_laid_out and target.is_laid_out and source.compact_bytes != target.compact_bytes:
            yield finding(program, op, f"reads {source.compact_bytes} bytes and writes {target.compact_bytes}")


@BOOK.rule(
    "X025", "error", "a ConvertDMA converts anything but f32 to f16 or bf16", stage="public", source="VPUX 7",
    fix="use the kernel `convert`",
)  # fmt: skip
def check_conversion(program: Program) -> Iterator[Finding]:
    for op in program.ops_of("VPUIP.ConvertDMA"):
        source = operand_type(op, "inputs")
        target = operand_type(op, "outputs")
        if source is None or target is None:
            continue
        if source.element_name != "f32" or target.element_name not in ("f16", "bf16"):
            yield finding(program, op, f"cannot convert {source.element_name} to {target.element_name}")


@BOOK.rule(
    "X026", "error", "a SyncDMA moves data", stage="public", source="VPUX 7",
    fix="give it operands without elements, or use an NNDMA",
)  # fmt: skip
def check_sync(program: Program) -> Iterator[Finding]:
    for op in program.ops_of("VPUIP.SyncDMA"):
        types = [type_ for type_ in (operand_type(op, "inputs"), operand_type(op, "outputs")) if type_ is not None]
        if any(type_.is_buffer and type_.count != 0 for type_ in types):
            yield finding(program, op, "its operands have elements")


@BOOK.rule(
    "X027", "error", "indices of a GatherDMA are not in CMX, or more than 65 536", stage="public", source="VPUX 7",
    fix="bring the indices to CMX, split the transfer",
)  # fmt: skip
def check_gather_indices(program: Program) -> Iterator[Finding]:
    for op in program.ops_of("VPUIP.GatherDMA"):
        of = operand_type(op, "indices")
        if of is None or not of.is_buffer:
            continue
        if of.space != "CMX_NN":
            yield finding(program, op, f"indices lie in {of.space or 'no named memory'}, not in CMX_NN")
        elif of.count > MOST_INDICES:
            yield finding(program, op, f"{of.count} indices are more than {MOST_INDICES}")


@BOOK.rule("X038", "error", "a DMA port does not exist", stage="emulator", source="VPUX 7", fix="ports are 0 and 1")
def check_port(program: Program) -> Iterator[Finding]:
    for op in transfers(program):
        number = op.integer("port", 0)
        if not 0 <= number < program.arch.ports:
            yield finding(program, op, f"port {number} does not exist")
