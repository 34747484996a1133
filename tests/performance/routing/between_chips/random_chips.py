"""Random netlists on two to four chips of wormhole_b0 whose ops read each other over Ethernet links, with the clusters:
unicasts, gathers, multicasts and pieces in turn, queues on other chips, copies that name no channels."""

from collections.abc import Callable, Sequence
from random import Random

from performance.routing.texts import Size, netlist, op, queue

Cut = tuple[Size, Size, Size]  # grid, mblock, ublock
Link = tuple[int, int, int, int]  # chip and channel of each end


def cluster(chips: int, links: Sequence[Link], places: Sequence[Size] = ()) -> str:
    """The cluster's file (NETLIST 7.3); without `places` the chips are in a row."""
    where = [f"{n}: [{x}, {y}, 0, 0]" for n, (x, y) in enumerate(places or [(n, 0) for n in range(chips)])]
    lines = [f"arch: {{{', '.join(f'{n}: Wormhole_b0' for n in range(chips))}}}"]
    lines += [f"chips: {{{', '.join(where)}}}", "ethernet_connections:"]
    lines += [f"  - [{{chip: {a}, chan: {c}}}, {{chip: {b}, chan: {d}}}]" for a, c, b, d in links]
    lines += [f"chips_with_mmio: [{', '.join(f'{{{n}: {n}}}' for n in range(chips))}]", "harvesting:"]
    lines += [f"  {n}: {{noc_translation: false, harvest_mask: 0}}" for n in range(chips)]
    return "\n".join(lines) + "\n"


def _links(random: Random, chips: int) -> list[Link]:
    """A row, or a ring of four, with one to four links between neighbours."""
    pairs = [(chip, chip + 1) for chip in range(chips - 1)]
    if chips == 4 and random.random() < 0.6:
        pairs = [(0, 1), (0, 2), (1, 3), (2, 3)]
    return _between(random, chips, pairs, (1, 2, 4, 4))


def _between(random: Random, chips: int, pairs: Sequence[Size], counts: Sequence[int]) -> list[Link]:
    free = {chip: random.sample(range(16), 16) for chip in range(chips)}
    found = [(a, free[a].pop(), b, free[b].pop()) for a, b in pairs for _ in range(random.choice(counts))]
    random.shuffle(found)
    return [link if random.random() < 0.7 else (link[2], link[3], link[0], link[1]) for link in found]


def chips(seed: int) -> tuple[str, str]:
    """One netlist, and its cluster."""
    random = Random(f"chips {seed}")
    count = random.choice((2, 2, 2, 3, 4))
    return _Draft(random, count).text(), cluster(count, _links(random, count))


def copied(seed: int) -> tuple[str, str]:
    """The same with more copies, from any chip to any, and links between any chips, or too few of them."""
    random = Random(f"copied {seed}")
    count = random.choice((2, 3, 3, 4, 4))
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    shown = random.sample(pairs, random.randint(1, len(pairs)))
    row = [(chip, chip + 1) for chip in range(count - 1)]
    links = _between(random, count, random.choice((shown, row, row)), (1, 1, 2, 4))
    places = random.sample([(x, y) for x in range(3) for y in range(2)], count) if random.random() < 0.6 else []
    return _Draft(random, count, links).text(), cluster(count, links, places)


def to_itself(seed: int) -> tuple[str, str]:
    """Two or three chips in a row, with copies that leave a chip over a channel and come back over one, mostly the
    same."""
    random = Random(f"itself {seed}")
    count = random.choice((2, 3))
    links = _between(random, count, [(chip, chip + 1) for chip in range(count - 1)], (1, 2, 4))
    return _Back(random, count, links).text(), cluster(count, links)


def padded(seed: int) -> tuple[str, str]:
    """A copy between two chips whose operand is padded, in cells that may share a channel; or stacked pieces of
    another chip with padding."""
    random = Random(f"padded {seed}")
    links = cluster(2, [(0, channel, 1, 8 + channel) for channel in range(8)])
    return (_padded_copy(random) if random.random() < 0.7 else _padded_pieces(random)), links


def _padded_copy(random: Random) -> str:
    grid, cut, t = random.choice(((1, 1), (1, 1), (1, 2), (2, 1), (2, 2))), _up_to(random, 4), random.choice((1, 1, 2))
    size = grid[0] * cut[0], grid[1] * cut[1]
    more = [random.randrange(min(3, edge)) for edge in size]
    own = size[0] - more[0], size[1] - more[1]
    first = _divisor(random, own[0], 3), _divisor(random, own[1], 3)
    cells, alike = grid[0] * grid[1], random.random() < 0.4
    drawn = [random.choice((1, 3, 4, 5, 6, 7)) for _ in range(cells)]  # those beside a column of workers
    here = drawn[:1] * cells if alike else drawn
    words = f"dest_device: 1, ingress_channels: {here}, egress_channels: {[8 + one for one in here]}"
    copy = op(
        "send",
        "ethernet_datacopy",
        ["first"],
        grid,
        t,
        cut,
        attributes=words,
        buffers=random.choice((1, 2)),
        more=_pad(*more),
    ).replace("grid_loc: [0, 0], ", "")
    queues = [queue("a", t=t, mblock=own), queue("o", "second", grid, t, cut, chip=1)]
    ops = [op("first", "nop", ["a"], first, t, (own[0] // first[0], own[1] // first[1])), copy]
    return netlist(queues, ops, count=random.choice((1, 2)), others={1: [op("second", "nop", ["send"], grid, t, cut)]})


def _padded_pieces(random: Random) -> str:
    t, more, first = random.choice((2, 4)), random.choice((1, 2, 4)), random.choice(((1, 1), (1, 2), (2, 1)))
    rows = 2 * (t + more)
    grid = _divisor(random, rows, 4), 1
    cut, tms = (rows // grid[0], 2), f", input_0_tms: [vstack: {t}]{_pad(2 * more, 0)}"
    queues = [queue("a", t=t, mblock=(2, 2)), queue("o", "second", grid, mblock=cut, chip=1)]
    own = op("first", "nop", ["a"], first, t, (2 // first[0], 2 // first[1]), buffers=1)
    return netlist(queues, [own], others={1: [op("second", "nop", ["first"], grid, mblock=cut, more=tms)]})


def _pad(rows: int, columns: int) -> str:
    return f", input_0_pad: {{rt: {rows}, ct: {columns}, pad_value: 0.0}}"


def _up_to(random: Random, most: int) -> Size:
    return random.randint(1, most), random.randint(1, most)


class _Draft:
    """Ops side by side, row by row, on each chip. `links`: copies go from any chip to any, and some name channels."""

    def __init__(self, random: Random, count: int, links: Sequence[Link] = ()) -> None:
        self.random, self.count, self.links = random, count, links
        self.t = random.choice((1, 1, 2))
        self.rows, self.columns = (random.choice((1, 2, 4, 4, 8)) for _ in range(2))
        self.queues: list[str] = []
        self.ops: dict[int, list[str]] = {chip: [] for chip in range(count)}
        self._shelf = {chip: [0, 0, 0] for chip in range(count)}
        self._made: list[tuple[str, int]] = []
        self._cuts: dict[str, Cut] = {}

    def text(self) -> str:
        random = self.random
        self.queues.append(self._queue("a", "HOST", self._cut(6), 0))
        self._op(0, "nop", ["a"], self._cut(4), chip=int(random.random() < 0.15))
        for number in range(1, random.choice((2, 3, 3, 4, 6, 9))):
            self._more(number)
        read = {name for group in self.ops.values() for line in group for name in _inputs(line)}
        for name, chip in self._made:
            if name not in read:
                own = chip if random.random() < 0.85 else random.randrange(self.count)
                self.queues.append(self._queue(f"o{name}", name, self._cuts[name], own))
        others = {chip: self.ops[chip] for chip in range(1, self.count)}
        made = netlist(self.queues, self.ops[0], count=random.choice((1, 2, 4)), others=others)
        return self._settings_where_read(made)

    def _more(self, number: int) -> None:
        """One more op, which reads one or two of the others, or a copy to the next chip."""
        random = self.random
        source, home = random.choice(self._made[-3:])
        chip = random.randrange(self.count)
        if self.links and home != chip and random.random() < 0.6:
            self._copy(number, source, home, chip, self._channels)
        elif random.random() < 0.15 and abs(home - chip) == 1:
            self._copy(number, source, home, chip)
        elif self.rows == self.columns and random.random() < 0.4:
            step = random.choice([one for one in (1, 2, 4) if self.rows % one == 0])
            words = f"m_k: {self.rows // step}, u_kt: {step}"
            self._op(number, "matmul", [source, random.choice(self._made)[0]], self._cut(6), chip, words)
        elif random.random() < 0.3:
            self._op(number, "add", [source, random.choice(self._made)[0]], self._cut(4), chip)
        else:
            self._op(number, "nop", [source], self._cut(4), chip)

    def _settings_where_read(self, text: str) -> str:
        """The queue of the host is read on the chip of the first op."""
        if not any("inputs: [a]" in line for line in self.ops[1]):
            return text
        words = "queue_settings: {"
        begin = text.index(words) + len(words)
        end = text.index("}}}", begin) + 1
        return (text[:begin] + text[end:]).replace(f"chip1, {words}}}", f"chip1, {words}{text[begin:end]}}}")

    def _cut(self, most: int) -> Cut:
        random = self.random
        down = _divisor(random, self.rows, most)
        across = _divisor(random, self.columns, max(1, min(8, most // down)))
        high, wide = _divisor(random, self.rows // down, 4), _divisor(random, self.columns // across, 2)
        return (down, across), (self.rows // down // high, self.columns // across // wide), (high, wide)

    def _queue(self, name: str, source: str, cut: Cut, chip: int) -> str:
        return queue(name, source, cut[0], self.t, *cut[1:], chip=chip)

    def _op(self, number: int, kind: str, inputs: Sequence[str], cut: Cut, chip: int, words: str = "") -> None:
        grid, mblock, ublock = cut
        name, random = f"op{number:02}", self.random
        more = ", input_1_tms: [transpose]" if kind == "matmul" and random.random() < 0.2 else ""
        self._cuts[name] = cut
        self.ops[chip].append(
            op(
                name,
                kind,
                inputs,
                grid,
                self.t,
                mblock,
                ublock,
                at=self._next(chip, grid),
                buffers=random.choice((1, 2)),
                attributes=words,
                more=more,
            )
        )
        self._made.append((name, chip))

    def _channels(self, here: int, there: int, cells: int) -> str:
        """Those of links of both chips, seldom others, or none."""
        random = self.random
        if random.random() < 0.5:
            return ""
        words: list[str] = []
        for name, chip in (("ingress_channels", here), ("egress_channels", there)):
            ends = [channel for link in self.links for own, channel in (link[:2], link[2:]) if own == chip]
            ends = ends if ends and random.random() < 0.97 else list(range(16))
            words.append(f", {name}: [{', '.join(str(random.choice(ends)) for _ in range(cells))}]")
        return "".join(words)

    def _copy(
        self, number: int, source: str, home: int, chip: int, channels: Callable[[int, int, int], str] | None = None
    ) -> None:
        grid, mblock, ublock = cut = self._cut(self.random.choice((1, 2, 4)))
        name = f"op{number:02}"
        self._cuts[name] = cut
        words = f"dest_device: {chip}" + (channels(home, chip, grid[0] * grid[1]) if channels is not None else "")
        made = op(name, "ethernet_datacopy", [source], grid, self.t, mblock, ublock, attributes=words)
        self.ops[home].append(made.replace("grid_loc: [0, 0], ", ""))
        self._made.append((name, chip))

    def _next(self, chip: int, grid: Size) -> Size:
        row, column, height = self._shelf[chip]
        if column + grid[1] > 8:
            row, column, height = row + height, 0, 0
        self._shelf[chip] = [row, column + grid[1], max(height, grid[0])]
        return row, column


class _Back(_Draft):
    """With copies from a chip to itself."""

    def _more(self, number: int) -> None:
        random = self.random
        source, home = random.choice(self._made[-3:])
        ends = [channel for link in self.links for chip, channel in (link[:2], link[2:]) if chip == home]
        if not ends or random.random() < 0.4:
            super()._more(number)
            return

        def channels(_here: int, _there: int, cells: int) -> str:
            out, back = ([random.choice(ends) for _ in range(cells)] for _ in range(2))
            return f", ingress_channels: {out}, egress_channels: {back if random.random() < 0.3 else out}"

        self._copy(number, source, home, home, channels)


def _inputs(line: str) -> list[str]:
    return line.partition("inputs: [")[2].partition("]")[0].split(", ")


def _divisor(random: Random, number: int, most: int) -> int:
    return random.choice([one for one in range(1, number + 1) if number % one == 0 and one <= most])
