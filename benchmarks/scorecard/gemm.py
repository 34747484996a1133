"""Whole-chip products, the rows of `gemm.csv`: modelled cycles beside those of the measured math kernel.

Each core has a block of the result, and sums it over blocks of the inner dimension. Before a block of the inner
dimension can be multiplied, both operands' parts of it must have arrived: from the first core of each column, which
reads in1 out of DRAM and then multicasts it down the column, and from the core of each row that holds or reads in0.
What arrives and what is multiplied overlap, as two buffers allow; the slower of both sets the pace. Nothing here is
fitted to these rows: cycles on a core are those of `op_cost`, and cycles on the way those of `transfer_cycles`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product as pairs
from typing import Final, Literal

from buda_emu.performance.timing import OpCall, Transactions, op_cost, transfer_cycles
from buda_emu.spec.boards import board
from buda_emu.spec.devices import Core, Device, device
from buda_emu.spec.formats import tile_bytes
from buda_emu.support.errors import HostError

from .noc import BANKS

ARCHS: Final = {"N150": "wormhole_b0", "P150": "blackhole"}
FORMATS: Final = {"BFLOAT16": "Float16_b", "BFLOAT8_B": "Bfp8_b", "BFLOAT4_B": "Bfp4_b"}
PHASES: Final = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}
TILE: Final = 32
L1_SHARE: Final = 0.9
"""Of the L1 that buffers may use: the rest is left to whatever else a kernel keeps there."""
DST_TILES: Final = 8  # that the 16-bit Dst register holds, half of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocking:
    """The way in which a core's part of the result is cut, in tiles: blocks of the result, subblocks of these, and the
    depth of a block of the inner dimension."""

    depth: int
    block: tuple[int, int]
    subblock: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Product:
    """One row: in0 (M x K) times in1 (K x N), on `grid` columns and rows of cores."""

    board: str
    tuned: bool
    shape: tuple[int, int, int]  # M, K, N
    grid: tuple[int, int]
    df: str
    fidelity: str
    in0_in_dram: bool
    out_in_dram: bool
    blocking: Blocking | None
    utilization: float | None
    ns: float | None

    @property
    def arch(self) -> str:
        """Return the architecture of the board."""
        return ARCHS[self.board]

    @cached_property
    def chip(self) -> Device:
        """Return the chip with as many rows and columns as the product uses."""
        columns, rows = self.grid
        return device(self.arch).with_grid(rows, columns)

    @property
    def tile(self) -> int:
        """Return the bytes of a tile in memory."""
        return tile_bytes(self.df, TILE, TILE, self.chip.alignment, False)

    @property
    def inner(self) -> int:
        """Return the tiles of the inner dimension."""
        return -(-self.shape[1] // TILE)

    @property
    def per_core(self) -> tuple[int, int]:
        """Return rows and columns of the result on one core, in tiles."""
        columns, rows = self.grid
        return -(-self.shape[0] // (TILE * rows)), -(-self.shape[2] // (TILE * columns))

    @property
    def kernel_cycles(self) -> float | None:
        """Return the measured cycles of the math kernel, if the row states its utilization."""
        if self.utilization is None:
            return None
        m, k, n = self.shape
        products = m * k * n / TILE**3 / (self.grid[0] * self.grid[1])
        return products * 16 * PHASES[self.fidelity] * 100 / self.utilization


def parse_product(row: Mapping[str, str], place: str) -> Product:
    """Return one row of a table of products. Raises HostError that names its place."""
    try:
        columns, _, rows = row["grid"].partition("x")
        name = row["board"].upper()
        if name not in ARCHS:
            raise ValueError(f"board {row['board']!r}")
        return Product(
            board=name,
            tuned=row.get("section") == "tuned",
            shape=(int(row["M"]), int(row["K"]), int(row["N"])),
            grid=(int(columns), int(rows)),
            df=FORMATS[row["dtype"]],
            fidelity=_fidelity(row["fidelity"]),
            in0_in_dram=row["in0_storage"] == "DRAM",
            out_in_dram=row["out_storage"] == "DRAM",
            blocking=_blocking(row),
            utilization=float(row["device_utilization"]) if row.get("device_utilization") else None,
            ns=float(row["ns"]) if row.get("ns") else None,
        )
    except (KeyError, ValueError) as error:
        raise HostError(f"{place}: not a row of measured products: {type(error).__name__} {error}") from None


def _fidelity(word: str) -> str:
    """Return a fidelity. Raises ValueError for another word."""
    if word not in PHASES:
        raise ValueError(f"fidelity {word!r}")
    return word


def _blocking(row: Mapping[str, str]) -> Blocking | None:
    """Return the blocking that a row states, None if it states none."""
    if not row.get("in0_block_w"):
        return None
    return Blocking(
        depth=int(row["in0_block_w"]),
        block=(int(row["out_block_h"]), int(row["out_block_w"])),
        subblock=(int(row["out_subblock_h"]), int(row["out_subblock_w"])),
    )


def predict(product: Product) -> float:
    """Return the modelled cycles of one product: with the blocking of the row, or else with the fastest."""
    if product.blocking is not None:
        return modelled_cycles(product, product.blocking)
    return min(modelled_cycles(product, blocking) for blocking in possible_blockings(product))


def error_topic(product: Product) -> str:
    """Return the topic of the family whose error a product has (`timing.uncertainty`)."""
    return f"whole-chip products, {'tuned' if product.tuned else 'out of the box'}"


def possible_blockings(product: Product) -> Iterator[Blocking]:
    """Yield blockings whose buffers fit L1: two of each operand, one of the result."""
    tall, wide = product.per_core
    room = L1_SHARE * product.chip.l1_data_bytes / product.tile
    resident = 0 if product.in0_in_dram else tall * -(-product.inner // product.grid[0])
    for height in _divisors(tall):
        for width in _divisors(wide):
            for depth in _divisors(product.inner):
                if depth <= 16 and resident + 2 * depth * (height + width) + height * width <= room:
                    yield Blocking(depth=depth, block=(height, width), subblock=_subblock(height, width))


def _divisors(number: int) -> Iterator[int]:
    """Yield the divisors of a number."""
    yield from (divisor for divisor in range(1, number + 1) if number % divisor == 0)


def _subblock(height: int, width: int) -> tuple[int, int]:
    """Return the largest subblock of a block that Dst holds, the widest of several."""
    sizes = pairs(_divisors(height), _divisors(width))
    fitting = (size for size in sizes if size[0] * size[1] <= DST_TILES)
    return max(fitting, key=lambda size: (size[0] * size[1], size[1]))


def modelled_cycles(product: Product, blocking: Blocking) -> float:
    """Return the modelled cycles with a blocking, never below the bounds."""
    tall, wide = product.per_core
    height, width = blocking.block
    results = -(-tall // height) * -(-wide // width)
    steps = results * -(-product.inner // blocking.depth)
    arrival = max(in1_cycles(product, blocking), in0_cycles(product, blocking))
    pace = max(math_cycles(product, blocking) / steps, arrival)
    return max(arrival + steps * pace + output_cycles(product, blocking), *bounds(product).values())


def math_cycles(product: Product, blocking: Blocking) -> float:
    """Return the cycles that a core needs for its part of the result, once its operands are there."""
    tall, wide = product.per_core
    height, width = blocking.block
    rows, columns = blocking.subblock
    call = OpCall(
        op_type="matmul",
        arch=product.arch,
        t=-(-tall // height) * -(-wide // width),
        mblock_m=height // rows,
        mblock_n=width // columns,
        ublock_rt=rows,
        ublock_ct=columns,
        m_k=-(-product.inner // blocking.depth),
        u_kt=blocking.depth,
        in0_df=product.df,
        in1_df=product.df,
        out_df=product.df,
        fidelity=product.fidelity,
        l1_acc=True,
    )
    return op_cost(call).core_cycles


def in1_cycles(product: Product, blocking: Blocking) -> float:
    """Return the cycles until a block of in1 is in the cores of its column: read out of DRAM by the first one, then
    multicast."""
    xs = product.chip.worker_columns
    ys = product.chip.worker_rows
    heads = tuple((x, ys[0]) for x in xs)
    tiles = blocking.depth * blocking.block[1]
    read = _dram_cycles(product.arch, "read", heads, product.tile, tiles)
    if len(ys) == 1:
        return read
    return read + _multicast_cycles(product.arch, heads[0], tuple((xs[0], y) for y in ys[1:]), product.tile * tiles)


def in0_cycles(product: Product, blocking: Blocking) -> float:
    """Return the cycles until a block of in0 is in the cores of its row; in L1 the cores of the row hold it in turn."""
    xs = product.chip.worker_columns
    ys = product.chip.worker_rows
    heads = tuple((xs[0], y) for y in ys)
    tiles = blocking.depth * blocking.block[0]
    cycles = _dram_cycles(product.arch, "read", heads, product.tile, tiles) if product.in0_in_dram else 0.0
    if len(xs) == 1:
        return cycles
    return cycles + _multicast_cycles(product.arch, heads[0], tuple((x, ys[0]) for x in xs[1:]), product.tile * tiles)


def output_cycles(product: Product, blocking: Blocking) -> float:
    """Return the cycles in which the last block of the result leaves for DRAM, 0 if it stays in L1."""
    if not product.out_in_dram:
        return 0.0
    xs = product.chip.worker_columns
    ys = product.chip.worker_rows
    cores = tuple((x, y) for y, x in pairs(ys, xs))
    height, width = blocking.block
    return _dram_cycles(product.arch, "write", cores, product.tile, height * width)


def bounds(product: Product) -> Mapping[str, float]:
    """Return the cycles that no kernel can go below: FPU, DRAM, and the port of a core on both NoCs."""
    chip = product.chip
    m, k, n = (-(-size // TILE) for size in product.shape)
    tall, wide = product.per_core
    stored = k * n + (m * k if product.in0_in_dram else 0) + (m * n if product.out_in_dram else 0)
    measured_board = board(product.board)
    peak = measured_board.dram_gbps * 1e9 / (measured_board.clock * 1e6)
    remote = k * wide + (k * tall if product.in0_in_dram else k * tall * (1 - 1 / product.grid[0]))
    return {
        "FPU": tall * wide * k * chip.product_cycles * PHASES[product.fidelity],
        "DRAM": stored * product.tile / peak,
        "NoC": remote * product.tile / (chip.nocs * chip.noc_bytes_per_clock),
    }


@cache
def _dram_cycles(arch: str, kind: Literal["read", "write"], cores: tuple[Core, ...], tile: int, tiles: int) -> float:
    """Return the cycles in which each of some cores moves tiles that lie over all banks in turn, on the NoC that suits
    this better."""
    banks = BANKS[arch]
    partners: list[tuple[Core, ...]] = []
    for number in range(len(cores)):
        begin = number % len(banks)
        partners.append((*banks[begin:], *banks[:begin]))
    transfers = Transactions(
        kind=kind, cores=cores, partners=tuple(partners), size=tile, count=tiles, noc=0, interleaved=True
    )
    return min(transfer_cycles(transfers, arch), transfer_cycles(replace(transfers, noc=1), arch))


@cache
def _multicast_cycles(arch: str, sender: Core, receivers: tuple[Core, ...], size: int) -> float:
    """Return the cycles in which a core multicasts a block."""
    multicast = Transactions(kind="linked multicast", cores=(sender,), partners=(receivers,), size=size)
    return transfer_cycles(multicast, arch)
