"""Count the barriers in use at each time, for comparison with what the architecture has (VPUX 4)."""

from dataclasses import dataclass

from buda_emu.foreign.vpux.execute.run import RunResult


@dataclass(frozen=True, slots=True)
class Pressure:
    """Barriers in use over time: from `changes[i][0]` on, `changes[i][1]` are; `limit` may be at one time."""

    changes: tuple[tuple[int, int], ...]
    limit: int

    @property
    def most(self) -> int:
        """The largest number of barriers in use at one time."""
        return max((count for _, count in self.changes), default=0)


def barrier_pressure(result: RunResult) -> Pressure:
    """Count the barriers in use. A barrier is in use from the start of the first task that updates or awaits it to the
    end of the last one."""
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
    tiles: set[str] = set()
    for buffer in program.buffers.values():
        tiles.update(space for space in buffer.spaces if space.startswith("CMX"))
    tiles |= {task.unit for task in program.tasks if task.unit.startswith("SHAVE_ACT")}
    numbers = {name.rpartition(":")[2].removeprefix("CMX") for name in tiles}
    return Pressure(tuple(changes), program.arch.available_barriers(len(numbers)))
