#!/usr/bin/env python3
"""Loading beside the YAML parser that it uses, in processor time of one process.

    python benchmarks/bench_load.py [--repeat 7] [--largest 5]

Netlists: the largest public ones, and a made one of 1 MB. Each figure is the least of the repetitions, which take
turns, so that a change of the machine's speed meets all of them. `events`: milliseconds in which PyYAML's C parser
hands out the events that the loader builds its tree from, the least that any use takes. All others are multiples of it:
`yaml.load` with CSafeLoader, which makes plain dicts without places; `tree`, the loader's tree of nodes with places;
`check`, everything with all rules; `first`, that and keeping the result in the cache; `kept`, taking it from there
(docs/run/cache.md).
"""

import argparse
import gc
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml

from buda_emu.netlist.load import check, check_text
from buda_emu.netlist.yaml_reader import decode, read_bytes, read_tree
from conditions import conditions, public_netlists

MADE_OPS = 1240


def generate_netlist(ops: int) -> str:
    """Return a sound netlist of `ops` graphs with one op each, between two queues, that one program executes."""
    sizes = "grid_size: [1, 1], t: 1, mblock: [1, 1], ublock: [1, 2]"
    queues = []
    graphs = []
    steps = []
    for n in range(ops):
        places = ((f"layer_{n}_input", "HOST", 0x10000000), (f"layer_{n}_output", f"layer_{n}_gelu", 0x20000000))
        for name, source, base in places:
            queues.append(
                f"  {name}: {{input: {source}, type: queue, entries: 2, {sizes}, df: Float16_b, target_device: 0, "
                f"loc: dram, dram: [[{n % 6}, {base + 0x4000 * (n // 6):#x}]]}}\n"
            )
        graphs.append(
            f"  fwd_{n}:\n    target_device: 0\n    input_count: 1\n"
            f"    layer_{n}_gelu: {{type: gelu, grid_loc: [0, 0], inputs: [layer_{n}_input], {sizes}, "
            "in_df: [Float16_b], out_df: Float16_b, intermed_df: Float16_b, acc_df: Float16_b, ublock_order: r, "
            "buf_size_mb: 2, math_fidelity: HiFi3}\n"
        )
        steps.append(
            f"    - execute: {{graph_name: fwd_{n}, queue_settings: {{layer_{n}_input: {{prologue: false, epilogue: "
            "false, zero: false, rd_ptr_local: $lptr, rd_ptr_global: $gptr}}}\n"
        )
    return (
        "devices:\n  arch: wormhole_b0\nqueues:\n"
        + "".join(queues)
        + "graphs:\n"
        + "".join(graphs)
        + "programs:\n  - run:\n    - var: {$lptr: 0, $gptr: 0}\n"
        + "".join(steps)
    )


def events(text: str) -> None:
    """Ask the parser for every event of a text."""
    get_event = yaml.CSafeLoader(text).get_event
    while get_event().__class__ is not yaml.events.StreamEndEvent:
        pass


def milliseconds(works: Mapping[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """Return the least processor time of each work, in milliseconds."""
    least = dict.fromkeys(works, float("inf"))
    for _ in range(repeat):
        for name, work in works.items():
            gc.collect()
            gc.disable()
            start = time.process_time()
            work()
            least[name] = min(least[name], 1000 * (time.process_time() - start))
            gc.enable()
    return least


def measure(path: Path, repeat: int) -> dict[str, float]:
    """Return all figures of one netlist in milliseconds."""
    text = decode(read_bytes(path))
    cache = Path(os.environ["XDG_CACHE_HOME"])

    def first() -> None:
        for file in cache.rglob("netlists/*"):
            file.unlink()
        check(path)

    assert check(path).ok, path
    works: dict[str, Callable[[], object]] = {
        "events": lambda: events(text),
        "yaml.load": lambda: yaml.load(text, yaml.CSafeLoader),
        "tree": lambda: read_tree(text),
        "check": lambda: check_text(text, str(path)),
        "first": first,
        "kept": lambda: check(path),
    }
    return milliseconds(works, repeat)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--largest", type=int, default=5, help="how many public netlists")
    args = parser.parse_args()
    print(f"{conditions()}, PyYAML {yaml.__version__}")
    print(f"{'KiB':>6} {'events':>8} {'yaml.load':>10} {'tree':>6} {'check':>6} {'first':>6} {'kept':>6}  netlist")
    with tempfile.TemporaryDirectory() as directory:
        os.environ["XDG_CACHE_HOME"] = directory
        generated = Path(directory) / "made.yaml"
        generated.write_text(generate_netlist(MADE_OPS), encoding="utf-8")
        for path in (*public_netlists()[-args.largest :], generated):
            took = measure(path, args.repeat)
            unit = took["events"]
            ratios = (took[name] / unit for name in ("yaml.load", "tree", "check", "first", "kept"))
            plain, tree, judged, first, cached = ratios
            size = path.stat().st_size >> 10
            figures = f"{plain:10.2f} {tree:6.2f} {judged:6.2f} {first:6.2f} {cached:6.2f}"
            print(f"{size:6} {unit:5.0f} ms {figures}  {path.name}")


if __name__ == "__main__":
    main()
