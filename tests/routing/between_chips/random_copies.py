"""Random netlists of copies over Ethernet from chip 0 to chip 1: forks, cuts, channels that are shared."""

from random import Random

from routing.texts import Size, netlist, op, queue

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
