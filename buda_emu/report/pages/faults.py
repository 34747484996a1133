"""A campaign of faults as one page: the vulnerable parts of the netlist, the dangerous bits, and every fault."""

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Final

from markupsafe import Markup

from buda_emu.netlist.model import Netlist
from buda_emu.report.pages.engine import Cell, Column, Table, figure, name_cell, render, table
from buda_emu.report.pictures.axes import open_wide_chart, round_up, text_at
from buda_emu.report.pictures.grid_svg import (
    HeatScale,
    clean,
    fit_text,
    grid_svg,
    html_legend,
    number,
    open_chart,
)
from buda_emu.report.terminal.faults import PROTECTION, guarded_row, headers, row
from buda_emu.report.terminal.text import percent
from buda_emu.support.checker.text import plural
from buda_emu.support.records import dataclass
from buda_emu.testing.injection.fault import KIND_TEXTS, PLACE_TEXTS
from buda_emu.testing.injection.protect import PROTECTION_TEXTS
from buda_emu.testing.injection.result import OUTCOME_TEXTS, OUTCOMES, TABLES, Campaign, Guarded, Share, column

_NAMES: Final = 152
"""Pixels for the name of a bar: a narrow screen has room for it and the figure."""
_WIDTH: Final = 600  # pixels: the width of a page of text
_BAR: Final = 9  # height of a bar
_ROW: Final = 32  # height of a row: a name above its bar
_COLOURS: Final = {
    "masked": "#6aa978", "tolerable": "#bfc86a", "corrupt": "#d9822b", "not finite": "#c2453c", "deadlock": "#3f6fb5",
    "stopped": "#7a4ea3", "late": "#7d8894", "corrected": "#3f8f86", "detected": "#6fb7ae",
}  # fmt: skip
"""Outcome, with or without a protection -> colour."""
_CELL: Final = 24  # pixels of a tile, at most


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of a bar chart: the count of each outcome, and the text behind the bar."""

    name: str
    counts: Mapping[str, int]
    figure: str


def share_bar(share: Share) -> Bar:
    """Return the bar of a share of a campaign's faults: how many have each outcome, and the part that fails with its
    confidence interval."""
    low, high = share.interval
    counts = {outcome: share.counts[column(outcome)] for outcome in OUTCOMES}
    return Bar(share.name, counts, f"{percent(share.share)} fail ({percent(low)} to {percent(high)})")


def guarded_bar(guarded: Guarded) -> Bar:
    """Return the bar of a protection: how many of all faults have each outcome with it."""
    counts = {outcome: guarded.counts.get(column(outcome), 0) for outcome in _COLOURS}
    return Bar(guarded.name, counts, f"{guarded.failures} fail, {guarded.before} without")


def outcome_bars(rows: Sequence[Bar], title: str) -> str:
    """Return the SVG chart with one bar for each row, of full width and divided by outcome; name and figure stand above
    it."""
    parts = [open_wide_chart(len(rows) * _ROW, title)]
    for place, bar in enumerate(rows):
        y = place * _ROW
        begin = 0.0
        faults = max(1, sum(bar.counts.values()))
        parts.append(text_at(0, y + 12, fit_text(bar.name, _NAMES, 11), 11))
        parts.append(text_at(1, y + 12, bar.figure, 10, "soft", "end"))
        for outcome, colour in _COLOURS.items():
            count = bar.counts.get(outcome, 0)
            if not count:
                continue
            length = 100 * count / faults
            tip = clean(f"{bar.name}: {count} of {faults} {outcome}")
            box = f'x="{number(begin)}%" y="{y + 16}" width="{number(length)}%" height="{_BAR}"'
            parts.append(f'<rect {box} fill="{colour}"><title>{tip}</title></rect>')
            begin += length
    return "".join([*parts, "</svg>"])


def _outcome_legend(campaign: Campaign) -> list[tuple[str, str, str]]:
    """Return colour, name and meaning of each outcome that the bars of the page show."""
    bars = [share_bar(campaign.total())]
    if campaign.costs:
        bars += map(guarded_bar, campaign.protection())
    meanings = {**OUTCOME_TEXTS, **PROTECTION_TEXTS}
    return [
        (colour, outcome, meanings.get(outcome, ""))
        for outcome, colour in _COLOURS.items()
        if any(bar.counts.get(outcome) for bar in bars)
    ]


def tile_map(name: str, shape: tuple[int, int, int], hits: Sequence[int], reddest: int) -> str:
    """Return the SVG picture of an output's tiles, the redder the more faults change them. `shape` is (t, tile
    rows, tile columns); `hits` counts the faults by tile, and the count `reddest` is drawn in full red.
    """
    t, rows, cols = shape
    cell = max(2.0, min(float(_CELL), _WIDTH / max(1, cols)))
    parts = [open_chart(round(cols * cell) + 2, round(t * (rows * cell + 6)) + 2, f"tiles of {name}")]
    for tile, count in enumerate(hits):
        at, place = divmod(tile, rows * cols)
        row, col = divmod(place, cols)
        x = 1 + col * cell
        y = 1 + at * (rows * cell + 6) + row * cell
        t_prefix = f"t {at}, " if t > 1 else ""
        tip = clean(f"{name} {t_prefix}tile {row}, {col}: changed by {count} faults that fail")
        parts.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(cell)}" height="{number(cell)}" fill="#c2453c" '
            f'fill-opacity="{number(0.06 + 0.94 * count / max(reddest, 1))}" stroke="#8884" stroke-width="0.5">'
            f"<title>{tip}</title></rect>"
        )
    return "".join([*parts, "</svg>"])


_MOST_ROWS = 5000
_MOST_OPS = 400
_MOST_MAPS = 12
"""Faults in the table, ops in the picture, and queues with a map of hits, at most: so a page stays small enough to be
drawn."""
_CHARTS = ("kind", "place", "field", "bit")


def faults_page(campaign: Campaign, netlist: Netlist) -> str:
    """Return the HTML page of a campaign. The grid is drawn for netlists of up to 400 ops, and the table has up to
    5,000 faults, the failing ones first.
    """
    total = campaign.total()
    low, high = map(percent, total.interval)
    charts = [
        (f"By {name}", Markup(outcome_bars([*map(share_bar, _sorted_shares(name, campaign))], f"outcomes by {name}")))
        for name in _CHARTS
        if len(campaign.table(name)) > 1 or name == "kind"
    ]
    if campaign.costs:
        bars = [share_bar(total), *map(guarded_bar, campaign.protection())]
        charts.append(("With protection", Markup(outcome_bars(bars, "outcomes by protection"))))
    words = {**KIND_TEXTS, **PLACE_TEXTS, **OUTCOME_TEXTS, **PROTECTION_TEXTS}
    facts = (
        f"{campaign.arch}, precision {campaign.precision}, seed {campaign.seed}: {plural(total.faults, 'fault')}, of "
        f"which {total.failures} fail: {percent(total.share)}, with 95 % confidence {low} to {high}"
    )
    if campaign.left_out:
        facts += f"; nothing to hit here: {', '.join(campaign.left_out)}"
    return str(
        render(
            "faults.html",
            title=f"Faults in {netlist.path}",
            facts=facts,
            outcomes=_outcome_legend(campaign),
            charts=charts,
            legend=Markup(html_legend(_heat_scale(_heat_top(campaign.table("op or queue"))))),
            most_hits=_most_hits(_hits_by_tile(campaign, netlist)),
            picture=Markup(_op_picture(campaign, netlist)),
            maps=_output_maps(campaign, netlist),
            protection=_protection_table(campaign),
            tables=[(name, _shares_table(campaign, name)) for name in TABLES if name not in _CHARTS],
            faults=_faults_table(campaign),
            left_out=max(0, len(campaign.effects) - _MOST_ROWS),
            words=table(("word", Column("meaning", "words")), sorted(words.items())),
        )
    )


def _op_picture(campaign: Campaign, netlist: Netlist) -> str:
    """Return the SVG picture of the core grid, ops reddened by their share of failing faults; "" if it has too many
    ops or none was hit.
    """
    ops = netlist.ops
    shares = {share.name: share for share in campaign.table("op or queue") if share.name in ops}
    if not shares or len(ops) > _MOST_OPS:
        return ""
    notes = {name: f"{share.failures} of {share.faults} faults fail" for name, share in shares.items()}
    top = _heat_top(campaign.table("op or queue"))
    heat = {name: share.share / top for name, share in shares.items()}
    return grid_svg(netlist, heat=heat, notes=notes, scale=_heat_scale(top))


def _heat_top(shares: Iterable[Share]) -> float:
    """Return the share of failing faults that is drawn reddest: a round figure above the worst share, at least 0.01, so
    that a small share looks small."""
    worst = max((share.share for share in shares), default=0.0)
    return min(round_up(worst) or 0.01, 1.0)


def _heat_scale(top: float) -> HeatScale:
    """Return the scale of the picture of ops, whose reddest ones have the share `top` of failing faults."""
    return HeatScale("the share of faults in the op that fail", "0 %", percent(top))


def _sorted_shares(name: str, campaign: Campaign) -> list[Share]:
    """Return the shares of a table: bits from the highest to the lowest of each format, others as they are, the worst
    first."""
    rows = campaign.table(name)
    if name != "bit":
        return rows
    return sorted(rows, key=lambda share: (share.name.rsplit(" ", 1)[0], -int(share.name.rsplit(" ", 1)[1])))


def _output_maps(campaign: Campaign, netlist: Netlist) -> list[tuple[str, Markup]]:
    """Return a map for each of the outputs that failing faults change most: how many of them change each tile."""
    hits = _hits_by_tile(campaign, netlist)
    reddest = _most_hits(hits)
    worst = sorted(hits, key=lambda queue: (-sum(hits[queue]), queue))[:_MOST_MAPS]
    return [(name, Markup(tile_map(name, netlist.queues[name].blocking.shape, hits[name], reddest))) for name in worst]


def _most_hits(hits: Mapping[str, Sequence[int]]) -> int:
    """Return the greatest number of faults that change one tile; `hits` counts them by output and tile."""
    return max((max(counts) for counts in hits.values()), default=0)


def _hits_by_tile(campaign: Campaign, netlist: Netlist) -> dict[str, list[int]]:
    """Return for each output that failing faults change a list with how many of them change each tile."""
    hits: dict[str, list[int]] = {}
    for effect in filter(lambda effect: effect.failed, campaign.effects):
        for queue, bits in effect.maps.items():
            counts = hits.setdefault(queue, [0] * prod(netlist.queues[queue].blocking.shape))
            changed = int(bits, 16)
            for tile in range(len(counts)):
                counts[tile] += changed >> tile & 1
    return hits


def _protection_table(campaign: Campaign) -> Table | None:
    """Return the table of what each protection would bring and cost, or None if none was tried."""
    rows = [[name_cell(cells[0]), *cells[1:]] for cells in map(guarded_row, campaign.protection())]
    if not rows:
        return None
    return table(PROTECTION, rows)


def _shares_table(campaign: Campaign, name: str) -> Table:
    """Return one of the campaign's tables of counts, by its name, such as "kind", with a row for each share."""
    columns = [
        Column(name, "name"),
        *(Column(title, "number") for title in headers(campaign)[:-1]),
        headers(campaign)[-1],
    ]
    cells: list[list[Cell | str]] = []
    for share in campaign.table(name):
        texts = row(campaign, share)
        counts = [figure(float(text)) for text in texts[1:-2]]
        cells.append([name_cell(share.name), *counts, figure(100 * share.share, 1, share.share), texts[-1]])
    return table(columns, cells, "find a name")


def _faults_table(campaign: Campaign) -> Table:
    """Return the table of faults, the failing ones first."""
    columns = (
        Column("fault", "number"),
        Column("outcome", choose=True),
        Column("kind", choose=True),
        Column("place", choose=True),
        Column("where", "name"),
        Column("format", choose=True),
        "bit",
        Column("PCC", "number"),
        Column("tiles", "number"),
        Column("why", "words"),
    )
    order = {name: -place for place, name in enumerate(OUTCOMES)}
    effects = sorted(campaign.effects, key=lambda hit: (order[hit.outcome], hit.pcc or 0.0, hit.fault.number))
    rows = [
        [
            figure(float(effect.fault.number)),
            effect.outcome,
            effect.fault.kind,
            effect.fault.place,
            name_cell(effect.fault.where),
            effect.fault.df,
            _bits_text(effect.fault.bits, effect.fault.bit_name),
            figure(effect.pcc, 6),
            figure(float(effect.tiles)),
            effect.error or effect.fault.how,
        ]
        for effect in effects[:_MOST_ROWS]
    ]
    return table(columns, rows, "find a fault, an op or a bit")


def _bits_text(bits: tuple[int, ...], name: str) -> str:
    """Return the numbers of the bits that a fault hits, and their name, as text; "" if it hits none."""
    return f"{', '.join(map(str, bits))} ({name})" if bits else ""
