"""Tables that are kept: the same numbers again, and never from a damaged file."""

import numpy as np
import pytest

from buda_emu.arithmetic.tensix.functions import table as cached_tables
from buda_emu.arithmetic.tensix.functions.table import load_table

TABLE = np.arange(1 << 16, dtype=np.uint16)[::-1].copy()


@pytest.fixture
def caches(tmp_path, monkeypatch):
    monkeypatch.setattr("buda_emu.support.caches.own_caches", lambda: str(tmp_path / "caches"))
    return tmp_path / "caches" / cached_tables.FOLDER


def made(about, calls):
    def make():
        calls.append(about)
        return TABLE.copy()

    found = load_table("exp", about, make)
    assert found.dtype == np.uint16
    assert found.flags.aligned
    assert not found.flags.writeable
    assert (found == TABLE).all()


def test_it_is_made_once_for_all_that_it_depends_on(caches, monkeypatch):
    calls = []
    made(1, calls)
    made(1, calls)
    made(2, calls)
    assert calls == [1, 2]
    monkeypatch.setattr(cached_tables, "sources", lambda *rooms: rooms)  # others
    made(1, calls)
    assert calls == [1, 2, 1]
    assert len(list(caches.iterdir())) == 3


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:-1] + b"\1", lambda _: b""])
def test_a_damaged_file_is_made_again(caches, damage):
    calls = []
    made(1, calls)
    (file,) = caches.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    made(1, calls)
    made(1, calls)
    assert calls == [1, 1]


def test_without_a_folder_it_is_made_each_time(caches, monkeypatch):
    def no_home():
        raise RuntimeError

    monkeypatch.setattr("buda_emu.support.caches.own_caches", no_home)
    calls = []
    made(1, calls)
    made(1, calls)
    assert calls == [1, 1]
    assert not caches.exists()
