"""The tiles that move through the nodes of a subgraph, and the phases in which they do."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from math import isqrt, lcm
from typing import NamedTuple

from buda_emu.performance.routing.streams.connected import invalid_graph
from buda_emu.performance.routing.streams.model import MOST_PHASES, PHASES_AN_ITERATION, TILES_A_PHASE
from buda_emu.performance.routing.streams.rational import Kind, Node, Simple, Walk, in_order, run_walk
from buda_emu.support.errors import UnsupportedError


def measure(nodes: Iterable[Node]) -> None:
    """Set `iterations`, `tiles`, `subtree` and `max_tiles` of all nodes of a subgraph, which its phases are computed
    from. Raises RefusedError for pipes in a circle, and for tiles that are no whole number of iterations."""
    for component in _components(nodes):
        roots = [node for node in component if node.input is None]
        if not roots:
            raise invalid_graph("pipes form a circle")
        roots.sort(key=is_padding)
        order = in_order(roots, readers)
        _note_single_source_paths(order)
        _count_iterations([node for node in component if not readers(node)], roots, order)
        _measure_in_order(order)
        seen = set[Node]()
        for root in roots:
            for node in in_order([root], readers, seen):
                node.max_tiles = _max_tiles(node, root.buffer.buffer.tiles_per_input)


def _measure_in_order(order: Sequence[Node]) -> None:
    """Compute `tiles` from the roots on, and `subtree` from the leaves back."""
    for node in order:
        node.tiles = _tiles_per_iteration(node)
    for node in reversed(order):
        if readers(node):
            node.subtree = lcm(*(reader.subtree for reader in readers(node)))
        else:
            node.subtree = _tiles_freed_at_once(node)


def readers(node: Node) -> list[Node]:
    """Return the nodes that are filled by the pipes that read `node`."""
    outputs = node.outputs
    if len(outputs) == 1 and outputs[0].beside is not node:
        return outputs[0].outputs
    return list(chain.from_iterable(pipe.outputs for pipe in outputs if pipe.beside is not node))


def _components(nodes: Iterable[Node]) -> Iterable[list[Node]]:
    """Yield the lists of nodes that pipes connect, without nodes that stand alone."""
    seen = set[Node]()
    for start in nodes:
        if start in seen:
            continue
        seen.add(start)
        component = [start]
        ahead = [start]
        while ahead:
            node = ahead.pop()
            if node.input is not None:
                sources = node.input.sources
            else:
                sources = []
            for near in (*sources, *readers(node)):
                if near not in seen:
                    seen.add(near)
                    component.append(near)
                    ahead.append(near)
        if len(component) > 1:
            yield component


def is_padding(node: Node) -> bool:
    """Return whether the node is a buffer of padding in DRAM."""
    return not node.virtual and node.buffer.dram_input and node.buffer.buffer.is_padding


def _has_pieces(node: Node) -> bool:
    """Return whether a node is a buffer that no pipe fills and that is read in pieces; False for intermediate
    buffers."""
    return not node.virtual and node.input is None and not _is_intermediate(node) and node.buffer.buffer.replicate > 0


def _is_intermediate(node: Node) -> bool:
    """Return whether a node is an intermediate buffer."""
    return not node.virtual and node.buffer.intermediate


def _is_dram_input(node: Node) -> bool:
    """Return whether a node is a buffer that no pipe fills and that is read from DRAM."""
    return not node.virtual and node.input is None and node.buffer.dram_input


def _tiles_freed_at_once(node: Node) -> int:
    """Return the tiles that a kernel frees at once if the node is its operand, else 1."""
    if node.virtual:
        operand = None
    else:
        operand = node.kernel_operand
    if operand is None:
        return 1
    return max(1, operand.buffer.tile_clear_granularity)


def _note_single_source_paths(order: Sequence[Node]) -> None:
    """Set `on_single_path` of each node: whether each pipe before and after it reads a single input that is not in
    pieces. `order` has nodes before their readers."""
    for node in order:
        single = not _has_pieces(node) and (node.input is None or node.input.inputs == 1)
        node.on_single_path = single and (node.input is None or node.input.sources[0].on_single_path)
    for node in reversed(order):
        node.on_single_path = node.on_single_path and all(reader.on_single_path for reader in readers(node))


def _count_iterations(leaves: list[Node], roots: list[Node], order: list[Node]) -> None:
    """Set the iterations of all nodes: one if all leaves take an epoch at once, a common number if every leaf has a
    single source, else node by node."""
    if all(map(_takes_epoch_at_once, leaves)):
        _set_iterations(order, lambda _: 1)
    elif all(leaf.on_single_path for leaf in leaves):
        count = _single_source_iterations(roots[0], leaves)
        _set_iterations(order, lambda _: count)
    else:
        _set_iterations(order, _iterations)


def _set_iterations(order: list[Node], count: Callable[[Node], int]) -> None:
    """Set the iterations of each node, in order, to what `count` returns for it. Raises RefusedError if that is less
    than one."""
    for node in order:
        node.iterations = count(node)
        if node.iterations < 1:
            raise invalid_graph(
                f"buffer {node.of.id if node.of else '?'}: its tiles are not a whole number of iterations"
            )


def _takes_epoch_at_once(leaf: Node) -> bool:
    """Return whether a leaf takes all tiles of an epoch in one iteration: an untilized queue or an intermediate
    buffer."""
    untilized = not leaf.virtual and leaf.buffer.in_dram and leaf.buffer.buffer.untilized_output
    return untilized or _is_intermediate(leaf)


def _iterations(node: Node) -> int:
    """Return the iterations of a node: of a source its tiles in an epoch by the tiles of a piece; else those of the
    pipe's first source times its repeats, shared by the branches of a serial fork that have no padding."""
    pipe = node.input
    if pipe is None:
        buffer = node.buffer.buffer
        return buffer.epoch_tiles // max(1, buffer.scatter_gather_num_tiles)
    return pipe.sources[0].iterations * pipe.repeat // max(1, pipe.serial_outputs - pipe.padded_outputs)


def _single_source_iterations(root: Node, leaves: list[Node]) -> int:
    """Return the iterations of a path with one source, in each of which all leaves take whole pieces: 1 for few tiles;
    the greatest number with which an iteration still has PHASES_AN_ITERATION full phases, else the next greater one; as
    many as tiles if no number divides them."""
    tiles = root.buffer.buffer.epoch_tiles
    if tiles // TILES_A_PHASE <= PHASES_AN_ITERATION:
        return 1
    ideal = tiles // (TILES_A_PHASE * PHASES_AN_ITERATION)
    at_once = lcm(*(_iteration_unit(root, leaf) for leaf in leaves))

    if tiles % at_once:
        return tiles
    fitting = sorted(_divisors(tiles // at_once))
    smaller = [count for count in fitting if 1 < count <= ideal]
    greater = [count for count in fitting if ideal < count < tiles]
    if smaller:
        return smaller[-1]
    if greater:
        return greater[0]
    return tiles


def _divisors(number: int) -> set[int]:
    """Return all divisors of a number."""
    low = [divisor for divisor in range(1, isqrt(number) + 1) if number % divisor == 0]
    return {*low, *(number // divisor for divisor in low)}


def _iteration_unit(root: Node, leaf: Node) -> int:
    """Return the tiles of which an iteration must be a multiple for a leaf: for a queue a piece of the source, else
    what the kernel frees at once."""
    if not leaf.virtual and leaf.buffer.in_dram:
        if not _is_intermediate(root):
            return max(1, root.buffer.buffer.scatter_gather_num_tiles)
        return 1
    return _tiles_freed_at_once(leaf)


def _tiles_per_iteration(node: Node) -> int:
    """Return the tiles that pass a node in one iteration; its sources must be measured."""
    pipe = node.input
    if pipe is None:
        return node.buffer.buffer.epoch_tiles // node.iterations
    if pipe.kind is Kind.UNION:
        groups = len(pipe.sources)
    else:
        groups = 1
    return pipe.tiles_of_inputs() // groups


def _max_tiles(node: Node, tiles_per_input: int) -> int:
    """Return the most tiles of a phase at a node: a multiple of whole buffers and, if possible, of `tiles_per_input`,
    those of the source at the begin of its path; 0 if no phase holds them. The nodes before it must be measured."""
    pipe = node.input
    if pipe is not None and pipe.inputs == 1 and not _has_pieces(pipe.sources[0]):
        return pipe.sources[0].max_tiles
    if pipe is None and not _is_dram_input(node):
        divisor = node.buffer.buffer.size_tiles
    else:
        divisor = 1
    divisor = max(1, divisor)
    if node.tiles > TILES_A_PHASE:
        divisor = lcm(divisor, node.subtree)
    if 0 < tiles_per_input <= TILES_A_PHASE and (common := lcm(divisor, tiles_per_input)) <= TILES_A_PHASE:
        divisor = common
    return TILES_A_PHASE // divisor * divisor


_FORKS = {Kind.FORK, Kind.PRE_TM_FORK, Kind.DRAM_FORK}


class Phase(NamedTuple):
    """A phase: its number `begin` in the order of an iteration, and the `tiles` that move in it."""

    begin: int
    tiles: int


class Flow:
    """The phases in which one node sends (`sends`, by receiver) and receives (`groups`, for each set of inputs that a
    union takes in turn)."""

    __slots__ = ("done", "groups", "inputs", "paths", "per_group", "sends", "sets", "span")

    def __init__(self, node: Node) -> None:
        pipe = node.input
        self.inputs: list[tuple[Node, int]] = []
        self.sets = 1
        if pipe is not None:
            sources = pipe.sources
            if pipe.entries is None:
                self.inputs = [(source, 0) for source in sources]
            else:
                self.inputs = [(sources[index], offset) for index, offset in pipe.entries]
            if pipe.kind is Kind.UNION:
                self.sets = len(sources)
            else:
                self.sets = 1
        self.per_group = len(self.inputs) // self.sets
        self.paths = self.sets
        self.done = 0
        self.span = 0
        self.groups: dict[int, list[Phase]] = {}
        self.sends: dict[Node, list[Phase]] = {}


class Phases:
    """The phases in one iteration of all nodes of a subgraph whose tiles `measure` has set. The constructor raises
    RefusedError if a phase holds no whole input, UnsupportedError for too many phases."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._flows: dict[Node, Flow] = {}
        self._subgraph: dict[Node, int] = {}
        self._orders: dict[int, list[dict[Node, None]]] = {}
        self._number = 0
        roots = [node for node in nodes if node.input is None and readers(node)]
        roots.sort(key=is_padding)
        for root in roots:
            self._make_flows(root)
        counted = set[Node]()
        for node in self._flows:
            run_walk(self._count_paths(node, counted))
        for root in roots:
            run_walk(self._find_subgraphs(root))
        visits: dict[Node, int] = {}
        for root in roots:
            run_walk(self._find_leaves(root, visits, 0))
        for order in self._orders.values():
            self._schedule_turns(order)
        for order in self._orders.values():
            self._copy_to_neighbours(order)

    def sending_phases(self, node: Node, pipe: Simple) -> list[Phase]:
        """Return the phases in which `node` sends into `pipe`."""
        return self._flows[node].sends[pipe.outputs[-1]]

    def receiving_phases(self, node: Node) -> list[Phase]:
        """Return the phases in which `node` receives tiles."""
        groups = self._flows[node].groups
        return list(chain.from_iterable(groups[group] for group in sorted(groups)))

    def _make_flows(self, node: Node) -> None:
        """Make the empty `Flow` of a node and of all nodes after it."""
        ahead = [node]
        while ahead:
            node_ahead = ahead.pop()
            if node_ahead not in self._flows:
                self._flows[node_ahead] = Flow(node_ahead)
                ahead += readers(node_ahead)

    def _count_paths(self, node: Node, seen: set[Node]) -> Walk[int]:
        """Set and return `paths` of a node: how often the part after it is walked, once for each set of inputs of
        unions before it."""
        flow = self._flows[node]
        if node not in seen and node.input is not None:
            seen.add(node)
            for source in node.input.sources:
                flow.paths = max(flow.paths, (yield self._count_paths(source, seen)))
        return flow.paths

    def _find_subgraphs(self, node: Node) -> Walk[None]:
        """Number a node and all after it: nodes after each root, and after each branch of a fork, get a number of their
        own."""
        if node in self._subgraph:
            return
        number = self._subgraph[node] = self._number
        pipe = node.input
        if pipe is None:
            turns = 1
        else:
            turns = pipe.serial_outputs
        order = self._orders.setdefault(number, [])
        order += [{} for _ in range(turns - len(order))]
        for reader in readers(node):
            yield self._find_subgraphs(reader)
        if pipe is None or pipe.kind in _FORKS:
            self._number += 1

    def _find_leaves(self, node: Node, visits: dict[Node, int], turn: int) -> Walk[None]:
        """Group the leaves after `node` by the turn in which a serial fork feeds them. `visits` counts visits of each
        node, at most one for each of its paths; `turn` is that of the node before this one."""
        if visits.get(node, 0) >= self._flows[node].paths:
            return
        visits[node] = visits.get(node, 0) + 1
        behind = readers(node)
        if not behind:
            self._orders[self._subgraph[node]][turn][node] = None
            return
        if node.turn is not None:
            turn = node.turn
        for reader in behind:
            yield self._find_leaves(reader, visits, turn)

    def _schedule_turns(self, order: list[dict[Node, None]]) -> None:
        """Compute the phases of the first leaf of each turn; `_copy_to_neighbours` gives its neighbours the same.
        `order` has the leaves of each turn."""
        begin = 0
        for group in order:
            if group:
                begin += run_walk(self._move_tiles(next(iter(group)), None, begin))

    def _copy_to_neighbours(self, order: list[dict[Node, None]]) -> None:
        """Give the other leaves of each turn the phases of its first leaf. `order` has the leaves of each turn."""
        done = set[Node]()
        for group in order:
            first, *others = group or (None,)
            if first is None or first in done or first.input is None:
                continue
            done.add(first)
            for other in others:
                self._flows[other].groups = self._flows[first].groups
                for source in first.input.sources:
                    self._flows[source].sends[other] = self._flows[source].sends[first]

    def _move_tiles(self, node: Node, to: Node | None, begin: int) -> Walk[int]:
        """Receive all tiles that `node` takes in this turn, from phase number `begin` on, and send them on to `to`
        unless it is None; return the number of phases."""
        flow = self._flows[node]
        if node.input is None:
            assert to is not None
            return self._send_from_root(node, to, begin)
        ahead = flow.done < flow.paths
        if ahead:
            flow.span = yield self._receive(node, flow, begin)
        if to is not None:
            self._send(node, flow, to, begin)
        if ahead:
            flow.done += 1
        return flow.span

    def _send_from_root(self, node: Node, to: Node, begin: int) -> int:
        """Note that a source buffer sends one iteration's tiles to `to`, from phase number `begin` on; return the
        number of phases. Raises RefusedError if a phase holds no whole input, UnsupportedError for too many phases."""
        if node.max_tiles < 1:
            raise invalid_graph(f"buffer {node.buffer.id} can send no phase of whole inputs")
        sends = self._flows[node].sends.setdefault(to, [])
        full_phases, last_tiles = divmod(node.tiles, node.max_tiles)
        if full_phases > MOST_PHASES:
            raise UnsupportedError(
                f"buffer {node.buffer.id}: {full_phases:,} phases in an iteration: no more than {MOST_PHASES:,} "
                "are followed"
            )
        sizes = [node.max_tiles] * full_phases + ([last_tiles] if last_tiles else [])
        sends += [Phase(begin + number, tiles) for number, tiles in enumerate(sizes)]
        return len(sizes)

    def _receive(self, node: Node, flow: Flow, begin: int) -> Walk[int]:
        """Note that a node receives what its sources send in this turn, from phase number `begin` on, with adjacent
        pieces of one source in common phases; return the number of phases."""
        received = flow.groups.setdefault(flow.done, [])
        at = begin
        max_tiles = node.max_tiles
        previous: Node | None = None
        offset = 0
        first = flow.done % flow.sets * flow.per_group
        for source, source_offset in flow.inputs[first : first + flow.per_group]:
            sends = self._flows[source].sends.setdefault(node, [])
            old_count = len(sends)
            goes_on = source is previous and source_offset == offset + source.tiles
            if not (goes_on and self._extend_last_phase(source, sends, received, max_tiles)):
                at += yield self._move_tiles(source, node, at)
            if source is not previous:
                received += sends[old_count:]
            elif received[-1].tiles + source.tiles <= max_tiles:
                received[-1] = Phase(received[-1].begin, received[-1].tiles + source.tiles)
            else:
                received.append(Phase(at - 1, source.tiles))
            previous = source
            offset = source_offset
        return at - begin

    @staticmethod
    def _extend_last_phase(source: Node, sends: list[Phase], received: list[Phase], max_tiles: int) -> bool:
        """Add the next tiles of `source` to the last of its phases in `sends` if they fit it and the receiver's last
        phase (in `received`, of at most `max_tiles`), and return whether they did. Never for reads from DRAM."""
        reads = source.input is None and not source.virtual and source.buffer.dram_input
        if reads or (source.input is not None and source.input.kind is Kind.DRAM_FORK):
            return False  # reads from DRAM are merged later
        if received and received[-1].tiles + source.tiles > max_tiles:
            return False
        if sends[-1].tiles + source.tiles > source.max_tiles:
            return False
        sends[-1] = Phase(sends[-1].begin, sends[-1].tiles + source.tiles)
        return True

    def _send(self, node: Node, flow: Flow, to: Node, begin: int) -> None:
        """Note that a node sends what it received in this turn to node `to`, in phases of at most its `max_tiles`
        tiles, from phase number `begin` on."""
        sends = flow.sends.setdefault(to, [])
        tiles = 0
        at = begin
        for phase in flow.groups[flow.done % flow.sets]:
            if tiles + phase.tiles > node.max_tiles:
                sends.append(Phase(at, tiles))
                tiles = phase.tiles
                at = phase.begin
            else:
                tiles += phase.tiles
        if tiles:
            sends.append(Phase(at, tiles))
