"""What the compiler counts of L1 for an op is what the router gives it, so that every op fits."""

import pytest

import buda_emu as be
from buda_emu.compiler.place.blocks import buffer_bytes
from buda_emu.performance.routing.pipes.build import build
from buda_emu.performance.routing.pipes.epoch import epochs
from buda_emu.performance.routing.streams.model import TILE_HEADER_BUFFER
from buda_emu.performance.routing.streams.route import route

torch = pytest.importorskip("torch")
nn = torch.nn


class Sum(torch.nn.Module):
    """Rows that are added and multiplied by a matrix."""

    def __init__(self, width):
        super().__init__()
        self.product = torch.nn.Linear(width, 32)

    def forward(self, *rows):
        total = rows[0]
        for row in rows[1:]:
            total = total + row
        return self.product(torch.relu(total))


@pytest.mark.parametrize(("operands", "tiles"), [(4, 8), (7, 8), (7, 16)])
def test_the_router_has_room_for_all_operands(operands, tiles):
    rows = tuple(torch.zeros(1, 32 * tiles, 512) for _ in range(operands))
    words = {"arch": "grayskull", "df": "Bfp8_b", "fidelity": "LoFi", "objective": "cores"}
    assert be.compile(Sum(512), rows, microbatch=64, **words).check(strict=True) == ()


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Conv2d(256, 256, 3, padding=1, groups=256), (1, 256, 64, 64)),
        (nn.Conv2d(64, 64, 3, padding=1, groups=64), (1, 64, 96, 96)),
        (nn.Conv2d(32, 64, 3, stride=2), (1, 32, 64, 64)),
        (nn.Linear(1024, 4096), (1, 512, 1024)),
        (nn.Linear(768, 768), (1, 96, 768)),
        (nn.Sequential(nn.Linear(256, 256), nn.Softmax(-1), nn.LayerNorm(256)), (1, 384, 256)),
        (nn.AvgPool2d(3, 2), (1, 128, 48, 48)),
    ],
    ids=["depthwise", "depthwise narrow", "convolution", "linear", "long linear", "softmax and norm", "pool"],
)
def test_the_router_gives_an_op_no_more_than_was_counted(module, shape):
    compiled = be.compile(module.eval(), torch.zeros(shape), effort="low", arch="wormhole_b0")
    placement = compiled.placement
    checked: set[str] = set()
    for epoch in epochs(compiled.netlist, None):
        for core in route(build(epoch).graph, "wormhole_b0").cores:
            if len(core.ops) == 1 and core.ops[0] in placement.ops:
                placed = placement.ops[core.ops[0]]
                counted = buffer_bytes(placement.target, placed.op, placed.blocks)
                held = sum(stream.buffer_bytes for stream in core.streams if stream.op in placed.held)
                spare = core.available_bytes - placement.target.buffer_room  # which the compiler leaves to the router
                headers = 3 * TILE_HEADER_BUFFER  # of four sizes of tile, as an epoch of several formats has them
                assert core.stream_bytes - held <= counted + spare - headers, core.ops
                checked.add(core.ops[0])
    assert checked == set(placement.ops)
    assert compiled.check(strict=True) == ()
