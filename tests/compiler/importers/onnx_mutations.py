"""What can be wrong with an ONNX model: bytes, fields, and one odd thing by its name, in any model."""

from math import prod

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_graphs import NAMES

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
SECRET = np.float32(12345.678)
"""What stands in files that a model must not reach."""


# ------------------------------------------------------------------------------------------------ bytes and fields
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
        if known:
            _change(stream, message, *stream.choice(known), data)
    return model.SerializeToString()


def _change(stream, message, field, value, data):
    """One field of a message."""
    many = hasattr(value, "append") or hasattr(value, "add")
    if stream.random() < 0.15:
        message.ClearField(field.name)
    elif field.message_type is not None:
        if many and len(value):
            _change_one(stream, value)
    else:
        odd = {"int": NUMBERS, "float": FLOATS, "str": WORDS, "bytes": [b"", b"\xff", b"tanh", data[:64]]}
        kind = type(value[0] if many and len(value) else value).__name__
        if kind not in odd:
            return
        new = stream.choice(odd[kind])
        if kind == "str" and stream.random() < 0.5:
            words = [name for node in fields(message) if isinstance(node, onnx.NodeProto) for name in node.output]
            new = stream.choice(words or [new])
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


def _change_one(stream, messages):
    """One of several messages dropped, doubled or exchanged with the first."""
    at = stream.randrange(len(messages))
    if stream.random() < 0.4:
        del messages[at]
    elif stream.random() < 0.5:
        messages.add().CopyFrom(messages[at])
    else:
        first = messages[0].__class__()
        first.CopyFrom(messages[0])
        messages[0].CopyFrom(messages[at])
        messages[at].CopyFrom(first)


# ------------------------------------------------------------------------------------------ one odd thing, by its name
ODD = {}


def odd(change):
    """Declares a change: of (stream, model, files), the files being bytes by their names beside the model."""
    ODD[change.__name__] = change
    return change


def some(stream, items):
    """One of them; None where there is none."""
    return stream.choice(list(items)) if len(items) else None


@odd
def no_outputs(stream, model, files):
    del model.graph.output[:]


@odd
def constants_only(stream, model, files):
    """The inputs are held."""
    for value in model.graph.input:
        if value.name not in {item.name for item in model.graph.initializer}:
            shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            shape = shape if prod(shape) < 1 << 20 else [2]
            kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type or 1)
            model.graph.initializer.append(numpy_helper.from_array(np.ones(shape, kind), value.name))
    if stream.random() < 0.7:
        del model.graph.input[:]


@odd
def output_of_constants(stream, model, files):
    values = stream.choice(
        [
            np.ones((2, 3), np.float32),
            np.float32(3),
            np.array([1 << 40, -1]),
            np.array([True]),
            np.float64([1e300]),
            np.array([np.nan, np.inf, 1], np.float32),
            np.zeros((0, 2), np.float32),
        ]
    )
    held = numpy_helper.from_array(np.asarray(values), "held")
    model.graph.initializer.append(held)
    if stream.random() < 0.5:
        model.graph.node.append(helper.make_node("Identity", ["held"], ["shown"]))
    name = "shown" if stream.random() < 0.5 else "held"
    model.graph.output.append(helper.make_tensor_value_info(name, held.data_type, values.shape))


@odd
def output_twice(stream, model, files):
    if found := some(stream, model.graph.output):
        model.graph.output.add().CopyFrom(found)


@odd
def output_is_an_input(stream, model, files):
    if found := some(stream, model.graph.input):
        if stream.random() < 0.3:
            del model.graph.output[:]
        model.graph.output.add().CopyFrom(found)


@odd
def output_untyped(stream, model, files):
    if found := some(stream, model.graph.output):
        found.ClearField("type")


@odd
def output_mistyped(stream, model, files):
    if found := some(stream, model.graph.output):
        found.type.tensor_type.elem_type = stream.choice([0, 2, 6, 7, 8, 9, 10, 11, 14, 16, 17, 22, 99, -1])


@odd
def output_of_another_shape(stream, model, files):
    if found := some(stream, model.graph.output):
        found.type.CopyFrom(
            helper.make_tensor_type_proto(1, stream.choice([[], [0], [7], [1 << 40], [-1], ["n"], [1] * 9]))
        )


@odd
def inner_values_of_another_shape(stream, model, files):
    for node in model.graph.node:
        if stream.random() < 0.5:
            shape = stream.choice([[], [0], [7, 7], [1 << 40], [2, 3], ["n"], [1] * 70])
            kind = stream.choice([1, 1, 7, 9, 11, 99])
            model.graph.value_info.extend(helper.make_tensor_value_info(name, kind, shape) for name in node.output[:1])


@odd
def input_unused(stream, model, files):
    shape = stream.choice([[3], [], [1 << 30], [0], ["n"], [2] * 40])
    model.graph.input.append(helper.make_tensor_value_info("unused", stream.choice([1, 7, 8, 9]), shape))


@odd
def input_twice(stream, model, files):
    if found := some(stream, model.graph.input):
        model.graph.input.add().CopyFrom(found)


@odd
def input_sizes(stream, model, files):
    """Zero, one, negative, symbolic, huge."""
    if dim := some(stream, [dim for value in model.graph.input for dim in value.type.tensor_type.shape.dim]):
        dim.Clear()
        if stream.random() < 0.3:
            dim.dim_param = stream.choice(["n", "", "batch"])
        else:
            sizes = [0, 1, 2, -1, 3, 100, 5000, 1 << 20, 1 << 27, 1 << 31, 1 << 40, (1 << 63) - 1]
            dim.dim_value = stream.choice(sizes)


@odd
def input_ranks(stream, model, files):
    if found := some(stream, model.graph.input):
        dims = found.type.tensor_type.shape.dim
        if stream.random() < 0.5 and len(dims):
            del dims[stream.randrange(len(dims))]
        for _ in range(stream.choice([0, 1, 1, 2, 8, 64, 100])):
            dims.add().dim_value = 1


@odd
def input_mistyped(stream, model, files):
    if found := some(stream, model.graph.input):
        if stream.random() < 0.2:
            kind = onnx.TypeProto()
            kind.sequence_type.elem_type.CopyFrom(found.type)
            found.type.CopyFrom(kind)
        elif stream.random() < 0.2:
            found.ClearField("type")
        else:
            found.type.tensor_type.elem_type = stream.choice([0, 2, 3, 6, 7, 8, 9, 10, 11, 14, 16, 17, 22, 99, -1])


@odd
def input_shadowed(stream, model, files):
    """Held under the name of an input, of its shape or another; or of a result."""
    names = [value.name for value in model.graph.input] + [name for node in model.graph.node for name in node.output]
    if name := some(stream, names):
        model.graph.initializer.append(
            numpy_helper.from_array(np.ones(stream.choice([(2, 3), (), (0,)]), np.float32), name)
        )


@odd
def nodes_out_of_order(stream, model, files):
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in model.graph.node]
    stream.shuffle(nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


@odd
def circle(stream, model, files):
    nodes = [node for node in model.graph.node if node.input and node.output]
    if nodes:
        first, last = sorted(stream.sample(range(len(nodes)), 2)) if len(nodes) > 1 else (0, 0)
        nodes[first].input[0] = nodes[last].output[0]


@odd
def result_twice(stream, model, files):
    if (node := some(stream, model.graph.node)) and node.output:
        model.graph.node.append(helper.make_node("Neg", node.output[:1], node.output[:1]))


@odd
def dead_end(stream, model, files):
    names = [value.name for value in model.graph.input] + [name for node in model.graph.node for name in node.output]
    if name := some(stream, names):
        op = stream.choice(["Relu", "Shape", "NonZero", "NoSuchOperator", "Softmax", "Unique"])
        model.graph.node.append(helper.make_node(op, [name], ["dead"]))


@odd
def operands(stream, model, files):
    """Too many, too few, left out."""
    if node := some(stream, model.graph.node):
        action = stream.randrange(4)
        if action == 0 and node.input:
            node.input[stream.randrange(len(node.input))] = ""
        elif action == 1 and node.input:
            del node.input[stream.randrange(len(node.input)) :]
        elif action == 2:
            node.input.extend(list(node.input) * 3 or [""])
        else:
            names = [name for other in model.graph.node for name in other.output] + list(node.input)
            node.input[:] = [stream.choice(names) for _ in node.input] if names else []


@odd
def results(stream, model, files):
    if node := some(stream, model.graph.node):
        action = stream.randrange(3)
        if action == 0:
            del node.output[:]
        elif action == 1:
            node.output.extend([f"more{k}" for k in range(stream.choice([1, 3, 100]))])
        elif node.output:
            node.output[stream.randrange(len(node.output))] = ""


@odd
def attributes(stream, model, files):
    """Missing, of another type, out of range, unknown, twice."""
    nodes = [node for node in model.graph.node if node.attribute]
    node = some(stream, nodes) or some(stream, model.graph.node)
    if node is None:
        return
    value = stream.choice(
        [
            0,
            -1,
            1,
            7,
            1 << 62,
            -(1 << 63),
            0.5,
            float("nan"),
            "word",
            "",
            b"\xff",
            [1, 1],
            [-1, -(1 << 40)],
            [0] * 4,
            [0.5],
            ["a"],
            [1] * 5000,
            numpy_helper.from_array(np.ones(3, np.float32)),
            helper.make_graph([], "g", [], []),
        ]
    )
    at = some(stream, node.attribute)
    action = stream.randrange(4)
    if at is None or action == 3:
        words = ["axis", "axes", "perm", "to", "group", "pads", "strides", "kernel_shape", "value", "no_such"]
        node.attribute.append(helper.make_attribute(stream.choice(words), value))
    elif action == 0:
        node.attribute.remove(at)
    elif action == 1:
        name = at.name
        at.CopyFrom(helper.make_attribute(name, value))
    else:
        node.attribute.add().CopyFrom(at)


@odd
def axis(stream, model, files):
    """Negative and huge: attributes, and integers that are held."""
    found = [item for node in model.graph.node for item in node.attribute if item.type in (2, 7)]
    held = [item for item in model.graph.initializer if item.data_type == 7]
    number = stream.choice([-1, -2, -9, 5, 64, 1 << 31, 1 << 62, -(1 << 63), (1 << 63) - 1, 0, 1 << 33, 40_000])
    if found and stream.random() < 0.5:
        item = stream.choice(found)
        if item.type == 2:
            item.i = number
        elif item.ints:
            item.ints[stream.randrange(len(item.ints))] = number
    elif item := some(stream, held):
        values = numpy_helper.to_array(item).copy()
        if values.size:
            values.reshape(-1)[stream.randrange(values.size)] = number
            item.CopyFrom(numpy_helper.from_array(values, item.name))


@odd
def operator(stream, model, files):
    if node := some(stream, model.graph.node):
        node.op_type = stream.choice([*OPS, "", "relu", "\n", "x" * 10_000])


@odd
def domain(stream, model, files):
    if node := some(stream, model.graph.node):
        node.domain = stream.choice(["com.microsoft", "ai.onnx", "ai.onnx.ml", "own", "", "\0", "x" * 10_000])
        if stream.random() < 0.5:
            model.opset_import.add(domain=node.domain, version=stream.choice([1, 3, 99]))


@odd
def versions(stream, model, files):
    if stream.random() < 0.3:
        model.ir_version = stream.choice([0, 1, 3, 7, 99, -1])
    elif stream.random() < 0.3:
        del model.opset_import[:]
    elif stream.random() < 0.3:
        model.opset_import.add(domain="", version=stream.choice([1, 13, 21]))
    elif model.opset_import:
        model.opset_import[0].version = stream.choice([0, 1, 4, 6, 7, 9, 11, 12, 13, 18, 22, 25, 99, -1, (1 << 63) - 1])


@odd
def names(stream, model, files):
    """One name for another, everywhere; or of nodes and graph."""
    if stream.random() < 0.3:
        for node in model.graph.node:
            node.name = stream.choice(NAMES)
        model.graph.name = stream.choice(NAMES)
        return
    known = [name for node in model.graph.node for name in (*node.input, *node.output) if name]
    if known:
        old, new = stream.choice(known), stream.choice([*NAMES, *known])
        for message in fields(model):
            for field in ("input", "output"):
                for place, name in enumerate(
                    getattr(message, field, []) if isinstance(message, onnx.NodeProto) else []
                ):
                    if name == old:
                        getattr(message, field)[place] = new
            if isinstance(message, (onnx.ValueInfoProto, onnx.TensorProto)) and message.name == old:
                message.name = new


@odd
def held_values(stream, model, files):
    """Too short, too long, of another type or shape, in two places, twice."""
    if (tensor := some(stream, model.graph.initializer)) is None:
        return
    action = stream.randrange(7)
    if action == 0:
        tensor.raw_data = tensor.raw_data[: len(tensor.raw_data) // 2]
    elif action == 1:
        tensor.raw_data = tensor.raw_data + b"\x01" * stream.choice([1, 4, 4096])
    elif action == 2:
        tensor.data_type = stream.choice([0, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 17, 20, 21, 22, 23, 99, -1])
    elif action == 3:
        tensor.dims[:] = stream.choice(
            [[], [0], [-1], [1 << 40], [1 << 32, 1 << 32], [2, 3], [1] * 70, [(1 << 63) - 1]]
        )
    elif action == 4:
        tensor.float_data.extend([1.0, 2.0])
    elif action == 5:
        model.graph.initializer.add().CopyFrom(tensor)
    else:
        tensor.CopyFrom(numpy_helper.from_array(np.array(["a", "b"], object), tensor.name))


@odd
def odd_numbers_held(stream, model, files):
    found = [item for item in model.graph.initializer if item.data_type == 1]
    if tensor := some(stream, found):
        values = numpy_helper.to_array(tensor).copy()
        if values.size:
            values.reshape(-1)[:: stream.choice([1, 3])] = stream.choice([np.nan, np.inf, -np.inf, 3e38, 1e-45, -0.0])
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


@odd
def other_floats_held(stream, model, files):
    found = [item for item in model.graph.initializer if item.data_type == 1]
    if tensor := some(stream, found):
        kind = stream.choice([np.float64, np.float16, np.int8, np.int64, bool])
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(kind), tensor.name))


@odd
def sparse_held(stream, model, files):
    values = numpy_helper.from_array(np.ones(2, np.float32), "sparse")
    places = numpy_helper.from_array(np.array([0, stream.choice([1, 99, -1])]), "places")
    model.graph.sparse_initializer.add(values=values, indices=places, dims=[stream.choice([4, 1 << 40, -4])])
    if stream.random() < 0.5:
        model.graph.node.append(helper.make_node("Neg", ["sparse"], ["dense"]))
        model.graph.output.append(helper.make_tensor_value_info("dense", 1, [4]))


@odd
def huge_results(stream, model, files):
    """Of a few numbers."""
    size = stream.choice([1 << 16, 1 << 20, 1 << 31, 1 << 40])
    shape = numpy_helper.from_array(np.array([size, size if size < 1 << 31 else 1]), "huge_shape")
    one = numpy_helper.from_array(np.ones((1, 1), np.float32), "one")
    model.graph.initializer.extend([shape, one])
    op, given = stream.choice(
        [("ConstantOfShape", ["huge_shape"]), ("Expand", ["one", "huge_shape"]), ("Tile", ["one", "huge_shape"])]
    )
    source = some(stream, model.graph.input)
    if source is not None and op != "ConstantOfShape" and stream.random() < 0.5:
        given[0] = source.name
    model.graph.node.append(helper.make_node(op, given, ["huge"]))
    after = stream.choice(["ReduceSum", "Relu", "Shape", "Softmax", "Trilu", "EyeLike", "NonZero", "CumSum"])
    model.graph.node.append(helper.make_node(after, ["huge", "one"] if after == "CumSum" else ["huge"], ["after_huge"]))
    model.graph.output.append(helper.make_tensor_value_info("after_huge", 1, None))


@odd
def functions(stream, model, files):
    """Of the model: whole, calling themselves or each other, missing, with other operands."""
    called = stream.choice(["f", "f", "g", "h"])
    body = [helper.make_node("Relu", ["a"], ["t"]), helper.make_node(called, ["t"], ["b"], domain="own")]
    plain = [helper.make_node("Neg", ["a"], ["b"])]
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    model.functions.append(
        helper.make_function("own", "f", ["a"], ["b"], body if stream.random() < 0.6 else plain, opset)
    )
    model.functions.append(helper.make_function("own", "g", ["a"], ["b"], plain, opset))
    model.opset_import.add(domain="own", version=1)
    if (node := some(stream, model.graph.node)) and node.output:
        given = list(node.output[:1]) * stream.choice([1, 1, 0, 2])
        model.graph.node.append(helper.make_node(stream.choice(["f", "g"]), given, ["of_f"], domain="own"))
        model.graph.output.append(helper.make_tensor_value_info("of_f", 1, None))


@odd
def bodies(stream, model, files):
    """Branches and loops: of unknown values, without results, inside of each other."""
    names = [value.name for value in model.graph.input] + [name for node in model.graph.node for name in node.output]
    if (name := some(stream, names)) is None:
        return
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Relu", [stream.choice([name, "nowhere"])], ["r"])], "b", [], [info("r", 1, None)]
    )
    for _ in range(stream.choice([0, 0, 1, 5, 20])):
        other = helper.make_graph([helper.make_node("Neg", [name], ["r"])], "o", [], [info("r", 1, None)])
        node = helper.make_node("If", ["known"], ["r"], then_branch=body, else_branch=other)
        body = helper.make_graph([node], "b", [], [info("r", 1, None)])
    model.graph.initializer.append(numpy_helper.from_array(np.array(stream.random() < 0.5), "known"))
    op = stream.choice(["If", "If", "Loop", "Scan", "SequenceMap"])
    if op == "If":
        node = helper.make_node(op, ["known"], ["of_body"], then_branch=body, else_branch=body)
    else:
        node = helper.make_node(
            op, ["", "known", name][: 3 if op == "Loop" else 1] if op != "Scan" else [name], ["of_body"], body=body
        )
    model.graph.node.append(node)
    model.graph.output.append(info("of_body", 1, None))


@odd
def kinds_of_values(stream, model, files):
    """Sequences, optionals, texts."""
    names = [value.name for value in model.graph.input] + [name for node in model.graph.node for name in node.output]
    if name := some(stream, names):
        made = stream.choice(
            [
                [
                    helper.make_node("SequenceConstruct", [name, name], ["s"]),
                    helper.make_node("ConcatFromSequence", ["s"], ["of_s"], axis=0),
                ],
                [helper.make_node("SequenceEmpty", [], ["s"]), helper.make_node("SequenceLength", ["s"], ["of_s"])],
                [helper.make_node("Optional", [name], ["s"]), helper.make_node("OptionalGetElement", ["s"], ["of_s"])],
                [helper.make_node("SplitToSequence", [name], ["of_s"])],
                [helper.make_node("Constant", [], ["of_s"], value_strings=["a", "é"])],
                [helper.make_node("RandomNormal", [], ["of_s"], shape=[2, 3])],
                [helper.make_node("StringNormalizer", [name], ["of_s"])],
            ]
        )
        model.graph.node.extend(made)
        if stream.random() < 0.7:
            model.graph.output.append(helper.make_tensor_value_info("of_s", 1, None))


@odd
def held_outside(stream, model, files):
    """Tensors in other files: beside the model, outside of its folder, too short, missing, with odd places."""
    found = [item for item in model.graph.initializer if item.raw_data]
    if (tensor := some(stream, found)) is None:
        return
    data, tensor.data_location = tensor.raw_data, TensorProto.EXTERNAL
    tensor.ClearField("raw_data")
    secret = SECRET.tobytes() * (len(data) // 4 + 64)
    files.update(
        {
            "../outside.bin": secret,
            "held.bin": data,
            "short.bin": data[:-1],
            "long.bin": data + b"1" * 64,
            "empty.bin": b"",
        }
    )
    place = stream.choice(
        [
            "held.bin",
            "held.bin",
            "short.bin",
            "long.bin",
            "empty.bin",
            "missing.bin",
            "../outside.bin",
            "sub/../../outside.bin",
            "{folder}/../outside.bin",
            "{folder}/held.bin",
            "link.bin",
            "linked/outside.bin",
            "",
            ".",
            "..",
            "held.bin\0",
            "m.onnx",
            "/etc/hostname",
            "/dev/zero",
            "/proc/self/mem",
            "pipe",
            "x" * 10_000,
            "file://held.bin",
            "HELD.BIN",
        ]
    )
    tensor.external_data.add(key="location", value=place)
    for key in ("offset", "length"):
        if stream.random() < 0.3:
            tensor.external_data.add(
                key=key,
                value=stream.choice(["0", "1", "4", str(len(data)), "-1", "", "x", str(1 << 62), "1e3", "0x4", "٣"]),
            )
    if stream.random() < 0.1:
        tensor.external_data.add(key="location", value="held.bin")
    if stream.random() < 0.1:
        tensor.external_data[0].ClearField("key")


def strange(stream, data, files):
    """One to three odd things."""
    model = onnx.ModelProto.FromString(data)
    for _ in range(stream.choice([1, 1, 1, 2, 3])):
        ODD[stream.choice(sorted(ODD))](stream, model, files)
    return model.SerializeToString()
