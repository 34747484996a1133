"""`be.numerics`: finds the ops, and the causes in them, that make the chip's results differ from float32."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Unpack
from zipfile import ZipFile

import numpy as np

from buda_emu.app.api.shown import html_table
from buda_emu.app.api.sources import compiled_of, is_parted, open_source
from buda_emu.arithmetic.jit.reporting import reported_work
from buda_emu.emulator.inputs.numpy_files import npz_of
from buda_emu.emulator.op_errors.numerics import explain
from buda_emu.emulator.op_errors.numerics_result import CAUSES, Numerics, OpNumerics, inherent_cause
from buda_emu.emulator.options import Arch, Machine, Programs, Seed, SharedWork, machine_of, memory_of
from buda_emu.emulator.runtime.host.host_io import as_numpy
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError, UnsupportedError
from buda_emu.support.options import declared_options, with_options
from buda_emu.support.progress import Report
from buda_emu.support.workers.job import workers_of

if TYPE_CHECKING:
    from buda_emu.app.api.sources import Source
    from buda_emu.emulator.image.device_image import DeviceImage


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
        """Return the table of figures that a notebook shows."""
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


class OfNetlists(Programs, SharedWork, total=False):
    """Options that a compiled model does not have."""


class NumericsOptions(OfNetlists, Arch, Seed, Machine, total=False):
    """The options of `numerics` that other functions have, too."""


@with_options
def numerics(
    source: "Source",
    *,
    op: str | None = None,
    inputs: "str | PathLike[str] | Sequence[Any] | None" = None,
    progress: Report | None = None,
    **options: Unpack[NumericsOptions],
) -> Explained:
    """Run a netlist as the chip computes and in float32, and split the error of each op into its causes.

    `source` is a netlist, an image, a compiled or loaded model, or the path of a netlist or image. `op` limits the
    analysis to one op. `inputs` is a folder with <queue>.npy, or an .npz file whose arrays are named by queue; for an
    image that `compile` wrote, by the model's own input names. For a model they may also be one set of arrays in the
    model's order; a compiled model takes its example inputs if none are given, and has no other options than `op`,
    `seed`, `threads` and the limit of memory. `parameters` ("$name": value) replace the harness's defaults. `workers`
    processes, or the Dask cluster whose scheduler is at `dask`, share the analysis; they change no figure. `progress`
    gets an Activity for each step (docs/python/embedding.md). Raises the errors of loading and running, and HostError
    for an unknown op, program or parameter.
    """
    opened = open_source(source, options.get("arch"), function="numerics")
    machine = machine_of(options)
    seed = options.get("seed", 0)
    compiled = compiled_of(source)
    if compiled is not None:
        _refuse_options_of_netlists(source, options)
        arrays = _arrays_of_model(compiled.io.labels, inputs, memory_of(options))
        run = compiled.numerics_of_ops(arrays, only=op, seed=seed, progress=progress, **machine)
        return Explained(run)
    with reported_work(progress) as report, _inputs_as_file(opened.image, inputs) as path:
        run = explain(
            opened.to_run,
            options.get("programs", ()),
            options.get("parameters"),
            image=opened.image,
            inputs=path,
            seed=seed,
            only=op,
            workers=workers_of(options),
            progress=report,
            **machine,
        )
    return Explained(run)


def _refuse_options_of_netlists(source: object, options: NumericsOptions) -> None:
    """Raise HostError for options that a compiled model does not have, and UnsupportedError for a model that the host
    computes in part."""
    if is_parted(source):
        raise UnsupportedError("numerics: the host computes a part of the model: compile it whole, or take its layers")
    changed: list[str] = []
    for name, option in declared_options(OfNetlists).items():
        value = options.get(name)
        if value and value != option.default:
            changed.append(name)
    names = ", ".join(changed)
    if names:
        raise HostError(f"numerics: {names}: options of netlists and images: save the model, and give its image")


def _arrays_of_model(
    labels: Sequence[str], inputs: "str | PathLike[str] | Sequence[Any] | None", byte_limit: int | None
) -> Sequence[Any] | None:
    """Return one set of a model's inputs in its order: the given arrays (None stays None), or those of an .npz file
    with the model's input names. Raises HostError for a file that lacks one or has others."""
    if inputs is None or not isinstance(inputs, (str, PathLike)):
        return inputs
    arrays = npz_of(f"inputs: {fspath(inputs)}", Path(inputs), byte_limit)
    if set(arrays) != set(labels):
        raise HostError(f"inputs: {fspath(inputs)} holds {', '.join(arrays)}; the model takes {', '.join(labels)}")
    return [arrays[label] for label in labels]


@contextmanager
def _inputs_as_file(
    image: "DeviceImage | None", inputs: "str | PathLike[str] | Sequence[Any] | None"
) -> "Generator[Path | None]":
    """Yield the path of the inputs, None if there are none. Arrays are written to a temporary .npz file under the
    model's input names, which is deleted after the block. Raises HostError for arrays without a model, and for another
    number of arrays than the model takes."""
    if inputs is None:
        yield None
        return
    if isinstance(inputs, (str, PathLike)):
        yield Path(inputs)
        return
    if image is None or image.model is None:
        raise HostError("inputs: arrays are inputs of a model; for a netlist give a folder or an .npz file")
    labels = image.model.labels
    if len(inputs) != len(labels):
        raise HostError(f"{plural(len(inputs), 'input')}, the model takes {len(labels)}: {', '.join(labels)}")
    with TemporaryDirectory(prefix="buda-emu-") as folder:
        path = Path(folder) / "inputs.npz"
        with ZipFile(path, "w") as archive:
            for label, array in zip(labels, inputs, strict=True):
                with archive.open(f"{label}.npy", "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, as_numpy(array, f"input {label}"), allow_pickle=False)
        yield path
