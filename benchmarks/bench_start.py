#!/usr/bin/env python3
"""What nobody should notice: the start of a process, small and run-once netlists, loading, memory touched first.

    python benchmarks/bench_start.py [--quick] [--repeat 15]

Prints each figure beside its bound, in under four minutes on an idle machine. Whole processes take turns with
`python -c "import numpy"`, and stand as seconds and as multiples of it; what runs in this process is processor time of
its thread, so other work on the machine counts little. `reference`: seconds of the vendor's functional model on one
core with a sgemm of 105 GFLOP/s, allowing for this machine's. `--quick` leaves out what takes long: `test` with cold
caches, and the networks that a cold process touches memory for.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when numpy is imported

import numpy as np

import buda_emu as be
from bench_cli import COMMAND, ONE_OP
from bench_load import measure as loading
from bench_mha import times as mha_times
from conditions import ROOT, SHARED, conditions, public_netlists
from run import REFERENCE_SGEMM, Job, sgemm, vector_jobs

EXECUTES = 500
HEAVY = ("resnet50", "bert_base_train")


def line(title: str, value: str, bound: str) -> None:
    """Print a line of the table."""
    print(f"{title:62} {value:>34} {bound:>16}", flush=True)


# ------------------------------------------------------------------------------------------------------ whole processes
def process(command: Sequence[str], cache: Path) -> tuple[float, float]:
    """Return seconds and processor seconds (with all children) of a process, which must succeed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache)}
    for name in ("PYTHONDONTWRITEBYTECODE", "OPENBLAS_NUM_THREADS"):
        environment.pop(name, None)  # byte code is kept, as after an installation
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    took = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def beside_numpy(command: Sequence[str], cache: Path, repeat: int, before: Callable[[], None] = lambda: None) -> str:
    """Return the median seconds of a process, and its seconds and processor time as multiples of `import numpy`."""
    numpy = (sys.executable, "-c", "import numpy")
    measured = list[tuple[float, float]]()
    numpys = list[tuple[float, float]]()
    for _ in range(repeat):
        before()
        measured.append(process(command, cache))
        numpys.append(process(numpy, cache))
    seconds, cpu = map(statistics.median, zip(*measured, strict=True))
    numpy_seconds, numpy_cpu = map(statistics.median, zip(*numpys, strict=True))
    return f"{seconds:.3f} s, {seconds / numpy_seconds:.2f}, {cpu / numpy_cpu:.2f} x numpy"


def processes(cache: Path, repeat: int, quick: bool) -> None:
    """Measure `run` and `test` with kernels and netlists in the caches, and `test` without."""

    def forget_verdicts() -> None:
        for file in cache.rglob("verdicts/*"):
            file.unlink()

    def forget_all() -> None:
        process((*COMMAND, "cache", "clear"), cache)

    test = (*COMMAND, "test", "netlists/")
    if not quick:
        netlists = sorted(map(str, (ROOT / "netlists").glob("*.yaml")))
        for name, command in (
            (f"the {len(netlists)} netlists/*.yaml", (*COMMAND, "test", *netlists)),
            ("all of netlists/", test),
        ):
            forget_all()
            seconds, cpu = process(command, cache)
            line(f"test {name}, nothing in the caches", f"{seconds:.1f} s ({cpu:.1f} s of processors)", "10 s")
    run = (*COMMAND, "run", "netlists/matmul.yaml")
    for command in (run, test):
        process(command, cache)
    line("run netlists/matmul.yaml, warm", beside_numpy(run, cache, repeat), "0.25 s")
    few = max(3, repeat // 3)
    line("test netlists/, kernels in the caches", beside_numpy(test, cache, few, forget_verdicts), "1.2 s")
    line("test netlists/, nothing changed", beside_numpy(test, cache, few), "")


# --------------------------------------------------------------------------------------------------------- in a process
def launch(threads: int) -> float:
    """Return the microseconds of one execute of one op of one tile, in a loop."""
    text = ONE_OP.replace("- execute", "- loop: $n\n    - execute")
    text = text.replace("{$zero: 0}", f"{{$zero: 0, $n: {EXECUTES}}}")
    text = text.replace("{input: copy, type: queue,", "{input: copy, type: ram,")
    settings = "prologue: false, epilogue: false, zero: false, rd_ptr_global: 0, wr_ptr_global: 0"
    text = text.replace("}}}\n", f"}}, b: {{{settings}}}}}}}\n    - endloop:\n")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "one_op.yaml"
        path.write_text(text, encoding="utf-8")
        netlist = be.load(path, cache=False)
    with be.Emulator(netlist, threads=threads) as emulator:
        emulator.push("a", np.ones((1, 1, 32, 32), np.float32))
        return 1e6 * min(_thread_seconds(lambda: emulator.run("run")) for _ in range(20)) / EXECUTES


def _thread_seconds(call: Callable[[], Any]) -> float:
    """Return the processor seconds that a call takes in this thread."""
    start = time.thread_time()
    call()
    return time.thread_time() - start


def beside_reference(job: Job, threads: int, repeat: int = 7) -> str:
    """Run the programs of a job on new machines, and return seconds of the first run, of the fastest later one, and how
    many times faster than the reference that is."""
    netlist = be.load(job.path, arch=job.arch)
    inputs = job.inputs(netlist)
    took: list[float] = []
    for _ in range(repeat + 1):
        with be.Emulator(netlist, threads=threads) as emulator:
            for name, array in inputs:
                emulator.push(name, array)
            start = time.perf_counter()
            for program in job.programs:
                emulator.run(program, job.parameters)
            took.append(time.perf_counter() - start)
    least = min(took[1:])
    speed = sgemm(0.1)
    ratio = (job.reference or 0) / (least * speed / REFERENCE_SGEMM)
    return f"first {1e3 * took[0]:.1f}, then {1e3 * least:.2f} ms, {ratio:.1f} times"


def small() -> None:
    """Measure launches, and netlists whose epochs run once."""
    for threads in (1, 2):
        line(f"execute of one op, threads {threads}", f"{launch(threads):.1f} us", "60 us")
    bounds: Mapping[str, str] = {
        "netlist_bert_2x_encoder_1x_whb0_tiny_training": "4 times",
        "netlist_reduce_r_dim_output_1x32_tile_dim": "4 times",
        "netlist_fused_op_with_reduce": "4 times",
    }
    path = SHARED / "corpus" / "netlists" / "verif" / "graph_tests" / "netlists" / "netlist_bert_mha.yaml"
    if path.exists():
        for threads in (1, 2):
            least = 1e3 * min(mha_times(str(path), threads, 200))
            line(f"netlist_bert_mha, threads {threads}", f"{least:.2f} ms", "1 ms")
    for job in vector_jobs("vectors"):
        least_times = next((text for name, text in bounds.items() if name in job.name), None)
        if least_times is not None:
            for threads in (1, 2):
                line(f"{Path(job.name).stem[:48]}, threads {threads}", beside_reference(job, threads), least_times)


def cold_and_warm(job: Job) -> None:
    """Measure the first run of a new process beside its second, and the most memory that it held. Another process runs
    the netlist before, since compiling kernels is no matter of memory.

    Beside it stands the time that two threads of another process need to touch as much memory as the first run took,
    and nothing else: a virtual machine whose host takes unused memory back waits for the host at each first touch.
    """
    script = (
        "import resource, sys, time\n"
        f"sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'benchmarks')!r}]\n"
        "from run import vector_jobs\n"
        "import buda_emu as be\n"
        f"job = next(job for job in vector_jobs('vectors_heavy') if job.name == {job.name!r})\n"
        "netlist = be.load(job.path, arch=job.arch)\n"
        "for _ in range(int(sys.argv[1])):\n"
        "    with be.Emulator(netlist, threads=2) as emulator:\n"
        "        for name, array in job.inputs(netlist):\n"
        "            emulator.push(name, array)\n"
        "        held = int(open('/proc/self/statm').read().split()[1])\n"
        "        before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()\n"
        "        for program in job.programs:\n"
        "            emulator.run(program, job.parameters)\n"
        "        took, now = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)\n"
        "        system = now.ru_stime - before.ru_stime\n"
        "        held = (int(open('/proc/self/statm').read().split()[1]) - held) * resource.getpagesize() / 2**20\n"
        "        print(took, system + now.ru_utime - before.ru_utime, system, held, now.ru_maxrss / 1024)\n"
    )
    _, measured = (
        subprocess.run((sys.executable, "-c", script, runs), stdout=subprocess.PIPE, text=True, check=True).stdout
        for runs in ("1", "2")
    )
    (cold, cold_cpu, cold_system, held, _), (warm, warm_cpu, warm_system, _, peak) = (
        map(float, row.split()) for row in measured.splitlines()
    )
    line(f"{Path(job.name).stem[:40]}, cold, warm", f"{cold:.1f}, {warm:.1f} s, {cold / warm:.2f}", "1.25")
    value = f"{cold_cpu:.1f}, {warm_cpu:.1f} s, {cold_cpu / warm_cpu:.2f}"
    line(f"  processors; in the system {cold_system:.1f}, {warm_system:.1f}; peak {peak:.0f} MiB", value, "")
    alone = seconds_to_touch(held)
    line(f"  to touch {held:.0f} MiB and nothing else", f"{alone:.1f} s of {cold - warm:.1f} s", "")


def seconds_to_touch(mebibytes: float) -> float:
    """Return the seconds in which two threads of a new process touch so much memory, in large pages if the system has
    them. The process first waits as long as a netlist takes to load, since hosts take memory back a little after it
    was given up."""
    script = (
        "import mmap, sys, threading, time\n"
        "import numpy as np\n"
        "half = int(float(sys.argv[1]) * 2**19)\n"
        "memory = mmap.mmap(-1, 2 * half, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
        "if hasattr(mmap, 'MADV_HUGEPAGE'):\n"
        "    memory.madvise(mmap.MADV_HUGEPAGE)\n"
        "pages = np.frombuffer(memory, np.uint8)[:: mmap.PAGESIZE]\n"
        "parts = np.array_split(pages, 2)\n"
        "threads = [threading.Thread(target=part.fill, args=(1,)) for part in parts]\n"
        "time.sleep(5)\n"
        "start = time.perf_counter()\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print(time.perf_counter() - start)\n"
    )
    command = (sys.executable, "-c", script, str(mebibytes))
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeat", type=int, default=15)
    args = parser.parse_args()
    print(conditions())
    line("", "figure", "bound")
    with tempfile.TemporaryDirectory() as directory:
        processes(Path(directory), args.repeat, args.quick)
    small()
    netlists = public_netlists()
    if netlists:
        with tempfile.TemporaryDirectory() as directory:
            before = os.environ.get("XDG_CACHE_HOME")
            os.environ["XDG_CACHE_HOME"] = directory
            took = loading(netlists[-1], 3)
            os.environ.pop("XDG_CACHE_HOME")
            if before is not None:
                os.environ["XDG_CACHE_HOME"] = before
        tree, check, cached = (took[name] / took["events"] for name in ("tree", "check", "kept"))
        title = f"largest netlist, in multiples of libyaml's events ({took['events']:.0f} ms)"
        line(title, f"tree {tree:.2f}, check {check:.2f}, kept {cached:.2f}", "1.5")
    if not args.quick:
        for job in vector_jobs("vectors_heavy"):
            if any(name in job.name for name in HEAVY):
                cold_and_warm(job)


if __name__ == "__main__":
    main()
