"""A netlist on several machines: the bits of one, and a clear end whatever happens to a worker."""

import os
import re
import signal
import socket
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.run_netlist import run_netlist
from buda_emu.app.cli.main import main
from buda_emu.emulator.distributed import machines as machines_module
from buda_emu.emulator.distributed.machines import Machines, WorkerLostError
from buda_emu.emulator.distributed.part import Link
from buda_emu.support.errors import HostError, ProgramError
from buda_emu.support.workers.job import Workers
from buda_emu.testing import generate
from case_functions import until
from near_parts import on_two_parts
from shared_files import ROOT

torch = pytest.importorskip("torch")
TWO_CHIPS = str(ROOT / "netlists/two_chips.yaml")


def arrays(netlist, count, precision="format", **more):
    return run_netlist(netlist, precision=precision, workers=Workers(count), **more).arrays


def require_equal(netlist, count, precision):
    alone, shared = arrays(netlist, 1, precision), arrays(netlist, count, precision)
    assert alone.keys() == shared.keys()
    for name, array in alone.items():
        assert np.array_equal(array.view(np.uint32), shared[name].view(np.uint32)), name


@pytest.mark.parametrize("precision", ["format", "ideal", "device"])
def test_two_chips_on_two_machines(precision):
    require_equal(be.load(TWO_CHIPS), 2, precision)


@pytest.mark.parametrize("name", ["training", "attention"])
def test_epochs_of_one_chip(name):
    """Rams that one epoch writes and another one reads, and sums of gradients, across machines."""
    require_equal(be.load(str(ROOT / f"netlists/{name}.yaml")), 3, "format")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_generated_netlists(seed, tmp_path):
    path = tmp_path / "generated.yaml"
    path.write_text(generate(seed).text)
    netlist = be.load(str(path))
    for precision in ("format", "device"):
        alone, shared = (end(netlist, count, precision) for count in (1, 3))
        assert alone == shared


def end(netlist, count, precision):
    """The bytes of all outputs, or why there are none."""
    try:
        return {name: array.tobytes() for name, array in arrays(netlist, count, precision).items()}
    except (ProgramError, be.UnsupportedError) as error:
        return type(error), str(error)


def between_parts(netlist, precision, value):
    """Types of the arrays that go from part to part, where every input is `value`."""
    parts, machines, errors = on_two_parts(
        netlist, precision, 2, lambda: lambda shape: np.full(shape, value, np.float32)
    )
    assert errors == [None, None]
    for machine in machines:
        machine.close()
    return {name for part in parts for name in part.sent}


@pytest.mark.parametrize("precision", ["format", "ideal", "device"])
def test_values_travel_in_2_bytes_where_these_hold_them(precision):
    netlist = be.load(TWO_CHIPS)
    assert between_parts(netlist, precision, 0.5) == {"uint16"}
    assert between_parts(netlist, precision, 0.3) == {"uint16" if precision == "device" else "float32"}


def test_the_command(tmp_path, capsys):
    for count in (1, 2):
        words = ["run", TWO_CHIPS, "--workers", str(count), "-q", "--outputs", str(tmp_path / str(count))]
        assert main(words) == 0
    files = [(path.name, path.read_bytes()) for path in sorted((tmp_path / "1").iterdir())]
    assert files == [(path.name, path.read_bytes()) for path in sorted((tmp_path / "2").iterdir())]


# ------------------------------------------------------------------------------------------------ what goes wrong
MOST = 400  # inputs that the queues of the long netlist hold


@pytest.fixture
def long_netlist(tmp_path):
    """Two chips, for as many inputs as it takes to end them."""
    path = tmp_path / "long.yaml"
    path.write_text(Path(TWO_CHIPS).read_text().replace("entries: 4,", f"entries: {MOST},"))
    return be.load(str(path))


class Running:
    """Machines that run so many inputs of two chips, on a thread of their own."""

    def __init__(self, netlist, inputs, told):
        self.machines = Machines(netlist, Workers(2), "device", threads=1, tell=told.append)
        self.children = [process.number for process in self.machines._actors._processes]
        self.error, self.result = None, None
        self._netlist, self._inputs = netlist, inputs
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self):
        rng = np.random.default_rng(0)
        try:
            with self.machines as machines:
                for queue in self._netlist.queues.values():
                    if queue.host_fed:
                        shape = (1 if queue.is_ram else self._inputs, *queue.blocking.element_shape)
                        machines.push(queue.name, rng.standard_normal(shape, np.float32))
                machines.run("run_fwd", {"$p_loop_count": self._inputs // 2})
                self.result = [output.shape[0] for output in machines.outputs_in_parts()]
        except (HostError, ProgramError) as error:
            self.error = error

    def end(self, seconds=60.0):
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the run hangs"


def is_alive(process):
    try:
        os.kill(process, 0)
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.fixture
def leaves_nothing(tmp_path, monkeypatch):
    """A folder of temporary files of the test's own, which is empty at its end; so is shared memory."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    before = set(Path("/dev/shm").iterdir())
    yield
    assert not list(folder.iterdir())
    assert not [path for path in set(Path("/dev/shm").iterdir()) - before if "buda" in path.name]


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("leaves_nothing")
def test_a_worker_that_is_killed(long_netlist, times):
    """At random moments: the run ends at once, with an error that names the worker and where it was."""
    draw = Random(times)
    for _ in range(times):
        running = Running(long_netlist, MOST, [])
        time.sleep(draw.random() * 0.5)
        which = draw.randrange(2)
        os.kill(running.children[which], signal.SIGKILL)
        running.end()
        assert running.result is None
        assert f"worker {which} of 2 (chip {which}) is lost: its worker process died (signal SIGKILL)" in str(
            running.error
        )
        assert not any(map(is_alive, running.children))


def children():
    """Processes that this one has started and that run."""
    tasks = Path("/proc/self/task").glob("*/children")
    return [number for task in tasks for number in map(int, task.read_text().split()) if is_alive(number)]


class Killer:
    """Told of the progress of a run, it kills a worker at these steps, by their number among programs."""

    def __init__(self, *steps, seconds=0.0):
        self.told, self.others = [], set(children())
        self._steps, self._seconds, self._begun = set(steps), seconds, 0

    def progress(self, text):
        if text.startswith("program"):
            if self._begun in self._steps:
                threading.Timer(self._seconds, self.kill).start()
            self._begun += 1

    def kill(self):
        for number in set(children()) - self.others:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
            return


@pytest.mark.parametrize(
    ("step", "precision", "place"),
    [(0, "format", "from the beginning"), (2, "device", "from the snapshot after program 2")],
)
@pytest.mark.usefixtures("leaves_nothing")
def test_parts_start_again_from_the_last_snapshot(step, precision, place):
    netlist = be.load(str(ROOT / "netlists/training.yaml"))
    killer = Killer(step)
    found = arrays(netlist, 2, precision, progress=killer.progress, tell=killer.told.append)
    (said,) = [text for text in killer.told if "is lost" in text]
    assert re.match(r"worker \d of 2 \(graphs? .*\) is lost: its worker process died \(signal SIGKILL\)", said)
    assert said.endswith(f": all parts start again {place}")
    alone = arrays(netlist, 1, precision)
    assert alone.keys() == found.keys()
    assert all(np.array_equal(alone[name].view(np.uint32), found[name].view(np.uint32)) for name in alone)
    assert not set(children()) - killer.others


def test_a_run_whose_workers_die_again_and_again_ends(monkeypatch):
    monkeypatch.setattr("buda_emu.emulator.distributed.machines.RESTARTS", 2)
    killer = Killer(*range(100))
    with pytest.raises(WorkerLostError, match=r"worker \d of 2 \(chip \d\) is lost: its worker process died"):
        arrays(be.load(TWO_CHIPS), 2, progress=killer.progress, tell=killer.told.append)
    assert len([text for text in killer.told if text.endswith("all parts start again from the beginning")]) == 2
    assert not set(children()) - killer.others


def test_a_worker_that_stands_still_is_told_about_and_may_go_on(long_netlist, monkeypatch):
    monkeypatch.setattr(machines_module, "SLOW_SECONDS", 1.5)
    told = []
    running = Running(long_netlist, 4, told)
    os.kill(running.children[1], signal.SIGSTOP)
    assert until(lambda: any("worker 1 of 2 (chip 1) gives no sign of life since" in text for text in told))
    os.kill(running.children[1], signal.SIGCONT)
    running.end()
    assert (running.error, running.result) == (None, [4])
    assert not any("since 0 s" in text or "since 1 s" in text for text in told)  # not before it was slow


def test_a_worker_that_stands_still_for_long_is_given_up(long_netlist, monkeypatch):
    monkeypatch.setattr(machines_module, "LOST_SECONDS", 2.0)
    running = Running(long_netlist, MOST, [])
    os.kill(running.children[0], signal.SIGSTOP)
    running.end()
    assert "worker 0 of 2 (chip 0) gave no sign of life for 2 s" in str(running.error)
    assert until(lambda: not any(map(is_alive, running.children)), 10)


def test_strangers_are_not_let_in(long_netlist, monkeypatch):
    """Connections without the secret, that say something else, or nothing, while the parts come."""
    strangers = []
    listen = machines_module.listener

    def listener(host):
        made = listen(host)
        for words in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096), b""):
            strangers.append(socket.create_connection(made.getsockname()))
            strangers[-1].sendall(words)
        return made

    monkeypatch.setattr(machines_module, "listener", listener)
    monkeypatch.setattr("buda_emu.emulator.distributed.part.HANDSHAKE_SECONDS", 0.5)
    running = Running(long_netlist, 4, [])
    running.end()
    for stranger in strangers:
        stranger.close()
    assert (running.error, running.result) == (None, [4])


def test_errors_are_those_of_one_machine(long_netlist):
    for make in (lambda: be.Emulator(long_netlist), lambda: Machines(long_netlist, Workers(2))):
        with make() as machine:
            with pytest.raises(ProgramError, match=r"read from an empty queue|never written"):
                machine.run("run_fwd", {"$p_loop_count": 2})
            name = next(queue.name for queue in long_netlist.queues.values() if queue.host_fed and not queue.is_ram)
            with pytest.raises(HostError, match=r"shape|rows|elements"):
                machine.push(name, np.zeros((1, 1, 1, 7), np.float32))


class Encoder(torch.nn.Module):
    """Ten encoder layers of a BERT: more ops than three chips have cores for, one each."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(64, 2, 128, batch_first=True, activation="gelu") for _ in range(10)
        )

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def test_parameters_of_an_image_travel_in_the_bytes_of_their_formats(tmp_path, monkeypatch):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024)).eval()
    compiled = be.compile(module, (torch.zeros(1, 32, 1024),), arch="wormhole_b0", df="Bfp8_b", effort="low")
    image = be.load_image(compiled.save(tmp_path, tilized=True)[1])
    sent: list[int] = []

    def spied(link, words, arrays=(), known=Link.send):
        sent.extend(array.nbytes for array in arrays if words.get("do") == "push")
        known(link, words, arrays)

    monkeypatch.setattr(Link, "send", spied)
    for precision in ("format", "ideal", "device"):
        sent.clear()
        options = {"precision": precision, "image": image, "parameters": {"$p_loop_count": "1"}}
        alone = run_netlist(image.for_inputs, **options).arrays
        assert not sent
        shared = run_netlist(image.for_inputs, workers=Workers(2), **options).arrays
        assert 1024 * 1024 < max(sent) < 1.2 * 1024 * 1024
        assert alone.keys() == shared.keys()
        for name, array in alone.items():
            assert np.array_equal(array.view(np.uint32), shared[name].view(np.uint32)), name


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """The image of a small BERT over four chips."""
    torch.manual_seed(0)
    compiled = be.compile(
        Encoder().eval(), (torch.zeros(1, 64, 64),), arch="wormhole_b0", chips=4, effort="low", microbatch=16
    )
    return be.load_image(compiled.save(tmp_path_factory.mktemp("bert"))[1])


@pytest.mark.slow
@pytest.mark.parametrize("times", [20])
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("leaves_nothing")
def test_a_bert_over_four_chips_whose_workers_die(bert, times):
    """At random moments of its start, its pushes and its run: the bits of one process, or an error that names one."""
    rounds = {"parameters": {"$p_loop_count": "1"}, "image": bert}
    netlist = bert.for_inputs
    assert len({graph.target_device for graph in netlist.graphs.values()}) == 4
    expected = arrays(netlist, 1, **rounds)
    draw = Random(times)
    for _ in range(times):
        killer, found, said = Killer(), None, ""
        timer = threading.Timer(draw.random() * 6, killer.kill)
        timer.start()
        try:
            found = arrays(netlist, 4, tell=killer.told.append, **rounds)
        except WorkerLostError as error:
            said = str(error)
        timer.cancel()
        timer.join()
        if found is None:
            assert re.search(r"worker \d of 4 \(chip \d\) is lost: its worker process died", said)
        else:
            assert all(np.array_equal(array, found[name]) for name, array in expected.items())
        assert not set(children()) - killer.others
