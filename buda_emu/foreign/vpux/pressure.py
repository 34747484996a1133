"""How many barriers are in use at each time, beside what the architecture has (VPUX 4)."""

from dataclasses import dataclass

from buda_emu.foreign.vpux.execute.run import RunResult


@dataclass(frozen=True, slots=True)
class Pressure:
    """From `changes[i][0]` on, `changes[i][1]` barriers are in use; `limit` may be in use at one time."""

    changes: tuple[tuple[int, int], ...]
    limit: int

    @property
    def most(self) -> int:
        """The most at any time."""
        return max((count for _, count in self.changes), default=0)


def barrier_pressure(result: RunResult) -> Pressure:
    """A barrier is in use from the start of the first task that updates or awaits it to the end of the last one."""
    program = result.scheduled.program
    deltas: dict[int, int] = {}
    for barrier in program.barriers:
        users = {*barrier.producers, *barrier.consumers}
        if users:
            start = min(result.tasks[n].start for n in users)
            end = max(result.tasks[n].end for n in users)
            deltas[start] = deltas.get(start, 0) + 1
            deltas[end] = deltas.get(end, 0) - 1
    changes: list[tuple[int, int]] = []
    count = 0
    for time in sorted(deltas):
        count += deltas[time]
        changes.append((time, count))
    tiles = {space for buffer in program.buffers.values() for space in buffer.spaces if space.startswith("CMX")}
    tiles |= {task.unit for task in program.tasks if task.unit.startswith("SHAVE_ACT")}
    numbers = {name.rpartition(":")[2].removeprefix("CMX") for name in tiles}
    return Pressure(tuple(changes), program.arch.available_barriers(len(numbers)))
