"""Formats of values that hold both numbers and masks.

In a block format sixteen numbers of a row share an exponent (FORMATS 4): beside -2^100, or -10000, nothing is left of a
score. So what may hold both is given 16 bits for each number, as sums inside of an op are anyway.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from buda_emu.compiler.lower.tiles import TileGraph, TileOp
from buda_emu.compiler.target import Target
from buda_emu.spec.formats import FORMATS
from buda_emu.tensor.referenced import Referenced

_LARGE: Final = 4096.0
"""Constants from here on are taken for masks, or for what makes a step of a difference."""
_ENDS: Final = frozenset({"exp", "sigmoid", "tanh", "reciprocal"})
"""Ops whose results are small whatever they are given."""


def keep_apart(tiles: TileGraph, target: Target) -> None:
    """Gives the results of ops that may hold masks beside numbers 16 bits, unless they have formats of their own."""
    large = large_values(tiles, target)
    for op in tiles.ops.values():
        if op.name in large and op.precision.df == "":
            op.precision = replace(op.precision, df=target.output_df)


def large_values(tiles: TileGraph, target: Target) -> set[str]:
    """Constants, and ops whose results may hold masks beside numbers that have less than 16 bits."""
    if FORMATS[target.activation_df].kind != "block":
        return set()
    large = {
        name
        for name, constant in tiles.constants.items()
        if constant.kind == "value" and constant.values.size and _reaches(constant.values, _LARGE)
    }
    for op in tiles.ops.values():
        if _is_large(op, large):
            large.add(op.name)
    return large


def _reaches(values: Any, least: float) -> bool:
    if isinstance(values, Referenced):
        return values.bound() >= least and any(_reaches(block, least) for block in values.blocks())
    return bool(np.abs(values).max() >= least)


def _is_large(op: TileOp, large: set[str]) -> bool:
    """Whether the result may be as large as a constant that is."""
    inputs = {f"input{number}": use.source in large for number, use in enumerate(op.uses)}
    if not op.steps:
        return any(inputs.values()) and op.type not in _ENDS and not _is_clamped(op.attrs)
    held = inputs
    for step in op.steps:
        found = any(held.get(name, False) for name in step.inputs)
        held[step.output] = found and step.type not in _ENDS and not _is_clamped(step.attrs)
    return held["output"]


def _is_clamped(attrs: Mapping[str, Any]) -> bool:
    """Between 0 and a small threshold (OPS 6.13)."""
    return attrs.get("relu_mode") == "max" and float(attrs.get("relu_threshold", 0.0)) < _LARGE
