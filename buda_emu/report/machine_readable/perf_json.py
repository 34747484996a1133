"""Modelled cycles as one JSON object, and the same read back: what `perf --json` writes and `perf --against` takes."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, cast

from buda_emu.errors import HostError
from buda_emu.netlist.model import Netlist
from buda_emu.timing.checks import BoundResult
from buda_emu.timing.epoch.critical import critical_steps
from buda_emu.timing.figures import op_figures
from buda_emu.timing.result import PerfRun
from buda_emu.version import RESULT_VERSION

_NEEDED = ("netlist", "arch", "clock_mhz", "epochs", "program_cycles")


def perf_json(netlist: Netlist, run: PerfRun, results: Sequence[BoundResult]) -> dict[str, Any]:
    """Everything that was modelled. Cycles are of the AI clock; `cost_cycles` of an op is one input on each core."""
    return {
        "schema_version": RESULT_VERSION,
        "netlist": run.netlist,
        "arch": run.arch,
        "board": run.chip.board,
        "clock_mhz": run.clock,
        "version": run.version,
        "parameters": dict(run.parameters),
        "what_if": dict(run.what_if),
        "epochs": [
            {
                "program": epoch.program,
                "graphs": list(epoch.graphs),
                "chips": list(epoch.chips),
                "runs": epoch.runs,
                "inputs": epoch.timing.inputs,
                "cycles_per_input": epoch.timing.cycles_per_input,
                "first_input_cycles": epoch.timing.first_input,
                "total_cycles": epoch.timing.total,
                "bottleneck": asdict(epoch.bottleneck),
                "critical_path": [{**asdict(step), "waits": dict(step.waits)} for step in critical_steps(epoch.timing)],
                "ops": [
                    {**asdict(item), "cost_cycles": timing.cost.cycles}
                    for timing, item in zip(epoch.timing.ops, op_figures(netlist, run, epoch), strict=True)
                ],
                "memory": [asdict(item) for item in epoch.timing.memory],
                "transfers": [asdict(item) for item in epoch.timing.transfers],
                "noc_links": [asdict(item) for item in epoch.timing.links],
                "host_bytes": epoch.host_bytes,
                "load_cycles": epoch.load.cycles,
                "load_share": epoch.load_share,
                "loads": [asdict(item) for item in epoch.load.chips],
            }
            for epoch in run.epochs
        ],
        "program_cycles": run.programs(),
        "program_load_cycles": run.program_loads(),
        "program_host_seconds": run.host_seconds(),
        "dram": [asdict(item) for item in run.dram],
        "l1_bytes": dict(run.l1),
        "l1_capacity": run.l1_capacity,
        "performance_check": [{**asdict(item), "passed": item.passed} for item in results],
    }


def read_perf_json(text: str, path: str) -> dict[str, Any]:
    """What `perf_json` gave, read back. Raises HostError for what is none, or of another schema version."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HostError(f"{path}: not JSON: {error}") from None
    if not isinstance(found, dict) or any(key not in found for key in _NEEDED):
        raise HostError(f"{path}: not a file that `buda-emu perf --json` wrote")
    if found["schema_version"] != RESULT_VERSION:
        raise HostError(
            f"{path}: schema version {found['schema_version']}, this version reads {RESULT_VERSION}: write it again"
        )
    return cast(dict[str, Any], found)
