"""`--memory-limit` bounds the process: its peak is at most the limit and 300 MB (docs/run/memory.md)."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import buda_emu as be
from buda_emu.emulator.inputs.numpy_files import host_copy_bytes
from buda_emu.support.options import parse_size
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

BESIDE = 300 * 10**6
# In a small process of its own: the peak of a child begins with that of the process that started it.
MEASURE = """
import resource, subprocess, sys
code = subprocess.run([sys.executable, "-m", "buda_emu", *sys.argv[1:]]).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10)
"""
SIDE = 16  # tiles: an entry is 1 MiB


def netlist(folder: Path, entries: int, *, side: int = SIDE, types: tuple[str, ...] = ("nop",)) -> Path:
    ops = [
        op(f"op{i}", kind, ["x" if i == 0 else f"op{i - 1}"], loc=(0, i), mblock=(side, side))
        for i, kind in enumerate(types)
    ]
    queues = [
        queue("x", entries=entries, mblock=(side, side)),
        queue("o", f"op{len(types) - 1}", entries=entries, mblock=(side, side)),
    ]
    run = program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("x")))
    path = folder / "net.yaml"
    path.write_text(text(queues, [graph("g", *ops, inputs=entries)], [run]))
    return path


def peak(*arguments: object, verb: str = "run") -> int:
    """Bytes."""
    command = [sys.executable, "-c", MEASURE, verb, *map(str, arguments), "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    code, size = done.stdout.splitlines()[-1].split()
    assert code == "0", done.stderr
    return int(size)


def test_the_peak_of_a_run_with_files(tmp_path: Path) -> None:
    """Queues of 96 MiB, a file of 48 MiB that is read as it is and once more as an array, and the output's file."""
    net, inputs, outputs = netlist(tmp_path, 48), tmp_path / "in", tmp_path / "out"
    inputs.mkdir()
    values = np.random.default_rng(1).standard_normal((48, 1, 32 * SIDE, 32 * SIDE)).astype(np.float32)
    np.save(inputs / "x.npy", values)
    arguments = net, "--precision", "ideal", "--outputs", outputs
    assert peak(*arguments, "--inputs", inputs, "--memory-limit", "193M") <= parse_size("193M") + BESIDE
    assert (outputs / "o.npy").read_bytes() == (inputs / "x.npy").read_bytes()  # as np.save writes it
    assert peak(*arguments, "--memory-limit", "99M") <= parse_size("99M") + BESIDE


@pytest.mark.parametrize(
    ("verb", "least"), [("test", "226M"), pytest.param("numerics", "130M", marks=pytest.mark.slow)]
)
def test_the_peak_of_a_test_and_of_numerics(tmp_path: Path, verb: str, least: str) -> None:
    """Queues of 64 MiB, of numerics twice; an output of 32 MiB, of a test observed, expected and compared."""
    net = netlist(tmp_path, 32)
    assert peak(net, "--memory-limit", least, verb=verb) <= parse_size(least) + BESIDE
    below = f"{int(least[:-1]) - 3}M"
    done = subprocess.run(
        [sys.executable, "-m", "buda_emu", verb, str(net), "--memory-limit", below], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "the memory limit" in done.stdout + done.stderr


def test_the_peak_of_an_image_with_many_epochs(tmp_path: Path) -> None:
    """In 20 epochs 71 queues of 8 MiB keep what the later ones read; their entries are still there at the end, and are
    no outputs."""
    onnx: Any = pytest.importorskip("onnx")
    count, names = 72, [f"h{n}" for n in range(72)]
    chain = zip(["x", *names], names, strict=False)
    nodes = [onnx.helper.make_node("Add", [last, "x"], [name], name=name) for last, name in chain]
    sums = [names[-1], *(f"s{n}" for n in range(count - 1))]
    for last, skipped, name in zip(sums, reversed(names[:-1]), sums[1:], strict=False):
        nodes.append(onnx.helper.make_node("Add", [last, skipped], [name], name=name))
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1024, 2048]) for name in ("x", sums[-1])]
    graph = onnx.helper.make_graph(nodes, "skips", ends[:1], ends[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    compiled = be.compile(model, effort="low", microbatch=1)
    assert compiled.placement.epochs > 10
    compiled.save(tmp_path)
    image, outputs = tmp_path / "model.tti", tmp_path / "out"
    values = np.random.default_rng(1).standard_normal((1024, 2048)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=values)
    arguments = image, "--precision", "ideal", "--inputs", tmp_path / "in.npz", "--outputs", outputs
    assert peak(*arguments, "--memory-limit", "680M") <= parse_size("680M") + BESIDE
    (found,) = outputs.iterdir()
    times = np.float32(count + 1 + sum(range(2, count + 1)))
    np.testing.assert_allclose(np.load(found).reshape(values.shape), times * values, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["format", "ideal", "device"])
@pytest.mark.parametrize("limit", ["650M", "1G"])
def test_the_peak_of_larger_runs(tmp_path: Path, precision: str, limit: str) -> None:
    net = netlist(tmp_path, 320, types=("exp", "sqrt", "nop", "gelu"))
    size = peak(net, "--precision", precision, "--outputs", tmp_path / "out", "--memory-limit", limit)
    assert size <= parse_size(limit) + BESIDE


@pytest.mark.slow
@pytest.mark.parametrize(("side", "limit"), [(64, "120M"), (128, "540M")])
def test_the_peak_of_runs_with_large_entries(tmp_path: Path, side: int, limit: str) -> None:
    net = netlist(tmp_path, 2, side=side, types=("exp", "nop"))
    assert peak(net, "--outputs", tmp_path / "out", "--memory-limit", limit) <= parse_size(limit) + BESIDE


def test_copies_of_files_are_foreseen(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((10, 32, 32), np.float32))
    size = 40960
    assert 2 * size <= host_copy_bytes(tmp_path) < 2 * size + 1024
    np.save(tmp_path / "a.npy", np.zeros((10, 32, 32), np.int8))
    assert host_copy_bytes(tmp_path) == size + size // 4
    (tmp_path / "b.npy").write_bytes(b"broken")
    assert host_copy_bytes(tmp_path) == size + size // 4
    np.savez(tmp_path / "c.npz", a=np.zeros(1000, np.float32), b=np.zeros(1000, np.float32))
    assert host_copy_bytes(tmp_path) >= 8000 + size + size // 4
    for i in range(3):
        (tmp_path / f"d.{i}.bin").write_bytes(bytes(100_000))
    assert host_copy_bytes(tmp_path) == 8000 + 600_000
