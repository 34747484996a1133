"""Parts of the search that are left out: the placement is another one, and legal."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import buda_emu as be
from buda_emu.compiler import pipeline
from buda_emu.compiler.search.placer import place_best
from buda_emu.compiler.search_parts import ALL_PARTS
from buda_emu.compiler.target import Objective


class Attending(nn.Module):
    """A convolution, and an encoder over its places."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 64, 4, 4)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(64, 2, 128, 0.0, batch_first=True).eval() for _ in range(2)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return x


@pytest.mark.parametrize("objective", ["throughput", "latency"])
def test_without_any_part(objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search with all parts left out places the model, legally and no quicker than that with all of them."""
    torch.manual_seed(0)
    source = Attending().eval(), (torch.randn(1, 3, 32, 32),)
    whole = be.compile(*source, objective=objective)

    def without(graphs, target, objective: Objective, *, entries: int):
        return place_best(graphs, target, replace(objective, without=frozenset(ALL_PARTS)), entries=entries)

    monkeypatch.setattr(pipeline, "place_best", without)
    bare = be.compile(*source, objective=objective)
    assert not bare.check(strict=True)
    assert bare.placement.record.modelled < whole.placement.record.modelled
    assert bare.perf().inputs_per_second <= whole.perf().inputs_per_second
