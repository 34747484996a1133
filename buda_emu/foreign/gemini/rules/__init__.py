"""The rules of a schedule (facts GEMINI 4): one file for each subject, one function for each rule."""

from typing import TYPE_CHECKING, Any

from buda_emu.foreign.gemini.book import BOOK
from buda_emu.foreign.gemini.frontend import read_network
from buda_emu.foreign.gemini.index import Index
from buda_emu.foreign.gemini.rules import memory, sizes, transfers, workloads

if TYPE_CHECKING:
    from buda_emu.foreign.gemini.model import IR
    from buda_emu.support.checker import Diagnostic

__all__ = ["BOOK", "check"]

_SUBJECTS = (workloads, transfers, sizes, memory)  # imported: they fill the book


def check(ir: "IR", frontend: Any = None) -> "list[Diagnostic]":
    """Return the findings of all rules, sorted by place. `frontend` is the path or the decoded object of the network,
    which G080 to G082 need. Raises ScheduleError for a network that cannot be read."""
    if frontend is None:
        network = None
    else:
        network = read_network(frontend)
    return BOOK.run(Index(ir), network, path=ir.path)
