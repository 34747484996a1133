"""Targets of steps back: the moment that the same step forward would have come from."""

from typing import Final

from buda_emu.app.debugger.machine.engine import Engine
from buda_emu.app.debugger.machine.history import Chunk
from buda_emu.app.debugger.machine.stop import START, STORED, Position

BACK_STEPS: Final = ("step", "next", "input", "epoch", "finish")


def position_before(engine: Engine, kind: str) -> Position:
    """Return the position to which a step back of this kind (a member of BACK_STEPS) leads: where the same step forward
    would have come from, or the start of the run."""
    position = engine.stop.position
    if position == START:
        return START
    match kind:
        case "step" if position.in_epoch:
            return Position(position.instruction)
        case "step":
            return _position_of_instruction(position.instruction - 1)
        case "next":
            return _op_before(engine, position)
        case "input":
            return _input_before(engine, position)
        case "epoch":
            return _epoch_before(engine, position)
        case _ if position.in_epoch:
            return Position(position.instruction)
        case _:
            start = engine.program_start
            return start if position > start else START


def _epoch_before(engine: Engine, position: Position) -> Position:
    """Return the position at which the current epoch began; if the run stands there already or in no epoch, where the
    previous one began."""
    begin = Position(position.instruction, 0, 0)
    if position.in_epoch and position != begin and (position.input or _has_run_op(engine, position)):
        return begin
    chunk = engine.log.epoch_before(position.instruction)
    if chunk is None:
        return START
    return Position(chunk.instruction, 0, 0)


def _position_of_instruction(number: int) -> Position:
    """Return the position before instruction `number`, the start for 0 and less."""
    if number <= 0:
        return START
    return Position(number)


def _step_of_last_op(engine: Engine, graph: str) -> int:
    """Return the step number (of `Position`) before the last op of the graph's epoch."""
    return 2 * (len(engine.topology(graph).ops) - 1)


def _last_input(chunk: Chunk) -> int:
    """Return the number of the last input of a chunk."""
    return chunk.first + chunk.count - 1


def _has_run_op(engine: Engine, position: Position) -> bool:
    """Return whether an op of the current input has run. A queue that is full or empty stops an input before its first
    op."""
    chunk = next(engine.log.latest(), None)
    return chunk is not None and (chunk.instruction, chunk.first) == position[:2]


def _op_before(engine: Engine, position: Position) -> Position:
    """Return the position before the op that ran last; if no op ran since the instruction began, that of the
    instruction."""
    if not position.in_epoch:
        chunk = engine.log.epoch_before(position.instruction)
        if chunk is None or chunk.instruction != position.instruction - 1:
            return _position_of_instruction(position.instruction - 1)
        return Position(chunk.instruction, _last_input(chunk), _step_of_last_op(engine, chunk.graphs[0]))
    if not engine.graphs:
        return Position(position.instruction)
    if position.step == STORED:
        if position.input < engine.done:
            return position._replace(step=_step_of_last_op(engine, engine.graphs[0]))
        if _has_run_op(engine, position):  # an input that failed: where it began
            return position._replace(step=0)
        position = position._replace(step=0)
    if position.step:
        # Before the op that has run, or before the one in front of the op that is about to run.
        return position._replace(step=(position.step - 1) // 2 * 2)
    if position.input:
        return Position(position.instruction, position.input - 1, _step_of_last_op(engine, engine.graphs[0]))
    return Position(position.instruction)


def _input_before(engine: Engine, position: Position) -> Position:
    """Return the position at which the current input began; if the run stands there already, where the input before it
    began."""
    if position.in_epoch:
        if position.step and _has_run_op(engine, position):
            return position._replace(step=0)
        if position.input:
            return Position(position.instruction, position.input - 1, 0)
        if position.step:
            return Position(position.instruction)
    chunk = engine.log.epoch_before(position.instruction)
    if chunk is None:
        return START
    return Position(chunk.instruction, _last_input(chunk), 0)
