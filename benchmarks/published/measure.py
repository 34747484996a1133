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
"""The number of tokens that are generated and compared."""


@dataclass(slots=True)
class Cell:
    """The measured figures of one model on one board. `seconds` (processor time) and `memory` (peak of the process,
    bytes) are those of `be.compile`; `memory` includes `weights`, the bytes of the original's weights. `rate` is
    modelled, in inputs per second. `bounds` has the share of a round's time by the kind of resource that limits it,
    and `longest` names what limits the longest epoch. `pcc` is by precision. `tokens` counts, of the tokens that are
    generated in `ideal`, those equal to the original's, all, and the different ones. `problem` is the reason if
    there is no figure."""

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
        """The name of the cell in the file of results."""
        return f"{self.model} {self.board} {self.form}"

    def as_json(self) -> dict[str, Any]:
        """Return all fields as a dict."""
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
    cell = Cell(model=model.name, board=board, form=form, settings=str(settings), commit=commit, effort=effort)
    name, _, chips = board.partition(":")
    options: dict[str, Any] = {
        "board": name,
        "chips": int(chips) if chips else None,
        "df": settings.df,
        "fidelity": settings.fidelity,
        "effort": effort,
    }
    tell("building")
    original = model.source()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.process_time()
        try:
            if isinstance(original, Generation):
                tell("compiling")
                compiled = be.compile_programs(original.programs, **options)
            else:
                source, example_inputs = _export(*original, form)
                tell("compiling")
                begin = time.process_time()
                compiled = _compile_with_room(source, example_inputs, settings.microbatch, name=model.name, **options)
                del source, example_inputs
        except be.BudaError as error:
            cell.problem = str(error).splitlines()[0]
            return cell
        cell.seconds = time.process_time() - begin
        cell.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        cell.weights = _weights(original)
        tell("modelling")
        _add_modelled_figures(cell, compiled, "decode" if isinstance(original, Generation) else "")
        tell("checking")
        cell.findings = len(compiled.check(strict=True))
        with TemporaryDirectory() as folder:
            if isinstance(original, Generation):
                run = partial(_generate, compiled, original)
            elif checks:
                run = partial(_correlate, _save_image(compiled, original, Path(folder)), Path(folder))
            else:
                return cell
            del compiled, original  # with all parameters: a run takes as much memory once more
            for precision in checks:
                show(cell)
                tell(f"running, {precision}")
                run(cell, precision)
    return cell


def _weights(original: Any) -> int:
    """Return the bytes of the original's parameters and buffers."""
    modules = (
        [program.source for program in original.programs.values()]
        if isinstance(original, Generation)
        else [original[0]]
    )
    sizes: dict[int, int] = {}
    for module in modules:
        for tensor in (*module.parameters(), *module.buffers()):
            sizes[tensor.data_ptr()] = tensor.nbytes
    return sum(sizes.values())


def _save_image(compiled: Any, original: Any, folder: Path) -> Any:
    """Save the compiled image and, beside it, the inputs by name; return the original's output."""
    module, inputs = original
    compiled.save(folder)
    np.savez(folder / "inputs.npz", **dict(zip(compiled.io.labels, (tensor.numpy() for tensor in inputs), strict=True)))
    return module(*inputs).numpy()


def _correlate(expected: Any, folder: Path, cell: Cell, precision: Precision) -> None:
    """Run the image, and set the cell's correlation of its output with the original's."""
    image = be.load_image(folder / "model.tti")
    report = run_netlist(image.netlist, inputs=folder / "inputs.npz", precision=precision, image=image)
    assert image.model is not None
    (output,) = image.model.by_queue
    cell.pcc[precision] = difference("", expected, report.arrays[output]).pcc or 0.0


def _add_modelled_figures(cell: Cell, compiled: Any, program: str) -> None:
    """Set the modelled rate of a cell, of one program if there are several, and what limits it."""
    cell.ops = len(compiled.placement.ops)
    cell.inputs = compiled.placement.inputs
    perf = compiled.perf(program) if program else compiled.perf()
    cell.rate = steps_per_second(compiled, program) if program else perf.inputs_per_second
    cell.epochs = len(perf.run.epochs) if program else compiled.placement.epochs
    cell.bounds = bounds(perf.run)
    cell.longest = longest(perf.run)


def _generate(compiled: Any, original: Generation, cell: Cell, precision: Precision) -> None:
    """Compare the scores of a window with the original's and, in precision `ideal`, the generated tokens."""
    expected = original.greedy(TOKENS)
    if original.source:
        compiled(*original.source, program="encode", precision=precision)
    if precision == "ideal":
        tokens_here = compiled.generate(original.prompt, TOKENS, program="decode")
        same = next((n for n, pair in enumerate(zip(tokens_here, expected, strict=True)) if len({*pair}) > 1), TOKENS)
        cell.tokens = same, TOKENS, len({*expected})
    tokens = [*original.prompt, *expected][:WINDOW]
    window = torch.zeros(1, WINDOW, dtype=torch.int64)
    window[0, : len(tokens)] = torch.tensor(tokens)
    ours = compiled(window, torch.arange(WINDOW)[None], program="decode", precision=precision)[0][0, : len(tokens)]
    cell.pcc[precision] = difference("", original.scores(torch.tensor([tokens]))[0].numpy(), ours).pcc or 0.0
    compiled.close()


def _compile_with_room(source: Any, example_inputs: Any, microbatch: int, **options: Any) -> Any:
    """Compile with `microbatch` inputs in a round, or with half as many as often as memory is too small for their
    queues; the table shows both numbers. Raises what `be.compile` raises."""
    try:
        return be.compile(source, example_inputs, microbatch=microbatch, **options)
    except MemoryFullError:
        if microbatch == 1:
            raise
    return _compile_with_room(source, example_inputs, microbatch // 2, **options)


def _export(module: Any, inputs: tuple[Any, ...], form: str) -> tuple[Any, tuple[Any, ...] | None]:
    """Return the source for `be.compile` in a form, torch or ONNX, with the example inputs that it needs."""
    if form == "torch":
        return torch.export.export(module, inputs).run_decompositions({}), None
    import onnx

    with TemporaryDirectory() as folder:
        written = Path(folder) / "model.onnx"
        torch.onnx.export(module, inputs, written, dynamo=False, opset_version=17)
        return onnx.load(written), None


def bounds(run: Any) -> dict[str, float]:
    """Return shares of the chip's time of a round: loading, and for the rest the resource that limits each epoch. `host
    link` is the time of the host link as a multiple of the chip's; above 1 the link is the limit."""
    total = sum(epoch.runs * epoch.cycles for epoch in run.epochs) or 1.0
    shares = {"loading": sum(epoch.runs * epoch.load.cycles for epoch in run.epochs) / total}
    for epoch in run.epochs:
        kind = epoch.bottleneck.kind
        shares[kind] = shares.get(kind, 0.0) + epoch.runs * (epoch.cycles - epoch.load.cycles) / total
    shares["host link"] = sum(run.host_seconds().values()) / run.seconds(total)
    return {name: round(portion, 4) for name, portion in shares.items()}


def longest(run: Any) -> str:
    """Return what limits the longest epoch, with the epoch's share of the time of a round."""
    if not run.epochs:
        return ""
    slowest = max(run.epochs, key=lambda epoch: epoch.runs * epoch.cycles)
    share = slowest.runs * slowest.cycles / sum(epoch.runs * epoch.cycles for epoch in run.epochs)
    return f"{slowest.bottleneck.kind} {slowest.bottleneck.name}, {100 * share:.0f} %"


__all__: Sequence[str] = ["Cell", "bounds", "longest", "measure"]
