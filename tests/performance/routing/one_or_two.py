"""Random netlists of one op or two over several cores: products whose operands rows or columns of cores share, or that
a prologue keeps in L1 whole or in chunks, alone, in a fused op, and beside a producer that multicasts to them; pieces
that are stacked and padded; rows of flat data."""

from collections.abc import Callable
from random import Random

from performance.routing.texts import Size, netlist, op, queue, with_fused

KEPT = ((), ("a",), ("b",), ("b",), ("a", "b"))


def one_or_two(seed: int, arch: str) -> str:
    """One netlist as text; the kinds come in turn, so that a range of seeds has all of them."""
    return KINDS[seed % len(KINDS)](Random(f"{seed} {arch}"), arch)


class _Sizes:
    """Of a product: cores, mblock of the result, mblocks and ublocks of what it sums over."""

    def __init__(self, random: Random, most_k: int) -> None:
        self.grid: Size = (random.randint(1, 3), random.randint(1, 3))
        self.mblock: Size = (random.choice((1, 1, 2)), random.choice((1, 2, 4)))
        self.k: Size = (random.choice([one for one in (1, 2, 4, 8, 16, 16) if one <= most_k]), random.choice((1, 2)))
        self.t = random.choice((1, 1, 2))
        self.inner = self.k[0] * self.k[1]
        self.attributes = f"m_k: {self.k[0]}, u_kt: {self.k[1]}"

    def left(self, random: Random, name: str) -> str:
        """A queue of one buffer, or of one for each row of cores."""
        rows, m = self.grid[0], self.mblock[0]
        if random.random() < 0.3:
            return queue(name, t=self.t, mblock=(m * rows, self.inner))
        return queue(name, grid=(rows, 1), t=self.t, mblock=(m, self.inner))

    def right(self, random: Random, name: str) -> str:
        """A queue of one buffer, or of one for each column of cores."""
        columns, n = self.grid[1], self.mblock[1]
        if random.random() < 0.3:
            return queue(name, t=self.t, mblock=(self.inner, n * columns))
        return queue(name, grid=(1, columns), t=self.t, mblock=(self.inner, n))

    def result(self, name: str, source: str) -> str:
        """A queue that is cut as the op that feeds it."""
        return queue(name, source, self.grid, self.t, self.mblock)


def _alone(random: Random, arch: str) -> str:
    """A matmul of which a prologue may keep operands, of few tiles or of many, some with TMs."""
    sizes = _Sizes(random, 16)
    tms = (
        ", input_1_tms: [transpose]"
        if random.random() < 0.15 and sizes.grid[1] * sizes.mblock[1] == sizes.inner
        else ""
    )
    made = op("p", "matmul", ["a", "b"], sizes.grid, sizes.t, sizes.mblock, attributes=sizes.attributes, more=tms)
    queues = [sizes.left(random, "a"), sizes.right(random, "b"), sizes.result("o", "p")]
    return netlist(queues, [made], arch, kept=random.choice(KEPT), count=random.choice((1, 2)))


def _beside(random: Random, arch: str) -> str:
    """A matmul beside whose row or column of cores a producer of one core stands, which other ops read, too."""
    sizes = _Sizes(random, 4)
    rows, columns = sizes.grid
    along = random.choice(("row", "column"))
    queues, ops = list[str](), list[str]()
    if along == "row":
        sizes.grid = (1, columns)
        shape: Size = (sizes.mblock[0], sizes.inner)
        queues += [queue("x", t=sizes.t, mblock=shape), sizes.right(random, "b")]
        inputs, place = ["n", "b"], (0, 1)
    else:
        sizes.grid = (rows, 1)
        shape = (sizes.inner, sizes.mblock[1])
        queues += [queue("x", t=sizes.t, mblock=shape), sizes.left(random, "a")]
        inputs, place = ["a", "n"], (1, 0)
    ops.append(op("n", "nop", ["x"], t=sizes.t, mblock=shape))
    made = op("p", "matmul", inputs, sizes.grid, sizes.t, sizes.mblock, at=place, attributes=sizes.attributes)
    copies = [
        op(f"c{number}", "nop", ["n"], t=sizes.t, mblock=shape, at=(5, number))
        for number in range(random.randint(0, 3))
    ]
    first = random.randint(0, len(copies))
    ops += [*copies[:first], made, *copies[first:]]
    queues += [sizes.result("o", "p")]
    queues += [queue(f"o{number}", f"c{number}", t=sizes.t, mblock=shape) for number in range(len(copies))]
    return netlist(queues, ops, arch)


def _chained(random: Random, arch: str) -> str:
    """A fused op that multiplies what it made itself, in one schedule."""
    sizes = _Sizes(random, 16)
    sizes.grid = (sizes.grid[0], 1)
    queues = [sizes.left(random, "a"), sizes.right(random, "b"), sizes.result("o", "join")]
    kind, first = random.choice(("exp", "nop")), f"mblock: [{sizes.mblock[0]}, {sizes.k[0]}], ublock: [1, {sizes.k[1]}]"
    steps = [
        (
            f"e: {{type: {kind}, inputs: [input0], {first}, output: intermed0}}, m: {{type: matmul, inputs: "
            f"[intermed0, input1], attributes: {{{sizes.attributes}}}, pop: [intermed0], output: intermed1"
        ),
        "s: {type: nop, inputs: [intermed1], pop: [intermed1], output: output",
    ]
    made = op("join", "fused_op", ["a", "b"], sizes.grid, sizes.t, sizes.mblock, attributes="fused_op_id: 0")
    return with_fused(netlist(queues, [made], arch), steps, 2, 2, sizes.mblock)


def _fused(random: Random, arch: str) -> str:
    """A fused op of one or two products, to which an operand is added."""
    sizes = _Sizes(random, 4)
    count = random.choice((1, 1, 2))
    queues, steps = list[str](), list[str]()
    for number in range(count):
        queues += [sizes.left(random, f"a{number}"), sizes.right(random, f"b{number}")]
        steps.append(
            f"m{number}: {{type: matmul, inputs: [input{2 * number}, input{2 * number + 1}], "
            f"attributes: {{{sizes.attributes}}}, output: intermed{number}"
        )
    names = [f"{side}{number}" for number in range(count) for side in "ab"]
    if count == 1:
        names.append("c")
        queues.append(queue("c", "HOST", sizes.grid, sizes.t, sizes.mblock))
        steps.append("s: {type: add, inputs: [intermed0, input2], pop: [intermed0], output: output")
    else:
        steps.append("s: {type: add, inputs: [intermed0, intermed1], pop: [intermed0, intermed1], output: output")
    made = op("join", "fused_op", names, sizes.grid, sizes.t, sizes.mblock, attributes="fused_op_id: 0")
    kept = [name for name in names if random.random() < 0.15]
    return with_fused(
        netlist([*queues, sizes.result("o", "join")], [made], arch, kept=kept), steps, len(names), count, sizes.mblock
    )


def _stacked(random: Random, arch: str) -> str:
    """A nop that stacks what another one gives below and beside each other, in either order, and pads it."""
    down, across = random.choice((1, 2, 3, 4)), random.choice((1, 2, 3, 4))
    t, own = random.choice((1, 1, 2)), (random.choice((1, 1, 1, 2)), random.choice((1, 2)))
    tms = [f"{kind}: {count}" for kind, count in (("hstack", across), ("vstack", down)) if count > 1]
    if random.random() < 0.15:
        tms.reverse()
    padded = [random.choice((0, 0, 0, size * down)) for size in own]
    rows, columns = own[0] * down + padded[0], own[1] * across + padded[1]
    parts = (rows, columns) if random.random() < 0.1 else (down, across)
    grid: Size = random.choice(_divisors(parts[0])), random.choice(_divisors(parts[1]))
    cut: Size = rows // grid[0], columns // grid[1]
    more = f", input_0_tms: [{', '.join(tms)}]" if tms else ""
    if any(padded):
        more += f", input_0_pad: {{rt: {padded[0]}, ct: {padded[1]}, pad_value: 0.0}}"
    pieces = t * down * across
    ops = [
        op("first", "nop", ["a"], t=pieces, mblock=own),
        op("second", "nop", ["first"], grid, t, cut, at=(1, 0), order=random.choice("rrc"), more=more),
    ]
    return netlist([queue("a", t=pieces, mblock=own), queue("o", "second", grid, t, cut)], ops, arch)


def _flat(random: Random, arch: str) -> str:
    """A tilizer on more cores than its queue has buffers, or as many."""
    apart: Size = (random.choice((1, 1, 2)), random.choice((1, 1, 2)))
    grid: Size = (apart[0] * random.choice((1, 2)), apart[1] * random.choice((1, 2)))
    t, mblock = random.choice((1, 2)), (random.choice((1, 2)), random.choice((1, 2, 3)))
    whole: Size = (mblock[0] * grid[0] // apart[0], mblock[1] * grid[1] // apart[1])
    source = queue("a", "HOST", apart, t, whole, entries=1, more=", layout: flat")
    made = op("tiles", "tilizer", ["a"], grid, t, mblock)
    return netlist([source, queue("o", "tiles", grid, t, mblock)], [made], arch)


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, number + 1) if number % one == 0]


KINDS: tuple[Callable[[Random, str], str], ...] = (_alone, _beside, _fused, _stacked, _flat, _chained)
