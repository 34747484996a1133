"""`buda-emu vpux run`: run a function and show its outputs, its times and its races."""

import argparse
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from buda_emu.app.cli.output import say, say_lines, write_json, write_output, write_picture
from buda_emu.app.cli.shared_arguments import read_options
from buda_emu.emulator.inputs.numpy_files import read_npy
from buda_emu.emulator.options import Memory
from buda_emu.foreign.vpux import load
from buda_emu.foreign.vpux.comparison import Comparison, compare
from buda_emu.foreign.vpux.execute.run import BarrierResult, RunResult, TaskResult, run
from buda_emu.foreign.vpux.report import (
    Pressure,
    barrier_pressure,
    comparison_lines,
    race_lines,
    run_lines,
    run_picture,
)
from buda_emu.foreign.vpux.schedule import CostModel, one_step
from buda_emu.performance.timeline import Hazard
from buda_emu.support.columns import Column, Columns
from buda_emu.support.errors import Exit, HostError


def main(args: argparse.Namespace) -> int:
    """Run a function, or compare two. Exit code 0; 1 when --compare finds a difference; 2 refused; 3 not emulated; 4
    deadlock or fault."""
    if args.model is None:
        model = None
    else:
        model = CostModel.from_text(args.model)
    if model is None:
        duration = one_step
    else:
        duration = model.duration
    if model is None:
        words = "one step for each task, no durations"
    else:
        words = f"modelled, assumed: {_parameters(model)}"
    document = load(args.file)
    inputs = _read_inputs(args.input)
    if args.compare is not None:
        comparison = compare(
            document,
            load(args.compare),
            args.function,
            args.split,
            args.compare_function,
            args.compare_split,
            inputs,
            args.arch,
            duration=duration,
        )
        return _show_comparison(args, comparison, words)
    result = run(
        document,
        args.function,
        args.split,
        inputs,
        args.arch,
        duration=duration,
        **cast("dict[str, Any]", read_options(args, Memory)),  # the parser has a default
    )
    if not args.quiet and len(document.functions) > 1 and args.function is None and args.split is None:
        function = result.scheduled.program.function
        count = len(document.functions)
        say(f"@{function.name} of split {function.split}, one of {count} functions; --function and --split choose\n")
    _show(args, result, words)
    _write(args, result, words)
    return 0


def _parameters(model: Any) -> str:
    """Return the parameters of a cost model as text."""
    return ", ".join(f"{name} {value}" for name, value in model.parameters.items())


def _read_inputs(words: list[str]) -> dict[int, Any]:
    """Read the arrays of `--input N=FILE.npy`, by number of argument. Raises HostError for another text."""
    arrays: dict[int, Any] = {}
    for word in words:
        number, _, name = word.partition("=")
        if not number.isdecimal() or not name:
            raise HostError(f"--input {word}: expected N=FILE.npy")
        arrays[int(number)] = read_npy(Path(name))
    return arrays


def _show(args: argparse.Namespace, result: RunResult, words: str) -> None:
    """Print the report of a run, or its races alone with --quiet. `words` describe the durations."""
    say_lines(race_lines(result, result.races) if args.quiet else run_lines(result, words))


def _show_comparison(args: argparse.Namespace, comparison: Comparison, words: str) -> int:
    """Print a comparison, write the files of the second run, and return the exit code. `words` describe the
    durations."""
    say_lines(comparison_lines(comparison))
    _write(args, comparison.second, words)
    if comparison.is_equal:
        return Exit.OK
    return Exit.DIFFERS


def _write(args: argparse.Namespace, result: RunResult, words: str) -> None:
    """Write outputs, JSON and trace of a run where the command asks for them. `words` describe the durations."""
    if args.out is not None:
        arrays: dict[str, Any] = {f"out{number}": array for number, array in enumerate(result.outputs)}
        write_output(args.out, lambda stream: np.savez(stream, **arrays))
    if args.json is not None:
        write_json(args.json, RUN.document((result, words)))
    if args.trace is not None:
        write_picture(args.trace, run_picture(result, words))


def _first_task(race: Hazard) -> int | None:
    """Return the task that comes first in a race, None where nobody wrote the bytes."""
    return None if race.first < 0 else race.first


_TASK: Final = Columns[TaskResult](TaskResult, Column("duration", int, lambda task: task.duration))
_PRESSURE: Final = Columns[Pressure](
    Column("limit", int, lambda pressure: pressure.limit),
    Column("most", int, lambda pressure: pressure.most),
    Column("changes", list[tuple[int, int]], lambda pressure: pressure.changes),
)
_OUTPUT: Final = Columns[np.ndarray[Any, Any]](
    Column("dtype", str, lambda array: str(array.dtype)), Column("shape", list[int], lambda array: array.shape)
)
RUN: Final = Columns[tuple[RunResult, str]](
    Column("document", str, lambda run: run[0].scheduled.program.function.document.path),
    Column("function", str, lambda run: run[0].scheduled.program.function.name),
    Column("split", int, lambda run: run[0].scheduled.program.function.split),
    Column("arch", str, lambda run: run[0].scheduled.program.arch.name),
    Column("durations", str, lambda run: run[1]),
    Column("makespan", int, lambda run: run[0].makespan),
    Column("tasks", [_TASK], lambda run: run[0].tasks),
    Column("barriers", list[BarrierResult], lambda run: run[0].barriers),
    Column("barriers_in_use", _PRESSURE, lambda run: barrier_pressure(run[0])),
    Column("races", [Columns[Hazard](Hazard, Column("first", int | None, _first_task))], lambda run: run[0].races),
    Column("outputs", [_OUTPUT], lambda run: run[0].outputs),
    Column("unwritten_outputs", dict[int, int], lambda run: run[0].unwritten_outputs),
)
"""What `vpux run --json` writes: a run, and words for the durations of its tasks."""
