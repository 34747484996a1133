"""The target of a compilation: architecture, formats, fidelity."""

from dataclasses import dataclass, field, replace
from functools import cache

from buda_emu.compiler.memory_watch import Work
from buda_emu.spec.archs import ARCHS, Arch
from buda_emu.spec.boards import Cluster, board
from buda_emu.spec.devices import Device, device
from buda_emu.spec.formats import FORMATS, tile_bytes
from buda_emu.support.errors import HostError

FIDELITIES = ("LoFi", "HiFi2", "HiFi3", "HiFi4")
ARCH_CHOICES = ("wormhole_b0", "grayskull", "blackhole")
ACC_CHOICES = ("", "Float32", "Float16", "Float16_b")
EFFORTS = ("low", "default", "high")
OBJECTIVES = ("throughput", "latency", "cores")
MOST_CHIPS = 64
MICROBATCH = 64
"""Inputs that go through an epoch before the next begins, unless the objective is latency."""
L1_RESERVED = 471_040
L1_RESERVED_BLACKHOLE = 483_392
"""Bytes of a core that firmware and streams keep (FRONTEND 4.1)."""
DF_CHOICES = ("Float32", "Float16", "Float16_b", "Bfp8", "Bfp8_b")


@dataclass(frozen=True, slots=True)
class Precision:
    """Formats and fidelity of one op, "" where they are the model's. `reads`: formats of its operands, where some have
    another one than the op."""

    df: str = ""
    acc_df: str = ""
    fidelity: str = ""
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """`df`: of activations and parameters, `acc_df` of what the math unit sums in ("" is chosen by df); `board`: that
    the chip stands on, "" where none is named; `reads` of one op, as `Precision` has it."""

    arch: Arch
    df: str = "Float16_b"
    fidelity: str = "HiFi3"
    acc: str = ""
    board: str = ""
    reads: tuple[str, ...] = ()

    @staticmethod
    def named(arch: str, df: str, fidelity: str, acc_df: str = "") -> "Target":
        """From words. Raises HostError for one that is not known."""
        for what, word, words in (
            ("arch", arch, ARCH_CHOICES),
            ("df", df, DF_CHOICES),
            ("fidelity", fidelity, FIDELITIES),
            ("acc_df", acc_df, ACC_CHOICES),
        ):
            if word not in words:
                raise HostError(f"compile: {what} {word!r} is not one of: {', '.join(item for item in words if item)}")
        if arch == "grayskull" and acc_df == "Float32":
            raise HostError("compile: grayskull cannot sum in Float32")  # V090
        return Target(ARCHS[arch], df, fidelity, acc_df)

    def on_board(self, name: str) -> "Target":
        """Of a chip as it is on a board: with the cores and DRAM channels that are left. Raises HostError for a board
        that is not known."""
        found = board(name)
        arch = replace(self.arch, grid=found.grid, dram_channels=found.dram_channels)
        return replace(self, arch=arch, board=found.name)

    def harvested(self, rows: int) -> "Target":
        """Of a chip that lacks its last rows (PERF 1). Raises HostError where none is left."""
        height, width = self.arch.grid
        if rows >= height:
            raise HostError(f"compile: {rows} of {height} rows harvested")
        return replace(self, arch=replace(self.arch, grid=(height - rows, width))) if rows else self

    def of(self, own: Precision) -> "Target":
        """For an op that has formats of its own."""
        if own == Precision():
            return self
        df = own.df or self.df
        acc = own.acc_df or self.acc
        fidelity = own.fidelity or self.fidelity
        return replace(self, df=df, acc=acc, fidelity=fidelity, reads=own.reads)

    def read_df(self, operand: int) -> str:
        """Of an operand of the op that this is for."""
        return self.reads[operand] if operand < len(self.reads) else self.activation_df

    @property
    def chip(self) -> Device:
        """The chip as the time model takes it: its board's, or one with the cores that it has."""
        return _chip(self.board, self.arch.name, self.arch.grid)

    @property
    def buffer_room(self) -> int:
        """Bytes of one core that buffers may take."""
        return self.arch.l1_bytes - (L1_RESERVED_BLACKHOLE if self.arch.name == "blackhole" else L1_RESERVED)

    @property
    def widest_block(self) -> int:
        """Tiles of columns of a product that one core has room for, with a row of the right factor and a tile of the
        left one, twice each, in 16 bits or more, as results have that hold masks."""
        formats = (self.activation_df, "Float16")
        size = max(tile_bytes(df, 32, 32, self.arch.alignment, header=True) for df in formats)
        return (self.buffer_room // (2 * size) - 1) // 2

    @property
    def title(self) -> str:
        """What people call the chip: its architecture, with the board where one is named."""
        return f"{self.board} ({self.arch.name})" if self.board else self.arch.name

    @property
    def activation_df(self) -> str:
        """FRONTEND 3.5: Grayskull has no Float32."""
        return "Float16_b" if self.df == "Float32" and self.arch.name == "grayskull" else self.df

    @property
    def acc_df(self) -> str:
        """FRONTEND 3.5."""
        if self.acc:
            return self.acc
        if self.activation_df == "Float32":
            return "Float32"
        return "Float16_b" if FORMATS[self.activation_df].family == "b" else "Float16"

    @property
    def intermed_df(self) -> str:
        """Of partial sums: what is summed in, in its 16-bit form for block formats."""
        return "Float32" if self.acc_df == "Float32" else self.acc_df

    @property
    def picker_df(self) -> str:
        """Of constants that are 0 and 1 only (FRONTEND 3.2)."""
        return "Bfp2_b" if FORMATS[self.activation_df].family == "b" else "Bfp2"

    @property
    def output_df(self) -> str:
        """Of what the host reads: untilized, so no block format (V030)."""
        return {"Bfp8": "Float16", "Bfp8_b": "Float16_b"}.get(self.activation_df, self.activation_df)

    @property
    def table_df(self) -> str:
        """Of embedding tables: 16 bits at least (FRONTEND 3.5)."""
        return self.output_df

    @property
    def dest_tiles(self) -> int:
        """V040."""
        return 4 if self.acc_df in ("Float32", "Int32") else 8

    @property
    def has_int8(self) -> bool:
        """Whether there are products of integers (V030, V141)."""
        return self.arch.name != "grayskull"


@cache
def _chip(on: str, arch: str, grid: tuple[int, int]) -> Device:
    return (board(on).chip if on else device(arch)).with_grid(*grid)


@dataclass(frozen=True, slots=True)
class Objective:
    """What is placed for (docs/compile/placing.md). `effort`: how long is searched; `objective`: most inputs per
    second, the shortest time of one input, or the fewest cores; `chips` that the model is cut over; `microbatch`:
    inputs that go through an epoch before the next begins; unless it is `firm`, fewer where memory is full; `ids` of
    the chips, where they are not counted from 0; `copies` of the model, each on a chip of its own; `step`: inputs of a
    training's step, its microbatches."""

    effort: str = "default"
    objective: str = "throughput"
    chips: int = 1
    microbatch: int = MICROBATCH
    firm: bool = False
    ids: tuple[int, ...] = ()
    copies: int = 1
    step: int = 1
    cluster: Cluster | None = None
    """Of the chips, where a file describes it."""
    work: Work = field(default_factory=Work, compare=False, repr=False)
    """What is done for it, whatever the search puts in the place of the other fields."""

    @staticmethod
    def named(
        effort: str,
        objective: str,
        chips: int,
        microbatch: int | None,
        ids: tuple[int, ...] = (),
        cluster: Cluster | None = None,
    ) -> "Objective":
        """From words and figures; no microbatch: what suits the objective. Raises HostError for what is none."""
        for what, word, words in (("effort", effort, EFFORTS), ("objective", objective, OBJECTIVES)):
            if word not in words:
                raise HostError(f"compile: {what} {word!r} is not one of: {', '.join(words)}")
        firm = microbatch is not None
        if microbatch is None:
            microbatch = 1 if objective == "latency" else MICROBATCH
        for what, figure, most in (("chips", chips, MOST_CHIPS), ("microbatch", microbatch, 4096)):
            if not 1 <= figure <= most:
                raise HostError(f"compile: {what} {figure} is not between 1 and {most}")
        return Objective(
            effort=effort,
            objective=objective,
            chips=chips,
            microbatch=microbatch,
            firm=firm,
            ids=ids,
            cluster=cluster,
            work=Work.of(effort),
        )


ONE_BY_ONE = Objective("low", microbatch=1)
"""The first legal choice, for programs that follow each other on states in rams."""
