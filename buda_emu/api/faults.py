"""What faults do to a netlist: a campaign on one recorded run (docs/faults.md)."""

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import partial
from os import PathLike, fspath
from pathlib import Path

from buda_emu.api.perf import perf
from buda_emu.checker.suggest import near
from buda_emu.device.host_memory import default_memory_limit
from buda_emu.errors import HostError, UnsupportedError
from buda_emu.image.opened import open_file
from buda_emu.injection.campaign import Bench, Settings, batches, effects_of, record
from buda_emu.injection.fault import KINDS, PLACES
from buda_emu.injection.result import Campaign, Effect
from buda_emu.injection.sites import Sites
from buda_emu.netlist.testing.config import read_test_config
from buda_emu.records import dataclass
from buda_emu.runtime.emulator import Emulator
from buda_emu.spec.precision import Precision
from buda_emu.verify.inputs.entries import chosen_programs, default_parameters, known_parameters
from buda_emu.verify.inputs.of_image import archive_blocks, begun_with, image_args, in_queues, made_up
from buda_emu.verify.inputs.push import push
from buda_emu.workers.files import here
from buda_emu.workers.job import Job, Workers
from buda_emu.workers.spread import in_order, spread

Progress = Callable[[int, int, float], object]
"""Faults done, of how many, in how many seconds."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is hit: the file of a netlist or device image, its programs, parameters ("$name": value), inputs (an .npz
    file; None: made up from the seed), and the precision that it runs in. `memory_limit`: bytes (default: most of what
    is there)."""

    path: str
    arch: str | None = None
    programs: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    inputs: str | None = None
    precision: Precision = "format"
    memory_limit: int | None = None


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes the bench of a campaign, in this process or another."""

    subject: Subject
    settings: Settings

    def __call__(self) -> Bench:
        """Records a clean run."""
        subject = self.subject
        opened = open_file(here(subject.path), subject.arch)
        netlist, image = opened.netlist, opened.image
        bodies = chosen_programs(netlist, subject.programs)
        config = read_test_config(netlist.path, netlist.sections)
        args = {**image_args(image), **config.args}
        values = {**default_parameters(bodies, args), **known_parameters(bodies, dict(subject.parameters))}
        limit = subject.memory_limit or default_memory_limit()

        def fill(emulator: Emulator) -> None:
            if subject.inputs is not None:
                blocks = archive_blocks(netlist, Path(here(subject.inputs)), image, limit)
            else:
                held = image.held_queues if image else frozenset[str]()
                blocks = made_up(netlist, config, bodies, values, 0, image, given=held)
            push(emulator, begun_with(image))
            push(emulator, in_queues(image, blocks))

        trace = record(netlist, fill, {body.name: values for body in bodies}, subject.precision, limit)
        names = {op.name for op in netlist.ops.values()} | netlist.queues.keys()
        if self.settings.only and self.settings.only not in names:
            hint = near(self.settings.only, names)
            raise HostError(f"no op or queue {self.settings.only!r}{f' ({hint})' if hint else ''}")
        cycles, hours_of_a_cycle = self._times()
        sites = Sites(trace, cycles, self.settings.only)
        return Bench(trace, sites, self.settings, sites.bit_cycles * hours_of_a_cycle)

    def _times(self) -> tuple[dict[tuple[str, ...], tuple[float, float]], float]:
        """By graphs, the modelled cycles of one execute, and of one input; and the hours of a cycle by the chip's
        clock. Nothing and 0 where they are not modelled."""
        subject = self.subject
        try:
            found = perf(
                here(subject.path), arch=subject.arch, programs=subject.programs, parameters=dict(subject.parameters)
            )
        except UnsupportedError:
            return {}, 0.0
        cycles = {epoch.graphs: (float(epoch.timing.total), float(epoch.pace)) for epoch in found.epochs}
        return cycles, found.run.seconds(1.0) / 3600


def faults(
    source: "str | PathLike[str] | Subject",
    count: int = 1000,
    *,
    settings: Settings | None = None,
    workers: int = 1,
    dask: str | None = None,
    known: Iterable[Effect] = (),
    seconds: float | None = None,
    progress: Progress | None = None,
    done: Callable[[Sequence[Effect]], object] | None = None,
) -> Campaign:
    """Inject `count` single faults into one run of a netlist or device image and say what each does.

    `settings`: what is hit and how it is judged. `workers` processes, or the Dask cluster whose scheduler is at
    `dask`, share the work; the result does not depend on them. `known`: effects of an interrupted campaign, which are
    not found again; `done` is told of each part. `seconds`
    bounds the time: the faults until then are the result. Ctrl-C does, too.

    Raises NetlistError, HostError (an unknown kind, place, op or program), ProgramError as the run would,
    UnsupportedError (values of the whole run do not fit the memory limit; rams with several views).
    """
    settings = settings or Settings()
    _require_words(settings.kinds, KINDS, "kind")
    _require_words(settings.places, PLACES, "place")
    make = Maker(source if isinstance(source, Subject) else Subject(fspath(source)), settings)
    bench = make()
    found = {effect.fault.number: effect for effect in known}
    numbers = [number for number in range(count) if number not in found]
    start = time.perf_counter()
    try:
        with closing(_parts(make, numbers, Workers(workers, dask), bench)) as parts:
            for part in parts:
                found |= {effect.fault.number: effect for effect in part}
                if done is not None:
                    done(part)
                if progress is not None:
                    progress(len(found), count, time.perf_counter() - start)
                if seconds is not None and time.perf_counter() - start > seconds:
                    break
    except KeyboardInterrupt:
        pass
    netlist = bench.trace.netlist
    return Campaign(
        netlist.path, netlist.arch_name, make.subject.precision, settings.seed, settings.as_json(),
        tuple(found[number] for number in sorted(found)), bench.bit_hours,
        len(found) == count,
    )  # fmt: skip


def _parts(
    make: Maker, numbers: Sequence[int], workers: Workers, bench: Bench
) -> Generator[Sequence[Effect], None, None]:
    """What faults of these numbers do, in parts and in their order."""
    if workers.alone:
        for part in batches(numbers):
            yield effects_of(bench, part)
        return
    subject = make.subject
    files = (subject.path,) if subject.inputs is None else (subject.path, subject.inputs)
    job = Job("buda_emu.api.faults:injector", make, files)
    with closing(in_order(spread(job, batches(numbers), workers))) as parts:
        yield from parts


def injector(make: Maker) -> Callable[[Sequence[int]], list[Effect]]:
    """The work of a campaign on workers: what faults of some numbers do."""
    return partial(effects_of, make())


def _require_words(given: Sequence[str], known: Sequence[str], what: str) -> None:
    for word in given:
        if word not in known:
            hint = f" ({meant})" if (meant := near(word, known)) else ""
            raise HostError(f"{what} {word!r} is none of {', '.join(known)}{hint}")
    if not given:
        raise HostError(f"no {what} is given: {', '.join(known)}")


__all__ = ["Campaign", "Settings", "Subject", "faults"]
