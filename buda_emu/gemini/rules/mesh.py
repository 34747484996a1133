"""Cores, their places and their workloads' ids: G004, G005; and what dialect B leaves unchecked: G090."""

from collections.abc import Iterator

from buda_emu.checker import Finding
from buda_emu.gemini.book import BOOK
from buda_emu.gemini.frontend import Network
from buda_emu.gemini.index import Index


@BOOK.rule(
    "G004", "error", "a core is not on the mesh or not in the file, or a DRAM destination has another core id "
    "than DRAM's",
    why="Core n of dialect A stands at x = n mod xlen, y = n div xlen; core keys of dialect B are y*(xlen+2) + x + 1, "
    "with a column of DRAM at each side. DRAM is core -1 in dialect A and 0 in dialect B.",
    source="GEMINI 2, 3", fix="name a core that the file has",
)  # fmt: skip
def cores(index: Index, _: Network | None) -> Iterator[Finding]:
    """Core keys and destinations."""
    ir = index.ir
    mesh = f"the mesh of {ir.xlen} x {ir.ylen}"
    for core in ir.cores:
        if not ir.on_mesh(core):
            yield Finding(str(core), f"core {core} is not on {mesh}")
    dram, key = ir.form.dram, ir.form.core_key
    for number, _maker, to in index.destinations():
        if to.type == "DRAM" and to.core_id != dram:
            yield Finding(f"{to.place}/{key}", f"transfer {number} goes to DRAM as core {to.core_id}, which is {dram}")
        elif to.type == "core" and to.core_id not in ir.cores:
            where = "is not in the file" if ir.on_mesh(to.core_id) else f"is not on {mesh}"
            yield Finding(f"{to.place}/{key}", f"transfer {number} goes to core {to.core_id}, which {where}")


@BOOK.rule(
    "G005", "error", "workload ids of a core do not ascend, or an id is on two cores",
    why="Workloads are named by core and id; in dialect B by the id alone, which is also their order over all cores.",
    source="GEMINI 2.2, 3", fix="number the workloads in the order in which they run",
)  # fmt: skip
def ascending(index: Index, _: Network | None) -> Iterator[Finding]:
    """Along each core, and over all cores (B)."""
    seen: dict[int, int] = {}
    for core, works in index.ir.cores.items():
        before: int | None = None
        for work in works:
            if before is not None and work.workload_id <= before:
                yield Finding(f"{work.place}/workload_id", f"workload {work.workload_id} comes after {before}")
            elif index.ir.form.global_ids and seen.get(work.workload_id, core) != core:
                other = seen[work.workload_id]
                yield Finding(f"{work.place}/workload_id", f"core {other} has a workload {work.workload_id}, too")
            before = work.workload_id
            seen.setdefault(before, core)


@BOOK.rule(
    "G090", "note", "the schedule has no addresses, so rules of L2 are not checked",
    why="Dialect B says neither where tensors lie nor how long they live. What rules G040 to G054 would find is not "
    "checkable there; `buda-emu gemini alloc` makes a schedule with addresses.",
    source="GEMINI 3",
)  # fmt: skip
def no_addresses(index: Index, _: Network | None) -> Iterator[Finding]:
    """Said once."""
    if not index.ir.form.addressed:
        yield Finding("", "not checkable: no addresses (G040 to G054)")
