"""What is worked out of a netlist once lives as long as the netlist."""

import gc
import weakref
from dataclasses import replace

import buda_emu as be
from buda_emu.netlist.for_each import ForEach


class Made:
    pass


def test_each_netlist_has_one_until_it_is_gone(root):
    made = []
    things = ForEach(lambda netlist: made.append(netlist.path) or Made())
    net = be.load(root / "netlists" / "matmul.yaml")
    equal = replace(net)
    first = things.of(net)
    assert things.of(net) is first
    assert things.of(equal) is not first  # another object, which may be gone sooner
    assert len(made) == 2
    gone = weakref.ref(first)
    del first
    assert gone() is not None
    del net
    gc.collect()
    assert gone() is None
    assert things.of(equal) is things.of(equal)
    assert len(made) == 2
