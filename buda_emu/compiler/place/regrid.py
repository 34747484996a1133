"""Divides an identity matmul in another way. Each row of cores holds its own tiles and encoding (OPS 6.2), so these are
made when the division is known.
"""

from collections.abc import Container, Iterator
from dataclasses import replace

from buda_emu.compiler.lower.picker import Cut, PickTable
from buda_emu.compiler.lower.tiles import Constant, TileGraph, TileOp, Use, divisors
from buda_emu.compiler.place.blocks import Blocks

MOST_PAIRS = 6000
"""Of one row of cores: its words stay in L1."""
MOST_INNER = 32
"""Tiles of the inner dimension in one strip."""


def cuts_of(op: TileOp, grid_rows: int, dest: int) -> Iterator[Cut]:
    """The ways to divide it over so many rows of cores."""
    table: PickTable = op.attrs["table"]
    block = op.shape[1] // grid_rows
    if table.counts(Cut(grid_rows)).pairs > MOST_PAIRS and grid_rows != op.attrs["rows"]:
        return
    for u_rt in (size for size in divisors(block) if size <= dest):
        for u_kt in (size for size in divisors(op.inner) if size <= MOST_INNER):
            cut = Cut(grid_rows, u_rt, u_kt)
            if table.fits(cut):
                yield cut


def as_cut(op: TileOp, cut: Cut) -> TileOp:
    """The op as the search sees it: counts without the encoding itself."""
    found = op.attrs["table"].counts(cut)
    attrs = {
        "strips": (found.strips,) * cut.grid_rows,
        "indices_len": found.pairs,
        "num_index_tiles": found.word_tiles,
        "num_sparse_tiles": found.tiles,
        "ublocks": found.ublocks,
    }
    return replace(op, grid=(cut.grid_rows, op.grid[1] if op.grid else 0), attrs={**op.attrs, **attrs})


def encoded(tiles: TileGraph, op: TileOp, blocks: Blocks) -> TileOp:
    """The op with the tiles and the encoding of its division; new constants are put into the graph."""
    cut = Cut(blocks.grid[0], blocks.ublock[0], blocks.u_kt)
    if "table" not in op.attrs or cut == Cut(op.attrs["rows"]):
        return op
    return repicked(tiles.constants, op, op.attrs["table"], cut)


def repicked(constants: dict[str, Constant], op: TileOp, table: PickTable, cut: Cut) -> TileOp:
    """The op with another table, divided in that way: its slices and rows, tiles and encoding; new constants are put
    among the others."""
    picker = table.picker(cut)
    kind = "picker" if picker.plain else "value"
    names = [_unused(constants, f"{op.name}.{what}", cut.grid_rows) for what in ("picker", "encoding")]
    constants[names[0]] = Constant(names[0], picker.tiles, kind)
    constants[names[1]] = Constant(names[1], picker.words, "words")
    attrs = {
        **op.attrs,
        "num_sparse_tiles": picker.tiles.shape[2] // 32,
        "num_index_tiles": picker.words.shape[2] // 32,
        "sparse_tile_ptr_bits": picker.tile_bits,
        "sparse_ublock_idx_bits": picker.ublock_bits,
        "strips": picker.strips,
        "indices_len": picker.pairs,
        "table": table,
    }
    uses = [Use(names[0]), op.uses[1], Use(names[1]), *op.uses[3:]]
    return replace(op, uses=uses, shape=(table.t, table.rows, op.shape[2]), attrs=attrs)


def _unused(constants: Container[str], stem: str, number: int) -> str:
    """A name that no constant has."""
    name = stem if stem not in constants else f"{stem}.{number}"
    while name in constants:
        name += "_"
    return name
