"""What a netlist leaves open and loading works out: which chips, temporal graphs, vector modes, pointer steps."""

from collections.abc import Mapping

from buda_emu.netlist.model import Execute, Graph, Instruction, Op, Program, Queue, QueueSettings
from buda_emu.netlist.sourced import evolve
from buda_emu.spec.blocking import FULL_TILE
from buda_emu.spec.ops import OP_TYPES

TileDim = tuple[int, int]
INVALID_TILE: TileDim = (0, 0)
# NETLIST 1.5: what a transpose TM makes of a tile; any other tile becomes invalid.
_TRANSPOSED: Mapping[TileDim, TileDim] = {(32, 32): (32, 32), (16, 32): (32, 16), (32, 16): (16, 32)}
_QUEUE_AUTOINC = {"rd_ptr_autoinc": "1", "global_rdptr_autoinc": "0", "global_wrptr_autoinc": "1"}
_RAM_AUTOINC = {"rd_ptr_autoinc": "0", "global_rdptr_autoinc": "0", "global_wrptr_autoinc": "0"}


def derive_graphs(graphs: Mapping[str, Graph], queues: Mapping[str, Queue]) -> dict[str, Graph]:
    """The graphs with the derived properties of their ops filled in."""
    return {name: _derive_graph(graph, queues) for name, graph in graphs.items()}


def _derive_graph(graph: Graph, queues: Mapping[str, Queue]) -> Graph:
    local = {op.name: op for op in graph.ops}
    return evolve(graph, ops=tuple(_derive_op(op, local, queues) for op in graph.ops))


def _derive_op(op: Op, local: Mapping[str, Op], queues: Mapping[str, Queue]) -> Op:
    """`local` are the ops of the same graph: a producer in another graph counts as 32x32."""
    tiles: list[TileDim] = []
    transposes = 0
    for index, name in enumerate(op.inputs):
        producer = queues.get(name) or local.get(name)
        tile = producer.blocking.tile_dim if producer is not None else FULL_TILE
        tms = op.input_tms[index]
        if tms:
            flips = sum(tm.name == "transpose" for tm in tms)
            transposes += flips
            for _ in range(flips):
                tile = _TRANSPOSED.get(tile, INVALID_TILE)
        tiles.append(tile)
    vector = op.attributes.vector or _default_vector(op.type, tiles[0] if tiles else FULL_TILE)
    return evolve(op, input_tile_dims=tuple(tiles), vector=vector, transpose=transposes % 2 == 1)


def _default_vector(op_type: str, tile: TileDim) -> str:
    """The region that an sfpu op covers: it follows the tile of input 0 (NETLIST 1.5, 11.1 A2); rc for all others."""
    known = OP_TYPES.get(op_type)
    if known is None or not known.has("vector unit") or tile == (32, 32):
        return "rc"
    return "c" if tile == (32, 16) else "r"


def derive_queues(queues: Mapping[str, Queue], graphs: Mapping[str, Graph]) -> dict[str, Queue]:
    """The queues with their input_count (NETLIST 1.3 "Derived per queue")."""
    consumed: dict[str, int] = {}  # the last graph that reads it wins
    produced: dict[str, int] = {}
    for graph in graphs.values():
        for op in graph.ops:
            produced[op.name] = graph.input_count
            for name in op.inputs:
                consumed[name] = graph.input_count
    result: dict[str, Queue] = {}
    for name, queue in queues.items():
        if queue.is_ram and queue.entries == 1:
            count = 1
        elif name in consumed:
            count = consumed[name]
        else:
            count = -1 if queue.host_fed else produced.get(queue.input, -1)
        result[name] = queue if count == queue.input_count else evolve(queue, input_count=count)
    return result


def derive_programs(programs: Mapping[str, Program], queues: Mapping[str, Queue]) -> dict[str, Program]:
    """The programs with the autoincrements that their queue settings do not write."""
    return {name: evolve(program, instructions=_instructions(program, queues)) for name, program in programs.items()}


def _instructions(program: Program, queues: Mapping[str, Queue]) -> tuple[Instruction, ...]:
    return tuple(
        evolve(instruction, queue_settings=tuple(_settings(setting, queues) for setting in instruction.queue_settings))
        if isinstance(instruction, Execute)
        else instruction
        for instruction in program.instructions
    )


def _settings(setting: QueueSettings, queues: Mapping[str, Queue]) -> QueueSettings:
    defaults = _autoincrements(setting, queues)
    missing = {name: value for name, value in defaults.items() if not getattr(setting, name)}
    return evolve(setting, **missing) if missing else setting


def without_derived(setting: QueueSettings, queues: Mapping[str, Queue]) -> QueueSettings:
    """The setting without the autoincrements that would be derived anyway."""
    defaults = _autoincrements(setting, queues)
    same = {name: "" for name, value in defaults.items() if getattr(setting, name) == value}
    return evolve(setting, **same) if same else setting


def _autoincrements(setting: QueueSettings, queues: Mapping[str, Queue]) -> Mapping[str, str]:
    """Those of its queue; none where there is no such queue."""
    queue = queues.get(setting.queue)
    return {} if queue is None else _RAM_AUTOINC if queue.is_ram else _QUEUE_AUTOINC
