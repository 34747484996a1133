"""`buda-emu run`: run a netlist's programs and print what its queues hold."""

import argparse
import time
from collections.abc import Iterator
from math import prod
from typing import IO, TYPE_CHECKING

from buda_emu.app.cli.findings import print_findings
from buda_emu.app.cli.output import Progress, say, write_json, write_output
from buda_emu.app.cli.shared_arguments import read_options
from buda_emu.emulator.image.opened import is_image, open_file
from buda_emu.emulator.options import Arithmetic, Loading, Machine, Programs, Seed, SharedWork, memory_of
from buda_emu.report.terminal.text import table
from buda_emu.spec.boards import agreed_arch, board
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.output_places import make_folder
from buda_emu.support.version import __version__
from buda_emu.support.workers.job import workers_of

if TYPE_CHECKING:
    from pathlib import Path

    from buda_emu.app.api.report import OutputSummary, RunReport
    from buda_emu.emulator.image.device_image import DeviceImage
    from buda_emu.emulator.image.opened import Opened
    from buda_emu.emulator.runtime.host.exchange import OutputParts
    from buda_emu.netlist.model import Netlist

_TENSOR_SUFFIXES = (".npy", ".bin")
_LONGEST_NAME = 255  # bytes, of a file


def main(args: argparse.Namespace) -> int:
    """Run the programs and report. Exit code 0; failures are raised."""
    if args.outputs is not None:
        make_folder(args.outputs)  # before the work, so that no work is lost
    with Progress(args.quiet) as progress:
        start = time.perf_counter()
        opened = _open_document(args, progress)
        report = _run_document(args, progress, opened, time.perf_counter() - start)
        if args.outputs is not None:
            progress.show("writing outputs")
            _write_arrays(report, args.outputs)  # those of an image; others are there already
    if args.json is not None:
        write_json(args.json, report.as_json())
    if not args.quiet:
        say(_report_text(report, opened.image, args.board))
    return 0


def _require_file_names(netlist: "Netlist") -> None:
    """Raise HostError for an output queue whose name cannot be a file name. Called before the run, so that no work is
    lost."""
    for queue in netlist.queues.values():
        name = queue.name
        fits = len(f"{name}.npy".encode("utf-8", "surrogatepass")) <= _LONGEST_NAME
        if not queue.host_fed and (set(name) & set("/\\\0") or not fits):
            raise HostError(f"outputs: queue name {name[:_LONGEST_NAME]!r} cannot be a file name")


def _open_document(args: argparse.Namespace, progress: Progress) -> "Opened":
    """Load the netlist or the image to run. Raises HostError for --allow-pickle with a netlist, NetlistError or
    ImageError for a document that is refused."""
    if args.allow_pickle and not is_image(args.file):
        raise HostError(f"--allow-pickle is for device images (.tti); {args.file} is a netlist, without pickles")
    progress.show(f"loading {args.file}")
    arch = agreed_arch(args.board, args.arch)
    return open_file(args.file, arch, **read_options(args, Loading))


def _run_document(args: argparse.Namespace, progress: Progress, opened: "Opened", load_seconds: float) -> "RunReport":
    """Run the netlist or image and return its report; outputs are written while they are read. Progress, findings and
    warnings go to standard error."""
    netlist = opened.to_run
    if args.outputs is not None:
        _require_file_names(netlist)
    machine = read_options(args, Machine)
    workers = workers_of(read_options(args, SharedWork))
    # Only a sound netlist is worth the import of numpy and the kernels.
    from buda_emu.app.api.run_netlist import run_netlist
    from buda_emu.app.cli.kernels import shown_kernels
    from buda_emu.testing.verify.result import rounding_warnings

    _require_runnable(netlist, args)
    if not args.quiet:
        progress.clear()
        print_findings(netlist.diagnostics, args.file)
    start = time.perf_counter()

    def inputs_done(done: int, count: int) -> None:
        """Show how many of the `count` inputs are done, as a progress bar."""
        progress.bar(done, count, time.perf_counter() - start, "inputs")

    def print_note(text: str) -> None:
        """Print a note above the progress bar."""
        progress.say_above(f"buda-emu run: {text}")

    with rounding_warnings() as warned, shown_kernels(progress) as show:
        report = run_netlist(
            netlist,
            inputs=args.inputs,
            readout=args.readout,
            workers=workers,
            progress=show,
            load_seconds=load_seconds,
            version=__version__,
            image=opened.image,
            inputs_done=inputs_done if progress.shown else None,
            tell=print_note,
            foretell=print_note if memory_of(machine) and not args.quiet else None,
            sink=lambda output: _write_output_parts(output, args.outputs),
            origins=args.json is not None or not args.quiet,  # else nobody reads them
            **read_options(args, Programs),
            **read_options(args, Arithmetic),
            **read_options(args, Seed),
            **machine,
        )
    for text in warned:
        print_note(f"warning: {text}")
    return report


def _require_runnable(netlist: "Netlist", args: argparse.Namespace) -> None:
    """Raise NetlistError if findings on room or shapes show that the chosen programs must fail, and HostError if a
    board lacks a core or DRAM channel that the netlist uses."""
    from buda_emu.emulator.inputs.entries import select_programs
    from buda_emu.emulator.inputs.prepared import require_runnable

    if args.board:
        from buda_emu.performance.timing.model import require_places

        require_places(netlist, board(args.board).chip)
    require_runnable(netlist, select_programs(netlist, args.program))


def _write_arrays(report: "RunReport", directory: "Path") -> None:
    """Write the outputs that a report holds as <queue>.npy files into a folder."""
    import numpy as np

    for name, array in report.arrays.items():
        write_output(directory / f"{name}.npy", lambda stream, array=array: np.save(stream, array))


def _write_output_parts(output: "OutputParts", directory: "Path | None") -> None:
    """Write an output to the directory as it is read, part by part, in the bytes that `np.save` would write for all of
    it; nothing without a directory. Raises OSError."""
    if directory is None:
        return
    from numpy.lib.format import dtype_to_descr, write_array_header_1_0

    def write(stream: IO[bytes]) -> None:
        """Write the output to the stream in the .npy format, one part after another, so that it is never in memory as
        a whole."""
        form = {"descr": dtype_to_descr(output.dtype), "fortran_order": False, "shape": output.shape}
        write_array_header_1_0(stream, form)
        for part in output.parts:
            stream.write(part.data)

    write_output(directory / f"{output.queue}.npy", write)


def _report_text(report: "RunReport", image: "DeviceImage | None", board_name: str | None) -> str:
    """Return the report as text: title, image, inputs, programs, outputs."""
    threads = plural(report.threads, "thread")
    chip = board(board_name).chip.title if board_name else report.arch
    title = f"{report.netlist}: {chip}, precision {report.precision}, readout {report.readout}, {threads}"
    programs = table(
        ("program", "parameters", "seconds"),
        (
            (
                program.name,
                " ".join(f"{name}={value}" for name, value in program.parameters.items()) or "-",
                f"{program.seconds:.3f}",
            )
            for program in report.programs
        ),
        right=(2,),
        prose=(1,),
    )
    outputs = table(
        ("output", "type", "format", "shape", "min", "max", "mean", "note"),
        map(_output_row, report.outputs),
        right=(4, 5, 6),
        prose=(7,),
        whole=(2, 3),
    )
    inputs = f"{plural(len(report.inputs), 'input')} from {_input_sources(report)}"
    if not report.outputs:
        outputs = "no outputs: every op-fed queue is empty"
    return "\n\n".join([title, *_image_lines(image), inputs, programs, outputs])


def _image_lines(image: "DeviceImage | None") -> Iterator[str]:
    """Yield a line on the image, and a warning for each of its findings."""
    if image is None:
        return
    data = image.metadata
    maker = data.pybuda_pip_version_id or "nobody knows"
    tensors = plural(len(image.tensors), "tensor")
    yield f"image {data.device_image_name}: {tensors}, fp32_fallback {data.fp32_fallback or '-'}, made by {maker}"
    if image.findings:
        yield "\n".join(f"warning: {finding.where}: {finding.message}" for finding in image.findings)


def _input_sources(report: "RunReport") -> str:
    """Return the folders, and other sources, from which inputs came."""
    names = {_source_name(entry.source) for entry in report.inputs}
    return ", ".join(sorted(names)) or "nowhere"


def _source_name(source: str) -> str:
    """Return the folder of a file that holds the tensor of one queue; any other source as it is."""
    if not source.endswith(_TENSOR_SUFFIXES):
        return source
    from pathlib import Path  # a run whose inputs are generated needs no paths

    return Path(source).parent.as_posix()


def _output_row(output: "OutputSummary") -> tuple[str, ...]:
    """Return the row of an output in the table of outputs."""
    figures = ("-" if value is None else f"{value:.6g}" for value in (output.min, output.max, output.mean))
    notes: list[str] = []
    if output.not_finite > 0:
        notes.append(f"{output.not_finite} not finite")
    if output.zeros == prod(output.shape):
        notes.append("all zero")
    note = ", ".join(notes)
    if output.began:
        note += f" (began in {output.began})"
    return output.queue, output.type, output.format, "x".join(map(str, output.shape)), *figures, note
