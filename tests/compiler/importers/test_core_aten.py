"""Every operator of core ATen is computed right where the list of operators says so, or refused by name."""

import numpy as np
import pytest

import buda_emu as be

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")

from torch.utils._pytree import tree_flatten, tree_unflatten  # noqa: E402

from buda_emu.compiler.importers.from_torch.core_aten import core_overloads, list_coverage  # noqa: E402
from drawn_aten import arguments_of  # noqa: E402 - it needs torch

PLACES = {name: place for name, place, _ in list_coverage()}
OVERLOADS = {str(op): op for overloads in core_overloads().values() for op in overloads}
OF_SIZES = {word for word, op in OVERLOADS.items() if op._opname.startswith("sym_")}
"""They give numbers, which no program has whose sizes are known."""
FEW = 12
"""Of a run without --slow."""


class Called(torch.nn.Module):
    """One call of an overload. Tensors are inputs, complex ones as pairs of numbers; those at places `held` are not."""

    def __init__(self, overload, leaves, form, held):
        super().__init__()
        self.overload = overload
        self.leaves = leaves
        self.form = form
        tensors = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.places = [place for number, place in enumerate(tensors) if number not in held]

    def forward(self, first, *tensors):
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, (first, *tensors), strict=bool(self.places)):
            leaves[place] = torch.view_as_complex(tensor) if self.leaves[place].is_complex() else tensor
        values, options = tree_unflatten(leaves, self.form)
        result = self.overload(*values, **options)
        if not self.places:
            return first * 0 + result.to(torch.float32).sum()
        if isinstance(result, torch.Tensor) and result.is_complex():
            return torch.view_as_real(result)
        return result


HELD = {"_embedding_bag": {2}}
"""Operands that are constants in all forms of an operator that the compiler takes."""


def call_of(word, seed):
    overload = OVERLOADS[word]
    leaves, form = tree_flatten(arguments_of(overload, seed))
    call = Called(overload, leaves, form, HELD.get(overload._opname, set()))
    tensors = [leaves[place] for place in call.places]
    return call, [torch.view_as_real(item) if item.is_complex() else item for item in tensors] or [torch.ones(2)]


FIRST_ALONE = {"max_pool2d_with_indices.default", "max_pool3d_with_indices.default", "_embedding_bag.default",
             "_native_batch_norm_legit_no_training.default"}  # fmt: skip
"""Those of which the compiler has the first result alone."""


def judge(word, seed):
    """Compile a call with drawn arguments, and compare it with torch."""
    model, inputs = call_of(word, seed)
    place = PLACES[OVERLOADS[word]._opname]
    if word.removeprefix("aten.") in FIRST_ALONE:
        model = First(model)
    if place == "refused":
        with pytest.raises(be.UnsupportedError, match=OVERLOADS[word]._opname):
            be.compile(model, inputs)
        return
    with torch.no_grad():
        expected = [item for item in tree_flatten(model(*inputs))[0] if isinstance(item, torch.Tensor)]
    if word.startswith("aten.empty"):
        expected = [torch.zeros(2)]
    compiled = be.compile(model, inputs)
    try:
        for got, want in zip(compiled(*inputs), expected, strict=True):
            np.testing.assert_allclose(
                got, want.numpy(), rtol=1e-3, atol=1e-4 * max(1.0, float(want.double().abs().max()))
            )
    finally:
        compiled.close()


class First(torch.nn.Module):
    """The first result of a call."""

    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, *inputs):
        return self.call(*inputs)[0]


@pytest.mark.parametrize("seed", range(FEW))
def test_a_core_operator_is_right_or_refused_by_name(seed):
    words = sorted(set(OVERLOADS) - OF_SIZES)
    judge(words[int(np.random.default_rng(seed).integers(len(words)))], seed)


@pytest.mark.slow
@pytest.mark.parametrize("word", sorted(set(OVERLOADS) - OF_SIZES))
def test_every_core_operator_is_right_or_refused_by_name(word):
    for seed in range(3):
        judge(word, seed)
