"""Inputs per second of the compiler's netlists beside those of the vendor's compiler for the same networks, model
against model; beside the first legal choice, and on several chips.

    python benchmarks/placing.py [NAME ...]           # needs torch; the vendor's netlists beside the project
    python benchmarks/placing.py --functional         # beside its functional tests, which no one made fast
    python benchmarks/placing.py --chips 1,2,4 bert_base resnet50
    python benchmarks/placing.py --latency 1,2,4      # a step of decoding on several chips
    python benchmarks/placing.py --efforts            # low, default and high effort

Same network, sizes, number format, fidelity, microbatch, chip and timing model; loading the epochs is counted on both
sides. The weights are random: cycles do not depend on them. The vendor's BERTs begin behind the embeddings, as do ours
here.
"""

import argparse
import math
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import buda_emu as be
from conditions import SHARED
from zoo.full_size import build
from zoo.vendor import Source, attention, encoders, mobilenet_v3, resnet_head, t5_decoder, unet, yolo_v5

BENCHMARKS = SHARED / "compile" / "vendor"
TESTS = SHARED / "corpus" / "netlists"


class Case(NamedTuple):
    """A network, the options that it is compiled with, and the vendor's netlist of it."""

    source: Callable[[], Source]
    arch: str
    df: str
    fidelity: str
    microbatch: int | None
    netlist: Path | None = None
    keeps: int = 0
    """The number of outputs behind the first that go to caches."""


def _benchmark(source: Callable[[], Source], arch: str, df: str, fidelity: str, microbatch: int, name: str) -> Case:
    """Return a case whose netlist is one of the vendor's benchmarks."""
    return Case(
        source, arch=arch, df=df, fidelity=fidelity, microbatch=microbatch, netlist=BENCHMARKS / arch / f"{name}.yaml"
    )


def _bert_base() -> Source:
    return encoders(12, 768, 12)


def _bert_large() -> Source:
    return encoders(24, 1024, 16, tokens=384)


CASES = {
    "bert_base": _benchmark(
        _bert_base, arch="grayskull", df="Bfp8_b", fidelity="LoFi", microbatch=128, name="bert_base_lofi_bfp8b"
    ),
    "bert_base_v2": _benchmark(
        _bert_base, arch="grayskull", df="Bfp8_b", fidelity="LoFi", microbatch=128, name="bert_base_lofi_bfp8b_v2"
    ),
    "bert_large_lofi": _benchmark(
        _bert_large, arch="grayskull", df="Bfp8_b", fidelity="LoFi", microbatch=128, name="bert_large_lofi_bfp8b_v2"
    ),
    "resnet50_head": _benchmark(
        resnet_head, arch="grayskull", df="Bfp8_b", fidelity="LoFi", microbatch=64, name="resnet50_lofi_bfp8b_may18"
    ),
    "bert_large": _benchmark(
        _bert_large, arch="wormhole_b0", df="Float16_b", fidelity="HiFi3", microbatch=64, name="bert_large_hifi3_fp16b"
    ),
    "mobilenet_v2": _benchmark(
        lambda: build("mobilenet_v2"),
        arch="wormhole_b0",
        df="Float16_b",
        fidelity="HiFi2",
        microbatch=64,
        name="mobilenet_v2_hifi2_fp16b",
    ),
    "mobilenet_v3": _benchmark(
        mobilenet_v3,
        arch="wormhole_b0",
        df="Float16_b",
        fidelity="HiFi2",
        microbatch=64,
        name="mobilenet_v3_hifi2_fp16b",
    ),
    "resnet50": _benchmark(
        lambda: build("resnet50"),
        arch="wormhole_b0",
        df="Float16_b",
        fidelity="HiFi3",
        microbatch=64,
        name="resnet50_hifi3_fp16b",
    ),
    "unet": _benchmark(
        unet, arch="wormhole_b0", df="Float16_b", fidelity="HiFi2", microbatch=48, name="unet_hifi3_fp16b"
    ),
    "yolo_v5": _benchmark(
        yolo_v5, arch="wormhole_b0", df="Float16_b", fidelity="HiFi3", microbatch=64, name="yolo_v5_hifi3_fp16b"
    ),
}
"""What the vendor's compiler wrote for its own benchmarks; formats, fidelities and rounds as they state them. The
products of U-Net's netlist are HiFi2, with parameters in Bfp8_b."""

FUNCTIONAL = {
    "encoder_768": Case(
        lambda: encoders(1, 768, 12), arch="grayskull", df="Bfp8_b", fidelity="LoFi", microbatch=128,
        netlist=TESTS / "verif/graph_tests/netlists/netlist_encoder_device_tilize.yaml",
    ),
    "encoder_128": Case(
        lambda: encoders(1, 128, 4), arch="grayskull", df="Float16_b", fidelity="HiFi3", microbatch=128,
        netlist=TESTS / "verif/graph_tests/netlists/netlist_encoder_grid.yaml",
    ),
    "encoder_128_one": Case(
        lambda: encoders(1, 128, 4), arch="grayskull", df="Float16_b", fidelity="HiFi3", microbatch=1,
        netlist=TESTS / "verif/directed_tests/netlist_bert_encoder.yaml",
    ),
    "attention_128_one": Case(
        attention, arch="grayskull", df="Float16_b", fidelity="HiFi3", microbatch=1,
        netlist=TESTS / "verif/graph_tests/netlists/netlist_bert_mha.yaml",
    ),
    "t5_decoder": Case(
        t5_decoder, arch="wormhole_b0", df="Float16_b", fidelity="HiFi3", microbatch=1,
        netlist=TESTS / "verif/graph_tests/netlists/t5_wormhole_b0.yaml", keeps=24,
    ),
}  # fmt: skip
"""The vendor's functional tests: they show that a chip computes right, and say little of how fast it can."""


def vendor(path: Path) -> tuple[float, int]:
    """Return the inputs per second of one of the vendor's netlists, with one round of each loop, and its epochs."""
    netlist = be.load(path)
    names: set[str] = set()
    for program in netlist.programs.values():
        for step in program.instructions:
            names.update(getattr(step, "names", ()))
    perf = be.perf(netlist, parameters=dict.fromkeys(names, "1"))
    count = max(graph.input_count for graph in netlist.graphs.values())
    seconds = max(perf.run.seconds(perf.cycles), sum(perf.run.host_seconds().values()))
    return count / seconds, len(perf.epochs)


def router_verdict(model: Any, arch: str) -> str:
    """Return `pass`, or the first message of the vendor's net2pipe and pipegen2 against a compiled netlist."""
    if not (SHARED / "routing" / "bin").is_dir():
        return "not asked"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "netlist.yaml")
        path.write_text(model.text)
        command = [sys.executable, SHARED / "routing" / "check.py", "--arch", arch, path]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode == 0:
        return "pass"
    messages = process.stdout.splitlines() or [process.stderr]
    return messages[0].partition(": ")[2]


def compile_case(case: Case, source: Source, **options: Any) -> tuple[float, float, Any]:
    """Return inputs per second, the seconds of `be.compile`, and the compiled model. Ends the benchmark if `check
    --strict` has a finding in its netlist."""
    start = time.process_time()
    if case.keeps:
        options["keeps"] = {1 + number: f"past_{number}" for number in range(case.keeps)}
    model = be.compile(
        *source, arch=case.arch, df=case.df, fidelity=case.fidelity, microbatch=case.microbatch, **options
    )
    seconds = time.process_time() - start
    findings = model.check(strict=True)
    if findings:
        raise SystemExit(f"{len(findings)} findings under --strict, the first: {findings[0]}")
    return model.perf().inputs_per_second, seconds, model


@contextmanager
def refusals(row: str) -> Generator[None]:
    """Print what the compiler refuses as the end of its row, and go on with the next row."""
    try:
        yield
    except be.BudaError as error:
        print(f"{row} refused: {str(error).splitlines()[0]} |", flush=True)


MORE = ("resnet18", "vit_b_16", "whisper_tiny")
"""Models that join the cases in the comparison of efforts: wormhole_b0, Float16_b, HiFi3, rounds of 64, fewer where
memory is full."""


def efforts(names: Sequence[str]) -> None:
    """Print a row for each model: inputs per second of each effort, default's share of high's, and seconds."""
    print("| model | low | default | high | default of high | CPU s, default | high |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    cases = {**CASES, **FUNCTIONAL}
    for name in names or (*cases, *MORE):
        case = cases.get(name) or Case(
            partial(build, name), arch="wormhole_b0", df="Float16_b", fidelity="HiFi3", microbatch=None
        )
        source = case.source()
        with refusals(f"| {name} |"):
            low, default, high = (
                compile_case(case, source, effort=effort)[:2] for effort in ("low", "default", "high")
            )
            print(
                f"| {name} | {low[0]:.0f} | {default[0]:.0f} | {high[0]:.0f} | {100 * default[0] / high[0]:.0f} % | "
                f"{default[1]:.0f} | {high[1]:.0f} |",
                flush=True,
            )


def latency(counts: Sequence[int]) -> None:
    """Print the cycles of one input of a large network of one row on some numbers of chips. Ends the benchmark if
    outputs differ."""
    import numpy as np
    import torch

    torch.manual_seed(0)
    linear = torch.nn.Linear(4096, 11008)
    back = torch.nn.Linear(11008, 4096)
    x = torch.randn(1, 4096)
    module = torch.nn.Sequential(linear, torch.nn.SiLU(), back).eval()
    print("| chips | as | cycles of one input | times |\n| ---: | --- | ---: | ---: |")
    first: Any = None
    for count in counts:
        model = be.compile(module, (x,), df="Bfp8_b", fidelity="LoFi", objective="latency", chips=count)
        if findings := model.check(strict=True):
            raise SystemExit(f"{len(findings)} findings under --strict, the first: {findings[0]}")
        cycles = model.perf().cycles
        (output,) = model(x)
        first = first or (cycles, output)
        if not np.array_equal(first[1], output):
            raise SystemExit(f"{count} chips: other bits than {counts[0]}")
        shared = any(placed.op.chip for placed in model.placement.ops.values())
        form = ""
        if shared:
            form = "shared out"
        elif model.placement.chips > 1:
            form = "pipeline"
        print(f"| {count} | {form} | {cycles:.0f} | {first[0] / cycles:.2f} |", flush=True)


def several(names: Sequence[str], counts: Sequence[int], effort: str) -> None:
    """Print a row for each network and number of wormhole_b0 chips."""
    print("| network | chips | as | inputs/s | times |\n| --- | ---: | --- | ---: | ---: |")
    cases = {**CASES, **FUNCTIONAL}
    for name in names or CASES:
        case = cases[name]._replace(arch="wormhole_b0")
        source = case.source()
        rate_of_one = math.nan
        for count in counts:
            with refusals(f"| {name} | {count} |"):
                rate, _, model = compile_case(case, source, chips=count, effort=effort)
                if count == 1:
                    rate_of_one = rate
                split = ""
                if model.placement.copies > 1:
                    split = "copies"
                elif count > 1:
                    split = "pipeline"
                print(f"| {name} | {count} | {split} | {rate:.0f} | {rate / rate_of_one:.2f} |", flush=True)


def beside(cases: Mapping[str, Case], *, effort: str, report: bool) -> None:
    """Print a row for each network: the vendor's netlist, ours, and the verdict of the vendor's router on ours."""
    print("| network | on | inputs a round | vendor's inputs/s | epochs | ours | epochs | times | router | CPU s |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |")
    compilations: dict[Case, tuple[float, float, Any]] = {}
    for name, case in cases.items():
        assert case.netlist is not None
        theirs, their_epochs = vendor(case.netlist)
        row = f"| {name} | {case.arch} {case.df} {case.fidelity} | {case.microbatch} | {theirs:.1f} | {their_epochs} |"
        alone = case._replace(netlist=None)
        with refusals(row):
            if alone not in compilations:
                compilations[alone] = compile_case(case, case.source(), effort=effort)
            rate, seconds, model = compilations[alone]
            times = rate / theirs
            epochs = len(model.perf().run.epochs)
            verdict = router_verdict(model, case.arch)
            print(f"{row} {rate:.1f} | {epochs} | {times:.2f} | {verdict} | {seconds:.0f} |", flush=True)
            if report:
                print(model.report())


def main() -> None:
    """Print a table for docs/compile/placing.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *CASES, *FUNCTIONAL, *MORE], help="default: all")
    parser.add_argument("--functional", action="store_true", help="beside functional tests instead of benchmarks")
    parser.add_argument("--efforts", action="store_true", help="compare efforts instead")
    parser.add_argument("--chips", default="", help="compare numbers of chips instead, as in 1,2,4")
    parser.add_argument("--latency", default="", help="a step of decoding on so many chips instead, as in 1,2,4")
    parser.add_argument("--effort", default="default")
    parser.add_argument("--report", action="store_true", help="where each one's time goes")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.latency:
        latency([*map(int, args.latency.split(","))])
    elif args.efforts:
        efforts(args.names)
    elif args.chips:
        several([name for name in args.names if name not in MORE], [*map(int, args.chips.split(","))], args.effort)
    else:
        cases = {**CASES, **FUNCTIONAL}
        chosen = [name for name in args.names if name in cases] or (FUNCTIONAL if args.functional else CASES)
        beside({name: cases[name] for name in chosen}, effort=args.effort, report=args.report)


if __name__ == "__main__":
    main()
