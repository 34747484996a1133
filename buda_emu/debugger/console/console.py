"""The state of a console between two commands, and its description of the current place of the run."""

from collections.abc import Callable
from typing import Any

from buda_emu.debugger import inspection
from buda_emu.debugger.answer import Answer, answer
from buda_emu.debugger.console.words import split_tile, tile_of
from buda_emu.debugger.inside_op import Step
from buda_emu.debugger.machine.goal import Kind
from buda_emu.debugger.machine.stop import Stop
from buda_emu.debugger.session import Session
from buda_emu.errors import HostError
from buda_emu.records import dataclass


@dataclass(slots=True)
class Inner:
    """Inside of an op: its units' steps for one tile, and the one that is looked at; `equal`: whether they end in what
    the run gave."""

    op: str
    tile: tuple[int, int, int]
    steps: list[Step]
    equal: bool | None
    at: int = 0


class Console:
    """Of a session. `quit`: nothing more is to be read."""

    def __init__(self, run: Session) -> None:
        self.run = run
        self.quit = False
        self.inner: Inner | None = None
        self.listed: int | None = None  # the line after the last one that `list` showed

    # ---------------------------------------------------------------------------------------------------- going
    def go(self, kind: Kind, times: int = 1, index: int | None = None) -> Answer:
        """Forward, and where that led."""
        return self.stopped(self.run.go(kind, times, index))

    def here(self) -> Answer:
        """Where it stands."""
        return self.stopped(self.run.stop)

    def stopped(self, stop: Stop) -> Answer:
        """What is told of a stop: why, where, and the line of the netlist."""
        self.listed = None
        place = inspection.where(self.run)
        lines: list[str] = []
        if stop.reason == "breakpoint":
            numbers = ", ".join(map(str, stop.breakpoints))
            lines.append(f"breakpoint {numbers}: {stop.text}")
        elif stop.reason == "error":
            lines += inspection.why_not(self.run).lines
        elif stop.reason == "interrupted":
            lines.append("interrupted")
        if stop.reason != "error":
            lines += place.lines
            lines += self._source(place.data["line"])
        data: dict[str, Any] = {**inspection.stop_data(self.run), "where": place.data}
        return answer("stop", lines, **data)

    def _source(self, line: int | None) -> list[str]:
        text = self.run.names.lines
        return [f"  {line:>5}  {text[line - 1].strip()}"] if line is not None and line <= len(text) else []

    # ---------------------------------------------------------------------------------------------- inside of an op
    def into(self, text: str) -> Answer:
        """Begin to step inside of the op where the run stands."""
        from buda_emu.debugger.stepping_inside import inside

        _, tile, rest = split_tile(text)
        if tile is None and text:
            tile = tile_of(text)
        if rest:
            raise HostError(f"into tile R,C: {rest!r} is too much")
        op = self.run.engine.op_now
        if op is None:
            raise HostError("the run is not at an op: `next` or `break` goes to one")
        steps, equal = inside(self.run, op.name, tile or (0, 0, 0))
        if not steps:
            raise HostError(f"op {op.name} ({op.type}) moves tiles as they lie in L1: no unit computes")
        self.inner = Inner(op.name, tile or (0, 0, 0), steps, equal)
        return self._inner_answer(listed=True)

    def inner_move(self, by: int) -> Answer:
        """From unit to unit; beyond the last it leaves the op."""
        assert self.inner is not None
        self.inner.at += by
        if not 0 <= self.inner.at < len(self.inner.steps):
            return self.left_then(self.here)
        return self._inner_answer()

    def left_then(self, then: Callable[[], Answer]) -> Answer:
        """Leave the op."""
        self.inner = None
        return then()

    def _inner_answer(self, *, listed: bool = False) -> Answer:
        inner = self.inner
        assert inner is not None
        step = inner.steps[inner.at]
        tile = ",".join(map(str, inner.tile))
        lines: list[str] = []
        if listed:
            check = {True: "as the run gave it", False: "NOT what the run gave", None: "the op has not run yet"}
            lines.append(f"op {inner.op} tile {tile}: {len(inner.steps)} steps, packed: {check[inner.equal]}")
        lines.append(f"{inner.at + 1} of {len(inner.steps)}: {step.unit}: {step.what} ({step.format})")
        lines += ["  " + " ".join(f"{word:08x}" for word in row[:8]) for row in step.words[:8].tolist()]
        if step.exponents is not None:
            lines.append("  shared exponents " + " ".join(f"{one:02x}" for one in step.exponents[:8].reshape(-1)))
        data: dict[str, Any] = {
            "op": inner.op,
            "tile": list(inner.tile),
            "number": inner.at + 1,
            "steps": len(inner.steps),
            "equal": inner.equal,
            "step": step.as_json(),
        }
        return answer("inside", lines, **data)
