#!/usr/bin/env python3
"""Are bugs in kernels found by generated netlists, and how small does `reduce` make what shows them?

    python tools/planted_bugs.py                     20 mutants of the kernels of ops, drawn by --seed
    python tools/planted_bugs.py --count 5 --seconds 60

One mutant at a time stands in a copy of the package. Generated netlists run in it by its kernels and by the plain
definitions of the ops, on all three architectures and in both precisions that have kernels of their own, until bits
differ or a run fails; then the netlist is reduced as long as it does so. Prints a line for each and the sums; exit code
1 where less than nine tenths are found, or a netlist keeps more than three ops.

Drawn from files whose kernels netlists run: not from those of other documents, of timelines, or that make kernels.
"""

import argparse
import ast
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from mutation.judging import explained
from mutation.sites import PACKAGE, ROOT, Mutant, sample

OTHERS = ("darwinn", "timeline", "intrinsics")
ARCHS = ("wormhole_b0", "blackhole", "grayskull")
PRECISIONS = ("device", "format")
TRIED = "tried.yaml"


def planted(count: int, seed: int) -> list[Mutant]:
    """Mutants of kernels that change what is computed: those that are known to change nothing are left out."""
    root = PACKAGE / "kernels"
    files = [path for path in sorted(root.rglob("*.py")) if path.relative_to(root).parts[0] not in OTHERS]
    known = explained()
    drawn = [item for item in sample(files, 3 * count, seed) if not item.at_import and item.key not in known]
    return drawn[:: max(1, len(drawn) // count)][:count]


def hunt(seconds: float, seed: int) -> dict[str, object]:
    """In a process that imports the mutant: the first netlist that shows it, and the smallest. Which one is tried is
    printed, and stands in `TRIED`: a mutant may end the process."""
    from buda_emu.testing import generate

    start = time.process_time()  # other work on the machine does not count
    number = 0
    while time.process_time() - start < seconds:
        arch, precision = ARCHS[number % 3], PRECISIONS[number // 3 % 2]
        made = generate(1000 * seed + number, arch=arch)
        number += 1
        Path(TRIED).write_text(made.text)
        took = time.process_time() - start
        last = {"netlists": number, "seconds": took, "ops": len(made.netlist.ops), "arch": arch, "precision": precision}
        print(json.dumps(last), flush=True)
        if shows(made.text, precision, arch):
            took = time.process_time() - start
            ops, text = _reduced(made.netlist, partial(shows, precision=precision, arch=arch))
            return {
                "netlists": number, "seconds": took, "ops": len(made.netlist.ops), "left": ops, "arch": arch,
                "precision": precision, "reduce": time.process_time() - start - took, "text": text,
            }  # fmt: skip
    return {"netlists": number, "seconds": seconds, "ops": None}


def shows(text: str, precision: str, arch: str) -> bool:
    """Whether a netlist gives other bits than the plain definitions, or fails."""
    from plain_definitions import difference

    try:
        return difference(text, precision, arch) != ""
    except Exception:  # noqa: BLE001 - a kernel that fails shows its bug, too
        return True


def _reduced(netlist, fails):
    """Ops of the smallest netlist that still fails, and its text."""
    from buda_emu.testing.reduce.search import reduce_netlist
    from buda_emu.testing.reduce.trials import Outcome

    class Here:
        """Trials in this process: a mutant's kernels are compiled once."""

        count, workers = 0, 1

        def run(self, texts: list[str]) -> list[Outcome]:
            self.count += len(texts)
            return [Outcome(1 if fails(text) else 0) for text in texts]

    found = reduce_netlist(netlist, Here(), most_trials=400)  # type: ignore[arg-type]
    return len({op.written_name for op in found.netlist.ops.values()}), found.text


def main() -> int:
    """Plant, hunt, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--seconds", type=float, default=300.0, help="processor time for each, to find it (default 300)"
    )
    parser.add_argument("--hunt", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--shows", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.shows:
        return int(shows(Path(args.shows[0]).read_text(), *args.shows[1:]))
    if args.hunt:
        print(json.dumps(hunt(args.seconds, args.seed)))
        return 0
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "buda_emu"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        for mutant in planted(args.count, args.seed):
            place = copy / mutant.path.relative_to(PACKAGE)
            place.write_text(ast.unparse(mutant.tree), encoding="utf-8")
            row = _in_copy(Path(folder), args)
            shutil.copyfile(mutant.path, place)
            rows.append(row)
            print(f"{mutant}\n  {_said(row)}", flush=True)
    found = [row for row in rows if row.get("ops")]
    small = [row for row in found if row["left"] <= 3]
    print(f"{len(found)} of {len(rows)} found, {len(small)} of them reduced to 3 ops or fewer")
    return 0 if len(found) >= 0.9 * len(rows) and len(small) == len(found) else 1


def _in_copy(folder: Path, args: argparse.Namespace) -> dict:
    path = os.pathsep.join(map(str, (folder, ROOT / "tests" / "helpers", ROOT / "tools")))
    command = [sys.executable, __file__, "--hunt", "--seconds", str(args.seconds), "--seed", str(args.seed)]
    try:
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}, cwd=folder, capture_output=True,
            text=True, timeout=20 * args.seconds + 900, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"netlists": 0, "seconds": args.seconds, "ops": None, "error": "no end"}
    if done.returncode < 0 and done.stdout:
        return _of_crash(json.loads(done.stdout.splitlines()[-1]), folder, path)
    if done.returncode:
        said = done.stderr.strip()[-200:] or f"ended with {done.returncode}"
        return {"netlists": 0, "seconds": 0.0, "ops": None, "error": said}
    return json.loads(done.stdout.splitlines()[-1])


def _of_crash(row: dict, folder: Path, path: str) -> dict:
    """A mutant that ends the process has shown itself; each trial of the reduction is a process then."""
    start = time.monotonic()
    words = [sys.executable, __file__, "--shows", "{}", row["precision"], row["arch"]]
    check = shlex.join(["env", f"PYTHONPATH={path}", "PYTHONSAFEPATH=1", *words]).replace("'{}'", "{}")
    command = [
        sys.executable,
        "-m",
        "buda_emu",
        "reduce",
        str(folder / TRIED),
        "--check",
        check,
        "--json",
        "small.json",
    ]
    subprocess.run(
        [*command, "--arch", row["arch"], "--trials", "200", "-q"], cwd=folder, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    left = json.loads((folder / "small.json").read_text())["sizes"]["ops"]["after"]
    return {**row, "left": left, "reduce": time.monotonic() - start}


def _said(row: dict) -> str:
    if row.get("error"):
        return f"no hunt: {row['error']}"
    if not row["ops"]:
        return f"not found by {row['netlists']} netlists in {row['seconds']:.0f} s"
    return (
        f"netlist {row['netlists']} shows it after {row['seconds']:.1f} s ({row['arch']}, {row['precision']}): "
        f"{row['ops']} ops, reduced to {row['left']} in {row['reduce']:.1f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
