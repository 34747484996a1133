"""`load` for callers of the package: findings of the checker become Python warnings."""

import os
import warnings
from typing import TYPE_CHECKING

from buda_emu.netlist import load as netlist_load
from buda_emu.netlist import model
from buda_emu.support.errors import NetlistWarning

if TYPE_CHECKING:
    from buda_emu.netlist.model import Netlist

_MOST = 3  # findings that are said in full


def load(path: str | os.PathLike[str], arch: str | None = None, *, cache: bool = True) -> "Netlist":
    """A netlist ready to run, for one architecture.

    `arch` selects one of a list in `devices.arch` (default: wormhole_b0 if listed, else the first). `cache`: keep what
    a netlist was read as in the user's caches, and take it from there (docs/run/cache.md). Raises NetlistError with
    all findings when it is refused. What the checker finds about one that is not, also in `Netlist.diagnostics`, is a
    NetlistWarning.
    """
    model.register_painter(_picture)
    netlist = netlist_load.load(path, arch, cache=cache)
    found = netlist.diagnostics
    if found:
        said = "; ".join(f"{item.where}: {item.rule}: {item.message}" for item in found[:_MOST])
        more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
        text = f"{netlist.path}: {said}{more} (`buda-emu check {netlist.path}`)"
        warnings.warn(text, NetlistWarning, stacklevel=2)
    return netlist


def _picture(netlist: "Netlist") -> str:
    """Of a notebook: the ops on their cores, as `buda-emu graph` draws them."""
    from buda_emu.report.pictures.grid_svg import grid_svg

    return grid_svg(netlist)
