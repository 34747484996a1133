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
    """A network, the options that it was compiled with, and the vendor's netlist."""

    source: Callable[[], Source]
    arch: str
    df: str
    fidelity: str
    microbatch: int | None
    netlist: Path | None = None
    keeps: int = 0
    """Outputs behind the first that go to caches."""


def _benchmark(source: Callable[[], Source], arch: str, df: str, fidelity: str, microbatch: int, name: str) -> Case:
    return Case(source, arch, df, fidelity, microbatch, BENCHMARKS / arch / f"{name}.yaml")


def _bert_base() -> Source:
    return encoders(12, 768, 12)


def _bert_large() -> Source:
    return encoders(24, 1024, 16, tokens=384)


CASES = {
    "bert_base": _benchmark(_bert_base, "grayskull", "Bfp8_b", "LoFi", 128, "bert_base_lofi_bfp8b"),
    "bert_base_v2": _benchmark(_bert_base, "grayskull", "Bfp8_b", "LoFi", 128, "bert_base_lofi_bfp8b_v2"),
    "bert_large_lofi": _benchmark(_bert_large, "grayskull", "Bfp8_b", "LoFi", 128, "bert_large_lofi_bfp8b_v2"),
    "resnet50_head": _benchmark(resnet_head, "grayskull", "Bfp8_b", "LoFi", 64, "resnet50_lofi_bfp8b_may18"),
    "bert_large": _benchmark(_bert_large, "wormhole_b0", "Float16_b", "HiFi3", 64, "bert_large_hifi3_fp16b"),
    "mobilenet_v2": _benchmark(
        lambda: build("mobilenet_v2"), "wormhole_b0", "Float16_b", "HiFi2", 64, "mobilenet_v2_hifi2_fp16b"
    ),
    "mobilenet_v3": _benchmark(mobilenet_v3, "wormhole_b0", "Float16_b", "HiFi2", 64, "mobilenet_v3_hifi2_fp16b"),
    "resnet50": _benchmark(lambda: build("resnet50"), "wormhole_b0", "Float16_b", "HiFi3", 64, "resnet50_hifi3_fp16b"),
    "unet": _benchmark(unet, "wormhole_b0", "Float16_b", "HiFi2", 48, "unet_hifi3_fp16b"),
    "yolo_v5": _benchmark(yolo_v5, "wormhole_b0", "Float16_b", "HiFi3", 64, "yolo_v5_hifi3_fp16b"),
}
"""What the vendor's compiler wrote for its own benchmarks; formats, fidelities and rounds as they state them. The
products of U-Net's netlist are HiFi2, with parameters in Bfp8_b."""

FUNCTIONAL = {
    "encoder_768": Case(
        lambda: encoders(1, 768, 12), "grayskull", "Bfp8_b", "LoFi", 128,
        TESTS / "verif/graph_tests/netlists/netlist_encoder_device_tilize.yaml",
    ),
    "encoder_128": Case(
        lambda: encoders(1, 128, 4), "grayskull", "Float16_b", "HiFi3", 128,
        TESTS / "verif/graph_tests/netlists/netlist_encoder_grid.yaml",
    ),
    "encoder_128_one": Case(
        lambda: encoders(1, 128, 4), "grayskull", "Float16_b", "HiFi3", 1,
        TESTS / "verif/directed_tests/netlist_bert_encoder.yaml",
    ),
    "attention_128_one": Case(
        attention, "grayskull", "Float16_b", "HiFi3", 1, TESTS / "verif/graph_tests/netlists/netlist_bert_mha.yaml"
    ),
    "t5_decoder": Case(
        t5_decoder, "wormhole_b0", "Float16_b", "HiFi3", 1,
        TESTS / "verif/graph_tests/netlists/t5_wormhole_b0.yaml", 24,
    ),
}  # fmt: skip
"""The vendor's functional tests: they show that a chip computes right, and say little of how fast it can."""


def vendor(path: Path) -> tuple[float, int]:
    """Inputs per second of a netlist of the vendor's, one round of each loop, and its epochs."""
    netlist = be.load(path)
    names = {
        parameter
        for program in netlist.programs.values()
        for step in program.instructions
        for parameter in getattr(step, "names", ())
    }
    perf = be.perf(netlist, parameters=dict.fromkeys(names, "1"))
    count = max(graph.input_count for graph in netlist.graphs.values())
    seconds = max(perf.run.seconds(perf.cycles), sum(perf.run.host_seconds().values()))
    return count / seconds, len(perf.epochs)


def routed(model: Any, arch: str) -> str:
    """What the vendor's net2pipe and pipegen2 say of a compiled netlist."""
    if not (SHARED / "routing" / "bin").is_dir():
        return "not asked"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "netlist.yaml")
        path.write_text(model.text)
        command = [sys.executable, SHARED / "routing" / "check.py", "--arch", arch, path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "pass" if done.returncode == 0 else (done.stdout.splitlines() or [done.stderr])[0].partition(": ")[2]


def compiled(case: Case, source: Source, **options: Any) -> tuple[float, float, Any]:
    """Inputs per second, seconds of be.compile, the compiled model. Ends the benchmark where `--strict` has anything to
    say of its netlist."""
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
    """What the compiler refuses stands in its row; the next one follows."""
    try:
        yield
    except be.BudaError as error:
        print(f"{row} refused: {str(error).splitlines()[0]} |", flush=True)


MORE = ("resnet18", "vit_b_16", "whisper_tiny")
"""Models that join the cases in the comparison of efforts: wormhole_b0, Float16_b, HiFi3, rounds of 64, fewer where
memory is full."""


def efforts(names: Sequence[str]) -> None:
    """A row for each model: inputs per second of each effort, default's share of high's, and seconds."""
    print("| model | low | default | high | default of high | CPU s, default | high |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    cases = {**CASES, **FUNCTIONAL}
    for name in names or (*cases, *MORE):
        case = cases.get(name) or Case(partial(build, name), "wormhole_b0", "Float16_b", "HiFi3", None)
        source = case.source()
        with refusals(f"| {name} |"):
            low, default, high = (compiled(case, source, effort=effort)[:2] for effort in ("low", "default", "high"))
            print(
                f"| {name} | {low[0]:.0f} | {default[0]:.0f} | {high[0]:.0f} | {100 * default[0] / high[0]:.0f} % | "
                f"{default[1]:.0f} | {high[1]:.0f} |",
                flush=True,
            )


def latency(counts: Sequence[int]) -> None:
    """Cycles of one input of a large network of one row on so many chips; ends the benchmark where outputs differ."""
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
        cycles, (found,) = model.perf().cycles, model(x)
        first = first or (cycles, found)
        if not np.array_equal(first[1], found):
            raise SystemExit(f"{count} chips: other bits than {counts[0]}")
        shared = any(placed.op.chip for placed in model.placement.ops.values())
        form = "shared out" if shared else "pipeline" if model.placement.chips > 1 else ""
        print(f"| {count} | {form} | {cycles:.0f} | {first[0] / cycles:.2f} |", flush=True)


def several(names: Sequence[str], counts: Sequence[int], effort: str) -> None:
    """A row for each network and number of wormhole_b0 chips."""
    print("| network | chips | as | inputs/s | times |\n| --- | ---: | --- | ---: | ---: |")
    cases = {**CASES, **FUNCTIONAL}
    for name in names or CASES:
        case = cases[name]._replace(arch="wormhole_b0")
        source = case.source()
        one = math.nan
        for count in counts:
            with refusals(f"| {name} | {count} |"):
                found, _, model = compiled(case, source, chips=count, effort=effort)
                one = found if count == 1 else one
                form = "copies" if model.placement.copies > 1 else "pipeline" if count > 1 else ""
                print(f"| {name} | {count} | {form} | {found:.0f} | {found / one:.2f} |", flush=True)


def beside(cases: Mapping[str, Case], *, effort: str, report: bool) -> None:
    """A row for each network: the vendor's netlist, ours, and what the vendor's router says of it."""
    print("| network | on | inputs a round | vendor's inputs/s | epochs | ours | epochs | times | router | CPU s |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |")
    made: dict[Case, tuple[float, float, Any]] = {}
    for name, case in cases.items():
        assert case.netlist is not None
        theirs, their_epochs = vendor(case.netlist)
        row = f"| {name} | {case.arch} {case.df} {case.fidelity} | {case.microbatch} | {theirs:.1f} | {their_epochs} |"
        alone = case._replace(netlist=None)
        with refusals(row):
            found, seconds, model = made[alone] = made.get(alone) or compiled(case, case.source(), effort=effort)
            times = found / theirs
            epochs = len(model.perf().run.epochs)
            verdict = routed(model, case.arch)
            print(f"{row} {found:.1f} | {epochs} | {times:.2f} | {verdict} | {seconds:.0f} |", flush=True)
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
