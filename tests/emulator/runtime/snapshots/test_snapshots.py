"""Saving a machine and going on elsewhere: same bits; other versions, other netlists and damaged files refused."""

import json
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import buda_emu as be
from buda_emu.arithmetic.formats.stored import stored_tile_bytes
from buda_emu.emulator.runtime.snapshots.state import fingerprint
from buda_emu.spec.formats import NETLIST_FORMATS
from shared_files import ROOT
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

TRAINING = ROOT / "netlists" / "training.yaml"
STEPS = 4


def feed(emu, step):
    rng = np.random.default_rng(step)
    emu.push("x", rng.standard_normal((2, 1, 64, 128), np.float32))
    emu.push("grad_y", rng.standard_normal((2, 1, 64, 64), np.float32))


def start(emu):
    rng = np.random.default_rng(99)
    emu.push("lr", np.full((1, 1, 32, 32), 1 / 64, np.float32))
    for name in ("w1", "w2", "grad_w1", "grad_w2"):
        shape = emu.netlist.queues[name].blocking.element_shape
        emu.push(name, rng.standard_normal((1, *shape), np.float32) * (0 if name.startswith("grad") else 0.1))


def step(emu, number):
    feed(emu, number)
    emu.run("run_fwd", {"$p_loop_count": 2})
    emu.pop("y", 2)
    emu.run("run_bwd", {"$p_loop_count": 2, "$p_zero_grad": "True" if number == 0 else "False"})
    emu.run("run_opt")


def bits(emu):
    """Everything a host can see."""
    found = {name: array.view(np.uint32) for name, array in emu.outputs("raw").items()}
    for name, channel in emu._memory.channels.items():
        found[f"{name} pointers"] = np.array([channel.describe()])
    return found


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


RESUME = """
import sys
sys.path[:0] = sys.argv[3:]
import numpy as np
import buda_emu as be
from test_snapshot_steps import step, bits
with be.Emulator.load(sys.argv[1], threads=2) as emu:
    for number in (2, 3):
        step(emu, number)
    np.savez(sys.argv[2], **bits(emu))
"""


@pytest.mark.parametrize("precision", ["format", "device"])
def test_a_training_goes_on_in_another_process_with_the_same_bits(precision, tmp_path, child_environment):
    net = be.load(TRAINING)
    saved, result = tmp_path / "half.snap", tmp_path / "result.npz"
    with be.Emulator(net, precision, threads=1) as emu:
        start(emu)
        for number in range(2):
            step(emu, number)
        emu.save(saved)
        for number in (2, 3):
            step(emu, number)
        through = bits(emu)
    (tmp_path / "test_snapshot_steps.py").write_text(Path(__file__).read_text())
    command = [sys.executable, "-c", RESUME, str(saved), str(result), str(tmp_path), str(ROOT / "tests" / "helpers")]
    done = subprocess.run(command, env=child_environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert_same(dict(np.load(result)), through)


def test_restore_takes_a_machine_back(tmp_path):
    net = be.load(TRAINING)
    with be.Emulator(net, threads=1) as emu:
        start(emu)
        step(emu, 0)
        emu.save(tmp_path / "one")
        before = bits(emu)
        step(emu, 1)
        after = bits(emu)
        emu.restore(tmp_path / "one")
        assert_same(bits(emu), before)
        step(emu, 1)
        assert_same(bits(emu), after)
        assert not all(np.array_equal(before[name], after[name]) for name in before)
        emu.save(tmp_path / "two")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]  # nothing half written is left


def entries(*values, shape=(1, 32, 32)):
    return np.stack([np.full(shape, value, np.float32) for value in values])


def everything():
    """A netlist with every kind of state: tilizer, dual views, dynamic queues, gradient without a ram, autoincs."""
    base = "{input: HOST, type: ram, entries: 4, grid_size: [1, 1], t: 1, mblock: [1, 1], ublock: [1, 1], df: Float32, "
    view = base.replace("entries: 4", "entries: 2").replace("t: 1", "t: 2")
    place = "target_device: 0, loc: dram, dram: [[3, 0x20000000]]}\n"
    return text(
        [
            queue("flat", more=", layout: flat"),
            queue("x", entries=6, df="Float16_b"),
            f"  base: {base}{place}",
            f"  view: {view}alias: base, {place}",
            queue("dyn", "n", df="Float16_b"),
            queue("tiles", "tile"),
            queue("sums", "after", entries=8, df="Float16_b"),
            queue("r", "k", kind="ram", entries=4),
        ],
        [
            graph("g", op("n", "nop", ["x"], df="Float16_b")),
            graph("h", op("tile", "tilizer", ["flat"])),
            graph(
                "i",
                op("s", "nop", ["x"], df="Float16_b", more=", gradient_op: true"),
                op("after", "nop", ["s"], loc=(0, 1), df="Float16_b"),
            ),
            graph("k", op("k", "nop", ["base"])),
        ],
        [
            program(
                "p",
                "var: {$c_zero: 0}",
                "staticvar: {$n: 7}",
                "allocate_queue: [dyn]",
                execute("g", fifo_settings("x", prologue="true")),
                "varinst: [$n, inc, 1]",
                "varinst: [$u, set, $n]",
            ),
            program(
                "q",
                "var: {$c_zero: 0}",
                execute("h", fifo_settings("flat")),
                execute("i", fifo_settings("x")),
                execute("k", ram_settings("base"), ram_settings("r", more=", global_wrptr_autoinc: 1")),
            ),
            program("free", "deallocate_queue: [dyn]"),
        ],
    )


@pytest.mark.parametrize("precision", ["format", "device"])
def test_every_kind_of_state_comes_back(precision, load, tmp_path):
    net = load(everything())

    def drive(emu):
        emu.run("q")
        emu.run("free")
        emu.run("p")

    with be.Emulator(net, precision, threads=1) as emu:
        emu.push("flat", np.arange(4096, dtype=np.float32).reshape(4, 1, 32, 32))
        emu.push("x", entries(1.5, 2.5))
        emu.push("view", entries(1, shape=(2, 32, 32)), slot=1)  # base slots 2 and 3
        emu.push("base", entries(3), slot=0)
        emu.run("p")
        emu.run("q")
        emu.save(tmp_path / "snap")
        with be.Emulator.load(tmp_path / "snap", threads=1) as other:
            assert_same(bits(other), bits(emu))
            np.testing.assert_array_equal(other.peek("view", slot=1), emu.peek("view", slot=1))
            assert other._memory.allocated == ["dyn"]
            with pytest.raises(be.HostError, match="entry 1 of base was never written"):
                other.peek("base", slot=1)
            drive(emu)
            drive(other)
            assert_same(bits(other), bits(emu))
            assert other.peek("sums", 2, "raw")[:, 0, 0, 0].tolist() == [1.5, 3.0]  # the sum went on
            assert other._programs.interpreter("p").variables.snapshot() == {"$n": 9, "$u": 9, "$c_zero": 0}
            with pytest.raises(be.ProgramError, match="it is already allocated") as caught:
                other.run("p")
            assert caught.value.kind == "allocation"
            emu.push("base", entries(8), slot=2)  # a machine of its own
            assert (other.peek("view", slot=1) == 1).all()


def test_traffic_is_counted_on_for_error_texts(load, tmp_path):
    net = load(everything())
    with be.Emulator(net, threads=1) as emu:
        emu.push("flat", entries(1))
        emu.push("x", entries(1))
        emu.push("base", entries(1))
        emu.run("q")
        emu.save(tmp_path / "snap")
    with be.Emulator.load(tmp_path / "snap", threads=1) as emu:
        for _ in range(3):
            emu.run("q")
        with pytest.raises(be.ProgramError, match="so far 4 entries pushed and 0 freed") as caught:
            emu.run("q")
        assert caught.value.stopped.queue.pushed.total == 4


def test_only_written_entries_are_stored(load, tmp_path):
    net = load(
        text(
            [queue("x", entries=1000, mblock=(2, 2)), queue("r", kind="ram", entries=1000), queue("o", "n")],
            [graph("g", op("n", "nop", ["r"]))],
            [program("p", "var: {$c_zero: 0}", execute("g", ram_settings("r")))],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        emu.push("x", entries(1, 2, shape=(1, 64, 64)))
        emu.push("r", entries(5), slot=999)
        emu.save(tmp_path / "snap")
        arrays = 2 * 4 * 4096 + 4096
        assert arrays < (tmp_path / "snap").stat().st_size < arrays + 8192
    with be.Emulator.load(tmp_path / "snap", threads=1) as emu:
        assert (emu.peek("r", slot=999) == 5).all()
        assert emu.pop("x", 2)[:, 0, 0, 0].tolist() == [1, 2]


def test_specials_keep_their_bits(load, tmp_path):
    net = load(everything())
    words = np.random.default_rng(0).integers(0, 1 << 32, 1024, np.uint32).view(np.float32).reshape(1, 1, 32, 32)
    with be.Emulator(net, threads=1) as emu:
        emu.push("base", words)
        emu.save(tmp_path / "snap")
    with be.Emulator.load(tmp_path / "snap", threads=1) as emu:
        np.testing.assert_array_equal(emu.peek("base", readout="raw").view(np.uint32), words.view(np.uint32))


# ------------------------------------------------------------------------------------------------ what is refused
@pytest.fixture
def snap(load, tmp_path, request):
    """Of precision "format" unless a test says otherwise."""
    net = load(everything())
    with be.Emulator(net, getattr(request, "param", "format"), threads=1) as emu:
        emu.push("flat", np.arange(4096, dtype=np.float32).reshape(4, 1, 32, 32))
        emu.push("x", entries(1.5, 2.5))
        emu.push("base", entries(3))
        emu.run("p")
        emu.run("q")
        emu.save(tmp_path / "snap")
    return tmp_path / "snap"


def rewritten(path, change, *, compression=zipfile.ZIP_STORED, drop=(), extra=()):
    """The snapshot again with another header."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["header.json"])
    changed = change(header)
    members["header.json"] = json.dumps(header if changed is None else changed).encode()
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in [*members.items(), *extra]:
            if name not in drop:
                archive.writestr(name, data)


def set_at(*keys, value):
    def change(header):
        for key in keys[:-1]:
            header = header[key]
        header[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (set_at("schema_version", value=1), "its form has version 1, this buda-emu reads version 3"),
        (set_at("buda_emu", value="9.9"), r"it is of buda-emu 9\.9, this is "),
        (set_at("precision", value="ideal"), "it is of precision|has precision ideal, the machine format"),
        (set_at("netlist", "sha256", value="0"), r"it is of another netlist \(.*net\.yaml, wormhole_b0\) than"),
        (set_at("kind", value="sonnet"), "not a snapshot of buda-emu"),
        (lambda _: [], "not a snapshot of buda-emu"),
        (set_at("queues", "x", "rd", value=12), "queues.x.rd is not an integer from 0 to 11"),
        (set_at("queues", "x", "rd", value=True), "queues.x.rd is not an integer"),
        (set_at("queues", "x", "zero", value=1), "queues.x.zero is not true or false"),
        (set_at("queues", "x", value=None), "queues.x is not an object"),
        (set_at("queues", "base", "wr", value=4), "queues.base.wr is not an integer from 0 to 3"),
        (set_at("queues", "r", "global_wrptr_autoinc", value=-1), "global_wrptr_autoinc is not"),
        (set_at("stores", "x", "tiles", value=2), "stores.x is not a memory of this netlist"),
        (set_at("stores", "other", value={"tiles": 1, "labels": []}), "stores.other is not a memory"),
        (set_at("stores", "x", "labels", value=[[0, 7, "Float32"]]), "stores.x has slices that"),
        (set_at("stores", "x", "labels", value=[[0, 1 << 60, "Float32"]]), "stores.x has slices that"),
        (set_at("stores", "x", "labels", value=[[1, 1, "Float32"], [0, 1, "Float32"]]), "stores.x has slices that"),
        (set_at("stores", "x", "labels", value=[[0, -1, "Float32"]]), "stores.x has slices that"),
        (set_at("stores", "x", "labels", value=[[0, 1, "Float33"]]), "unknown format"),
        (set_at("stores", "x", "labels", value=[[0, 1]]), "stores.x.labels is not a list of"),
        (set_at("stores", "x", "labels", value=[[0, 1, "Float32"]]), "bytes, not those of its header"),
        (set_at("views", value={}), "views.view is missing"),
        (set_at("views", "view", value=[[2, "Float32"]]), "views has a label of view"),
        (set_at("views", "view", value=[[0, "Float32"], [0, "Float32"]]), "views has a label of view"),
        (set_at("views", "view", value=[[0, "Float33"]]), "views has a label of view"),
        (set_at("flat", "x", value={"slots": [[0]]}), "flat.x is not row-major data"),
        (set_at("flat", "flat", "slots", value=[[0], [0]]), "flat.flat is not row-major data"),
        (set_at("flat", "flat", "slots", value=[[4]]), "flat.flat is not row-major data"),
        (set_at("allocated", value=[["x"]]), "queues that are not dynamic"),
        (set_at("allocated", value=[["dyn"], ["dyn"]]), "queues that are not dynamic"),
        (set_at("programs", "x", value={"variables": [], "params": []}), "programs.x is not a program"),
        (set_at("programs", "p", "variables", value=[["n", "staticvar", 1 << 31]]), "unknown kind or size"),
        (set_at("programs", "p", "variables", value=[["n", "constant", 1]]), "unknown kind or size"),
        (set_at("gradients", "n", value={"tiles": 1}), "sum of n, which is not a gradient op"),
        (set_at("gradients", "s", "tiles", value=2), "sum of s with 2 tiles, not 1"),
        (set_at("traffic", "x", "pushed", value=[["nobody", 0, 1]]), "traffic.x has a pushed that cannot be"),
        (set_at("executed", value=[["nothing", 1]]), "executed graphs that the netlist has not"),
        (lambda header: header.pop("traffic") and None, "traffic is missing"),
    ],
)  # fmt: skip
def test_headers_that_cannot_be_are_refused(snap, load, change, reason):
    net = load(everything_again(snap))
    with be.Emulator(net, threads=1) as emu:
        emu.push("x", entries(9))
        before = bits(emu)
        rewritten(snap, change)
        with pytest.raises(be.HostError, match=reason):
            emu.restore(snap)
        assert_same(bits(emu), before)  # as it was
        emu.push("x", entries(10))
        assert emu.pop("x", 2)[:, 0, 0, 0].tolist() == [9, 10]


LARGE = text(
    [queue("x", entries=1 << 30), queue("flat", entries=1 << 20, more=", layout: flat"), queue("o", "n")],
    [graph("g", op("n", "tilizer", ["flat"]), op("m", "nop", ["x"], loc=(0, 1)))],
    [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("flat"), fifo_settings("x")))],
).replace("o: {input: n", "o: {input: m")


def labels(count):
    return set_at("stores", "x", value={"tiles": 1, "labels": [[0, count, "Float32"]]})


def slots(count):
    return set_at("flat", "flat", value={"slots": [[slot] for slot in range(count)]})


@pytest.mark.parametrize(
    ("change", "member", "reason"),
    [
        (labels(1 << 30), "stores/x", "a snapshot needs 4096.00 GiB"),
        (labels(1 << 14), "stores/x", "stores/x has 0 bytes"),
        (slots(1 << 15), "flat/flat", "a snapshot needs 0.12 GiB"),
        (slots(1 << 13), "flat/flat", "flat/flat has 0 bytes"),
        (set_at("padding", value=[[] for _ in range(1 << 20)]), "flat/flat", "its header has .* bytes, too many"),
    ],
)
def test_sizes_are_bounded_before_memory_is_taken(change, member, reason, load, tmp_path):
    net = load(LARGE)
    with be.Emulator(net, threads=1, memory_limit=100 << 20) as emu:
        emu.save(tmp_path / "snap")
    rewritten(tmp_path / "snap", change, extra=[(member, b"")])
    tracemalloc.start()
    try:
        with pytest.raises(be.HostError, match=reason):
            be.Emulator.load(tmp_path / "snap", net, threads=1, memory_limit=100 << 20)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_memory_that_is_not_to_be_had_is_a_documented_error(snap, load, monkeypatch):
    def none(*_):
        raise MemoryError

    monkeypatch.setattr("buda_emu.emulator.runtime.snapshots.state.read_row_major", none)
    with pytest.raises(be.HostError, match="the memory for it is not to be had"):
        be.Emulator.load(snap)


def everything_again(snap):
    """The netlist of the snapshot: addresses of small netlists differ from text to text."""
    with zipfile.ZipFile(snap) as archive:
        return archive.read("netlist.yaml").decode()


def test_a_netlist_is_compared_by_what_it_says(snap, load):
    net = load("# another comment\n" + everything_again(snap).replace("entries: 6,", "entries:   6 ,"), "other.yaml")
    with be.Emulator.load(snap, net, threads=1) as emu:
        assert len(emu.peek("x")) == 2
    changed = load(everything_again(snap).replace("entries: 6,", "entries: 12,"), "other.yaml")
    assert fingerprint(changed) != fingerprint(net)
    with pytest.raises(be.HostError, match="another netlist"):
        be.Emulator.load(snap, changed)


def test_without_its_netlist_one_must_be_given(load, tmp_path):
    net = load(everything())
    (tmp_path / "net.yaml").unlink()
    with be.Emulator(net, threads=1) as emu:
        emu.push("x", entries(1))
        emu.save(tmp_path / "snap")
    with pytest.raises(be.HostError, match="it keeps no netlist"):
        be.Emulator.load(tmp_path / "snap")
    with be.Emulator.load(tmp_path / "snap", net, threads=1) as emu:
        assert len(emu.peek("x")) == 1


def test_a_machine_from_a_snapshot_keeps_the_netlist_for_the_next(snap, tmp_path):
    """Its file may be on another computer."""
    (tmp_path / "net.yaml").unlink()
    with be.Emulator.load(snap, threads=1) as emu:
        emu.save(tmp_path / "second")
    with be.Emulator.load(tmp_path / "second", threads=1) as emu:
        emu.save(tmp_path / "third")
    with zipfile.ZipFile(snap) as first, zipfile.ZipFile(tmp_path / "third") as third:
        assert third.read("netlist.yaml") == first.read("netlist.yaml")
    with be.Emulator.load(tmp_path / "third", threads=1) as emu:
        assert len(emu.peek("x")) == 2


@pytest.mark.parametrize(("precision", "kept"), [("format", 1), ("ideal", np.float32(1.0001)), ("device", 1)])
def test_precision_is_kept(precision, kept, load, tmp_path):
    net = load(everything())
    with be.Emulator(net, precision, threads=1) as emu:
        emu.push("x", entries(1.0001))
        emu.save(tmp_path / "snap")
    with be.Emulator.load(tmp_path / "snap", threads=1) as emu:
        assert emu.precision == precision
        assert emu.pop("x")[0, 0, 0, 0] == kept
    for other in {"format", "ideal", "device"} - {precision}:
        with (
            be.Emulator(net, other, threads=1) as emu,
            pytest.raises(be.HostError, match=f"it has precision {precision}, the machine {other}"),
        ):
            emu.restore(tmp_path / "snap")


# ------------------------------------------------------------------------------------------- bits of precision device
def stored(emu, name):
    """The datums of all entries, and the shared exponents."""
    found = emu._memory.channel(name).view.bits(0, 2)
    return found.datums, np.empty(0) if found.exponents is None else found.exponents


@pytest.mark.parametrize("df", NETLIST_FORMATS)
def test_the_bits_of_a_format_come_back_in_as_many_bytes(df, load, tmp_path):
    net = load(
        text(
            [queue("x", df=df, mblock=(2, 1)), queue("a"), queue("o", "n")],
            [graph("g", op("n", "nop", ["a"]))],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
        )
    )
    words = np.random.default_rng(5).integers(0, 1 << 32, (2, 1, 64, 32), np.uint32)
    with be.Emulator(net, "device", threads=1) as emu:
        emu.push("x", words if df.startswith("Raw") else words.view(np.float32))
        emu.save(tmp_path / "snap")
        kept = stored(emu, "x")
        size = 4 * stored_tile_bytes(df)
        assert size < (tmp_path / "snap").stat().st_size < size + 8192
        with be.Emulator.load(tmp_path / "snap", threads=1) as other:
            for one, two in zip(stored(other, "x"), kept, strict=True):
                np.testing.assert_array_equal(one, two)
            assert other._memory._budget.used == emu._memory._budget.used
            other.save(tmp_path / "again")
        emu.push("x", np.zeros_like(words))
        emu.restore(tmp_path / "snap")
        for one, two in zip(stored(emu, "x"), kept, strict=True):
            np.testing.assert_array_equal(one, two)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "snap").read_bytes()


@pytest.mark.parametrize(
    ("df", "place", "code"), [("Bfp4_b", 0, 16), ("Bfp2", 5, 4), ("Bfp8", 1024, 32), ("Bfp4", 1025, 255)]
)
def test_codes_that_a_format_has_not_are_refused(df, place, code, load, tmp_path):
    net = load(
        text(
            [queue("y", df=df), queue("o", "n", df=df)],
            [graph("g", op("n", "nop", ["y"], df=df))],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("y")))],
        )
    )
    with be.Emulator(net, "device", threads=1) as emu:
        emu.push("y", entries(1))
        emu.save(tmp_path / "snap")
        with zipfile.ZipFile(tmp_path / "snap") as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        codes = bytearray(members["stores/y"])
        codes[place] = code
        with zipfile.ZipFile(tmp_path / "snap", "w") as archive:
            for name, data in {**members, "stores/y": bytes(codes)}.items():
                archive.writestr(name, data)
        with pytest.raises(be.HostError, match="stores/y holds codes that its format has not"):
            emu.restore(tmp_path / "snap")


@pytest.mark.parametrize("snap", ["device"], indirect=True)
def test_bits_of_another_format_are_refused(snap):
    rewritten(snap, set_at("stores", "x", "labels", value=[[0, 2, "Float16"]]))
    with pytest.raises(be.HostError, match=r"stores\.x has slices that .* have an unknown format"):
        be.Emulator.load(snap)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"compression": zipfile.ZIP_DEFLATED}, "compressed or encrypted"),
        ({"drop": ["stores/x"]}, "its members are not those"),
        ({"drop": ["header.json"]}, r"no member header\.json"),
        ({"extra": [("../evil", b"x")]}, "its members are not those"),
    ],
)
def test_archives_of_another_make_are_refused(snap, arguments, reason):
    rewritten(snap, lambda _: None, **arguments)
    with pytest.raises(be.HostError, match=reason):
        be.Emulator.load(snap)
    assert not (snap.parent.parent / "evil").exists()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_twice_is_refused(snap):
    rewritten(snap, lambda _: None, extra=[("header.json", b"{}")])
    with pytest.raises(be.HostError, match="a member occurs in it twice"):
        be.Emulator.load(snap)


def test_a_memory_limit_holds_for_snapshots(snap):
    with pytest.raises(be.HostError, match="a snapshot needs"):
        be.Emulator.load(snap, memory_limit=8192)


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip file at all", b"PK\x03\x04" + bytes(100)])
def test_what_is_no_archive_is_refused(tmp_path, content):
    (tmp_path / "snap").write_bytes(content)
    with pytest.raises(be.HostError, match="cannot be read"):
        be.Emulator.load(tmp_path / "snap")
    with pytest.raises(be.HostError, match="cannot be read"):
        be.Emulator.load(tmp_path / "nothing")


def test_a_place_that_cannot_be_written_is_said(snap, load):
    with be.Emulator.load(snap, threads=1) as emu:
        with pytest.raises(be.HostError, match="no-such"):
            emu.save(snap.parent / "no-such" / "snap")
        with pytest.raises(be.HostError, match="snapshot"):
            emu.save(snap.parent)  # a directory
    assert sorted(path.name for path in snap.parent.iterdir()) == ["net.yaml", "snap"]


@pytest.mark.parametrize("snap", ["format", "device"], indirect=True)
def test_a_truncated_file_is_refused_wherever_it_ends(snap):
    data = snap.read_bytes()
    for length in range(0, len(data), 499):
        snap.write_bytes(data[:length])
        with pytest.raises(be.HostError):
            be.Emulator.load(snap)


@pytest.mark.parametrize("snap", ["format", "device"], indirect=True)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_refused_or_says_the_same(snap, data):
    """Check sums cover the members; what stands between them does not count."""
    good = snap.with_name("good")
    if not good.exists():
        good.write_bytes(snap.read_bytes())
    content = bytearray(good.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    snap.write_bytes(content)
    try:
        emu = be.Emulator.load(snap, threads=1)
    except be.HostError:
        return
    with emu, be.Emulator.load(good, threads=1) as whole:
        assert_same(bits(emu), bits(whole))


def test_while_a_program_runs_nothing_is_saved(load, tmp_path):
    net = load(everything())
    with be.Emulator(net, threads=1) as emu:
        run = emu.run_async("p", wait=30)
        with pytest.raises(be.HostError, match="save: a program is running"):
            emu.save(tmp_path / "snap")
        emu.push("x", entries(1))
        run.result(30)
        emu.save(tmp_path / "snap")
        emu.restore(tmp_path / "snap")
    for call in (emu.save, emu.restore):
        with pytest.raises(be.HostError, match="this Emulator is closed"):
            call(tmp_path / "snap")
