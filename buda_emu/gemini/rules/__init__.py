"""The rules of a schedule (facts GEMINI 4): one file for each subject, one function for each rule."""

from typing import TYPE_CHECKING, Any

from buda_emu.gemini.book import BOOK
from buda_emu.gemini.frontend import read_network
from buda_emu.gemini.index import Index
from buda_emu.gemini.rules import l2, mesh, network, residence, sizes, transfers, weights, workloads

if TYPE_CHECKING:
    from buda_emu.checker import Diagnostic
    from buda_emu.gemini.model import IR

__all__ = ["BOOK", "check"]

_SUBJECTS = (mesh, transfers, sizes, workloads, l2, residence, weights, network)  # imported: they fill the book


def check(ir: "IR", frontend: Any = None) -> "list[Diagnostic]":
    """Every finding, sorted by place. `frontend`: path or decoded object of the network, for G080 to G082."""
    known = None if frontend is None else read_network(frontend)
    return BOOK.run(Index(ir), known, path=ir.path)
