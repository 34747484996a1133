"""`be.numerics`: finds the ops, and the causes in them, that make the chip's results differ from float32."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from buda_emu.app.api.shown import html_table
from buda_emu.arithmetic.jit.reporting import reported_work
from buda_emu.emulator.image.opened import Opened, open_file
from buda_emu.emulator.memory.host import usable_processors
from buda_emu.emulator.op_errors.numerics import explain
from buda_emu.emulator.op_errors.numerics_result import CAUSES, Numerics, OpNumerics, inherent_cause
from buda_emu.netlist.model import Netlist
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.progress import Report
from buda_emu.support.workers.job import Workers


@dataclass(frozen=True)
class Explained:
    """The error of every op, its cause, and the change that would repair it. `run` holds all figures; the other
    attributes are the figures that most callers need."""

    run: Numerics = field(repr=False)

    @property
    def ops(self) -> tuple[OpNumerics, ...]:
        """The errors of all ops, in the order of their first run."""
        return self.run.ops

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """A plain dict for each op (`pandas.DataFrame(explained.rows)`); errors are rms, relative to the ideal values.

        `run_error` is the error of the op's result in the whole run, `own_error` that of the op alone on ideal operands
        rounded to their formats, and `without_...` the part of `own_error` that remains when one cause is switched off.
        """
        return [_op_row(op) for op in self.ops]

    def to_json(self) -> dict[str, Any]:
        """Return all figures as `buda-emu numerics --json` writes them, with `schema_version`."""
        return self.run.as_json()

    def __repr__(self) -> str:
        rows = [row for row in self.rows if row["own_error"] is not None]
        worst = max(rows, key=lambda row: row["own_error"], default=None)
        worst_op = ""
        if worst:
            worst_op = f", worst alone {worst['op']} ({worst['own_error']:.1e}, {worst['cause']})"
        return f"<Explained {self.run.netlist} on {self.run.arch}: {plural(len(self.ops), 'op')}{worst_op}>"

    def _repr_html_(self) -> str:
        return html_table(repr(self)[1:-1], self.rows)


def _op_row(op: OpNumerics) -> dict[str, Any]:
    """Return the errors of an op as a plain dict; None for figures that could not be computed."""
    row: dict[str, Any] = {
        "op": op.name,
        "type": op.type,
        "graph": op.graph,
        "format": op.out_df,
        "run_error": op.total.rms,
        "run_pcc": op.total.pcc,
        "own_error": None,
        "max_error": None,
        **{f"without_{cause}": op.without.get(cause) for cause in CAUSES},
        "cause": op.cause or None,
        "repair": None,
        "error_repaired": None,
        "inherent": inherent_cause(op) or None,
    }
    if op.local is not None:
        row["own_error"] = op.local.rms
        row["max_error"] = op.local.max_error
    if op.repair is not None:
        changes = [f"{change.field}: {change.before} -> {change.after}" for change in op.repair.changes]
        row["repair"] = ", ".join(changes)
        row["error_repaired"] = op.repair.error
    return row


def numerics(
    source: str | PathLike[str] | Netlist,
    *,
    op: str | None = None,
    inputs: str | PathLike[str] | None = None,
    programs: Sequence[str] = (),
    parameters: Mapping[str, str] | None = None,
    arch: str | None = None,
    seed: int = 0,
    threads: int | None = None,
    memory_limit: int | None = None,
    workers: int = 1,
    dask: str | None = None,
    progress: Report | None = None,
) -> Explained:
    """Run a netlist as the chip computes and in float32, and split the error of each op into its causes.

    `source` is a netlist, or the path of a netlist or of a device image. `op` limits the analysis to one op. `inputs`
    is a folder with <queue>.npy, or an .npz file whose arrays are named by queue; for an image that `compile` wrote by
    the model's own input names. `parameters` ("$name": value) replace the harness's defaults. `workers` processes, or
    the Dask cluster whose scheduler is at `dask`, share the analysis; they change no figure. `progress` gets an
    Activity for each step (docs/python/embedding.md). Raises the errors of loading and running, and HostError for an
    unknown op, program or parameter.
    """
    if isinstance(source, Netlist):
        opened = Opened(source)
    else:
        opened = open_file(fspath(source), arch)
    netlist = opened.to_run
    if arch is not None and netlist.arch_name != arch:
        raise HostError(f"the netlist was loaded for {netlist.arch_name}: load it with arch={arch!r}")
    with reported_work(progress) as report:
        run = explain(
            netlist,
            programs,
            parameters,
            image=opened.image,
            inputs=Path(inputs) if inputs is not None else None,
            seed=seed,
            only=op,
            threads=threads or usable_processors(),
            memory_limit=memory_limit,
            workers=Workers(workers, dask),
            progress=report,
        )
    return Explained(run)
