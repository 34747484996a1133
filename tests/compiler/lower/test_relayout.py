"""Values that are moved to another layout."""

import numpy as np
import pytest

import buda_emu as be

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
