"""Random netlists near the limits of a core, on both sides of each: fan-out, cuts, TMs, DRAM, buffers."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from buda_emu.spec.devices import device
from performance.routing.texts import ONE, Size, netlist, op, queue

Shape = tuple[int, int, int]  # t, tile rows, tile columns
Cut = tuple[Size, Size, Size]  # grid, mblock, ublock
MOST_OF_A_UBLOCK = 8  # tiles


def near_limits(seed: int, arch: str) -> str:
    """One netlist as text; the kinds come in turn, so that a range of seeds has all of them."""
    random = Random(f"{seed} {arch}")
    kinds = list(KINDS.values())
    return kinds[seed % len(kinds)](_Draft(random, arch))


class _FullError(Exception):
    """No core is left."""


class _Draft:
    """Ops and queues of a netlist, placed side by side on the cores of a chip."""

    def __init__(self, random: Random, arch: str) -> None:
        self.random, self.arch = random, arch
        self.rows, self.columns = device(arch).grid
        self.queues: list[str] = []
        self.ops: list[str] = []
        self.kept: list[str] = []
        self._taken: set[Size] = set()
        self.count = random.choice((1, 1, 2, 4))

    def text(self) -> str:
        return netlist(self.queues, self.ops, self.arch, kept=self.kept, count=self.count)

    def place(self, grid: Size) -> Size:
        """The first free place for a grid of cores."""
        for row in range(self.rows - grid[0] + 1):
            for column in range(self.columns - grid[1] + 1):
                cores = {(row + down, column + across) for down in range(grid[0]) for across in range(grid[1])}
                if not cores & self._taken:
                    self._taken |= cores
                    return row, column
        raise _FullError

    def cut(self, shape: Shape, most_cores: int = 12) -> Cut:
        """Grid, mblock and ublock of a tensor."""
        random, (_, rows, columns) = self.random, shape
        down = random.choice([one for one in _divisors(rows) if one <= min(self.rows, most_cores)])
        across = random.choice([one for one in _divisors(columns) if one <= min(self.columns, most_cores // down)])
        high = random.choice([one for one in _divisors(rows // down) if one <= MOST_OF_A_UBLOCK])
        wide = random.choice([one for one in _divisors(columns // across) if one * high <= MOST_OF_A_UBLOCK])
        return (down, across), (rows // down // high, columns // across // wide), (high, wide)

    def queue(
        self, name: str, shape: Shape, source: str = "HOST", cut: Cut | None = None, *, df: str = "Float16"
    ) -> str:
        grid, mblock, ublock = cut or self.cut(shape)
        self.queues.append(queue(name, source, grid, shape[0], mblock, ublock, df=df))
        return name

    def op(
        self,
        name: str,
        type: str,
        inputs: Sequence[str],
        shape: Shape,
        cut: Cut | None = None,
        *,
        tms: Mapping[int, str] | None = None,
        attributes: str = "",
        more: str = "",
        order: str = "r",
        buffers: int = 2,
        out_df: str = "Float16",
    ) -> str:
        grid, mblock, ublock = cut or self.cut(shape)
        more += "".join(f", input_{index}_tms: [{chain}]" for index, chain in (tms or {}).items() if chain)
        self.ops.append(
            op(
                name,
                type,
                inputs,
                grid,
                shape[0],
                mblock,
                ublock,
                at=self.place(grid),
                order=order,
                buffers=buffers,
                attributes=attributes,
                more=more,
                out_df=out_df,
            )
        )
        return name

    def fed(self, name: str, shape: Shape, cut: Cut, source: str) -> None:
        """A queue that is cut as the op that feeds it."""
        self.queue(name, shape, source, cut)


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, number + 1) if number % one == 0]


def _fan_out(draft: _Draft) -> str:
    """One result with 14 to 28 readers that are cut as they like."""
    random = draft.random
    shape = (random.choice((1, 1, 2)), random.choice((1, 2, 4, 8)), random.choice((1, 2, 4, 8)))
    draft.queue("a", shape)
    draft.op("from", "nop", ["a"], shape, draft.cut(shape, random.choice((1, 1, 4))), buffers=random.choice((1, 2)))
    alike = draft.cut(shape, 2)
    for number in range(random.randint(14, 28)):
        cut = alike if random.random() < 0.6 else draft.cut(shape, 3)
        try:
            name = draft.op(f"to{number:02}", "nop", ["from"], shape, cut)
        except _FullError:
            break
        draft.fed(f"o{number:02}", shape, cut, name)
    return draft.text()


def _products(draft: _Draft) -> str:
    """Products that share operands: gathers and multicasts."""
    random = draft.random
    rows, inner, columns = (random.choice((2, 4, 6, 8)) for _ in range(3))
    for name, shape in (("x", (1, rows, inner)), ("w", (1, inner, columns))):
        draft.queue(f"q{name}", shape)
        cut = draft.cut(shape, 8)
        draft.op(name, "nop", [f"q{name}"], shape, cut, buffers=random.choice((1, 2)))
        draft.fed(f"o{name}", shape, cut, name)
    for number in range(random.randint(1, 8)):
        shape = (1, rows, columns)
        cut = draft.cut(shape)
        step = random.choice(_divisors(inner))
        left, right = (random.choice((name, f"q{name}")) for name in "xw")
        try:
            name = draft.op(
                f"m{number}", "matmul", [left, right], shape, cut, attributes=f"m_k: {inner // step}, u_kt: {step}"
            )
        except _FullError:
            break
        draft.fed(f"o{number}", shape, cut, name)
        if random.random() < 0.2:
            draft.kept = list(dict.fromkeys([*draft.kept, *(one for one in (left, right) if one.startswith("q"))]))
    return draft.text()


def _many_inputs(draft: _Draft) -> str:
    """A splice of 2 to 8 inputs from queues of several buffers, and from ops: DRAM readers and operands of a core."""
    random = draft.random
    count = random.randint(2, 8)
    t, rows, columns = random.choice((1, 2)), random.choice((1, 2, 4)), random.choice((1, 2))
    names = list[str]()
    for number in range(count):
        source = draft.queue(f"q{number:02}", (t, rows, columns), cut=draft.cut((t, rows, columns), 4))
        if random.random() < 0.25:
            source = draft.op(f"n{number:02}", "nop", [source], (t, rows, columns), draft.cut((t, rows, columns), 4))
        names.append(source)
    cut = draft.cut((t, rows, columns), 4)
    shape = (t * count, rows, columns)
    draft.op("join", "splice", names, shape, cut, attributes=_stacked(count, t))
    draft.fed("o", shape, cut, "join")
    return draft.text()


def _sums(draft: _Draft) -> str:
    """A fused op that sums up 2 to 12 queues and results: DRAM readers, operands and intermediates of a core."""
    random = draft.random
    shape = (1, random.choice((1, 2, 4)), random.choice((1, 2)))
    _, mblock, ublock = cut = draft.cut(shape, 4)
    count = random.randint(2, 12)
    names = list[str]()
    for number in range(count):
        source = draft.queue(f"q{number:02}", shape, cut=draft.cut(shape, 4))
        if random.random() < 0.1:
            source = draft.op(f"n{number:02}", "nop", [source], shape, draft.cut(shape, 4))
        names.append(source)
    draft.op("join", "fused_op", names, shape, cut, attributes="fused_op_id: 0")
    draft.fed("o", shape, cut, "join")
    steps = list[str]()
    for number in range(1, count):
        before = f"intermed{number - 2}" if number > 1 else "input0"
        result = "output" if number == count - 1 else f"intermed{number - 1}"
        popped = f", pop: [{before}]" if number > 1 else ""
        steps.append(
            f"      - [s{number}: {{type: add, inputs: [{before}, input{number}]{popped}, "
            f"mblock: {list(mblock)}, ublock: {list(ublock)}, output: {result}}}]"
        )
    head = f"fused_ops:\n  0:\n    inputs: {count}\n    intermediates: {count - 2}\n    schedules:\n"
    return draft.text().replace("\ngraphs:", "\n" + head + "\n".join(steps) + "\ngraphs:")


def _gathered_queues(draft: _Draft) -> str:
    """Ops of few cores that read queues of many buffers."""
    random = draft.random
    shape = (1, random.choice((4, 6, 8)), random.choice((4, 6, 8)))
    for number in range(random.randint(1, 4)):
        inputs = [draft.queue(f"q{number}{side}", shape, cut=draft.cut(shape, 20)) for side in "ab"]
        if random.random() < 0.3:
            draft.kept.append(inputs[0])
        cut = draft.cut(shape, 4)
        name = draft.op(f"s{number}", "add", inputs, shape, cut)
        draft.fed(f"o{number}", shape, cut, name)
    return draft.text()


def _many_outputs(draft: _Draft) -> str:
    """One result that feeds 6 to 10 queues, and readers beside them."""
    random = draft.random
    shape = (1, random.choice((1, 2, 4)), random.choice((1, 2, 4)))
    cut = draft.cut(shape, 4)
    draft.queue("a", shape)
    draft.op("from", "nop", ["a"], shape, cut)
    for number in range(random.randint(6, 10)):
        draft.fed(f"o{number}", shape, cut, "from")
    for number in range(random.randint(0, 12)):
        own = draft.cut(shape, 4)
        draft.fed(f"p{number}", shape, own, draft.op(f"to{number:02}", "nop", ["from"], shape, own))
    return draft.text()


def _readers_of_a_queue(draft: _Draft) -> str:
    """A queue of one buffer that 200 to 300 operands read."""
    random = draft.random
    across, down = random.choice((6, 7, 8)), random.choice((8, 9, 10))
    draft.queue("a", (1, 1, 1), cut=(ONE, ONE, ONE))
    times = random.choice((3, 4, 5))
    repeated = f"broadcast: {{r: {down}}}, broadcast: {{c: {across}}}"
    cut = ((down, across), ONE, ONE)
    shape = (times, down, across)
    tms = dict.fromkeys(range(times), repeated)
    draft.op("join", "splice", ["a"] * times, shape, cut, attributes=_stacked(times, 1), tms=tms)
    draft.fed("o", shape, cut, "join")
    return draft.text()


def _stacked(count: int, t: int) -> str:
    """Attributes of a splice that puts its inputs of `t` one after the other."""
    return ", ".join(["granularity: t", *(f"input{number}: [0, {t}, {t}]" for number in range(count))])


def _tms(draft: _Draft) -> str:
    """Chains of TMs between ops, and between queues and ops."""
    random = draft.random
    shape = (random.choice((1, 1, 2, 4)), random.choice((2, 4, 6, 8, 12)), random.choice((2, 4, 6, 8, 12)))
    source = draft.queue("a", shape)
    if random.random() < 0.8:
        source = draft.op("n0", "nop", [source], shape, buffers=random.choice((1, 2, 4)), order=random.choice("rc"))
    for number in range(1, random.randint(2, 4)):
        after, chain = _chain(random, shape)
        cut = draft.cut(after)
        try:
            source = draft.op(
                f"n{number}",
                "nop",
                [source],
                after,
                cut,
                tms={0: chain},
                order=random.choice("rc"),
                buffers=random.choice((1, 2)),
            )
        except _FullError:
            break
        shape = after
        draft.fed(f"o{number}", shape, cut, source)
    return draft.text()


def _chain(random: Random, shape: Shape) -> tuple[Shape, str]:
    t, rows, columns = shape
    said = list[str]()
    for _ in range(random.randint(1, 3)):
        kind = random.choice(("hslice", "vslice", "hstack", "vstack", "broadcast", "transpose"))
        if kind == "transpose":
            rows, columns = columns, rows
            said.append("transpose")
            continue
        of = {"hslice": columns, "vslice": rows, "hstack": t, "vstack": t, "broadcast": 3}[kind]
        factor = random.choice(_divisors(of)[1:] or [1])
        if factor == 1 or (kind == "broadcast" and max(rows, columns) * factor > 24):
            continue
        if kind == "broadcast":
            axis = random.choice("rcz" if t == 1 else "rc")
            t, rows, columns = (
                size * factor if axis == one else size for one, size in zip("zrc", (t, rows, columns), strict=True)
            )
            said.append(f"broadcast: {{{axis}: {factor}}}")
            continue
        t = t * factor if kind.endswith("slice") else t // factor
        if kind[0] == "h":
            columns = columns // factor if kind == "hslice" else columns * factor
        else:
            rows = rows // factor if kind == "vslice" else rows * factor
        said.append(f"{kind}: {factor}")
    return (t, rows, columns), ", ".join(said)


def _full_l1(draft: _Draft) -> str:
    """Buffers that fill L1 to about its end, and operands of several sizes of tiles."""
    random = draft.random
    end = 840_000 if draft.arch == "grayskull" else 1_290_000
    df, tile = random.choice((("Float32", 4160), ("Float16", 2112), ("Bfp8", 1152)))
    buffers = random.choice((1, 2, 2, 4))
    mblock = max(1, end // tile // buffers - random.randint(0, 64))
    shape, cut = (1, 1, mblock), (ONE, (1, mblock), ONE)
    least = random.choice((0, 0, random.randint(1, 64)))
    more = f", input_buf_min_size_tiles: [{least}]" if least else ""
    draft.queue("a", shape, cut=cut)
    draft.op("copy", "nop", ["a"], shape, cut, buffers=buffers, more=more, out_df=df)
    draft.queue("o", shape, "copy", cut, df=df)
    return draft.text()


def _large_epochs(draft: _Draft) -> str:
    """Many tiles of many inputs, gathered and forked: phases."""
    random = draft.random
    shape = (random.choice((1, 3, 16, 64)), random.choice((2, 4, 8)), random.choice((2, 4, 8)))
    draft.count = random.choice((1, 7, 16, 61, 128, 1000))
    draft.queue("a", shape)
    draft.op("from", "nop", ["a"], shape, draft.cut(shape, 8), buffers=random.choice((1, 2)))
    for number in range(random.randint(1, 4)):
        cut = draft.cut(shape, 8)
        try:
            name = draft.op(f"to{number}", "nop", ["from"], shape, cut)
        except _FullError:
            break
        draft.fed(f"o{number}", shape, cut, name)
    return draft.text()


def _graph(draft: _Draft) -> str:
    """Ops of several kinds that read each other at random."""
    random = draft.random
    size = random.choice((2, 4, 6, 8))
    shape = (random.choice((1, 1, 2)), size, size)
    queues = [draft.queue(f"q{number}", shape) for number in range(random.randint(1, 4))]
    sources, used = list(queues), set[str]()
    cuts = dict[str, Cut]()
    for number in range(random.randint(4, 20)):
        type = random.choice(("nop", "exp", "add", "multiply", "matmul"))
        inputs = random.choices(sources[-6:], k=1 if type in ("nop", "exp") else 2)
        name, cut = f"n{number:02}", draft.cut(shape, 8)
        step = random.choice(_divisors(size))
        attributes = f"m_k: {size // step}, u_kt: {step}" if type == "matmul" else ""
        transposed = {len(inputs) - 1: "transpose"} if type in ("nop", "matmul") and random.random() < 0.2 else {}
        try:
            draft.op(
                name, type, inputs, shape, cut, attributes=attributes, tms=transposed, buffers=random.choice((1, 2, 2))
            )
        except _FullError:
            break
        used |= set(inputs)
        cuts[name] = cut
        sources.append(name)
    draft.queues = [line for name, line in zip(queues, draft.queues, strict=True) if name in used]
    for name, cut in cuts.items():
        if name not in used:
            draft.fed(f"o{name}", shape, cut, name)
    return draft.text()


KINDS: Mapping[str, Callable[[_Draft], str]] = {
    "fan-out": _fan_out,
    "products": _products,
    "many inputs": _many_inputs,
    "sums": _sums,
    "gathered queues": _gathered_queues,
    "many outputs": _many_outputs,
    "readers of a queue": _readers_of_a_queue,
    "TMs": _tms,
    "full L1": _full_l1,
    "large epochs": _large_epochs,
    "graph": _graph,
}
