"""What the timing model says of a placement."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from buda_emu.compiler.emit.netlist import netlist_of
from buda_emu.compiler.emit.programs import ONE_ROUND
from buda_emu.compiler.place.placement import Placement
from buda_emu.netlist.microbatch import LOOP
from buda_emu.netlist.model import Netlist
from buda_emu.timing.model import model_netlist

if TYPE_CHECKING:
    from buda_emu.timing.result import PerfRun


@dataclass(frozen=True)
class Evaluated:
    """A placement and its modelled time. `cycles` of one input, `host` those of the host link; netlist and run are
    those of one copy: they share nothing but the host."""

    placement: Placement
    netlist: Netlist
    run: "PerfRun"
    cycles: float
    host: float


def judged(placement: Placement) -> Evaluated:
    """By the same model as `buda-emu perf`; the host link is a limit, too."""
    netlist = netlist_of(replace(placement, copies=1), "placed")
    programs = [netlist.programs[name] for name in dict.fromkeys(netlist.program_order)]
    rounds = {**ONE_ROUND, LOOP: str(placement.rounds)}
    run = model_netlist(netlist, programs, rounds, chip=placement.target.chip)
    inputs = placement.microbatch * placement.rounds
    host = sum(run.host_seconds().values()) * run.clock * 1e6 / inputs
    cycles = sum(run.programs().values()) / (inputs * placement.copies)
    return Evaluated(placement, netlist, run, max(cycles, host), host)
