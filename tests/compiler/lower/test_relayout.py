"""Values that are moved to another layout."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.lower import linear, lowering, relayout

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(("arch", "rest"), [("wormhole_b0", 1024), ("grayskull", 700)])
def test_columns_that_have_no_room_each_in_padding_of_their_own_become_rows(arch, rest):
    """Three of each of so many columns, in 32 of padding, would be more than the cores of a row hold."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.first, self.second = torch.nn.Linear(8, 3 * rest), torch.nn.Linear(3, 5)

        def forward(self, x):
            return self.second(self.first(x).unflatten(1, (3, rest)).transpose(1, 2))

    model, x = Model().eval(), torch.randn(1, 8)
    made = be.compile(model, (x,), arch=arch, effort="low")
    assert np.allclose(made(x)[0], model(x).detach().numpy(), atol=1e-5)
    assert made.check(strict=True) == ()


class Reordered(torch.nn.Module):
    """Columns that count pairs of places, in the other order."""

    def forward(self, x):
        return x.reshape(19, 8, 64).transpose(1, 2).reshape(19, 512) * 2


class Summed(torch.nn.Module):
    """Sums along one of two dimensions that lie along the columns."""

    def forward(self, x):
        return x.reshape(19, 8, 64).cumsum(1).reshape(19, 512)


@pytest.mark.parametrize("module", [Reordered, Summed])
def test_columns_whose_matrix_would_be_too_large_are_moved_as_rows(monkeypatch, module):
    x = torch.randn(19, 512)
    expected = module()(x).numpy()
    largest = 512 * 512

    def compile_with(limit):
        monkeypatch.setattr(relayout, "LARGEST_COLUMN_MATRIX", limit)
        monkeypatch.setattr(linear, "LARGEST_COLUMN_MATRIX", limit)
        compiled = be.compile(module(), (x,), effort="low")
        np.testing.assert_allclose(compiled(x)[0], expected, atol=1e-4)
        assert compiled.check(strict=True) == ()
        return [name for name in compiled.placement.ops if name.endswith(".columns")]

    assert compile_with(largest)
    assert not compile_with(largest - 1)


class Spread(torch.nn.Module):
    """The sum of each element of one vector and each of another, each sum in a tile row of its own."""

    def forward(self, slices, rows):
        return slices[:, None, None] + rows[None, :, None]


def test_a_layout_of_more_tiles_than_a_run_can_hold_is_refused(monkeypatch):
    monkeypatch.setattr(lowering, "MAX_TILES", 99)  # in place of tensors of 64 GiB
    monkeypatch.setattr(lowering, "MAX_MAPPED", 99)

    assert be.compile(Spread(), (torch.ones(33), torch.ones(90)), effort="low")
    with pytest.raises(be.UnsupportedError, match=r"add: its layout takes 34 x 3 x 1 tiles, the most is 99"):
        be.compile(Spread(), (torch.ones(34), torch.ones(90)), effort="low")


class PositionsAdded(torch.nn.Module):
    """Numbers for the rows and for the columns of a picture, added for each pair, as attention adds its positions."""

    def forward(self, frames, rows, columns):
        sums = rows[:, None, :, None] + columns[:, None, None, :] + frames[:, :, None, None]
        return sums.reshape(40, 3 * 7 * 9)


class PositionsRead(PositionsAdded):
    """The same sums, of which the largest in each row of the picture is wanted."""

    def forward(self, frames, rows, columns):
        sums = rows[:, None, :, None] + columns[:, None, None, :] + frames[:, :, None, None]
        return sums.amax(-1).reshape(40, 3 * 7)


@pytest.mark.parametrize(
    ("module", "last_sum", "tiles"),
    [(PositionsAdded, "add_1", 2 * 6), (PositionsRead, "amax.reduce_max.below", 40 * 3)],
)
def test_sums_that_only_a_reshape_reads_have_the_tiles_of_its_result(module, last_sum, tiles):
    torch.manual_seed(0)
    inputs = torch.randn(40, 3), torch.randn(40, 7), torch.randn(40, 9)

    compiled = be.compile(module(), inputs, effort="low")

    np.testing.assert_allclose(compiled(*inputs)[0], module()(*inputs).numpy(), atol=1e-5)
    assert compiled.check(strict=True) == ()
    assert np.prod(compiled.placement.ops[last_sum].op.shape) == tiles
