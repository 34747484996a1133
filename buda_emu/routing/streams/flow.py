"""How many tiles move through each node of a subgraph in one iteration, and how many in one phase of a stream.

An epoch's tiles are sent in iterations, which the firmware starts, and an iteration in phases of at most
`TILES_A_PHASE` tiles, which the hardware goes through by itself.
"""

from collections.abc import Callable, Iterable, Sequence
from math import isqrt, lcm

from buda_emu.routing.streams.connected import refused
from buda_emu.routing.streams.limits import PHASES_AN_ITERATION, TILES_A_PHASE
from buda_emu.routing.streams.order import in_order
from buda_emu.routing.streams.rational import Kind, Node


def measure(nodes: Iterable[Node]) -> None:
    """Fill in `iterations`, `tiles`, `subtree` and `max_tiles` of all nodes of a subgraph."""
    for component in _components(nodes):
        roots = [node for node in component if node.input is None]
        if not roots:
            raise refused("pipes form a circle")
        roots.sort(key=is_padding)
        order = in_order(roots, readers)
        _note_single_source_paths(order)
        _count_iterations([node for node in component if not readers(node)], roots, order)
        for node in order:
            node.tiles = _tiles(node)
        for node in reversed(order):
            node.subtree = lcm(*(reader.subtree for reader in readers(node))) if readers(node) else _granularity(node)
        seen = set[Node]()
        for root in roots:
            for node in in_order([root], readers, seen):
                node.max_tiles = _max_tiles(node, root.buffer.buffer.tiles_per_input)


def readers(node: Node) -> list[Node]:
    """What the pipes that read `node` fill."""
    outputs = node.outputs
    if len(outputs) == 1 and outputs[0].beside is not node:
        return outputs[0].outputs
    return [output for pipe in outputs if pipe.beside is not node for output in pipe.outputs]


def _components(nodes: Iterable[Node]) -> Iterable[list[Node]]:
    seen = set[Node]()
    for start in nodes:
        if start in seen:
            continue
        seen.add(start)
        component, ahead = [start], [start]
        while ahead:
            node = ahead.pop()
            sources = node.input.sources if node.input is not None else []
            for near in (*sources, *readers(node)):
                if near not in seen:
                    seen.add(near)
                    component.append(near)
                    ahead.append(near)
        if len(component) > 1:
            yield component


def is_padding(node: Node) -> bool:
    """Padding in DRAM: such a root comes after the others."""
    return not node.virtual and node.buffer.dram_input and node.buffer.buffer.is_padding


def _is_scattered(node: Node) -> bool:
    return not node.virtual and node.input is None and not _is_intermediate(node) and node.buffer.buffer.replicate > 0


def _is_intermediate(node: Node) -> bool:
    return not node.virtual and node.buffer.intermediate


def _is_dram_input(node: Node) -> bool:
    return not node.virtual and node.input is None and node.buffer.dram_input


def _granularity(node: Node) -> int:
    """Tiles that a kernel clears at once, where the node is its operand."""
    operand = None if node.virtual else node.kernel_operand
    return 1 if operand is None else max(1, operand.buffer.tile_clear_granularity)


def _note_single_source_paths(order: Sequence[Node]) -> None:
    """Note for each node of `order` whether one source alone, whole and once, feeds it and all after it."""
    for node in order:
        whole = not _is_scattered(node) and (node.input is None or node.input.inputs == 1)
        node.on_single_path = whole and (node.input is None or node.input.sources[0].on_single_path)
    for node in reversed(order):
        node.on_single_path = node.on_single_path and all(reader.on_single_path for reader in readers(node))


def _count_iterations(leaves: list[Node], roots: list[Node], order: list[Node]) -> None:
    if all(map(_takes_epoch_at_once, leaves)):
        _each(order, lambda _: 1)
    elif all(leaf.on_single_path for leaf in leaves):
        count = _single_source_iterations(roots[0], leaves)
        _each(order, lambda _: count)
    else:
        _each(order, _iterations)


def _each(order: list[Node], count: Callable[[Node], int]) -> None:
    for node in order:
        node.iterations = count(node)
        if node.iterations < 1:
            raise refused(f"buffer {node.of.id if node.of else '?'}: its tiles are not a whole number of iterations")


def _takes_epoch_at_once(leaf: Node) -> bool:
    untilized = not leaf.virtual and leaf.buffer.in_dram and leaf.buffer.buffer.untilized_output
    return untilized or _is_intermediate(leaf)


def _iterations(node: Node) -> int:
    pipe = node.input
    if pipe is None:
        buffer = node.buffer.buffer
        return buffer.epoch_tiles // max(1, buffer.scatter_gather_num_tiles)
    return pipe.sources[0].iterations * pipe.repeat // max(1, pipe.serial_outputs - pipe.padded_outputs)


def _single_source_iterations(root: Node, leaves: list[Node]) -> int:
    tiles = root.buffer.buffer.epoch_tiles
    if tiles // TILES_A_PHASE <= PHASES_AN_ITERATION:
        return 1
    ideal = tiles // (TILES_A_PHASE * PHASES_AN_ITERATION)
    at_once = lcm(*(_at_once(root, leaf) for leaf in leaves))

    if tiles % at_once:
        return tiles
    fitting = sorted(_divisors(tiles // at_once))
    fewer = [one for one in fitting if 1 < one <= ideal]
    more = [one for one in fitting if ideal < one < tiles]
    return fewer[-1] if fewer else more[0] if more else tiles


def _divisors(number: int) -> set[int]:
    low = [one for one in range(1, isqrt(number) + 1) if number % one == 0]
    return {*low, *(number // one for one in low)}


def _at_once(root: Node, leaf: Node) -> int:
    if not leaf.virtual and leaf.buffer.in_dram:
        return max(1, root.buffer.buffer.scatter_gather_num_tiles) if not _is_intermediate(root) else 1
    return _granularity(leaf)


def _tiles(node: Node) -> int:
    pipe = node.input
    if pipe is None:
        return node.buffer.buffer.epoch_tiles // node.iterations
    groups = len(pipe.sources) if pipe.kind is Kind.UNION else 1
    return pipe.tiles_of_inputs() // groups


def _max_tiles(node: Node, tiles_per_input: int) -> int:
    pipe = node.input
    if pipe is not None and pipe.inputs == 1 and not _is_scattered(pipe.sources[0]):
        return pipe.sources[0].max_tiles
    divisor = node.buffer.buffer.size_tiles if pipe is None and not _is_dram_input(node) else 1
    divisor = max(1, divisor)
    if node.tiles > TILES_A_PHASE:
        divisor = lcm(divisor, node.subtree)
    if 0 < tiles_per_input <= TILES_A_PHASE and (both := lcm(divisor, tiles_per_input)) <= TILES_A_PHASE:
        divisor = both
    return TILES_A_PHASE // divisor * divisor
