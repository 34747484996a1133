"""The figures of the timing model as they are: whoever changes one sees which others move.

`python tests/performance/timing/test_today.py` writes them anew, after a change that is meant.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import buda_emu as be
from buda_emu.performance.timing.op.call import OpCall
from buda_emu.performance.timing.op.cost import ideal_threads, op_cost
from buda_emu.support.errors import BudaError

ROOT = Path(__file__).resolve().parent.parent.parent.parent
KEPT = Path(__file__).with_name("today.txt")
SIZE = {"t": 2, "mblock_m": 2, "mblock_n": 3, "ublock_rt": 2, "ublock_ct": 4}
PRODUCT = {"m_k": 3, "u_kt": 5}
SPARSE = {"op_type": "matmul", "sparse": True, "nz_tiles": 12, "nz_ublocks": 6, "nz_strips": 4, **PRODUCT}
KINDS = (
    {"op_type": "nop"},
    {"op_type": "multiply", "tile_rows": 16},
    {"op_type": "maximum", "tile_cols": 16},
    {"op_type": "gelu", "vector_mode": "r"},
    {"op_type": "exp", "approximate": True},
    {"op_type": "nop", "untilize": True},
    {"op_type": "matmul", **PRODUCT},
    {"op_type": "matmul", "l1_acc": True, **PRODUCT},
    {"op_type": "depthwise", **PRODUCT},
    {"op_type": "reduce", "reduce_dim": "r"},
    {"op_type": "reduce", "reduce_dim": "c"},
    {"op_type": "reduce", "reduce_dim": "z", "z": 3},
    SPARSE,
    {**SPARSE, "tile_rows": 16},
)
FORMATS = (("Float16_b", "HiFi4"), ("Bfp8_b", "LoFi"), ("Float32", "HiFi3"), ("Float16", "LoFi"))


def number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float | int) else str(value)


def of_ops() -> Iterator[str]:
    """Cycles of one op on one core: fitted, the vendor's, and what each thread needs at least."""
    for kind, (df, fidelity), arch in product(KINDS, FORMATS, ("wormhole_b0", "grayskull")):
        name = " ".join(f"{key}={value}" for key, value in kind.items())
        try:
            call = OpCall(**SIZE, **kind, in0_df=df, out_df=df, fidelity=fidelity, arch=arch)  # type: ignore[arg-type]
            found = [op_cost(call).cycles, op_cost(call, model="vendor").cycles, *ideal_threads(call)]
            yield f"{arch} {df} {fidelity} {name}: {' '.join(map(number, found))}"
        except BudaError as error:
            yield f"{arch} {df} {fidelity} {name}: {type(error).__name__}"


def of_netlists() -> Iterator[str]:
    """What epochs and their ops take, and the chain that decides it."""
    for path in sorted((ROOT / "netlists").rglob("*.yaml")):
        found = be.perf(str(path)).to_json()
        for epoch in found["epochs"]:
            graphs = "+".join(epoch["graphs"])
            keys = ("runs", "inputs", "cycles_per_input", "first_input_cycles", "total_cycles", "load_cycles")
            yield f"{path.stem} {graphs}: {' '.join(number(epoch[key]) for key in keys)}"
            for step in epoch["critical_path"]:
                waits = " ".join(f"{word} {number(cycles)}" for word, cycles in step["waits"].items())
                yield f"{path.stem} {graphs} {step['kind']}: {number(step['cycles'])} {waits}"
            for op in epoch["ops"]:
                keys = (
                    "cycles_first",
                    "cycles_last",
                    "total_runtime",
                    "average_utilisation",
                    "waiting_for_input",
                    "waiting_for_room",
                    "cost_cycles",
                    "output_bandwidth",
                )
                figures = [*(number(op[key]) for key in keys), *map(number, op["input_bandwidth"])]
                yield f"{path.stem} {op['op']}: {' '.join(figures)}"


def today() -> list[str]:
    return [*of_ops(), *of_netlists()]


def test_the_figures_are_those_of_today() -> None:
    kept = KEPT.read_text(encoding="utf-8").splitlines()
    assert today() == kept


if __name__ == "__main__":
    KEPT.write_text("\n".join(today()) + "\n", encoding="utf-8")
