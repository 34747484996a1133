"""Modelled cycles as lines for a terminal."""

from collections.abc import Iterator, Mapping, Sequence

from buda_emu.checker.text import plural
from buda_emu.netlist import nodes
from buda_emu.netlist.model import Netlist
from buda_emu.report.terminal.perf_tables import Selection, Sources, epochs_table, ops_lines
from buda_emu.report.terminal.text import number, percent, table, whole, wrapped
from buda_emu.timing.checks import BoundResult
from buda_emu.timing.epoch.critical import chain_sentence, critical_steps
from buda_emu.timing.result import PerfRun, hypothetical

_ALL = Selection()


def perf_lines(netlist: Netlist, run: PerfRun, selection: Selection = _ALL) -> Iterator[str]:
    """A table of epochs, then of the ops of each, as far as they are selected. Raises HostError for unknown names."""
    epochs = selection.of_epochs(run.epochs)
    assumed = f", {hypothetical(run.assumed)}" if run.assumed else ""
    yield f"{run.netlist}: {run.chip.title}, {run.clock:g} MHz, modelled{assumed}"
    yield ""
    yield epochs_table(run, epochs)
    yield ""
    loads = run.program_loads()
    for program, cycles in run.programs().items():
        took = f"{whole(cycles)} cycles, {_ms(run.seconds(cycles))}, {percent(loads[program] / cycles)} loading epochs"
        yield wrapped(f"program {program}: {took}{_host(run, program, cycles)}")
    yield from _memory(run)
    sources = Sources()
    for index, epoch in epochs:
        yield ""
        yield wrapped(f"{index} {epoch.program}: {' + '.join(epoch.graphs)}: {epoch.bottleneck.sentence}")
        yield wrapped(chain_sentence(critical_steps(epoch.timing), assumed=run.assumed))
        yield from ops_lines(netlist, run, epoch, selection, sources)
    meaning = list(sources.lines())
    if meaning:
        yield ""
        yield from meaning


def _ms(seconds: float) -> str:
    return f"{number(1e3 * seconds, 3)} ms"


def _host(run: PerfRun, program: str, cycles: float) -> str:
    host = run.host_seconds()[program]
    if not host:
        return ""
    bounds = "which bounds it" if host > run.seconds(cycles) else "which can go on meanwhile"
    return f"; the host link takes {_ms(host)} to push and pop, {bounds}"


def _memory(run: PerfRun) -> Iterator[str]:
    """The fullest core and the fullest channel."""
    if run.l1:
        op = max(run.l1, key=lambda name: run.l1[name])
        yield f"L1: at most {run.l1[op] >> 10:,} of {run.l1_capacity >> 10:,} KiB, by op {op}"
    if run.dram:
        use = max(run.dram, key=lambda item: item.share)
        size = f"{use.used / 2**20:,.1f} of {use.capacity >> 20:,} MiB"
        yield f"DRAM: at most {size} ({percent(use.share)}), in channel {use.channel} of chip {use.chip}"


def expectation_lines(sections: Mapping[str, nodes.Node], results: Sequence[BoundResult]) -> Iterator[str]:
    """The section as it would have to be for the modelled figures to hold; what cannot be modelled is left as it is."""
    section = sections.get("performance-check")
    if section is None:
        return
    observed = {(item.config, item.bound.metric): item.observed for item in results}
    yield "performance-check:"
    for config, _, value in section.items() if isinstance(section, nodes.Mapping) else ():
        yield f"  {config}:"
        for key, _, node in value.items() if isinstance(value, nodes.Mapping) else ():
            modelled = observed.get((config, key))
            if modelled is None or not isinstance(node, nodes.Mapping):
                yield f"    {key}: {_written(node)}"
                continue
            fields = {name: _written(item) for name, _, item in node.items()}
            for name in fields.keys() & {"expected", "min_bound"}:
                fields[name] = f"{modelled:.6g}"
            yield f"    {key}: {{{', '.join(f'{name}: {text}' for name, text in fields.items())}}}"


def _written(node: nodes.Node) -> str:
    if isinstance(node, nodes.Scalar):
        return node.text
    if isinstance(node, nodes.Sequence):
        return f"[{', '.join(_written(item) for item in node.items)}]"
    return f"{{{', '.join(f'{name}: {_written(item)}' for name, _, item in node.items())}}}"


def check_lines(results: Sequence[BoundResult]) -> Iterator[str]:
    """`performance-check`: expected, modelled, verdict."""
    if not results:
        return
    yield "performance-check"
    yield table(
        ("config", "verdict", "expected", "modelled", "metric", "graph", "target"),
        (
            (
                item.config,
                "passed" if item.passed else "FAILED",
                str(item.bound),
                number(item.observed, 6),
                item.bound.metric,
                item.graph or "-",
                item.target or "-",
            )
            for item in results
        ),
        right=(3,),
        whole=(1, 2),
    )
    missed = sum(not item.passed for item in results)
    yield f"{plural(missed, 'figure')} missed" if missed else "every figure holds"
