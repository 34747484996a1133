"""A fused op of many operands out of DRAM fits into L1, with what the router adds to their buffers."""

import pytest

import buda_emu as be

torch = pytest.importorskip("torch")


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
