"""Reasons to doubt a verdict: comparisons that show less than "passed" seems to say, and tensor files from outside that
nothing of the netlist takes."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.inputs.reference import Files, tensor_names
from buda_emu.emulator.op_errors.op_apart import Moments
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.rules.book import RULES
from buda_emu.spec.precision import Precision
from buda_emu.spec.test_config import Comparison
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.testing.verify.comparison import tile_blocks
from buda_emu.testing.verify.result import OutputResult

if TYPE_CHECKING:
    from buda_emu.emulator.image.device_image import DeviceImage


def comparison_doubts(outputs: Sequence[OutputResult]) -> Iterator[str]:
    """Yield a line for each compared output whose verdict says less than it seems: all zero or nothing finite on both
    sides, or compared in a part of its entries only."""
    for output in outputs:
        figures = output.figures
        size = math.prod(output.shape)
        if figures.all_zero:
            yield f"{output.queue}: every value is zero on both sides, so the comparison shows nothing"
        elif figures.not_finite_expected == size == figures.not_finite_observed:
            yield f"{output.queue}: no value is finite on either side, so the comparison shows nothing"
        if compares_nothing(output.comparison):
            yield f"{output.queue}: check_pct and check_pcc leave every check out, so any output passes"
        if output.uncompared_entries:
            total = plural(output.shape[0] + output.uncompared_entries, "entry")
            yield f"{output.queue}: {output.shape[0]} of {total} compared: {output.expected_from}"


def compares_nothing(comparison: Comparison) -> bool:
    """Return whether a comparison passes any two tensors, because its bounds leave out all that its type checks."""
    match comparison.type.lower():
        case "allclose":
            return comparison.check_pct <= 0
        case "allclosehw":
            return comparison.check_pct <= 0 and comparison.check_pcc == 0
        case _:
            return False


def ignores_scale(comparison: Comparison) -> bool:
    """Return whether a comparison looks at the correlation alone, which values of another scale reach, too."""
    return comparison.type.lower() == "allclosehw" and comparison.check_pct <= 0 and comparison.check_pcc != 0


_MOST_SCALE: Final = 1.5  # between this and its reciprocal are the effects of formats and fidelities
_MOST_SHIFT: Final = 0.5  # of the standard deviation of the expected values


def scale_doubts(output: OutputResult, expected: NDArray[Any], observed: NDArray[Any]) -> Iterator[str]:
    """Yield a text if the observed values are a multiple of the expected ones, or shifted: arrays [entries, t, rows,
    columns] of an output that passed by its correlation."""
    moments = Moments()
    for block in tile_blocks(expected, observed, output.tile_dim):
        finite = np.isfinite(block.a) & np.isfinite(block.b)
        moments.add(block.a[finite], block.b[finite])
    if not moments.square_a:
        return
    slope = moments.product / moments.square_a
    shift = moments.mean_b - moments.mean_a
    ending = "the comparison sees only the correlation (check_pct 0 leaves the tolerances out)"
    if not 1 / _MOST_SCALE <= slope <= _MOST_SCALE:
        yield f"{output.queue}: observed values are {slope:.3g} times the expected ones: {ending}"
    elif abs(shift) > _MOST_SHIFT * math.sqrt(moments.square_a / moments.count):
        yield f"{output.queue}: observed values are the expected ones plus {shift:.3g}: {ending}"


def device_doubts(findings: Sequence[Diagnostic], precision: Precision) -> Iterator[str]:
    """Yield one line if, in precision "device", findings say that the chip's compiler or runtime refuses the netlist:
    the results are then those of a chip that would not take it. Else yield nothing."""
    if precision != "device":
        return
    refusals = [finding for finding in findings if _is_refused_by_chip(finding.rule)]
    for finding in refusals[:1]:
        yield (
            f"line {finding.line}: the chip's compiler or runtime refuses the netlist: {finding.rule}: "
            f"{finding.message}; `buda-emu check --strict` shows {plural(len(refusals), 'such finding')}"
        )


def _is_refused_by_chip(rule: str) -> bool:
    """Return whether a rule is one whose breach the chip's compiler or runtime refuses, not only the checker."""
    return rule in RULES and RULES[rule].stage in ("N", "R")


def reference_doubts(files: Files, netlist: Netlist, image: "DeviceImage | None", *, shared: bool) -> tuple[str, ...]:
    """Return a text for each tensor from outside whose name is nearly that of a queue or op, and one if none belongs to
    the netlist. Other names are no reason to doubt: one folder may serve several netlists.

    Raises HostError for files that are not `shared` with other netlists of the same test, and have no tensor of this
    one.
    """
    files_by_name = tensor_names(files)
    strangers = [name for name in files_by_name if not _belongs_to(name, netlist, image)]
    doubts: list[str] = []
    for name in strangers:
        hint = near(name, (*netlist.queues, *netlist.ops))
        if hint:
            place = files_by_name[name]
            if not place.startswith(name):
                place = f"{name} in {place}"
            doubts.append(f"reference: {place} of {files.where} belongs to no queue or op of the netlist ({hint})")
    if len(strangers) == len(files_by_name):
        none = f"reference: {files.where} has no tensor for a queue or op of the netlist"
        if not shared:
            raise HostError("\n".join((none, *doubts)))
        doubts.insert(0, f"{none}: all inputs and expected outputs are generated")
    return tuple(doubts)


def _belongs_to(name: str, netlist: Netlist, image: "DeviceImage | None") -> bool:
    """Return whether a tensor's name is that of a queue, an op, or an input or output of the image's model."""
    if name.removesuffix(".init") in netlist.queues or name in netlist.ops:
        return True
    return image is not None and image.model is not None and name in image.model.labels
