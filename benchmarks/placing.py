"""Inputs per second of the compiler's netlists, modelled, beside those that the vendor's compiler wrote for the same
networks, beside the first legal choice, and on several chips.

    python benchmarks/placing.py [NAME ...]           # needs torch; the vendor's netlists beside the project
    python benchmarks/placing.py --chips 1,2,4 bert_base resnet50
    python benchmarks/placing.py --latency 1,2,4      # a step of decoding on several chips
    python benchmarks/placing.py --efforts            # low, default and high effort on twelve models

Same sizes, number format, fidelity, microbatch, chip and timing model. The weights are random: cycles do not depend on
them. The vendor's BERT-base begins behind the embeddings, as does ours here.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import buda_emu as be
from full_size_models import build
from vendor_models import Source, attention, encoders, mobilenet_v3, t5_decoder

NETLISTS = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "netlists"


class Case(NamedTuple):
    """A network, the options that it was compiled with, and the vendor's netlist."""

    source: Callable[[], Source]
    arch: str
    df: str
    fidelity: str
    microbatch: int | None
    netlist: str
    keeps: int = 0
    """Outputs behind the first that go to caches."""


CASES = {
    "bert_base": Case(
        lambda: encoders(12, 768, 12), "grayskull", "Bfp8_b", "LoFi", 256,
        "verif/graph_tests/netlists/netlist_bert_base.yaml",
    ),
    "encoder_768": Case(
        lambda: encoders(1, 768, 12), "grayskull", "Bfp8_b", "LoFi", 128,
        "verif/graph_tests/netlists/netlist_encoder_device_tilize.yaml",
    ),
    "encoder_128": Case(
        lambda: encoders(1, 128, 4), "grayskull", "Float16_b", "HiFi3", 128,
        "verif/graph_tests/netlists/netlist_encoder_grid.yaml",
    ),
    "encoder_128_one": Case(
        lambda: encoders(1, 128, 4), "grayskull", "Float16_b", "HiFi3", 1,
        "verif/directed_tests/netlist_bert_encoder.yaml",
    ),
    "attention_128_one": Case(
        attention, "grayskull", "Float16_b", "HiFi3", 1, "verif/graph_tests/netlists/netlist_bert_mha.yaml"
    ),
    "resnet50": Case(
        lambda: build("resnet50"), "wormhole_b0", "Bfp8_b", "LoFi", 64, "dbd/test/netlists/resnet50.yaml"
    ),
    "mobilenet_v3": Case(
        mobilenet_v3, "wormhole_b0", "Float16_b", "HiFi2", 64,
        "perf_lib/graph_tests/blackhole/mobilenet_v3_hifi2_fp16b.yaml",
    ),
    "t5_decoder": Case(
        t5_decoder, "wormhole_b0", "Float16_b", "HiFi3", 1, "verif/graph_tests/netlists/t5_wormhole_b0.yaml", 24
    ),
}  # fmt: skip


def vendor(name: str) -> float:
    """Inputs per second of a netlist of the vendor's, one round of each loop."""
    path = NETLISTS / name
    netlist = be.load(path)
    names = {
        parameter for program in netlist.programs.values() for step in program.instructions
        for parameter in getattr(step, "names", ())
    }  # fmt: skip
    perf = be.perf(netlist, parameters=dict.fromkeys(names, "1"))
    count = max(graph.input_count for graph in netlist.graphs.values())
    seconds = max(perf.run.seconds(perf.cycles), sum(perf.run.host_seconds().values()))
    return count / seconds


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


MORE = ("resnet18", "mobilenet_v2", "vit_b_16", "whisper_tiny")
"""Models that join the cases in the comparison of efforts: wormhole_b0, Float16_b, HiFi3, rounds of 64, fewer where
memory is full."""


def efforts(names: Sequence[str]) -> None:
    """A row for each model: inputs per second of each effort, default's share of high's, and seconds."""
    print("| model | low | default | high | default of high | CPU s, default | high |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in names or (*CASES, *MORE):
        case = CASES.get(name) or Case(partial(build, name), "wormhole_b0", "Float16_b", "HiFi3", None, "")
        source = case.source()
        low, default, high = (compiled(case, source, effort=effort)[:2] for effort in ("low", "default", "high"))
        print(f"| {name} | {low[0]:.0f} | {default[0]:.0f} | {high[0]:.0f} | {100 * default[0] / high[0]:.0f} % | "
              f"{default[1]:.0f} | {high[1]:.0f} |", flush=True)  # fmt: skip


def latency(counts: Sequence[int]) -> None:
    """Cycles of one input of a large network of one row on so many chips; ends the benchmark where outputs differ."""
    import numpy as np
    import torch

    torch.manual_seed(0)
    linear, back, x = torch.nn.Linear(4096, 11008), torch.nn.Linear(11008, 4096), torch.randn(1, 4096)
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


def main() -> None:
    """Print a table for docs/placing.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *CASES, *MORE], help="default: all")
    parser.add_argument("--efforts", action="store_true", help="compare efforts instead")
    parser.add_argument("--chips", default="", help="compare numbers of chips instead, as in 1,2,4")
    parser.add_argument("--latency", default="", help="a step of decoding on so many chips instead, as in 1,2,4")
    parser.add_argument("--effort", default="default")
    parser.add_argument("--report", action="store_true", help="where each one's time goes")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.latency:
        latency([*map(int, args.latency.split(","))])
        return
    if args.efforts:
        efforts(args.names)
        return
    if args.chips:
        print("| network | chips | as | inputs/s | times |\n| --- | ---: | --- | ---: | ---: |")
    else:
        print("| network | on | inputs a round | vendor's inputs/s | ours | times | first legal | CPU s |")
        print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in [name for name in args.names or CASES if name in CASES]:
        case = CASES[name]
        source = case.source()
        if args.chips:
            case = case._replace(arch="wormhole_b0")
            one = math.nan
            for count in map(int, args.chips.split(",")):
                found, _, model = compiled(case, source, chips=count, effort=args.effort)
                one = found if count == 1 else one
                form = "copies" if model.placement.copies > 1 else "pipeline" if count > 1 else ""
                print(f"| {name} | {count} | {form} | {found:.0f} | {found / one:.2f} |", flush=True)
            continue
        found, seconds, model = compiled(case, source, effort=args.effort)
        first, _, _ = compiled(case, source, effort="low")
        theirs = vendor(case.netlist)
        print(f"| {name} | {case.arch} {case.df} {case.fidelity} | {case.microbatch} | {theirs:.0f} | {found:.0f} | "
              f"{found / theirs:.2f} | {first:.0f} | {seconds:.0f} |", flush=True)  # fmt: skip
        if args.report:
            print(model.report())


if __name__ == "__main__":
    main()
