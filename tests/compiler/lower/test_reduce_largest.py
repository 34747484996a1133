"""The largest along a dimension that shares columns with others."""

import numpy as np
import pytest

import buda_emu as be

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(("shape", "dim", "axis"), [((2, 1024), 1, "z"), ((100, 3), 2, "z"), ((3, 40), 2, "c")])
def test_the_fewer_of_the_columns_leave_them(shape, dim, axis):
    """Each of 1,024 columns by itself in 32 of padding has room in no core; two slices of 1,024 columns do."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.scores = torch.nn.Linear(8, shape[0] * shape[1])

        def forward(self, x):
            return self.scores(x).unflatten(1, shape).amax(dim)

    model, x = Model().eval(), torch.randn(2, 8)
    made = be.compile(model, (x,), effort="low")
    (op,) = [placed.op for placed in made.placement.ops.values() if placed.op.type == "reduce"]
    assert op.attrs["dim"] == axis
    assert np.allclose(made(x)[0], model(x).detach().numpy(), atol=1e-5)
    assert made.check(strict=True) == ()
