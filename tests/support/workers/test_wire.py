"""Messages between processes: what travels arrives as it was, and reading one runs no code of who wrote it."""

import json
import math
import os
import pickle
import random
import re
import struct
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import buda_emu as be
from buda_emu.netlist.load import load
from buda_emu.support.errors import BudaError, HostError, HostTimeoutError, NetlistError, ProgramError
from buda_emu.support.options import SettingsName
from buda_emu.support.workers import job
from buda_emu.support.workers import wire as classes
from buda_emu.support.workers.dask_cluster import Cluster
from buda_emu.support.workers.job import JOBS, Job, Lost, Shared, Workers
from buda_emu.support.workers.spread import Actors
from buda_emu.support.workers.wire import MessageError, pack, unpack
from buda_emu.testing.verify.runs.run_all import CASES
from shared_files import ROOT

HEAD = struct.Struct("<Q")
VALUES = (
    None,
    (True, -1, 1 << 80, 0.1, -0.0, math.inf, "a\ud800\u2028\n", b"", bytearray(b"x"), 1 - 2j, range(9, 1, -2)),
    {1: [(), []], (1, "a"): {2, 3}, "b": frozenset({None, (4,)})},
    (Path("/a/b"), Lost("crashed", "text", 0.5), Workers(2), Shared(3)),
)


def message(value, classes=(), sizes=(), memory=b""):
    head = json.dumps({"sizes": list(sizes), "classes": list(classes), "value": value}).encode()
    return HEAD.pack(len(head)) + head + memory


def head_of(data):
    size = HEAD.unpack(data[:8])[0]
    return json.loads(data[8 : 8 + size]), data[8 + size :]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_values_arrive_as_they_were(value):
    back = unpack(pack(value))
    assert back == value
    assert type(back) is type(value)


def test_who_gave_a_name_arrives_with_it():
    """As a key, in a pair and as a value: a name of the settings may be one that a netlist does not have."""
    name = SettingsName("$p")
    keys, (pair,), value = unpack(pack(({name: 1, "$q": 2}, [(name, "1")], name)))
    assert [type(key) for key in keys] == [SettingsName, str]
    assert keys == {"$p": 1, "$q": 2}
    assert (type(pair[0]), pair) == (SettingsName, ("$p", "1"))
    assert (type(value), value) == (SettingsName, "$p")
    title = "buda_emu.support.options:SettingsName"
    for broken in (["text", 0, 3], ["text", 1, "$p"], ["text", 0], ["object", 0]):
        with pytest.raises(MessageError):
            unpack(message(broken, [title]))
    with pytest.raises(MessageError):
        unpack(message(["text", 0, "$p"], ["buda_emu.support.workers.job:Workers"]))


def test_arrays_arrive_with_their_bits():
    nans = np.array([0x7FC00001, 0xFFC12345], np.uint32).view(np.float32)
    arrays = [nans, np.arange(6, dtype=">i2").reshape(2, 3).T, np.zeros((0, 3), np.float16), np.array(True)]
    for array, back in zip(arrays, unpack(pack(arrays)), strict=True):
        assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())
        assert back.flags.writeable
    number = unpack(pack(np.float64(2)))
    assert (type(number), number) == (np.float64, 2)
    assert struct.pack("<d", unpack(pack(-math.nan))) == struct.pack("<d", -math.nan)


def test_the_same_object_stays_one():
    part = [1]
    back = unpack(pack({"a": part, "b": (part, part)}))
    assert back["a"] is back["b"][0] is back["b"][1]
    loop = []
    loop.append(loop)
    back = unpack(pack(loop))
    assert back[0] is back


def test_netlists_travel_with_their_places():
    netlist = load(str(ROOT / "netlists/attention.yaml"))
    back = unpack(pack(netlist))
    assert (back.graphs, back.queues, back.programs) == (netlist.graphs, netlist.queues, netlist.programs)
    name, op = next(iter(netlist.ops.items()))
    assert back.ops[name].source.mark == op.source.mark
    assert back.sections.keys() == netlist.sections.keys()


def test_errors_travel_with_what_they_hold():
    timeout = HostTimeoutError("late", 3)
    stopped = ProgramError("full", kind="full", queue="q")
    for error in (HostError("a"), NetlistError("b"), timeout, stopped):
        back = unpack(pack(error))
        assert (type(back), str(back), back.__dict__) == (type(error), str(error), error.__dict__)

    class OtherError(HostError):
        """Not on the list."""

    assert type(unpack(pack(OtherError("c")))) is HostError


@pytest.mark.parametrize(
    "value", [os.system, partial(print), eval, be.load, object(), np.array([{}]), random.Random(0)]
)
def test_what_does_not_travel_is_refused_by_who_sends_it(value):
    with pytest.raises(TypeError, match="does not travel between workers"):
        pack([value])


def test_the_list_has_plain_data_only():
    for module, names in classes.NAMES.items():
        for name in names.split():
            kind = classes.class_by_title(f"{module}:{name}").kind
            assert "__reduce__" not in vars(kind), kind
            assert not hasattr(kind, "__del__"), kind
            if issubclass(kind, BudaError):
                continue
            own = vars(kind).get("__slots__")
            assert is_dataclass(kind) or hasattr(kind, "_fields") or own is not None, kind
            assert is_dataclass(kind) is False or all(item.name.isidentifier() for item in fields(kind)), kind


def test_every_job_of_the_package_is_on_the_list(monkeypatch):
    monkeypatch.undo()
    written = {
        name
        for path in Path(be.__file__).parent.rglob("*.py")
        for name in re.findall(r'\bJob\(\s*"(buda_emu[\w.]*:\w+)"', path.read_text())
    }
    assert written == JOBS
    for name in JOBS:
        module, _, function = name.partition(":")
        assert callable(getattr(import_module(module), function))


# ---------------------------------------------------------------------------------------------------- hostile messages
class Bomb:
    """Runs a command when it is unpickled."""

    def __init__(self, call, *arguments):
        self._call = call, arguments

    def __reduce__(self):
        return self._call


@pytest.fixture
def mark(tmp_path):
    return tmp_path / "executed"


def test_a_pickle_is_not_a_message(mark):
    evil = Job("os:system", f"touch {mark}")
    for bomb in (Bomb(os.system, f"touch {mark}"), Bomb(Actors, evil, [1], Workers(1)), Bomb(evil.work)):
        data = pickle.dumps(bomb)
        for framed in (data, HEAD.pack(len(data)) + data):
            with pytest.raises(MessageError, match="a message between workers cannot be read"):
                unpack(framed)
    assert not mark.exists()


STRANGE = (
    ["object", 0, "x"],
    ["error", 0, ["list", "x"], ["dict", [], []]],
    ["again", 5],
    ["list", ["again", 1]],
    ["tuple", ["again", 0]],
    ["dict", [["again", 0]], [1]],
    ["dict", [["list"]], [1]],
    ["dict", ["a"], []],
    ["set", ["dict", [], []]],
    ["array", 0, "|O8", [1]],
    ["array", 0, "<f4", [1 << 62]],
    ["bytes", 0],
    ["range", 1, 2, 0],
    ["float", "zz"],
    ["eval", "1"],
    ["__reduce__"],
    [],
    [[]],
    {"a": 1},
    ["path", 3],
)


@pytest.mark.parametrize("value", STRANGE, ids=range(len(STRANGE)))
def test_strange_messages_are_refused(value):
    with pytest.raises(MessageError):
        unpack(message(value))


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "buda_emu.support.workers.spread:Actors",
        "buda_emu.support.workers.job:NAMES",
        "subprocess:Popen",
        "",
        ":",
        3,
    ],
)
def test_classes_that_are_not_listed_are_refused(name):
    with pytest.raises(MessageError, match="a message between workers cannot be read"):
        unpack(message(["object", 0, "x"], [name]))


def test_fields_are_checked():
    for values in ([], ["os:system"], ["crashed", "text", 0.5, 1], [3, "text", 0.5], ["crashed", ["list"], 0.5]):
        with pytest.raises(MessageError):
            unpack(message(["object", 0, *values], ["buda_emu.support.workers.job:Lost"]))


def test_deep_and_large_messages_end_in_an_error():
    deep = b'{"sizes":[],"classes":[],"value":' + b"[" * 100_000
    for data in (HEAD.pack(len(deep)) + deep, HEAD.pack(1 << 63), message(1, sizes=[1 << 60]), message(1, sizes=[-1])):
        with pytest.raises(MessageError):
            unpack(data)


def test_a_key_is_as_long_as_it_looks():
    """Thirty tuples, each of the last one twice, would take a day to hash."""
    value = ["tuple", 1]
    for number in range(30):
        value = ["tuple", value, ["again", number]]
    with pytest.raises(MessageError):
        unpack(message(["dict", [value], [1]]))


def parts_of(value, found):
    """Every list of a head."""
    if isinstance(value, list):
        found.append(value)
        for part in value:
            parts_of(part, found)
    return found


def spoil(draw, head, words, names):
    """Change a head somewhere."""
    place = draw.choice(parts_of(head["value"], []))
    number = draw.randrange(len(place)) if place else 0
    match draw.randrange(5):
        case 0:
            place[number : number + 1] = []
        case 1:
            place[number : number + 1] = [draw.choice(words)]
        case 2:
            place.insert(
                number, draw.choice((0, -1, 1 << 70, 1.5, "os:system", "__class__", None, [], {}, ["again", 0]))
            )
        case 3:
            place[number : number + 1] = [draw.choice(parts_of(head["value"], []))]
        case _:
            head["classes"] = [draw.choice(names) for _ in head["classes"]]


def drawn_messages(seed, mark):
    """Messages of this package with changes, in their structure and in their bytes."""
    draw = random.Random(seed)
    netlist = load(str(ROOT / "netlists/attention.yaml"))
    values = (*VALUES[1:], netlist, (CASES, ""), HostTimeoutError("a", 1), [np.arange(9), np.float32(1)])
    names = [f"{module}:{name}" for module, line in classes.NAMES.items() for name in line.split()]
    names += [
        "os:system",
        "builtins:eval",
        "buda_emu.support.workers.spread:Actors",
        "subprocess:Popen",
        f"touch {mark}",
    ]
    data = pack(draw.choice(values))
    if draw.random() < 0.3:
        spoilt = bytearray(data)
        for _ in range(draw.randrange(1, 6)):
            spoilt[draw.randrange(len(spoilt))] = draw.randrange(256)
        return bytes(spoilt[: draw.randrange(8, len(spoilt) + 1)])
    head, memory = head_of(data)
    for _ in range(draw.randrange(1, 4)):
        try:
            spoil(draw, head, ("object", "error", "array", "again", "tuple", f"touch {mark}"), names)
            text = json.dumps(head)
        except ValueError:  # a list in itself
            return b"[" * 40
        head = json.loads(text)
    text = json.dumps(head).encode()
    return HEAD.pack(len(text)) + text + memory


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 60))])
def test_drawn_messages_run_no_code_and_end_in_a_clear_error(seed, mark, monkeypatch):
    messages = [drawn_messages(50 * seed + number, mark) for number in range(50)]
    called = []
    for name in ("system", "popen", "execv", "fork", "posix_spawn"):
        monkeypatch.setattr(os, name, lambda *_, name=name: called.append(name))
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: called.append("Popen"))
    refused = 0
    for data in messages:
        with suppress(MessageError):
            unpack(data)
            continue
        refused += 1
        with pytest.raises(MessageError, match="a message between workers cannot be read: "):
            unpack(data)
    assert refused > 5
    assert not called
    assert not mark.exists()


# -------------------------------------------------------------------------------------------------------- hostile jobs
OTHERS = (
    "os:system",
    "subprocess:run",
    "builtins:eval",
    "buda_emu.app.api.load:load",
    "buda_emu.support.workers.job:Job.work",
    "",
    ":",
)


@pytest.mark.parametrize("name", OTHERS)
def test_other_work_is_refused_by_who_asks_and_by_who_is_asked(name, mark):
    evil = Job(name, f"touch {mark}")
    with pytest.raises(HostError, match="is no work of buda-emu"):
        evil.work()
    with pytest.raises(HostError, match="is no work of buda-emu"):
        Actors(evil, [1], Workers(1))
    assert not mark.exists()


def test_a_worker_process_refuses_other_work_itself(mark, monkeypatch, capfd):
    from buda_emu.support.workers import pool as process

    monkeypatch.setattr(Job, "check", lambda _self: None)
    started = process.Process(Job("os:system", f"touch {mark}"))
    started.send(1, {})
    with pytest.raises((EOFError, OSError)):
        started.receive()
    assert started.end(grace=30) != 0
    assert "os:system is no work of buda-emu" in capfd.readouterr().err
    assert not mark.exists()


def test_jobs_of_tests_are_not_in_the_package():
    assert all(name.startswith("buda_emu.") for name in JOBS)
    assert job.JOBS != JOBS
    assert Cluster.__module__.startswith("buda_emu.")
