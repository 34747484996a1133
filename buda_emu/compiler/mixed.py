"""Formats and fidelity op by op: rules on names (`--mixed FILE`), and formats of values that hold both numbers and
masks.
"""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.compiler.lower.tiles import TileGraph, TileOp
from buda_emu.compiler.target import ACC_CHOICES, DF_CHOICES, Precision, Target
from buda_emu.spec.formats import FORMATS
from buda_emu.spec.precision import FIDELITIES
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.files import read_yaml

Mixed = str | Path | Sequence[Mapping[str, Any]] | None
"""Rules as `compile` takes them: the path of a file, or a sequence of maps."""
_WORDS: Final = {"df": DF_CHOICES, "acc_df": ACC_CHOICES, "fidelity": FIDELITIES}


@dataclass(frozen=True, slots=True)
class Rule:
    """A precision for the ops whose name, or that of a node of the model they stand for, matches a pattern (`*`, `?`,
    `[...]`)."""

    match: str
    precision: Precision
    place: str = ""
    """Where the rule stands, for messages."""

    def fits(self, op: TileOp) -> bool:
        """Return whether the rule applies to an op."""
        return any(fnmatch.fnmatchcase(name, self.match) for name in (op.name, *op.sources))


def read_rules(source: Mixed, target: Target) -> list[Rule]:
    """Read rules from a YAML or JSON file, or from its content: a list of maps with `match` and some of df, acc_df,
    fidelity. Raises HostError for another structure, for unknown words, and for formats that cannot be combined with
    --df."""
    if source is None:
        return []
    place = "mixed"
    entries = cast("Any", source)
    if isinstance(source, (str, Path)):
        place = str(source)
        entries = read_yaml(source, "rules of formats")
    if not isinstance(entries, (list, tuple)):
        raise HostError(f"{place}: not a list of maps with `match`, and df, acc_df or fidelity")
    return [
        _read_rule(f"{place}: rule {number}", entry, target)
        for number, entry in enumerate(cast("list[Any]", entries), 1)
    ]


_SHOWN_NAMES: Final = 5  # examples in a message, so that it stays short


def _read_rule(place: str, entry: Any, target: Target) -> Rule:
    """Return the rule that one entry of a file or sequence states. Raises HostError naming the entry's `place` if it is
    no rule, or has formats that cannot be combined with the target's."""
    if not isinstance(entry, dict) or not isinstance(cast("dict[str, Any]", entry).get("match"), str):
        raise HostError(f"{place}: not a map with a pattern `match`, as {{match: layer.0.*, df: Bfp8_b}}")
    fields = cast("dict[str, Any]", entry)
    for key, word in fields.items():
        if key != "match":
            _check_word(place, key, word)
    df = fields.get("df", "")
    if df and _exponent_family(df) != _exponent_family(target.activation_df):
        # FRONTEND 3.5: all operands of an op share the width of their exponents.
        raise HostError(f"{place}: df {df} has another exponent width than --df {target.activation_df}")
    if target.arch.name == "grayskull" and "Float32" in (df, fields.get("acc_df")):
        raise HostError(f"{place}: grayskull has no Float32")
    return Rule(fields["match"], Precision(df, fields.get("acc_df", ""), fields.get("fidelity", "")), place)


def _check_word(place: str, key: str, word: Any) -> None:
    """Raise HostError for an unknown key, or for a word that is not one of the key's."""
    if key not in _WORDS:
        raise HostError(f"{place}: {key!r} is not one of: match, {', '.join(_WORDS)}")
    if word not in _WORDS[key]:
        raise HostError(f"{place}: {key} {word!r} is not one of: {', '.join(filter(None, _WORDS[key]))}")


def _exponent_family(df: str) -> str:
    """Return the exponent family of a format; Float32 goes with those of 8 bits, "b"."""
    if df == "Float32":
        return "b"
    return str(FORMATS[df].family)


def assign(tiles: TileGraph, rules: Sequence[Rule]) -> None:
    """Give every op that has no formats yet those of the last rule that fits it, in the graph itself. Pickers and
    maxima over z have the format of their operand's op, because they cannot change it (V-rules of `reduce`, FRONTEND
    3.5)."""
    for op in tiles.ops.values() if rules else ():
        if op.precision != Precision():
            continue
        precision = precision_of(op, rules)
        df = precision.df
        if op.kept_format_of:
            source = tiles.ops.get(op.kept_format_of)
            if source is not None:
                df = source.precision.df
            else:
                df = ""
        op.precision = replace(precision, df=df)


def idle_rules(graphs: Sequence[TileGraph], rules: Sequence[Rule]) -> Iterator[str]:
    """Yield a sentence for each rule that fits no op of any of the graphs, with the layers that the pattern may mean.
    A rule that fits an op and changes nothing, as that of another rule, is not among them."""
    ops = [op for tiles in graphs for op in tiles.ops.values()]
    for rule in rules:
        if not any(rule.fits(op) for op in ops):
            names = dict.fromkeys(name for op in ops for name in op.sources)
            hint = near(rule.match.rstrip("*"), names) or f"names are such as {', '.join(islice(names, _SHOWN_NAMES))}"
            yield f"{rule.place}: no op of the model matches {rule.match!r}: the rule changes nothing; {hint}"


def precision_of(op: TileOp, rules: Sequence[Rule]) -> Precision:
    """Return the formats that an op has already or, if it has none, those that the rules give it; each field is ""
    where no rule says it."""
    if op.precision != Precision():
        return op.precision  # integers, and what becomes of them, have the only formats that they can have
    df = ""
    acc = ""
    fidelity = ""
    for rule in rules:
        if rule.fits(op):
            precision = rule.precision
            df = precision.df or df
            acc = precision.acc_df or acc
            fidelity = precision.fidelity or fidelity
    return Precision(df, acc, fidelity)


def widen(tiles: TileGraph) -> None:
    """Give ops that write a state, in the graph itself, the format of its ram (V079), over the formats of rules and
    masks. A program that replaces a state with a format of its own computes in that format; one that only adds to a
    state does not."""
    stored = {store.op: tiles.states[store.queue].df for store in tiles.stores.values()}
    changes = {store.op: store for store in tiles.stores.values() if not store.accumulate}
    wide = {tiles.ops[name].program: stored[name] for name in changes if stored[name]}
    for op in tiles.ops.values():
        if op.name in stored or op.program in wide:
            op.precision = replace(op.precision, df=stored.get(op.name, wide.get(op.program, "")))


def tell_readers(tiles: TileGraph, target: Target) -> None:
    """Store in each op the formats of its operands where some differ from its own, because they determine the room that
    the operands take. A constant has the format of its reader."""
    formats = {name: target.activation_df for name, queue in tiles.inputs.items() if not queue.indices}
    formats |= {name: state.df or target.activation_df for name, state in tiles.states.items()}
    formats |= {op.name: target.of(op.precision).activation_df for op in tiles.ops.values()}
    for op in tiles.ops.values():
        own_df = formats[op.name]
        reads = tuple(formats.get(use.source, own_df) for use in op.uses)
        if any(df != own_df for df in reads):
            op.precision = replace(op.precision, reads=reads)


def wide_df(df: str, target: Target) -> str:
    """Return the format `df` of states that are wider than the model's values, "" for the model's own. Raises HostError
    for a format other than Float32, and if the chip or the model's format does not allow that."""
    if df not in ("", "Float32"):
        raise HostError(f"compile: optimizer_df {df!r} is not one of: Float32")
    if df and (_exponent_family(target.activation_df) != "b" or target.arch.name == "grayskull"):
        combination = f"--df {target.df} on {target.arch.name}"
        raise HostError(f"compile: optimizer_df Float32 cannot be combined with {combination}")
    return df


_LARGE: Final = 4096.0
"""Smallest magnitude of a constant that is taken for a mask, or for a factor that turns a difference into a step."""
_ENDS: Final = frozenset({"exp", "sigmoid", "tanh", "reciprocal"})
"""Ops whose results are small for any operand."""


def keep_apart(tiles: TileGraph, target: Target) -> None:
    """Give 16 bits, in the graph itself, to the results of ops that may hold masks beside numbers, unless the ops have
    their own formats."""
    large = large_values(tiles, target)
    for op in tiles.ops.values():
        if op.name in large and op.precision.df == "":
            op.precision = replace(op.precision, df=target.output_df)


def large_values(tiles: TileGraph, target: Target) -> set[str]:
    """Return the names of constants with numbers of at least `_LARGE`, as masks of attention have, and of ops whose
    results may be as large because they read one. In a block format such a number takes all digits from those that
    share its exponent, so these values need 16 bits. The set is empty unless the target's format is a block format."""
    if FORMATS[target.activation_df].kind != "block":
        return set()
    large = {
        name
        for name, constant in tiles.constants.items()
        if constant.kind == "value" and constant.values.size and _has_magnitude(constant.values, _LARGE)
    }
    for op in tiles.ops.values():
        if _may_be_large(op, large):
            large.add(op.name)
    return large


def keep_from_padding(tiles: TileGraph, target: Target) -> None:
    """Give 16 bits instead of a block format, in the graph itself, to the results of ops that mix elements with
    padding, even if a rule chose the block format."""
    mixed = mixed_with_padding(tiles)
    for op in tiles.ops.values():
        if op.name in mixed:
            precision = without_blocks(op.precision, target)
            if precision != op.precision:
                op.avoids = target.of(op.precision).activation_df
                op.precision = precision


def without_blocks(precision: Precision, target: Target) -> Precision:
    """Return the precision with 16 bits for each number if it has a block format."""
    op_target = target.of(precision)
    if FORMATS[op_target.activation_df].kind == "block":
        return replace(precision, df=op_target.output_df)
    return precision


def mixed_with_padding(tiles: TileGraph) -> set[str]:
    """Return the names of ops whose results mix elements with padding other than 0, and of ops that must have the same
    format as these."""
    mixed = {op.name for op in tiles.ops.values() if op.mixes_padding}
    sources = {op.name: op.kept_format_of for op in tiles.ops.values()}
    for name in reversed(tiles.ops):
        if name in mixed and sources[name] in tiles.ops:
            mixed.add(sources[name])
    mixed.update(name for name in tiles.ops if sources[name] in mixed)
    return mixed


def _has_magnitude(values: Any, least: float) -> bool:
    """Return whether the greatest magnitude of values is at least `least`; referenced ones are read block by block."""
    if isinstance(values, Referenced):
        return values.bound() >= least and any(_has_magnitude(block, least) for block in values.blocks())
    return bool(np.abs(values).max() >= least)


def _may_be_large(op: TileOp, large: set[str]) -> bool:
    """Return whether the result of an op may be as large as a large constant among its operands."""
    inputs = {f"input{number}": use.source in large for number, use in enumerate(op.uses)}
    if not op.steps:
        return any(inputs.values()) and op.type not in _ENDS and not _has_small_clamp(op.attrs)
    is_large = inputs
    for step in op.steps:
        reads_large = any(is_large.get(name, False) for name in step.inputs)
        is_large[step.output] = reads_large and step.type not in _ENDS and not _has_small_clamp(step.attrs)
    return is_large["output"]


def _has_small_clamp(attrs: Mapping[str, Any]) -> bool:
    """Return whether the attributes clamp the op's result between 0 and a threshold below `_LARGE` (OPS 6.13)."""
    return attrs.get("relu_mode") == "max" and float(attrs.get("relu_threshold", 0.0)) < _LARGE
