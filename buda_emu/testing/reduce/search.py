"""The smallest netlist on which a command still fails, by greedy steps.

The result depends neither on the number of workers nor on the machine: of the candidates that are tried together, the
first one in their order that still fails is taken, and the others are thrown away.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Literal

from buda_emu.errors import HostError
from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.printer import document_text, netlist_text
from buda_emu.records import dataclass
from buda_emu.testing.reduce.moves import MOVES, Move
from buda_emu.testing.reduce.trials import Outcome, Trials
from buda_emu.version import RESULT_VERSION

Progress = Callable[["Step"], object]


@dataclass(frozen=True, slots=True)
class Step:
    """Where a reduction stands. `text`: the smallest netlist that still fails; `move`: what is being tried."""

    text: str
    netlist: Netlist
    move: str
    trials: int
    steps: int


@dataclass(frozen=True, slots=True)
class Reduction:
    """What a reduction found. `outcome`: how the command ends on the netlist, before as after."""

    text: str
    netlist: Netlist
    original: Netlist
    outcome: Outcome
    trials: int
    steps: int
    interrupted: bool
    """By Ctrl-C."""
    finished: bool
    """No move makes it smaller; False where it was interrupted or had used its trials."""

    def sizes(self) -> list[tuple[str, int, int]]:
        """What is counted in a netlist, before and after."""
        both = (self.original, self.netlist)
        counts = [
            {
                "ops": len(netlist.ops),
                "queues": len(netlist.queues),
                "graphs": len(netlist.graphs),
                "instructions": sum(len(program.instructions) for program in netlist.programs.values()),
                "tiles of an input": sum(op.blocking.cells * op.blocking.tiles_per_core for op in netlist.ops.values()),
                "characters": len(netlist_text(netlist)),
            }
            for netlist in both
        ]
        return [(name, before, counts[1][name]) for name, before in counts[0].items()]

    def to_json(self) -> dict[str, Any]:
        """Plain data, with `schema_version`."""
        sizes = {name.replace(" ", "_"): {"before": before, "after": after} for name, before, after in self.sizes()}
        return {
            "schema_version": RESULT_VERSION,
            "exit_code": self.outcome.code,
            "trials": self.trials,
            "steps": self.steps,
            "finished": self.finished,
            "interrupted": self.interrupted,
            "sizes": sizes,
        }


def reduce_netlist(
    netlist: Netlist,
    trials: Trials,
    *,
    any_failure: bool = False,
    most_trials: int | None = None,
    progress: Progress | None = None,
) -> Reduction:
    """Shrink a netlist as long as the command of `trials` ends as it does on the whole of it (`any_failure`: as long as
    it fails at all). Ctrl-C ends the search with what it has. Raises HostError if the command does not fail on the
    netlist, or not on the same netlist as it is printed here, without comments."""
    arch = netlist.arch_name
    text = netlist_text(netlist)
    (outcome,) = trials.run([text])
    if not outcome.fails:
        raise HostError("the command succeeds on the netlist (printed without comments): there is nothing to reduce")
    search = _Search(trials, arch, outcome, any_failure, most_trials, progress, text, netlist, {text})
    end = search.run()
    return Reduction(
        search.text, search.netlist, netlist, outcome, trials.count, search.steps, end == "interrupted", end == "all"
    )


@dataclass(slots=True)
class _Search:
    trials: Trials
    arch: str
    outcome: Outcome
    any_failure: bool
    most_trials: int | None
    progress: Progress | None
    text: str
    netlist: Netlist
    seen: set[str]
    """Texts that were tried; those that did not fail then do not fail later."""
    steps: int = 0

    def run(self) -> Literal["all", "trials", "interrupted"]:
        """Try all moves until none makes the netlist smaller; how it ended."""
        try:
            while True:
                before = self.steps
                for name, move in MOVES:
                    while self._step(name, move):
                        pass
                if self.steps == before:
                    return "all"
        except _OutOfTrials:
            return "trials"
        except KeyboardInterrupt:
            return "interrupted"

    def _step(self, name: str, move: Move) -> bool:
        """Take the first candidate of a move that still fails; whether there was one."""
        self._tell(name)
        candidates = self._candidates(move)
        while batch := list(islice(candidates, self.trials.workers)):
            if self.most_trials is not None and self.trials.count + len(batch) > self.most_trials:
                raise _OutOfTrials
            for (text, netlist), outcome in zip(batch, self.trials.run([text for text, _ in batch]), strict=True):
                if outcome == self.outcome or (self.any_failure and outcome.fails):
                    self.text, self.netlist = text, netlist
                    self.steps += 1
                    self._tell(name)
                    return True
            self._tell(name)
        return False

    def _candidates(self, move: Move) -> Iterator[tuple[str, Netlist]]:
        """Valid netlists that are new and not longer than the one at hand."""
        for document in move(self.netlist):
            text = document_text(document)
            if text in self.seen or len(text) > len(self.text):
                continue
            self.seen.add(text)
            netlist = check_text(text, self.netlist.path, self.arch).netlist
            if netlist is not None:
                yield text, netlist

    def _tell(self, name: str) -> None:
        if self.progress is not None:
            self.progress(Step(self.text, self.netlist, name, self.trials.count, self.steps))


class _OutOfTrials(Exception):  # noqa: N818 - not an error: the search has had its share
    """No further trial is allowed."""
