"""What element-wise ops leave in the padding of partial tiles."""

import numpy as np
import pytest

import buda_emu as be

torch = pytest.importorskip("torch")


class Normalised(torch.nn.Module):
    """Layers with a residual that divide by the root of a mean of products, and rows in another order at the end, which
    a product moves within their tiles."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(33, 33)

    def forward(self, x):
        for _ in range(8):
            centred = x - x.mean(-1, keepdim=True)
            variance = (centred * centred).mean(-1, keepdim=True)
            x = x + self.linear(centred / torch.sqrt(variance + 0.1))
        return x.flip(0)


class Divided(torch.nn.Module):
    """The quotient of two inputs, and a logarithm, with rows in another order at the end."""

    def forward(self, x, y):
        quotient = x
        for _ in range(8):
            quotient = (quotient + 1) / y
        return quotient.flip(0), torch.log(y).flip(0)


def test_padding_of_a_masked_divisor_does_not_grow():
    torch.manual_seed(0)
    model = Normalised().eval()
    x = torch.randn(40, 33)
    (result,) = be.compile(model, (x,), effort="low")(x)
    assert np.allclose(result, model(x).detach().numpy(), rtol=1e-3, atol=1e-3)


def test_padding_of_a_divided_input_does_not_grow():
    torch.manual_seed(0)
    model = Divided()
    inputs = (torch.randn(40, 33), torch.rand(40, 33) + 0.5)
    results = be.compile(model, inputs, effort="low")(*inputs)
    for result, expected in zip(results, model(*inputs), strict=True):
        assert np.allclose(result, expected.numpy(), rtol=1e-4, atol=1e-4)
