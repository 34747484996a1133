"""What streams take of each worker core, in the words and bars of a picture."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from buda_emu.checker.text import plural
from buda_emu.netlist.model import Op
from buda_emu.report.pictures.svg import clean, number, text
from buda_emu.routing.streams.limits import EXTRA_STREAMS, LIMITS

if TYPE_CHECKING:
    from buda_emu.routing.epochs import RoutedEpoch
    from buda_emu.routing.streams.model import CoreUse

Uses = Mapping[tuple[int, int, int, int], "CoreUse"]
"""By epoch, chip, row and column."""

LEGEND: Final = "on each core: extra streams, and part of the L1 for data buffers; bars: the same two, red from 90 % on"
STYLE: Final = ".bg .bg-track{fill:var(--bg-line)}.bg .bg-used{fill:var(--bg-soft)}.bg .bg-full{fill:var(--bg-red)}"
_NEARLY_FULL: Final = 0.9
_BAR: Final = 3.0
_SIZE: Final = 10.0


def uses_by_core(epochs: "Iterable[RoutedEpoch]") -> Uses:
    """Of worker cores: Ethernet cores stand on no grid."""
    return {
        (epoch.number, core.place.chip, core.place.row, core.place.column): core
        for epoch in epochs
        for core in epoch.routed.cores
        if not core.place.ethernet
    }


def of_op(uses: Uses, epoch: int, op: Op) -> "Sequence[CoreUse]":
    """Of the cores on which an op lies; none where its epoch was refused before there were streams."""
    if len(op.grid_loc) != 2:
        return ()
    (top, left), (rows, columns) = op.grid_loc, op.cores
    places = ((op.target_device, row, col) for row in range(top, top + rows) for col in range(left, left + columns))
    return [uses[epoch, *place] for place in places if (epoch, *place) in uses]


def sentence(routed: "RoutedEpoch | str | None") -> str:
    """What is said of an epoch's streams beside its picture: what its fullest core needs, or why there are none."""
    if routed is None:
        return "No streams are shown: no program executes this epoch"
    if isinstance(routed, str):
        return f"No streams are shown: {routed}"
    first = next(iter(routed.routed.refusals), None)
    if first is not None:
        others = len(routed.routed.refusals) - 1
        more = f", and {plural(others, 'more refusal')}" if others else ""
        return f"The router refuses this epoch: {first.message}{more}"
    cores = [core for core in routed.routed.cores if not core.place.ethernet]
    return f"The core that needs most of each takes, of extra streams and of the L1 for data buffers: {words(cores)}"


def words(uses: "Sequence[CoreUse]") -> str:
    """`5 of 24, L1 11 %`: the most that one of the cores takes of each; "" of no cores."""
    if not uses:
        return ""
    extra, l1 = max(use.extra_streams for use in uses), max(map(_l1, uses))
    return f"{extra} of {len(EXTRA_STREAMS)}, L1 {100 * l1:.0f} %"


def drawn(use: "CoreUse", arch: str, x: float, y: float, width: float) -> str:
    """The words and, below, two bars: `y` is the base line of the words, which reach 10 pixels below it."""
    bars: list[str] = []
    for step, part in enumerate((use.extra_streams / len(EXTRA_STREAMS), _l1(use))):
        top = y + 3 + step * (_BAR + 1)
        css = "bg-full" if part >= _NEARLY_FULL else "bg-used"
        bars.append(_bar("bg-track", x, top, width) + _bar(css, x, top, width * min(part, 1.0)))
    said = text(x, y, words([use]), _SIZE)
    return f'<g class="bg-use"><title>{clean(_tip(use, arch))}</title>{said}<g>{"".join(bars)}</g></g>'


def _l1(use: "CoreUse") -> float:
    return use.l1_bytes / use.available_bytes


def _bar(css: str, x: float, y: float, width: float) -> str:
    place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(_BAR)}"'
    return f'<rect class="{css}" {place}/>'


def _tip(use: "CoreUse", arch: str) -> str:
    lines = [
        f"{use.place}: {plural(len(use.streams), 'stream')}",
        f"extra streams: {use.extra_streams} of {len(EXTRA_STREAMS)}",
        f"streams that gather or multicast: {use.multicast_streams} of {LIMITS[arch].multicast_streams}",
        f"L1: {use.l1_bytes:,} of {use.available_bytes:,} bytes for data buffers",
    ]
    return "\n".join(lines)
