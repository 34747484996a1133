"""Thousands of damaged ONNX files: each compiles, or is refused with a documented error, in bounded time and memory."""

import json
import os
import random
import resource
import signal
import sys
import traceback
import warnings

import numpy as np
import pytest

import buda_emu as be
from buda_emu.errors import BudaError, HostError, InternalError, UnsupportedError

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402 - only where onnx is

QUICK, MANY = 120, 2_000
SECONDS = 60  # of processor time that one file may take, on any machine
MEMORY = 3 << 30  # bytes of addresses beyond those of a process that has compiled something
NUMBERS = [0, 1, 2, 3, -1, -2, 5, 7, 31, 32, 33, 255, 4096, 1 << 20, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63)]
FLOATS = [0.0, -1.0, 1e-45, 3.4e38, float("inf"), float("nan")]
WORDS = [
    "", "x", "y", "w", "h0", "SAME_UPPER", "VALID", "NOTSET", "bilinear", "reflect", "edge", "Relu", "Tanh", "..", "/",
    "\0", "é", "a" * 300, "reverse", "bidirectional", "tanh", "none", "constant", "linear", "asymmetric",
]  # fmt: skip
OPS = [
    "Relu", "Add", "Mul", "MatMul", "Gemm", "Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool",
    "Reshape", "Transpose", "Concat", "Split", "Slice", "Pad", "Gather", "Softmax", "LayerNormalization", "ReduceMean",
    "ReduceSum", "Resize", "Squeeze", "Unsqueeze", "Expand", "Tile", "Flatten", "Cast", "Clip", "Pow", "Sqrt", "Erf",
    "LSTM", "GRU", "RNN", "QuantizeLinear", "DequantizeLinear", "QLinearConv", "TopK", "ArgMax", "Where", "Identity",
    "If", "Loop", "Scan", "Constant", "ConstantOfShape", "Shape", "Range", "Einsum", "BatchNormalization", "Dropout",
    "DepthToSpace", "CumSum", "OneHot", "Attention", "NoSuchOperator",
]  # fmt: skip


def proto(nodes, inputs, outputs, held, opset=17):
    """Of nodes (op, inputs, outputs, attributes), shapes of inputs by name, and held arrays."""
    made = [helper.make_node(kind, ins, outs, name=outs[0], **attrs) for kind, ins, outs, attrs in nodes]
    graph = helper.make_graph(
        made, "g", [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def values(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def bases():
    """Small models of every family of operators."""
    yield proto(
        [("MatMul", ["x", "w"], ["h0"], {}), ("Add", ["h0", "b"], ["h1"], {}), ("Relu", ["h1"], ["h2"], {}),
         ("Gemm", ["h2", "v", "c"], ["h3"], {"transB": 1, "alpha": 0.5}), ("Softmax", ["h3"], ["y"], {"axis": -1})],
        {"x": [4, 16]}, ["y"], {"w": values(16, 24), "b": values(24), "v": values(8, 24), "c": values(8)},
    )  # fmt: skip
    yield proto(
        [("Conv", ["x", "w"], ["h0"], {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
         ("BatchNormalization", ["h0", "s", "s", "s", "p"], ["h1"], {}),
         ("MaxPool", ["h1"], ["h2"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
         ("GlobalAveragePool", ["h2"], ["h3"], {}), ("Flatten", ["h3"], ["y"], {})],
        {"x": [1, 3, 8, 8]}, ["y"], {"w": values(4, 3, 3, 3), "s": values(4), "p": abs(values(4))},
    )  # fmt: skip
    yield proto(
        [("Reshape", ["x", "form"], ["h0"], {}), ("Transpose", ["h0"], ["h1"], {"perm": [0, 2, 1]}),
         ("Split", ["h1", "parts"], ["h2", "h3"], {"axis": 1}), ("Concat", ["h3", "h2"], ["h4"], {"axis": 1}),
         ("Slice", ["h4", "from", "to", "axes"], ["h5"], {}), ("Pad", ["h5", "pads"], ["h6"], {}),
         ("Gather", ["h6", "which"], ["h7"], {"axis": 1}), ("ReduceMean", ["h7"], ["y"], {"axes": [1]})],
        {"x": [2, 48]}, ["y"],
        {"form": np.array([2, 6, 8]), "parts": np.array([3, 5]), "from": np.array([1]), "to": np.array([5]),
         "axes": np.array([2]), "pads": np.array([0, 1, 0, 0, 0, 2]), "which": np.array([0, 2])},
    )  # fmt: skip
    yield proto(
        [("LSTM", ["x", "w", "r"], ["h0", "h1", "h2"], {"hidden_size": 5}), ("Squeeze", ["h1", "axes"], ["y"], {})],
        {"x": [3, 2, 4]}, ["y"], {"w": values(1, 20, 4), "r": values(1, 20, 5), "axes": np.array([0])},
    )  # fmt: skip
    yield proto(
        [("QuantizeLinear", ["x", "s", "z"], ["h0"], {}), ("DequantizeLinear", ["h0", "s", "z"], ["h1"], {}),
         ("Resize", ["h1", "", "sizes"], ["h2"], {"mode": "nearest"}), ("Clip", ["h2", "low", "high"], ["h3"], {}),
         ("Einsum", ["h3", "w"], ["y"], {"equation": "bcij,cd->bdij"})],
        {"x": [1, 4, 4, 4]}, ["y"],
        {"s": np.array(0.1, np.float32), "z": np.array(3, np.int8), "sizes": np.array([1, 1, 2, 2], np.float32),
         "low": np.array(-1, np.float32), "high": np.array(1, np.float32), "w": values(4, 6)},
    )  # fmt: skip
    branch = [
        helper.make_graph([helper.make_node(kind, ["x"], ["r"])], kind, [],
                          [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)]) for kind in ("Relu", "Neg")
    ]  # fmt: skip
    yield proto(
        [("If", ["c"], ["h0"], {"then_branch": branch[0], "else_branch": branch[1]}),
         ("LayerNormalization", ["h0", "g"], ["h1"], {}), ("TopK", ["h1", "k"], ["y", "h3"], {})],
        {"x": [4, 16]}, ["y"], {"c": np.array(True), "g": values(16), "k": np.array([2])},
    )  # fmt: skip


BASES = list(bases())


def flipped(stream, data):
    """Bytes changed."""
    changed = bytearray(data)
    for _ in range(stream.choice([1, 1, 2, 4, 16])):
        changed[stream.randrange(len(changed))] ^= 1 << stream.randrange(8)
    return bytes(changed)


def cut(stream, data):
    """Bytes taken out, doubled or put in."""
    a, b = sorted(stream.randrange(len(data) + 1) for _ in range(2))
    return stream.choice(
        [data[:a], data[:a] + data[b:], data[:b] + data[a:], data[:a] + stream.randbytes(b % 99) + data[a:]]
    )


def fields(message):
    """All messages inside of one, and itself."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if hasattr(value, "__len__") and not hasattr(value, "ListFields") else [value]:
                yield from fields(inner)


def rewritten(stream, data):
    """Fields of the model dropped, replaced, doubled or exchanged."""
    model = onnx.ModelProto()
    model.ParseFromString(data)
    for _ in range(stream.choice([1, 1, 1, 2, 3])):
        message = stream.choice([item for item in fields(model) if item.ListFields()] or [model])
        if isinstance(message, onnx.NodeProto) and stream.random() < 0.4:
            message.op_type = stream.choice(OPS)
            continue
        known = message.ListFields()
        if not known:
            continue
        field, value = stream.choice(known)
        many = hasattr(value, "append") or hasattr(value, "add")
        if stream.random() < 0.15:
            message.ClearField(field.name)
        elif field.message_type is not None:
            if many and len(value):
                at = stream.randrange(len(value))
                if stream.random() < 0.4:
                    del value[at]
                elif stream.random() < 0.5:
                    value.add().CopyFrom(value[at])
                else:
                    first = value[0].__class__()
                    first.CopyFrom(value[0])
                    value[0].CopyFrom(value[at])
                    value[at].CopyFrom(first)
        else:
            odd = {"int": NUMBERS, "float": FLOATS, "str": WORDS, "bytes": [b"", b"\xff", b"tanh", data[:64]]}
            old = value[0] if many and len(value) else value
            kind = type(old).__name__
            if kind not in odd:
                continue
            new = stream.choice(odd[kind])
            if kind == "str" and stream.random() < 0.5:
                new = stream.choice(
                    [name for node in model.graph.node for name in (*node.input, *node.output)] or [new]
                )
            try:
                if not many:
                    setattr(message, field.name, new)
                elif stream.random() < 0.3:
                    value.append(new)
                elif stream.random() < 0.3:
                    del value[stream.randrange(len(value))]
                else:
                    value[stream.randrange(len(value))] = new
            except ValueError:  # beyond what the field can hold
                message.ClearField(field.name)
    return model.SerializeToString()


KINDS = (flipped, cut, rewritten, rewritten, rewritten)


def mutated(seed):
    """A file, by its number."""
    stream = random.Random(seed)
    return stream.choice(KINDS)(stream, stream.choice(BASES).SerializeToString())


def outcome(path):
    """`compiled`, or the kind of a documented error."""
    try:
        compiled = be.compile(path, effort="low")
        compiled.close()
    except InternalError:
        raise
    except BudaError as error:
        return type(error).__name__ if str(error).strip() else "an error\nwithout words"
    return "compiled"


def worker(seeds, folder, out):
    """Compile one file after the other, each announced before, in this process; how each ends is written to `out`."""
    path = os.path.join(folder, "m.onnx")  # noqa: PTH118
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(BASES[0].SerializeToString())
    assert outcome(path) == "compiled"
    pages = int(open("/proc/self/statm").read().split()[0]) if sys.platform == "linux" else 0  # noqa: PTH123, SIM115
    if pages:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # its default ends the process
    for seed in seeds:
        os.write(out, f"{json.dumps(['begun', seed])}\n".encode())
        os.unlink(path)  # noqa: PTH108
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(mutated(seed))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            found = outcome(path)
        except BaseException:  # noqa: BLE001 - told by the one who waits
            found = traceback.format_exc()
        signal.setitimer(signal.ITIMER_PROF, 0)
        os.write(out, f"{json.dumps(['done', found])}\n".encode())


def run(seeds, folder):
    """How many files ended how; faults by seed: a traceback, or that the process died or took too long."""
    counts, faults, left = {}, {}, list(seeds)
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
        begun, known = None, len(left)
        with os.fdopen(ours) as lines:
            for line in lines:
                word, value = json.loads(line)
                if word == "begun":
                    begun = value
                    left.remove(value)
                else:
                    name = value if "\n" not in value else "fault"
                    counts[name] = counts.get(name, 0) + 1
                    if name == "fault":
                        faults[begun] = value
                    begun = None
        _, status = os.waitpid(child, 0)
        if begun is not None:
            counts["fault"] = counts.get("fault", 0) + 1
            faults[begun] = f"the process ended with {status}"
        assert len(left) < known, "no file could be compiled at all"
    return counts, faults


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="a process of its own")


@needs_fork
def test_damaged_models(tmp_path):
    counts, faults = run(range(QUICK), tmp_path)
    assert not faults, faults
    assert min(counts["compiled"], counts["HostError"]) > QUICK // 20  # both sides are tried


@needs_fork
@pytest.mark.slow
def test_two_thousand_damaged_models(tmp_path):
    counts, faults = run(range(QUICK, QUICK + MANY), tmp_path)
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
        (lambda graph: graph.node[0].input.reverse(), r"h0: MatMul cannot be: no product of \[16, 24\] and \[4, 16\]"),
        (lambda graph: graph.initializer[0].dims.__setitem__(0, 15), "of type 1 .*first at w"),
        (lambda graph: setattr(graph.initializer[0], "data_type", 99), "of type 99"),
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


@pytest.mark.parametrize("place", ["/etc/hostname", "../{}/held.bin", "held.bin"])
def test_tensors_in_other_files_are_read_only_below_the_model(place, tmp_path):
    """`held.bin` stands for a link out of the folder."""
    held = tmp_path / "held.bin"
    (tmp_path / "models").mkdir()
    held.write_bytes(bytes(16 * 24 * 4))
    (tmp_path / "models" / "held.bin").symlink_to(held)

    def outside(graph):
        tensor = graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=place.format(tmp_path.name))

    path = tmp_path / "models" / "m.onnx"
    path.write_bytes(broken(outside).SerializeToString())
    with pytest.raises(HostError, match=r"m\.onnx is not an ONNX model"):
        be.compile(path)


def test_the_mutations_do_something():
    whole = {base.SerializeToString() for base in BASES}
    assert len({mutated(seed) for seed in range(40)} - whole) > 30
