"""Simulate a schedule on the timeline engine (facts GEMINI 5)."""

import os
from collections.abc import Iterable, Sequence

from buda_emu.foreign.gemini.index import Index
from buda_emu.foreign.gemini.model import IR
from buda_emu.foreign.gemini.time.plan import Plan, Send, Step, make_plan
from buda_emu.foreign.gemini.time.timing import (
    DramSpan,
    NocSpan,
    Rates,
    Span,
    Timeline,
    WaitKind,
    count_hops,
    link_bytes,
    tile_cycles,
    whole_cycles,
)
from buda_emu.performance.timeline import Schedule, Wait
from buda_emu.support.errors import HostError

__all__ = ["Timeline", "simulate"]

_DRAM = "DRAM"


def simulate(
    ir: IR | None,
    *,
    dram_gibps: float = 16,
    freq_ghz: float = 1.0,
    asm: "str | os.PathLike[str] | None" = None,
    durations: "str | os.PathLike[str]" = "predicted",
    noc_bytes_per_cycle: float = 32,
) -> Timeline:
    """Return when everything of a schedule happens, in cycles.

    Without `asm` the times follow from the schedule alone. With `asm`, the path of an assembler file (.txt, .txt.gz),
    its instructions run on their units; `durations` is "predicted" or the path of a reference trace of that file, in
    which case `ir` may be None. Raises ProgramError (kind "deadlock") when something waits for ever, naming who waits
    for whom, ScheduleError for an assembler file or trace that cannot be read, HostError for rates that are not above
    0.
    """
    rates = Rates(dram_gibps, freq_ghz, noc_bytes_per_cycle)
    if asm is not None:
        from buda_emu.foreign.gemini.time.assembler import simulate_assembler

        return simulate_assembler(ir, os.fspath(asm), os.fspath(durations), rates)
    if os.fspath(durations) != "predicted":
        raise HostError("durations of a trace belong to an assembler file: give asm, too")
    if ir is None:
        raise HostError("without an assembler file there must be a schedule")
    return simulate_at(ir, rates)


def simulate_at(ir: IR, rates: Rates) -> Timeline:
    """Return when everything of a schedule happens at these rates, from the schedule alone. Raises ProgramError for
    a deadlock."""
    return _Replay(ir, rates).timeline()


class _Replay:
    """Builds the tasks of a schedule: DRAM transfers, workloads (two tasks for one whose third tile waits) and pieces
    over the NoC. Each task gives a counted object when it ends; others wait for it without taking it."""

    def __init__(self, ir: IR, rates: Rates) -> None:
        self.ir = ir
        self.rates = rates
        self.index = Index(ir)
        self.plan: Plan = make_plan(self.index)
        self.schedule = Schedule()
        self.kinds: list[WaitKind] = []
        self._item_done = [self._add_object(str(transfer), transfer.kind) for transfer in self.plan.queue]
        self._work_done: dict[Step, int] = {
            (work.core, work.index): self._add_object(f"the end of {work}", "producer") for work in ir.workloads()
        }
        self._sent: dict[int, list[int]] = {}
        self._send_done: list[int] = []
        for send in self.plan.sends:
            number = self._add_object(f"transfer {send.transfer_id} over the NoC", "producer")
            self._send_done.append(number)
            self._sent.setdefault(send.transfer_id, []).append(number)

    def _add_object(self, name: str, kind: str) -> int:
        """Add a counted object and return its number. `kind` is the kind of a transfer or "producer", and says what
        a task that waits for the object waits for."""
        kinds: dict[str, WaitKind] = {"load": "load", "weight": "weight", "store": "room", "producer": "producer"}
        self.kinds.append(kinds[kind])
        return self.schedule.object(name)

    def timeline(self) -> Timeline:
        """Add all tasks to their units, run them and return their times."""
        items = self._add_transfers()
        works = self._add_workloads()
        sends = self._add_sends()
        timing = self.schedule.run()
        start = timing.start.tolist()
        end = timing.end.tolist()
        workloads = {
            (work.core, work.workload_id): Span(start[tasks[0]], end[tasks[-1]])
            for work, tasks in zip(self.ir.workloads(), works, strict=True)
        }
        dram = tuple(
            DramSpan(
                kind=transfer.kind,
                transfer_id=transfer.transfer_id,
                bytes=transfer.bytes,
                core=transfer.core,
                start=start[task],
                end=end[task],
            )
            for transfer, task in zip(self.plan.queue, items, strict=True)
        )
        noc = tuple(
            NocSpan(
                transfer_id=send.transfer_id,
                core=send.step[0],
                cores=send.cores,
                bytes=send.bytes,
                start=start[task],
                end=end[task],
            )
            for send, task in zip(self.plan.sends, sends, strict=True)
        )
        return Timeline(
            total=timing.makespan,
            workloads=workloads,
            dram=dram,
            noc=noc,
            links=link_bytes(self.ir, self.plan.sends),
            instructions=(),
            mode="schedule",
            rates=self.rates,
            schedule=self.schedule,
            timing=timing,
            kinds=tuple(self.kinds),
            tasks_of={
                (work.core, work.index): tuple(tasks) for work, tasks in zip(self.ir.workloads(), works, strict=True)
            },
            item_tasks=tuple(items),
            send_tasks=tuple(sends),
            index=self.index,
            plan=self.plan,
        )

    def _waits_for_ends(self, steps: Iterable[Step]) -> list[Wait]:
        """Return waits for the ends of workloads."""
        return [_wait_without_taking(self._work_done[step]) for step in steps]

    def _add_transfers(self) -> list[int]:
        """Add the transfers of the DRAM queue as tasks of one unit and return their numbers, in the order of the
        queue."""
        unit = self.schedule.unit(_DRAM)
        tasks: list[int] = []
        for place, transfer in enumerate(self.plan.queue):
            waits = self._waits_for_ends(transfer.after)
            for number in transfer.stores:
                waits += [_wait_without_taking(self._item_done[other]) for other in self.plan.stored.get(number, ())]
            if transfer.never:
                waits.append(_wait_without_taking(self._add_object(transfer.never, "store")))
            cycles = self.rates.transfer(transfer.bytes, store=transfer.kind == "store")
            tasks.append(self.schedule.task(unit, cycles, waits, [(self._item_done[place], 1)], str(transfer)))
        return tasks

    def _add_workloads(self) -> list[list[int]]:
        """Add the workloads as tasks of their cores and return the tasks of each, core by core: two for a workload
        of which the tiles from the third on wait for a load."""
        all_tasks: list[list[int]] = []
        for core, works in self.ir.cores.items():
            unit = self.schedule.unit(f"core {core}")
            for work in works:
                needs = self.plan.needs[core, work.index]
                waits = [_wait_without_taking(self._item_done[place]) for place in (*needs.items, *needs.rooms)]
                for number in needs.pieces:
                    sent = self._sent.get(number) or [self._add_missing_object(number)]
                    waits += [_wait_without_taking(wait_object) for wait_object in sent]
                done = [(self._work_done[core, work.index], 1)]
                if not self.ir.form.tiled:
                    all_tasks.append([self.schedule.task(unit, whole_cycles(work), waits, done, str(work))])
                    continue
                tile_time = tile_cycles(work)
                count = max(len(work.tiles), 1)
                if not needs.late:
                    all_tasks.append([self.schedule.task(unit, count * tile_time, waits, done, str(work))])
                    continue
                late = [_wait_without_taking(self._item_done[place]) for place in needs.late]
                first = self.schedule.task(unit, 2 * tile_time, waits, (), str(work))
                rest = self.schedule.task(unit, (count - 2) * tile_time, late, done, f"{work}, third tile and on")
                all_tasks.append([first, rest])
        return all_tasks

    def _add_missing_object(self, number: int) -> int:
        """Add an object that no task gives, for transfer `number`, which its maker does not send."""
        counted_object = self._add_object(f"transfer {number}, which its maker does not send", "producer")
        self._sent[number] = [counted_object]
        return counted_object

    def _add_sends(self) -> list[int]:
        """Add the pieces between cores as tasks, one unit for the sends of each core, and return their numbers in
        the plan's order."""
        units: dict[int, int] = {}
        tasks: list[int] = []
        for send, done in zip(self.plan.sends, self._send_done, strict=True):
            core = send.step[0]
            if core not in units:
                units[core] = self.schedule.unit(f"send of core {core}")
            waits = self._waits_for_ends((send.step, *send.after))
            cycles = self.rates.hop(max(_count_hops(self.ir, send)), send.bytes)
            label = f"transfer {send.transfer_id} from core {core}"
            tasks.append(self.schedule.task(units[core], cycles, waits, [(done, 1)], label))
        return tasks


def _count_hops(ir: IR, send: Send) -> Sequence[int]:
    """Return the number of links to each core that a piece is sent to."""
    return [count_hops(ir, send.step[0], core) for core in send.cores]


def _wait_without_taking(number: int) -> Wait:
    """Return a wait for an object that leaves it for other waits."""
    return Wait(number, 1, False)
