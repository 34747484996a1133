"""`be.load`: loads a netlist, and reports findings of the checker as Python warnings."""

import os
from typing import TYPE_CHECKING

from buda_emu.netlist import load as netlist_load
from buda_emu.netlist import model
from buda_emu.support.errors import NetlistWarning
from buda_emu.support.options import with_hints
from buda_emu.support.warned import warn_caller

if TYPE_CHECKING:
    from buda_emu.netlist.model import Netlist

_MOST_IN_WARNING = 3  # findings that the warning spells out


@with_hints
def load(path: str | os.PathLike[str], arch: str | None = None, *, cache: bool = True) -> "Netlist":
    """Load a netlist, ready to run, for one architecture.

    `arch` selects one of a list in `devices.arch` (default: wormhole_b0 if listed, else the first). `cache` keeps the
    netlist as it was read in the user's caches, and takes it from there (docs/run/cache.md). Raises NetlistError with
    all findings for a netlist that is refused. Findings about a netlist that is accepted are warned of as a
    NetlistWarning; they are also in `Netlist.diagnostics`.
    """
    model.register_painter(_picture)
    netlist = netlist_load.load(path, arch, cache=cache)
    findings = netlist.diagnostics
    if findings:
        texts = [f"{finding.where}: {finding.rule}: {finding.message}" for finding in findings[:_MOST_IN_WARNING]]
        if len(findings) > _MOST_IN_WARNING:
            texts.append(f"and {len(findings) - _MOST_IN_WARNING} more")
        message = f"{netlist.path}: {'; '.join(texts)} (`buda-emu check {netlist.path}`)"
        warn_caller(message, NetlistWarning)
    return netlist


def _picture(netlist: "Netlist") -> str:
    """Draw the ops on their cores as SVG, as `buda-emu graph` does; a notebook shows a netlist so."""
    from buda_emu.report.pictures.grid_svg import grid_svg

    return grid_svg(netlist)
