"""All fusions of netlist ops, in their order."""

from buda_emu.compiler.fuse.activation import fuse_activation
from buda_emu.compiler.fuse.bias import fuse_bias
from buda_emu.compiler.fuse.chains import Wanted, fuse_chains
from buda_emu.compiler.fuse.half_tiles import fuse_half_tiles
from buda_emu.compiler.fuse.relu import fuse_relu
from buda_emu.compiler.fuse.spreads import fuse_spreads
from buda_emu.compiler.lower.tiles import TileGraph
from buda_emu.compiler.target import Target


def fuse(tiles: TileGraph, target: Target, wanted: Wanted = lambda _, __: True) -> TileGraph:
    """Biases, activations and clamps into the ops before them, then chains of what is left, which spread maxima and
    numbers of rows themselves; `wanted` as `fuse_chains` has it. The graph itself is changed, its values are the
    same."""
    fuse_activation(fuse_bias(tiles))
    fuse_relu(tiles)
    return fuse_half_tiles(fuse_spreads(fuse_chains(tiles, target, wanted)))
