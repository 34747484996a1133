"""The mesh between cores: routes x first, then y, and bytes on each directed link (facts GEMINI 5.4; a model)."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from buda_emu.errors import ProgramError
from buda_emu.gemini.model import IR
from buda_emu.gemini.time.plan import Send

Position: TypeAlias = tuple[int, int]
Link: TypeAlias = tuple[Position, Position]
_MOST_HOPS = 1 << 16  # of a file that gives cores absurd numbers


def hops(ir: IR, first: int, second: int) -> int:
    """Links between two cores."""
    (x0, y0), (x1, y1) = ir.position(first), ir.position(second)
    return abs(x1 - x0) + abs(y1 - y0)


def route(ir: IR, first: int, second: int) -> Iterator[Link]:
    """The links that a piece goes over, in order."""
    if hops(ir, first, second) > _MOST_HOPS:
        raise ProgramError(f"cores {first} and {second} are more than {_MOST_HOPS} links apart", kind="limit")
    (x, y), (to_x, to_y) = ir.position(first), ir.position(second)
    while (x, y) != (to_x, to_y):
        ahead = (x + (1 if to_x > x else -1), y) if x != to_x else (x, y + (1 if to_y > y else -1))
        yield (x, y), ahead
        x, y = ahead


def link_bytes(ir: IR, sends: Sequence[Send]) -> dict[Link, int]:
    """Bytes on each directed link; a piece for several cores counts once on the union of its routes."""
    found: dict[Link, int] = {}
    for send in sends:
        for link in {link for core in send.cores for link in route(ir, send.step[0], core)}:
            found[link] = found.get(link, 0) + send.bytes
    return dict(sorted(found.items()))
