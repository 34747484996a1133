"""Search by greedy steps for the smallest netlist on which a command still fails.

The result depends neither on the number of workers nor on the machine: of the candidates that are tried together, the
first one in their order that still fails is taken, and the others are thrown away.
"""

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.printer import document_text, netlist_text
from buda_emu.support.checker.text import plural
from buda_emu.support.columns import Column, Columns
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass
from buda_emu.testing.reduce.moves import MOVES, Move

PLACE: Final = "{}"
"""The place of the file's name in a command; a command without it gets the name at its end."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.,+@%:/=-]")
"""A character that a shell may read as something else than itself, within quotes of either kind or without."""
_LONGEST_NAME: Final = 100  # characters; file systems take 255


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a command: its exit code, negative for a signal; None where it exceeded the time limit."""

    code: int | None

    @property
    def fails(self) -> bool:
        """True if the command did not succeed: an exit code other than 0, a signal, or no end within the time limit."""
        return self.code != 0

    def __str__(self) -> str:
        if self.code is None:
            return "no end within the time limit"
        if self.code < 0:
            return f"signal {-self.code}"
        return f"exit code {self.code}"


class Trials:
    """Runs a shell command on texts, several at once, and counts the runs; `close` ends it. Each trial has a folder of
    its own, where the file bears the netlist's name with `_` for each character that a shell may not read as itself: a
    command is free to put the place of the name in quotes of its own. The folder and all processes of the command are
    gone when the trial ends, but those that it puts into a session of their own. `timeout` is in seconds for each.
    Raises HostError where the folder of temporary files has such a character."""

    def __init__(self, command: str, name: str, timeout: float, workers: int) -> None:
        self.count = 0
        self.workers = workers
        if PLACE in command:
            self._command = command
        else:
            self._command = f"{command} {PLACE}"
        self._name = _UNSAFE.sub("_", name.replace("/", "_"))[-_LONGEST_NAME:]
        self._parent = tempfile.gettempdir()
        if character := _UNSAFE.search(self._parent):
            raise HostError(
                f"the folder of temporary files, {self._parent!r}, has {character[0]!r} in its name, which a shell may "
                "not read as itself; set TMPDIR to another folder"
            )
        self._timeout = timeout
        self._pool = ThreadPoolExecutor(workers)
        self._running: set[subprocess.Popen[bytes]] = set()

    def run(self, texts: Sequence[str]) -> list[Outcome]:
        """Run the command on each text, as many at once as there are workers, and return the outcomes in the order of
        the texts."""
        self.count += len(texts)
        return list(self._pool.map(self._run_on_text, texts))

    def _run_on_text(self, text: str) -> Outcome:
        """Write a text to a file in a folder of its own, run the command on it, and return the outcome; the folder is
        removed."""
        with tempfile.TemporaryDirectory(
            prefix="buda-emu-reduce-", dir=self._parent, ignore_cleanup_errors=True
        ) as folder:
            path = Path(folder) / self._name
            path.write_text(text, encoding="utf-8")
            command = self._command.replace(PLACE, str(path))
            with self._start_command(command) as process:
                try:
                    return Outcome(process.wait(self._timeout))
                except subprocess.TimeoutExpired:
                    return Outcome(None)

    @contextmanager
    def _start_command(self, command: str) -> "Generator[subprocess.Popen[bytes]]":
        """Yield the process of a shell command that runs in a session of its own; at the end the session is killed."""
        nothing = subprocess.DEVNULL
        process = subprocess.Popen(
            ["/bin/sh", "-c", command], stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
        )
        self._running.add(process)
        try:
            yield process
        finally:
            _kill_session(process)
            process.wait()
            self._running.discard(process)

    def close(self) -> None:
        """Kill the commands that still run, and refuse further texts; a second call does nothing."""
        for process in tuple(self._running):
            _kill_session(process)
        self._pool.shutdown(cancel_futures=True)


def _kill_session(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process and all that it started in its session; does nothing where they are gone."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


Progress = Callable[["ReductionState"], object]


@dataclass(frozen=True, slots=True)
class ReductionState:
    """The state that `progress` is told during a reduction: the smallest netlist so far that still fails, the move
    being tried, and numbers of trials and of steps that made it smaller."""

    text: str
    netlist: Netlist
    move: str
    trials: int
    steps: int


@dataclass(frozen=True, slots=True)
class Reduction:
    """The result of a reduction: the smallest netlist found, as text and loaded. `outcome` is the end of the command on
    the original."""

    text: str
    netlist: Netlist
    original: Netlist
    outcome: Outcome
    trials: int
    steps: int
    interrupted: bool
    """True where Ctrl-C ended the search."""
    finished: bool
    """True where no move makes it smaller; False where the search was interrupted or had used its trials."""

    def __repr__(self) -> str:
        ops = f"{len(self.original.ops)} to {plural(len(self.netlist.ops), 'op')}"
        return f"<Reduction of {self.original.path}: {ops}, {plural(self.trials, 'trial')}>"

    def sizes(self) -> list[tuple[str, int, int]]:
        """Return (name, before, after) for each figure in `SIZES`."""
        return [(name, size(self.original), size(self.netlist)) for name, size in SIZES.items()]

    def to_json(self) -> dict[str, Any]:
        """Return exit code, trials, steps and sizes as plain data, with `schema_version`; the netlist is not in it."""
        return REDUCTION.document(self)


SIZES: Final[Mapping[str, Callable[[Netlist], int]]] = {
    "ops": lambda netlist: len(netlist.ops),
    "queues": lambda netlist: len(netlist.queues),
    "graphs": lambda netlist: len(netlist.graphs),
    "instructions": lambda netlist: sum(len(program.instructions) for program in netlist.programs.values()),
    "tiles of an input": lambda netlist: sum(
        op.blocking.cells * op.blocking.tiles_per_core for op in netlist.ops.values()
    ),
    "characters": lambda netlist: len(netlist_text(netlist)),
}
"""The figures by which a netlist's size is reported."""


_SIZE: Final = Columns[tuple[str, int, int]](
    Column("before", int, lambda size: size[1]), Column("after", int, lambda size: size[2])
)
REDUCTION: Final = Columns[Reduction](
    Column("exit_code", int | None, lambda reduction: reduction.outcome.code),
    Column("trials", int, lambda reduction: reduction.trials),
    Column("steps", int, lambda reduction: reduction.steps),
    Column("finished", bool, lambda reduction: reduction.finished),
    Column("interrupted", bool, lambda reduction: reduction.interrupted),
    Column(
        "sizes",
        {name.replace(" ", "_"): _SIZE for name in SIZES},
        lambda reduction: {name.replace(" ", "_"): (name, *values) for name, *values in reduction.sizes()},
    ),
)
"""The figures of `reduce --json`."""


def reduce_netlist(
    netlist: Netlist,
    trials: Trials,
    *,
    any_failure: bool = False,
    most_trials: int | None = None,
    progress: Progress | None = None,
) -> Reduction:
    """Shrink a netlist as long as the command of `trials` ends like on the original (`any_failure`: as long as it
    fails at all).

    Ctrl-C ends the search with the smallest netlist so far. Raises HostError if the command does not fail on the
    netlist as it is printed here, without comments.
    """
    arch = netlist.arch_name
    text = netlist_text(netlist)
    (outcome,) = trials.run([text])
    if not outcome.fails:
        raise HostError("the command succeeds on the netlist (printed without comments): there is nothing to reduce")
    search = _Search(
        trials=trials,
        arch=arch,
        outcome=outcome,
        any_failure=any_failure,
        most_trials=most_trials,
        progress=progress,
        text=text,
        netlist=netlist,
        seen={text},
    )
    end = search.run()
    return Reduction(
        text=search.text,
        netlist=search.netlist,
        original=netlist,
        outcome=outcome,
        trials=trials.count,
        steps=search.steps,
        interrupted=end == "interrupted",
        finished=end == "all",
    )


@dataclass(slots=True)
class _Search:
    """A search in progress: `text` and `netlist` are the smallest so far, `outcome` is the end on the original."""

    trials: Trials
    arch: str
    outcome: Outcome
    any_failure: bool
    most_trials: int | None
    progress: Progress | None
    text: str
    netlist: Netlist
    seen: set[str]
    """Texts that were tried; a text that did not fail once is not tried again."""
    steps: int = 0

    def run(self) -> Literal["all", "trials", "interrupted"]:
        """Try all moves again and again until none makes the netlist smaller. Returns why it ended: "all" moves were
        tried, `most_trials` were used, or Ctrl-C."""
        try:
            while True:
                before = self.steps
                for name, move in MOVES:
                    while self._take_smaller(name, move):
                        pass
                if self.steps == before:
                    return "all"
        except _OutOfTrials:
            return "trials"
        except KeyboardInterrupt:
            return "interrupted"

    def _take_smaller(self, name: str, move: Move) -> bool:
        """Try a move's documents until one still fails, make that the smallest netlist, and return True; False where
        none does. Raises _OutOfTrials before a batch that would exceed `most_trials`."""
        self._report_progress(name)
        candidates = self._candidates(move)
        while batch := list(islice(candidates, self.trials.workers)):
            if self.most_trials is not None and self.trials.count + len(batch) > self.most_trials:
                raise _OutOfTrials
            outcomes = self.trials.run([text for text, _ in batch])
            for (text, netlist), outcome in zip(batch, outcomes, strict=True):
                if outcome == self.outcome or (self.any_failure and outcome.fails):
                    self.text = text
                    self.netlist = netlist
                    self.steps += 1
                    self._report_progress(name)
                    return True
            self._report_progress(name)
        return False

    def _candidates(self, move: Move) -> Iterator[tuple[str, Netlist]]:
        """Yield text and netlist of those documents of a move that are valid, were not tried yet, and are not longer
        than the smallest netlist."""
        for document in move(self.netlist):
            text = document_text(document)
            if text in self.seen or len(text) > len(self.text):
                continue
            self.seen.add(text)
            netlist = check_text(text, self.netlist.path, self.arch).netlist
            if netlist is not None:
                yield text, netlist

    def _report_progress(self, name: str) -> None:
        """Call `progress` with the state of the search, if there is one; `name` is the move that is tried."""
        if self.progress is not None:
            self.progress(
                ReductionState(
                    text=self.text, netlist=self.netlist, move=name, trials=self.trials.count, steps=self.steps
                )
            )


class _OutOfTrials(Exception):  # noqa: N818 - not an error: the search used all its trials
    """Ends a search that may run no further trial."""
