"""Trees of the example packages for tests to change."""

from collections.abc import Callable
from typing import Any

from buda_emu.foreign.darwinn.example import EXAMPLES, tree
from buda_emu.foreign.darwinn.linking import build

Tree = dict[str, Any]
EDGES, SPOTS = EXAMPLES


def edges() -> Tree:
    """The tree of the small example; a new one each time."""
    return tree(EDGES)


def main(tree: Tree) -> Tree:
    """Its executable that runs."""
    return tree["executables"][0]


def caching(tree: Tree) -> Tree:
    """Its executable that caches parameters."""
    return tree["executables"][1]


def hints(tree: Tree) -> list[Tree]:
    """The DMA list of the main executable."""
    return main(tree)["dma_hints"]["hints"]


def hint(tree: Tree, number: int) -> Tree:
    """The content of a hint."""
    return hints(tree)[number]["any_hint"]


def chunk(tree: Tree) -> Tree:
    """The main executable's chunk."""
    return main(tree)["instruction_bitstreams"][0]


def field(tree: Tree, number: int) -> Tree:
    """A field of that chunk."""
    return chunk(tree)["field_offsets"][number]


def grid(tree: Tree) -> Tree:
    """The output with a layout."""
    return main(tree)["output_layers"][0]


def layout(tree: Tree) -> Tree:
    """Its layout."""
    return grid(tree)["any_layer"]["layout"]


def unchanged(tree: Tree) -> None:
    """No edit."""


def changed(edit: Callable[[Tree], object]) -> bytes:
    """The package after an edit."""
    given = edges()
    edit(given)
    return build(given)
