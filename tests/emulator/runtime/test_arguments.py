"""What Emulator says to arguments that are none."""

import pytest

import buda_emu as be
from buda_emu.support.errors import HostError


@pytest.mark.parametrize("given", ["net.yaml", None, {"queues": {}}])
def test_what_is_no_netlist(given):
    with pytest.raises(HostError, match=r"Emulator takes a netlist, not .*: buda_emu.load\(path\) reads one"):
        be.Emulator(given)
