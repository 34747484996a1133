"""The buffers of an op's operands in one core: tiles, bytes, and tiles that are cleared at a time; and for each input
of a fused op the sub-op that reads it first, and how often it is read (OPS 8).

Properties of a kind of op are methods of `OpKind`; its own methods apply to ops that read their operands as they write
their result.

Rows or columns of cores may share an operand: then it is multicast over one NoC (net2pipe).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from buda_emu.netlist.model import FusedOp, Op, Queue, SubOp
from buda_emu.performance.routing.pipes.edge import EdgeMap, Reading
from buda_emu.performance.routing.pipes.model import RefusedError
from buda_emu.performance.routing.pipes.ops.general import is_ethernet, kernel_broadcast, mblock_tiles
from buda_emu.spec.archs import Arch
from buda_emu.spec.blocking import Blocking, Shape
from buda_emu.spec.formats import tile_bytes


@dataclass(frozen=True, slots=True)
class FusedUse:
    """The use of inputs in a definition of `fused_ops`. `readers` has for each inputN the first sub-op that reads it.
    `forked` has for each input that is read more than once the factor by which its buffer grows. `intermediate_tiles`
    has the sizes of intermediate buffers."""

    readers: Mapping[str, SubOp]
    forked: Mapping[str, int]
    intermediate_tiles: tuple[int, ...]


def fused_use(fused: FusedOp) -> FusedUse:
    """Return how a definition of `fused_ops` uses its inputs and intermediates, which is the same for all ops that have
    it."""
    readers: dict[str, SubOp] = {}
    for schedule in fused.schedules:
        for sub in schedule:
            for name in sub.inputs:
                if name.startswith("input"):
                    readers.setdefault(name, sub)
    forked = {name: grows for name in readers if (grows := _buffer_growth(fused, name))}
    return FusedUse(readers, forked, _intermediate_tiles(fused))


def _buffer_growth(fused: FusedOp, name: str) -> int:
    """Return the factor by which the buffer of input `name` grows because several sub-ops read it: 0 for an input that
    is read once; else the m_k of the product or reduction that ends the schedule in which the input is read first, or
    1."""
    uses = 0
    growth = 1
    m_k = 1
    read_here = False
    for schedule in fused.schedules:
        ends_in_sum = False
        for sub in schedule:
            if name in sub.inputs:
                read_here = uses == 0
                uses += 1
            if sub.has("keeps sums"):
                ends_in_sum = True
                m_k = sub.attributes.m_k
        if read_here and ends_in_sum:
            growth = m_k
    if uses > 1:
        return growth
    return 0


def _grown_buffer(last: SubOp) -> tuple[str, int]:
    """Return the intermediate that `last`, the last sub-op of a schedule, reads again for each of its columns, and by
    what factor that buffer grows; ("", 1) if there is none."""
    if last.has("rows by columns") and last.mblock[1] > 1 and last.inputs[0].startswith("intermed"):
        return last.inputs[0], last.attributes.m_k
    return "", 1


def _intermediate_tiles(fused: FusedOp) -> tuple[int, ...]:
    """Return the tiles of each intermediate buffer of a fused op, at least 1 each."""
    sizes = [0] * max(fused.intermediates, 0)
    for schedule in fused.schedules:
        grows, factor = _grown_buffer(schedule[-1])
        for sub in schedule:
            if not sub.output.startswith("intermed"):
                continue
            number = int(sub.output[-1])
            tiles = sub.ublock[0] * sub.ublock[1]
            if sub.output == grows and not sub.has("rows by columns"):
                tiles *= factor
            if number < len(sizes):
                sizes[number] = max(sizes[number], tiles)
    return tuple(max(size, 1) for size in sizes)


LATENCY_CYCLES = 1024
"""Cycles that an operand's buffer is meant to cover (net2pipe)."""
NOC_BYTES = 32
ETH_BYTES = 1
"""Bytes that come in a cycle, as net2pipe sizes buffers for them."""


@dataclass(frozen=True, slots=True)
class Operand:
    """The buffer of one operand, as `pipegen.yaml` has it. `per_input` is the tiles for one input of the epoch,
    `gathered` and `cleared` those that come and are freed at a time."""

    tile_size: int
    size_tiles: int
    per_input: int
    gathered: int
    cleared: int


@dataclass(frozen=True, slots=True)
class Shared:
    """Which cores of an op get the same tiles of an operand: all of a row (column) of its grid, and whether these come
    over the NoC that other operands on that side do not take."""

    rows: bool = False
    columns: bool = False
    other_noc: bool = False


@dataclass(frozen=True, slots=True)
class OpInputs:
    """An op with the context of its operands: sources in order, the fused op's definition, the architecture, its
    kind."""

    op: Op
    sources: tuple[Queue | Op, ...]
    fused: FusedUse | None
    arch: Arch
    kind: "OpKind"
    _sizes: dict[int, int] = field(default_factory=dict[int, int], compare=False)
    _shared: dict[int, Shared] = field(default_factory=dict[int, Shared], compare=False)

    def operand(self, index: int) -> Operand:
        """Return the buffer of operand `index` in one core."""
        cleared = self.tiles_per_clear(index)
        block, gathered = self.kind.block(self, index)
        kept_tiles, per_t = kernel_broadcast(self.op, index)
        if kept_tiles:
            block = cleared * (self.op.blocking.t if per_t else 1)
            gathered = cleared
        return Operand(
            tile_size=self.tile_size(index),
            size_tiles=self.size_tiles(index),
            per_input=block,
            gathered=gathered,
            cleared=cleared,
        )

    def reading(self, index: int, source: Shape) -> Reading:
        """Return which blocks of operand `index` each core reads, and in which order, from a source that has shape
        `source` after its TMs. Not for embedding tables and flat data, which are read row by row
        (`OpKind.flat_edge`)."""
        reading = self.kind.reading(self, index, source)
        kept_tiles, per_t = kernel_broadcast(self.op, index)
        if kept_tiles:
            return replace(reading, kept=kept_tiles, kept_per_t=per_t)
        return reading

    def tiles_per_clear(self, index: int) -> int:
        """Return the tiles of operand `index` that the kernel frees in its buffer at a time: all that it keeps of a
        kernel broadcast, else as its kind of op does."""
        return kernel_broadcast(self.op, index)[0] or self.kind.tiles_per_clear(self, index)

    def tile_size(self, index: int) -> int:
        """Return the bytes of one tile of operand `index`; for flat data, of one row of a ublock. Raises RefusedError
        for flat data that is no queue."""
        op = self.op
        if not self.kind.is_flat(index):
            return tile_bytes(op.in_df[index], *op.input_tile_dims[index], self.arch.alignment, True)
        source = self.sources[index]
        if not isinstance(source, Queue):
            raise RefusedError("V082", f"input 0 of {op.type} must be a queue in DRAM")
        return flat_row_bytes(op.in_df[index], source.blocking, self.arch)

    def sharing(self, index: int) -> Shared:
        """Return which cores of the op get the same tiles of operand `index`. Cached. Raises RefusedError if more
        operands are shared than can be multicast."""
        shared = self._shared.get(index)
        if shared is None:
            shared = self._shared[index] = self.kind.sharing(self, index)
        return shared

    def size_tiles(self, index: int) -> int:
        """Return the tiles of the buffer of operand `index`: enough for the latency of the NoC, for two clears of the
        kernel, and for the least size that the netlist states. Cached."""
        size = self._sizes.get(index)
        if size is None:
            size = self._sizes[index] = self._compute_size_tiles(index)
        return size

    def _compute_size_tiles(self, index: int) -> int:
        """Compute the result of `size_tiles`."""
        op = self.op
        header = not self.kind.is_flat(index)
        size = tile_bytes(op.in_df[index], *op.input_tile_dims[index], self.arch.alignment, header)
        cleared = self.tiles_per_clear(index) * size
        least = 0
        if not kernel_broadcast(op, index)[0]:
            covering = _covering_bytes(LATENCY_CYCLES * (ETH_BYTES if is_ethernet(op) else NOC_BYTES), size)
            least = self.kind.least_bytes(self, index, size, covering)
        least = max(least, 2 * cleared)
        minimum = (op.input_buf_min_size_tiles[index] if index < len(op.input_buf_min_size_tiles) else 0) * size
        unit = 2 * cleared
        if least < minimum:
            least = minimum
            unit = cleared
        return -(-least // unit) * unit // size


class OpKind:
    """The properties of one kind of op in the vendor's pipe compiler (net2pipe). Kinds have no state; methods take an
    op, or the inputs of an op and the number of an operand."""

    sums: ClassVar[bool] = False
    """Whether it sums over blocks of its operands; only rows of ublocks of such a result can be read."""
    multiplies: ClassVar[bool] = False
    """Whether it multiplies operand 0 with operand 1."""
    is_dense: ClassVar[bool] = False
    """Whether it does so and neither of them is sparse."""
    keeps_strips: ClassVar[bool] = False
    """Whether its result is as many mblocks as its attribute says, core by core."""

    def input_buffers(self, op: Op) -> int:
        """Return the number of operands that have a buffer in each core; by default all."""
        return len(op.inputs)

    def intermediates(self, op: Op, of_fused: int) -> int:
        """Return the number of intermediate buffers of a core, by default 1 for a gradient, else 0; `of_fused` is what
        the definition of a fused op states."""
        return int(op.gradient_op)

    def passes(self, op: Op) -> int:
        """Return how often a block passes the intermediate buffer for one result, biases and scales not counted."""
        return 1

    def is_flat(self, index: int) -> bool:
        """Return whether operand `index` reads rows of an embedding table or of flat data."""
        return False

    def flat_edge(self, inputs: OpInputs) -> EdgeMap:
        """Return the pipes of the operand that is read as flat rows. Raises NotImplementedError for kinds without such
        an operand (see `is_flat`)."""
        raise NotImplementedError

    def sharing(self, inputs: OpInputs, index: int) -> Shared:
        """Return which cores get the same tiles of operand `index`, by default none. Raises RefusedError if more
        operands are shared than can be multicast."""
        return Shared()

    def keeps_blocks(self, inputs: OpInputs, index: int) -> bool:
        """Return whether net2pipe decides, for operand `index` that a prologue loads, if L1 keeps it in the order in
        which it is read (else as it lies in DRAM)."""
        return False

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        """Return the blocks that every core gets of operand `index`, and their order; `source` is the shape of its
        source after TMs. The default is as the result is written."""
        blocking = inputs.op.blocking
        return Reading(
            t=blocking.t,
            grid=blocking.grid_size,
            mblock=blocking.mblock,
            ublock=blocking.ublock,
            row_major=blocking.ublock_order == "r",
        )

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        """Return the tiles of operand `index` on one core for one input of the epoch, and the tiles that are gathered
        at a time."""
        tiles = mblock_tiles(inputs.op)
        return inputs.op.blocking.t * tiles, tiles

    def tiles_per_clear(self, inputs: OpInputs, index: int) -> int:
        """Return the tiles of operand `index` that the kernel frees in its buffer at a time, by default one ublock of
        the result."""
        r, c = inputs.op.blocking.ublock
        return r * c

    def least_bytes(self, inputs: OpInputs, index: int, size: int, covering: int) -> int:
        """Return the least bytes of an operand's buffer for tiles of `size` bytes, by default `covering`, the bytes
        that cover the latency of the NoC."""
        return covering


def flat_row_bytes(df: str, source: Blocking, arch: Arch) -> int:
    """Return the bytes of one row of elements in a ublock of flat data in format `df`, given the blocking of its
    queue."""
    return tile_bytes(df, *source.tile_dim, arch.alignment, False) * source.ublock[1] // source.tile_dim[0]


def _covering_bytes(bytes_wanted: int, size: int) -> int:
    """Return the bytes of a whole number of tiles of `size` bytes for `bytes_wanted`. The number is `bytes_wanted` over
    the power of two nearest to a tile's size, so that the result may be less than wanted."""
    if bytes_wanted % size == 0:
        return bytes_wanted
    lower = 1 << (size.bit_length() - 1)
    if 2 * lower - size < size - lower:
        divisor = 2 * lower
    else:
        divisor = lower
    return bytes_wanted // divisor * size


@dataclass(frozen=True, slots=True)
class Multicast:
    """The multicast of one operand: whether all cores of a row (column) of the op's grid get the same tiles, and
    whether over NoC 1."""

    rows: bool
    columns: bool
    noc1: bool


def multicast(inputs: OpInputs, index: int) -> Multicast:
    """Return whether operand `index` is multicast along rows or columns of the op's cores, and over which NoC; neither
    for an operand that no cores share. Raises RefusedError for a fused op with more than two shared operands."""
    shared = inputs.sharing(index)
    if inputs.op.grid_transpose:
        across = shared.rows
    else:
        across = shared.columns
    return Multicast(shared.rows, shared.columns, across != shared.other_noc)


def direct(arch: str, grid: tuple[int, int], producer: Op, consumer: Op, shared: Multicast) -> int | None:
    """Return the NoC over which a producer that stands beside its consumer's row (column) of cores can multicast from
    its own core, without another core between; None if it cannot. `grid` is the chip's, `shared` the multicast that the
    consumer needs."""
    apart = producer.target_device != consumer.target_device
    if arch != "wormhole_b0" or apart or is_ethernet(producer) or is_ethernet(consumer):
        return None
    down, across = consumer.blocking.grid_size
    rows = shared.rows and across > 1
    columns = shared.columns and down > 1
    along_x, along_y = (columns, rows) if consumer.grid_transpose else (rows, columns)
    for axis, along in ((1, along_x), (0, along_y)):
        noc = None
        if along:
            noc = _noc_from_beside(grid[axis], producer, consumer, axis)
        if noc is not None:
            if shared.noc1 == (noc == 1):
                return noc
            return None
    return None


def _noc_from_beside(size: int, producer: Op, consumer: Op, axis: int) -> int | None:
    """Return the NoC on which a producer's line of cores leads into the consumer along an axis of `size` cores: 0 if
    the producer stands right before it, 1 if right behind it, None if not beside it."""
    other = 1 - axis
    if consumer.cores[other] != producer.cores[other] or producer.cores[axis] != 1:
        return None
    if consumer.grid_loc[other] != producer.grid_loc[other]:
        return None
    if producer.grid_loc[axis] == (consumer.grid_loc[axis] + consumer.cores[axis]) % size:
        return 1
    if consumer.grid_loc[axis] == (producer.grid_loc[axis] + 1) % size:
        return 0
    return None
