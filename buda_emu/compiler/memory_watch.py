"""How much memory a compilation takes: estimated before its passes, and watched while they run (docs/run/memory.md).

What counts is the memory of the process, pages of files left out: parameters by reference (`tensor/referenced.py`) are
such, and are made some rows of tiles at a time.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from typing import Any, Final

from numpy.lib.array_utils import byte_bounds

from buda_emu.compiler.graph.graph import Graph
from buda_emu.compiler.graph.own_memory import in_memory
from buda_emu.device.host_memory import default_memory_limit, resident_memory, size_text
from buda_emu.errors import UnsupportedError
from buda_emu.tensor.referenced import Referenced, asking

READ: Final = 3
"""Copies of a file that has its parameters in it: its bytes, what the importer's library makes of them, arrays."""
REWRITTEN: Final = 1 / 4
"""Share of parameters in memory that passes make once more, beside the copy of each: 0.15 were measured."""
BESIDE: Final = 128 << 20
"""Bytes of all else: the compiler's own code, rows of tiles on their way into the image."""
ON_THE_WAY: Final = 512 << 20
"""Bytes of parameters in files that are in memory at a time, however many there are: 0.3 GiB were measured."""
OF_A_NODE: Final = 256 << 10
"""Bytes that an operator takes as ops, candidates, pipes and timing."""
NAMED: Final = 3
"""Parameters that a refusal names."""


@dataclass(frozen=True, slots=True)
class MemoryWatch:
    """`limit`: bytes of the process; `given` by the caller, not a share of what there is."""

    limit: int
    given: bool = False

    @staticmethod
    def of(limit: int | None) -> "MemoryWatch":
        """None: what the process has, and three quarters of what is available now."""
        return MemoryWatch(limit or resident_memory() + default_memory_limit(), limit is not None)

    @contextmanager
    def reading(self, source: Any = None) -> Generator[None]:
        """While a model is read: a file with all that it has in it, other files by reference. Raises
        UnsupportedError."""
        path = Path(source) if isinstance(source, (str, Path)) else None
        if path is not None and path.is_file():
            self._has_room(READ * path.stat().st_size, f"reading {path}", "keep its parameters in separate files")
        with self.counting():
            yield

    @contextmanager
    def counting(self) -> Generator[None]:
        """What lies in a file is read as a whole only where there is room for it: else UnsupportedError."""
        with asking(lambda count, origin: self._has_room(count, f"{origin}, which is computed with,")):
            yield

    def before_passes(self, graph: Graph) -> str:
        """What is going to be needed, in words. Raises UnsupportedError where that is more than the limit."""
        constants = [node for node in graph if node.op == "constant"]
        elsewhere = {node.value.key: node.value.nbytes for node in constants if isinstance(node.value, Referenced)}
        held: dict[int, tuple[int, str]] = {}  # by address: views of one array are one
        for node in constants:
            if not isinstance(node.value, Referenced):
                low, high = byte_bounds(node.value)
                held[low] = max(held.get(low, (0, "")), (high - low, node.name))
        arrays = sum(size for size, _ in held.values())
        copies = min(arrays, in_memory(arrays) + int(REWRITTEN * arrays))
        needed = resident_memory() + copies + BESIDE + OF_A_NODE * len(list(graph))
        needed += min(sum(elsewhere.values()), ON_THE_WAY)
        words = (
            f"needs about {size_text(needed)} of {size_text(self.limit)}: {size_text(arrays)} of parameters are in "
            f"memory, {size_text(sum(elsewhere.values()))} (as float32) stay in their files"
        )
        if needed > self.limit:
            named = ", ".join(f"{name} {size_text(size)}" for size, name in nlargest(NAMED, held.values()))
            raise UnsupportedError(
                f"compile: it {words}. {f'The largest: {named}. ' if named else ''}{self._fix(_FILES)}"
            )
        return words

    def _has_room(self, count: int, what: str, fix: str = "") -> None:
        """For so many bytes more. Raises UnsupportedError."""
        have = resident_memory()
        if have + count > self.limit:
            raise UnsupportedError(
                f"compile: {what} takes {size_text(count)} more, the process has {size_text(have)}, the memory limit "
                f"is {size_text(self.limit)}. {self._fix(fix)}"
            )

    def after(self, step: str) -> None:
        """Raises UnsupportedError where a pass has taken more than the limit."""
        have = resident_memory()
        if have > self.limit:
            raise UnsupportedError(
                f"compile: after {step} the process has {size_text(have)}, the memory limit is "
                f"{size_text(self.limit)}. {self._fix(_FILES)}"
            )

    def _fix(self, own: str) -> str:
        ways = [own] if own else []
        ways.append("give a higher limit (--memory-limit)" if self.given else "close other programs")
        return f"{' or '.join(ways).capitalize()}"


_FILES: Final = "leave parameters in files (docs/compile/compile.md, Parameters in files)"
