"""Pictures of runs for tests."""

from buda_emu.performance.timeline import Live, Ring, Schedule
from buda_emu.performance.timeline.picture import Counter, Memory, TimelinePicture, picture

KINDS = ("load", "compute", "store", "weights")


def pipeline(stages: int = 4, items: int = 6) -> TimelinePicture:
    """Units that hand items on through buffers with room for two, a memory with a ring, and a counter."""
    schedule = Schedule()
    units = [schedule.unit(f"core {number}") for number in range(stages)]
    full = [schedule.object(f"data for core {number}") for number in range(stages)]
    room = [schedule.object(f"room in core {number}", 2) for number in range(stages)]
    for number in range(stages * items):
        item, stage = divmod(number, stages)
        waits = [(full[stage], 1)] if stage else []
        signals = [(room[stage], 1)] if stage else []
        if stage + 1 < stages:
            waits.append((room[stage + 1], 1))
            signals.append((full[stage + 1], 1))
        duration = 400 + 37 * stage + (item * 131 + stage * 71) % 260
        schedule.task(units[stage], duration, waits, signals, f"tile {item} of layer {stage}")
    timing = schedule.run()
    kinds = {number: KINDS[number % len(KINDS)] for number in range(len(schedule))}
    lives = [
        Live(
            "L2",
            4096 * (number * 7 % 60),
            12_288,
            300 * number,
            300 * number + 2500,
            f"tensor {number}",
            Ring(0, 245_760),
        )
        for number in range(timing.makespan // 300)
    ]
    times = list(range(0, timing.makespan, max(timing.makespan // 200, 1)))
    counter = Counter("DRAM", "bytes a cycle", times, [abs(time // 7 % 33 - 16) for time in times])
    return picture(
        schedule,
        timing,
        'a pipeline <of> "cores" & memory',
        category=lambda task: kinds[task],
        details=lambda task: {"bytes": 4096 * (task + 1), "layer": f"conv_{task % stages}"},
        group=lambda unit: "cores" if unit % 4 else "loaders",
        memories=[Memory("L2", lives, 262_144)],
        counters=[counter],
        per_microsecond=1000.0,
        notes=("This is a model.",),
        about={"clock_mhz": 1000},
    )
