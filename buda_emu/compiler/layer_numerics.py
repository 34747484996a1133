"""Why the chip's answer differs, layer by layer of the model (docs/run/numerics.md explains the figures)."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.graph.graph import Graph
from buda_emu.compiler.lower.layout import TILE, Layout, Piece
from buda_emu.compiler.lower.tiles import Shape, TileGraph
from buda_emu.compiler.place.placement import Placement
from buda_emu.report.terminal.text import correlation, table
from buda_emu.verify.op_by_op.numerics_result import OpNumerics, own_error
from buda_emu.version import RESULT_VERSION

SHOWN: Final = 5
"""Repairs that the text has; `layers` have all."""


@dataclass(frozen=True, slots=True)
class LayerNumerics:
    """One layer. `error`, `pcc`: of its result in the whole run, with what its operands brought along; `worst`: that of
    its netlist `ops` with the largest error of its own."""

    layer: str
    error: float | None
    pcc: float | None
    worst: OpNumerics
    ops: tuple[OpNumerics, ...]

    @property
    def own(self) -> float:
        """The largest error that one of its ops makes by itself."""
        return own_error(self.worst)


@dataclass(frozen=True, slots=True)
class ModelNumerics:
    """All layers, in the order in which they run."""

    model: str
    arch: str
    layers: tuple[LayerNumerics, ...]

    def worst(self, count: int) -> tuple[LayerNumerics, ...]:
        """The layers with the largest errors of their own."""
        return tuple(sorted(self.layers, key=lambda layer: -layer.own)[:count])

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"schema_version": RESULT_VERSION, **asdict(self)}

    def __str__(self) -> str:
        """A table, and what would repair the worst layers."""
        headers = ("layer", "run: error", "PCC", "op: error", "op", "main cause")
        lines = [table(headers, (_row(layer) for layer in self.layers), right=(1, 2, 3))]
        lines += ["", *(line for layer in self.worst(SHOWN) for line in _repair(layer.worst))]
        return f"{self.model} ({self.arch})\n\n" + "\n".join(lines).rstrip()


def _row(layer: LayerNumerics) -> tuple[str, ...]:
    error = "-" if layer.error is None else f"{layer.error:.1e}"
    cause = layer.worst.cause or "-"
    return layer.layer, error, correlation(layer.pcc), f"{layer.own:.1e}", layer.worst.name, str(cause)


def _repair(op: OpNumerics) -> Iterator[str]:
    if op.repair is not None:
        changes = " and ".join(f"{change.field} {change.before} -> {change.after}" for change in op.repair.changes)
        yield f"op {op.name}: {changes}: {own_error(op):.1e} -> {op.repair.error:.1e}"


def layer_of(graph: Graph, placement: Placement, op: str) -> str:
    """The layer of the model that an op of the netlist belongs to; a fused op to that of its last part."""
    source = placement.ops[op].op.source
    return graph[source].source or source


def elements_of(tiles: TileGraph) -> Callable[[str], NDArray[np.bool_] | None]:
    """Of an op by name, which numbers of its tiles [tiles, 1024] are elements of the model; None where all are, and
    where nobody knows."""
    layouts = _layouts(tiles)

    def of(name: str) -> NDArray[np.bool_] | None:
        layout = layouts.get(name)
        if layout is None or (layout.rows_full and layout.columns_full):
            return None
        found = layout.elements
        return found if found.size == prod(tiles.ops[name].shape) * TILE**2 else None

    return of


def _layouts(tiles: TileGraph) -> dict[str, Layout]:
    """Of tensors, as far as they are known: those that hold a value of the model, what goes in and out, and what is
    computed of these tile by tile."""
    found = {name: _leading(queue.view, queue.shape) for name, queue in tiles.inputs.items() if not queue.indices}
    found |= {queue.op: _leading(queue.view, tiles.shape_of(queue.op)) for queue in tiles.outputs.values()}
    found |= dict(tiles.places.values())
    for op in tiles.ops.values():
        sources = (use.source for use in op.uses if not use.tms) if op.is_tile_by_tile else ()
        known = next((name for name in sources if name in found and tiles.shape_of(name) == op.shape), "")
        if known:
            found.setdefault(op.name, found[known])
    return found


def _leading(view: tuple[int, int, int], shape: Shape) -> Layout:
    """The first slices, rows and columns of a tensor of tiles."""
    t, rows, columns = shape
    dims = tuple((Piece(size, axis, 1),) for size, axis in zip(view, "zrc", strict=True))
    return Layout(dims, (t, rows * TILE, columns * TILE))


def by_layer(graph: Graph, placement: Placement, ops: tuple[OpNumerics, ...]) -> ModelNumerics:
    """Figures of netlist ops gathered by the layers that they are made of."""
    gathered: dict[str, list[OpNumerics]] = {}
    for op in ops:
        gathered.setdefault(layer_of(graph, placement, op.name), []).append(op)
    layers = [
        LayerNumerics(name, found[-1].total.rms, found[-1].total.pcc, max(found, key=own_error), tuple(found))
        for name, found in gathered.items()
    ]
    return ModelNumerics(graph.name, placement.target.title, tuple(layers))
