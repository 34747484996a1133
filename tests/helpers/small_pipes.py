"""Small pipe graphs, built in a few words."""

from dataclasses import replace

from buda_emu.performance.routing.pipes.model import NO_CORE, Buffer, Pipe, PipeGraph

TILE = 2080


class Pipes:
    """Buffers and pipes of one chip; ids are given as they come."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self.pipes: list[Pipe] = []

    @property
    def graph(self) -> PipeGraph:
        return PipeGraph("small", tuple(self.buffers), tuple(self.pipes))

    def buffer(self, kind: str, **fields: object) -> int:
        """A buffer of four tiles, twice, of which 64 move in an epoch."""
        id = 10**11 + len(self.buffers) * 10**9
        given: dict[str, object] = {
            "id": id,
            "buffer_type": kind,
            "epoch_tiles": 64,
            "tiles_per_input": 4,
            "size_tiles": 8,
            "tile_size": TILE,
            "scatter_gather_num_tiles": 4,
        }
        self.buffers.append(Buffer(**{**given, **fields}))  # pyright: ignore[reportArgumentType]
        return id

    def packer(self, row: int, column: int, op: str = "from", **fields: object) -> int:
        return self.buffer("packer", row=row, column=column, operand=16, op=op, **fields)

    def unpacker(self, row: int, column: int, operand: int = 0, op: str = "to", **fields: object) -> int:
        given = {"row": row, "column": column, "operand": operand, "op": op, "tile_clear_granularity": 4}
        return self.buffer("unpacker", **{**given, **fields})

    def relay(self, row: int, column: int, **fields: object) -> int:
        return self.buffer("relay", row=row, column=column, operand=32, **fields)

    def intermediate(self, row: int, column: int, **fields: object) -> int:
        return self.buffer("intermediate", row=row, column=column, operand=24, op="from", **fields)

    def queue(self, op: str = "queue", **fields: object) -> int:
        """A queue's buffer in DRAM, of which each entry is four tiles."""
        given = {"operand": 0, "dram_io_flag": True, "q_slots": 2, "size_tiles": 4, "op": op}
        given |= {"is_scatter": True, "replicate": 1}
        return self.buffer("dram_io", row=NO_CORE, column=NO_CORE, **{**given, **fields})

    def prefetched(self, row: int, column: int, **fields: object) -> int:
        """A parameter that is kept in L1 as it lies in DRAM."""
        given = {"operand": 0, "dram_buf_flag": True, "q_slots": 1, "op": "parameter"}
        return self.buffer("dram_prolog", row=row, column=column, **{**given, **fields})

    def pipe(
        self, inputs: list[int], outputs: list[int] | list[list[int]], *places: tuple[int, int], **fields: object
    ) -> int:
        """A pipe that gathers and multicasts on `places`, one for each scatter index."""
        id = 10**12 + len(self.pipes) * 10**9
        groups = tuple(tuple(one) if isinstance(one, list) else (one,) for one in outputs)
        if outputs and not isinstance(outputs[0], list):
            groups = (tuple(one for group in groups for one in group),)
        made = Pipe(
            id=id,
            inputs=tuple(inputs),
            outputs=groups,
            mcast_core_rc=tuple((0, *place) for place in places),
            dram_pipe_total_readers=(1,) * len(inputs),
            dram_pipe_reader_index=(0,) * len(inputs),
        )
        self.pipes.append(replace(made, **fields))  # pyright: ignore[reportArgumentType]
        return id
