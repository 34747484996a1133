"""The JSON schema of what `perf_json` gives."""

from typing import Any

from buda_emu.report.machine_readable.schema import Rows, document
from buda_emu.timing.checks import BoundResult
from buda_emu.timing.epoch.critical import CriticalStep
from buda_emu.timing.epoch.result import Busy
from buda_emu.timing.figures import OpFigures
from buda_emu.timing.memory_use import ChannelUse
from buda_emu.timing.result import Bottleneck
from buda_emu.timing.transfers.loading import ChipLoad


def schema() -> dict[str, Any]:
    """Of one modelled netlist."""
    epochs = Rows(
        program=str,
        graphs=list[str],
        chips=list[int],
        runs=int,
        inputs=int,
        cycles_per_input=float,
        first_input_cycles=float,
        total_cycles=float,
        bottleneck=Bottleneck,
        critical_path=Rows(CriticalStep, waits=dict[str, float]),
        ops=Rows(OpFigures, cost_cycles=float),
        memory=list[Busy],
        transfers=list[Busy],
        noc_links=list[Busy],
        host_bytes=int,
        load_cycles=float,
        load_share=float,
        loads=list[ChipLoad],
    )
    return document(
        "Results of buda-emu perf",
        netlist=str,
        arch=str,
        board=str,
        clock_mhz=float,
        version=str,
        parameters=dict[str, str],
        what_if=dict[str, float],
        epochs=epochs,
        program_cycles=dict[str, float],
        program_load_cycles=dict[str, float],
        program_host_seconds=dict[str, float],
        dram=list[ChannelUse],
        l1_bytes=dict[str, int],
        l1_capacity=int,
        performance_check=Rows(BoundResult, passed=bool),
        host_parts=Rows(step=str, seconds=float),
    )
