"""Fault injection on a netlist: a campaign on one recorded run (docs/stress/faults.md)."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, cast

from buda_emu.emulator.image.opened import Opened, open_file
from buda_emu.emulator.inputs.feed import push
from buda_emu.emulator.inputs.of_image import archive_blocks, in_queues, initial_blocks, made_up_blocks
from buda_emu.emulator.inputs.prepared import RunChoice, prepare_run
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.spec.precision import Precision
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.files import change_guard, read_whole
from buda_emu.support.identity import code_identity, differences, files_identity
from buda_emu.support.records import dataclass
from buda_emu.support.strict_json import parse
from buda_emu.support.workers.job import Workers
from buda_emu.support.workers.wire import local_path
from buda_emu.testing.injection.campaign import BATCH, Bench, Settings, effects
from buda_emu.testing.injection.campaign_log import UnknownEffectError
from buda_emu.testing.injection.fault import KINDS, PLACES, Fault
from buda_emu.testing.injection.machines import Machines
from buda_emu.testing.injection.protect import PROTECTIONS
from buda_emu.testing.injection.result import Campaign, Effect, share_of
from buda_emu.testing.injection.sites import STRATA
from buda_emu.testing.injection.timing_faults import Times

Progress = Callable[[int, int, float], object]
"""Faults done, of how many, in how many seconds."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is hit: the file of a netlist or device image, its programs, parameters ("$name": value), inputs (an .npz
    file; None: random from the seed), and the precision that it runs in. `memory_limit`: bytes (default: most of what
    is there). `contents`: by what a file is ("netlist", "inputs") the digest of what it has to hold in each process
    that opens it; () where nobody has looked (`with_contents`)."""

    path: str
    arch: str | None = None
    programs: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    inputs: str | None = None
    precision: Precision = "format"
    memory_limit: int | None = None
    contents: tuple[tuple[str, str | None], ...] = ()

    def with_contents(self) -> "Subject":
        """The same with the contents that its files have now. Raises HostError for a file that cannot be read."""
        return replace(self, contents=tuple(files_identity(self._files()).items()))

    def _files(self) -> dict[str, str | None]:
        return {"netlist": local_path(self.path), "inputs": None if self.inputs is None else local_path(self.inputs)}

    def opened(self) -> tuple[Opened, Callable[[], None]]:
        """The netlist or image, and a function that raises HostError where its files are not what they were. Raises as
        `open_file`, and HostError for other contents than `contents`."""
        files = self._files()
        checks = [change_guard(path) for path in files.values() if path is not None and Path(path).exists()]

        def check() -> None:
            for each in checks:
                each()

        now = files_identity(files) if self.contents else {}
        for name in differences(dict(self.contents), now):
            raise HostError(f"{files[name]}: the file of the {name} changed since the campaign began: begin again")
        found = open_file(files["netlist"] or "", self.arch)
        check()
        return found, check


def campaign_identity(subject: Subject, settings: Settings) -> dict[str, Any]:
    """What the effects of a campaign depend on (`buda_emu.support.identity`), but for how many faults there are: plain
    data."""
    return {
        **dict(subject.contents),
        "arch": subject.arch,
        "precision": subject.precision,
        "programs": list(subject.programs),
        "parameters": dict(subject.parameters),
        **settings.as_json(),
        **code_identity(),
    }


@dataclass(frozen=True, slots=True)
class Budget:
    """When a campaign ends: after `count` faults, after `seconds`, or as soon as the interval of the share that fails
    is no wider than `width`, asked after each whole batch, so that it ends with the same fault on any machine."""

    count: int = 1000
    seconds: float | None = None
    width: float | None = None


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes the bench of a campaign, in this process or another."""

    subject: Subject
    settings: Settings

    def __call__(self) -> Bench:
        """Records a clean run."""
        subject = self.subject
        opened, check = subject.opened()
        netlist = opened.netlist
        image = opened.image
        chosen = RunChoice(subject.programs, dict(subject.parameters), subject.memory_limit, image)
        ready = prepare_run(netlist, chosen, rams=subject.inputs is None, as_bits=subject.precision == "device")

        def fill(emulator: Emulator, seed: int) -> None:
            if subject.inputs is not None:
                blocks = archive_blocks(netlist, Path(local_path(subject.inputs)), image, ready.limit)
            else:
                held = image.held_queues if image else frozenset[str]()
                blocks = made_up_blocks(netlist, ready.config, ready.bodies, ready.values, seed, image, excluded=held)
            push(emulator, initial_blocks(image))
            push(emulator, in_queues(image, blocks))
            check()

        names = {op.name for op in netlist.ops.values()} | netlist.queues.keys()
        if self.settings.only and self.settings.only not in names:
            hint = near(self.settings.only, names)
            raise HostError(f"no op or queue {self.settings.only!r}{f' ({hint})' if hint else ''}")
        machines = Machines(
            netlist=netlist,
            fill=fill,
            programs=dict(ready.programs),
            precision=subject.precision,
            memory_limit=ready.limit,
            made_up=subject.inputs is None,
        )
        trace = machines.record_run()
        return Bench(machines, Times(netlist, ready.bodies, ready.values, trace.epochs), trace, self.settings)


def faults(
    source: "str | PathLike[str] | Subject",
    budget: "int | Budget" = 1000,
    *,
    settings: Settings | None = None,
    workers: int = 1,
    dask: str | None = None,
    known: Iterable[Effect] = (),
    progress: Progress | None = None,
    done: Callable[[Sequence[Effect]], object] | None = None,
) -> Campaign:
    """Inject single faults, so many of them or as `Budget` says, into one run of a netlist or device image and say what
    each does.

    `settings`: what is hit and how it is judged; faults that are given are all injected. `workers` processes, or the
    Dask cluster whose scheduler is at `dask`, share the work; the result does not depend on them. `known`: effects of
    an interrupted campaign, which are not found again, each of the fault that has its number in this one; `done` is
    told of each part. Ctrl-C ends it: the faults until then are the result.

    Raises NetlistError, HostError (an unknown kind, place, op or program; a given fault that the run does not have;
    kinds of which none has anything to hit), ProgramError as the run would, UnsupportedError (values of the whole run
    do not fit the memory limit; a ram with views in different formats).
    """
    settings = settings or Settings()
    budget = Budget(budget) if isinstance(budget, int) else budget
    _require_words(settings.kinds, KINDS, "kind")
    if settings.places:
        _require_words(settings.places, PLACES, "place")
    if settings.strata:
        _require_words((settings.strata,), STRATA[1:], "strata")
    if settings.protect:
        _require_words(settings.protect, PROTECTIONS, "protection")
    subject = source if isinstance(source, Subject) else Subject(fspath(source))
    make = Maker(subject if subject.contents else subject.with_contents(), settings)
    bench = make()
    wanted = [fault.number for fault in settings.given] or list(range(budget.count))
    found = {effect.fault.number: effect for effect in known}
    for effect in found.values():
        _require_of_campaign(effect, bench)
    start = time.perf_counter()
    ended = _Ended(wanted, bench.strata, budget.width)
    left = [number for number in wanted if number not in found]
    try:
        left = [] if ended.among(found) else left
        files = [name for name in (make.subject.path, make.subject.inputs) if name is not None]
        with closing(effects(make, left, Workers(workers, dask), bench, files)) as parts:
            for part in parts:
                found |= {effect.fault.number: effect for effect in part}
                if done is not None:
                    done(part)
                if progress is not None:
                    progress(len(found), len(wanted), time.perf_counter() - start)
                took = time.perf_counter() - start
                if ended.among(found) or (budget.seconds is not None and took > budget.seconds):
                    break
    except KeyboardInterrupt:
        pass
    netlist = bench.trace.netlist
    kept = tuple(found[number] for number in wanted[: ended.after] if number in found)
    return Campaign(
        netlist=netlist.path,
        arch=netlist.arch_name,
        precision=make.subject.precision,
        seed=settings.seed,
        settings=bench.settings.as_json(),
        effects=kept,
        bit_hours=bench.bit_hours,
        finished=len(kept) == len(wanted) or ended.after is not None,
        strata=bench.strata,
        costs=bench.costs(),
        left_out=bench.left_out,
    )


def _require_of_campaign(effect: Effect, bench: Bench) -> None:
    """Raises UnknownEffectError for an effect of another fault than the one that has its number in this campaign."""
    number = effect.fault.number
    try:
        fault = bench.fault(number)
    except (HostError, KeyError, OverflowError):
        raise UnknownEffectError(number, "this campaign has no fault of that number") from None
    plain, known = (replace(item, nodes=(), reader=None) for item in (fault, effect.fault))
    if plain != known:
        raise UnknownEffectError(number, "it is not the fault that this campaign has under that number")
    other = sorted(effect.after.keys() - set(bench.settings.protect))
    if other:
        raise UnknownEffectError(number, f"after: this campaign does not try {other[0]}")


class _Ended:
    """Whether a campaign is sure enough: asked after each whole batch of the faults that are wanted, in their order, so
    that neither workers nor interruptions count. `after`: so many faults, once it is."""

    def __init__(self, wanted: Sequence[int], strata: Mapping[str, float], width: float | None) -> None:
        self._wanted = wanted
        self._strata = strata
        self._width = width
        self._asked = 0
        self.after: int | None = None

    def among(self, found: Mapping[int, Effect]) -> bool:
        """Is it, by the faults that were found so far?"""
        while self._width is not None and self.after is None and self._asked + BATCH <= len(self._wanted):
            until = self._asked + BATCH
            if any(number not in found for number in self._wanted[self._asked : until]):
                break
            self._asked = until
            effects = [found[number] for number in self._wanted[:until]]
            low, high = share_of("all", effects, self._strata).interval
            if high - low <= self._width:
                self.after = until
        return self.after is not None


def read_sites(path: Path) -> tuple[Fault, ...]:
    """Faults from a file of JSON lines, or from the faults.json of a campaign: each as `Fault.as_json` writes it, or
    the part of it that says something. One without a number gets that of its line. Raises HostError."""
    try:
        data = read_whole(path)
    except OSError as error:
        raise HostError(f"sites: {path}: {error.strerror}") from None
    try:
        rows = _listed(parse(data))
    except ValueError:
        rows = _lines(path, data)
    if not isinstance(rows, list):
        raise HostError(f"sites: {path}: 'faults' is not a list: expected the faults.json of a campaign")
    found: list[Fault] = []
    for place, row in enumerate(cast("list[Any]", rows)):
        if not isinstance(row, dict) or "kind" not in row:
            raise HostError(
                f'sites: {path}: item {place + 1} is not a fault: expected {{"kind": "flip", "place": ...}}'
            )
        try:
            found.append(Fault.from_json({"number": place, **row}))
        except ValueError as error:
            raise HostError(f"sites: {path}: item {place + 1}: {error}") from None
    if len({fault.number for fault in found}) < len(found):
        raise HostError(f"sites: {path}: two faults have the same number")
    if not found:
        raise HostError(f"sites: {path}: no faults")
    return tuple(found)


def _listed(whole: Any) -> Any:
    return [whole] if not isinstance(whole, dict) or "faults" not in whole else whole["faults"]  # pyright: ignore[reportUnknownVariableType] - JSON


def _lines(path: Path, data: bytes) -> list[Any]:
    """The settings with which the log of a campaign begins are left out."""
    rows: list[Any] = []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            row = parse(line) if line.strip() else None
        except ValueError as error:
            raise HostError(f"sites: {path}:{number}: not JSON: {error}") from None
        if row is not None and not (number == 1 and isinstance(row, dict) and "kinds" in row):
            rows.append(row)
    return rows


def _require_words(given: Sequence[str], known: Sequence[str], what: str) -> None:
    for word in given:
        if word not in known:
            hint = f" ({meant})" if (meant := near(word, known)) else ""
            raise HostError(f"{what} {word!r} is not one of {', '.join(known)}{hint}")
    if not given:
        raise HostError(f"no {what} is given: {', '.join(known)}")


__all__ = ["Budget", "Campaign", "Settings", "Subject", "faults"]
