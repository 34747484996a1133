"""Tests on a real Dask cluster of two worker processes: as on processes of one's own, and what a cluster adds."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from uuid import uuid4

import numpy as np
import pytest

from buda_emu import __version__
from buda_emu.app.cli.main import main
from buda_emu.emulator.inputs.reference import ContentFiles, DirectoryFiles
from buda_emu.support.errors import HostError
from buda_emu.support.workers import dask_cluster
from buda_emu.support.workers.job import Workers
from buda_emu.testing.verify.runs.collect import Case, Settings
from buda_emu.testing.verify.runs.run_all import CASES, by_content
from buda_emu.testing.verify.runs.run_all import run_all as run_all_on
from buda_emu.testing.verify.runs.run_case import run_case
from case_functions import until
from report.results import nop
from shared_files import ROOT
from small_netlists import endless

distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")

LONG = 240.0  # on a busy machine a process takes long to start


def run_all(cases, address, **more):
    return run_all_on(cases, Workers(dask=address), **more)


MARK = "BUDA_EMU_TEST_CLUSTER"  # in the environment of all processes of the cluster


def local_cluster(workers, **more):
    """A cluster on ports that nobody uses."""
    quiet = {"dashboard_address": ":0", "scheduler_kwargs": {"dashboard": False}}
    return distributed.LocalCluster(n_workers=workers, threads_per_worker=1, host="127.0.0.1", **quiet, **more)


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, uuid4().hex)
        with local_cluster(2) as cluster:
            yield cluster


@pytest.fixture
def address(cluster):
    return cluster.scheduler_address


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Netlists of several fates in the working directory; what is remembered stays in it."""
    monkeypatch.setattr("buda_emu.support.caches.user_caches", lambda: tmp_path / "caches")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets").mkdir()
    for name, text in {
        "close.yaml": nop(compare="AllClose").replace("type: AllClose", "type: AllClose, atol: 0.1, rtol: 0.1"),
        "lossy.yaml": nop(),
        "odd.yaml": nop().replace("Float16_b", "Float99"),
        "stopped.yaml": nop(broken=True),
    }.items():
        (tmp_path / "nets" / name).write_text(text)
    return tmp_path


def without_seconds(value):
    if isinstance(value, dict):
        return {key: without_seconds(item) for key, item in value.items() if key != "seconds"}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value


def results_of(folder, *arguments):
    code = main(["test", *arguments, "--json", str(folder / "results.json")])
    return code, without_seconds(json.loads((folder / "results.json").read_text()))


def test_the_same_json_as_from_worker_processes(cluster, address, folder, capsys):
    paths = ["nets", str(ROOT / "netlists/softmax.yaml"), "--per-op", "--no-cache"]
    there = results_of(folder, *paths, "--dask", address)
    shown = capsys.readouterr().out
    here = results_of(folder, *paths, "-n", "2")
    assert there == here
    code, run = there
    assert code == 1
    assert [case["status"] for case in run["cases"]] == ["passed", "failed", "rejected", "stopped", "passed"]
    assert f"on {address}" in shown


def test_netlists_references_and_defaults_travel_by_content(cluster, address, folder):
    """What is sent stands in files that are gone before it runs."""
    directory = folder / "given"
    directory.mkdir()
    values = np.full((1, 1, 32, 32), 0.5, np.float32)
    np.save(directory / "a.npy", values)
    np.save(directory / "o.npy", values + 1)
    (directory / "huge.txt").write_text("not a tensor")
    path = folder / "nets/plain.yaml"
    path.write_text(nop().replace("comparison-config: {type: Exact}, ", ""))
    defaults = ("d.yaml", b"test-config: {comparison-config: {type: AllClose, atol: 0.5, rtol: 0}}")
    case = Case("plain.yaml", str(path), None, DirectoryFiles(directory), defaults, Settings(seed=3))
    sent = by_content(case)
    assert (sent.text, sent.reference.where) == (path.read_bytes(), str(directory))
    assert isinstance(sent.reference, ContentFiles)
    assert sorted(sent.reference.contents) == ["a.npy", "o.npy"]
    here = run_case(case)
    for file in (*directory.iterdir(), path):
        file.unlink()
    (there,) = run_all([sent], address, timeout=LONG)
    assert replace(there, seconds=0) == replace(here, seconds=0)
    assert there.status == "failed"
    assert there.outputs[0].comparison.type == "AllClose"
    assert there.outputs[0].figures.max_error == 1.0
    assert (there.outputs[0].expected_from, there.inputs[0].source) == ("o.npy", "a.npy")


def test_a_file_that_is_not_there_is_said_as_by_worker_processes(cluster, address, folder):
    case = Case("nets/none.yaml", "nets/none.yaml")
    (there,) = run_all([case], address, timeout=LONG)
    here = run_case(case)
    assert (there.status, there.message) == (here.status, here.message) == ("rejected", here.message)
    assert "there is no such file" in here.message


@pytest.fixture
def hanging():
    """A netlist that runs for hours."""
    return Case("endless.yaml", "endless.yaml", endless().encode())


def good(folder, count):
    text = (folder / "nets/close.yaml").read_bytes()
    return [Case(f"good{i}.yaml", f"good{i}.yaml", text) for i in range(count)]


def children():
    """The processes in which the workers of the cluster run netlists."""
    mark = f"{MARK}={os.environ[MARK]}".encode()
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"buda_emu.support.workers.child" in (directory / "cmdline").read_bytes().split(b"\0"):
                found += [int(directory.name)] if mark in (directory / "environ").read_bytes().split(b"\0") else []
    return found


def test_a_netlist_that_hangs_costs_its_timeout_only(cluster, address, folder, hanging):
    """A time limit that others keep on a busy machine, though their process starts anew after it."""
    told = []
    todo = [*good(folder, 1), hanging, *good(folder, 3)]
    results = run_all(todo, address, timeout=12, on_result=lambda index, result: told.append((index, result.netlist)))
    assert [result.status for result in results] == ["passed", "timeout", "passed", "passed", "passed"]
    assert results[1].message == "took longer than 12 s"
    assert sorted(told) == [(index, case.name) for index, case in enumerate(todo)]
    assert until(lambda: not children())


def test_a_child_that_dies_costs_its_netlist_only(cluster, address, folder, hanging):
    told = []

    def on_result(index, _result):
        told.append(index)
        if len(told) == 3:
            assert children()
            for child in children():  # one is busy, one is idle
                os.kill(child, signal.SIGKILL)

    results = run_all([*good(folder, 1), hanging, *good(folder, 2)], address, timeout=LONG, on_result=on_result)
    assert [result.status for result in results] == ["passed", "crashed", "passed", "passed"]
    assert results[1].message == "its worker process died (signal SIGKILL)"


def test_maxfail_ends_what_runs(cluster, address, folder, hanging):
    bad = Case("lossy.yaml", "nets/lossy.yaml")
    results = run_all([hanging, bad, *good(folder, 1)], address, timeout=LONG, maxfail=1)
    assert ("lossy.yaml", "failed") in [(result.netlist, result.status) for result in results]
    assert "endless.yaml" not in [result.netlist for result in results]
    assert until(lambda: not children())


def test_a_lost_worker_costs_nothing_where_another_one_takes_over(cluster, address, folder):
    def kill():
        assert until(lambda: children())
        with distributed.Client(address, set_as_default=False) as client:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    killer = Thread(target=kill)
    killer.start()
    results = run_all(good(folder, 4), address, timeout=LONG)
    killer.join()
    assert [result.status for result in results] == ["passed"] * 4
    assert until(lambda: not children())  # that of the killed worker ended by itself


@pytest.fixture
def scheduler():
    """A scheduler that has no workers."""
    with local_cluster(0, processes=False, protocol="tcp") as cluster:
        yield cluster


@pytest.fixture
def lone_worker(scheduler, tmp_path, child_environment):
    """Starts a worker that nobody restarts; `path` goes before the modules that it would import."""
    started = []

    def start(path=""):
        environment = {**child_environment, "PYTHONPATH": os.pathsep.join([*([str(path)] if path else []), str(ROOT)])}
        options = ["--no-nanny", "--no-dashboard", "--nthreads", "1", "--local-directory", str(tmp_path)]
        worker = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", scheduler.scheduler_address, *options],
            env=environment,
            cwd=tmp_path,
            stderr=subprocess.DEVNULL,
        )
        started.append(worker)
        assert until(lambda: scheduler.scheduler.workers)
        return worker

    yield start
    for worker in started:
        worker.kill()
        worker.wait()


def test_a_cluster_that_loses_all_its_workers(scheduler, lone_worker, folder, hanging, monkeypatch):
    monkeypatch.setattr(dask_cluster, "NO_WORKERS_SECONDS", 0.5)
    worker = lone_worker()
    told = []

    def on_result(index, result):
        told.append(index)
        if result.status == "passed":
            worker.kill()

    results = run_all(
        [*good(folder, 1), hanging, *good(folder, 1)], scheduler.scheduler_address, timeout=LONG, on_result=on_result
    )
    assert [result.status for result in results] == ["passed", "crashed", "crashed"]
    assert results[2].message == "the Dask cluster has lost all its workers"
    assert told == [0, 1, 2]


def test_a_cluster_that_is_without_workers_for_a_moment(scheduler, lone_worker, folder, monkeypatch):
    """What was done and not fetched is done again."""
    monkeypatch.setattr(dask_cluster, "_LOOK_SECONDS", 0.1)
    first, second = lone_worker(), Thread(target=lone_worker)
    with closing(dask_cluster.Cluster(CASES, scheduler.scheduler_address, LONG, {})) as cluster:
        answers = cluster.answers(good(folder, 3))
        found = [next(answers)]
        left = list(cluster._futures.values())
        assert until(lambda: all(future.status == "finished" for future in left))
        first.kill()
        assert until(lambda: all(future.status != "finished" for future in left))
        second.start()
        found += answers
    second.join()
    assert sorted((number, good, result.status) for number, (good, result) in found) == [
        (number, True, "passed") for number in range(3)
    ]


def test_a_scheduler_that_goes_away(folder, hanging):
    cluster = local_cluster(1)

    def on_result(_index, result):
        if result.status == "passed":
            cluster.close()

    results = run_all([*good(folder, 1), hanging], cluster.scheduler_address, timeout=LONG, on_result=on_result)
    assert [result.status for result in results] == ["passed", "crashed"]
    assert results[1].message.startswith("the Dask scheduler was lost, or dropped it")


def test_what_was_done_outlasts_a_scheduler_that_goes_away_before_all_is_sent(folder, monkeypatch):
    monkeypatch.setattr(dask_cluster, "_AHEAD", 1)
    cluster = local_cluster(1)
    told = []

    def on_result(index, result):
        told.append(index)
        if result.status == "passed":
            cluster.close()

    results = run_all(good(folder, 5), cluster.scheduler_address, timeout=LONG, on_result=on_result)
    assert [result.status for result in results[:1]] == ["passed"]
    assert {result.status for result in results[1:]} == {"crashed"}
    assert {result.message.partition(",")[0] for result in results[1:]} == {"the Dask scheduler was lost"}
    assert told == [0, 1, 2, 3, 4]


def test_a_cluster_whose_scheduler_is_lost_has_no_threads(folder):
    cluster = local_cluster(1)
    with closing(dask_cluster.Cluster(CASES, cluster.scheduler_address, LONG, {})) as client:
        cluster.close()
        assert until(lambda: client._is_cut_off)
        assert client.slots == 0
        assert [answer.text for _, answer in client.answers(good(folder, 2))] == ["the Dask scheduler was lost"] * 2


def refused(address):
    with pytest.raises(HostError) as caught:
        run_all([Case("a", "a", b"")], address, timeout=LONG)
    return str(caught.value)


def test_workers_without_buda_emu(scheduler, lone_worker, tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "first/buda_emu.py").write_text("raise ImportError('not on this machine')\n")
    lone_worker(tmp_path / "first")
    assert "cannot use buda-emu: " in refused(scheduler.scheduler_address)


def test_workers_with_another_version(cluster, address, monkeypatch):
    monkeypatch.setattr(dask_cluster, "__version__", "0.0.9")
    assert f" has buda-emu {__version__}, this is buda-emu 0.0.9: install the same there" in refused(address)


def test_a_cluster_without_workers(scheduler):
    assert refused(scheduler.scheduler_address).endswith(f"{scheduler.scheduler_address} has no workers")


def test_a_worker_is_not_a_scheduler(cluster):
    address = cluster.workers[0].worker_address
    assert refused(address) == f"at {address} is a Dask worker, not a scheduler"


def test_nobody_answers(monkeypatch, capfd):
    monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 0.5)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        for listening in (False, True):
            if listening:
                deaf.listen()
            address = f"tcp://127.0.0.1:{deaf.getsockname()[1]}"
            start = time.monotonic()
            assert refused(address) == f"no Dask scheduler answers at {address} within 0.5 s"
            assert time.monotonic() - start < 60  # Dask itself waits for 30 s by default, several times
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("address", "words"),
    [("nowhere", "missing port number"), ("http://x:1", "unknown address scheme"), ("", "missing")],
)
def test_addresses_that_are_none(address, words):
    text = refused(address)
    assert text.startswith(f"--dask {address}: ")
    assert words in text
    assert text.endswith("addresses are like tcp://host:8786")


@pytest.fixture
def without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "buda_emu.support.workers.dask_plugin", raising=False)


def test_without_dask_its_extra_is_named(without_dask):
    assert refused("tcp://127.0.0.1:1") == "--dask needs the package distributed: pip install 'buda-emu[dask]'"


def test_the_command_says_it_too(folder, without_dask, capsys):
    assert main(["test", "nets/lossy.yaml", "--dask", "tcp://127.0.0.1:1"]) == 2
    assert capsys.readouterr().err.startswith("buda-emu: --dask needs the package distributed")
