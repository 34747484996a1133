"""Sensitivity: what a netlist would gain if one resource of its chip were twice as fast, and lose if it were half as
fast.

Each resource is some of the quantities of `Speed`. The epochs are modelled again with a copy of the chip's speed in
which these are scaled; nothing is estimated from the figures of the chip as it is. Cores are no such resource: ops of a
netlist have their places, so more cores take another netlist.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from buda_emu.netlist.model import Netlist
from buda_emu.performance.timing.model import EpochModel
from buda_emu.performance.timing.op.cost import Model
from buda_emu.performance.timing.result import EpochReport, PerfRun, bottleneck
from buda_emu.performance.timing.transfers.rates import Speed, speed
from buda_emu.support.errors import HostError
from buda_emu.support.progress import Activity, Report, do_nothing


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of a chip: a word, its title in reports, and the quantities of `Speed` that grow with it."""

    word: str
    title: str
    quantities: tuple[str, ...]


_CLOCK: Final = Resource("clock", "clock", ("clock", "measured_dram"))
RESOURCES: Final = (
    Resource("dram", "DRAM bandwidth", ("dram",)),
    Resource("noc_links", "NoC links", ("link",)),
    Resource("noc_ports", "NoC ports", ("noc", "gather", "port", "memory_ports", "packets")),
    Resource("unpack_pack", "unpack and pack", ("moving",)),
    Resource("fpu", "FPU", ("math",)),
    Resource("ethernet", "Ethernet", ("ethernet",)),
    Resource("host", "host link", ("host",)),
    _CLOCK,
)
"""All resources. `measured_dram` grows with the clock, since cycles that an op waits for DRAM do."""
FACTORS: Final = (2.0, 0.5)  # twice and half as fast
_EXACT: Final = 1e-3  # by which a clock's effect may differ from its factor without being worth a row


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """A netlist with one resource `factor` times as fast. Cycles are of the chip's own clock, loading included:
    `cycles_per_input` of all epochs together, `epochs` of each, `paces` from one input of each to the next.
    `bottleneck` is that of the epoch that takes longest."""

    factor: float
    cycles_per_input: float
    epochs: tuple[float, ...]
    paces: tuple[float, ...]
    bottleneck: str


@dataclass(frozen=True, slots=True)
class ResourceEffect:
    """The effect of one resource: `gain` is the share of all cycles that it saves if it is doubled, `loss` the share
    that it adds if it is halved."""

    resource: str
    title: str
    gain: float
    loss: float
    doubled: Scaled
    halved: Scaled


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The effects of all resources that a netlist uses, the greatest gain first. `inputs` is the number of inputs over
    which cycles are divided, `base` the netlist on the chip as it is, and `unused` has the titles of resources without
    a row, with the reason."""

    inputs: int
    base: Scaled
    resources: tuple[ResourceEffect, ...]
    unused: tuple[tuple[str, str], ...]


def sensitivity(netlist: Netlist, run: PerfRun, model: Model = "fitted", progress: Report = do_nothing) -> Sensitivity:
    """Return what a netlist gains and loses with each resource doubled and halved; the epochs of its run are modelled
    again for that, and each resource is reported to `progress`. Raises HostError for the vendor's model, which has no
    rates of units."""
    if model != "fitted":
        raise HostError("sensitivity: the vendor's formulas know no rates of units: take the fitted model")
    chip_speed = speed(run.chip, run.what_if)
    study = _Study(netlist, run, chip_speed)
    base = study.scale((), 1.0)
    unused: list[tuple[str, str]] = []
    effects: list[ResourceEffect] = []
    for resource in RESOURCES:
        reason = _reason_to_leave_out(resource, run.epochs)
        if not reason:
            progress(Activity(f"sensitivity: {resource.title}", "epochs"))
            effect = _resource_effect(study, resource, base)
            if resource is _CLOCK and _follows_clock(base, effect):
                reason = "all cycles follow it"
            else:
                effects.append(effect)
        if reason:
            unused.append((resource.title, reason))
    unused.append(("cores", "a netlist has its own places: `buda-emu compile` makes one for another grid or board"))
    effects.sort(key=lambda effect: -effect.gain)
    return Sensitivity(study.inputs, base, tuple(effects), tuple(unused))


def _reason_to_leave_out(resource: Resource, reports: Sequence[EpochReport]) -> str:
    """Return why a resource cannot change any cycles of these epochs, as words for the user; "" if it may."""
    edges = list(chain.from_iterable(report.edges for report in reports))
    if resource.word == "ethernet" and not any(edge.crosses for edge in edges):
        return "nothing crosses chips"
    if resource.word == "host" and not any(edge.memory == "host" for edge in edges):
        return "no op reads or writes a queue in the host's memory"
    return ""


def _resource_effect(study: "_Study", resource: Resource, base: Scaled) -> ResourceEffect:
    """Return the effect of doubling and of halving one resource; `base` is the netlist on the chip as it is."""
    doubled, halved = (study.scale(resource.quantities, factor) for factor in FACTORS)
    cycles = max(base.cycles_per_input, 1e-9)
    return ResourceEffect(
        resource=resource.word,
        title=resource.title,
        gain=1 - doubled.cycles_per_input / cycles,
        loss=halved.cycles_per_input / cycles - 1,
        doubled=doubled,
        halved=halved,
    )


def _follows_clock(base: Scaled, effect: ResourceEffect) -> bool:
    """Return whether the time changes exactly by the factor of the clock: nothing of the netlist depends on a rate with
    a clock of its own."""
    return all(
        abs(scaled.cycles_per_input * scaled.factor / max(base.cycles_per_input, 1e-9) - 1) < _EXACT
        for scaled in (effect.doubled, effect.halved)
    )


class _Study:
    """A run whose epochs are modelled again at other speeds."""

    def __init__(self, netlist: Netlist, run: PerfRun, chip_speed: Speed) -> None:
        self._netlist = netlist
        self._run = run
        self._speed = chip_speed
        self.inputs = max(run.inputs, 1)

    def scale(self, quantities: Sequence[str], factor: float) -> Scaled:
        """Return the figures of all epochs, modelled with these quantities of the speed `factor` times as large."""
        fast = self._speed.times(quantities, factor)
        model = EpochModel(fast, self._run.chip)
        ticks = self._speed.clock / fast.clock  # of the chip's own clock in a cycle
        cycles: list[float] = []
        paces: list[float] = []
        names: list[str] = []
        for report in self._run.epochs:
            timing, load = model.time_again(self._netlist, report)
            cycles.append(report.runs * (fast.setup + load.cycles + timing.total) * ticks / self.inputs)
            paces.append(timing.pace * ticks)
            names.append(bottleneck(timing).name)
        _, slowest = max(zip(cycles, names, strict=True), default=(0.0, ""))
        return Scaled(
            factor=factor,
            cycles_per_input=sum(cycles),
            epochs=tuple(cycles),
            paces=tuple(paces),
            bottleneck=slowest,
        )
