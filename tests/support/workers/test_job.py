"""What is said of workers before there are any."""

import pytest

from buda_emu.support.errors import HostError
from buda_emu.support.workers.job import Shared, Workers, insert_shared_values, shares


def test_one_worker_of_this_machine_is_alone():
    assert Workers() == Workers(1)
    assert Workers().alone
    assert Workers().title == "1 worker"
    assert not Workers(2).alone
    assert not Workers(dask="tcp://host:8786").alone
    assert Workers(dask="tcp://host:8786").title == "on tcp://host:8786"
    with pytest.raises(HostError, match="workers=0: at least 1"):
        Workers(0)


def test_shared_values_stand_in_items():
    item = (Shared(3), "a", Shared(1))
    assert shares(item) == [3, 1]
    assert insert_shared_values(item, {1: "one", 3: "three"}) == ("three", "a", "one")
    assert (shares("a"), insert_shared_values("a", {})) == ([], "a")
