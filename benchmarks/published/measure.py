"""One cell of the table: a model on a board, by torch or by ONNX. Runs in a process of its own, so that its peak of
memory is its own."""

import io
import resource
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

import buda_emu as be
from buda_emu.compiler.comparison import difference
from buda_emu.compiler.place.memory import MemoryFullError

from .models import Model


@dataclass(slots=True)
class Cell:
    """What was measured. `seconds` of processor time and `memory` (peak of the process, bytes) are those of
    `be.compile`; `rate` is modelled, inputs per second; `bounds`: share of the time of a round by what sets the pace;
    `longest`: what does so in the epoch that takes most of it; `pcc` by precision; `problem` says why there is no
    figure."""

    model: str
    board: str
    form: str
    settings: str
    commit: str
    effort: str = "default"
    seconds: float = 0.0
    memory: int = 0
    ops: int = 0
    epochs: int = 0
    inputs: int = 0
    findings: int = 0
    rate: float = 0.0
    bounds: dict[str, float] = field(default_factory=dict)
    longest: str = ""
    pcc: dict[str, float] = field(default_factory=dict)
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
    checks: Sequence[str],
    commit: str,
    effort: str = "default",
    tell: Callable[[str], None] = lambda _: None,
) -> Cell:
    """Compile, hold against the rules, model, and run as `checks` say (one input at full size)."""
    settings = model.settings(board)
    cell = Cell(model.name, board, form, str(settings), commit, effort)
    name, _, chips = board.partition(":")
    tell("building")
    module, inputs = model.source()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = module(*inputs)
        source, given = _source(module, inputs, form)
        tell("compiling")
        begin = time.process_time()
        try:
            compiled = _compiled(
                source, given, settings.microbatch, board=name, chips=int(chips) if chips else None, df=settings.df,
                fidelity=settings.fidelity, effort=effort, name=model.name,
            )  # fmt: skip
        except be.BudaError as error:
            cell.problem = str(error).splitlines()[0]
            return cell
    cell.seconds = time.process_time() - begin
    cell.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    cell.ops, cell.epochs, cell.inputs = (
        len(compiled.placement.ops), compiled.placement.epochs, compiled.placement.inputs,
    )  # fmt: skip
    tell("modelling")
    perf = compiled.perf()
    cell.rate, cell.bounds, cell.longest = perf.inputs_per_second, bounds(perf.run), longest(perf.run)
    tell("checking")
    cell.findings = len(compiled.check(strict=True))
    for precision in checks:
        tell(f"running, {precision}")
        found = compiled(*inputs, precision=precision)
        found = found[0] if isinstance(found, tuple) else found
        cell.pcc[precision] = difference("", expected.numpy(), np.asarray(found)).pcc or 0.0
        compiled.close()
    return cell


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

    written = io.BytesIO()
    torch.onnx.export(module, inputs, written, dynamo=False, opset_version=17)
    return onnx.load_from_string(written.getvalue()), None


def bounds(run: Any) -> Mapping[str, float]:
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
