"""The DMAs that the driver asks of the host for a request (DARWINN 6)."""

from typing import Final, Literal, NamedTuple

from buda_emu.foreign.darwinn.idl import (
    INFEED,
    INPUT,
    INTERRUPTS,
    OUTPUT,
    PARAMETER,
    SCRATCH,
    DmaDescriptorHint,
    DmaHint,
    Executable,
    FenceHint,
    InstructionHint,
    InterruptHint,
)
from buda_emu.support.errors import HostError, PackageError

Transport = Literal["usb", "pcie"]
TRANSPORTS: Final = ("usb", "pcie")
LOCAL_FENCE: Final = "local_fence"
GLOBAL_FENCE: Final = "global_fence"
HEADER_BYTES: Final = 8
"""Bytes before each transfer to the device over USB: length and tag."""
TO_HOST: Final = ("output", "scratch_out")


class Descriptor(NamedTuple):
    """One DMA. `name` is the layer's name or the chunk's number; `batch` is set for layers only. Offsets and sizes are
    in bytes."""

    kind: str
    name: str | int | None
    batch: int | None
    offset: int
    size: int

    @property
    def moves(self) -> bool:
        """Return whether the DMA moves bytes, that is, whether it is neither an interrupt nor a fence."""
        return self.kind in TO_HOST or self.kind in ("instructions", "input", "parameters", "scratch_in")


def _hinted_descriptors(executable: Executable) -> list[Descriptor]:
    """List the DMAs of the executable's hints. Raises PackageError where there are none."""
    if executable.dma_hints is None or executable.dma_hints.hints is None:
        raise PackageError("the executable has no DMA hints (D050); over PCIe it would run")
    dmas = [_descriptor(executable, hint, number) for number, hint in enumerate(executable.hints)]
    return [dma for dma in dmas if dma is not None]


def descriptors(executable: Executable, transport: Transport = "usb", overlap: bool = True) -> list[Descriptor]:
    """List the DMAs that the driver asks for in one run of an executable, in order (DARWINN 6).

    Over `pcie` these are the instruction chunks only; the device fetches the rest by itself. Unless requests may
    `overlap`, a global fence ends the list. Raises HostError for an unknown transport, and PackageError where the
    driver would abort: no hints, a hint without content, or one for an unknown layer, chunk or interrupt.
    """
    if transport not in TRANSPORTS:
        raise HostError(f"transport {transport!r} is not one of {', '.join(TRANSPORTS)}")
    fenced = not overlap
    if transport == "pcie":
        dmas = [
            Descriptor(kind="instructions", name=number, batch=None, offset=0, size=len(chunk.bitstream or b""))
            for number, chunk in enumerate(executable.chunks)
        ]
    else:
        dmas = _hinted_descriptors(executable)
        fenced = fenced or not executable.fully_deterministic
    if fenced:
        dmas.append(Descriptor(kind=GLOBAL_FENCE, name=None, batch=None, offset=0, size=0))
    return dmas


def _descriptor(executable: Executable, hint: DmaHint, number: int) -> Descriptor | None:
    """Return the DMA that a hint asks for; None for a hint of an unknown type or for an unknown address, which the
    driver ignores. `number` is the hint's place in the list. Raises PackageError where the driver would abort."""
    content = hint.any_hint
    if isinstance(content, DmaDescriptorHint):
        return _transfer(executable, hint, content, number)
    if isinstance(content, InstructionHint):
        index = content.instruction_chunk_index
        if not 0 <= index < len(executable.chunks):
            raise PackageError(f"hint {number} is for chunk {index} of {len(executable.chunks)} (D055)")
        return Descriptor(
            kind="instructions", name=index, batch=None, offset=0, size=len(executable.chunks[index].bitstream or b"")
        )
    if isinstance(content, InterruptHint):
        if content.type not in INTERRUPTS:
            raise PackageError(f"hint {number} is for interrupt {content.type} of {len(INTERRUPTS)} (D058)")
        return Descriptor(kind=f"interrupt_{content.type}", name=None, batch=None, offset=0, size=0)
    if isinstance(content, FenceHint):
        return Descriptor(kind=LOCAL_FENCE, name=None, batch=None, offset=0, size=0)
    if hint.any_hint_type in (0, 1, 2, 3, 4):
        raise PackageError(f"hint {number} has no content (D056)")
    return None


def _transfer(executable: Executable, hint: DmaHint, dma: DmaDescriptorHint, number: int) -> Descriptor | None:
    """Return the DMA of a hint that moves a layer, parameters or scratch; None for an unknown address. `number` is
    the hint's place in the list. Raises PackageError for a hint without meta or for a layer that the executable
    does not have."""
    meta = dma.meta
    offset = dma.offset_in_bytes
    size = dma.size_in_bytes
    if meta is None:
        raise PackageError(f"hint {number} has no meta (D051)")
    if meta.desc in (INPUT, OUTPUT):
        if executable.layer(meta.desc, meta.name) is None:
            raise PackageError(f"hint {number} is for a layer {meta.name!r} that is not there (D051)")
        return Descriptor(
            kind="input" if meta.desc == INPUT else "output", name=meta.name, batch=meta.batch, offset=offset, size=size
        )
    if meta.desc == PARAMETER:
        return Descriptor(kind="parameters", name=None, batch=None, offset=offset, size=size)
    if meta.desc == SCRATCH:
        return Descriptor(
            kind="scratch_in" if hint.direction == INFEED else "scratch_out",
            name=None,
            batch=None,
            offset=offset,
            size=size,
        )
    return None
