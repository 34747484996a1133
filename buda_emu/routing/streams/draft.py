"""A stream on its way to be one: what the pipes ask of it, before it has an id and L1."""

from buda_emu.routing.streams.model import Place
from buda_emu.routing.streams.rational import Simple


class Draft:
    """A stream to be. `forks` are all streams of one buffer in L1, `shares` another stream in whose L1 it lies."""

    __slots__ = (
        "buf_id",
        "buffering",
        "bytes",
        "clears",
        "deleted",
        "ethernet",
        "firmware",
        "forks",
        "given",
        "id",
        "iterations",
        "kind",
        "msg_size",
        "op",
        "operand",
        "padding",
        "phases",
        "pipes",
        "place",
        "placed",
        "reads",
        "shared_id",
        "shares",
        "tracked",
        "union",
        "writes",
    )

    def __init__(self, kind: str, place: Place, size: int, msg_size: int, pipe: Simple) -> None:
        self.kind = kind
        self.place = place
        self.bytes = size
        self.msg_size = msg_size
        self.pipes = {} if pipe.of is None else {pipe.of.id: None}
        self.operand: int | None = None
        self.op = ""
        self.forks: list[Draft] | None = None
        self.shares: Draft | None = None
        self.shared_id = self.buf_id = -1
        self.padding: tuple[int, ...] | None = None
        self.reads = self.writes = self.tracked = 0
        self.ethernet = self.firmware = self.deleted = self.placed = False
        self.id: int | None = None  # -1 where there is none left
        self.given = 0  # bytes of L1 that this stream alone takes
        self.iterations = self.buffering = self.clears = 1
        self.phases: int | None = None
        self.union = False

    def join(self, pipe: Simple) -> None:
        """Take part in a further pipe."""
        if pipe.of is not None:
            self.pipes[pipe.of.id] = None
