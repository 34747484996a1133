#!/usr/bin/env python3
"""Draw the small model of docs/compile/compile.md twice: as the compiler's graph, and as its netlist on the grid of
cores.

    python tools/draw_compile.py      # writes docs/pictures/compile_graph.svg and docs/pictures/compile_grid.svg

Needs `onnx`. What is drawn hangs on where the compiler places: run it again when that changes.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import networkx as nx
import numpy as np
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import buda_emu as be  # noqa: E402 - found through the path above
from buda_emu.compiler.compiled import CompiledModel  # noqa: E402
from buda_emu.compiler.graph.graph import Graph, Node  # noqa: E402
from buda_emu.report.pictures.grid_svg import (  # noqa: E402
    grid_svg,
    text,
    width_of,
)

SIZE = 11.0
HEIGHT = 34.0
GAP = 22.0
MARGIN = 12.0
ASIDE = 60.0
STYLE = """<style>
.cg{--ink:#1b1f24;--soft:#59616b;--line:#8a929c;--box:#fff;--page:#f4f5f7;
font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;background:var(--page)}
.cg text{fill:var(--ink)}.cg .soft{fill:var(--soft)}.cg .box{fill:var(--box);stroke:var(--line)}
.cg .held{stroke-dasharray:4 3}.cg .edge{fill:none;stroke:var(--line);stroke-width:1.3}.cg .tip{fill:var(--line)}
@media (prefers-color-scheme:dark){.cg{--ink:#e6e9ed;--soft:#a3acb7;--line:#7d8792;--box:#1b1f24;--page:#12161b}}
</style>"""


def classifier() -> CompiledModel:
    """Return the model of the first example of docs/compile/compile.md."""
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal(shape, np.float32) / 6 for shape in ((40, 50), (50, 10)))
    nodes = [
        helper.make_node("MatMul", ["x", "first.weight"], ["hidden"], name="first"),
        helper.make_node("Relu", ["hidden"], ["active"], name="relu"),
        helper.make_node("MatMul", ["active", "second.weight"], ["scores"], name="second"),
        helper.make_node("Softmax", ["scores"], ["y"], name="softmax", axis=-1),
    ]
    held = [numpy_helper.from_array(first, "first.weight"), numpy_helper.from_array(second, "second.weight")]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 40])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 10])]
    graph = helper.make_graph(nodes, "classifier", inputs, outputs, held)
    return be.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))


def _is_single_number(node: Node) -> bool:
    """Return whether a node is a constant of one element, which is not drawn."""
    return node.op == "constant" and node.value.size == 1


def _edges(nodes: Mapping[str, Node]) -> nx.DiGraph:
    """Return the names of nodes with an edge from each node to its readers."""
    edges: nx.DiGraph = nx.DiGraph()
    edges.add_nodes_from(nodes)
    for node in nodes.values():
        edges.add_edges_from((name, node.name) for name in node.inputs if name in nodes)
    return edges


def _rows(nodes: Mapping[str, Node], edges: nx.DiGraph) -> dict[int, list[str]]:
    """Return names by row: the distance from the inputs, for constants and inputs the row before their first reader."""
    level: dict[str, int] = {}
    for name in nx.topological_sort(edges):
        level[name] = max((level[before] + 1 for before in edges.predecessors(name)), default=0)
    for name, node in nodes.items():
        if node.op in ("constant", "input"):
            level[name] = min(level[reader] for reader in edges.successors(name)) - 1
    rows: dict[int, list[str]] = {}
    for name in nodes:
        rows.setdefault(level[name], []).append(name)
    return rows


def _places(
    rows: Mapping[int, Sequence[str]], wide: Mapping[str, float], full: float
) -> dict[str, tuple[float, float]]:
    """Return the middle of the upper edge of each box: rows are centred in the full width."""
    places: dict[str, tuple[float, float]] = {}
    for number, row in rows.items():
        x = (full - sum(wide[name] + GAP for name in row) + GAP) / 2
        for name in row:
            places[name] = (x + wide[name] / 2, MARGIN + number * (HEIGHT + GAP))
            x += wide[name] + GAP
    return places


def graph_svg(graph: Graph) -> str:
    """Return a picture of the graph: nodes in rows by their distance from the inputs, constants beside their
    readers."""
    nodes = {node.name: node for node in graph if not _is_single_number(node)}
    edges = _edges(nodes)
    rows = _rows(nodes, edges)
    lines = {name: (name, f"{node.op} {list(node.shape)}") for name, node in nodes.items()}
    wide = {name: max(width_of(line, SIZE) for line in pair) + 20 for name, pair in lines.items()}
    full = max(sum(wide[name] + GAP for name in row) for row in rows.values()) + 2 * (MARGIN + ASIDE)
    places = _places(rows, wide, full)
    high = max(y for _, y in places.values()) + HEIGHT + MARGIN
    box = f'width="{full:.0f}" height="{high:.0f}" viewBox="0 0 {full:.0f} {high:.0f}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" class="cg" {box}>', STYLE]
    for before, after in edges.edges:
        parts += _edge(places[before], places[after])
    for name, node in nodes.items():
        parts += _box(node, places[name], wide[name], lines[name])
    return "\n".join([*parts, "</svg>", ""])


def _edge(start: tuple[float, float], end: tuple[float, float]) -> Iterator[str]:
    """Yield an arrow from below one box to above another."""
    x = start[0]
    y = start[1] + HEIGHT
    to = end[0]
    bottom = end[1]
    bend = (bottom - y) / 2
    aside = 2 * ASIDE if bottom - y > GAP else 0  # past the boxes between
    yield f'<path class="edge" d="M{x:.1f} {y:.1f}C{x + aside:.1f} {y + bend:.1f} {to + aside:.1f} {bottom - bend:.1f} {to:.1f} {bottom - 5:.1f}"/>'  # noqa: E501
    yield f'<path class="tip" d="M{to - 4:.1f} {bottom - 6:.1f}h8l-4 6z"/>'


def _box(node: Node, place: tuple[float, float], width: float, lines: tuple[str, str]) -> Iterator[str]:
    """Yield the box of a node with its two lines."""
    x, y = place
    held = " held" if node.op in ("constant", "input") else ""
    yield f'<rect class="box{held}" x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="{HEIGHT}" rx="5"/>'
    yield text(x, y + 14, lines[0], SIZE, anchor="middle")
    yield text(x, y + 28, lines[1], SIZE - 1, "soft", anchor="middle")


def main() -> None:
    """Write both pictures."""
    model = classifier()
    pictures = ROOT / "docs" / "pictures"
    (pictures / "compile_graph.svg").write_text(graph_svg(model.graph))
    (pictures / "compile_grid.svg").write_text(grid_svg(model.netlist))


if __name__ == "__main__":
    main()
