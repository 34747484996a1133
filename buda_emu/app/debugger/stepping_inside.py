"""Stepping inside the op that is about to run, or has run, at the moment at which a session stands."""

from buda_emu.app.debugger.inside_op import UnitStep, steps_of
from buda_emu.app.debugger.session import Session
from buda_emu.app.debugger.tensors import of_queue
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.tensix.registers import core_of
from buda_emu.emulator.runtime.graph.plan import build_plan
from buda_emu.emulator.runtime.graph.steps import Run
from buda_emu.netlist.model import Queue
from buda_emu.support.errors import HostError


def inside(run: Session, name: str, tile: tuple[int, int, int]) -> tuple[list[UnitStep], bool | None]:
    """The steps of one tile (t, row, column) of an op's result in the running input, and whether what they pack is what
    the run gave, bit for bit; None where the op has not run yet. Raises HostError, UnsupportedError."""
    op = run.names.op(name)
    engine = run.engine
    if run.precision != "device":
        raise HostError("the steps inside an op are those of precision device: debug --precision device")
    if op.graph not in engine.graphs:
        raise HostError(f"op {name} is not in the epoch that runs: break op {name}, continue")
    topo = engine.topology(op.graph)
    labels = {queue.name: queue.df for queue in run.netlist.queues.values()}
    plan = build_plan(run.netlist, topo, labels, True, core_of(run.netlist.arch_name))
    step = next(item for item in plan.steps if isinstance(item, Run) and item.op.name == name)
    operands = [_operand(run, source) for source in op.inputs]
    t, rows, columns = _shape(plan.tiles[step.value], op.blocking.shape)
    at, row, column = tile
    if not (0 <= at < t and 0 <= row < rows and 0 <= column < columns):
        raise HostError(f"op {name} gives t {t}, {rows} x {columns} tiles: no tile {at},{row},{column}")
    number = (at * rows + row) * columns + column
    steps, packed = engine.call(lambda: steps_of(step, operands, number))
    given = engine.values.get(name)
    if given is None:
        return steps, None
    return steps, packed.values()[0].tobytes() == given[0, number].tobytes()


def _shape(tiles: int, blocking: tuple[int, int, int]) -> tuple[int, int, int]:
    t, rows, columns = blocking
    return blocking if t * rows * columns == tiles else (1, 1, tiles)


def _operand(run: Session, name: str) -> Bits:
    """What the op reads, as the machine holds it: Bits [1, tiles]."""
    values = run.engine.values.get(name)
    item: object = run.netlist.queues.get(name)
    if values is None and isinstance(item, Queue) and not item.host_fed:  # what the epoch has just pushed
        values = run.engine.values.get(item.input)
    if values is not None:
        df = item.df if isinstance(item, Queue) else run.names.op(name).out_df
        return Bits.encode(df, values)
    if isinstance(item, Queue):
        found = run.engine.call(lambda: of_queue(run.engine, item, None))
        assert found.bits is not None
        return found.bits[None]
    raise HostError(f"{name}, which the op reads, has not run in this input yet: go on to the op first")
