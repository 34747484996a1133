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
from buda_emu.support.workers.spread import JobPool

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


LIMITS = {"low": 0, "default": 40_000, "high": 120_000}
"""Ops that are modelled for one model with each effort; 0 is not a bound, where nothing is searched."""


class Trial(NamedTuple):
    """A placement that was searched with an effort, and the cycles of one input that it came to."""

    effort: str
    cycles: float


@dataclass(slots=True)
class Work:
    """`modelled` ops of at most `limit`; `cut`: whether something was left out for that; `at_bound`: whether the search
    ended because the placement is at a limit that no other undercuts."""

    limit: int = 0
    """0 is none."""
    modelled: int = 0
    cut: bool = False
    at_bound: bool = False
    epochs: dict[object, Any] = field(default_factory=dict[object, Any], repr=False)
    """Epochs whose time is known (`timing.model.KnownEpochs`): layers that are alike are modelled once."""
    trials: list[Trial] = field(default_factory=list[Trial])
    tried: list[Any] = field(default_factory=list[Any], repr=False)
    """What starts came to (`search.trials`): an effort that tries what another one did takes it from here."""
    pool: JobPool | None = None
    """Workers that share the search with this process; what they find does not depend on them."""
    side_by_side: Any = field(default=None, repr=False)
    """How they share it (`search.speculative`)."""
    effort: str = ""
    """That was asked for: high effort begins with the default."""
    begun: list[Any] = field(default_factory=list[Any], repr=False)
    """Starts that were made before they are tried (`search.trials`)."""
    tell: Callable[[str], None] | None = None
    """Is told from epoch to epoch how far the search is."""
    running: bool = False
    ended: bool = False
    """Whether the search was asked to end with the best so far."""

    @staticmethod
    def of(effort: str) -> "Work":
        """Nothing done yet."""
        return Work(LIMITS[effort], effort=effort)

    def spent(self) -> bool:
        """Whether no more is to be modelled; who asks leaves something out then."""
        self.cut = self.cut or self.modelled >= self.limit > 0
        return self.cut or self.ended

    def end(self) -> bool:
        """Let the search end with the best so far. False where there is none that could, or it was asked before."""
        asked = self.running and not self.ended
        self.ended = self.ended or self.running
        return asked

    def at(self, epoch: int, epochs: int) -> None:
        """The search is at an epoch of the placement that it improves."""
        if self.tell is None:
            return
        parts = [f"placement {len(self.trials) + 1}, epoch {epoch + 1} of {epochs}"]
        if self.limit:
            parts.append(f"{self.modelled} of at most {self.limit} ops modelled")
        if self.trials:
            parts.append(f"best {min(trial.cycles for trial in self.trials):.0f} cycles")
        state = "ending the search" if self.ended else "searching, Ctrl-C keeps the best"
        self.tell(f"{state}: {', '.join(parts)}")

    def has_room(self, ops: int) -> bool:
        """Whether so many more ops end before the limit."""
        return not self.limit or self.modelled + ops < self.limit

    @property
    def told(self) -> bool:
        """Whether a user should hear of it unasked: more effort than usual was wished, or the bound was reached."""
        return self.cut or self.ended or len({trial.effort for trial in self.trials}) > 1 or self.at_bound

    def words(self) -> str:
        """What was searched and gained, in a sentence; "" where nothing was searched."""
        if not self.trials:
            return ""
        parts: list[str] = []
        before = float("inf")
        for effort in dict.fromkeys(trial.effort for trial in self.trials):
            own = [trial.cycles for trial in self.trials if trial.effort == effort]
            best = min(own)
            gained = 1 - min(*own, before) / before if before < float("inf") else 0.0
            found = f"{effort} effort searched {plural(len(own), 'placement')}"
            parts.append(f"{found}, the best takes {best:.0f} cycles an input" + ("" if not parts else _gain(gained)))
            before = min(best, before)
        if self.at_bound:
            parts.append("no more was tried: no placement undercuts the math of all cores or the host link")
        if self.ended:
            parts.append("the search was ended by Ctrl-C, with the best so far")
        if self.cut:
            parts.append(f"the search ended at its bound of {self.limit} modelled ops, with the best so far")
        return "; ".join(parts)


def _gain(share: float) -> str:
    return f", {100 * share:.1f} % fewer" if share > 0 else ", which gains nothing"
