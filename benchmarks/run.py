#!/usr/bin/env python3
"""Whole runs of netlists, stage by stage, beside what the reference model needed for their programs.

    python benchmarks/run.py                              # own netlists
    python benchmarks/run.py --vectors                    # all public vectors of the corpus
    python benchmarks/run.py --vectors-heavy --threads 2  # the big ones
    python benchmarks/run.py -k bert_mha --vectors        # some
    python benchmarks/run.py --keep                       # and keep the results of this machine in benchmarks/results
    python benchmarks/run.py --compare OLD.json           # what got slower since the last of these results

Each netlist is run once to warm up (kernels compiled or loaded, memory in place), then `--repeat` times on a new
machine. Seconds: `load` the document, `push` its inputs, `first` the programs with planning, `run` the programs on a
new machine (the least of the repetitions), `cpu` the processor time of that, all threads; `pop` the outputs. `peak` is
the most memory that the process ever held, in MiB. `ratio`: reference seconds / (`run` x sgemm here / sgemm there), so
above 1 is faster than the reference on a machine whose sgemm is as fast. The speed of a virtual machine changes from
second to second with what its neighbours do: `sgemm`, numpy's in GFLOP/s on one thread, is the mean of what was
measured just before and after each run.

With --keep and --compare every repetition goes through all stages, each beside a yardstick (tools/bench_history.py),
and what differs by more than the repetitions do among themselves is told. Exit code 1: something got slower.
"""

import argparse
import datetime
import json
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when numpy is imported
os.environ["MKL_NUM_THREADS"] = "1"

import numpy as np

import buda_emu as be
from conditions import ROOT, SHARED, conditions, processor

sys.path.append(str(ROOT / "tools"))

from bench_history import changes, file_of, keep, latest, read

Figures = dict[str, list[float]]
REFERENCE_SGEMM = 105.0  # GFLOP/s of one core of the machine that ran the reference (corpus/README)


@dataclass(frozen=True, slots=True)
class Job:
    """A netlist with its inputs. `reference` is the seconds of the reference for the programs, None if it has none."""

    name: str
    path: Path
    arch: str | None
    inputs: Callable[[Any], list[tuple[str, Any]]]
    programs: tuple[str, ...]
    parameters: dict[str, str]
    reference: float | None


def sgemm(seconds: float) -> float:
    """Measure numpy's float32 product of 512^3 on one thread for some seconds; return GFLOP/s."""
    a = np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32)
    out = np.matmul(a, a)
    count = 0
    start = time.perf_counter()
    while not count or time.perf_counter() < start + seconds:
        np.matmul(a, a, out)
        count += 1
    return count * 2 * 512**3 / (time.perf_counter() - start) / 1e9


def project_jobs() -> list[Job]:
    """Return the project's own netlists, with inputs for four loops each."""
    from buda_emu.emulator.inputs.default import default_inputs
    from buda_emu.emulator.inputs.entries import default_parameters
    from buda_emu.netlist.test_config import read_test_config

    jobs: list[Job] = []
    for path in sorted((ROOT / "netlists").glob("*.yaml")):
        netlist = be.load(path)
        config = read_test_config(netlist.path, netlist.sections)
        programs = list(netlist.programs.values())
        parameters = default_parameters(programs, config.args)

        def inputs(net: Any, config: Any = config, programs: Any = programs, parameters: Any = parameters) -> Any:
            blocks = default_inputs(net, config, programs, parameters, seed=0)
            return [(block.queue, block.array) for block in blocks]

        names = tuple(program.name for program in programs)
        jobs.append(
            Job(
                name=path.name,
                path=path,
                arch=None,
                inputs=inputs,
                programs=names,
                parameters=parameters,
                reference=None,
            )
        )
    return jobs


def vector_jobs(folder: str) -> list[Job]:
    """Return the vectors of a folder of the corpus; none without the corpus."""
    corpus = SHARED / "corpus"
    sys.path.insert(0, str(corpus))
    jobs: list[Job] = []
    for path in sorted((corpus / folder).rglob("*.json")):
        vector = json.loads(path.read_text())

        def inputs(_net: Any, path: Path = path, vector: Any = vector) -> Any:
            import stimulus

            stored = path.with_suffix(".npz")
            files = dict(np.load(stored)) if stored.exists() else {}
            return [(name, stimulus.generate(spec, files, name)) for name, spec in vector["inputs"].items()]

        jobs.append(
            Job(
                name=vector["netlist"],
                path=corpus / "netlists" / vector["netlist"],
                arch=vector["arch"],
                inputs=inputs,
                programs=tuple(vector["programs"]),
                parameters=vector["params"],
                reference=vector.get("run_seconds"),
            )
        )
    return jobs


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose netlists."""
    parser.add_argument("--vectors", action="store_true", help="public vectors of the corpus")
    parser.add_argument("--vectors-heavy", action="store_true", help="its big netlists")
    parser.add_argument("-k", default="", metavar="TEXT", help="only netlists whose path contains TEXT")


def select_jobs(args: argparse.Namespace) -> list[Job]:
    """Return the jobs that the options choose: the project's own netlists unless vectors are asked for."""
    jobs: list[Job] = []
    if args.vectors:
        jobs += vector_jobs("vectors")
    if args.vectors_heavy:
        jobs += vector_jobs("vectors_heavy")
    if not (args.vectors or args.vectors_heavy):
        jobs = project_jobs()
    chosen = [job for job in jobs if args.k in job.name]
    if not chosen:
        raise SystemExit(f"no netlist has {args.k!r} in its name, or ../shared is not there")
    return chosen


def measure(job: Job, threads: int, precision: str, repeat: int) -> dict[str, float]:
    """Return the seconds of each stage."""
    took: dict[str, float] = {}

    def time_stage(name: str, call: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        cpu = time.process_time()
        value = call()
        took[f"{name}_cpu"] = min(took.get(f"{name}_cpu", np.inf), time.process_time() - cpu)
        took[name] = min(took.get(name, np.inf), time.perf_counter() - start)
        return value

    netlist = time_stage("load", lambda: be.load(job.path, arch=job.arch))
    inputs = job.inputs(netlist)

    def once(run: str) -> None:
        with be.Emulator(netlist, precision=precision, threads=threads) as emulator:  # type: ignore[arg-type]
            time_stage("push", lambda: [emulator.push(name, array) for name, array in inputs])
            time_stage(run, lambda: [emulator.run(program, job.parameters) for program in job.programs])
            time_stage("pop", lambda: emulator.outputs())

    once("first")
    beside = min(max(took["first"] / 10, 0.01), 0.5)
    for _ in range(repeat):
        before = sgemm(beside)
        last = took.get("run", np.inf)
        once("run")
        if took["run"] < last:
            took["sgemm"] = (before + sgemm(beside)) / 2
    return took


def copy(seconds: float) -> float:
    """Measure numpy's copies of 32 MiB for some seconds; return GB/s."""
    source = np.ones(8 << 20, np.float32)
    target = np.empty_like(source)
    count = 0
    start = time.perf_counter()
    while not count or time.perf_counter() < start + seconds:
        np.copyto(target, source)
        count += 1
    return count * source.nbytes / (time.perf_counter() - start) / 1e9


def events(text: bytes) -> float:
    """Return the seconds in which libyaml hands out the events of a text."""
    import yaml

    start = time.perf_counter()
    for _ in yaml.parse(text, yaml.CSafeLoader):
        pass
    return time.perf_counter() - start


def ratios(job: Job, threads: int, precision: str, repeat: int, beside: Figures) -> Figures:
    """Return every stage as a multiple of its yardstick, for each repetition, and add the yardsticks' speeds to
    `beside`."""
    by_stage: Figures = {"load": [], "push": [], "run": [], "pop": []}
    text = job.path.read_bytes()

    yardsticks: dict[str, tuple[str, Callable[[], float]]] = {
        "load": ("libyaml", lambda: len(text) / events(text)),
        "push": ("copy", lambda: copy(0.01)),
        "run": ("sgemm", lambda: sgemm(0.02)),
        "pop": ("copy", lambda: copy(0.01)),
    }

    def measure_stage(stage: str, call: Callable[[], Any]) -> Any:
        yardstick, speed = yardsticks[stage]
        before = speed()
        start = time.perf_counter()
        value = call()
        took = time.perf_counter() - start
        mean = (before + speed()) / 2
        by_stage[stage].append(took * mean / (len(text) if stage == "load" else 1))
        beside[yardstick].append(mean / (1e6 if stage == "load" else 1))
        return value

    inputs = job.inputs(be.load(job.path, arch=job.arch))
    measure(job, threads, precision, 0)  # kernels compiled or loaded, memory in place
    for _ in range(repeat):
        netlist = measure_stage("load", lambda: be.load(job.path, arch=job.arch, cache=False))
        with be.Emulator(netlist, precision=precision, threads=threads) as emulator:  # type: ignore[arg-type]
            measure_stage("push", lambda e=emulator: [e.push(name, array) for name, array in inputs])
            measure_stage("run", lambda e=emulator: [e.run(program, job.parameters) for program in job.programs])
            measure_stage("pop", emulator.outputs)
    return by_stage


def measure_ratios(jobs: Iterable[Job], args: argparse.Namespace) -> int:
    """Measure ratios, keep them and compare them as the options say. Return 1 if something got slower, 2 if there is
    nothing to compare with."""
    machine = {"processor": processor(), "cores": os.cpu_count(), "python": platform.python_version()}
    beside: Figures = {"sgemm": [], "copy": [], "libyaml": []}
    run: dict[str, Any] = {
        "at": datetime.date.today().isoformat(),
        "version": be.__version__,
        "threads": args.threads,
        "precision": args.precision,
        "ratios": {},
    }
    for job in jobs:
        by_stage = ratios(job, args.threads, args.precision, args.repeat, beside)
        run["ratios"][job.name] = {stage: list(map(_round, values)) for stage, values in by_stage.items()}
        medians = [f"{stage} {statistics.median(values):9.4g}" for stage, values in by_stage.items()]
        print(" ".join(medians), job.name, flush=True)
    run["yardsticks"] = {name: _round(statistics.median(values)) for name, values in beside.items()}
    slower = 0
    if args.compare is not None:
        old = latest(read(args.compare), run)
        if old is None:
            print(f"{args.compare}: no run with {args.threads} threads in precision {args.precision}")
            return 2
        slower = _print_changes(old, run)
    if args.keep:
        path = file_of(machine, ROOT / "benchmarks" / "results")
        keep(path, machine, run)
        print(f"kept in {path.relative_to(ROOT)}; tools/generate_docs.py writes the page of the history")
    return 1 if slower else 0


def _round(value: float) -> float:
    """Return a value with four significant digits."""
    return float(f"{value:.4g}")


def _print_changes(old: Mapping[str, Any], run: Mapping[str, Any]) -> int:
    """Print what differs from an old run beyond noise, and return how many stages got slower."""
    differences = changes(old["ratios"], run["ratios"])
    for change in differences:
        word = "slower" if change.factor > 1 else "faster"
        print(f"{word}: {change.netlist}, {change.stage}: {change.factor:.2f} times of {old['at']}")
    slower = sum(change.factor > 1 for change in differences)
    print(f"{slower} slower, {len(differences) - slower} faster, the rest within noise")
    return slower


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_selection(parser)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="format")
    parser.add_argument("--repeat", type=int, help="default 1, with --keep or --compare 15")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--least", type=float, default=0.0, metavar="S", help="print only what took S seconds or more")
    parser.add_argument("--keep", action="store_true", help="add the results to those of this machine")
    parser.add_argument("--compare", type=Path, metavar="OLD.json", help="results to compare with")
    args = parser.parse_args()
    print(f"{conditions()}; {args.threads} threads, {args.precision}")
    lasts = args.keep or args.compare is not None
    args.repeat = args.repeat or (15 if lasts else 1)
    if lasts:
        return measure_ratios(select_jobs(args), args)
    stages = " ".join(f"{name:>8}" for name in ("load", "push", "first", "run", "cpu", "pop"))
    print(f"{stages} {'peak':>7} {'reference':>10} {'sgemm':>6} {'ratio':>7}  netlist")
    rows = _measure_stages(args)
    _print_sum([took for took in rows.values() if "reference" in took])
    if args.json is not None:
        args.json.write_text(json.dumps({"schema_version": 1, "threads": args.threads, "netlists": rows}, indent=1))
    return 0


def _measure_stages(args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Measure the stages of each job, print the jobs that took long enough, and return all figures by name."""
    rows: dict[str, dict[str, float]] = {}
    for job in select_jobs(args):
        took = measure(job, args.threads, args.precision, args.repeat)
        took["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        if job.reference is not None:
            took["reference"] = job.reference
        rows[job.name] = took
        if took["run"] >= args.least:
            print(_line(job.name, took), flush=True)
    return rows


def _print_sum(rows: Sequence[dict[str, float]]) -> None:
    """Print the sums of the netlists that the reference ran, too; nothing if there are none."""
    if not rows:
        return
    ours = sum(took["run"] for took in rows)
    theirs = sum(took["reference"] for took in rows)
    ratio = theirs / sum(map(_reference_pace, rows))
    print(f"together: run {ours:.2f} s, reference {theirs:.2f} s, ratio {ratio:.2f} of {len(rows)} netlists")


def _reference_pace(took: dict[str, float]) -> float:
    """Return the seconds that the run would take if sgemm were as fast as it was for the reference."""
    return took["run"] * took["sgemm"] / REFERENCE_SGEMM


def _line(name: str, took: dict[str, float]) -> str:
    """Return the line of a netlist."""
    stages = " ".join(f"{took[key]:8.4f}" for key in ("load", "push", "first", "run", "run_cpu", "pop"))
    reference = took.get("reference")
    ratio = f"{reference / _reference_pace(took):7.1f}" if reference else f"{'-':>7}"
    reference_text = f"{reference:10.3f}" if reference is not None else f"{'-':>10}"
    return f"{stages} {took['peak_mib']:7.0f} {reference_text} {took['sgemm']:6.0f} {ratio}  {name}"


if __name__ == "__main__":
    sys.exit(main())
