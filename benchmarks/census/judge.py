"""The judgement of one model: built, run by its framework, compiled, checked, run in `ideal`, compared."""

import copy
import re
import resource
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import buda_emu as be
from buda_emu.compiler.compiled import difference

from .libraries import Model
from .models import build_model, leave_out, masks_of
from .rows import ERROR, PCC, Case, Row

Write = Callable[[Row], None]
_REFUSED: Final = re.compile(r"(?P<operator>.+?): \d+ times?(, first at .*)?$")
_BETWEEN_OPERATORS: Final = re.compile(r"; (?![^(]*\))")
"""A semicolon that is not within parentheses: there it belongs to the reason of a refusal."""
_NOISE: Final = 5e-7
"""A relative change of parameters: four units of rounding in float32. A unit of a network is 3 to 30 units apart from
torch, since the sums have another order."""
_DRAWS_OF_NOISE: Final = 3
_LONGEST: Final = 600
"""Characters of a message that a row keeps."""


class UnbuiltError(Exception):
    """Raised where there is no model to compile: it cannot be built, or its results are no measure."""


def judge(row: Row, seed: int, write: Write) -> None:
    """Run one case and fill in its row, which is written at each stage."""
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            _judge(row, seed, write)
    except UnbuiltError as error:
        row.verdict = "unbuilt"
        row.why = _shorten(str(error))
    except (be.UnsupportedError, be.HostError) as error:
        _refuse(row, str(error))
    except MemoryError as error:
        row.verdict = "slow"
        row.why = _shorten(f"out of memory while {row.stage}: {error}")
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one model is its row's
        row.verdict = "crash"
        row.why = _shorten(f"{type(error).__name__}: {error} ({_place(error)})")
    row.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    row.stage = "done"
    write(row)


def _judge(row: Row, seed: int, write: Write) -> None:
    """Build, compile, check, run and compare one case. Raises what any of these raises."""
    with _stage(row, "building", write):
        model, expected = build(Case(row.library, row.family, row.name, row.form), seed)
    row.parameters = model.parameters
    with _stage(row, "compiling", write):
        compiled = _compile(row, model)
    without_masks = _leave_out_masks(model) if compiled is None else None
    if without_masks is not None:
        model, expected = without_masks
        compiled = _compile_without_masks(row, model, write)
    if compiled is None:
        return
    row.ops, row.epochs = _size(compiled)
    with _stage(row, "checking", write):
        row.findings = tuple(_shorten(str(finding)) for finding in compiled.check(strict=True))
    with _stage(row, "running", write):
        outputs = compiled(*model.inputs)
    _compare(row, expected, outputs)
    if row.verdict == "wrong" and row.form == "torch":
        _compare_with_first_of_equals(row, model, expected, outputs)
        if row.verdict == "wrong" and _hangs_on_rounding(model, expected):
            raise UnbuiltError("the original itself gives other results in float64, or if rounding changes a little")


@contextmanager
def _stage(row: Row, name: str, write: Write) -> Generator[None]:
    """Set the stage of the row and write it; add the processor time of the block to it."""
    row.stage = name
    write(row)
    start = time.process_time()
    try:
        yield
    finally:
        row.seconds[name] = round(time.process_time() - start, 2)


def build(case: Case, seed: int) -> tuple[Model, list[np.ndarray[Any, Any]]]:
    """Return the model of a case and the outputs of its own framework. Raises UnbuiltError if there is none, or if
    its outputs are no measure: not finite, or different from run to run."""
    try:
        model = build_model(case.library, case.name, case.form, seed)
        expected = model.run()
        again = model.run()
    except Exception as error:
        raise UnbuiltError(f"{type(error).__name__}: {error} ({_place(error)})") from error
    if not expected:
        raise UnbuiltError("no output is a tensor of numbers")
    if not all(np.isfinite(array).all() for array in expected if array.dtype.kind == "f"):
        raise UnbuiltError("an output of the original is not finite")
    if not all(np.array_equal(first, second) for first, second in zip(expected, again, strict=True)):
        raise UnbuiltError("the original's outputs differ from run to run")
    return model, expected


def _leave_out_masks(model: Model) -> tuple[Model, list[np.ndarray[Any, Any]]] | None:
    """Return the model without the masks among its inputs, and the outputs of its own framework; None if it has no
    masks, or does not run without them."""
    masks = masks_of(model)
    if not masks:
        return None
    without_masks = leave_out(model, masks)
    try:
        return without_masks, without_masks.run()
    except Exception:  # noqa: BLE001 - as each model refuses in its own way
        return None


def _compile_without_masks(row: Row, model: Model, write: Write) -> Any:
    """Return the model that is compiled as its refusal advises: without its masks, by whose values it decides. Return
    None if it is refused again; the row keeps the first refusal."""
    message = row.why
    with _stage(row, "compiling", write):
        compiled = _compile(row, model)
    if compiled is None:
        _refuse(row, message)
    else:
        row.why = f"without its masks; with them: {message}"
        row.operators = ()
        row.without_masks = True
    return compiled


def _compile(row: Row, model: Model) -> Any:
    """Return the compiled model, an ONNX model in parts if it cannot be one netlist; None if it is refused."""
    words: dict[str, Any] = {"arch": row.arch, "effort": row.effort}
    try:
        compiled = be.compile(model.source, model.examples, **words)
    except (be.UnsupportedError, be.HostError) as error:
        _refuse(row, str(error))
        if row.form != "onnx":
            return None
    else:
        row.verdict = "right"
        return compiled
    compiled = be.compile_in_parts(model.source, model.examples, **words)
    row.verdict = "parted"
    row.on_host = row.operators
    return compiled


def _size(compiled: Any) -> tuple[int, int]:
    """Return ops and epochs of a compiled model; none if the host does everything."""
    placement = compiled.placement if hasattr(compiled, "placement") else getattr(compiled.compiled, "placement", None)
    if placement is None:  # the host does everything
        return 0, 0
    return len(placement.ops), placement.epochs


def _refuse(row: Row, message: str) -> None:
    """Set the verdict of a refused case, with the message and the operators in it."""
    row.verdict = "refused"
    row.why = _shorten(message)
    row.operators = refused_operators(message)


def refused_operators(message: str) -> tuple[str, ...]:
    """Return the names of the operators that a message refuses; of another refusal, its rule without the model."""
    _, separator, listed = message.partition("not supported: ")
    matches = [_REFUSED.match(part) for part in _BETWEEN_OPERATORS.split(listed)]
    names = tuple(match["operator"] for match in matches if match)
    if separator and names:
        return names
    if match := re.match(r"compile: torch\.export cannot trace .*?: (?P<reason>.*)", message):
        return (f"torch.export: {_without_values(match['reason'])}",)
    return (_without_values(message.splitlines()[0].removeprefix("compile: ")),)


def _without_values(text: str) -> str:
    """Return the beginning of a message without numbers and quoted names, so that equal kinds have equal names."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "...", text)
    return re.sub(r"\d+", "N", text)[:90]


def _compare(row: Row, expected: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Set the figures of the worst output, and the verdict if it is wrong."""
    if len(expected) != len(outputs):
        row.verdict = "wrong"
        row.why = f"{len(outputs)} outputs, the original has {len(expected)}"
        return
    for number, (want, have) in enumerate(zip(expected, outputs, strict=True)):
        if want.shape != np.shape(have):
            row.verdict = "wrong"
            row.why = f"output {number} is {np.shape(have)}, the original's {want.shape}"
            return
        _compare_output(row, number, want, have)


class _FirstOfEquals(TorchDispatchMode):
    """Lets torch choose the first of equal elements where its documentation leaves open which one `topk` and `sort`
    choose. `has_chosen`: whether the model called one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.has_chosen = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator; `topk` and `sort` as a stable sort."""
        words = dict(kwargs or {})
        if func is torch.ops.aten.topk.default:
            self.has_chosen = True
            return _stable_topk(*args, **words)
        if func is torch.ops.aten.sort.default:
            self.has_chosen = True
            return _stable_sort(*args, **words)
        return func(*args, **words)


def _stable_sort(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Return the elements in order and their places, with equal ones in the order of their places."""
    return torch.ops.aten.sort.stable(x, stable=True, dim=dim, descending=descending)


def _stable_topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, *_: object) -> tuple[Tensor, Tensor]:
    """Return the `k` largest (smallest) elements and their places, of equal ones the first, in their order."""
    values, places = _stable_sort(x, dim, largest)
    return values.narrow(dim, 0, k), places.narrow(dim, 0, k)


def _compare_with_first_of_equals(row: Row, model: Model, expected: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Judge a wrong result again, against the original with the first of equal elements chosen, as the compiler does;
    it counts only where that changes the original's result."""
    with _FirstOfEquals() as mode:
        chosen = model.run()
    same = all(np.array_equal(first, second) for first, second in zip(expected, chosen, strict=True))
    if not mode.has_chosen or same:
        return
    row.verdict = "right"
    row.why = ""
    row.pcc = None
    row.error = None
    _compare(row, chosen, outputs)


def _hangs_on_rounding(model: Model, expected: Sequence[Any]) -> bool:
    """Return whether the original's own outputs would count as wrong beside those in float32 if it is computed in
    float64, as where it selects among elements that rounding makes equal, or if its parameters change by as much as
    rounding does."""
    return _differs_in_float64(model, expected) or any(
        _differs_with_noise(model, expected, seed) for seed in range(_DRAWS_OF_NOISE)
    )


def _differs_with_noise(model: Model, expected: Sequence[Any], seed: int) -> bool:
    """Return whether the original's outputs would count as wrong after its parameters changed by `_NOISE`."""
    module = copy.deepcopy(model.source)
    draw = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        if parameter.is_floating_point():
            signs = torch.randint(0, 2, parameter.shape, generator=draw) * 2 - 1
            parameter.mul_(1 + _NOISE * signs)
    with _FirstOfEquals():
        return _is_wrong(module(*model.inputs), expected)


def _differs_in_float64(model: Model, expected: Sequence[Any]) -> bool:
    """Return whether the original's outputs in float64 would count as wrong. False where it does not run in
    float64."""
    inputs = [tensor.double() if tensor.is_floating_point() else tensor for tensor in model.inputs]
    try:
        with _FirstOfEquals():
            exact = copy.deepcopy(model.source).double()(*inputs)
    except Exception:  # noqa: BLE001 - some operators of torch have no float64
        return False
    return _is_wrong(exact, expected)


def _is_wrong(outputs: Sequence[Tensor], expected: Sequence[Any]) -> bool:
    """Return whether the outputs of a module of torch would count as wrong."""
    row = Row(library="", family="", name="", form="", arch="", effort="", identity="", verdict="right")
    _compare(row, [tensor.numpy() for tensor in outputs], expected)
    return row.verdict == "wrong"


def _compare_output(row: Row, number: int, want: Any, have: Any) -> None:
    """Add the figures of one output to the row, and set the verdict if the output is wrong."""
    figures = difference("", want, have)
    scale = float(np.abs(want).max()) if want.size else 0.0
    error = figures.max_error / (scale or 1.0)
    right = figures.not_finite == 0 and (error <= ERROR or (figures.pcc or 0.0) >= PCC)
    _add_worst(row, error, figures.pcc)
    if not right and row.verdict != "wrong":
        row.verdict = "wrong"
        row.why = f"output {number} {want.shape}: PCC {figures.pcc}, error {error:.2g}, {figures.not_finite} not finite"


def _add_worst(row: Row, error: float, pcc: float | None) -> None:
    """Set error and PCC of a row where those of an output are worse."""
    if row.error is None or error > row.error:
        row.error = float(f"{error:.3g}")
    if pcc is not None and (row.pcc is None or pcc < row.pcc):
        row.pcc = round(pcc, 9)


def _place(error: BaseException) -> str:
    """Return file and line of the innermost frame of an error."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "no place"
    return f"{'/'.join(frames[-1].filename.split('/')[-3:])}:{frames[-1].lineno}"


def _shorten(text: str) -> str:
    """Return a message, cut if it is too long for a row."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
