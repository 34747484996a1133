"""Configurations made small by the names of their words: layers, widths, heads, vocabularies, images."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from math import gcd
from typing import Any, Final

WIDTH: Final = 64
"""The width of the residual stream."""
VOCABULARY: Final = 211
HEADS: Final = 4
IMAGE: Final = 64
POSITIONS: Final = 64
LAYERS: Final = 2
_HIDDEN: Final = ("hidden_size", "d_model", "n_embd", "embed_dim", "emb_dim", "dim", "width", "hidden_dim")
"""Names of the width of the residual stream, the first that there is."""

_LAYERS: Final = re.compile(r"(^|_)(layers?|n_layers?|num_layers?|num_blocks|n_blocks|depth|depths)$|num_hidden_layers")
_NO_LAYERS: Final = re.compile(r"feat_extract|conv_layers|mlp_layers|fc_layers|norm_layer|feature_layer")
_KINDS: Final = re.compile(r"layer_types$|layers_block_type$|block_types$")
"""Lists of the kind of each layer."""
_HEADS: Final = re.compile(r"(^|_)(heads?|n_heads?|num_heads?)$|attention_heads")
_GROUPED_HEADS: Final = re.compile(r"key_value_heads|kv_heads|multi_query_group")
_HEAD_DIM: Final = re.compile(r"head_dim$|^d_kv$|^d_head$|head_size$|^kv_channels$")
_ROTARY: Final = re.compile(r"rope_head_dim|nope_head_dim|rotary_dim|rotary_emb")
_VOCABULARY: Final = re.compile(r"vocab_size|num_embeddings$|n_vocab")
_TOKEN: Final = re.compile(r"token_(id|index)s?$|_id$|_ids$")
_POSITIONS: Final = re.compile(r"max_.*position|n_positions|n_ctx|max_seq|max_length|context_length|max_sequence")
_IMAGE: Final = re.compile(r"image_size$|img_size$|input_size$")
_WINDOW: Final = re.compile(r"^window_size$")
_EXPERTS: Final = re.compile(r"(num|n)_.*experts$|moe_num_experts|num_experts|n_routed_experts")
_CHOSEN: Final = re.compile(r"per_tok|top_?k$|experts_top|moe_topk|moe_k$")
_GROUPS: Final = {"n_group": 2, "topk_group": 1, "num_expert_group": 2}
_WIDTHS: Final = re.compile(
    r"hidden_sizes?$|d_model|n_embd|n_inner|_dims?$|^dims?$|intermediate_size|ffn|_rank$|d_ff|d_inner|width$|channels$"
    r"|projection_size|embedding_size|state_size|feature_size|hidden_dims?$|_inner_size|embed_dims?$|^c_"
)
_KEPT: Final = re.compile(r"num_channels|in_channels|out_channels|kernel|stride|image_channels|factor|ratio|codebook")


@dataclass(frozen=True, slots=True)
class _Scale:
    """The factor of widths of one configuration, and the widths of all residual streams, which become one width."""

    hidden: int
    streams: frozenset[int]
    widths: bool

    def width(self, value: int) -> int:
        """Return a width in the small configuration."""
        if not self.widths or value <= 16:
            return value
        if value in self.streams:
            return WIDTH
        return max(8, round(value * WIDTH / self.hidden / 8) * 8)


def shrink_words(words: Mapping[str, Any], *, widths: bool = True) -> dict[str, Any]:
    """Return the words of a configuration, and of those in it, with small values; widths stay if not `widths`."""
    return _shrink(words, frozenset(_streams(words)), widths)


def _streams(words: Mapping[str, Any]) -> list[int]:
    """Return the widths of the residual streams of a configuration and of those in it."""
    configs = [inner for inner in words.values() if isinstance(inner, Mapping)]
    streams = list(chain.from_iterable(map(_streams, configs)))
    hidden = _hidden(words)
    return [*streams, hidden] if hidden else streams


def _hidden(words: Mapping[str, Any]) -> int:
    """Return the width of the residual stream; 0 if no word has it."""
    return next((words[name] for name in _HIDDEN if isinstance(words.get(name), int)), 0)


def _shrink(words: Mapping[str, Any], streams: frozenset[int], widths: bool) -> dict[str, Any]:
    """Return the words of one configuration with small values."""
    scale = _Scale(hidden=_hidden(words) or max(streams, default=768), streams=streams, widths=widths)
    small: dict[str, Any] = {}
    tokens = 0
    for name, value in words.items():
        match value:
            case Mapping():
                small[name] = _mapping(value, streams, widths, _layers(words))
            case bool() | None:
                small[name] = value
            case _ if _TOKEN.search(name):
                small[name], tokens = _token(value, tokens)
            case int():
                small[name] = _number(name, value, words, scale)
            case [_, *_]:
                small[name] = _list(name, list(value), words, scale)
            case _:
                small[name] = value
    return small


def _mapping(value: Mapping[Any, Any], streams: frozenset[int], widths: bool, layers: int) -> dict[Any, Any]:
    """Return an inner configuration in small; of a table by numbers the lines that layers may have."""
    if all(isinstance(key, str) for key in value):
        return _shrink(value, streams, widths)
    return {key: line for key, line in value.items() if isinstance(key, int) and key < layers}


def _token(value: Any, count: int) -> tuple[Any, int]:
    """Return a token of the small vocabulary for each of the large one; `count` are behind 190 already."""
    if isinstance(value, list):
        return [_token(inner, count)[0] for inner in value], count + 1
    if isinstance(value, int) and value >= 190:
        return 190 + count % 20, count + 1
    return value, count


def _number(name: str, value: int, words: Mapping[str, Any], scale: _Scale) -> int:
    """Return a number of a configuration made small by the name of its word."""
    for pattern, small in (
        (_VOCABULARY, min(value, VOCABULARY)),
        (_POSITIONS, min(value, POSITIONS)),
        (_CHOSEN, min(value, 2)),
        (_EXPERTS, min(value, 4)),
    ):
        if pattern.search(name):
            return small
    if name in _GROUPS:
        return min(value, _GROUPS[name])
    if _IMAGE.search(name):
        return _image(value, words)
    if _LAYERS.search(name) and not _NO_LAYERS.search(name):
        return min(value, _layers(words))
    if scale.widths:
        return _width(name, value, words, scale)
    return value


def _layers(words: Mapping[str, Any]) -> int:
    """Return the number of layers: two, or one of each type."""
    kinds = [len(dict.fromkeys(value)) for name, value in words.items() if _KINDS.search(name) and value]
    return max(LAYERS, *kinds) if kinds else LAYERS


def _image(value: int, words: Mapping[str, Any]) -> int:
    """Return a small size of an image that patches divide."""
    patch = words.get("patch_size")
    if isinstance(patch, int) and IMAGE % patch:
        return min(value, 4 * patch)
    return min(value, IMAGE)


def _width(name: str, value: int, words: Mapping[str, Any], scale: _Scale) -> int:
    """Return a width, or a number of heads, made small by the name of its word."""
    if _WINDOW.search(name):
        return min(value, 4)
    if _GROUPED_HEADS.search(name):
        return _grouped_heads(value, words)
    if _HEADS.search(name):
        return min(value, HEADS)
    if _ROTARY.search(name):
        return min(value, 8)
    if _HEAD_DIM.search(name):
        return min(value, WIDTH // HEADS)
    if _WIDTHS.search(name) and not _KEPT.search(name):
        return scale.width(value)
    return value


def _grouped_heads(value: int, words: Mapping[str, Any]) -> int:
    """Return heads of keys and values: as many as those of queries, or fewer, as in the large configuration."""
    heads = next((words[name] for name in words if _HEADS.search(name) and not _GROUPED_HEADS.search(name)), value)
    if value == heads:
        return min(value, HEADS)
    return min(value, HEADS // 2)


def _list(name: str, values: list[Any], words: Mapping[str, Any], scale: _Scale) -> list[Any]:
    """Return a list of a configuration made small by the name of its word."""
    if _KINDS.search(name):
        layers = _layers(words)
        return (list(dict.fromkeys(values)) * layers)[:layers]
    if name == "mrope_section":
        return [2, 3, 3]
    if any(type(value) is not int for value in values):
        return values
    return _numbers(name, values, scale)


def _numbers(name: str, values: list[int], scale: _Scale) -> list[int]:
    """Return numbers of layers, images or stages made small by the name of their word."""
    if _LAYERS.search(name) and not _NO_LAYERS.search(name):
        return [min(value, 1) for value in values]
    if _IMAGE.search(name):
        return [min(value, IMAGE) for value in values]
    if scale.widths and _WIDTHS.search(name) and not _KEPT.search(name):
        return _widths(values)
    return values


def _widths(values: list[int]) -> list[int]:
    """Return widths of stages, smaller by one factor that divides them all, so that heads still divide them."""
    divisor = gcd(*values)
    factor = max(
        (step for step in range(1, divisor + 1) if divisor % step == 0 and min(values) // step >= 16), default=1
    )
    return [value // factor for value in values]
