"""Trace of one tile through the units of a core, for an op of the epoch in which a session stands."""

from buda_emu.app.debugger.inside_op import UnitStep, trace_tile
from buda_emu.app.debugger.session import Session
from buda_emu.app.debugger.tensors import queue_entry, shape_of
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.tensix.registers import core_of
from buda_emu.emulator.runtime.graph.plan import build_plan
from buda_emu.emulator.runtime.graph.steps import Run
from buda_emu.netlist.model import Op, Queue
from buda_emu.support.errors import HostError


def trace_inside_op(run: Session, name: str, tile: tuple[int, int, int]) -> tuple[list[UnitStep], bool | None]:
    """Return the unit steps of one tile (t, row, column) of an op's result in the running input, and whether the tile
    that they pack equals that of the run bit for bit (None where the op has not run yet). Raises HostError,
    UnsupportedError."""
    op = run.names.op(name)
    engine = run.engine
    if run.precision != "device":
        raise HostError("the steps inside an op are those of precision device: debug --precision device")
    if op.graph not in engine.graphs:
        raise HostError(f"op {name} is not in the epoch that runs: break op {name}, continue")
    topo = engine.topology(op.graph)
    labels = {queue.name: queue.df for queue in run.netlist.queues.values()}
    plan = build_plan(run.netlist, topo, labels, True, core_of(run.netlist.arch_name))
    step = next(candidate for candidate in plan.steps if isinstance(candidate, Run) and candidate.op.name == name)
    operands = [_operand_bits(run, source) for source in op.inputs]
    number = _tile_number(op, plan.tiles[step.value], tile)
    steps, packed = engine.call(lambda: trace_tile(step, operands, number))
    result = engine.values.get(name)
    if result is None:
        return steps, None
    return steps, packed.values()[0].tobytes() == result[0, number].tobytes()


def _tile_number(op: Op, tiles: int, tile: tuple[int, int, int]) -> int:
    """Return the index of a tile (t, row, column) in an op's result of so many tiles. Raises HostError for one that
    does not exist."""
    t, rows, columns = shape_of(op, tiles)
    at, row, column = tile
    if not (0 <= at < t and 0 <= row < rows and 0 <= column < columns):
        raise HostError(f"op {op.name} gives t {t}, {rows} x {columns} tiles: no tile {at},{row},{column}")
    return (at * rows + row) * columns + column


def _operand_bits(run: Session, name: str) -> Bits:
    """Return the operand that the op reads, as the machine holds it: Bits [1, tiles]."""
    values = run.engine.values.get(name)
    source: object = run.netlist.queues.get(name)
    if values is None and isinstance(source, Queue) and not source.host_fed:  # what the epoch has just pushed
        values = run.engine.values.get(source.input)
    if values is not None:
        df = source.df if isinstance(source, Queue) else run.names.op(name).out_df
        return Bits.encode(df, values)
    if isinstance(source, Queue):
        entry = run.engine.call(lambda: queue_entry(run.engine, source, None))
        assert entry.bits is not None
        return entry.bits[None]
    raise HostError(f"{name}, which the op reads, has not run in this input yet: go on to the op first")
