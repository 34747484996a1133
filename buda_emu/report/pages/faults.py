"""A campaign of faults as one page: where the netlist is vulnerable, which bits are dangerous, every fault."""

from markupsafe import Markup

from buda_emu.checker.text import plural
from buda_emu.injection.fault import KIND_TEXTS, PLACE_TEXTS
from buda_emu.injection.result import OUTCOME_TEXTS, TABLES, Campaign, Share
from buda_emu.netlist.model import Netlist
from buda_emu.report.pages.engine import render
from buda_emu.report.pages.tables import Cell, Column, Table, figure, named, table
from buda_emu.report.pictures.fault_charts import outcome_bars
from buda_emu.report.pictures.grid_svg import grid_svg
from buda_emu.report.terminal.faults import HEADERS, row
from buda_emu.report.terminal.text import percent

_MOST_ROWS = 5000
_MOST_OPS = 400
_CHARTS = ("kind", "place", "field", "bit")


def faults_page(found: Campaign, netlist: Netlist) -> str:
    """The page. The picture of the grid is there for netlists of a few hundred ops; the table of faults ends after
    5,000, the failing ones first."""
    total = found.total()
    low, high = map(percent, total.interval)
    of_ops = {share.name: share for share in found.table("op or queue") if share.name in netlist.ops}
    picture = ""
    if of_ops and len(netlist.ops) <= _MOST_OPS:
        notes = {name: f"{share.failures} of {share.faults} faults fail" for name, share in of_ops.items()}
        heat = {name: share.share for name, share in of_ops.items()}
        picture = grid_svg(netlist, heat=heat, notes=notes, red="the share of faults in the op that fail")
    charts = [
        (f"By {name}", Markup(outcome_bars(_in_order(name, found.table(name)), f"outcomes by {name}")))
        for name in _CHARTS
        if len(found.table(name)) > 1 or name == "kind"
    ]
    words = {**KIND_TEXTS, **PLACE_TEXTS, **OUTCOME_TEXTS}
    return str(
        render(
            "faults.html", title=f"Faults in {netlist.path}",
            facts=f"{found.arch}, precision {found.precision}, seed {found.seed}: {plural(total.faults, 'fault')}, of "
            f"which {total.failures} fail: {percent(total.share)}, with 95 % certainty {low} to {high}",
            charts=charts, picture=Markup(picture),
            tables=[(name, _shares(found.table(name), name)) for name in TABLES if name not in _CHARTS],
            faults=_faults(found), left_out=max(0, len(found.effects) - _MOST_ROWS),
            words=table(("word", Column("meaning", "words")), sorted(words.items())),
        )
    )  # fmt: skip


def _in_order(name: str, rows: list[Share]) -> list[Share]:
    """Bits from the highest to the lowest of each format; others as they are, the worst first."""
    if name != "bit":
        return rows
    return sorted(rows, key=lambda item: (item.name.rsplit(" ", 1)[0], -int(item.name.rsplit(" ", 1)[1])))


def _shares(rows: list[Share], name: str) -> Table:
    columns = [Column(name, "name"), *(Column(title, "number") for title in HEADERS[1:-1]), HEADERS[-1]]
    cells: list[list[Cell | str]] = []
    for share in rows:
        texts = row(share)
        counts = [figure(float(text)) for text in texts[1:7]]
        cells.append([named(share.name), *counts, figure(100 * share.share, 1, share.share), texts[-1]])
    return table(columns, cells, "find a name")


def _faults(found: Campaign) -> Table:
    """Every fault, failing ones first."""
    columns = (
        Column("fault", "number"), Column("outcome", choose=True), Column("kind", choose=True),
        Column("place", choose=True), Column("where", "name"), Column("format", choose=True), "bit",
        Column("PCC", "number"), Column("tiles", "number"), Column("why", "words"),
    )  # fmt: skip
    order = {name: place for place, name in enumerate(("stopped", "not finite", "corrupt", "tolerable", "masked"))}
    effects = sorted(found.effects, key=lambda item: (order[item.outcome], item.pcc or 0.0, item.fault.number))
    rows = [
        [
            figure(float(effect.fault.number)), effect.outcome, effect.fault.kind, effect.fault.place,
            named(effect.fault.where), effect.fault.df, _bit(effect.fault.bits, effect.fault.bit_name),
            figure(effect.pcc, 6), figure(float(effect.tiles)), effect.error or effect.fault.how,
        ]
        for effect in effects[:_MOST_ROWS]
    ]  # fmt: skip
    return table(columns, rows, "find a fault, an op or a bit")


def _bit(bits: tuple[int, ...], name: str) -> str:
    return f"{', '.join(map(str, bits))} ({name})" if bits else ""
