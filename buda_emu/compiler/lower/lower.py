"""Lowering of core ops to netlist ops, node by node, program by program."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from buda_emu.compiler.graph.graph import Graph, Node, Output, OwnMemory
from buda_emu.compiler.lower import elementwise, inputs, integers, linear, matmul, moves
from buda_emu.compiler.lower.layout import Layout
from buda_emu.compiler.lower.lowering import RULES, Lowering
from buda_emu.compiler.lower.tiles import TileGraph, TileOp
from buda_emu.compiler.target import Target
from buda_emu.support.errors import InternalError

FAMILIES = (linear, elementwise, inputs, integers, matmul, moves)
"""Modules that declare the rules when they are imported."""


def lower(graph: Graph, target: Target, memory: OwnMemory | None = None) -> TileGraph:
    """Lower a graph of core ops to netlist ops. `memory`: storage of large constants, shared by all forms of a model.
    Raises UnsupportedError for what the device cannot do."""
    low = Lowering(graph, target, memory or OwnMemory())
    nodes = _nodes_by_program(graph)
    program_of = graph.programs()
    used_names = {node.name for node in graph if node.op == "input"}
    for program, program_nodes in nodes.items():
        low.begin(program)
        for node in program_nodes:
            _lower_node(low, node)
        program_outputs = [output for output in graph.outputs if output.program == program]
        _copy_overwritten_values(
            low, program_of, program, {output.state for output in program_outputs if not output.accumulate}
        )
        _emit_results(low, program_outputs, used_names)
    low.out.places = _places_of_values(low)
    return store_early(prune(low.out))


def _places_of_values(low: Lowering) -> dict[str, tuple[str, Layout]]:
    """Return the op and the layout of each value that an op gives unchanged."""
    return {
        name: (value.source, value.layout)
        for name, value in low.values.items()
        if value.rows is None and not value.tms and value.source in low.out.ops
    }


def _nodes_by_program(graph: Graph) -> dict[str, list[Node]]:
    """Return the nodes to lower for each program, by its name. Constants are left out, since they are lowered where
    they are read, and inputs that only embeddings read as indices, which these lower (`index_queue`). A node of no
    program belongs to the first."""
    used = {output.value for output in graph.outputs}
    for node in graph:
        used.update(name for place, name in enumerate(node.inputs) if (node.op, place) != ("embedding", 1))
    program_of = graph.programs()
    nodes: dict[str, list[Node]] = {output.program: [] for output in graph.outputs}
    first = next(iter(nodes), "")
    for node in graph:
        program = program_of.get(node.name, first)
        if program in nodes and node.op != "constant" and (node.op != "input" or node.name in used):
            nodes[program].append(node)
    return nodes


def _ops_reading(tiles: TileGraph, source: str) -> Iterator[TileOp]:
    """Yield the ops that read the queue, or the result of the op, of the name `source`."""
    return (op for op in tiles.ops.values() if any(use.source == source for use in op.uses))


def store_early(tiles: TileGraph) -> TileGraph:
    """Move ops that write caches to the place where nothing reads the cache any more, instead of the end, so that the
    values need not lie in DRAM until then. The order of all other ops, and of a training, stays. The graph is changed
    and returned."""
    if tiles.trains:
        return tiles
    place = {name: number for number, name in enumerate(tiles.ops)}
    at = dict[str, float](place)
    for store in tiles.stores.values():
        op = tiles.ops[store.op]
        before = [place[use.source] for use in op.uses if use.source in place]
        before += [place[other.name] for other in _ops_reading(tiles, store.queue) if other.program == op.program]
        if before and not any(_ops_reading(tiles, op.name)):
            at[op.name] = max(before) + 0.5
    tiles.ops = {name: tiles.ops[name] for name in sorted(tiles.ops, key=at.__getitem__)}
    return tiles


def _copy_overwritten_values(
    low: Lowering, program_of: Mapping[str, str], program: str, stored: Collection[str]
) -> None:
    """Copy values that a later program reads from a state that this program overwrites: the ram will hold the new
    content by then, and after several rounds the last. `program_of`: the programs of nodes; `stored`: labels of the
    states that this program writes."""
    overwritten = {state.queue for state in low.out.states.values() if state.label in stored}
    for node in low.graph if overwritten else ():
        for name in node.inputs if program_of.get(node.name, program) != program else ():
            value = low.values.get(name)
            if value is not None and value.source in overwritten:
                low.values[name] = low.copy(low.real(value), suffix="before")


def _lower_node(low: Lowering, node: Node) -> None:
    """Lower one node by the rule of its op and enter the result in `low.values`. Raises InternalError for an op without
    a rule and a result of another shape, UnsupportedError for what the device cannot do."""
    if node.op not in RULES:
        raise InternalError(f"nothing lowers {node.op}")
    low.node = node
    low.values[node.name] = RULES[node.op](low, node)
    elementwise.mark_undefined_results(low, node)
    if low.values[node.name].layout.shape != node.shape:
        raise InternalError(f"{node.name}: {node.op} gives {low.values[node.name].layout.shape}, not {node.shape}")


def _emit_results(low: Lowering, program_outputs: Sequence[Output], used_names: set[str]) -> None:
    """Emit the outputs of a program, and then the writes of its states: all that reads a state stands before what
    writes it."""
    for output in program_outputs:
        if not output.state:
            inputs.emit_output(low, output, used_names)
    for output in program_outputs:
        if output.state:
            inputs.emit_store(low, output)


def _needed_names(tiles: TileGraph) -> set[str]:
    """Return the names of the ops and operands that an output or store depends on."""
    needed = {output.op for output in tiles.outputs.values()}
    needed |= {store.op for store in tiles.stores.values()}
    for op in reversed(tiles.ops.values()):
        if op.name in needed:
            needed |= {use.source for use in op.uses}
    return needed


def prune(tiles: TileGraph) -> TileGraph:
    """Remove ops, constants, inputs and states that no output or store depends on, and return the graph, which is
    changed."""
    needed = _needed_names(tiles)
    tiles.ops = {name: op for name, op in tiles.ops.items() if name in needed}
    tiles.constants = {name: entry for name, entry in tiles.constants.items() if name in needed}
    tiles.inputs = {name: entry for name, entry in tiles.inputs.items() if name in needed}
    tiles.states = {name: entry for name, entry in tiles.states.items() if name in needed or name in tiles.stores}
    return tiles
