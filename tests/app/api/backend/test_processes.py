"""Descriptors in other processes (NETLIST 7.3 child processes, 7.5)."""

import multiprocessing as mp
import os
import pickle
import socket
import tempfile
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

from app.api.backend.front_end import opened
from app.api.backend.small import entries, machine, netlist, push
from buda_emu.app import backend_api as api
from buda_emu.app.api.backend import machine_server as server
from buda_emu.app.api.backend import process_family as family
from buda_emu.app.api.backend.enums import BackendType
from buda_emu.app.api.backend.machine_server import RemotePort
from buda_emu.app.api.backend.socket_address import machine_key, make_folder, password, socket_folder, socket_path
from buda_emu.support.errors import HostError, HostTimeoutError
from case_functions import until

OK = api.BackendStatusCode.Success
WRONG = api.BackendStatusCode.RuntimeError
LATE = api.BackendStatusCode.TimeoutError

SPAWN = mp.get_context("spawn")


def test_finish_needs_initialize(monkeypatch):
    monkeypatch.setattr(family, "_state", [family._Process(os.getpid())])
    assert api.finish_child_process() == WRONG
    assert api.initialize_child_process("anywhere") == OK
    assert api.initialize_child_process("anywhere") == OK
    assert api.finish_child_process() == OK
    assert api.finish_child_process() == OK  # NETLIST 12


def work(desc, data, told):
    """Everything that a descriptor can do, in a child."""
    told.put(api.initialize_child_process("out").name)
    told.put(push(desc, data).name)
    told.put(push(desc, data).name)
    told.put(push(desc, data).name)  # full, no time
    told.put(push(desc, data, timeout=0.05).name)
    out = api.PytorchTensorDesc()
    told.put(api.get_output(desc, out, False, 1, 0).name)
    told.put(np.asarray(out).copy())
    told.put(api.pop_output(desc, False, 0).name)
    told.put(api.pop_output(desc, False, 0).name)
    told.put(api.pop_output(desc, False, 0.05).name)
    told.put(api.translate_addresses(desc).name)
    packed = api.tilize_tensor(desc, out)
    told.put(api.push_input(desc, packed, 0, -1).name)
    told.put(api.finish_child_process().name)
    told.put(push(desc, data).name)  # a new connection


def test_a_child_does_what_its_parent_does(tmp_path):
    backend, descs = machine(tmp_path)
    told = SPAWN.Queue()
    child = SPAWN.Process(target=work, args=(descs["a"], entries(2), told))
    child.start()
    heard = [told.get(timeout=60) for _ in range(14)]
    child.join(60)
    data = heard.pop(6)
    np.testing.assert_array_equal(data, entries(2))
    assert heard == [
        "Success",
        "Success",
        "Success",
        "RuntimeError",
        "TimeoutError",
        "Success",
        "Success",
        "Success",
        "TimeoutError",
        "Success",
        "Success",
        "Success",
        "Success",
    ]
    out = api.PytorchTensorDesc()
    for _ in range(2):
        assert api.get_output(descs["a"], out, False, 0, 0) == OK
        np.testing.assert_array_equal(np.asarray(out), entries(2))
        assert api.pop_output(descs["a"], False, 0) == OK
    backend.finish()


def own(path, descs, leave, end):
    """A machine in a child; `end` says how it goes."""
    backend = opened(path)
    descs.put(backend.get_queue_descriptor("a"))
    leave.wait(60)
    if end == "finish":
        backend.finish()
        descs.put("finished")
        leave.clear()
        leave.wait(60)
    else:
        os._exit(1)


@pytest.mark.parametrize("end", ["finish", "crash"])
def test_a_machine_in_a_child_that_goes(tmp_path, end):
    """The parent reaches it, and is told when it is gone; nothing hangs, and nothing is left of the socket."""
    descs, leave = SPAWN.Queue(), SPAWN.Event()
    path = netlist(tmp_path)
    child = SPAWN.Process(target=own, args=(path, descs, leave, end))
    child.start()
    desc = descs.get(timeout=60)
    assert push(desc, entries(2)) == OK
    statuses = []
    output = api.PytorchTensorDesc()
    waiting = threading.Thread(target=lambda: statuses.append(api.get_output(desc, output, False, 0.01, 0)))
    waiting.start()
    waiting.join(20)
    assert statuses == [OK]
    leave.set()
    if end == "finish":
        assert descs.get(timeout=60) == "finished"
    else:
        child.join(60)
    for _ in range(2):
        assert push(desc, entries(2), timeout=5) == WRONG
        assert api.get_output(desc, output, False, 5, 0) == WRONG
    key = machine_key(str(path), BackendType.Golden)
    assert socket_path(key).exists() == (end == "crash")
    leave.set()
    child.join(60)
    # A new machine takes over what a dead one left.
    backend = opened(path)
    assert push(backend.get_queue_descriptor("a"), entries(2)) == OK
    assert socket_path(key).exists()
    backend.finish()
    assert not socket_path(key).exists()


def test_a_call_that_waits_ends_with_its_machine(tmp_path):
    backend, descs = machine(tmp_path, "Silicon")
    port = RemotePort(machine_key(descs["o"].netlist_path, BackendType.Silicon))
    problems = []

    def wait():
        with pytest.raises(HostError) as caught:
            port.read("o", True, 60.0, 0)
        problems.append(caught.value)

    thread = threading.Thread(target=wait)
    thread.start()
    while not port._connections:
        thread.join(0.01)
    thread.join(0.1)
    backend.finish()
    thread.join(20)
    assert len(problems) == 1
    assert not isinstance(problems[0], HostTimeoutError)


@pytest.fixture
def short_folder(monkeypatch):
    """Another place for sockets, where this test's are the only ones."""
    with tempfile.TemporaryDirectory() as place:
        monkeypatch.setattr("tempfile.tempdir", place)
        yield
        monkeypatch.undo()


@pytest.mark.usefixtures("short_folder")
def test_the_folder_is_private_and_goes_with_the_last_machine(tmp_path):
    first, second = (machine(tmp_path)[0] for _ in range(2))
    assert socket_folder().stat().st_mode & 0o077 == 0
    first.finish()
    assert socket_folder().is_dir()
    second.finish()
    assert not socket_folder().exists()


def test_a_long_temporary_path_is_not_used(monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/tmp/" + 80 * "x")
    assert socket_folder().parent == Path("/tmp")


@pytest.mark.usefixtures("short_folder")
def test_a_folder_that_others_can_enter_is_not_used(tmp_path):
    socket_folder().mkdir(mode=0o755)
    socket_folder().chmod(0o755)
    with pytest.raises(HostError, match="not a private folder"):
        make_folder()
    backend = api.BackendApi(netlist(tmp_path), api.get_golden_config())
    with pytest.warns(api.BackendWarning, match="other processes cannot reach"):
        assert backend.initialize() == OK
    assert push(backend.get_queue_descriptor("a"), entries(2)) == OK
    backend.finish()


def test_a_caller_without_the_key_gets_nothing(tmp_path):
    from multiprocessing import AuthenticationError
    from multiprocessing.connection import Client

    backend, descs = machine(tmp_path)
    address = str(socket_path(machine_key(descs["a"].netlist_path, BackendType.Golden)))
    with pytest.raises(AuthenticationError):
        Client(address, "AF_UNIX", authkey=b"guess")
    with socket.socket(socket.AF_UNIX) as rude:
        rude.connect(address)
    with socket.socket(socket.AF_UNIX) as silent:  # says nothing and keeps nobody waiting
        silent.connect(address)
        port = RemotePort(machine_key(descs["a"].netlist_path, BackendType.Golden))
        assert port.is_untilized("a") is False
        port.close()
    backend.finish()


def address_of(desc):
    return str(socket_path(machine_key(desc.netlist_path, BackendType.Golden)))


BROKEN_MESSAGES = {
    "no pickle": lambda line: line.send_bytes(b"no pickle"),
    "no pair": lambda line: line.send(7),
    "no sizes": lambda line: line.send((b"", None)),
    "negative": lambda line: line.send((pickle.dumps(0), [-1])),
    "too large": lambda line: line.send((pickle.dumps(0), [1 << 60])),
    "no request": lambda line: line.send((pickle.dumps(3), [])),
    "no name": lambda line: line.send((pickle.dumps((3, ())), [])),
    "no tuple": lambda line: line.send((pickle.dumps(("is_untilized", "a")), [])),
    "a class that is not there": lambda line: line.send((b"cnowhere\nNothing\n.", [])),
    "half": lambda line: (line.send((pickle.dumps(0), [100])), os.write(line.fileno(), b"x" * 10)),
}


@pytest.mark.parametrize("message", BROKEN_MESSAGES.values(), ids=BROKEN_MESSAGES)
def test_a_broken_message_ends_its_client_only(message, tmp_path):
    """No traceback of its thread (which pytest would see), and nothing is left of it."""
    from multiprocessing.connection import Client

    backend, descs = machine(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", api.BackendWarning)
        with Client(address_of(descs["a"]), "AF_UNIX", authkey=password()) as line:
            message(line)
            with socket.fromfd(line.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as half:
                half.shutdown(socket.SHUT_WR)
            with pytest.raises((EOFError, OSError)):
                line.recv()
        assert until(lambda: not any(thread.name == "buda-emu-client" for thread in threading.enumerate()))
    port = RemotePort(machine_key(descs["a"].netlist_path, BackendType.Golden))
    assert port.is_untilized("a") is False
    port.close()
    backend.finish()


def test_strangers_are_few_and_have_little_time(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "_MOST_UNAUTHENTICATED", 4)
    monkeypatch.setattr(server, "_AUTHENTICATION_SECONDS", 1)
    backend, descs = machine(tmp_path)
    silent = [socket.socket(socket.AF_UNIX) for _ in range(12)]
    for line in silent:
        line.settimeout(10)
        line.connect(address_of(descs["a"]))
    assert sum(thread.name == "buda-emu-client" for thread in threading.enumerate()) <= 4
    for line in silent:
        while line.recv(1000):  # the challenge, then the end
            pass
        line.close()
    port = RemotePort(machine_key(descs["a"].netlist_path, BackendType.Golden))
    assert port.is_untilized("a") is False
    port.close()
    backend.finish()


def test_fifty_clients_at_once(tmp_path):
    backend, descs = machine(tmp_path)
    found = []

    def ask():
        port = RemotePort(machine_key(descs["a"].netlist_path, BackendType.Golden))
        for _ in range(20):
            found.append(port.is_untilized("a"))
        port.close()

    threads = [threading.Thread(target=ask) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [False] * 1000
    assert until(lambda: not any(thread.name == "buda-emu-client" for thread in threading.enumerate()))
    backend.finish()


def test_only_the_methods_of_a_port_can_be_called(tmp_path):
    backend, descs = machine(tmp_path)
    port = RemotePort(machine_key(descs["a"].netlist_path, BackendType.Golden))
    with pytest.raises(HostError, match="a machine has no close"):
        port._call("close")
    with pytest.raises(HostError, match="no queue 'nothing'; queues: "):
        port.is_untilized("nothing")
    with pytest.raises(HostError):
        port.push("a", None, "Float32", 0.0, 0)
    assert port.is_untilized("a") is False
    port.close()
    backend.finish()


def test_the_newest_machine_serves(tmp_path):
    path = netlist(tmp_path)
    old = opened(path)
    with pytest.warns(api.BackendWarning, match="another BackendApi serves this netlist"):
        new = opened(path)
    port = RemotePort(machine_key(str(path), BackendType.Golden))
    assert push(new.get_queue_descriptor("a"), entries(2)) == OK
    array, _ = port.read("a", False, 0.0, 0)
    np.testing.assert_array_equal(array, entries(2))
    old.finish()  # leaves the new one's socket alone
    port.close()
    assert port.is_untilized("a") is False
    port.close()
    new.finish()


def test_a_pickle_needs_nobody_until_it_is_used(tmp_path):
    backend, descs = machine(tmp_path)
    pickled = pickle.dumps(descs)
    backend.finish()
    again = pickle.loads(pickled)
    assert again["a"].name == "a"
    assert push(again["a"], entries(2)) == WRONG


def in_fork(desc, told):
    told.put(push(desc, entries(2)).name)


def test_a_forked_child_uses_its_parents_machine(tmp_path):
    backend, descs = machine(tmp_path)
    context = mp.get_context("fork")
    told = context.Queue()
    child = context.Process(target=in_fork, args=(descs["a"], told))
    child.start()
    assert told.get(timeout=60) == "Success"
    child.join(60)
    out = api.PytorchTensorDesc()
    assert api.get_output(descs["a"], out, False, 0, 0) == OK
    backend.finish()
