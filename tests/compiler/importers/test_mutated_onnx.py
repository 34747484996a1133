"""Thousands of damaged, strange and generated ONNX files: each compiles, and then gives onnxruntime's values, or is
refused with a documented error, in bounded time and memory."""

import json
import os
import random
import resource
import signal
import sys
import traceback
import warnings
from importlib.util import find_spec
from math import prod
from pathlib import Path

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.graph.graph import host_shape
from buda_emu.support.errors import BudaError, HostError, InternalError, ProgramError, UnsupportedError

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402 - only where onnx is

from compiler.importers.onnx_mutations import ODD, SECRET, cut, flipped, rewritten, strange  # noqa: E402
from onnx_graphs import generated  # noqa: E402
from shared_files import SHARED  # noqa: E402

QUICK, MANY = 200, 10_000
SECONDS = 60  # of processor time that one file may take, on any machine
HAS_ONNXRUNTIME = find_spec("onnxruntime") is not None
MEMORY = 3 << 30  # bytes of addresses beyond those of a process that has compiled something
JUMPS = {
    "QuantizeLinear", "Floor", "Ceil", "Round", "Sign", "Hardmax", "ArgMax", "ArgMin", "TopK", "Cast", "Greater",
    "Less", "Equal", "GreaterOrEqual", "LessOrEqual", "QLinearConv",
}  # fmt: skip
COMPARED = 1 << 15
"""Elements of a model's inputs up to which its values are held against onnxruntime's."""
LARGEST = 100 << 10
"""Bytes of a file of the shared models that is changed."""


def proto(nodes, inputs, outputs, held, opset=17):
    """Of nodes (op, inputs, outputs, attributes), shapes of inputs by name, and held arrays."""
    made = [helper.make_node(kind, ins, outs, name=outs[0], **attrs) for kind, ins, outs, attrs in nodes]
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def values(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def bases():
    """Small models of every family of operators."""
    yield proto(
        [
            ("MatMul", ["x", "w"], ["h0"], {}),
            ("Add", ["h0", "b"], ["h1"], {}),
            ("Relu", ["h1"], ["h2"], {}),
            ("Gemm", ["h2", "v", "c"], ["h3"], {"transB": 1, "alpha": 0.5}),
            ("Softmax", ["h3"], ["y"], {"axis": -1}),
        ],
        {"x": [4, 16]},
        ["y"],
        {"w": values(16, 24), "b": values(24), "v": values(8, 24), "c": values(8)},
    )
    yield proto(
        [
            ("Conv", ["x", "w"], ["h0"], {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
            ("BatchNormalization", ["h0", "s", "s", "s", "p"], ["h1"], {}),
            ("MaxPool", ["h1"], ["h2"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
            ("GlobalAveragePool", ["h2"], ["h3"], {}),
            ("Flatten", ["h3"], ["y"], {}),
        ],
        {"x": [1, 3, 8, 8]},
        ["y"],
        {"w": values(4, 3, 3, 3), "s": values(4), "p": abs(values(4))},
    )
    yield proto(
        [
            ("Reshape", ["x", "form"], ["h0"], {}),
            ("Transpose", ["h0"], ["h1"], {"perm": [0, 2, 1]}),
            ("Split", ["h1", "parts"], ["h2", "h3"], {"axis": 1}),
            ("Concat", ["h3", "h2"], ["h4"], {"axis": 1}),
            ("Slice", ["h4", "from", "to", "axes"], ["h5"], {}),
            ("Pad", ["h5", "pads"], ["h6"], {}),
            ("Gather", ["h6", "which"], ["h7"], {"axis": 1}),
            ("ReduceMean", ["h7"], ["y"], {"axes": [1]}),
        ],
        {"x": [2, 48]},
        ["y"],
        {
            "form": np.array([2, 6, 8]),
            "parts": np.array([3, 5]),
            "from": np.array([1]),
            "to": np.array([5]),
            "axes": np.array([2]),
            "pads": np.array([0, 1, 0, 0, 0, 2]),
            "which": np.array([0, 2]),
        },
    )
    yield proto(
        [("LSTM", ["x", "w", "r"], ["h0", "h1", "h2"], {"hidden_size": 5}), ("Squeeze", ["h1", "axes"], ["y"], {})],
        {"x": [3, 2, 4]},
        ["y"],
        {"w": values(1, 20, 4), "r": values(1, 20, 5), "axes": np.array([0])},
    )
    yield proto(
        [
            ("QuantizeLinear", ["x", "s", "z"], ["h0"], {}),
            ("DequantizeLinear", ["h0", "s", "z"], ["h1"], {}),
            ("Resize", ["h1", "", "sizes"], ["h2"], {"mode": "nearest"}),
            ("Clip", ["h2", "low", "high"], ["h3"], {}),
            ("Einsum", ["h3", "w"], ["y"], {"equation": "bcij,cd->bdij"}),
        ],
        {"x": [1, 4, 4, 4]},
        ["y"],
        {
            "s": np.array(0.1, np.float32),
            "z": np.array(3, np.int8),
            "sizes": np.array([1, 1, 2, 2], np.float32),
            "low": np.array(-1, np.float32),
            "high": np.array(1, np.float32),
            "w": values(4, 6),
        },
    )
    branch = [
        helper.make_graph(
            [helper.make_node(kind, ["x"], ["r"])],
            kind,
            [],
            [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)],
        )
        for kind in ("Relu", "Neg")
    ]
    yield proto(
        [
            ("If", ["c"], ["h0"], {"then_branch": branch[0], "else_branch": branch[1]}),
            ("LayerNormalization", ["h0", "g"], ["h1"], {}),
            ("TopK", ["h1", "k"], ["y", "h3"], {}),
        ],
        {"x": [4, 16]},
        ["y"],
        {"c": np.array(True), "g": values(16), "k": np.array([2])},
    )


BASES = list(bases())


SHARED_MODELS = sorted(path for path in (SHARED / "compile" / "onnx").glob("*.onnx") if path.stat().st_size <= LARGEST)


class Case:
    """A model by its number: its bytes, and files beside it."""

    def __init__(self, seed):
        stream = random.Random(seed)
        kind = stream.choice(["base", "base", "shared", "generated", "generated", "generated", "generated"])
        if kind == "shared" and SHARED_MODELS:
            data = stream.choice(SHARED_MODELS).read_bytes()
        elif kind == "generated":
            data = generated(stream).SerializeToString()
        else:
            data = stream.choice(BASES).SerializeToString()
        self.files = {}
        changes = [flipped, cut, rewritten, rewritten, strange, strange, strange]
        change = stream.choice([*changes, *[None] * 7] if kind == "generated" else changes)
        if change is strange:
            data = strange(stream, data, self.files)
        elif change is not None:
            data = change(stream, data)
        self.data, self.effort = data, "default" if stream.random() < 0.04 else "low"
        self.arch = stream.choice(["wormhole_b0", "wormhole_b0", "grayskull", "blackhole"])

    def write(self, folder):
        """The model's path."""
        home = Path(folder) / "models"
        home.mkdir(exist_ok=True)
        for old in home.iterdir():
            old.unlink()
        for name, data in self.files.items():
            (home / name).write_bytes(data)
        if self.files:
            (home / "link.bin").symlink_to("../outside.bin")
            (home / "linked").symlink_to("..")
            os.mkfifo(home / "pipe")
        path = home / "m.onnx"
        path.write_bytes(self.data.replace(b"{folder}", str(home).encode()) if self.files else self.data)
        return path


def outcome(path, case, tell):
    """`compiled`, or the kind of a documented error; after a line feed what is wrong."""
    try:
        compiled = be.compile(path, effort=case.effort, arch=case.arch)
    except InternalError:
        raise
    except BudaError as error:
        text = str(error).strip()
        if "not enough memory" in text or not text:
            return f"an error that says nothing\n{text}"
        return type(error).__name__
    try:
        findings = compiled.check(strict=True)
        if findings:
            return f"findings\n{findings[0]}"
        if any(SECRET in array for _, array in compiled.tensors()):
            return "secret\na file outside of the folder was read"
        ops = {node.op_type for node in onnx.ModelProto.FromString(case.data).graph.node}
        return held_against(compiled, not JUMPS.isdisjoint(ops), tell)
    finally:
        compiled.close()


def tame(array):
    """Nothing is infinite, or as large as what stands for infinities."""
    return array.dtype.kind not in "fiu" or bool((abs(array.astype(float)) < 1e6).all())


class Everything:
    def __contains__(self, item):
        return True


def held_against(compiled, jumps, tell):
    """With onnxruntime's values, where it runs the model, nothing is infinite and the model is small. `jumps`: where
    last bits decide what some operators give, one element in a hundred may differ."""
    graph = compiled.graph
    if sum(prod(host_shape(graph[name])) for name in graph.inputs) > COMPARED:
        return "compiled, large"
    inputs = compiled.example_inputs()
    try:
        found = compiled(*inputs)
    except ProgramError as error:  # as of the square root of a negative number
        found = error
    except HostError as error:  # constants of the netlist, as matrices that move columns
        if "are not to be had" not in str(error):
            raise
        return "compiled, more memory than it may take"
    tell("onnxruntime")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, inner = compiled.origin.values(inputs, Everything())
    except HostError:
        return "compiled, onnxruntime refuses it"
    tell("compared")
    numbers = [np.asarray(item) for item in (*expected, *inner.values())]
    if not all(map(tame, numbers)):
        return "compiled, infinite or large values"
    if isinstance(found, ProgramError):
        return f"stops\n{found}"
    for ours, theirs, output in zip(found, expected, compiled.io.outputs, strict=True):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"differs\n{output.label[:50]}: {ours.dtype}{ours.shape}, not {theirs.dtype}{theirs.shape}"
        off = abs(ours.astype(float) - theirs.astype(float))
        wrong = off > 2e-3 * max(1, abs(theirs.astype(float)).max(initial=0))
        if wrong.sum() > (off.size // 100 if jumps else 0):
            return f"differs\n{output.label[:50]}: by {off.max()}"
    return "compiled, as onnxruntime"


def worker(seeds, folder, out):
    """Compile one file after the other, each announced before, in this process; how each ends is written to `out`."""

    def tell(word, value=None):
        os.write(out, f"{json.dumps([word, value])}\n".encode())

    path = Path(folder) / "first.onnx"
    path.write_bytes(BASES[0].SerializeToString())
    first = be.compile(path, effort="low")
    first(*first.example_inputs())
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    if pages:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # its default ends the process
    for seed in seeds:
        tell("begun", seed)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            case = Case(seed)
            found = outcome(case.write(folder), case, tell)
        except BaseException:  # noqa: BLE001 - told by the one who waits
            found = traceback.format_exc()
        signal.setitimer(signal.ITIMER_PROF, 0)
        tell("done", found)


def run(seeds, folder):
    """How many files ended how; faults by seed: what is wrong, a traceback, or how the process died."""
    counts, faults, left = {}, {}, list(seeds)

    def count(name):
        counts[name] = counts.get(name, 0) + 1

    while left:
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(ours)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of numpy and onnx, on what they are given
                    worker(left, folder, theirs)
            finally:
                os._exit(0)
        os.close(theirs)
        begun, stage, known = None, "", len(left)
        with os.fdopen(ours) as lines:
            for line in lines:
                stage, value = json.loads(line)
                if stage == "begun":
                    begun = value
                    left.remove(value)
                elif stage == "done":
                    if "\n" in value:
                        faults[begun] = value
                    count("fault" if "\n" in value else value)
                    begun = None
        _, status = os.waitpid(child, 0)
        if begun is not None and stage == "onnxruntime":
            count("compiled, onnxruntime ends the process")
        elif begun is not None:
            count("fault")
            faults[begun] = f"the process ended with {status}"
        assert len(left) < known, "no file could be compiled at all"
    return counts, faults


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="a process of its own")


@needs_fork
def test_damaged_models(tmp_path):
    counts, faults = run(range(QUICK), tmp_path)
    assert not faults, faults
    ends = ["compiled, as onnxruntime", "HostError", "UnsupportedError"]
    assert min(counts[end] for end in (ends if HAS_ONNXRUNTIME else ends[1:])) > QUICK // 20  # all are tried


@needs_fork
@pytest.mark.slow
def test_ten_thousand_damaged_models(tmp_path, record_property):
    counts, faults = run(range(QUICK, QUICK + MANY), tmp_path)
    record_property("outcomes", json.dumps(counts))
    print(f"{MANY} models: {counts}")
    assert not faults, faults
    assert sum(counts.values()) == MANY


def broken(change):
    model = onnx.ModelProto()
    model.CopyFrom(BASES[0])
    change(model.graph)
    return model


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda graph: graph.node[1].input.__setitem__(0, "nowhere"), "h1: nothing before gives 'nowhere'"),
        (lambda graph: setattr(graph.output[0], "name", "nowhere"), "outputs: nothing before gives 'nowhere'"),
        (
            lambda graph: graph.node[0].input.reverse(),
            r"h0: MatMul cannot be: Incompatible dim.* \(operands \[16, 24\], \[4, 16\]\)",
        ),
        (
            lambda graph: graph.initializer[0].dims.__setitem__(0, 15),
            r"initializer 'w': \d+ bytes for float32 of shape",
        ),
        (
            lambda graph: setattr(graph.initializer[0], "data_type", 99),
            "initializer 'w': 99 is the number of no element type",
        ),
        (
            lambda graph: setattr(graph.input[0].type.tensor_type, "elem_type", 99),
            "input of type 99: 1 time, first at x",
        ),
        (lambda graph: setattr(graph.input[0].type.tensor_type.shape.dim[0], "dim_value", -4), r"shape \[-4, 16\]"),
        (lambda graph: setattr(graph.input[0].type.tensor_type.shape.dim[0], "dim_value", 1 << 40), "more than 2,147"),
        (lambda graph: setattr(graph.node[3].attribute[0], "type", 3), "h3"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_said_of_a_broken_model(change, said):
    with pytest.raises((HostError, UnsupportedError), match=said):
        be.compile(broken(change))


def test_a_sequence_of_a_million_steps_is_refused_at_once():
    """Each step is netlist ops of its own: it would take hours."""
    model = onnx.ModelProto()
    model.CopyFrom(BASES[3])
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1 << 20
    with pytest.raises(UnsupportedError, match=r"LSTM \(1048576 steps, each of which is unrolled: the most is 1024\)"):
        be.compile(model)


def test_the_mutations_do_something():
    whole = {base.SerializeToString() for base in BASES} | {path.read_bytes() for path in SHARED_MODELS}
    assert len({Case(seed).data for seed in range(40)} - whole) > 30
    assert {name for seed in range(400) for name in Case(seed).files} >= {"held.bin", "../outside.bin"}


@pytest.mark.parametrize("name", sorted(ODD))
def test_each_odd_thing_is_done(name):
    """To some model, with some numbers."""
    done = 0
    for seed in range(20):
        model = onnx.ModelProto.FromString(BASES[seed % len(BASES)].SerializeToString())
        before = model.SerializeToString(deterministic=True)
        ODD[name](random.Random(seed), model, {})
        done += model.SerializeToString(deterministic=True) != before
    assert done > 5
