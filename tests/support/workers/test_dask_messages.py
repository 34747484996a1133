"""What a Dask cluster that lies can do to who asks it: nothing that runs code, and nothing that is a traceback."""

import asyncio
import json
import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from buda_emu.app.cli.main import main
from buda_emu.support.errors import HostError
from case_functions import until
from shared_files import ROOT

pytest.importorskip("distributed", reason="the extra `dask` is not installed")

import distributed.client
import distributed.protocol
from distributed.comm.utils import OFFLOAD_THRESHOLD, from_frames, to_frames
from distributed.protocol.serialize import Serialize, ToPickle

from buda_emu.support.workers.dask_messages import UnknownObject, guarded_loop, read_plainly

NETLIST = str(ROOT / "netlists" / "matmul.yaml")


class Evil:
    """Its pickle calls a function when it is read."""

    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


def calls(path):
    """Pickles that make a file when their calls are carried out."""
    make = f"open({str(path)!r}, 'w').close()"
    opener = f"__import__('os').open({str(path)!r}, 65)"
    return {
        "eval": pickle.dumps(Evil(eval, (make,))),
        "exec": pickle.dumps(Evil(exec, (make,))),
        "system": pickle.dumps(Evil(os.system, (f"touch {path}",))),
        "popen": pickle.dumps(Evil(subprocess.check_call, (["touch", str(path)],))),
        "old protocol": f"cbuiltins\neval\n(V{opener}\ntR.".encode(),
        "instance": f"(V{opener}\nibuiltins\neval\n.".encode(),
        "dotted": b"\x80\x04\x8c\x08builtins\x8c\x0deval.__call__\x93"
         b"\x8c" + bytes([len(opener)]) + opener.encode() + b"\x85R.",
        "partial": pickle.dumps(Evil(__import__("functools").partial(eval), (make,))),
        "method": pickle.dumps(Evil(Path(path).touch, ())),
        "as an exception": pickle.dumps(ValueError(Evil(eval, (make,)))),
    }  # fmt: skip


NAMES = tuple(calls("x"))


def read_guarded(frames):
    return asyncio.run(read_plainly(from_frames(frames)))


def frames_of(message):
    return asyncio.run(to_frames(message))


@pytest.mark.parametrize("name", NAMES)
def test_a_pickle_calls_nothing(tmp_path, name):
    made = tmp_path / "made"
    data = calls(made)[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distributed.protocol.pickle, "dumps", lambda *_args, **_more: data)
        frames = frames_of({"op": "x", "more": ToPickle("anything")})
    answer = read_guarded(frames)
    assert answer["op"] == "x"
    assert not made.exists()
    asyncio.run(from_frames(frames))  # other clients of the process are as they were
    assert made.exists()


@pytest.mark.parametrize("size", [1, OFFLOAD_THRESHOLD + 1])
@pytest.mark.parametrize("mark", [ToPickle, Serialize])
def test_on_the_thread_of_a_loop_and_on_that_of_large_messages(tmp_path, size, mark):
    made = tmp_path / "made"
    frames = frames_of({"op": b"x" * size, "more": mark(Evil(eval, (f"open({str(made)!r}, 'w').close()",)))})
    with guarded_loop() as loop:
        answer = asyncio.run_coroutine_threadsafe(from_frames(frames), loop.asyncio_loop).result(60)
    assert len(answer["op"]) == size
    assert isinstance(answer["more"], UnknownObject)
    assert not made.exists()


def test_a_warning_of_the_cluster_calls_nothing(tmp_path):
    """Dask's client reads its category and its text by `pickle` itself."""
    made = tmp_path / "made"
    event = ("now", {"category": calls(made)["eval"], "message": pickle.dumps("text")})

    async def handle():
        distributed.client._handle_warn(event)

    with pytest.raises(TypeError):
        asyncio.run(read_plainly(handle()))
    assert not made.exists()


def test_a_reader_of_dask_that_is_not_known_is_refused(tmp_path):
    made = tmp_path / "made"

    async def read():
        return pickle.loads(calls(made)["eval"])

    with pytest.raises(pickle.UnpicklingError, match=r"builtins\.eval, which is not called"):
        asyncio.run(read_plainly(read()))
    assert not made.exists()


def test_plain_data_and_exceptions_arrive():
    data = {"a": [1, 2.5, "text", None, True], "b": b"x" * 100, "c": {1, 2}, "d": bytearray(b"y")}
    for value in (data, b"bytes", "text"):
        assert read_guarded(frames_of({"value": Serialize(value)}))["value"] == value
    error = read_guarded(frames_of({"error": ToPickle(HostError("no"))}))["error"]
    assert (type(error), str(error)) == (HostError, "no")
    unknown = read_guarded(frames_of({"error": ToPickle(json.JSONDecodeError("no", "text", 1))}))["error"]
    assert type(unknown).__name__ == "JSONDecodeError"
    assert isinstance(unknown, UnknownObject)


LIES = """
import distributed.protocol as protocol
from distributed.protocol.serialize import ToPickle

class Evil:
    def __reduce__(self):
        return eval, ("[open(%r, 'w').close(), 1][1]",)

dumps = protocol.__dict__.setdefault("honest", protocol.dumps)  # Dask executes this file twice

def lie(message, *more, **named):
    if isinstance(message, dict) and "compression" not in message:  # not the greeting of a connection
        message = {**message, "zz": ToPickle(Evil())}
    elif isinstance(message, (list, tuple)) and message and all(isinstance(part, dict) for part in message):
        message = [{**part, "zz": ToPickle(Evil())} for part in message]
    return dumps(message, *more, **named)

protocol.dumps = lie
"""


@pytest.fixture
def lying_scheduler(tmp_path, child_environment):
    """The address of a scheduler each of whose messages holds a call, and the file that the call makes."""
    made = tmp_path / "made"
    (tmp_path / "lies.py").write_text(LIES % str(made))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--preload", str(tmp_path / "lies.py")]
    process = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", *words],
        env=child_environment,
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )

    def listens():
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    try:
        assert until(listens)
        yield f"tcp://127.0.0.1:{port}", made
    finally:
        process.kill()
        process.wait()


def test_a_scheduler_that_lies_runs_nothing(lying_scheduler, capfd):
    address, made = lying_scheduler
    assert main(["test", NETLIST, "--no-cache", "-q", "--dask", address]) == 2
    assert not made.exists()
    assert f"buda-emu: the answer of the Dask scheduler at {address} makes no sense (" in capfd.readouterr().err


LYING_WORKER = """
import distributed.worker as worker

class Evil:
    def __reduce__(self):
        return eval, ("open(%r, 'w').close()",)

serialized = worker.__dict__.setdefault("honest", worker.to_serialize)  # Dask executes this file twice

def lie(value):
    return serialized(Evil() if isinstance(value, bytes) else value)  # of an answer

worker.to_serialize = lie
"""


def test_a_worker_that_lies_runs_nothing(tmp_path, child_environment, capfd):
    distributed = pytest.importorskip("distributed")
    made = tmp_path / "made"
    (tmp_path / "lies.py").write_text(LYING_WORKER % str(made))
    quiet = {"dashboard_address": ":0", "scheduler_kwargs": {"dashboard": False}}
    with distributed.LocalCluster(n_workers=0, processes=False, protocol="tcp", host="127.0.0.1", **quiet) as cluster:
        address = cluster.scheduler_address
        options = ["--no-nanny", "--no-dashboard", "--nthreads", "1", "--local-directory", str(tmp_path)]
        options += ["--preload", str(tmp_path / "lies.py")]
        worker = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "distributed.cli.dask_worker",
                address,
                *options,
                "--preload",
                str(tmp_path / "lies.py"),
            ],
            env=child_environment,
            cwd=tmp_path,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert until(lambda: cluster.scheduler.workers)
            assert main(["test", NETLIST, "--no-cache", "-q", "--dask", address]) == 2
        finally:
            worker.kill()
            worker.wait()
    assert not made.exists()
    assert f"buda-emu: the answer of the Dask scheduler at {address} makes no sense (" in capfd.readouterr().err
