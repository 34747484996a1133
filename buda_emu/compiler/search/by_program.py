"""Programs share no epoch, so that each may have the epochs that it is quickest with, of all that were found."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from buda_emu.compiler.place.decision import PlacementDecision, placed
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.evaluate import judged
from buda_emu.compiler.search.trials import Found, told
from buda_emu.errors import UnsupportedError


def combined(found: Sequence[Found], entries: int) -> list[Found]:
    """What the quickest epochs of each program come to; nothing where there is one program, or one that is the best for
    all. `found`: of any forms of a graph, of which those of the quickest one count."""
    best = min(found, key=lambda item: item.cycles)
    table = best.table
    alike = [item for item in found if item.table is table and item.decisions is not None]
    if table is None or len({op.program for op in table.ops}) < 2 or len(alike) < 2:
        return []
    each = [_cycles(table, item) for item in alike]
    chosen = {program: min(range(len(alike)), key=lambda n: each[n][program]) for program in each[0]}
    if len(set(chosen.values())) == 1:
        return []
    decisions: dict[str, PlacementDecision] = {}
    count = 0
    for program, number in chosen.items():
        own = _of_program(table, alike[number].decisions or {}, program)
        order = {epoch: count + n for n, epoch in enumerate(sorted({item.epoch for item in own.values()}))}
        decisions |= {name: replace(item, epoch=order[item.epoch]) for name, item in own.items()}
        count += len(order)
    try:
        placement = placed(table.tiles, table.target, decisions, best.objective, entries)
    except UnsupportedError:
        return []
    return [Found.of(best.objective, told(best.objective, placement), table, decisions)]


def _of_program(
    table: CandidateTable, decisions: Mapping[str, PlacementDecision], program: str
) -> dict[str, PlacementDecision]:
    return {op.name: decisions[op.name] for op in table.ops if op.program == program}


def _cycles(table: CandidateTable, found: Found) -> dict[str, float]:
    """Of each program, in their order: its epochs, and loading them."""
    programs = {op.name: op.program for op in table.ops}
    cycles = dict.fromkeys(programs.values(), 0.0)
    found.objective.work.modelled += len(found.placement.ops)
    for epoch in judged(found.placement).run.epochs:
        cycles[programs[epoch.timing.ops[0].op]] += epoch.timing.total + epoch.load.cycles
    return cycles
