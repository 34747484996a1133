"""L2 allocation: a schedule without addresses (dialect B) becomes one with addresses (dialect A) (facts GEMINI 7):
which tensors a core holds and how long, where they lie, and the schedule that says so.
"""

from buda_emu.checker.render import render
from buda_emu.errors import HostError, ProgramError, ScheduleError
from buda_emu.gemini.allocation.place import place
from buda_emu.gemini.allocation.tensors import Resident, residents
from buda_emu.gemini.allocation.write import write
from buda_emu.gemini.document import Document, load
from buda_emu.gemini.index import Index
from buda_emu.gemini.model import IR
from buda_emu.gemini.rules import check

__all__ = ["allocate", "peak"]


def peak(ir: IR) -> tuple[int, int, int]:
    """(bytes, core id of dialect A, workload_id) of the fullest snapshot: what a buffer must hold at least.

    Raises UnsupportedError for weights that are activations, ScheduleError for a schedule that breaks rules, HostError
    for one that has addresses.
    """
    return _fullest(ir, _residents(ir))


def allocate(ir: IR, buffersize: int) -> Document:
    """A schedule of dialect A with every tensor at an address of an L2 of so many bytes.

    Raises ProgramError naming core and workload where there is no room, else as `peak`.
    """
    if isinstance(buffersize, bool) or not isinstance(buffersize, int) or not 0 < buffersize < 1 << 62:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise HostError(f"a buffer has 1 byte or more, not {buffersize!r}")
    found = _residents(ir)
    size, core, workload = _fullest(ir, found)
    if size > buffersize:
        raise ProgramError(
            f"a buffer of {buffersize} bytes is too small: core {core} needs {size} for workload {workload}",
            kind="allocation",
        )
    placed = {core: place(ir, core, items, buffersize) for core, items in found.items()}
    return load(write(ir, Index(ir), placed, buffersize))


def _residents(ir: IR) -> dict[int, list[Resident]]:
    if ir.form.addressed:
        raise HostError("the schedule has addresses: there is nothing to allocate")
    errors = [item for item in check(ir) if item.severity == "error"]
    if errors:
        raise ScheduleError(f"a schedule that breaks rules is not allocated\n{render(errors)}", errors)
    return residents(ir, Index(ir))


def _fullest(ir: IR, found: dict[int, list[Resident]]) -> tuple[int, int, int]:
    best = (0, 0, 0)
    for core, works in ir.cores.items():
        held = [0] * len(works)
        for item in found[core]:
            for at in range(item.first, item.last + 1):
                held[at] += item.room
        for at, size in enumerate(held):
            if size > best[0]:
                x, y = ir.position(core)
                best = (size, y * ir.xlen + x, works[at].workload_id)
    return best
