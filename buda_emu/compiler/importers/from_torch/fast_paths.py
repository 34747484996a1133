"""Decompositions of the fused operators with which torch runs transformer layers in inference.

`torch.compile` of an `nn.TransformerEncoder` under `no_grad` yields these operators, and torch has no decompositions
for them. A mask of any type masks where it is not zero (ATen's `masked_softmax`).
"""

from collections.abc import Callable
from math import inf, sqrt
from typing import Any

import torch
from torch.nn import functional

_OF_KEYS = 1
"""The `mask_type` of a mask [inputs, keys]; others are [queries, keys] (0), or of the shape of the scores (2)."""


def _attention(
    query: Any,
    key: Any,
    value: Any,
    embed_dim: int,
    num_head: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    mask: Any = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Any, Any]:
    """Compute aten::_native_multi_head_attention from elementary operators, and return the result and the weights of
    attention, None if they are not needed."""
    projections = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    heads = (functional.linear(x, w, b).unflatten(-1, (num_head, -1)).transpose(1, 2) for x, w, b in projections)
    queries, keys, values = heads
    scores = (queries / sqrt(embed_dim // num_head)) @ keys.transpose(-1, -2)
    if mask is not None:
        if mask_type == _OF_KEYS:
            mask = mask[:, None, None]
        scores = scores.masked_fill(mask.bool(), -inf)
    weights = scores.softmax(-1)
    result = functional.linear((weights @ values).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return result, None
    return result, weights.mean(1) if average_attn_weights else weights


def _encoder_layer(
    src: Any,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Any,
    norm_bias_1: Any,
    norm_weight_2: Any,
    norm_bias_2: Any,
    ffn_weight_1: Any,
    ffn_bias_1: Any,
    ffn_weight_2: Any,
    ffn_bias_2: Any,
    mask: Any = None,
    mask_type: int | None = None,
) -> Any:
    """Compute aten::_transformer_encoder_layer_fwd from elementary operators."""

    def attend(x: Any) -> Any:
        """Return the self-attention of x with the layer's weights and mask."""
        return _attention(
            x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type
        )[0]

    def feed_forward(x: Any) -> Any:
        """Return x through the layer's two linear layers with ReLU or GELU between them."""
        hidden = functional.linear(x, ffn_weight_1, ffn_bias_1)
        if use_gelu:
            hidden = functional.gelu(hidden)
        else:
            hidden = functional.relu(hidden)
        return functional.linear(hidden, ffn_weight_2, ffn_bias_2)

    def normalise_1(x: Any) -> Any:
        """Return the first layer normalisation of x."""
        return functional.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def normalise_2(x: Any) -> Any:
        """Return the second layer normalisation of x."""
        return functional.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        src = src + attend(normalise_1(src))
        return src + feed_forward(normalise_2(src))
    src = normalise_1(src + attend(src))
    return normalise_2(src + feed_forward(src))


def fast_paths() -> dict[Any, Callable[..., Any]]:
    """Return our decompositions of fused operators by their overloads, for torch's table of decompositions."""
    return {
        torch.ops.aten._native_multi_head_attention.default: _attention,
        torch.ops.aten._transformer_encoder_layer_fwd.default: _encoder_layer,
    }
