"""A campaign of faults as one page: where the netlist is vulnerable, which bits are dangerous, every fault."""

from math import prod

from markupsafe import Markup

from buda_emu.checker.text import plural
from buda_emu.injection.fault import KIND_TEXTS, PLACE_TEXTS
from buda_emu.injection.protect import PROTECTION_TEXTS
from buda_emu.injection.result import OUTCOME_TEXTS, OUTCOMES, TABLES, Campaign, Share
from buda_emu.netlist.model import Netlist
from buda_emu.report.pages.engine import render
from buda_emu.report.pages.tables import Cell, Column, Table, figure, named, table
from buda_emu.report.pictures.fault_charts import guarded_bar, outcome_bars, share_bar, tile_map
from buda_emu.report.pictures.grid_svg import grid_svg
from buda_emu.report.terminal.faults import PROTECTION, guarded_row, headers, row
from buda_emu.report.terminal.text import percent

_MOST_ROWS = 5000
_MOST_OPS = 400
_MOST_MAPS = 12
_CHARTS = ("kind", "place", "field", "bit")


def faults_page(found: Campaign, netlist: Netlist) -> str:
    """The page. The picture of the grid is there for netlists of a few hundred ops; the table of faults ends after
    5,000, the failing ones first."""
    total = found.total()
    low, high = map(percent, total.interval)
    ops = netlist.ops
    of_ops = {share.name: share for share in found.table("op or queue") if share.name in ops}
    picture = ""
    if of_ops and len(ops) <= _MOST_OPS:
        notes = {name: f"{share.failures} of {share.faults} faults fail" for name, share in of_ops.items()}
        worst = max(share.share for share in of_ops.values()) or 1.0
        heat = {name: share.share / worst for name, share in of_ops.items()}
        red = f"the share of faults in the op that fail, up to {percent(worst)}"
        picture = grid_svg(netlist, heat=heat, notes=notes, red=red)
    charts = [
        (f"By {name}", Markup(outcome_bars([*map(share_bar, _in_order(name, found))], f"outcomes by {name}")))
        for name in _CHARTS
        if len(found.table(name)) > 1 or name == "kind"
    ]
    if found.costs:
        bars = [share_bar(total), *map(guarded_bar, found.protection())]
        charts.append(("With protection", Markup(outcome_bars(bars, "outcomes by protection"))))
    words = {**KIND_TEXTS, **PLACE_TEXTS, **OUTCOME_TEXTS, **PROTECTION_TEXTS}
    return str(
        render(
            "faults.html",
            title=f"Faults in {netlist.path}",
            facts=f"{found.arch}, precision {found.precision}, seed {found.seed}: {plural(total.faults, 'fault')}, of "
            f"which {total.failures} fail: {percent(total.share)}, with 95 % confidence {low} to {high}"
            + (f"; nothing to hit here: {', '.join(found.left_out)}" if found.left_out else ""),
            charts=charts,
            picture=Markup(picture),
            maps=_maps(found, netlist),
            protection=_protection(found),
            tables=[(name, _shares(found, name)) for name in TABLES if name not in _CHARTS],
            faults=_faults(found),
            left_out=max(0, len(found.effects) - _MOST_ROWS),
            words=table(("word", Column("meaning", "words")), sorted(words.items())),
        )
    )


def _in_order(name: str, found: Campaign) -> list[Share]:
    """Bits from the highest to the lowest of each format; others as they are, the worst first."""
    rows = found.table(name)
    if name != "bit":
        return rows
    return sorted(rows, key=lambda item: (item.name.rsplit(" ", 1)[0], -int(item.name.rsplit(" ", 1)[1])))


def _maps(found: Campaign, netlist: Netlist) -> list[tuple[str, Markup]]:
    """For the outputs that failing faults change most, how many of them change each tile."""
    hits: dict[str, list[int]] = {}
    for effect in filter(lambda effect: effect.failed, found.effects):
        for queue, bits in effect.maps.items():
            counts = hits.setdefault(queue, [0] * prod(netlist.queues[queue].blocking.shape))
            changed = int(bits, 16)
            for tile in range(len(counts)):
                counts[tile] += changed >> tile & 1
    worst = sorted(hits, key=lambda queue: (-sum(hits[queue]), queue))[:_MOST_MAPS]
    return [(name, Markup(tile_map(name, netlist.queues[name].blocking.shape, hits[name]))) for name in worst]


def _protection(found: Campaign) -> Table | None:
    rows = [[named(cells[0]), *cells[1:]] for cells in map(guarded_row, found.protection())]
    return table(PROTECTION, rows) if rows else None


def _shares(found: Campaign, name: str) -> Table:
    columns = [Column(name, "name"), *(Column(title, "number") for title in headers(found)[:-1]), headers(found)[-1]]
    cells: list[list[Cell | str]] = []
    for share in found.table(name):
        texts = row(found, share)
        counts = [figure(float(text)) for text in texts[1:-2]]
        cells.append([named(share.name), *counts, figure(100 * share.share, 1, share.share), texts[-1]])
    return table(columns, cells, "find a name")


def _faults(found: Campaign) -> Table:
    """Every fault, failing ones first."""
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
    effects = sorted(found.effects, key=lambda item: (order[item.outcome], item.pcc or 0.0, item.fault.number))
    rows = [
        [
            figure(float(effect.fault.number)),
            effect.outcome,
            effect.fault.kind,
            effect.fault.place,
            named(effect.fault.where),
            effect.fault.df,
            _bit(effect.fault.bits, effect.fault.bit_name),
            figure(effect.pcc, 6),
            figure(float(effect.tiles)),
            effect.error or effect.fault.how,
        ]
        for effect in effects[:_MOST_ROWS]
    ]
    return table(columns, rows, "find a fault, an op or a bit")


def _bit(bits: tuple[int, ...], name: str) -> str:
    return f"{', '.join(map(str, bits))} ({name})" if bits else ""
