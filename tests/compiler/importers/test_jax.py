"""Functions of JAX compiled, and held against jax in precision `ideal`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import buda_emu as be

jax: Any = pytest.importorskip("jax", reason="jax is an extra: pip install 'buda-emu[jax]'")
jnp: Any = jax.numpy
KEY = jax.random.key(0)
X = jnp.asarray(np.random.default_rng(0).standard_normal((2, 3, 4)), jnp.float32)
TABLE = jnp.asarray(np.random.default_rng(1).standard_normal((7, 4)), jnp.float32)
INDEX = jnp.array([[1, 2, 6], [0, 3, 5]])


def held(function: Callable[..., Any], *inputs: Any) -> Any:
    """Compiles, and compares all outputs."""
    compiled = be.compile(function, inputs, effort="low")
    found = compiled(*inputs)
    for mine, theirs in zip(found, jax.tree_util.tree_leaves(jax.jit(function)(*inputs)), strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(mine, np.asarray(theirs), rtol=2e-3, atol=2e-3)
    compiled.close()
    return compiled


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "activations": lambda x: (
        jax.nn.gelu(x, approximate=False), jax.nn.gelu(x), jax.nn.softplus(x), jax.nn.silu(x), jax.nn.elu(x),
        jnp.log1p(jnp.abs(x)), jnp.expm1(x), jax.nn.softmax(x), jax.lax.rsqrt(jnp.abs(x) + 1),
    ),
    "arithmetic": lambda x: (
        x % 0.7, jnp.sign(x), x.astype(jnp.int32), (x > 0) & (x < 1), jnp.clip(x, -0.5, 0.5), jnp.where(x > 0, x, 2.0),
    ),
    "attention": lambda x: jnp.einsum(
        "abc,abd->acd", jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((3, 4), bool)), x, -jnp.inf)), x
    ),
    "reductions": lambda x: (
        jnp.max(x, (0, 2)), jnp.mean(x), jnp.std(x, -1), jnp.prod(x, 1), jnp.cumsum(x, 1), jnp.argmax(x, -1),
        jnp.argmin(x, 1), jnp.any(x > 1, 1), jax.lax.top_k(x, 2),
    ),
    "moves": lambda x: (
        jnp.pad(x, ((0, 0), (1, 2), (0, 0)), constant_values=3.0), x[:, ::-1, 1:3], jnp.roll(x, 1, 1),
        jnp.linspace(0, 1, 5) + x[0, 0, 0], jnp.take_along_axis(x, jnp.argmax(x, -1)[..., None], -1),
        jax.lax.dynamic_update_slice(x, x[:1, :1] * 2, (1, 5, 0)), jnp.concatenate([x, x * 2], 1), x.T,
    ),
    "windows": lambda x: (
        jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2, 2), (1, 1, 1), "SAME"),
        jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 3), (1, 1, 2), "VALID"),
    ),
    "loops": lambda x: (
        jax.lax.fori_loop(0, 3, lambda k, c: c * 2 + k, x),
        jax.lax.scan(lambda c, t: (jnp.tanh(c + t), c * t), x[:, 0], x.transpose(1, 0, 2)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gives_what_jax_gives(name: str):
    held(FUNCTIONS[name], X)


def test_the_host_picks_rows_by_indices_that_are_an_input():
    compiled = held(lambda x, i: (TABLE[i] + x, jnp.take(TABLE, i, axis=0)), X[:, :, :], INDEX)
    assert [item.label for item in compiled.io.inputs] == ["x", "i"]
    assert "embedding" in compiled.text
    assert "less" not in compiled.text


def test_convolutions_of_every_layout():
    image, kernel = jax.random.normal(KEY, (1, 8, 8, 4)), jax.random.normal(KEY, (3, 3, 2, 6))

    def convolved(x: Any) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        options = {"dimension_numbers": numbers, "feature_group_count": 2}
        first = jax.lax.conv_general_dilated(x, kernel, (2, 1), ((1, 0), (2, 2)), rhs_dilation=(1, 2), **options)
        return first, jax.lax.conv_transpose(x, jnp.tile(kernel, (1, 1, 2, 1)), (2, 2), "SAME")

    held(convolved, image)


def models() -> dict[str, tuple[Any, Any]]:
    """Small ones of flax, with an input each."""
    nn: Any = pytest.importorskip("flax.linen", reason="flax is not installed")

    class Mlp(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            return nn.softmax(nn.Dense(10)(nn.relu(nn.Dense(50)(x))))

    class Cnn(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            x = nn.BatchNorm(use_running_average=True)(nn.Conv(8, (3, 3), strides=2)(x))
            x = nn.avg_pool(nn.max_pool(nn.gelu(x), (2, 2), (2, 2)), (2, 2), (1, 1), "SAME")
            x = nn.Conv(8, (3, 3), feature_group_count=8)(nn.LayerNorm()(x))
            return nn.Dense(10)(x.reshape(x.shape[0], -1))

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x: Any, mask: Any = None) -> Any:
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(2)(y, y, mask=mask)
            return x + nn.Dense(16)(nn.gelu(nn.Dense(32)(nn.LayerNorm()(x))))

    class Vit(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            x = nn.Conv(16, (4, 4), strides=4, padding="VALID")(x).reshape(x.shape[0], -1, 16)
            place = self.param("place", nn.initializers.normal(), (1, x.shape[1], 16))
            return nn.Dense(5)(nn.LayerNorm()(Block()(x + place))[:, 0])

    class Words(nn.Module):
        @nn.compact
        def __call__(self, i: Any) -> Any:
            x = nn.Embed(50, 16)(i) + nn.Embed(8, 16)(jnp.arange(i.shape[1])[None])
            return nn.Dense(50)(nn.LayerNorm()(Block()(x, nn.make_causal_mask(i))))

    image = jax.random.normal(KEY, (1, 16, 16, 3))
    tokens = jnp.array([[1, 4, 3, 7, 8, 2, 0, 49]])
    return {"mlp": (Mlp(), jnp.ones((8, 40))), "cnn": (Cnn(), image), "vit": (Vit(), image), "words": (Words(), tokens)}


@pytest.mark.parametrize("name", ["mlp", "cnn", "vit", "words"])
def test_models_of_flax(name: str):
    model, x = models()[name]
    parameters = model.init(KEY, x)
    compiled = held(lambda x: model.apply(parameters, x), x)
    assert not compiled.check()
    assert any(node.name.startswith(f"{type(model).__name__}.") for node in compiled.graph)


def test_compares_with_jax():
    compiled = be.compile(lambda x: jax.nn.softmax(x @ TABLE.T), (X,), effort="low")
    found = compiled.compare()
    assert (found.outputs[0].pcc or 0) > 0.99999
    assert "jax" in str(found)


def test_refusals_name_operator_line_and_what_to_do():
    def unusual(x: Any) -> Any:
        return jnp.fft.fft(x), jax.lax.while_loop(lambda c: jnp.sum(c) < 100.0, lambda c: c * 2 + 1, x)

    with pytest.raises(be.UnsupportedError, match=r"fft: 1 time.*") as caught:
        be.compile(unusual, (X,))
    assert "test_jax.py:" in str(caught.value)
    assert "a loop whose end depends on computed values: write it with a known count" in str(caught.value)


def test_a_refusal_in_a_function_of_jax_names_the_line_that_calls_it():
    def unusual(x: Any) -> Any:
        noise = jax.random.normal(jax.random.key(0), x.shape)
        return jnp.sort(x) + noise

    with pytest.raises(be.UnsupportedError, match=r"sort: 1 time") as caught:
        be.compile(unusual, (X,))
    parts = str(caught.value).split("; ")
    assert len(parts) > 3
    assert all("test_jax.py:" in part for part in parts)
    assert "stablehlo.and (" in str(caught.value)


def test_wrong_inputs():
    with pytest.raises(be.HostError, match="needs example inputs"):
        be.compile(lambda x: x)
    with pytest.raises(be.HostError, match=r"input 0 is of type dict, not an array: keep parameters in the function"):
        be.compile(lambda p, x: x + p["a"], ({"a": X}, X))
    with pytest.raises(be.HostError, match="jax cannot trace"):
        be.compile(lambda x: x.nothing, (X,))


def test_computed_indices_outside_are_clipped_where_jax_clips_them():
    index = np.array([0, 1, -1, 4, -9], np.int32)
    held(
        lambda x, i: (
            jnp.take(x, i * 2, axis=1, mode="clip"),
            jnp.asarray(x).at[:, i].get(mode="clip"),
            jnp.take_along_axis(x, i[:3, None] * 2, 1, mode="clip"),
        ),
        np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32),
        index,
    )
