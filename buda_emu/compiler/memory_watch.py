"""The memory of a compilation: estimated before its passes, and watched while they run."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from typing import Any, Final

from numpy.lib.array_utils import byte_bounds

from buda_emu.arithmetic.tensor.referenced import Referenced, guard_whole_reads
from buda_emu.compiler.graph.graph import Graph, memory_share
from buda_emu.emulator.memory.host import default_memory_limit, resident_memory, size_text
from buda_emu.support.errors import UnsupportedError

READ: Final = 3
"""Copies in memory of a file that contains its parameters: its bytes, the objects of the importer's library, and
arrays."""
REWRITTEN: Final = 1 / 4
"""Share of the parameters in memory that passes copy a second time, in addition to the one copy of each; 0.15 was
measured."""
BESIDE: Final = 128 << 20
"""Bytes of everything else: the compiler's own code, and rows of tiles on their way into the image."""
ON_THE_WAY: Final = 512 << 20
"""Bytes of parameters in files that are in memory at one time, however many there are; 0.3 GiB was measured."""
OF_A_NODE: Final = 256 << 10
"""Bytes that an operator takes as ops, candidates, pipes and timing."""
NAMED: Final = 3
"""Number of parameters that a refusal names."""


@dataclass(frozen=True, slots=True)
class MemoryWatch:
    """The memory limit of a compilation. `limit`: bytes of the process; `given`: whether the caller chose it, instead
    of a share of what is available."""

    limit: int
    given: bool = False

    @staticmethod
    def of(limit: int | None) -> "MemoryWatch":
        """Return a watch with this limit; None takes the present size of the process and three quarters of what is
        available."""
        return MemoryWatch(limit or resident_memory() + default_memory_limit(), limit is not None)

    @contextmanager
    def reading(self, source: Any = None) -> Generator[None]:
        """Guard the reading of a model: a file that contains its parameters must fit as a whole, parameters in other
        files are read by reference. Raises UnsupportedError, before the block or in it, for what does not fit."""
        if isinstance(source, (str, Path)):
            path = Path(source)
        else:
            path = None
        if path is not None and path.is_file():
            self._require_room(READ * path.stat().st_size, f"reading {path}", "keep its parameters in separate files")
        with self.counting():
            yield

    @contextmanager
    def counting(self) -> Generator[None]:
        """Refuse, within the block, to read an array of a file completely if memory has no room for it: the read raises
        UnsupportedError."""
        with guard_whole_reads(lambda count, origin: self._require_room(count, f"{origin}, which is computed with,")):
            yield

    def before_passes(self, graph: Graph) -> str:
        """Estimate the memory that the passes will need and return it as a sentence. Raises UnsupportedError if it
        exceeds the limit."""
        constants = [node for node in graph if node.op == "constant"]
        elsewhere = {node.value.key: node.value.nbytes for node in constants if isinstance(node.value, Referenced)}
        held: dict[int, tuple[int, str]] = {}  # by address: views of one array are one
        for node in constants:
            if not isinstance(node.value, Referenced):
                low, high = byte_bounds(node.value)
                held[low] = max(held.get(low, (0, "")), (high - low, node.name))
        arrays = sum(size for size, _ in held.values())
        copies = min(arrays, memory_share(arrays) + int(REWRITTEN * arrays))
        needed = resident_memory() + copies + BESIDE + OF_A_NODE * len(list(graph))
        needed += min(sum(elsewhere.values()), ON_THE_WAY)
        words = (
            f"needs about {size_text(needed)} of {size_text(self.limit)}: {size_text(arrays)} of parameters are in "
            f"memory, {size_text(sum(elsewhere.values()))} (as float32) stay in their files"
        )
        if needed > self.limit:
            named = ", ".join(f"{name} {size_text(size)}" for size, name in nlargest(NAMED, held.values()))
            raise UnsupportedError(
                f"compile: it {words}. {f'The largest: {named}. ' if named else ''}{self._remedy_text(_FILES)}"
            )
        return words

    def _require_room(self, count: int, task: str, fix: str = "") -> None:
        """Raise UnsupportedError if `count` more bytes exceed the limit."""
        have = resident_memory()
        if have + count > self.limit:
            raise UnsupportedError(
                f"compile: {task} takes {size_text(count)} more, the process has {size_text(have)}, the memory limit "
                f"is {size_text(self.limit)}. {self._remedy_text(fix)}"
            )

    def after(self, step: str) -> None:
        """Raise UnsupportedError if the process has exceeded the limit after a pass."""
        have = resident_memory()
        if have > self.limit:
            raise UnsupportedError(
                f"compile: after {step} the process has {size_text(have)}, the memory limit is "
                f"{size_text(self.limit)}. {self._remedy_text(_FILES)}"
            )

    def _remedy_text(self, first: str) -> str:
        """Return the advice that ends a message: `first`, unless it is "", or a way to more memory."""
        remedies = [first] if first else []
        remedies.append("give a higher limit (--memory-limit)" if self.given else "close other programs")
        return f"{' or '.join(remedies).capitalize()}"


_FILES: Final = "leave parameters in files (docs/compile/compile.md, Parameters in files)"
