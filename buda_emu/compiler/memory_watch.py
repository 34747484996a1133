"""The work and the memory of a compilation: counted, estimated, and watched while its passes run."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import nlargest
from pathlib import Path
from typing import Any, Final, NamedTuple

from numpy.lib.array_utils import byte_bounds

from buda_emu.arithmetic.tensor.referenced import Referenced, asking
from buda_emu.compiler.graph.graph import Graph, memory_share
from buda_emu.emulator.memory.host import default_memory_limit, resident_memory, size_text
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import UnsupportedError
from buda_emu.support.progress import Activity, Report
from buda_emu.support.workers.spread import JobPool

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
        files are read by reference. Raises UnsupportedError."""
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
        """Refuse, within the block, to read an array of a file completely if memory has no room for it. Raises
        UnsupportedError."""
        with asking(lambda count, origin: self._require_room(count, f"{origin}, which is computed with,")):
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
                f"compile: it {words}. {f'The largest: {named}. ' if named else ''}{self._fix(_FILES)}"
            )
        return words

    def _require_room(self, count: int, task: str, fix: str = "") -> None:
        """Raise UnsupportedError if `count` more bytes exceed the limit."""
        have = resident_memory()
        if have + count > self.limit:
            raise UnsupportedError(
                f"compile: {task} takes {size_text(count)} more, the process has {size_text(have)}, the memory limit "
                f"is {size_text(self.limit)}. {self._fix(fix)}"
            )

    def after(self, step: str) -> None:
        """Raise UnsupportedError if the process has exceeded the limit after a pass."""
        have = resident_memory()
        if have > self.limit:
            raise UnsupportedError(
                f"compile: after {step} the process has {size_text(have)}, the memory limit is "
                f"{size_text(self.limit)}. {self._fix(_FILES)}"
            )

    def _fix(self, first: str) -> str:
        """Return the advice that ends a message: `first`, unless it is "", or more memory."""
        remedies = [first] if first else []
        remedies.append("give a higher limit (--memory-limit)" if self.given else "close other programs")
        return f"{' or '.join(remedies).capitalize()}"


_FILES: Final = "leave parameters in files (docs/compile/compile.md, Parameters in files)"


LIMITS = {"low": 0, "default": 40_000, "high": 120_000}
"""Bound of the ops that are modelled for one model with each effort; 0 stands for no bound, because nothing is
searched."""


class Trial(NamedTuple):
    """The result of a searched placement: the effort, and the cycles of one input."""

    effort: str
    cycles: float


@dataclass(slots=True)
class Work:
    """Record of a search. `modelled` ops of at most `limit`; `cut`: whether that limit made it leave something out;
    `at_bound`: whether it ended because the placement reached a limit that no placement undercuts."""

    limit: int = 0
    """Bound of `modelled`; 0 stands for none."""
    modelled: int = 0
    cut: bool = False
    at_bound: bool = False
    trials: list[Trial] = field(default_factory=list[Trial])
    gained: set[str] = field(default_factory=set[str])
    """Parts of the search (`search_parts.TRACKED`) that made some epoch or placement quicker. Left out, any
    other of them changes nothing, unless the search ended at its limit."""
    pool: JobPool | None = None
    """Workers that share the search with this process; they do not change its result."""
    effort: str = ""
    """The effort that was asked for; high effort begins with the default one."""
    tell: Callable[[str], None] | None = None
    """Callback that gets the progress of the search at each epoch, for somebody who can end the search by Ctrl-C."""
    report: Report | None = None
    """Callback that gets the same as an Activity."""
    running: bool = False
    ended: bool = False
    """Whether the search was asked to end with the best placement so far."""

    @staticmethod
    def of(effort: str) -> "Work":
        """Return the record of a search that has not begun."""
        return Work(LIMITS[effort], effort=effort)

    def stop_modelling(self) -> bool:
        """Return whether the search must model no more ops, and note that it leaves something out for the limit."""
        self.cut = self.cut or self.modelled >= self.limit > 0
        return self.cut or self.ended

    def end(self) -> bool:
        """Ask the search to end with the best placement so far. Returns False if no search is running or it was asked
        before."""
        asked = self.running and not self.ended
        self.ended = self.ended or self.running
        return asked

    def at(self, epoch: int, epochs: int) -> None:
        """Report that the search is improving epoch `epoch` of a placement."""
        if self.tell is None and self.report is None:
            return
        parts = [f"placement {len(self.trials) + 1}, epoch {epoch + 1} of {epochs}"]
        if self.limit:
            parts.append(f"{self.modelled} of at most {self.limit} ops modelled")
        if self.trials:
            parts.append(f"best {min(trial.cycles for trial in self.trials):.0f} cycles")
        where = ", ".join(parts)
        if self.report is not None:
            self.report(Activity(f"searching: {where}", "search", self.modelled, self.limit))
        if self.tell is None:
            return
        if self.ended:
            state = "ending the search"
        else:
            state = "searching, Ctrl-C keeps the best"
        self.tell(f"{state}: {where}")

    def has_room(self, ops: int) -> bool:
        """Return whether modelling `ops` more ops stays below the limit."""
        return not self.limit or self.modelled + ops < self.limit

    @property
    def is_notable(self) -> bool:
        """Return whether the user is told of the search unasked: it was cut or ended, several efforts were tried, or
        the bound was reached."""
        return self.cut or self.ended or len({trial.effort for trial in self.trials}) > 1 or self.at_bound

    def words(self) -> str:
        """Describe in a sentence what was searched and gained; "" if nothing was searched."""
        if not self.trials:
            return ""
        parts: list[str] = []
        before = float("inf")
        for effort in dict.fromkeys(trial.effort for trial in self.trials):
            cycles = [trial.cycles for trial in self.trials if trial.effort == effort]
            best = min(cycles)
            if before < float("inf"):
                gained = 1 - min(*cycles, before) / before
            else:
                gained = 0.0
            text = f"{effort} effort searched {plural(len(cycles), 'placement')}"
            parts.append(f"{text}, the best takes {best:.0f} cycles an input" + ("" if not parts else _gain(gained)))
            before = min(best, before)
        if self.at_bound:
            parts.append("no more was tried: no placement undercuts the math of all cores or the host link")
        if self.ended:
            parts.append("the search was ended by Ctrl-C, with the best so far")
        if self.cut:
            parts.append(f"the search ended at its bound of {self.limit} modelled ops, with the best so far")
        return "; ".join(parts)


def _gain(share: float) -> str:
    """Say how many fewer cycles, as a share, a greater effort reached."""
    if share > 0:
        return f", {100 * share:.1f} % fewer"
    return ", which gains nothing"
