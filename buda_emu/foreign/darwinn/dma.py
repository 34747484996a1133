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
"""Before each transfer to the device over USB: length and tag."""
TO_HOST: Final = ("output", "scratch_out")


class Descriptor(NamedTuple):
    """One DMA. `name`: of the layer, or the number of the chunk; `batch`: of layers only."""

    kind: str
    name: str | int | None
    batch: int | None
    offset: int
    size: int

    @property
    def moves(self) -> bool:
        """Whether it moves bytes: neither an interrupt nor a fence."""
        return self.kind in TO_HOST or self.kind in ("instructions", "input", "parameters", "scratch_in")


def descriptors(executable: Executable, transport: Transport = "usb", overlap: bool = True) -> list[Descriptor]:
    """The driver's list of DMAs for one run, in order.

    `pcie`: the instruction chunks only; the device fetches the rest by itself. `overlap`: requests may overlap; else
    a global fence ends each. Raises PackageError where the driver would abort: no hints, a hint without content, of an
    unknown layer, chunk or interrupt.
    """
    if transport not in TRANSPORTS:
        raise HostError(f"transport {transport!r} is not one of {', '.join(TRANSPORTS)}")
    found: list[Descriptor] = []
    fenced = not overlap
    if transport == "pcie":
        for number, chunk in enumerate(executable.chunks):
            found.append(
                Descriptor(kind="instructions", name=number, batch=None, offset=0, size=len(chunk.bitstream or b""))
            )
    else:
        if executable.dma_hints is None or executable.dma_hints.hints is None:
            raise PackageError("the executable has no DMA hints (D050); over PCIe it would run")
        fenced = fenced or not executable.fully_deterministic
        for number, hint in enumerate(executable.hints):
            item = _descriptor(executable, hint, number)
            if item is not None:
                found.append(item)
    if fenced:
        found.append(Descriptor(kind=GLOBAL_FENCE, name=None, batch=None, offset=0, size=0))
    return found


def _descriptor(executable: Executable, hint: DmaHint, number: int) -> Descriptor | None:
    """What a hint asks for; None for one of an unknown type or for an unknown address, which the driver ignores."""
    what = hint.any_hint
    if isinstance(what, DmaDescriptorHint):
        return _transfer(executable, hint, what, number)
    if isinstance(what, InstructionHint):
        index = what.instruction_chunk_index
        if not 0 <= index < len(executable.chunks):
            raise PackageError(f"hint {number} is for chunk {index} of {len(executable.chunks)} (D055)")
        return Descriptor(
            kind="instructions", name=index, batch=None, offset=0, size=len(executable.chunks[index].bitstream or b"")
        )
    if isinstance(what, InterruptHint):
        if what.type not in INTERRUPTS:
            raise PackageError(f"hint {number} is for interrupt {what.type} of {len(INTERRUPTS)} (D058)")
        return Descriptor(kind=f"interrupt_{what.type}", name=None, batch=None, offset=0, size=0)
    if isinstance(what, FenceHint):
        return Descriptor(kind=LOCAL_FENCE, name=None, batch=None, offset=0, size=0)
    if hint.any_hint_type in (0, 1, 2, 3, 4):
        raise PackageError(f"hint {number} has no content (D056)")
    return None


def _transfer(executable: Executable, hint: DmaHint, what: DmaDescriptorHint, number: int) -> Descriptor | None:
    meta = what.meta
    offset = what.offset_in_bytes
    size = what.size_in_bytes
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
