"""One cell of the table: a model on a board, by torch or by ONNX. Runs in a process of its own, so that its peak of
memory is its own."""

import resource
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

import buda_emu as be
from buda_emu.app.api.run_netlist import run_netlist
from buda_emu.compiler.compiled import difference
from buda_emu.compiler.place.memory import MemoryFullError
from buda_emu.spec.precision import Precision
from generating import steps_per_second

from .generation import WINDOW, Generation
from .models import Model

TOKENS = 24
"""That are generated and compared."""


@dataclass(slots=True)
class Cell:
    """What was measured. `seconds` of processor time and `memory` (peak of the process, bytes) are those of
    `be.compile`; `weights` of the original, in bytes, are in it; `rate` is modelled, inputs per second; `bounds`: share
    of the time of a round by what sets the pace; `longest`: what does so in the epoch that takes most of it; `pcc` by
    precision; `tokens`: how many that are generated in `ideal` are the original's, of how many, and how many different
    ones are among them; `problem` says why there is no figure."""

    model: str
    board: str
    form: str
    settings: str
    commit: str
    effort: str = "default"
    seconds: float = 0.0
    memory: int = 0
    weights: int = 0
    ops: int = 0
    epochs: int = 0
    inputs: int = 0
    findings: int = 0
    rate: float = 0.0
    bounds: dict[str, float] = field(default_factory=dict)
    longest: str = ""
    pcc: dict[str, float] = field(default_factory=dict)
    tokens: Sequence[int] = ()
    problem: str = ""

    @property
    def key(self) -> str:
        """Names the cell in the file of results."""
        return f"{self.model} {self.board} {self.form}"

    def as_json(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)


def measure(
    model: Model,
    board: str,
    form: str,
    checks: Sequence[Precision],
    commit: str,
    effort: str = "default",
    tell: Callable[[str], None] = lambda _: None,
    show: Callable[[Cell], None] = lambda _: None,
) -> Cell:
    """Compile, hold against the rules, model, and run as `checks` say (one input at full size). `show` is given the
    cell as far as it is known before each run."""
    settings = model.settings(board)
    cell = Cell(model.name, board, form, str(settings), commit, effort)
    name, _, chips = board.partition(":")
    options: dict[str, Any] = {
        "board": name,
        "chips": int(chips) if chips else None,
        "df": settings.df,
        "fidelity": settings.fidelity,
        "effort": effort,
    }
    tell("building")
    made = model.source()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.process_time()
        try:
            if isinstance(made, Generation):
                tell("compiling")
                compiled = be.compile_programs(made.programs, **options)
            else:
                source, given = _source(*made, form)
                tell("compiling")
                begin = time.process_time()
                compiled = _compiled(source, given, settings.microbatch, name=model.name, **options)
                del source, given
        except be.BudaError as error:
            cell.problem = str(error).splitlines()[0]
            return cell
        cell.seconds = time.process_time() - begin
        cell.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        cell.weights = _weights(made)
        tell("modelling")
        _model(cell, compiled, "decode" if isinstance(made, Generation) else "")
        tell("checking")
        cell.findings = len(compiled.check(strict=True))
        with TemporaryDirectory() as folder:
            if isinstance(made, Generation):
                run = partial(_generate, compiled, made)
            elif checks:
                run = partial(_correlate, _saved(compiled, made, Path(folder)), Path(folder))
            else:
                return cell
            del compiled, made  # with all parameters: a run takes as much memory once more
            for precision in checks:
                show(cell)
                tell(f"running, {precision}")
                run(cell, precision)
    return cell


def _weights(made: Any) -> int:
    """Bytes of the original's parameters and buffers."""
    modules = [program.source for program in made.programs.values()] if isinstance(made, Generation) else [made[0]]
    held = [tensor for module in modules for tensor in (*module.parameters(), *module.buffers())]
    return sum({tensor.data_ptr(): tensor.nbytes for tensor in held}.values())


def _saved(compiled: Any, made: Any, folder: Path) -> Any:
    """The image, beside it the inputs by name; what the original gives."""
    module, inputs = made
    compiled.save(folder)
    np.savez(folder / "inputs.npz", **dict(zip(compiled.io.labels, (item.numpy() for item in inputs), strict=True)))
    return module(*inputs).numpy()


def _correlate(expected: Any, folder: Path, cell: Cell, precision: Precision) -> None:
    """The output of the image, beside what its epochs leave to each other, compared with the original's."""
    image = be.load_image(folder / "model.tti")
    report = run_netlist(image.netlist, inputs=folder / "inputs.npz", precision=precision, image=image)
    assert image.model is not None
    (output,) = image.model.by_queue
    cell.pcc[precision] = difference("", expected, report.arrays[output]).pcc or 0.0


def _model(cell: Cell, compiled: Any, program: str) -> None:
    """The modelled pace, of a program where there are several, and what sets it."""
    cell.ops = len(compiled.placement.ops)
    cell.inputs = compiled.placement.inputs
    perf = compiled.perf(program) if program else compiled.perf()
    cell.rate = steps_per_second(compiled, program) if program else perf.inputs_per_second
    cell.epochs = len(perf.run.epochs) if program else compiled.placement.epochs
    cell.bounds = bounds(perf.run)
    cell.longest = longest(perf.run)


def _generate(compiled: Any, made: Generation, cell: Cell, precision: Precision) -> None:
    """Scores of a window beside the original's; in `ideal` tokens, one after the other."""
    expected = made.greedy(TOKENS)
    if made.source:
        compiled(*made.source, program="encode", precision=precision)
    if precision == "ideal":
        found = compiled.generate(made.prompt, TOKENS, program="decode")
        same = next((n for n, pair in enumerate(zip(found, expected, strict=True)) if len({*pair}) > 1), TOKENS)
        cell.tokens = same, TOKENS, len({*expected})
    tokens = [*made.prompt, *expected][:WINDOW]
    window = torch.zeros(1, WINDOW, dtype=torch.int64)
    window[0, : len(tokens)] = torch.tensor(tokens)
    ours = compiled(window, torch.arange(WINDOW)[None], program="decode", precision=precision)[0][0, : len(tokens)]
    cell.pcc[precision] = difference("", made.scores(torch.tensor([tokens]))[0].numpy(), ours).pcc or 0.0
    compiled.close()


def _compiled(source: Any, given: Any, microbatch: int, **options: Any) -> Any:
    """With so many inputs in a round, or half as many as long as memory is too small for their queues: the table shows
    both. Raises what `be.compile` does."""
    try:
        return be.compile(source, given, microbatch=microbatch, **options)
    except MemoryFullError:
        if microbatch == 1:
            raise
    return _compiled(source, given, microbatch // 2, **options)


def _source(module: Any, inputs: tuple[Any, ...], form: str) -> tuple[Any, tuple[Any, ...] | None]:
    if form == "torch":
        return torch.export.export(module, inputs).run_decompositions({}), None
    import onnx

    with TemporaryDirectory() as folder:
        written = Path(folder) / "model.onnx"
        torch.onnx.export(module, inputs, written, dynamo=False, opset_version=17)
        return onnx.load(written), None


def bounds(run: Any) -> dict[str, float]:
    """Shares of the chip's time of a round: loading, and of the rest what sets each epoch's pace. `host link`: how long
    it takes beside that time, which it bounds where it is above 1."""
    total = sum(epoch.runs * epoch.cycles for epoch in run.epochs) or 1.0
    found = {"loading": sum(epoch.runs * epoch.load.cycles for epoch in run.epochs) / total}
    for epoch in run.epochs:
        kind = epoch.bottleneck.kind
        found[kind] = found.get(kind, 0.0) + epoch.runs * (epoch.cycles - epoch.load.cycles) / total
    found["host link"] = sum(run.host_seconds().values()) / run.seconds(total)
    return {name: round(share, 4) for name, share in found.items()}


def longest(run: Any) -> str:
    """What sets the pace of the epoch in which the chip is longest, with its share of the time of a round."""
    if not run.epochs:
        return ""
    most = max(run.epochs, key=lambda epoch: epoch.runs * epoch.cycles)
    share = most.runs * most.cycles / sum(epoch.runs * epoch.cycles for epoch in run.epochs)
    return f"{most.bottleneck.kind} {most.bottleneck.name}, {100 * share:.0f} %"


__all__: Sequence[str] = ["Cell", "bounds", "longest", "measure"]
