#!/usr/bin/env python3
"""Run a corpus of netlists in precision device, and say how far each output is from ideal (issue 7).

    python tools/device_sweep.py CORPUS [-k TEXT] [--vectors NAME] [--most SECONDS] [--both] [--out FILE.tsv]

CORPUS has `NAME/**/*.json` (default `vectors`), which name a netlist, its programs, parameters and inputs, and
`stimulus.py`, which makes the inputs. One line per output: netlist, queue, PCC of format and of device against ideal,
seconds of both, "fine" where every format of the netlist has 16 bits or more and every fidelity is HiFi3 or HiFi4, and
with `--both` whether 1 and 2 threads give the "same" bits or "other" ones.
A netlist that takes longer than `--most` seconds in `format` is left out, and so said.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import buda_emu as be
from buda_emu.netlist.model import Netlist
from buda_emu.spec.formats import FORMATS

Arrays = Mapping[str, NDArray[Any]]


def run(netlist: Netlist, vector: Mapping[str, Any], inputs: Arrays, precision: Any, threads: int) -> Arrays:
    """Return the outputs after the vector's programs."""
    with be.Emulator(netlist, precision=precision, threads=threads) as emulator:
        for name, array in inputs.items():
            emulator.push(name, array)
        for program in vector["programs"]:
            emulator.run(program, vector["params"])
        return emulator.outputs(readout="raw")


def pcc(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Return the correlation of the elements that are finite in both: 1 for equal tensors, 0 if one of them is
    constant."""
    x = a.astype(np.float64).reshape(-1)
    y = b.astype(np.float64).reshape(-1)
    if np.array_equal(x, y, equal_nan=True):
        return 1.0
    finite = np.isfinite(x) & np.isfinite(y)
    x = x[finite]
    y = y[finite]
    if not len(x) or x.std() == 0 or y.std() == 0:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def _same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Return whether two arrays have the same shape and bits."""
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def is_fine(netlist: Netlist) -> bool:
    """Return whether all formats have 16 bits or more and all fidelities are HiFi3 or HiFi4."""
    ops = netlist.ops.values()
    words = {queue.df for queue in netlist.queues.values()}
    for op in ops:
        words.update((*op.in_df, op.out_df, op.intermed_df, op.acc_df))
    wide = all(FORMATS[word].bits >= 16 for word in words if word in FORMATS)
    return wide and all(op.math_fidelity in ("HiFi3", "HiFi4") for op in ops)


def sweep(corpus: Path, path: Path, most_seconds: float, threads: int, compare_threads: bool) -> list[tuple[str, ...]]:
    """Return the lines of one vector."""
    sys.path.insert(0, str(corpus))
    import stimulus  # pyright: ignore[reportMissingImports] # of the corpus

    vector = json.loads(path.read_text())
    name = vector["netlist"]
    netlist = be.load(str(corpus / "netlists" / name), arch=vector["arch"])
    stored = _stored_arrays(path.with_suffix(".npz"))
    inputs = {queue: stimulus.generate(spec, stored, queue) for queue, spec in vector["inputs"].items()}
    seconds: dict[str, float] = {}
    outputs: dict[str, Arrays] = {}
    for precision in ("format", "ideal", "device"):
        if precision == "device" and seconds["format"] > most_seconds:
            return [(name, "-", "left out", "", f"{seconds['format']:.2f}", "", "")]
        start = time.perf_counter()
        try:
            outputs[precision] = run(netlist, vector, inputs, precision, threads)
        except be.BudaError as error:
            return [(name, "-", f"{precision}: {type(error).__name__}: {str(error).splitlines()[0]}", "", "", "", "")]
        seconds[precision] = time.perf_counter() - start
    if compare_threads:
        outputs["other threads"] = run(netlist, vector, inputs, "device", 3 - threads)
    fine = "fine" if is_fine(netlist) else ""
    times = f"{seconds['format']:.2f}", f"{seconds['device']:.2f}"
    return [
        (name, queue, *_correlations(outputs, queue), *times, fine, _bits(outputs, queue))
        for queue in outputs["ideal"]
        if FORMATS[netlist.queues[queue].df].kind != "raw"
    ]


def _stored_arrays(path: Path) -> dict[str, Any]:
    """Return the arrays beside a vector; none if there is no file of them."""
    return dict(np.load(path)) if path.exists() else {}


def _correlations(outputs: Mapping[str, Arrays], queue: str) -> tuple[str, str]:
    """Return the PCC of `format` and of `device` against `ideal`."""
    ideal = outputs["ideal"][queue]
    return f"{pcc(outputs['format'][queue], ideal):.6f}", f"{pcc(outputs['device'][queue], ideal):.6f}"


def _bits(outputs: Mapping[str, Arrays], queue: str) -> str:
    """Return whether another number of threads gives the same bits; nothing if it was not tried."""
    if "other threads" not in outputs:
        return ""
    return "same" if _same(outputs["device"][queue], outputs["other threads"][queue]) else "other"


def main() -> None:
    """Sweep and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("-k", default="", help="only vectors whose path contains this text")
    parser.add_argument("--vectors", default="vectors", metavar="NAME", help="folder of the corpus (default vectors)")
    parser.add_argument("--most", type=float, default=5.0, help="seconds in format (default 5)")
    parser.add_argument("--threads", type=int, choices=(1, 2), default=1)
    parser.add_argument("--both", action="store_true", help="compare the bits with the other number of threads")
    parser.add_argument("--out", type=Path, help="also write the lines there")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    paths = sorted(path for path in (arguments.corpus / arguments.vectors).rglob("*.json") if arguments.k in str(path))
    out = arguments.out.open("w") if arguments.out else None
    for path in paths:
        try:
            lines = sweep(arguments.corpus, path, arguments.most, arguments.threads, arguments.both)
        except Exception as error:  # noqa: BLE001 # whatever fails is a result
            lines = [(str(path), "-", f"{type(error).__name__}: {error}", "", "", "", "")]
        for line in lines:
            text = "\t".join(line)
            print(text, flush=True)
            if out:
                print(text, file=out, flush=True)


if __name__ == "__main__":
    main()
