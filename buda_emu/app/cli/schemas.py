"""JSON schemas of what verbs print with --json, derived from the classes that they write and the fields that they
add."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from buda_emu.app.documents.kinds import KINDS
from buda_emu.emulator.op_errors.numerics_result import Numerics
from buda_emu.report.baselines import schema
from buda_emu.report.machine_readable.schema import Row, Rows, document
from buda_emu.report.perf_against import RunComparison


def _debug_schema() -> Any:
    """Return the schema of a line of `debug --json`."""
    stop = Row(
        reason=Literal["start", "step", "breakpoint", "interrupted", "end", "error"],
        position=str,
        text=str,
        breakpoints=list[int],
        instructions=int,
        input=int | None,
    )
    return document(
        "One line of buda-emu debug --json",
        command=str,
        kind=str,
        text=list[str],
        data=dict[str, Any],
        error=str | None,
        stop=stop,
        changed=list[str],
    )


DEBUG_SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {"debug": _debug_schema}
"""Verb -> function that returns the schema of its JSON, for the debugger, which prints a line for each command."""


def _numerics_schema() -> Any:
    """Return the schema of `numerics --json`."""
    return document("Results of buda-emu numerics --json", Numerics)


def _advise_schema() -> Any:
    """Return the schema of `advise --json`."""
    edits = Rows(kind=Literal["op", "queue"], name=str, field=str, value=str)
    change = {
        "move": str,
        "target": str,
        "what": str,
        "host": str,
        "changes_values": bool,
        "pcc_lost": float | None,
        "accuracy_unknown": str,
        "edits": edits,
    }
    pace = {"slowest_cycles": float, "total_cycles": float}
    netlist = {**pace, "epochs": Rows(program=str, graphs=list[str], cycles_per_input=float)}
    return document(
        "Results of buda-emu advise --json",
        netlist=str,
        arch=str,
        board=str,
        epochs_modelled=int,
        before=Row(netlist),
        after=Row(netlist, pcc_lost=float),
        alone=Rows(change, pace, graphs=list[str], cycles_before=float, cycles_after=float),
        together=Rows(change, pace),
        front=Rows(pace, what=str, pcc_lost=float),
        nothing_found=str,
        on_one_core=Rows(op=str, graphs=list[str], reason=str),
        refused=Rows(change, reason=str),
    )


def _perf_against_schema() -> Any:
    """Return the schema of `perf --against --json`."""
    return document("Results of buda-emu perf --against --json", RunComparison, worst_percent=float)


def _perf_sweep_schema() -> Any:
    """Return the schema of `perf --sweep --json`, whose points have a column for each axis."""
    from buda_emu.app.api.sweep import Point

    sweep_schema = document("Results of buda-emu perf --sweep --json", netlist=str, points=list[Point])
    row = sweep_schema["$defs"]["Point"]
    for field in ("settings", "figures"):  # no columns of a row (Point.row)
        del row["properties"][field]
        row["required"].remove(field)
    row["additionalProperties"] = {"type": "string"}  # a column for each axis
    return sweep_schema


def _info_schema() -> Any:
    """Return the schema of `info --json`."""
    count = {f"{severity}s": int for severity in ("error", "warning", "note")}
    files = Rows(count, path=str, kind=str, accepted=bool, summary=dict[str, int | str])
    return document("Results of buda-emu info --json", files=files)


def _faults_schema() -> Any:
    """Return the schema of `faults --json`."""
    from buda_emu.testing.injection.result import OUTCOMES, TABLES, column

    counts: dict[str, Any] = dict.fromkeys(map(column, OUTCOMES), int)
    share = Row(counts, name=str, faults=int, failures=int, share=float, low=float, high=float)
    rows = Rows(counts, name=str, faults=int, failures=int, share=float, low=float, high=float)
    site: dict[str, Any] = {
        "number": int,
        "kind": str,
        "place": str,
        "where": str,
        "op_type": str,
        "df": str,
        "tensor": str,
        "entry": int,
        "tile": int,
        "datum": int,
        "bits": list[int],
        "field": str,
        "exponent": bool,
        "operand": int,
        "core": list[int] | None,
        "step": int,
        "how": str,
        "stratum": str,
    }
    fault = Rows(
        site,
        outcome=str,
        pcc=float | None,
        max_error=float | None,
        top1=float,
        tiles=int,
        output=str,
        computed=int,
        error=str,
        ratio=float,
        maps=dict[str, str],
        after=dict[str, str],
    )
    settings = Row(
        seed=int,
        kinds=list[str],
        places=list[str],
        burst=int,
        scatter=bool,
        least_pcc=float,
        only=str,
        top1=bool,
        late=float,
        strata=str,
        protect=list[str],
        given=Rows(site),
    )
    cost = Row(bits=int, share=float, time=float | None)
    protection = Rows(name=str, failures_before=int, failures=int, after=dict[str, int], cost=cost)
    return document(
        "Results of buda-emu faults --json",
        netlist=str,
        arch=str,
        precision=str,
        seed=int,
        settings=settings,
        bit_hours=float,
        finished=bool,
        left_out=list[str],
        total=share,
        strata=dict[str, float],
        protection=protection,
        tables=Row(dict.fromkeys(TABLES, rows)),
        faults=fault,
    )


def _reduce_schema() -> Any:
    """Return the schema of `reduce --json`."""
    size = Row(before=int, after=int)
    sizes = Row(ops=size, queues=size, graphs=size, instructions=size, tiles_of_an_input=size, characters=size)
    return document(
        "Results of buda-emu reduce --json",
        file=str,
        output=str,
        exit_code=int | None,
        trials=int,
        steps=int,
        finished=bool,
        interrupted=bool,
        sizes=sizes,
    )


SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {
    "info": _info_schema, "numerics": _numerics_schema, "advise": _advise_schema,
    "perf --against": _perf_against_schema, "perf --sweep": _perf_sweep_schema, "faults": _faults_schema,
    "reduce": _reduce_schema, "baseline": schema,
    **DEBUG_SCHEMAS,
    **{verb: schema for kind in KINDS for verb, schema in kind.schemas().items()},
}  # fmt: skip
"""Verb (or `baseline`) -> function that returns the schema of its JSON."""
