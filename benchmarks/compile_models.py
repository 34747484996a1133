#!/usr/bin/env python3
"""Models at their originals' sizes: compiled, held against the rules and against torch, timed.

    python benchmarks/compile_models.py                                  # all, wormhole_b0, precisions ideal and format
    python benchmarks/compile_models.py --models resnet50 bert_base --archs grayskull blackhole
    python benchmarks/compile_models.py --models resnet18 --precisions device --json figures.json

Weights and inputs are random and hang on --seed alone; needs torch. One line for each model and architecture: CPU
seconds of `be.compile` (torch's export apart), the same as a multiple of torch's export here, ops and epochs,
findings of `check --strict`, modelled inputs per second, and for each precision the least correlation of an output with
torch's. Where `BUDA_EMU_ROUTER` names the vendor's net2pipe and pipegen2, they take each netlist, too. Exit status 1
when there is a finding, or a figure misses its bound, or those programs refuse. `--json` writes all that is measured.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

import buda_emu as be
from buda_emu.compiler.compiled import difference
from buda_emu.report.terminal.text import table
from buda_emu.support.version import RESULT_VERSION
from conditions import conditions
from zoo.full_size import NAMES, build

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/helpers"))
import vendor_router

PCC = {"ideal": 0.99999, "format": 0.999, "device": 0.99}
SECONDS = {"mlp": 1.0, "bert_base": 20.0, "resnet50": 45.0}
"""Bounds of `be.compile`."""


@dataclass(slots=True)
class Measured:
    """The figures of one model on one architecture. Times are CPU seconds; `memory` is the most that the process has
    held, in bytes."""

    model: str
    arch: str
    parameters: int
    export: float
    compile: float
    check: float = 0.0
    ops: int = 0
    epochs: int = 0
    findings: list[str] = field(default_factory=list)
    refused: str = ""
    inputs_per_second: float = 0.0
    pcc: dict[str, float] = field(default_factory=dict)
    run: dict[str, float] = field(default_factory=dict)
    memory: int = 0

    def misses(self) -> list[str]:
        """Return a line for each figure that misses its bound."""
        problems = [f"{len(self.findings)} findings, the first: {self.findings[0]}"] if self.findings else []
        problems += [f"the vendor's {self.refused}"] if self.refused else []
        problems += [f"{word}: PCC {value:.6f}" for word, value in self.pcc.items() if not value >= PCC[word]]
        if self.compile > SECONDS.get(self.model, float("inf")):
            problems.append(f"compile: {self.compile:.1f} s, bound {SECONDS[self.model]:g} s")
        return [f"{self.model} {self.arch}: {text}" for text in problems]

    def row(self, precisions: list[str]) -> tuple[str, ...]:
        """Return the cells of the table."""
        return (
            self.model,
            self.arch,
            f"{self.compile:.1f}",
            f"{self.compile / self.export:.1f}",
            f"{self.ops}, {self.epochs}",
            str(len(self.findings)),
            f"{self.inputs_per_second:.0f}",
            *(f"{self.pcc[word]:.9f}" if word in self.pcc else "-" for word in precisions),
        )


def cpu_seconds(work: Any) -> tuple[Any, float]:
    """Return the result of some work, and its CPU seconds."""
    start = time.process_time()
    return work(), time.process_time() - start


def measure(name: str, arch: str, seed: int, precisions: list[str], df: str, fidelity: str) -> Measured:
    """Build, export, compile, check and run one model."""
    module, inputs = build(name, seed)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = module(*inputs)
        program, export = cpu_seconds(lambda: torch.export.export(module, inputs).run_decompositions({}))
        compiled, seconds = cpu_seconds(lambda: be.compile(program, arch=arch, df=df, fidelity=fidelity, name=name))
    outputs = expected if isinstance(expected, tuple) else (expected,)
    parameters = sum(parameter.numel() for parameter in module.parameters())
    result = Measured(model=name, arch=arch, parameters=parameters, export=export, compile=seconds)
    findings, result.check = cpu_seconds(lambda: compiled.check(strict=True))
    result.findings = [str(finding) for finding in findings]
    if vendor_router.AVAILABLE:
        with tempfile.TemporaryDirectory() as folder:
            result.refused = vendor_router.refusal(compiled.text, arch, Path(folder))
    result.ops = len(compiled.placement.ops)
    result.epochs = compiled.placement.epochs
    result.inputs_per_second = compiled.perf().inputs_per_second
    for precision in precisions:
        got, result.run[precision] = cpu_seconds(lambda word=precision: compiled(*inputs, precision=word))
        correlations = [difference("", want.numpy(), have).pcc or 0.0 for want, have in zip(outputs, got, strict=True)]
        result.pcc[precision] = float(np.min(correlations))
        compiled.close()
    result.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return result


def main() -> int:
    """Measure and print."""
    args = _parse_arguments()
    measure("mlp", args.archs[0], args.seed, args.precisions, args.df, args.fidelity)  # imports are nobody's time
    print(f"{conditions()}; torch {torch.__version__}; {args.df}, {args.fidelity}, seed {args.seed}")
    print("" if vendor_router.AVAILABLE else "Without the vendor's programs, which are not here")
    headers = ("model", "arch", "compile s", "x export", "ops, epochs", "findings", "inputs/s", *args.precisions)
    measured: list[Measured] = []
    for name in args.models:
        for arch in args.archs:
            measured.append(measure(name, arch, args.seed, args.precisions, args.df, args.fidelity))
            print(f"  {measured[-1].row(args.precisions)}", file=sys.stderr, flush=True)
    print(table(headers, (result.row(args.precisions) for result in measured), right=(2, 3, 5, 6)))
    missed = list(chain.from_iterable(result.misses() for result in measured))
    for text in missed:
        print(f"missed: {text}")
    if args.json is not None:
        figures = {
            "schema_version": RESULT_VERSION,
            "conditions": conditions(),
            "torch": torch.__version__,
            "df": args.df,
            "fidelity": args.fidelity,
            "seed": args.seed,
            "models": [asdict(result) for result in measured],
        }
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if missed else 0


def _parse_arguments() -> argparse.Namespace:
    """Return the options of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(NAMES), choices=NAMES, metavar="NAME")
    parser.add_argument("--archs", nargs="+", default=["wormhole_b0"], metavar="ARCH")
    parser.add_argument("--precisions", nargs="*", default=["ideal", "format"], choices=tuple(PCC), metavar="WORD")
    parser.add_argument("--df", default="Float16_b")
    parser.add_argument("--fidelity", default="HiFi3")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
