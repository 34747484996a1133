"""A convolution on an input of the model: the host lays the elements of its windows side by side (FRONTEND 7,
Prestride).

Three channels fill 3 of a tile's 32 columns, and every tap of the kernel picks them once more. Where the host gives the
device windows of m of the k taps at the convolution's stride s, fewer taps are left, or none: with taps q m + r

    y[o] = sum over q, r of w[q m + r] x[o s + q m + r - pad] = sum over q of w'[q] x'[o + q m / s],
    x'[p] = (x[p s + r - pad] for all r)

which is a convolution of stride 1 and dilation m / s, for every m that s divides; for m = k it is a product. Windows
at f times the stride hold what f outputs read: the kernel is f - 1 strides longer, and its f copies, each a stride
further, give f times the channels, which are then taken for places again. That costs the host fewer bytes, and whoever
reads the places after it more.

Which is best depends on all that follows: those are offered that no others undercut in the cycles of the host link,
and in those of picker and product, and the search estimates the whole model with each (docs/compile/placing.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import prod
from typing import NamedTuple

import numpy as np

from buda_emu.compiler.graph.graph import Array, Graph, Node, Shape
from buda_emu.compiler.lower.layout import TILE, padded
from buda_emu.compiler.place.blocks import size_of_tile
from buda_emu.compiler.place.cost import picker_cycles, product_cycles, speeds
from buda_emu.compiler.target import Target
from buda_emu.emulator.image.host_plan import Windows

PHASES = (1, 2, 4)
"""Outputs, along each dimension, that windows may hold."""
OFFERS = 2
"""Kinds of windows that the search is asked about."""


class Cut(NamedTuple):
    """`sizes` of the host's windows, `taps` that are left of them, how many `places` there are; `phases`: outputs that
    each of them holds."""

    sizes: Shape
    taps: Shape
    places: Shape
    phases: Shape


def host_windows(graph: Graph, target: Target) -> list[Graph]:
    """`conv(x, w)` of an input that nobody else reads as `conv(windows(x), w')`, with windows of several kinds, that of
    the fewest cycles by itself first; the graph itself among them where nothing undercuts it in all respects."""
    users = graph.users()
    shown = {output.value for output in graph.outputs}
    found = [item for name in graph.inputs if (item := only_conv(graph, users, shown, name)) is not None]
    offers = [offered(graph, conv, target) for _, _, conv, _ in found]
    made: list[Graph] = []
    for number in range(max(map(len, offers), default=1)):
        nodes = dict(graph.nodes)
        for (name, chain, conv, perm), own in zip(found, offers, strict=True):
            cut = own[min(number, len(own) - 1)]
            if cut is not None:
                for node in chain:
                    del nodes[node.name]
                nodes = with_windows(graph, nodes, graph[name], conv, perm, cut)
        made.append(Graph(graph.name, nodes, graph.inputs, graph.outputs))
    return made


def only_conv(
    graph: Graph, users: dict[str, list[str]], shown: set[str], name: str
) -> tuple[str, list[Node], Node, tuple[int, ...]] | None:
    """An input, what is between it and the convolution by constants that alone reads it, that one, and in which order
    the input's dimensions are put."""
    node = graph[name]
    perm: tuple[int, ...] = tuple(range(len(node.shape)))
    chain: list[Node] = []
    while node.name not in shown and len(users[node.name]) == 1:
        node = graph[users[node.name][0]]
        if node.op == "transpose":
            order: tuple[int, ...] = node.attrs["perm"]
            perm = tuple(perm[place] for place in order)
        elif node.op == "conv" and node.attrs.get("groups", 1) == 1 and graph[node.inputs[1]].op == "constant":
            return name, chain, node, perm
        elif node.op != "identity" or np.dtype(node.dtype).kind != "f":
            return None
        chain.append(node)
    return None


def cuts(graph: Graph, conv: Node) -> Iterator[Cut]:
    """All windows that the host might give."""
    kernel = graph[conv.inputs[1]].shape[2:]
    attrs = conv.attrs
    if any(dilation != 1 for dilation in attrs["dilations"]):
        return
    choices: list[list[tuple[int, int, int, int]]] = []
    for k, stride, out in zip(kernel, attrs["strides"], conv.shape[2:], strict=True):
        own: list[tuple[int, int, int, int]] = []
        for f in PHASES:
            wide = k + (f - 1) * stride
            step = f * stride
            if out % f == 0 and (f == 1 or conv.shape[1] % TILE == 0):
                parts = ((m, -(-wide // m)) for m in range(step, wide, step))
                own += [(m, q, out // f + (q - 1) * (m // step), f) for m, q in parts]
                own.append((wide, 1, out // f, f))
        choices.append(own)
    for found in product(*choices):
        yield Cut(*(tuple(item[n] for item in found) for n in range(4)))


class Offer(NamedTuple):
    """Windows, None for the model's own tensor, with cycles of one input: of the host link, and of picker and product
    on all cores, at least what the picker needs on as many as it can have. `phases`: outputs of one window."""

    cut: Cut | None
    host: float
    device: float
    phases: int

    def worse(self, other: "Offer") -> bool:
        """Whether another one is better, and no worse in any respect."""
        mine = self[1:]
        theirs = other[1:]
        return mine != theirs and all(a <= b for a, b in zip(theirs, mine, strict=True))


def offered(graph: Graph, conv: Node, target: Target) -> list[Cut | None]:
    """Those that no other one undercuts in all respects, first what takes the fewest cycles by itself."""
    found = sorted((_offer(graph, conv, cut, target) for cut in (None, *cuts(graph, conv))), key=_sum)
    kept: list[Offer] = []
    for own in found:
        if not any(own.worse(other) or own[1:] == other[1:] for other in kept):
            kept.append(own)
    return [own.cut for own in kept[:OFFERS]]


def _sum(offer: Offer) -> float:
    return offer.host + offer.device


def _offer(graph: Graph, conv: Node, cut: Cut | None, target: Target) -> Offer:
    """By the rates of the chip and the op cost model."""
    source = graph[conv.inputs[0]].shape
    kernel = graph[conv.inputs[1]].shape[2:]
    link = size_of_tile(target.activation_df, target.arch.alignment) / speeds(target.chip).host
    sizes, taps, phases = ((1,) * len(kernel), kernel, 1) if cut is None else (cut.sizes, cut.taps, prod(cut.phases))
    places = prod(source[2:] if cut is None else cut.places)
    # Channels along columns, places along rows; the model's own tensor has no gaps.
    if cut is None:
        host = prod(source) / TILE**2
    else:
        host = _tiles(source[0] * places) * _tiles(source[1] * prod(sizes))
    rows = _tiles(conv.shape[0] * prod(conv.shape[2:]) // phases)
    seen = _tiles(source[1] * prod(sizes))
    columns = _tiles(conv.shape[1] * phases)
    count = prod(taps)
    work = product_cycles(target, rows, seen * count, columns)
    least = 0.0
    if count > 1:
        picks = picker_cycles(target, rows, seen) * count
        work += picks
        least = picks / (target.arch.grid[0] * min(seen, target.arch.grid[1]))  # rows of it have their own encoding
    return Offer(cut, host * link, max(work / prod(target.arch.grid), least), phases)


def _tiles(size: int) -> int:
    return padded(size) // TILE


def with_windows(
    graph: Graph, nodes: dict[str, Node], source: Node, conv: Node, perm: tuple[int, ...], cut: Cut
) -> dict[str, Node]:
    """The nodes in order, with the input, its convolution and the weights in their new form."""
    rank = len(cut.sizes)
    attrs = conv.attrs
    starts = tuple(-low for low, _ in attrs["pads"])
    strides = tuple(s * f for s, f in zip(attrs["strides"], cut.phases, strict=True))
    windows = Windows(perm=perm, sizes=cut.sizes, strides=strides, starts=starts, counts=cut.places)
    shape = windows.shape(source.shape)
    given = replace(source, attrs={**source.attrs, "windows": windows, "host_shape": source.shape}, shape=shape)
    first = f"{conv.name}.seen"
    order = (0, rank + 1, *range(1, rank + 1))
    channels_first = Node(
        name=first,
        op="transpose",
        inputs=(source.name,),
        attrs={"perm": order},
        shape=tuple(shape[place] for place in order),
        dtype="float32",
        source=conv.source,
    )
    weights = graph[conv.inputs[1]]
    held = _weights(weights.value, attrs["strides"], cut)
    second = f"{conv.name}.weights"
    steps = tuple(m // s if q > 1 else 1 for m, s, q in zip(cut.sizes, strides, cut.taps, strict=True))
    left = {**attrs, "strides": (1,) * rank, "pads": ((0, 0),) * rank, "dilations": steps}
    products = {
        second: replace(weights, name=second, attrs={"value": held}, shape=held.shape, dtype="float32"),
        conv.name: replace(conv, inputs=(first, second), attrs=left),
    }
    if prod(cut.phases) > 1:
        after = _behind(graph, conv)
        products = _in_phases(graph, products, after, cut)
        nodes = {name: node for name, node in nodes.items() if name not in {item.name for item in after[:-1]}}
        last = after[-1].name
    else:
        last = conv.name
    made: dict[str, Node] = {}
    for name, node in nodes.items():
        if name == last:
            made[first] = channels_first
            made |= products
        elif name != conv.name:
            made[name] = given if name == source.name else node
    return made


def _behind(graph: Graph, conv: Node) -> list[Node]:
    """The convolution, and what each channel goes through by itself before anything else is done with it."""
    users = graph.users()
    shown = {output.value for output in graph.outputs}
    found = [conv]
    while found[-1].name not in shown and len(users[found[-1].name]) == 1:
        user = graph[users[found[-1].name][0]]
        terms = [graph[name] for name in user.inputs if name != found[-1].name]
        each = user.op == "add" and len(terms) == 1 and terms[0].op == "constant" and _by_channel(conv, terms[0])
        if user.shape != conv.shape or not (each or user.op == "relu"):
            break
        found.append(user)
    return found


def _by_channel(conv: Node, term: Node) -> bool:
    """Whether a constant has one number for each channel."""
    shape = (1,) * (len(conv.shape) - len(term.shape)) + term.shape
    return shape == (1, conv.shape[1], *(1,) * (len(shape) - 2))


def _in_phases(graph: Graph, made: dict[str, Node], after: list[Node], cut: Cut) -> dict[str, Node]:
    """The convolution to all channels of all phases, what is after it, and the phases as places again: under the name
    of the last one."""
    conv = after[0]
    last = after[-1]
    batch, channels, *space = conv.shape
    rank = len(space)
    count = prod(cut.phases)
    wide = (batch, count * channels, *(size // f for size, f in zip(space, cut.phases, strict=True)))
    first = made.pop(conv.name)
    before = f"{conv.name}.phases"
    made[before] = replace(first, name=before, shape=wide)
    for previous, node in pairwise(after):
        name = f"{node.name}.phases"
        inputs: list[str] = []
        for item in node.inputs:
            if item == previous.name:
                inputs.append(before)
                continue
            inputs.append(f"{name}.term")
            numbers = np.tile(graph[item].value.reshape(-1), count).reshape(count * channels, *(1,) * rank)
            made[inputs[-1]] = replace(graph[item], name=inputs[-1], attrs={"value": numbers}, shape=numbers.shape)
        made[name] = replace(node, name=name, inputs=tuple(inputs), shape=wide)
        before = name
    apart = (batch, *cut.phases, channels, *wide[2:])
    pairs = [place for n in range(rank) for place in (rank + 2 + n, 1 + n)]
    order = (0, rank + 1, *pairs)
    for name, op, attrs, shape in (
        (f"{last.name}.apart", "reshape", {"shape": apart}, apart),
        (f"{last.name}.order", "transpose", {"perm": order}, tuple(apart[place] for place in order)),
        (last.name, "reshape", {"shape": last.shape}, last.shape),
    ):
        made[name] = Node(
            name=name, op=op, inputs=(before,), attrs=attrs, shape=shape, dtype=last.dtype, source=last.source
        )
        before = name
    return made


def _weights(weights: Array, strides: Sequence[int], cut: Cut) -> Array:
    """[out, C, kernel...] as [phases and out, places in the window and channels, taps...], zeros around the kernel."""
    out, channels = weights.shape[:2]
    rank = len(cut.sizes)
    wide = [q * m for q, m in zip(cut.taps, cut.sizes, strict=True)]
    full = np.zeros((*cut.phases, out, channels, *wide), np.float32)
    for phase in np.ndindex(*cut.phases):
        at = [n * s for n, s in zip(phase, strides, strict=True)]
        inside = tuple(slice(low, low + k) for low, k in zip(at, weights.shape[2:], strict=True))
        full[(*phase, slice(None), slice(None), *inside)] = weights
    parts = [size for pair in zip(cut.taps, cut.sizes, strict=True) for size in pair]
    taps = range(2, 2 + 2 * rank, 2)
    inside = range(3, 3 + 2 * rank, 2)
    apart = full.reshape(prod(cut.phases) * out, channels, *parts).transpose(0, *inside, 1, *taps)
    return np.ascontiguousarray(apart.reshape(prod(cut.phases) * out, -1, *cut.taps))
