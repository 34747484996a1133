"""`buda-emu compile`: compile a model to a netlist and an image with its parameters."""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from inspect import currentframe
from pathlib import Path
from signal import SIGINT

from buda_emu.app.cli.arguments.compile import EXAMPLE
from buda_emu.app.cli.kernels import counted_kernels
from buda_emu.app.cli.output import Progress, complain, say, say_lines
from buda_emu.app.cli.shared_arguments import read_options, record_of
from buda_emu.app.debugger.machine.stop import ctrl_c
from buda_emu.app.documents.kinds import require_model
from buda_emu.compiler.compilation import CompileOptions, chips_of
from buda_emu.compiler.compile import compile as compile_model
from buda_emu.compiler.compile import compile_from, compile_until
from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.graph.builder import printable_name
from buda_emu.compiler.ir.text import print_file, write_ir
from buda_emu.compiler.parted import PartedModel, compile_in_parts
from buda_emu.compiler.pipeline import NAMES, Observer, require_pass_name
from buda_emu.compiler.place.placement import Placement
from buda_emu.emulator.options import Memory, SharedWork, memory_of
from buda_emu.netlist.fields import LOW_EFFORT, LOW_EFFORT_LOSS
from buda_emu.report.terminal.text import prose, table
from buda_emu.spec.boards import board, board_with_grid, largest_board
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError, HostWarning, UnsupportedError
from buda_emu.support.interrupt import interrupt
from buda_emu.support.progress import Activity
from buda_emu.support.warned import collected_warnings
from buda_emu.support.workers.job import workers_of


def main(args: argparse.Namespace) -> int:
    """Compile and print a summary. Exit code 0; failures are raised."""
    _refuse_contradictions(args)
    if args.file is not None:
        require_model("compile", args.file)
    progress = Progress(args.quiet)
    observer = _make_observer(args, progress)
    progress.show(f"compiling {args.file or args.start_from}")
    observer.tell = progress.show
    observer.progress = partial(_report_pass, progress)
    try:
        if args.stop_after:
            return _compile_until(args, observer)
        with (
            ctrl_c(partial(_end_search, observer)),
            counted_kernels(progress),
            collected_warnings(HostWarning) as warned,
        ):
            compiled = _compile(args, observer)
        findings = compiled.check(strict=True)
        paths: Iterable[Path] = ()
        if args.output is not None:
            paths = compiled.save(args.output)
    finally:
        progress.clear()
        if args.time_passes:
            say(pass_times(observer.seconds))

    for text in warned:
        complain(f"buda-emu: warning: {text}")
    for finding in findings:
        complain(f"buda-emu compile: {finding}")
    _print_results(args, compiled, paths)
    return 0


def _print_results(args: argparse.Namespace, compiled: CompiledModel | PartedModel, paths: Iterable[Path]) -> None:
    """Print a few lines on what was compiled, with --explain the report on its placement, and the files."""
    on_device = compiled if isinstance(compiled, CompiledModel) else compiled.compiled
    if not args.quiet:
        say_lines((summary(compiled),) if isinstance(compiled, CompiledModel) else parts_lines(compiled))
        if on_device is not None:
            say_lines(placement_hints(on_device.placement))
            say_lines(_idle_chip_lines(args, on_device.placement))
    if args.explain and on_device is not None:
        say(on_device.report())
    elif args.explain:
        say("the host runs every operator of this model, so nothing was placed")
    if not args.quiet:
        say_lines(f"wrote {path}" for path in paths)


def placement_hints(placement: Placement) -> Iterator[str]:
    """Yield lines of advice on a placement: that no board on sale has its chip, and what low effort costs; nothing if
    neither is so."""
    target = placement.target
    arch = target.arch.name
    rows, columns = target.arch.grid
    suggested = largest_board(arch)
    if not target.board and suggested is not None and board_with_grid(arch, target.arch.grid) is None:
        yield from prose(
            f"no board with {rows}x{columns} cores of {arch} is on sale; --board {suggested.name} compiles for one"
        )
    if placement.record.effort == LOW_EFFORT:
        yield from prose(f"effort low: the first legal placement; {LOW_EFFORT_LOSS}")


def _idle_chip_lines(args: argparse.Namespace, placement: Placement) -> Iterator[str]:
    """Yield the sentence on the chips of the command line that the placement leaves without an op."""
    count = 1
    if args.chips is not None:
        chips = chips_of(args.chips, placement.target.arch.name)
        count = chips if isinstance(chips, int) else len(chips.ids)
    elif args.board:
        count = board(args.board).chips
    if placement.chips < count:
        verb = "has"
        if placement.chips > 1:
            verb = "have"
        yield from prose(
            f"{placement.chips} of {plural(count, 'chip')} {verb} ops: the model was neither cut nor copied over the "
            "others; --explain says what was tried"
        )


def _refuse_contradictions(args: argparse.Namespace) -> None:
    """Raise HostError for a command line without a model, or with options that exclude each other."""
    if args.file is None and args.start_from is None:
        raise HostError("compile: no model; an example: " + EXAMPLE)
    is_partial = bool(args.on_host or args.stop_after)
    if args.explain and args.stop_after:
        raise HostError("compile: --explain cannot be combined with --stop-after, which may leave nothing placed")
    if args.start_from is not None and (args.file is not None or is_partial):
        raise HostError("compile: --start-from cannot be combined with a model, --on-host or --stop-after")
    if args.parameters is not None and (args.start_from is not None or is_partial):
        raise HostError("compile: --parameters goes with none of --start-from, --on-host and --stop-after")


def _report_pass(progress: Progress, activity: Activity) -> None:
    """Show the pass that runs. Activities of the search are left out, since the observer's `tell` shows them."""
    if activity.stage != "search":
        progress.report(activity)


def _end_search(observer: Observer) -> None:
    """Handle Ctrl-C: end the search that runs, so that the compilation goes on with the best placement so far. Without
    a search, and for a second Ctrl-C, raise KeyboardInterrupt."""
    if observer.work is None or not observer.work.end():
        interrupt(SIGINT, currentframe())


def _make_observer(args: argparse.Namespace, progress: Progress) -> Observer:
    """Make the observer of passes that --print-after, --verify-each and --time-passes ask for; it also shows the memory
    that will be needed. Raises HostError for an unknown name of a pass."""
    if "all" in args.print_after:
        printed = NAMES
    else:
        printed = [require_pass_name(name, "--print-after") for name in args.print_after]
    if args.stop_after:
        require_pass_name(args.stop_after, "--stop-after")

    def foreseen(words: str) -> None:
        """Tell the user what the compilation is about to need: as a message under a memory limit, else in the
        progress line."""
        if memory_of(read_options(args, Memory)) and not args.quiet:
            complain(f"buda-emu compile: {words}")
        progress.show(f"compiling {args.file or args.start_from}: {words}")

    return Observer(show=say, foreseen=foreseen, printed=frozenset(printed), verify=args.verify_each)


def _compiler_options(args: argparse.Namespace, observer: Observer) -> CompileOptions:
    """Return the options of the compiler that the command line states."""
    return record_of(
        CompileOptions,
        args,
        arch=args.arch or "",
        board=args.board or "",
        fuse=not args.no_fuse,
        observer=observer,
        workers=workers_of(read_options(args, SharedWork)),
        sizes=dict(args.size),
    )


def _compile(args: argparse.Namespace, observer: Observer) -> CompiledModel | PartedModel:
    """Compile the model, or go on from the .ir file of --start-from. Operators of an ONNX model that the device cannot
    do go to the host, unless --no-host forbids it. Raises UnsupportedError if they cannot."""
    options = _compiler_options(args, observer)
    if args.on_host:
        return compile_in_parts(args.file, on_host=args.on_host, options=options)
    if args.start_from is not None:
        return compile_from(args.start_from, options=options)

    try:
        return compile_model(args.file, parameters=args.parameters, options=options)
    except UnsupportedError:
        if args.no_host or Path(args.file).suffix.lower() != ".onnx":
            raise
    # What is refused now is what the host cannot do either.
    return compile_in_parts(args.file, options=options)


def _compile_until(args: argparse.Namespace, observer: Observer) -> int:
    """Compile up to the pass of --stop-after, and write the model as .ir to the folder of -o or print it. Returns exit
    code 0. Raises HostError with --on-host."""
    if args.on_host:
        raise HostError("compile: --stop-after does not go with --on-host: a part of a model is not a model")
    graph = compile_until(args.file, stop_after=args.stop_after, options=_compiler_options(args, observer))
    if args.output is None:
        say(print_file(graph)[0].rstrip())
        return 0
    for path in write_ir(args.output, f"model.{args.stop_after}", graph):
        if not args.quiet:
            say(f"wrote {path}")
    return 0


def parts_lines(parted: PartedModel) -> Iterator[str]:
    """Yield the summary of the netlist, and the steps of device and host in the order in which they run."""
    if parted.compiled is not None:
        yield summary(parted.compiled)
    yield from parted.step_lines()


def pass_times(seconds: Mapping[str, float]) -> str:
    """Return a table of the processor time of each pass, given in seconds by name, and of all."""
    total = sum(seconds.values())
    rows = [(name, f"{took:.3f}", f"{100 * took / max(total, 1e-9):.0f} %") for name, took in seconds.items()]
    return table(("pass", "seconds", "share"), [*rows, ("all", f"{total:.3f}", "")], right=(1, 2))


def summary(compiled: CompiledModel) -> str:
    """Return a few lines on a compiled model: placement, constants, inputs and outputs."""
    placement = compiled.placement
    cores = sum(placed.blocks.grid[0] * placed.blocks.grid[1] for placed in placement.ops.values())
    copies = ""
    if placement.stages > 1:
        copies = f", cut over {placement.stages} chips"
    if placement.copies > 1:
        copies += f", a copy on each of {placement.copies} chips"
    size = sum(constant.values.size for constant in placement.tiles.constants.values())
    lines = [
        (
            f"{compiled.graph.name}: {placement.target.title}, {placement.target.activation_df}, "
            f"{placement.target.fidelity}: {plural(len(placement.ops), 'op')} on {plural(cores, 'core')} in "
            f"{plural(placement.epochs, 'epoch')}{copies}, "
            f"{plural(len(placement.tiles.constants), 'constant')} of {size} elements"
        )
    ]
    for model_input in compiled.io.inputs:
        contents = f"{list(model_input.shape)} {model_input.dtype}"
        if model_input.indices:
            contents += ", indices"
        lines.append(f"  input {printable_name(model_input.label)}: {contents} -> queue {model_input.queue}")
    for output in compiled.io.outputs:
        contents = f"{list(output.shape)} {output.dtype}"
        lines.append(f"  output {printable_name(output.label)}: {contents} -> queue {output.queue}")
    if placement.record.is_notable:
        lines.append(f"  {placement.record.summary()}")
    return "\n".join(lines)
