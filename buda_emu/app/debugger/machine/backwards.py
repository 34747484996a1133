"""Where a step back leads: the moment that the same step forward would have come from."""

from typing import Final

from buda_emu.app.debugger.machine.engine import Engine
from buda_emu.app.debugger.machine.history import Chunk
from buda_emu.app.debugger.machine.stop import START, STORED, Position

BACK: Final = ("step", "next", "input", "epoch", "finish")


def before_here(engine: Engine, kind: str) -> Position:
    """A key of BACK; the start where nothing is before."""
    now = engine.stop.position
    if now == START:
        return START
    match kind:
        case "step":
            return Position(now.instruction) if now.in_epoch else _instruction(now.instruction - 1)
        case "next":
            return _op_before(engine, now)
        case "input":
            return _input_before(engine, now)
        case "epoch":
            if now.in_epoch and now[1:] != (0, 0) and (now.input or _began(engine, now)):
                return Position(now.instruction, 0, 0)
            chunk = engine.log.epoch_before(now.instruction)
            return START if chunk is None else Position(chunk.instruction, 0, 0)
        case _:
            if now.in_epoch:
                return Position(now.instruction)
            return engine.program_start if now > engine.program_start else START


def _instruction(number: int) -> Position:
    return Position(number) if number > 0 else START


def _last_op(engine: Engine, graph: str) -> int:
    return 2 * (len(engine.topology(graph).ops) - 1)


def _last_input(chunk: Chunk) -> int:
    return chunk.first + chunk.count - 1


def _began(engine: Engine, now: Position) -> bool:
    """Did an op of this input run? A queue that is full or empty stops it before."""
    chunk = next(engine.log.latest(), None)
    return chunk is not None and (chunk.instruction, chunk.first) == now[:2]


def _op_before(engine: Engine, now: Position) -> Position:
    if not now.in_epoch:
        chunk = engine.log.epoch_before(now.instruction)
        if chunk is None or chunk.instruction != now.instruction - 1:
            return _instruction(now.instruction - 1)
        return Position(chunk.instruction, _last_input(chunk), _last_op(engine, chunk.graphs[0]))
    if not engine.graphs:
        return Position(now.instruction)
    if now.step == STORED:
        if now.input < engine.done:
            return Position(now.instruction, now.input, _last_op(engine, engine.graphs[0]))
        if _began(engine, now):  # an input that failed: where it began
            return Position(now.instruction, now.input, 0)
        now = now._replace(step=0)
    if now.step % 2:
        return now._replace(step=now.step - 1)
    if now.step:
        return now._replace(step=now.step - 2)
    if now.input:
        return Position(now.instruction, now.input - 1, _last_op(engine, engine.graphs[0]))
    return Position(now.instruction)


def _input_before(engine: Engine, now: Position) -> Position:
    if now.in_epoch:
        if now.step and _began(engine, now):
            return now._replace(step=0)
        if now.input:
            return Position(now.instruction, now.input - 1, 0)
        if now.step:
            return Position(now.instruction)
    chunk = engine.log.epoch_before(now.instruction)
    return START if chunk is None else Position(chunk.instruction, _last_input(chunk), 0)
