"""Convolutions of each channel by itself."""

import numpy as np
import pytest

import buda_emu as be
from vendor_router import AVAILABLE, refusal

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(("arch", "channels", "dims"), [("wormhole_b0", 4096, (2, 8)), ("grayskull", 2560, (1, 4, 4))])
def test_more_channels_than_a_core_has_room_for_become_slices(arch, channels, dims, tmp_path):
    torch.manual_seed(0)
    batch, *space = dims
    kind = torch.nn.Conv1d if len(space) == 1 else torch.nn.Conv2d
    model = kind(channels, channels, 3, groups=channels, padding=1).eval()
    x = torch.randn(batch, channels, *space)
    made = be.compile(model, [x], arch=arch, effort="low")
    (op,) = [op for op in made.netlist.ops.values() if op.type == "depthwise"]
    assert op.blocking.t > batch
    expected = model(x).detach().numpy()
    assert np.allclose(made(x.numpy()), expected, atol=1e-5)
    assert made.check(strict=True) == ()
    if AVAILABLE:
        assert refusal(made.text, arch, tmp_path) == ""
