"""Formats of values that hold both numbers and masks, or numbers and padding.

In a block format sixteen numbers of a row share an exponent (FORMATS 4): beside -2^100, or -10000, nothing is left of a
score; and beside a padding of 1/0 nothing is left of a reciprocal. So what may hold both is given 16 bits for each
number, as sums inside of an op are anyway. For masks, which are the model's own, the formats of `--mixed` come first;
for padding, of which no model knows, they do not.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from buda_emu.compiler.lower.tiles import TileGraph, TileOp
from buda_emu.compiler.target import Precision, Target
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


def keep_from_padding(tiles: TileGraph, target: Target) -> None:
    """Gives the results of ops that mix elements with padding 16 bits instead of a block format, whoever chose that."""
    mixed = mixed_with_padding(tiles)
    for op in tiles.ops.values():
        if op.name in mixed:
            found = without_blocks(op.precision, target)
            if found != op.precision:
                op.precision, op.avoids = found, target.of(op.precision).activation_df


def without_blocks(precision: Precision, target: Target) -> Precision:
    """With 16 bits for each number instead of a block format."""
    own = target.of(precision)
    return replace(precision, df=own.output_df) if FORMATS[own.activation_df].kind == "block" else precision


def mixed_with_padding(tiles: TileGraph) -> set[str]:
    """Ops whose results mix elements with padding that is not 0, and those that have to have the same format."""
    mixed = {op.name for op in tiles.ops.values() if op.mixes_padding}
    sources = {op.name: op.kept_format_of for op in tiles.ops.values()}
    for name in reversed(tiles.ops):
        if name in mixed and sources[name] in tiles.ops:
            mixed.add(sources[name])
    mixed.update(name for name in tiles.ops if sources[name] in mixed)
    return mixed


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
