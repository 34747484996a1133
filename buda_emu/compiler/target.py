"""The target of a compilation: architecture, formats and fidelity, and the objective of the search for a placement."""

from dataclasses import dataclass, field, replace
from functools import cache

from buda_emu.compiler.search_parts import EVERYTHING, Parts
from buda_emu.compiler.search_record import SearchRecord
from buda_emu.spec.archs import ARCHS, Arch
from buda_emu.spec.boards import Cluster, board
from buda_emu.spec.devices import Device, device
from buda_emu.spec.formats import FORMATS, tile_bytes
from buda_emu.spec.precision import FIDELITIES
from buda_emu.support.errors import HostError

ARCH_CHOICES = ("wormhole_b0", "grayskull", "blackhole")
ACC_CHOICES = ("", "Float32", "Float16", "Float16_b")
EFFORTS = ("low", "default", "high")
OBJECTIVES = ("throughput", "latency", "cores")
MOST_CHIPS = 64  # a larger figure is taken for a mistake
MICROBATCH = 64
"""Inputs that go through an epoch before the next begins, unless the objective is latency."""
L1_RESERVED = 471_040
L1_RESERVED_BLACKHOLE = 483_392
"""Bytes of a core's L1 that firmware and streams occupy (FRONTEND 4.1)."""
DF_CHOICES = ("Float32", "Float16", "Float16_b", "Bfp8", "Bfp8_b")


@dataclass(frozen=True, slots=True)
class Precision:
    """Formats and fidelity of one op; "" takes the model's. `reads`: formats of its operands, if some differ from the
    op's."""

    df: str = ""
    acc_df: str = ""
    fidelity: str = ""
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """A chip with formats. `df` is the format of activations and parameters, `acc` the format that products are summed
    in ("" derives it from `df`); `board`: the board that the chip stands on, "" if none is named; `reads`: operand
    formats of a single op, as in `Precision`."""

    arch: Arch
    df: str = "Float16_b"
    fidelity: str = "HiFi3"
    acc: str = ""
    board: str = ""
    reads: tuple[str, ...] = ()

    @staticmethod
    def from_names(arch: str, df: str, fidelity: str, acc_df: str = "") -> "Target":
        """Return the target of an architecture and formats by name. Raises HostError for an unknown name, and for
        Float32 sums on Grayskull."""
        for option, word, words in (
            ("arch", arch, ARCH_CHOICES),
            ("df", df, DF_CHOICES),
            ("fidelity", fidelity, FIDELITIES),
            ("acc_df", acc_df, ACC_CHOICES),
        ):
            if word not in words:
                raise HostError(f"compile: {option} {word!r} is not one of: {', '.join(filter(None, words))}")
        if arch == "grayskull" and acc_df == "Float32":
            raise HostError("compile: grayskull cannot sum in Float32")  # V090
        return Target(ARCHS[arch], df, fidelity, acc_df)

    def on_board(self, name: str) -> "Target":
        """Return the target for a chip of a board, with the cores and DRAM channels that the board leaves it. Raises
        HostError for an unknown board."""
        chip_board = board(name)
        arch = replace(self.arch, grid=chip_board.grid, dram_channels=chip_board.dram_channels)
        return replace(self, arch=arch, board=chip_board.name)

    def with_harvested_rows(self, rows: int) -> "Target":
        """Return the target for a chip that lacks its last rows (PERF 1). Raises HostError if no row is left."""
        height, width = self.arch.grid
        if rows >= height:
            raise HostError(f"compile: {rows} of {height} rows harvested")
        if rows:
            return replace(self, arch=replace(self.arch, grid=(height - rows, width)))
        return self

    def of(self, precision: Precision) -> "Target":
        """Return the target for an op with its own formats."""
        if precision == Precision():
            return self
        df = precision.df or self.df
        acc = precision.acc_df or self.acc
        fidelity = precision.fidelity or self.fidelity
        return replace(self, df=df, acc=acc, fidelity=fidelity, reads=precision.reads)

    def read_df(self, operand: int) -> str:
        """Return the format in which an op of this target reads operand number `operand`."""
        if operand < len(self.reads):
            return self.reads[operand]
        return self.activation_df

    @property
    def chip(self) -> Device:
        """The chip as the time model takes it: the board's, or one with the target's cores."""
        return _device_with_grid(self.board, self.arch.name, self.arch.grid)

    @property
    def buffer_room(self) -> int:
        """Bytes of one core that buffers may take."""
        return self.arch.l1_bytes - (L1_RESERVED_BLACKHOLE if self.arch.name == "blackhole" else L1_RESERVED)

    @property
    def widest_block(self) -> int:
        """Width of the widest block of a product that one core has room for, in tiles, with a row of the right
        factor and a tile of the left one, twice each. It is computed for 16 bits at least, which results that hold
        masks have."""
        formats = (self.activation_df, "Float16")
        size = max(tile_bytes(df, 32, 32, self.arch.alignment, header=True) for df in formats)
        return (self.buffer_room // (2 * size) - 1) // 2

    @property
    def title(self) -> str:
        """The name of the chip in texts: its architecture, with the board if one is named."""
        if self.board:
            return f"{self.board} ({self.arch.name})"
        return self.arch.name

    @property
    def activation_df(self) -> str:
        """Format of activations: `df`, but Float16_b instead of Float32 on Grayskull, which has no Float32 (FRONTEND
        3.5)."""
        if self.df == "Float32" and self.arch.name == "grayskull":
            return "Float16_b"
        return self.df

    @property
    def acc_df(self) -> str:
        """Format that products are summed in; by default it follows from the activations' format (FRONTEND 3.5)."""
        if self.acc:
            return self.acc
        if self.activation_df == "Float32":
            return "Float32"
        if FORMATS[self.activation_df].family == "b":
            return "Float16_b"
        return "Float16"

    @property
    def intermed_df(self) -> str:
        """Format of partial sums: the one that they are summed in, which is never a block format."""
        if self.acc_df == "Float32":
            return "Float32"
        return self.acc_df

    @property
    def picker_df(self) -> str:
        """Format of constants that hold only 0 and 1 (FRONTEND 3.2)."""
        if FORMATS[self.activation_df].family == "b":
            return "Bfp2_b"
        return "Bfp2"

    @property
    def output_df(self) -> str:
        """Format of tensors that the host reads: they are untilized, so it is no block format (V030)."""
        return {"Bfp8": "Float16", "Bfp8_b": "Float16_b"}.get(self.activation_df, self.activation_df)

    @property
    def table_df(self) -> str:
        """Format of embedding tables, which have at least 16 bits (FRONTEND 3.5)."""
        return self.output_df

    @property
    def dest_tiles(self) -> int:
        """Number of tiles that half of the result registers hold (V040)."""
        if self.acc_df in ("Float32", "Int32"):
            return 4
        return 8

    @property
    def has_int8(self) -> bool:
        """Return whether the chip multiplies integers (V030, V141)."""
        return self.arch.name != "grayskull"


@cache
def _device_with_grid(on: str, arch: str, grid: tuple[int, int]) -> Device:
    """Return the device of the time model for a board, or for an architecture if `on` is "", with a grid of cores of
    this size."""
    return (board(on).chip if on else device(arch)).with_grid(*grid)


@dataclass(frozen=True, slots=True)
class Objective:
    """The goal of a placement (docs/compile/placing.md). `effort`: length of the search; `objective`: most inputs per
    second, shortest time of one input, or fewest cores; `chips` that the model is cut over; `microbatch`: inputs that
    go through an epoch before the next begins, reduced if memory is full unless it is `firm`; `ids` of the chips if
    they are not counted from 0; `copies` of the model, each on its own chip; `step`: inputs of a training's step, its
    microbatches."""

    effort: str = "default"
    objective: str = "throughput"
    chips: int = 1
    microbatch: int = MICROBATCH
    firm: bool = False
    ids: tuple[int, ...] = ()
    copies: int = 1
    step: int = 1
    cluster: Cluster | None = None
    """The cluster of the chips, if a file describes it."""
    without: Parts = EVERYTHING
    """The parts of the search that are left out, to measure what they gain."""
    record: SearchRecord = field(default_factory=SearchRecord, compare=False, repr=False)
    """What the search has done so far; copies with other fields share it."""

    @staticmethod
    def from_options(
        effort: str,
        objective: str,
        chips: int,
        microbatch: int | None,
        ids: tuple[int, ...] = (),
        cluster: Cluster | None = None,
    ) -> "Objective":
        """Return the objective of words and numbers; without a microbatch it takes the usual one for the objective.
        Raises HostError for an invalid word or number."""
        for option, word, words in (("effort", effort, EFFORTS), ("objective", objective, OBJECTIVES)):
            if word not in words:
                raise HostError(f"compile: {option} {word!r} is not one of: {', '.join(words)}")
        firm = microbatch is not None
        if microbatch is None:
            if objective == "latency":
                microbatch = 1
            else:
                microbatch = MICROBATCH
        for option, figure, largest in (("chips", chips, MOST_CHIPS), ("microbatch", microbatch, 4096)):
            if not 1 <= figure <= largest:
                raise HostError(f"compile: {option} {figure} is not between 1 and {largest}")
        return Objective(
            effort=effort,
            objective=objective,
            chips=chips,
            microbatch=microbatch,
            firm=firm,
            ids=ids,
            cluster=cluster,
            record=SearchRecord.begin(effort),
        )


ONE_BY_ONE = Objective("low", microbatch=1)
"""The objective of programs that run in turn on states in rams: the first legal placement."""
