"""Rules that only a run can find broken; declared here so that `explain` and the docs know them."""

from buda_emu.foreign.vpux.rules.book import BOOK

BOOK.declare(
    "X040", "error", "tasks wait for each other for ever, or for something that no task provides",
    stage="run", source="VPUX 4, 7",
    fix="see which task would give what the first one waits for, and what holds that one",
)  # fmt: skip
BOOK.declare(
    "X041", "warning", "two tasks that nothing orders touch the same byte, and one writes", stage="run",
    source="VPUX 4, 7", fix="let the later one wait for a barrier that the earlier one updates",
)  # fmt: skip
BOOK.declare(
    "X042", "warning", "a task reads bytes that nothing wrote", stage="run", source="VPUX 4, 7",
    fix="write them first; memory holds zeros here, and anything on hardware",
)  # fmt: skip
BOOK.declare(
    "X045", "error", "an actual shape is larger than its bound", stage="run", source="VPUX 2, 7",
    fix="give dimensions within those of the buffer's type, innermost first",
)  # fmt: skip
BOOK.declare(
    "X046", "error", "a kernel's attributes or operands are impossible", stage="run", source="VPUX 5, 7",
    fix="see the kernel's attributes in docs/other-compilers/vpux-kernels.md",
)  # fmt: skip
