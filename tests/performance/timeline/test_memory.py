"""What tasks read and write of a memory."""

import pytest

from buda_emu.performance.timeline.tasks import Access, by_space
from buda_emu.support.errors import HostError


def access(task, address, size, space="L1"):
    return Access(task, space, address, size, writes=True)


def test_accesses_by_space():
    first, second, third = access(0, 0, 4), access(1, 0, 4, "DRAM"), access(1, 4, 4)
    assert by_space([first, second, third], 2) == {"L1": [first, third], "DRAM": [second]}


@pytest.mark.parametrize("wrong", [access(0, -1, 4), access(0, 0, 0), access(2, 0, 4)])
def test_impossible_accesses_are_refused(wrong):
    with pytest.raises(HostError, match="is not possible"):
        by_space([wrong], 2)
