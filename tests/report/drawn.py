"""Pictures of runs for tests."""

from random import Random

from buda_emu.performance.timeline import Live, Ring, Schedule
from buda_emu.performance.timeline.picture import Counter, Lane, Memory, Slice, TimelinePicture, picture

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


def epochs(count: int = 3, ops: int = 12, seed: int = 0) -> TimelinePicture:
    """Epochs one after the other, of which the middle one takes longest: cores with three threads an op, transfers, and
    long gaps in which few lanes are at work."""
    draw = Random(seed)
    lanes, slices, chain = [], [], []
    begin = 0
    for epoch in range(count):
        section = f"run: epoch_{epoch} (chip 0)"
        length = 100_000 * (10 if epoch == count // 2 else 1)
        for op in range(ops):
            name = f"layer_{epoch}.conv2d.{op}.dc.sparse_matmul"
            first = len(lanes)
            lanes += [Lane(f"{name}: {thread}", f"{section}, cores", section) for thread in ("unpack", "math", "pack")]
            for part in range(4):
                start = begin + (4 * op + part) * length // (4 * ops) + draw.randrange(50)
                for thread, kind in enumerate(("unpack", "math", "pack")):
                    span = slice(start + 10 * thread, start + 10 * thread + draw.randint(5, 10 * (op + 1)))
                    chain.append(len(slices))
                    slices.append(Slice(first + thread, span.start, span.stop, name, kind, {"part": part}))
            lanes.append(Lane(f"{name} > next_{op}", f"{section}, transfers", section))
            slices.append(Slice(len(lanes) - 1, start, start + 40, f"{name} > next_{op}", "transfers"))
        begin += length
    return TimelinePicture("epochs", lanes, slices, chain=chain)
