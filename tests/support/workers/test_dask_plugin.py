"""The children of one Dask worker: kept for many items, replaced where one is late or dies, ended with the work."""

import os
import signal
from types import SimpleNamespace

import pytest

from buda_emu.support.errors import HostError
from buda_emu.support.workers.job import Job
from buda_emu.support.workers.wire import pack
from buda_emu.testing.verify.runs.collect import Case
from buda_emu.testing.verify.runs.run_all import CASES
from report.results import nop
from small_netlists import endless

pytest.importorskip("distributed", reason="the extra `dask` is not installed")

from buda_emu.support.workers.dask_plugin import Children

SHORT = Case("short.yaml", "short.yaml", nop(compare="AllClose").encode())
HANGING = Case("endless.yaml", "endless.yaml", endless().encode())


@pytest.fixture
def children(tmp_path):
    found = Children("mark", pack(CASES), {})
    found.setup(SimpleNamespace(local_directory=str(tmp_path)))
    yield found
    found.teardown(None)


def processes(children):
    return [child._process for child in children._all]


def test_a_child_is_kept_for_many_items_and_ended_with_the_work(children):
    numbers = set()
    for _ in range(3):
        good, result = children.answer(SHORT, {}, None)
        assert (good, result.netlist) == (True, "short.yaml")
        numbers |= {process.number for process in processes(children)}
    assert len(numbers) == 1
    (process,) = processes(children)
    assert not process.has_ended
    children.teardown(None)
    assert process.has_ended
    assert processes(children) == []


def test_a_late_child_is_ended_and_replaced(children):
    children.answer(SHORT, {}, None)
    (process,) = processes(children)
    lost = children.answer(HANGING, {}, 0.3)
    assert (lost.kind, lost.text) == ("timeout", "took longer than 0.3 s")
    assert 0.3 <= lost.seconds < 20
    assert process.has_ended
    assert processes(children) == []
    assert children.answer(SHORT, {}, None)[0]
    assert len(processes(children)) == 1


def test_a_child_that_died_costs_one_item(children):
    children.answer(SHORT, {}, None)
    os.kill(processes(children)[0].number, signal.SIGKILL)
    lost = children.answer(SHORT, {}, None)
    assert (lost.kind, lost.text) == ("crashed", "its worker process died (signal SIGKILL)")
    assert processes(children) == []
    assert children.answer(SHORT, {}, None)[0]


def test_a_child_that_the_end_of_the_work_took_is_gone_already(children, monkeypatch):
    """Its thread comes back after `teardown`."""
    children.answer(SHORT, {}, None)
    (child,) = children._all

    def ended(*_):
        children.teardown(None)
        return "lost"

    monkeypatch.setattr(child, "answer", ended)
    assert children.answer(SHORT, {}, None) == "lost"
    assert processes(children) == []


def test_files_of_the_job_lie_there_while_it_runs(tmp_path):
    children = Children("mark", pack(CASES), {"somewhere/a.txt": b"text"})
    children.setup(SimpleNamespace(local_directory=str(tmp_path)))
    assert [path.read_bytes() for path in (tmp_path / "mark").iterdir()] == [b"text"]
    children.teardown(None)
    assert list(tmp_path.iterdir()) == []


def test_other_work_is_refused(tmp_path):
    children = Children("mark", pack(Job("os:system")), {})
    with pytest.raises(HostError, match="os:system is no work of buda-emu"):
        children.setup(SimpleNamespace(local_directory=str(tmp_path)))
