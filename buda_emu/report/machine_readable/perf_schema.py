"""The JSON schema of what `perf_json` gives."""

from typing import Any

from buda_emu.report.machine_readable.schema import object_of, versioned
from buda_emu.timing.checks import BoundResult
from buda_emu.timing.epoch.critical import CriticalStep
from buda_emu.timing.epoch.result import Busy
from buda_emu.timing.figures import OpFigures
from buda_emu.timing.memory_use import ChannelUse
from buda_emu.timing.result import Bottleneck
from buda_emu.timing.transfers.loading import ChipLoad

_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}
_COUNT = {"type": "integer"}


def schema() -> dict[str, Any]:
    """Of one modelled netlist."""
    definitions: dict[str, Any] = {}

    def of(kind: type, **more: dict[str, Any]) -> dict[str, Any]:
        """A dataclass with further fields, or fields of another kind."""
        found = object_of(kind, definitions)
        properties = {**found["properties"], **more}
        definitions[kind.__name__] = {"type": "object", "properties": properties, "required": list(properties)}
        return {"$ref": f"#/$defs/{kind.__name__}"}

    busy = _list(of(Busy))
    epoch = {
        "program": _TEXT,
        "graphs": _list(_TEXT),
        "chips": _list(_COUNT),
        "runs": _COUNT,
        "inputs": _COUNT,
        "cycles_per_input": {"type": ["number", "null"]},
        "first_input_cycles": _NUMBER,
        "total_cycles": _NUMBER,
        "bottleneck": of(Bottleneck),
        "critical_path": _list(of(CriticalStep, waits=_map(_NUMBER))),
        "ops": _list(of(OpFigures, cost_cycles=_NUMBER)),
        "memory": busy,
        "transfers": busy,
        "noc_links": busy,
        "host_bytes": _COUNT,
        "load_cycles": _NUMBER,
        "load_share": _NUMBER,
        "loads": _list(of(ChipLoad)),
    }
    definitions["Epoch"] = {"type": "object", "properties": epoch, "required": list(epoch)}
    part = {"step": _TEXT, "seconds": {"type": ["number", "null"]}}
    definitions["HostPart"] = {"type": "object", "properties": part, "required": list(part)}
    run = {
        "netlist": _TEXT,
        "arch": _TEXT,
        "board": _TEXT,
        "clock_mhz": _NUMBER,
        "version": _TEXT,
        "parameters": _map(_TEXT),
        "what_if": _map(_NUMBER),
        "epochs": _list({"$ref": "#/$defs/Epoch"}),
        "program_cycles": _map(_NUMBER),
        "program_load_cycles": _map(_NUMBER),
        "program_host_seconds": _map(_NUMBER),
        "dram": _list(of(ChannelUse)),
        "l1_bytes": _map(_COUNT),
        "l1_capacity": _COUNT,
        "performance_check": _list(of(BoundResult, passed={"type": "boolean"})),
        "host_parts": _list({"$ref": "#/$defs/HostPart"}),
    }
    return versioned("Results of buda-emu perf", run, definitions)


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _map(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": value}
