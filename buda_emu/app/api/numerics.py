"""Why the chip's answer differs, in one call, as an object that holds every figure: `be.numerics`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from buda_emu.app.api.shown import html_table
from buda_emu.emulator.image.opened import Opened, open_file
from buda_emu.emulator.memory.host import usable_processors
from buda_emu.emulator.op_errors.numerics import explain
from buda_emu.emulator.op_errors.numerics_result import CAUSES, Numerics, OpNumerics
from buda_emu.netlist.model import Netlist
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.workers.job import Workers


@dataclass(frozen=True)
class Explained:
    """The error of every op, its cause, and what would repair it. `run` holds everything, `rows` the usual of it."""

    run: Numerics = field(repr=False)

    @property
    def ops(self) -> tuple[OpNumerics, ...]:
        """In the order of their first run."""
        return self.run.ops

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """A plain dict for each op (`pandas.DataFrame(explained.rows)`); errors are rms, relative to the ideal values.

        `run_error` is that of the whole run, `own_error` that of the op by itself, `without_...` what is left of it
        when one cause is switched off.
        """
        return [
            {
                "op": op.name,
                "type": op.type,
                "graph": op.graph,
                "format": op.out_df,
                "run_error": op.total.rms,
                "run_pcc": op.total.pcc,
                "own_error": op.local.rms if op.local is not None else None,
                "max_error": op.local.max_error if op.local is not None else None,
                **{f"without_{cause}": op.without.get(cause) for cause in CAUSES},
                "cause": op.cause or None,
                "repair": None
                if op.repair is None
                else ", ".join(f"{change.field}: {change.before} -> {change.after}" for change in op.repair.changes),
                "error_repaired": op.repair.error if op.repair is not None else None,
            }
            for op in self.ops
        ]

    def to_json(self) -> dict[str, Any]:
        """Everything, as `buda-emu numerics --json` writes it, with its `schema_version`."""
        return self.run.as_json()

    def __repr__(self) -> str:
        known = [row for row in self.rows if row["own_error"] is not None]
        worst = max(known, key=lambda row: row["own_error"], default=None)
        held = f", worst alone {worst['op']} ({worst['own_error']:.1e}, {worst['cause']})" if worst else ""
        return f"<Explained {self.run.netlist} on {self.run.arch}: {plural(len(self.ops), 'op')}{held}>"

    def _repr_html_(self) -> str:
        return html_table(repr(self)[1:-1], self.rows)


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
    progress: Callable[[str], None] = lambda _: None,
) -> Explained:
    """Run a netlist, or the path of one or of a device image, as the chip computes and in float32, and take the error
    of each op apart.

    `op`: of this one only; `inputs`: a folder with <queue>.npy, or an .npz file by queue, of an image that `compile`
    wrote by the model's own input names; `parameters` ("$name": value) replace the harness's
    defaults. `workers`: processes that take ops apart, or the Dask cluster whose scheduler is at `dask`; they change no
    figure. Raises what loading and running raise, HostError for an unknown op, program or parameter.
    """
    opened = Opened(source) if isinstance(source, Netlist) else open_file(fspath(source), arch)
    netlist = opened.to_run
    if arch is not None and netlist.arch_name != arch:
        raise HostError(f"the netlist was loaded for {netlist.arch_name}: load it with arch={arch!r}")
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
        progress=progress,
    )
    return Explained(run)
