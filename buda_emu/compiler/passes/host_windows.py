"""A convolution on an input of the model: the host lays the elements of its windows side by side (FRONTEND 7,
Prestride).

Three channels fill 3 of a tile's 32 columns, and every tap of the kernel picks them once more. If the host gives the
device windows of m of the k taps at the convolution's stride s, fewer taps are left, or none: with taps q m + r

    y[o] = sum over q, r of w[q m + r] x[o s + q m + r - pad] = sum over q of w'[q] x'[o + q m / s],
    x'[p] = (x[p s + r - pad] for all r)

which is a convolution of stride 1 and dilation m / s, for every m that s divides; for m = k it is a product. Windows
at f times the stride hold the elements that f outputs read: the kernel is f - 1 strides longer, and its f copies, each
a stride further, give f times the channels, which are then taken for places again. This costs the host fewer bytes,
and the readers of the places more work.

Which windows are best depends on the ops that follow. Those are offered that no others undercut both in the cycles of
the host link and in the cycles of picker and product, and the search estimates the whole model with each
(docs/compile/placing.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import prod
from typing import NamedTuple

import numpy as np

from buda_emu.compiler.graph.graph import Array, Graph, Node, Shape
from buda_emu.compiler.lower.layout import TILE, padded_size
from buda_emu.compiler.place.blocks import size_of_tile
from buda_emu.compiler.place.cost import picker_cycles, product_cycles, speeds
from buda_emu.compiler.target import Target
from buda_emu.emulator.image.host_plan import Windows

PHASES = (1, 2, 4)
"""Numbers of outputs, along each dimension, that one window may hold."""
OFFERS = 2
"""Number of window layouts that the search may choose from."""


class WindowLayout(NamedTuple):
    """A window layout. `sizes` of the host's windows, `taps` that are left of the kernel, numbers of `places`, and
    `phases`: outputs that each window holds; all by dimension."""

    sizes: Shape
    taps: Shape
    places: Shape
    phases: Shape


def host_windows(graph: Graph, target: Target) -> list[Graph]:
    """Replace `conv(x, w)` of an input with no other reader by `conv(windows(x), w')`. Returns a graph for each window
    layout, the one with the fewest cycles by itself first; the unchanged graph is among them if nothing undercuts it in
    all respects."""
    users = graph.users()
    shown = {output.value for output in graph.outputs}
    matches = [match for name in graph.inputs if (match := only_conv(graph, users, shown, name)) is not None]
    offers = [offer_cuts(graph, conv, target) for _, _, conv, _ in matches]
    graphs: list[Graph] = []
    for number in range(max(map(len, offers), default=1)):
        nodes = dict(graph.nodes)
        for (name, chain, conv, perm), conv_cuts in zip(matches, offers, strict=True):
            cut = conv_cuts[min(number, len(conv_cuts) - 1)]
            if cut is not None:
                for node in chain:
                    del nodes[node.name]
                nodes = with_windows(graph, nodes, graph[name], conv, perm, cut)
        graphs.append(Graph(graph.name, nodes, graph.inputs, graph.outputs))
    return graphs


def only_conv(
    graph: Graph, users: dict[str, list[str]], shown: set[str], name: str
) -> tuple[str, list[Node], Node, tuple[int, ...]] | None:
    """Return an input, the nodes between it and the convolution by constants that is its only reader, that convolution,
    and the order into which the input's dimensions are permuted; None if anything else reads it. `users`: the readers
    of each value; `shown`: the values of outputs."""
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


def cuts(graph: Graph, conv: Node) -> Iterator[WindowLayout]:
    """Yield all window layouts that the host can produce for a convolution."""
    kernel = graph[conv.inputs[1]].shape[2:]
    attrs = conv.attrs
    if any(dilation != 1 for dilation in attrs["dilations"]):
        return
    choices: list[list[tuple[int, int, int, int]]] = []
    if conv.shape[1] % TILE == 0:
        phases = PHASES
    else:
        phases = (1,)
    for k, stride, out in zip(kernel, attrs["strides"], conv.shape[2:], strict=True):
        dimension_choices: list[tuple[int, int, int, int]] = []
        for f in phases:
            if out % f == 0:
                dimension_choices += _cuts_of_dimension(k, stride, out, f)
        choices.append(dimension_choices)
    for combination in product(*choices):
        yield WindowLayout(*(tuple(choice[n] for choice in combination) for n in range(4)))


def _cuts_of_dimension(k: int, stride: int, out: int, f: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield window size, taps, places and phases along one dimension, for a kernel of k taps and f outputs of `out` in
    each window."""
    wide = k + (f - 1) * stride
    step = f * stride
    for m in range(step, wide, step):
        taps = -(-wide // m)
        yield m, taps, out // f + (taps - 1) * (m // step), f
    yield wide, 1, out // f, f


class Offer(NamedTuple):
    """A window layout, None for the model's own tensor, with its cycles for one input: `host` for the host link,
    `device` for picker and product on all cores, at least what the picker needs on as many cores as it can use.
    `phases`: outputs of one window."""

    cut: WindowLayout | None
    host: float
    device: float
    phases: int

    def worse(self, other: "Offer") -> bool:
        """Return whether the offer `other` is better than this one in some respect and no worse in any."""
        own_costs = self[1:]
        other_costs = other[1:]
        return own_costs != other_costs and all(a <= b for a, b in zip(other_costs, own_costs, strict=True))


def offer_cuts(graph: Graph, conv: Node, target: Target) -> list[WindowLayout | None]:
    """Return at most `OFFERS` layouts that no other one undercuts in all respects, the one with the fewest cycles by
    itself first; None stands for the model's own tensor."""
    offers = sorted(
        (_estimate_offer(graph, conv, cut, target) for cut in (None, *cuts(graph, conv))), key=_total_cycles
    )
    best: list[Offer] = []
    for offer in offers:
        if not any(offer.worse(other) or offer[1:] == other[1:] for other in best):
            best.append(offer)
    return [offer.cut for offer in best[:OFFERS]]


def _total_cycles(offer: Offer) -> float:
    """Return the cycles of an offer, on the host link and on the device together."""
    return offer.host + offer.device


def _estimate_offer(graph: Graph, conv: Node, cut: WindowLayout | None, target: Target) -> Offer:
    """Estimate the cycles of the window layout `cut` with the rates of the chip and the cost model of ops."""
    source = graph[conv.inputs[0]].shape
    kernel = graph[conv.inputs[1]].shape[2:]
    link = size_of_tile(target.activation_df, target.arch.alignment) / speeds(target.chip).host
    sizes, taps, phases = ((1,) * len(kernel), kernel, 1) if cut is None else (cut.sizes, cut.taps, prod(cut.phases))
    places = prod(source[2:] if cut is None else cut.places)
    # Channels along columns, places along rows; the model's own tensor has no gaps.
    if cut is None:
        host = prod(source) / TILE**2
    else:
        host = _count_tiles(source[0] * places) * _count_tiles(source[1] * prod(sizes))
    rows = _count_tiles(conv.shape[0] * prod(conv.shape[2:]) // phases)
    seen = _count_tiles(source[1] * prod(sizes))
    columns = _count_tiles(conv.shape[1] * phases)
    count = prod(taps)
    work = product_cycles(target, rows, seen * count, columns)
    least = 0.0
    if count > 1:
        picks = picker_cycles(target, rows, seen) * count
        work += picks
        least = picks / (target.arch.grid[0] * min(seen, target.arch.grid[1]))  # rows of it have their own encoding
    return Offer(cut, host * link, max(work / prod(target.arch.grid), least), phases)


def _count_tiles(size: int) -> int:
    """Return the number of tiles along a dimension of `size` elements."""
    return padded_size(size) // TILE


def with_windows(
    graph: Graph, nodes: dict[str, Node], source: Node, conv: Node, perm: tuple[int, ...], cut: WindowLayout
) -> dict[str, Node]:
    """Return the nodes of the graph, in order, in which the host lays out the windows of the input `source`, so that
    the convolution `conv` reads them in a product: input, convolution and weights are replaced."""
    rank = len(cut.sizes)
    attrs = conv.attrs
    starts = tuple(-low for low, _ in attrs["pads"])
    strides = tuple(s * f for s, f in zip(attrs["strides"], cut.phases, strict=True))
    windows = Windows(perm=perm, sizes=cut.sizes, strides=strides, starts=starts, counts=cut.places)
    shape = windows.shape(source.shape)
    new_input = replace(source, attrs={**source.attrs, "windows": windows, "host_shape": source.shape}, shape=shape)
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
    new_weights = _window_weights(weights.value, attrs["strides"], cut)
    second = f"{conv.name}.weights"
    steps = tuple(m // s if q > 1 else 1 for m, s, q in zip(cut.sizes, strides, cut.taps, strict=True))
    conv_attrs = {**attrs, "strides": (1,) * rank, "pads": ((0, 0),) * rank, "dilations": steps}
    products = {
        second: replace(weights, name=second, attrs={"value": new_weights}, shape=new_weights.shape, dtype="float32"),
        conv.name: replace(conv, inputs=(first, second), attrs=conv_attrs),
    }
    if prod(cut.phases) > 1:
        after = _channelwise_chain(graph, conv)
        products = _convolve_in_phases(graph, products, after, cut)
        nodes = {
            name: node
            for name, node in nodes.items()
            if name not in {node_of_chain.name for node_of_chain in after[:-1]}
        }
        last = after[-1].name
    else:
        last = conv.name
    new_nodes: dict[str, Node] = {}
    for name, node in nodes.items():
        if name == last:
            new_nodes[first] = channels_first
            new_nodes |= products
        elif name != conv.name:
            new_nodes[name] = new_input if name == source.name else node
    return new_nodes


def _adds_by_channel(graph: Graph, conv: Node, node: Node, user: Node) -> bool:
    """Return whether the reader of a node adds to it a constant with one number for each channel of a convolution."""
    terms = [graph[name] for name in user.inputs if name != node.name]
    return (
        user.op == "add" and len(terms) == 1 and terms[0].op == "constant" and _has_number_per_channel(conv, terms[0])
    )


def _channelwise_chain(graph: Graph, conv: Node) -> list[Node]:
    """Return the convolution and the ops behind it that treat each channel by itself, additions of constants and ReLU,
    as long as each has one reader."""
    users = graph.users()
    shown = {output.value for output in graph.outputs}
    chain = [conv]
    while chain[-1].name not in shown and len(users[chain[-1].name]) == 1:
        user = graph[users[chain[-1].name][0]]
        if user.shape != conv.shape or not (user.op == "relu" or _adds_by_channel(graph, conv, chain[-1], user)):
            break
        chain.append(user)
    return chain


def _has_number_per_channel(conv: Node, term: Node) -> bool:
    """Return whether a constant has one number for each channel of the convolution."""
    shape = (1,) * (len(conv.shape) - len(term.shape)) + term.shape
    return shape == (1, conv.shape[1], *(1,) * (len(shape) - 2))


def _convolve_in_phases(graph: Graph, nodes: dict[str, Node], after: list[Node], cut: WindowLayout) -> dict[str, Node]:
    """Return the nodes that convolve to all channels of all phases, apply the ops of the chain `after`, which begins
    with the convolution, and turn phases into places again. The result has the name of the last op."""
    conv = after[0]
    last = after[-1]
    batch, channels, *space = conv.shape
    rank = len(space)
    count = prod(cut.phases)
    wide = (batch, count * channels, *(size // f for size, f in zip(space, cut.phases, strict=True)))
    first = nodes.pop(conv.name)
    before = f"{conv.name}.phases"
    nodes[before] = replace(first, name=before, shape=wide)
    for previous, node in pairwise(after):
        name = f"{node.name}.phases"
        inputs: list[str] = []
        for operand in node.inputs:
            if operand == previous.name:
                inputs.append(before)
                continue
            inputs.append(f"{name}.term")
            numbers = np.tile(graph[operand].value.reshape(-1), count).reshape(count * channels, *(1,) * rank)
            nodes[inputs[-1]] = replace(graph[operand], name=inputs[-1], attrs={"value": numbers}, shape=numbers.shape)
        nodes[name] = replace(node, name=name, inputs=tuple(inputs), shape=wide)
        before = name
    apart = (batch, *cut.phases, channels, *wide[2:])
    pairs = [place for n in range(rank) for place in (rank + 2 + n, 1 + n)]
    order = (0, rank + 1, *pairs)
    for name, op, attrs, shape in (
        (f"{last.name}.apart", "reshape", {"shape": apart}, apart),
        (f"{last.name}.order", "transpose", {"perm": order}, tuple(apart[place] for place in order)),
        (last.name, "reshape", {"shape": last.shape}, last.shape),
    ):
        nodes[name] = Node(
            name=name, op=op, inputs=(before,), attrs=attrs, shape=shape, dtype=last.dtype, source=last.source
        )
        before = name
    return nodes


def _window_weights(weights: Array, strides: Sequence[int], cut: WindowLayout) -> Array:
    """Return weights [out, C, kernel...] as [phases and out, places in the window and channels, taps...], with zeros
    around the kernel."""
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
