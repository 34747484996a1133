"""What `buda-emu gemini` prints as JSON, as schemas."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypedDict


class Workload(TypedDict):
    """From the first cycle to the one after the last."""

    core: int
    workload_id: int
    start: int
    end: int


class DramItem(TypedDict):
    """Of the DRAM queue; -1 where an assembler file does not tell."""

    kind: Literal["load", "weight", "store"]
    transfer_id: int
    bytes: int
    core: int
    start: int
    end: int


# a link's ends: cores of the mesh by column and row
LinkBytes = TypedDict("LinkBytes", {"from": list[int], "to": list[int], "bytes": int})


class Mismatch(TypedDict):
    """A workload whose bytes differ."""

    core: int
    workload_id: int
    layer: str
    message: str


def _gemini_run() -> Any:
    from buda_emu.gemini.compare_trace import TraceDifferences
    from buda_emu.gemini.figures import RunFigures
    from buda_emu.gemini.time.durations import Rates
    from buda_emu.gemini.time.timing import NocSpan
    from buda_emu.report.machine_readable.schema import document

    own = {
        "dialect": str, "mode": Literal["schedule", "assembler"], "rates": Rates, "workloads": list[Workload],
        "dram_items": list[DramItem], "noc": list[NocSpan], "links": list[LinkBytes],
        "trace": TraceDifferences | None,
    }  # fmt: skip
    return document("Results of buda-emu gemini run --json", RunFigures, own)


def _gemini_exec() -> Any:
    from buda_emu.report.machine_readable.schema import document

    own = {
        "ok": bool, "seed": int, "seeded_weights": list[str], "digests": dict[str, str], "mismatches": list[Mismatch],
    }  # fmt: skip
    return document("Results of buda-emu gemini exec --json", own)


def _gemini_stats() -> Any:
    from buda_emu.gemini.statistics import LayerBytes
    from buda_emu.report.machine_readable.schema import document

    own = {
        "dialect": str, "cores": int, "workloads": int, "layers": int, "transfers": int, "dram_in": int,
        "dram_out": int, "bytes": dict[str, int], "by_layer": tuple[LayerBytes, ...], "accesses": dict[str, int],
        "links": list[LinkBytes], "energy": dict[str, float] | None,
    }  # fmt: skip
    return document("Results of buda-emu gemini stats --json", own)


def _gemini_diff() -> Any:
    from buda_emu.gemini.compare import Comparison
    from buda_emu.report.machine_readable.schema import document

    return document("Results of buda-emu gemini diff --json", Comparison)


SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {
    "gemini run": _gemini_run,
    "gemini exec": _gemini_exec,
    "gemini stats": _gemini_stats,
    "gemini diff": _gemini_diff,
}
"""By verb."""
