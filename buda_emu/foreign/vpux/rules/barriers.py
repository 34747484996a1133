"""Rules on tasks and barriers."""

from collections.abc import Iterator

from buda_emu.foreign.vpux.program import Program
from buda_emu.foreign.vpux.rules.book import BOOK, finding
from buda_emu.support.checker import Finding
from buda_emu.support.checker.text import plural


@BOOK.rule(
    "X023", "error", "a task holds not exactly one op", stage="public", source="VPUX 7",
    fix="one task for each op",
)  # fmt: skip
def check_one_op(program: Program) -> Iterator[Finding]:
    for op in program.ops_of("VPURT.Task"):
        if len(op.body) != 1:
            yield finding(program, op, f"holds {plural(len(op.body), 'op')}")


@BOOK.rule(
    "X028", "error", "a physical barrier's number does not exist", stage="public", source="VPUX 7",
    fix="37XX has barriers 0 to 63, 40XX 0 to 95",
)  # fmt: skip
def check_barrier_number(program: Program) -> Iterator[Finding]:
    count = program.arch.barriers
    for barrier in program.barriers:
        if barrier.number is not None and not 0 <= barrier.number < count:
            yield finding(program, barrier.op, f"barrier {barrier.number}: {program.arch.name} has 0 to {count - 1}")


@BOOK.rule(
    "X029", "error", "physical and virtual barriers in one function", stage="public", source="VPUX 7",
    fix="give all of them numbers, or none",
)  # fmt: skip
def check_one_kind(program: Program) -> Iterator[Finding]:
    """Report the first barrier of the second kind."""
    kinds = [barrier.number is None for barrier in program.barriers]
    if len(set(kinds)) == 2:
        other = program.barriers[kinds.index(not kinds[0])]
        yield finding(program, other.op, f"{other.name} is of another kind than the barriers before it")


@BOOK.rule(
    "X030", "error", "a physical barrier has more producers or consumers than slots", stage="public",
    source="VPUX 4, 7", fix="split the barrier in two",
)  # fmt: skip
def check_slots(program: Program) -> Iterator[Finding]:
    """Check physical barriers of functions without DPU tasks, whose slots are counted by variants."""
    if any(op.name.startswith("VPUIP.NCECluster") for op in program.ops):
        return
    arch = program.arch
    for barrier in program.barriers:
        if barrier.number is None:
            continue
        producers = len(barrier.producers)
        consumers = len(barrier.consumers)
        for count, limit, role in (
            (producers, arch.producers, "producers"),
            (consumers, arch.consumers, "consumers"),
            (producers + consumers, arch.slots, "producers and consumers"),
        ):
            if count > limit:
                yield finding(program, barrier.op, f"{barrier.name} has {count} {role}, {arch.name} allows {limit}")
                break


@BOOK.rule(
    "X031", "error", "a final barrier is waited for", stage="public", source="VPUX 7",
    fix="nothing runs after the final barrier",
)  # fmt: skip
def check_final(program: Program) -> Iterator[Finding]:
    for barrier in program.barriers:
        if barrier.is_final and barrier.consumers:
            yield finding(
                program, barrier.op, f"{barrier.name} is final, and {len(barrier.consumers)} tasks wait for it"
            )
