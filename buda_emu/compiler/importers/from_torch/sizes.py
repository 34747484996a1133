"""Inputs of an ExportedProgram: their names, and sizes that it leaves open, put in before it is read."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from buda_emu.compiler.importers.open_sizes import OpenSizes, how_to_give
from buda_emu.errors import HostError, UnsupportedError


def input_labels(program: Any) -> dict[str, str]:
    """The names of inputs as the module has them, by those of their placeholders, in which torch writes capitals
    small."""
    own = getattr(program.module_call_graph[0].signature, "forward_arg_names", None) or ()
    names = program.graph_signature.user_inputs
    return {name: next((item for item in own if item.lower() == name), name) for name in names if isinstance(name, str)}


def input_shapes(
    program: Any, model: str, inputs: Sequence[Any] | None, sizes: OpenSizes
) -> dict[str, tuple[int, ...]]:
    """Shapes of inputs with open sizes, by the names of their placeholders. Sizes of example inputs come first, then
    those that were given; one that is the same in several inputs is given once. Raises HostError for a size beyond the
    program's bounds, UnsupportedError naming one that nobody gave."""
    names = input_labels(program)
    nodes = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in names]
    values = [(node.name, node.meta["val"]) for node in nodes if isinstance(node.meta["val"], torch.Tensor)]
    shapes = {
        name: tuple(getattr(getattr(size, "node", None), "expr", size) for size in value.shape)
        for name, value in values
    }
    examples = dict(zip(shapes, map(np.shape, inputs or ()), strict=False))
    found: dict[Any, int] = {}
    for name, shape in shapes.items():
        for place, size in enumerate(shape):
            if getattr(size, "is_Symbol", False):
                given = sizes.of(names[name], place)
                value = examples[name][place] if name in examples else given
                if value is not None:
                    found.setdefault(size, _within(program, size, value, f"{model}: {names[name]}.{place}"))
    missing = [
        (names[name], place)
        for name, shape in shapes.items()
        for place, size in enumerate(shape)
        if getattr(size, "is_Symbol", False) and size not in found
    ]
    if missing:
        raise UnsupportedError(f"compile: {model}: not supported: {how_to_give(*missing[0])}")
    return {
        name: tuple(int(size if isinstance(size, int) else size.subs(found)) for size in shape)
        for name, shape in shapes.items()
        if not all(isinstance(size, int) for size in shape)
    }


def _within(program: Any, symbol: Any, value: int, what: str) -> int:
    bounds = program.range_constraints.get(symbol)
    if bounds is not None and not bounds.lower <= value <= bounds.upper:
        raise HostError(f"compile: {what}={value}: the program takes {bounds.lower} to {bounds.upper}")
    return value
