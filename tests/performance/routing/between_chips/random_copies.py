"""Random netlists of copies over Ethernet from chip 0 to chip 1: forks, cuts, shared channels, stacked pieces."""

from random import Random

from performance.routing.texts import Size, netlist, op, queue

Cut = tuple[Size, Size, Size]  # grid, mblock, ublock


def copies(seed: int) -> str:
    """One netlist as text, for wormhole_b0."""
    random = Random(f"copies {seed}")
    t, rows, columns = random.choice((1, 1, 2, 4)), random.choice((1, 2, 4, 8)), random.choice((1, 2, 4, 6))

    def cut(cores: int) -> Cut:
        down = _divisor(random, rows, cores)
        across = _divisor(random, columns, max(1, min(8, cores // down)))
        high, wide = _divisor(random, rows // down, 4), _divisor(random, columns // across, 2)
        return (down, across), (rows // down // high, columns // across // wide), (high, wide)

    source, own = "a", cut(8)
    queues, ops, others = [queue("a", "HOST", own[0], t, *own[1:])], list[str](), list[str]()
    if random.random() < 0.8:
        grid, mblock, ublock = cut(8)
        ops.append(op("first", "nop", ["a"], grid, t, mblock, ublock, buffers=random.choice((1, 2))))
        source = "first"
    places = _Shelf()
    for number in range(random.choice((1, 1, 2, 3))):
        grid, mblock, ublock = cut(random.choice((1, 1, 2, 4)))
        channels = [random.choice((8, 8, 9)) for _ in range(grid[0] * grid[1])]
        ends = [random.choice((0, 1, 8)) if random.random() < 0.1 else channel - 8 for channel in channels]
        words = f"ingress_channels: {channels}, egress_channels: {ends}, dest_device: 1"
        buffers = random.choice((1, 2))
        made = op(
            f"send{number}", "ethernet_datacopy", [source], grid, t, mblock, ublock, buffers=buffers, attributes=words
        )
        ops.append(made.replace("grid_loc: [0, 0], ", ""))
        if random.random() < 0.2:
            queues.append(queue(f"stored{number}", f"send{number}", grid, t, mblock, ublock, chip=1))
        for reader in range(random.choice((1, 1, 2, 3))):
            name, (grid, mblock, ublock) = f"to{number}{reader}", cut(4)
            product = rows == columns and random.random() < 0.3
            inputs, words = ([f"send{number}"] * 2, f"m_k: {columns}, u_kt: 1") if product else ([f"send{number}"], "")
            kind = "matmul" if product else "nop"
            others.append(op(name, kind, inputs, grid, t, mblock, ublock, at=places.next(grid), attributes=words))
            queues.append(queue(f"o{name}", name, grid, t, mblock, ublock, chip=1))
    return netlist(queues, ops, count=random.choice((1, 2, 4)), others={1: others})


def stacked_copies(seed: int, *, linked: bool = False) -> str:
    """One netlist in which a copy, or what reads it, stacks pieces; `linked`: over the channels of a row of chips."""
    random = Random(f"stacked copies {seed}")
    kind, count = random.choice(("vstack", "hstack")), random.choice((2, 2, 4))
    t, size = count * random.choice((1, 1, 2)), (random.choice((1, 2, 4)), random.choice((1, 2, 4)))
    larger = (size[0] * (count if kind == "vstack" else 1), size[1] * (count if kind == "hstack" else 1))

    def cut(size: Size, cores: int) -> Cut:
        down = _divisor(random, size[0], cores)
        across = _divisor(random, size[1], max(1, cores // down))
        high, wide = _divisor(random, size[0] // down, 4), _divisor(random, size[1] // across, 2)
        return (down, across), (size[0] // down // high, size[1] // across // wide), (high, wide)

    at_copy, source, own = random.random() < 0.5, "a", cut(size, 8)
    stack = f", input_0_tms: [{kind}: {count}]"
    queues, ops, others = [queue("a", "HOST", own[0], t, *own[1:])], list[str](), list[str]()
    if random.random() < 0.8:
        grid, mblock, ublock = cut(size, 8)
        ops.append(op("first", "nop", ["a"], grid, t, mblock, ublock, buffers=random.choice((1, 2))))
        source = "first"
    size, t, between = (larger, t // count, stack) if at_copy else (size, t, "")
    grid, mblock, ublock = cut(size, random.choice((1, 1, 2, 4)))
    several = random.random() < 0.3
    near = [random.choice((0, 0, 1)) if several else 0 for _ in range(grid[0] * grid[1])]
    far = [channel + 8 for channel in near]
    ends = (near, far) if linked else (far, near)
    words = f"ingress_channels: {ends[0]}, egress_channels: {ends[1]}, dest_device: 1"
    buffers = random.choice((1, 2))
    made = op(
        "send", "ethernet_datacopy", [source], grid, t, mblock, ublock, buffers=buffers, attributes=words, more=between
    )
    ops.append(made.replace("grid_loc: [0, 0], ", ""))
    size, t, behind = (size, t, "") if at_copy else (larger, t // count, stack)
    places = _Shelf()
    for number in range(random.choice((1, 1, 2))):
        grid, mblock, ublock = cut(size, 4)
        others.append(op(f"to{number}", "nop", ["send"], grid, t, mblock, ublock, at=places.next(grid), more=behind))
        queues.append(queue(f"o{number}", f"to{number}", grid, t, mblock, ublock, chip=1))
    return netlist(queues, ops, count=random.choice((1, 2)), others={1: others})


def _divisor(random: Random, number: int, most: int) -> int:
    return random.choice([one for one in range(1, number + 1) if number % one == 0 and one <= most])


class _Shelf:
    """Places side by side, row by row."""

    def __init__(self) -> None:
        self.row = self.column = self.height = 0

    def next(self, grid: Size) -> Size:
        if self.column + grid[1] > 8:
            self.row, self.column, self.height = self.row + self.height, 0, 0
        place = (self.row, self.column)
        self.column, self.height = self.column + grid[1], max(self.height, grid[0])
        return place
