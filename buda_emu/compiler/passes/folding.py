"""Passes that fold patterns of exporters into one op: pads, scales and biases of channels, GELU, and pairs of quantise
and dequantise.
"""

from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import Final

import numpy as np

from buda_emu.compiler.graph.graph import Array, Graph, Node, other_operand
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.passes.clean import dce


def fold_pads(graph: Graph) -> Graph:
    """Fold pads into convolutions: `conv(pad(x, a), w, pads=b)` becomes `conv(x, w, pads=a + b)`, if only spatial
    dimensions are padded. Pads without readers are then removed."""
    folded = {name: _fold_pads_into(graph, node) for name, node in graph.nodes.items() if node.op == "conv"}
    if all(node is graph[name] for name, node in folded.items()):
        return graph
    return dce(Graph(graph.name, {**graph.nodes, **folded}, graph.inputs, graph.outputs))


def _fold_pads_into(graph: Graph, conv: Node) -> Node:
    """Return the convolution with the pads of its operand."""
    pads = list(conv.attrs["pads"])
    source = graph[conv.inputs[0]]
    while source.op == "linear" and (place := source.attrs["dim"] - 2) >= 0:
        around = _zeros_around(source.attrs["matrix"])
        if around is None:
            break
        (low, high) = pads[place]
        (more_low, more_high) = around
        pads[place] = low + more_low, high + more_high
        source = graph[source.inputs[0]]
    if source.name == conv.inputs[0]:
        return conv
    return replace(conv, inputs=(source.name, *conv.inputs[1:]), attrs={**conv.attrs, "pads": tuple(pads)})


def _zeros_around(matrix: Sparse) -> tuple[int, int] | None:
    """Return how many zeros a matrix puts before and after its input; None for a matrix that does anything else."""
    (outputs, inputs) = matrix.shape
    count = matrix.row.size
    if count != inputs or (matrix.col != np.arange(inputs)).any() or (matrix.weight != 1).any():
        return None
    low = int(matrix.row[0]) if count else 0
    if (matrix.row == low + matrix.col).all():
        return (low, outputs - inputs - low)
    return None


_PRODUCTS: Final = ("conv", "matmul")
_LARGEST: Final = 65536.0
"""Largest constant that may be folded. A larger term rounds something away on purpose, so it stays a separate op and
comes last."""


def fold_scale_bias(graph: Graph) -> Graph:
    """Fold scales and shifts of channels: `conv(x, w) * s + t` becomes `conv(x, w s) + t`, if the values between have
    no other reader and s and t are constants with one number for each channel of the result."""
    users = graph.users()
    shown = {output.value for output in graph.outputs}
    nodes = dict(graph.nodes)
    for product in graph:
        if product.op not in _PRODUCTS or graph[product.inputs[1]].op != "constant":
            continue
        chain = _channel_ops(graph, users, shown, product)
        if any(node.op == "multiply" for node, _ in chain) or len(chain) > 1:
            _replace_chain(graph, nodes, product, chain)
    return Graph(graph.name, _order_nodes(graph, nodes), graph.inputs, graph.outputs)


def rounds(term: Array) -> bool:
    """Return whether a term is so large that it is added to round digits away; no other term may be added behind it."""
    return not (np.abs(term) <= _LARGEST).all()


def _channel_dim(product: Node) -> int:
    """Return the dimension of a product's result that its channels lie along."""
    if product.op == "conv":
        return 1
    return len(product.shape) - 1


def _numbers_by_channel(operand: Node, product: Node, channel: int) -> Array | None:
    """Return the numbers of a constant operand for the channels of a product, whose dimension `channel` they lie along;
    None for an operand that is computed, that rounding would change, or that differs along other dimensions."""
    if operand.op != "constant" or rounds(operand.value):
        return None
    shape = (1,) * (len(product.shape) - len(operand.shape)) + operand.shape
    if any(size != 1 for dim, size in enumerate(shape) if dim != channel):
        return None
    numbers = operand.value.astype(np.float32).reshape(-1)
    return np.broadcast_to(numbers, (product.shape[channel],))


def _channel_ops(graph: Graph, users: dict[str, list[str]], shown: set[str], product: Node) -> list[tuple[Node, Array]]:
    """Return the ops behind a product that act on each channel by itself, each with its numbers. `users`: the readers
    of each value; `shown`: the values of outputs, behind which no op counts."""
    chain: list[tuple[Node, Array]] = []
    node = product
    place = _channel_dim(product)
    weights = graph[product.inputs[1]]
    if product.op == "matmul" and prod(weights.shape[:-2]) != 1:
        return chain
    while node.name not in shown and len(users[node.name]) == 1:
        user = graph[users[node.name][0]]
        if user.op not in ("multiply", "add") or user.shape != product.shape or len(set(user.inputs)) != 2:
            return chain
        numbers = _numbers_by_channel(graph[other_operand(user, node.name)], product, place)
        if numbers is None:
            return chain
        chain.append((user, numbers))
        node = user
    return chain


def _replace_chain(graph: Graph, nodes: dict[str, Node], product: Node, chain: list[tuple[Node, Array]]) -> None:
    """Put the scaled product, and one addition if there are shifts, in the place of a product and the ops behind it, in
    `nodes`."""
    channels = product.shape[_channel_dim(product)]
    scale = np.ones(channels, np.float32)
    shift = np.zeros(channels, np.float32)
    for node, numbers in chain:
        if node.op == "multiply":
            scale = scale * numbers
            shift = shift * numbers
        else:
            shift = shift + numbers
    weights = graph[product.inputs[1]]
    last = chain[-1][0]
    if product.op == "conv":
        form = (-1, *[1] * (len(weights.shape) - 1))
    else:
        form = (-1,)
    scaled = weights.value.astype(np.float32) * scale.reshape(form)
    for node, _ in chain:
        del nodes[node.name]
    held = f"{product.name}.scaled"
    nodes[held] = replace(weights, name=held, attrs={"value": scaled}, dtype="float32")
    if not any(node.op == "add" for node, _ in chain):
        del nodes[product.name]
        nodes[last.name] = replace(product, name=last.name, inputs=(product.inputs[0], held), source=last.source)
        return
    name = f"{last.name}.{product.op}"  # no longer the product that the model has
    nodes[name] = replace(nodes.pop(product.name), name=name, inputs=(product.inputs[0], held))
    row = shift.reshape(-1, *[1] * (len(product.shape) - 1 - _channel_dim(product)))
    term = f"{last.name}.shift"
    nodes[term] = Node(
        name=term, op="constant", inputs=(), attrs={"value": row}, shape=row.shape, dtype="float32", source=last.source
    )
    nodes[last.name] = Node(
        name=last.name, op="add", inputs=(name, term), attrs={}, shape=last.shape, dtype=last.dtype, source=last.source
    )


def _order_nodes(graph: Graph, nodes: dict[str, Node]) -> dict[str, Node]:
    """Return the nodes in their old order, new constants first, and a new product in front of the addition that reads
    it."""
    new = {name: node for name, node in nodes.items() if name not in graph.nodes}
    ordered = {name: node for name, node in new.items() if node.op == "constant"}
    for name in graph.nodes:
        if name in nodes:
            ordered |= {before: new[before] for before in nodes[name].inputs if before in new}
            ordered[name] = nodes[name]
    return ordered


def gelu(graph: Graph) -> Graph:
    """Replace the pattern `x / sqrt 2 -> erf -> + 1 -> * x -> * 0.5`, with factors in any order, by `gelu(x)`."""
    users = graph.users()
    nodes = dict(graph.nodes)
    for node in graph:
        if node.op == "erf":
            match = _match_gelu(graph, users, node)
        else:
            match = None
        if match is not None:
            last, x = match
            nodes[last] = replace(graph[last], op="gelu", inputs=(x,), attrs={})
    return Graph(graph.name, nodes, graph.inputs, graph.outputs)


def _match_gelu(graph: Graph, users: dict[str, list[str]], node: Node) -> tuple[str, str] | None:
    """Return the name of the last node of the pattern of GELU around the erf `node`, and that of x; None if the nodes
    around it are not the pattern."""
    x = _input_of_scaling(graph, graph[node.inputs[0]])
    incremented = _only_reader(graph, users, node.name, "add")
    if x is None or incremented is None or _single_number(graph, other_operand(incremented, node.name)) != 1.0:
        return None
    first = _only_reader(graph, users, incremented.name, "multiply")
    if first is None:
        return None
    other = other_operand(first, incremented.name)
    if _half_of(graph, other) == x:
        return first.name, x
    last = _only_reader(graph, users, first.name, "multiply")
    if last is None:
        return None
    factors = {other, other_operand(last, first.name)}
    rest = factors - {x}
    if x in factors and len(rest) == 1 and _single_number(graph, rest.pop()) == 0.5:
        return last.name, x
    return None


def _input_of_scaling(graph: Graph, node: Node) -> str | None:
    """Return the name of x if a node computes x / sqrt 2, by a division or a multiplication, else None."""
    if node.op == "divide" and abs((_single_number(graph, node.inputs[1]) or 0) - sqrt(2)) < 1e-4:
        return node.inputs[0]
    if node.op == "multiply":
        for name in node.inputs:
            if abs((_single_number(graph, other_operand(node, name)) or 0) - sqrt(0.5)) < 1e-4:
                return name
    return None


def _half_of(graph: Graph, name: str) -> str | None:
    """Return the name of x if the value `name` is x * 0.5, else None."""
    node = graph[name]
    if node.op == "multiply":
        for factor in node.inputs:
            if _single_number(graph, other_operand(node, factor)) == 0.5:
                return factor
    return None


def _only_reader(graph: Graph, users: dict[str, list[str]], name: str, op: str) -> Node | None:
    """Return the only reader of the value `name` if it is the op `op` and the host does not read the value, else
    None."""
    if len(users[name]) != 1 or any(output.value == name for output in graph.outputs):
        return None
    node = graph[users[name][0]]
    if node.op == op:
        return node
    return None


def _single_number(graph: Graph, name: str) -> float | None:
    """Return the number of a constant with one element, None for another node."""
    node = graph[name]
    if node.op == "constant" and node.value.size == 1:
        return float(node.value.reshape(-1)[0])
    return None


_SMALLEST = {"int8": -128, "uint8": 0}
"""The 8-bit types, and the smallest number of each."""


@dataclass(frozen=True, slots=True)
class _Codes:
    """The encoding of a tensor with a single scale and zero point. The device has 255 numbers, -127 to 127 (OPS 4.3):
    `shift` is added to the model's numbers so that the smallest of their 256 is left out, or the largest if the zero
    point is the smallest."""

    scale: Array
    zero: float
    shift: float


def fuse_quantize_dequantize(graph: Graph) -> Graph:
    """Replace `dequantize(quantize(x, s, z), s, z)` by `from_int8(to_int8(x, 1 / s), s)`, if the integers have no other
    reader, and s and z are one number each."""
    shown = {output.value for output in graph.outputs}
    nodes = dict(graph.nodes)
    new_nodes: dict[str, Node] = {}
    for name, readers in graph.users().items():
        quantize = graph[name]
        if quantize.op != "quantize" or name in shown or not readers:
            continue
        codes = _find_encoding(graph, quantize)
        if codes is None or not all(_is_inverse(graph, quantize, graph[reader]) for reader in readers):
            continue
        zero = codes.zero + codes.shift
        for suffix, value in (("factor", np.asarray(1 / codes.scale, np.float32)), ("scale", codes.scale)):
            new_nodes[f"{name}.{suffix}"] = Node(
                name=f"{name}.{suffix}", op="constant", inputs=(), attrs={"value": value}, shape=()
            )
        nodes[name] = replace(
            quantize,
            name=f"{name}.int8",
            op="to_int8",
            inputs=(quantize.inputs[0], f"{name}.factor"),
            attrs={"zero": zero},
            dtype="int8",
        )
        for reader in readers:
            nodes[reader] = replace(
                graph[reader], op="from_int8", inputs=(f"{name}.int8", f"{name}.scale"), attrs={"zero": zero}
            )
    new_nodes |= {node.name: node for node in nodes.values()}
    return Graph(graph.name, new_nodes, graph.inputs, graph.outputs)


def _find_encoding(graph: Graph, quantize: Node) -> _Codes | None:
    """Return the encoding of a quantise op, None if it is not one scale and one zero point."""
    scale, zero = (graph[name] for name in quantize.inputs[1:])
    if scale.op != "constant" or zero.op != "constant" or scale.value.size != 1 or zero.value.size != 1:
        return None
    least = _SMALLEST[quantize.attrs["type"]]
    point = float(zero.value.reshape(-1)[0])
    step = np.asarray(scale.value, np.float32).reshape(())
    if not (np.isfinite(step) and step > 0):
        return None
    return _Codes(step, point, float(-128 - least + (point == least)))


def _is_inverse(graph: Graph, quantize: Node, reader: Node) -> bool:
    """Return whether a reader dequantises with the same scale and zero point."""
    if reader.op != "dequantize" or reader.inputs[0] != quantize.name or quantize.name in reader.inputs[1:]:
        return False
    return all(
        first == second
        or (
            graph[second].op == "constant"
            and graph[second].value.size == 1
            and float(graph[first].value.reshape(-1)[0]) == float(graph[second].value.reshape(-1)[0])
        )
        for first, second in zip(quantize.inputs[1:], reader.inputs[1:], strict=True)
    )
