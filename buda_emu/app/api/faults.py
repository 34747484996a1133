"""Fault injection: a campaign of single faults on one recorded run of a netlist (docs/stress/faults.md)."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Unpack, cast

from buda_emu.emulator.image.opened import Opened, open_file
from buda_emu.emulator.inputs.default import InputBlock
from buda_emu.emulator.inputs.feed import push
from buda_emu.emulator.inputs.of_image import archive_blocks, in_queues, initial_blocks, made_up_blocks
from buda_emu.emulator.inputs.prepared import PreparedRun, RunChoice, prepare_run
from buda_emu.emulator.options import Machine, SharedWork, gather_parameters, parameter_texts
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.netlist.model import Netlist
from buda_emu.spec.precision import Precision
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.files import change_guard, read_whole
from buda_emu.support.identity import code_identity, differences, files_identity
from buda_emu.support.options import document_path, integer_of, names_of, number_of, with_options
from buda_emu.support.progress import do_nothing
from buda_emu.support.records import dataclass
from buda_emu.support.strict_json import parse
from buda_emu.support.workers.job import workers_of
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
"""A callback that gets the number of faults done, the number of all, and the seconds since the start."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The run that faults are injected into.

    `path` is the file of a netlist or device image, `parameters` are pairs ("$name", value), and `inputs` is an .npz
    file, None for random inputs. `machine` is how each machine computes.
    `contents` are pairs (role, digest) of the files, whose roles are "netlist" and "inputs": a process that finds other
    contents refuses them. It is empty until `with_contents` has read the files.
    """

    path: str
    arch: str | None = None
    programs: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    inputs: str | None = None
    precision: Precision = "format"
    machine: Machine = field(default_factory=Machine)
    contents: tuple[tuple[str, str | None], ...] = ()

    def with_contents(self) -> "Subject":
        """Return a copy with the digests of the files as they are now. Raises HostError for a file that cannot be
        read."""
        return replace(self, contents=tuple(files_identity(self._files()).items()))

    def _files(self) -> dict[str, str | None]:
        """Return the local paths of the netlist or image and of the inputs; None for inputs that are not set."""
        files: dict[str, str | None] = {"netlist": local_path(self.path), "inputs": None}
        if self.inputs is not None:
            files["inputs"] = local_path(self.inputs)
        return files

    def open_files(self) -> tuple[Opened, Callable[[], None]]:
        """Open the netlist or image. Returns it with a function that raises HostError if a file has changed since.
        Raises NetlistError or ImageError for a file that is refused, HostError for files whose digests are not those of
        `contents`."""
        files = self._files()
        guards = [change_guard(path) for path in files.values() if path is not None and Path(path).exists()]

        def check_files() -> None:
            """Raise HostError if a file has changed since it was opened."""
            for guard in guards:
                guard()

        identity: Mapping[str, str | None] = {}
        if self.contents:
            identity = files_identity(files)
        for name in differences(dict(self.contents), identity):
            raise HostError(f"{files[name]}: the file of the {name} changed since the campaign began: begin again")
        opened = open_file(files["netlist"] or "", self.arch)
        check_files()
        return opened, check_files


def campaign_identity(subject: Subject, settings: Settings) -> dict[str, Any]:
    """Return, as plain data, everything that the effects of a campaign depend on, except the number of faults: an
    interrupted campaign goes on only if its log has the same."""
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
    """The conditions that end a campaign, whichever comes first: `count` faults, `seconds`, or an interval of the share
    of failures that is no wider than `width`. The width is tested after each whole batch, so that a campaign ends with
    the same fault on any machine."""

    count: int = 1000
    seconds: float | None = None
    width: float | None = None


@dataclass(frozen=True, slots=True)
class Maker:
    """A function that makes the bench of a campaign; it can be sent to another process."""

    subject: Subject
    settings: Settings

    def __call__(self) -> Bench:
        """Run the subject once without a fault, and return a bench on the record. Raises HostError for an op or queue
        of the settings that the netlist does not have."""
        subject = self.subject
        opened, check_files = subject.open_files()
        netlist = opened.netlist
        image = opened.image
        choice = RunChoice(subject.programs, dict(subject.parameters), subject.machine, image)
        ready = prepare_run(netlist, choice, rams=subject.inputs is None, as_bits=subject.precision == "device")

        def fill(emulator: Emulator, seed: int) -> None:
            """Write the image's constants and the inputs drawn with `seed` into a new emulator, and check that no
            file has changed."""
            push(emulator, initial_blocks(image))
            push(emulator, in_queues(image, _input_blocks(subject, ready, seed)))
            check_files()

        _require_op_or_queue(netlist, self.settings.only)
        machines = Machines(
            netlist=netlist,
            fill=fill,
            programs=dict(ready.programs),
            precision=subject.precision,
            limit=ready.limit,
            made_up=subject.inputs is None,
        )
        trace = machines.record_run()
        return Bench(machines, Times(netlist, ready.bodies, ready.values, trace.epochs), trace, self.settings)


def _input_blocks(subject: Subject, ready: PreparedRun, seed: int) -> Iterator[InputBlock]:
    """Return the inputs of a run: those of the subject's archive if it has one, or random ones drawn with `seed`."""
    image = ready.image
    if subject.inputs is not None:
        return archive_blocks(ready.netlist, Path(local_path(subject.inputs)), image, ready.limit)
    image_queues = image.held_queues if image else frozenset[str]()
    return made_up_blocks(ready.netlist, ready.config, ready.bodies, ready.values, seed, image, excluded=image_queues)


def _require_op_or_queue(netlist: Netlist, name: str) -> None:
    """Raise HostError for a name that is neither "" nor an op's or a queue's."""
    names = {op.name for op in netlist.ops.values()} | netlist.queues.keys()
    if name and name not in names:
        hint = near(name, names)
        raise HostError(f"no op or queue {name!r}{f' ({hint})' if hint else ''}")


@with_options
def faults(
    source: "str | PathLike[str] | Subject",
    budget: "int | Budget" = 1000,
    *,
    settings: Settings | None = None,
    known: Iterable[Effect] = (),
    progress: Progress | None = None,
    done: Callable[[Sequence[Effect]], object] | None = None,
    **work: Unpack[SharedWork],
) -> Campaign:
    """Inject single faults into one run of a netlist or device image, and return the effect of each.

    `budget` is a number of faults, or the conditions that end the campaign. `settings` choose what is hit and how the
    outputs are judged; faults that stand in the settings are all injected. `workers` processes, or the Dask cluster
    whose scheduler is at `dask`, share the work; the result does not depend on them. `known` are effects of an
    interrupted campaign, which are not computed again; each must belong to the fault that has its number in this
    campaign. `done` is called with the effects of each part, `progress` with numbers and seconds. Ctrl-C ends the
    campaign; the faults until then are the result.

    Raises NetlistError, HostError (an unknown kind, place, op or program; a given fault that the run does not have;
    kinds of which none has anything to hit), ProgramError as the run would, UnsupportedError (values of the whole run
    do not fit the memory limit; a ram with views in different formats).
    """
    settings = _with_lists(settings or Settings())
    if not isinstance(budget, Budget):
        budget = Budget(cast("int", integer_of("budget", 0)(budget)))
    _require_settings(settings)
    _require_budget(budget)
    subject = _subject_of(source)
    if not subject.contents:
        subject = subject.with_contents()
    numbers = _fault_numbers(settings, budget)
    make_bench = Maker(subject, settings)
    bench = make_bench()
    effect_of = _effects_by_number(known, bench)
    report_effects = done or do_nothing
    report_progress = progress or do_nothing
    stop = _CampaignEnd(numbers, bench.strata, budget)
    files = [name for name in (subject.path, subject.inputs) if name is not None]
    with (
        suppress(KeyboardInterrupt),
        closing(effects(make_bench, stop.remaining(effect_of), workers_of(work), bench, files)) as parts,
    ):
        for part in parts:
            effect_of |= {effect.fault.number: effect for effect in part}
            seconds = stop.seconds()
            report_effects(part)
            report_progress(len(effect_of), len(numbers), seconds)
            if stop.is_reached(effect_of, seconds):
                break
    counted = tuple(effect_of[number] for number in numbers[: stop.count] if number in effect_of)
    is_finished = len(counted) == len(numbers) or stop.count is not None
    return _campaign_of(bench, subject.precision, counted, is_finished)


def _fault_numbers(settings: Settings, budget: Budget) -> list[int]:
    """Return the numbers of all faults of a campaign: those of the faults in the settings, else 0 to the budget's
    count. Raises HostError if there are none."""
    numbers = [fault.number for fault in settings.given] or list(range(budget.count))
    if not numbers:
        raise HostError(f"faults: a budget of {budget.count} faults injects none")
    return numbers


def _effects_by_number(effects_before: Iterable[Effect], bench: Bench) -> dict[int, Effect]:
    """Return the effects of an interrupted campaign by the numbers of their faults. Raises UnknownEffectError for one
    that is not of this campaign."""
    effect_of = {effect.fault.number: effect for effect in effects_before}
    for effect in effect_of.values():
        _require_of_campaign(effect, bench)
    return effect_of


def _campaign_of(bench: Bench, precision: Precision, counted: tuple[Effect, ...], is_finished: bool) -> Campaign:
    """Make the result of a campaign from its bench and the effects that count; `is_finished` is False if it was
    interrupted."""
    netlist = bench.trace.netlist
    return Campaign(
        netlist=netlist.path,
        arch=netlist.arch_name,
        precision=precision,
        seed=bench.settings.seed,
        settings={**bench.settings.as_json(), "given": bench.settings.given},
        effects=counted,
        bit_hours=bench.bit_hours,
        finished=is_finished,
        strata=bench.strata,
        costs=bench.costs(),
        left_out=bench.left_out,
    )


def _subject_of(source: "str | PathLike[str] | Subject") -> Subject:
    """Return the run that a source names, with its programs in a list and its parameters as texts. Raises HostError."""
    if not isinstance(source, Subject):
        return Subject(fspath(document_path(source, "faults")))
    parameters = tuple(parameter_texts(_parameters_by_name(source.parameters)).items())
    return replace(source, programs=names_of(source.programs), parameters=parameters)


def _parameters_by_name(parameters: object) -> Mapping[Any, Any]:
    """Return parameters, which may be None, a mapping or pairs, by name. Raises HostError for any other value."""
    if parameters is None:
        return {}
    if isinstance(parameters, Mapping):
        return cast("Mapping[Any, Any]", parameters)
    if not isinstance(parameters, (list, tuple)):
        raise HostError(f"parameters are pairs such as [('$p_loop_count', 4)], not {type(parameters).__name__}")
    pairs = cast("Sequence[Any]", parameters)
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(cast("Sequence[Any]", pair)) != 2:
            raise HostError(f"{pair!r} is no parameter: expected a pair such as ('$p_loop_count', 4)")
    return gather_parameters(pairs)


def _with_lists(settings: Settings) -> Settings:
    """Return settings in which `kinds`, `places` and `protect` are sequences, even where the caller gave a single
    name."""
    kinds, places, protect = (names_of(words) for words in (settings.kinds, settings.places, settings.protect))
    return replace(settings, kinds=kinds, places=places, protect=protect)


def _require_settings(settings: Settings) -> None:
    """Raise HostError for a kind, place, stratum or protection that does not exist, and for a `least_pcc` or `late` out
    of range."""
    number_of("least_pcc", settings.least_pcc, -1, 1)
    number_of("late", settings.late, 0)
    _require_words(settings.kinds, KINDS, "kind")
    if settings.places:
        _require_words(settings.places, PLACES, "place")
    if settings.strata:
        _require_words((settings.strata,), STRATA[1:], "strata")
    if settings.protect:
        _require_words(settings.protect, PROTECTIONS, "protection")


def _require_budget(budget: Budget) -> None:
    """Raise HostError for a count of faults, seconds or a width that is no number of its kind."""
    integer_of("count", 0)(budget.count)
    if budget.seconds is not None:
        number_of("seconds", budget.seconds, 0)
    if budget.width is not None:
        number_of("width", budget.width, 0, 1)


def _require_of_campaign(effect: Effect, bench: Bench) -> None:
    """Raise UnknownEffectError for an effect of another fault than the one that has its number in this campaign."""
    number = effect.fault.number
    try:
        fault = bench.fault(number)
    except (HostError, KeyError, OverflowError):
        raise UnknownEffectError(number, "this campaign has no fault of that number") from None
    # Nodes and reader follow from the record of the run: a fault that was read from a file has none.
    if replace(fault, nodes=(), reader=None) != replace(effect.fault, nodes=(), reader=None):
        raise UnknownEffectError(number, "it is not the fault that this campaign has under that number")
    other = sorted(effect.after.keys() - set(bench.settings.protect))
    if other:
        raise UnknownEffectError(number, f"after: this campaign does not try {other[0]}")
    strange = sorted(effect.maps.keys() - bench.trace.netlist.queues.keys())
    if strange:
        raise UnknownEffectError(number, f"maps: the netlist has no queue {strange[0]!r}")


class _CampaignEnd:
    """The end of a campaign by its seconds, which count from here on, or by the width of its interval.

    The width is tested after each whole batch of faults in the order of `numbers`, so that the end depends neither on
    the workers nor on interruptions. `count` is the number of faults until that end, None before it is reached.
    """

    def __init__(self, numbers: Sequence[int], strata: Mapping[str, float], budget: Budget) -> None:
        self._numbers = numbers
        self._strata = strata
        self._width = budget.width
        self._most_seconds = budget.seconds
        self._start = time.perf_counter()
        self._tested = 0
        self.count: int | None = None

    def seconds(self) -> float:
        """Return the seconds since the campaign began."""
        return time.perf_counter() - self._start

    def remaining(self, effect_of: Mapping[int, Effect]) -> list[int]:
        """Return the numbers of the faults without an effect; none if the interval is narrow enough without them."""
        if self._is_narrow(effect_of):
            return []
        return [number for number in self._numbers if number not in effect_of]

    def is_reached(self, effect_of: Mapping[int, Effect], seconds: float) -> bool:
        """Return whether the campaign is to end: the interval is narrow enough by `effect_of`, the effects so far by
        number, or `seconds` are more than the budget has."""
        if self._is_narrow(effect_of):
            return True
        return self._most_seconds is not None and seconds > self._most_seconds

    def _is_narrow(self, effect_of: Mapping[int, Effect]) -> bool:
        """Test the interval after each further whole batch whose effects are all there, and set `count` at the first
        that is narrow enough. Return whether there is one."""
        while self._width is not None and self.count is None and self._tested + BATCH <= len(self._numbers):
            until = self._tested + BATCH
            if any(number not in effect_of for number in self._numbers[self._tested : until]):
                break
            self._tested = until
            effects = [effect_of[number] for number in self._numbers[:until]]
            low, high = share_of("all", effects, self._strata).interval
            if high - low <= self._width:
                self.count = until
        return self.count is not None


def read_sites(path: Path) -> tuple[Fault, ...]:
    """Read faults from a file of JSON lines, or from the faults.json of a campaign.

    Each is an object with the keys that `Fault.as_json` writes; `kind` is required. A fault without a number gets its
    place among the faults of the file, from 0. Raises HostError for a file that cannot be read, has no faults, an
    object that is no fault, or the same number twice.
    """
    try:
        data = read_whole(path)
    except OSError as error:
        raise HostError(f"sites: {path}: {error.strerror}") from None
    try:
        rows = _rows_of_document(parse(data))
    except ValueError:
        rows = _rows_of_lines(path, data)
    if not isinstance(rows, list):
        raise HostError(f"sites: {path}: 'faults' is not a list: expected the faults.json of a campaign")
    sites = [_fault_of_row(path, place, row) for place, row in enumerate(cast("list[Any]", rows))]
    if len({fault.number for fault in sites}) < len(sites):
        raise HostError(f"sites: {path}: two faults have the same number")
    if not sites:
        raise HostError(f"sites: {path}: no faults")
    return tuple(sites)


def _fault_of_row(path: Path, place: int, row: Any) -> Fault:
    """Return the fault that a row of a file describes, with its place in the file as its number unless it has one.
    Raises HostError for a row that describes none."""
    if not isinstance(row, dict) or "kind" not in row:
        raise HostError(f'sites: {path}: item {place + 1} is not a fault: expected {{"kind": "flip", "place": ...}}')
    try:
        return Fault.from_json({"number": place, **row})
    except ValueError as error:
        raise HostError(f"sites: {path}: item {place + 1}: {error}") from None


def _rows_of_document(document: Any) -> Any:
    """Return the value of "faults" in a campaign's JSON document; any other document is the only element of a list."""
    if isinstance(document, dict) and "faults" in document:
        return document["faults"]  # pyright: ignore[reportUnknownVariableType] - JSON
    return [document]


def _rows_of_lines(path: Path, data: bytes) -> list[Any]:
    """Parse one JSON value a line, for `read_sites`; null and the settings with which the log of a campaign begins are
    left out. Raises HostError for a line that is not JSON."""
    rows: list[Any] = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = parse(line)
        except ValueError as error:
            raise HostError(f"sites: {path}:{number}: not JSON: {error}") from None
        if row is not None and not (number == 1 and isinstance(row, dict) and "kinds" in row):
            rows.append(row)
    return rows


def _require_words(words: Sequence[str], allowed: Sequence[str], noun: str) -> None:
    """Raise HostError for a word that is not allowed, and for no words at all; `noun` names them in the message."""
    for word in words:
        if word not in allowed:
            suggestion = near(word, allowed)
            hint = f" ({suggestion})" if suggestion else ""
            raise HostError(f"{noun} {word!r} is not one of {', '.join(allowed)}{hint}")
    if not words:
        raise HostError(f"no {noun} is given: {', '.join(allowed)}")


__all__ = ["Budget", "Campaign", "Settings", "Subject", "faults"]
