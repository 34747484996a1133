"""A convolution whose picker is too slow for one op becomes a sum of several (FRONTEND 2, kernel fracture).

An identity matmul cannot have more cores than rows of its grid. Where one takes longer than all ops together would on
all cores, its taps are shared out: `y = relu(hstack(pick(x)) W + b)` becomes the sum of `hstack(pick_k(x)) W_k`, with
the bias in the first part and the activation in the last addition. The sum is the same but for the order in which it
is made; a bias that rounds it is added last.
"""

from dataclasses import replace
from math import prod

from buda_emu.compiler.lower.picker import Cut, PickTable
from buda_emu.compiler.lower.tiles import RELU, TileGraph, TileOp, Use, kept, over
from buda_emu.compiler.passes.fold_scale_bias import rounds
from buda_emu.compiler.place.regrid import repicked
from buda_emu.compiler.search.candidate_table import CandidateTable

"""Attributes of the product that the last addition takes over."""


def fractured(table: CandidateTable, chips: int, share: float) -> TileGraph:
    """The graph with pickers cut that take longer than a share of the work of all ops, spread over the cores of all
    chips; the same object when there is none."""
    cores = prod(table.target.arch.grid) * chips
    limit = share * sum(min(choice.cycles * choice.cores for choice in own) for own in table.best) / cores
    tiles = table.tiles
    for op, own in zip(table.ops, table.best, strict=True):
        quickest = min(choice.cycles for choice in own)
        product = _product(tiles, op) if quickest > limit else None
        if product is None:
            continue
        taps = _taps(product)
        count = next((n for n in range(2, taps + 1) if taps % n == 0 and quickest / n <= limit), taps)
        tiles = _cut(tiles, op, product, count)
    return tiles


def _product(tiles: TileGraph, op: TileOp) -> TileOp | None:
    """The only reader of a picker of several taps, if it multiplies them side by side by a constant."""
    if "table" not in op.attrs or op.shape[0] < 2:
        return None
    readers = [other for other in tiles.ops.values() if any(use.source == op.name for use in other.uses)]
    if len(readers) != 1 or not readers[0].has("inner dimension") or readers[0].attrs.get("identity"):
        return None
    product = readers[0]
    left, right = product.uses[0], product.uses[1]
    slices = product.shape[0]
    if left.source != op.name or left.tms != (("hstack", op.shape[0] // slices),) or _taps(product) < 2:
        return None
    constant = tiles.constants.get(right.source)
    if constant is None or constant.values.shape[0] != 1 or right.tms != over((slices, 1, 1)):
        return None
    if product.attrs.get("sfpu_op") or product.attrs.get("dequant"):  # of the whole sum
        return None
    return product


def _taps(product: TileOp) -> int:
    """How many slices of the picker stand side by side in one of the product."""
    return int(product.uses[0].tms[0][-1])


def _cut(tiles: TileGraph, op: TileOp, product: TileOp, count: int) -> TileGraph:
    """The graph with the picker's taps shared out over `count` parts."""
    every = _taps(product)
    taps = every // count
    table: PickTable = op.attrs["table"]
    weights = tiles.constants[product.uses[1].source]
    constants = dict(tiles.constants)
    height = taps * (1 if product.type == "depthwise" else op.shape[2]) * 32  # of a tap: a row of diagonals (OPS 6.3)
    made: list[TileOp] = []
    taken = {*tiles.ops, *constants, *tiles.inputs, *tiles.states}
    stems = (f"{op.name}.taps", f"{product.name}.part", f"{product.name}.sum")
    pick, part, total = (_stem(taken, stem) for stem in stems)
    before_end = kept(product.attrs, product.attrs.keys() - {*RELU})
    terms = product.uses[2:]
    added_last = terms if any(rounds(constants[use.source].values) for use in terms) else []
    if added_last:
        del before_end["bias"]
    sums = count - 1 + len(added_last)

    def add(number: int, term: Use) -> TileOp:
        last = number == sums
        before = f"{total}.{number - 1}" if number > 1 else f"{part}.0"
        return replace(
            product,
            name=product.name if last else f"{total}.{number}",
            type="add",
            uses=[Use(before), term],
            inner=0,
            attrs=kept(product.attrs, RELU) if last else {},
        )

    for number in range(count):
        own = table.part(number * taps, taps, every)
        made.append(repicked(constants, replace(op, name=f"{pick}.{number}"), own, Cut(op.attrs["rows"])))
        name = f"{part}.{number}.weights"
        constants[name] = replace(weights, name=name, values=weights.values[:, number * height : (number + 1) * height])
        more = terms if number == 0 and not added_last else []
        attrs = before_end if number == 0 else kept(before_end, before_end.keys() - {"bias"})
        tms = (("hstack", taps),) if taps > 1 else ()
        uses = [Use(f"{pick}.{number}", tms), Use(name, product.uses[1].tms), *more]
        made.append(replace(product, name=f"{part}.{number}", uses=uses, attrs=attrs, inner=product.inner // count))
        if number:
            made.append(add(number, Use(f"{part}.{number}")))
    made += [add(sums, term) for term in added_last]
    ops: dict[str, TileOp] = {}
    for other in tiles.ops.values():
        if other.name == product.name:
            ops |= {item.name: item for item in made}
        elif other.name != op.name:
            ops[other.name] = other
    return replace(tiles, ops=ops, constants=constants)


def _stem(taken: set[str], stem: str) -> str:
    """With a number after it the name of nothing."""
    while any(name.startswith(f"{stem}.") for name in taken):
        stem += "_"
    return stem
