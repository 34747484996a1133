"""Modelled cycles as one JSON object, and the same read back: what `perf --json` writes and `perf --against` takes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, cast

from buda_emu.errors import HostError
from buda_emu.netlist.model import Netlist
from buda_emu.strict_json import read_object
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
    found = read_object(text.encode("utf-8", "replace"), path, _WHAT, _FIX)
    if any(key not in found for key in _NEEDED):
        raise HostError(f"{path}: not {_WHAT}")
    version = found.get("schema_version")
    if version != RESULT_VERSION:
        raise HostError(f"{path}: schema version {version}, this version reads {RESULT_VERSION}: write it again")
    wrong = _wrong_place(found, _FORM, "")
    if wrong is not None:
        raise HostError(f"{path}: not {_WHAT}: {wrong}: {_FIX}")
    return found


_WHAT: Final = "a file that `buda-emu perf --json` wrote"
_FIX: Final = "write it again"
_NUMBER: Final = "a number"
_TEXT: Final = "text"
_UNITS: Final = [{"name": _TEXT, "cycles": _NUMBER}]
_FORM: Final[Mapping[str, Any]] = {
    "netlist": _TEXT,
    "arch": _TEXT,
    "clock_mhz": _NUMBER,
    "what_if": {},
    "parameters": {},
    "program_cycles": {"*": _NUMBER},
    "epochs": [
        {
            "program": _TEXT,
            "graphs": [_TEXT],
            "cycles_per_input": (_NUMBER,),
            "first_input_cycles": _NUMBER,
            "bottleneck": {"kind": _TEXT, "name": _TEXT},
            "ops": [{"op": _TEXT, "cost_cycles": _NUMBER}],
            "memory": _UNITS,
            "noc_links": _UNITS,
            "transfers": _UNITS,
        }
    ],
}
"""What a comparison reads: an object has these keys at least ("*": any keys), a list elements of that form, a tuple
means that it may be null."""


def _wrong_place(value: Any, form: Any, place: str) -> str | None:
    """The first place, with what it should be, where a value does not have a form; None where it has it."""
    if isinstance(form, tuple):
        return None if value is None else _wrong_place(value, form[0], place)
    if isinstance(form, str):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        holds = is_number if form == _NUMBER else isinstance(value, str)
        return None if holds else f"{place or 'the document'} is not {form}"
    if not isinstance(value, list if isinstance(form, list) else dict):
        return f"{place or 'the document'} is not {'a list' if isinstance(form, list) else 'an object'}"
    return next(filter(None, (_wrong_place(*inner) for inner in _inner_places(value, form, place))), None)


def _inner_places(value: Any, form: Any, place: str) -> Iterator[tuple[Any, Any, str]]:
    """Each value directly inside of one, the form that it should have, and its place."""
    if isinstance(form, list):
        for number, inner in enumerate(cast("list[Any]", value)):
            yield inner, form[0], f"{place}[{number}]"
        return
    for key, inner_form in cast("Mapping[str, Any]", form).items():
        names = list(value) if key == "*" else [key]
        for name in names:
            yield value.get(name), inner_form, f"{place}.{name}".removeprefix(".")
