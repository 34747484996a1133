"""Formats and fidelity op by op: rules on names (`--mixed FILE`), and formats of values that hold both numbers and
masks.
"""

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.compiler.lower.tiles import TileGraph, TileOp
from buda_emu.compiler.target import ACC_CHOICES, DF_CHOICES, FIDELITIES, Precision, Target
from buda_emu.spec.formats import FORMATS
from buda_emu.support.errors import HostError
from buda_emu.support.files import read_yaml

Mixed = str | Path | Sequence[Mapping[str, Any]] | None
"""Rules as `compile` takes them."""
_WORDS: Final = {"df": DF_CHOICES, "acc_df": ACC_CHOICES, "fidelity": FIDELITIES}


@dataclass(frozen=True, slots=True)
class Rule:
    """Ops whose name, or that of a node of the model that they stand for, matches a pattern (`*`, `?`, `[...]`)."""

    match: str
    precision: Precision

    def fits(self, op: TileOp) -> bool:
        """Whether an op is meant."""
        return any(fnmatch.fnmatchcase(name, self.match) for name in (op.name, *op.sources))


def read_rules(source: Mixed, target: Target) -> list[Rule]:
    """Of a YAML or JSON file, or its content: a list of maps with `match` and some of df, acc_df, fidelity. Raises
    HostError for what is no such list, for words that are not known and for formats that cannot stand beside --df."""
    if source is None:
        return []
    where = "mixed"
    items = cast("Any", source)
    if isinstance(source, (str, Path)):
        where = str(source)
        items = read_yaml(source, "rules of formats")
    if not isinstance(items, (list, tuple)):
        raise HostError(f"{where}: not a list of maps with `match`, and df, acc_df or fidelity")
    return [_rule(f"{where}: rule {number}", item, target) for number, item in enumerate(cast("list[Any]", items), 1)]


def _rule(where: str, item: Any, target: Target) -> Rule:
    if not isinstance(item, dict) or not isinstance(cast("dict[str, Any]", item).get("match"), str):
        raise HostError(f"{where}: not a map with a pattern `match`, as {{match: layer.0.*, df: Bfp8_b}}")
    fields = cast("dict[str, Any]", item)
    for key, word in fields.items():
        if key != "match" and key not in _WORDS:
            raise HostError(f"{where}: {key!r} is not one of: match, {', '.join(_WORDS)}")
        if key != "match" and word not in _WORDS[key]:
            raise HostError(f"{where}: {key} {word!r} is not one of: {', '.join(filter(None, _WORDS[key]))}")
    df = fields.get("df", "")
    if df and _family(df) != _family(target.activation_df):
        # FRONTEND 3.5: all operands of an op share the width of their exponents.
        raise HostError(f"{where}: df {df} has another exponent width than --df {target.activation_df}")
    if target.arch.name == "grayskull" and "Float32" in (df, fields.get("acc_df")):
        raise HostError(f"{where}: grayskull has no Float32")
    return Rule(fields["match"], Precision(df, fields.get("acc_df", ""), fields.get("fidelity", "")))


def _family(df: str) -> str:
    return "b" if df == "Float32" else str(FORMATS[df].family)


def assign(tiles: TileGraph, rules: Sequence[Rule]) -> None:
    """Gives every op its formats; of rules that name the same the last one holds. Pickers and maxima over z give what
    they take (V-rules of `reduce`, FRONTEND 3.5), so they have the format of their operand's op."""
    for op in tiles.ops.values() if rules else ():
        if op.precision != Precision():
            continue
        own = precision_of(op, rules)
        df = own.df
        if op.kept_format_of:
            source = tiles.ops.get(op.kept_format_of)
            df = source.precision.df if source is not None else ""
        op.precision = replace(own, df=df)


def precision_of(op: TileOp, rules: Sequence[Rule]) -> Precision:
    """The formats that an op has, or that rules give it."""
    if op.precision != Precision():
        return op.precision  # integers, and what becomes of them, have the only formats that they can have
    df = ""
    acc = ""
    fidelity = ""
    for rule in rules:
        if rule.fits(op):
            own = rule.precision
            df = own.df or df
            acc = own.acc_df or acc
            fidelity = own.fidelity or fidelity
    return Precision(df, acc, fidelity)


def widen(tiles: TileGraph) -> None:
    """What writes a state gives the format of its ram (V079), whatever rules or masks have said of it; a program that
    changes a state that is kept in a format of its own computes in that (a sum is only added to)."""
    stored = {store.op: tiles.states[store.queue].df for store in tiles.stores.values()}
    changes = {store.op: store for store in tiles.stores.values() if not store.accumulate}
    wide = {tiles.ops[name].program: stored[name] for name in changes if stored[name]}
    for op in tiles.ops.values():
        if op.name in stored or op.program in wide:
            op.precision = replace(op.precision, df=stored.get(op.name, wide.get(op.program, "")))


def tell_readers(tiles: TileGraph, target: Target) -> None:
    """Gives ops the formats of their operands, for the room that these take. Constants have their reader's."""
    formats = {name: target.activation_df for name, queue in tiles.inputs.items() if not queue.indices}
    formats |= {name: state.df or target.activation_df for name, state in tiles.states.items()}
    formats |= {op.name: target.of(op.precision).activation_df for op in tiles.ops.values()}
    for op in tiles.ops.values():
        own = formats[op.name]
        reads = tuple(formats.get(use.source, own) for use in op.uses)
        if any(df != own for df in reads):
            op.precision = replace(op.precision, reads=reads)


def wide_df(df: str, target: Target) -> str:
    """A format that states may be kept in beside the model's. Raises HostError for another."""
    if df not in ("", "Float32"):
        raise HostError(f"compile: optimizer_df {df!r} is not one of: Float32")
    if df and (_family(target.activation_df) != "b" or target.arch.name == "grayskull"):
        where = f"--df {target.df} on {target.arch.name}"
        raise HostError(f"compile: optimizer_df Float32 cannot be combined with {where}")
    return df


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
