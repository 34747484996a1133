"""ONNX graphs that are right: at random, operators of every family on values of any shape, with odd names and dead
ends; and rows of products."""

from math import prod

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

SIZES = [1, 1, 1, 2, 2, 3, 4, 5, 8, 31, 32, 33, 64]
MOST = 1 << 13
"""Elements of a value, so that thousands of models take minutes."""
NAMES = [
    "", "y", "null", "host", "true", "NaN", "0", "-1", "1e3", "a/b", "a_b", "a:b", "::", " ", "\t", "\n", "\x00",
    "\x1b[31m",
    "\x7f", "é", "日本語", "\u202e", "🙂", "{x}", "[x]", "- x", "# x", "'", '"', "\\", "%s", "{0}", "x" * 10_000,
    "é" * 3_000, "queues", "input", "matmul", "..", "../x", "__init__", "relu.output_nop", "e2e_x", "x_out",
    "v_y", "y_out",
]  # fmt: skip
PLAIN = [
    "Relu", "Tanh", "Sigmoid", "Abs", "Neg", "Softplus", "Softsign", "HardSigmoid", "HardSwish", "LeakyRelu", "Elu",
    "Selu", "Erf", "Identity", "Exp", "Sign", "Floor", "Ceil", "Round", "Sin", "Cos", "Atan", "Gelu", "Mish", "Celu",
    "ThresholdedRelu", "GlobalAveragePool", "GlobalMaxPool", "MeanVarianceNormalization", "Shrink",
]  # fmt: skip
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Growing:
    """A graph that grows node by node; `types` of its values, `held` those whose value is known."""

    def __init__(self, stream, opset):
        self.stream, self.opset = stream, opset
        self.nodes, self.types, self.held, self.inputs = [], {}, {}, []
        self.strange = stream.random() < 0.3

    def name(self):
        found = self.stream.choice(NAMES) if self.strange and self.stream.random() < 0.5 else f"v{len(self.types)}"
        while found in self.types or not found:
            found += self.stream.choice(["_", "/", ".", "1"])
        return found

    def pick(self, kind=FLOAT, rank=None):
        """A value of that type and rank, where there is one."""
        known = [
            name for name, (own, shape) in self.types.items() if own == kind and (rank is None or len(shape) == rank)
        ]
        return self.stream.choice(known[-4:] if self.stream.random() < 0.7 else known) if known else None

    def shape(self, name):
        return self.types[name][1]

    def hold(self, array):
        name = self.name()
        array = np.asarray(array)
        self.held[name] = array
        self.types[name] = helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        return name

    def weights(self, *shape):
        values = np.random.default_rng(self.stream.randrange(1 << 20)).standard_normal(shape) / 2
        return self.hold(values.astype(np.float32))

    def ints(self, *values):
        return self.hold(np.asarray(values, np.int64))

    def input(self, shape=None, kind=FLOAT):
        shape = some_shape(self.stream) if shape is None else shape
        name = self.name()
        self.inputs.append(name)
        self.types[name] = kind, tuple(shape)
        return name

    def add(self, op, *operands, results=1, domain="", **attrs):
        """The node's results; None where the standard's inference refuses it or the values are large."""
        names = [self.name() + f"_{k}" * bool(k) for k in range(results)]
        title = self.stream.choice(NAMES) if self.strange else f"n{len(self.nodes)}"
        given = {item: helper.make_tensor_type_proto(*self.types[item]) for item in operands if item}
        data = {item: numpy_helper.from_array(self.held[item], item) for item in operands if item in self.held}
        try:
            node = helper.make_node(op, operands, names, name=title, domain=domain, **attrs)
            schema = onnx.defs.get_schema(op, self.opset, domain)
            known = shape_inference.infer_node_outputs(
                schema, node, given, data, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8
            )
        except (onnx.defs.SchemaError, shape_inference.InferenceError, onnx.checker.ValidationError, ValueError):
            return None
        shapes = {name: dims_of(known[name]) for name in names if name in known}
        if len(shapes) < results or any(
            shape is None or min(shape, default=0) < 0 or prod(shape) > MOST for shape in shapes.values()
        ):
            return None
        self.nodes.append(node)
        self.types |= {name: (known[name].tensor_type.elem_type, shape) for name, shape in shapes.items()}
        return names


def dims_of(kind):
    dims = kind.tensor_type.shape.dim if kind.tensor_type.HasField("shape") else None
    if dims is None or not all(dim.HasField("dim_value") for dim in dims):
        return None
    return tuple(dim.dim_value for dim in dims)


def some_shape(stream, rank=None):
    rank = stream.choice([0, 1, 2, 2, 2, 3, 3, 4, 4, 5]) if rank is None else rank
    while True:
        shape = tuple(stream.choice(SIZES) for _ in range(rank))
        if prod(shape) <= MOST:
            return shape


def plain(g, x, stream):
    g.add(stream.choice(PLAIN), x)


def two(g, x, stream):
    shape = g.shape(x)
    kind = stream.choice(["value", "itself", "held", "scalar", "row"])
    other = {
        "value": lambda: g.pick(),
        "itself": lambda: x,
        "held": lambda: g.weights(*shape),
        "scalar": lambda: g.weights(),
        "row": lambda: g.weights(*[size if stream.random() < 0.5 else 1 for size in shape]),
    }[kind]()
    pair = [x, other] if stream.random() < 0.8 else [other, x]
    g.add(stream.choice(["Add", "Sub", "Mul", "Max", "Min", "Mean", "Sum", "PRelu"]), *pair)


def compared(g, x, stream):
    found = g.add(stream.choice(["Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual"]), x, g.weights())
    if found and stream.random() < 0.7:
        g.add("Where", found[0], x, g.pick())
    elif found:
        g.add("Cast", found[0], to=stream.choice([FLOAT, INT64, TensorProto.INT32]))


def product(g, x, stream):
    shape = g.shape(x)
    if not shape:
        return
    columns = stream.choice(SIZES)
    if len(shape) == 2 and stream.random() < 0.4:
        turned = stream.random() < 0.5
        w = g.weights(*((columns, shape[1]) if turned else (shape[1], columns)))
        third = [g.weights(columns)] if stream.random() < 0.7 else []
        g.add("Gemm", x, w, *third, transB=int(turned), alpha=stream.choice([1.0, 0.5]), beta=stream.choice([1.0, 2.0]))
    elif stream.random() < 0.3 and len(shape) > 1:
        turned = g.add("Transpose", x, perm=[*range(len(shape) - 2), len(shape) - 1, len(shape) - 2])
        if turned:
            g.add("MatMul", x, turned[0])
    else:
        g.add("MatMul", x, g.weights(shape[-1], columns) if stream.random() < 0.8 else g.weights(shape[-1]))


def window(g, x, stream):
    space = stream.choice([1, 2])
    shape = g.shape(x)
    x = x if len(shape) == space + 2 else reshaped(g, x, space + 2)
    if x is None:
        return
    shape = g.shape(x)
    k = stream.choice([size for size in (1, 2, 3) if size <= min(shape[2:])] or [1])
    attrs = {
        "kernel_shape": [k] * space,
        "strides": [stream.choice([1, 2])] * space,
        "pads": [stream.choice([0, k // 2])] * 2 * space,
    }
    op = stream.choice(["Conv", "ConvTranspose", "MaxPool", "AveragePool", "depthwise", "LpPool"])
    if op == "depthwise":
        g.add("Conv", x, g.weights(shape[1], 1, *[k] * space), group=shape[1], **attrs)
    elif op == "Conv":
        g.add(op, x, g.weights(4, shape[1], *[k] * space), *[g.weights(4)] * stream.randrange(2), **attrs)
    elif op == "ConvTranspose":
        g.add(op, x, g.weights(shape[1], 3, *[k] * space), **attrs)
    else:
        g.add(op, x, **attrs)


def reshaped(g, x, rank):
    sizes, left = [], int(prod(g.shape(x)))
    for _ in range(rank - 1):
        sizes.append(g.stream.choice([n for n in range(1, left + 1) if left % n == 0 and n < 70] or [1]))
        left //= sizes[-1]
    found = g.add("Reshape", x, g.ints(*sizes, g.stream.choice([left, -1])))
    return found[0] if found else None


def moved(g, x, stream):
    shape = g.shape(x)
    rank = len(shape)
    axis = stream.randrange(-rank, rank) if rank else 0
    op = stream.choice(
        [
            "Reshape",
            "Transpose",
            "Flatten",
            "Squeeze",
            "Unsqueeze",
            "Expand",
            "Tile",
            "Concat",
            "Split",
            "Slice",
            "Pad",
            "Gather",
            "GatherElements",
            "DepthToSpace",
            "SpaceToDepth",
            "Resize",
            "Trilu",
            "Shape",
            "Size",
        ]
    )
    if op == "Reshape":
        reshaped(g, x, stream.randrange(1, 6))
    elif op == "Transpose":
        g.add(op, x, perm=stream.sample(range(rank), rank))
    elif op == "Flatten":
        g.add(op, x, axis=stream.randrange(-rank, rank + 1))
    elif op == "Squeeze":
        ones = [k for k in range(rank) if shape[k] == 1]
        g.add(op, x, *([g.ints(*ones)] if stream.random() < 0.8 else []))
    elif op == "Unsqueeze":
        g.add(op, x, g.ints(stream.randrange(-rank - 1, rank + 1)))
    elif op == "Expand":
        g.add(op, x, g.ints(stream.choice([1, 2]), *[size if size > 1 else stream.choice([1, 3]) for size in shape]))
    elif op == "Tile":
        g.add(op, x, g.ints(*[stream.choice([1, 1, 2, 3]) for _ in shape]))
    elif op == "Concat":
        g.add(op, *[x] * stream.randrange(1, 4), axis=axis)
    elif op == "Split" and rank:
        size = shape[axis]
        first = stream.randrange(0, size + 1) if stream.random() < 0.2 else max(1, size // 2)
        g.add(op, x, g.ints(first, size - first), results=2, axis=axis)
    elif op == "Slice" and rank:
        odd = stream.random() < 0.2
        bounds = [
            stream.choice([0, 1, -1, -2, 1 << 62, -(1 << 62), 5]) if odd else k for k in (0, max(1, shape[axis] - 1))
        ]
        g.add(op, x, g.ints(bounds[0]), g.ints(bounds[1]), g.ints(axis), g.ints(stream.choice([1, 1, 2, -1])))
    elif op == "Pad":
        pads = [stream.choice([0, 0, 1, 2, -1]) for _ in range(2 * rank)]
        mode = stream.choice(["constant", "constant", "edge", "reflect"])
        g.add(op, x, g.ints(*pads), *([g.weights()] if stream.random() < 0.5 else []), mode=mode)
    elif op == "Gather" and rank:
        size = shape[axis]
        g.add(op, x, g.hold(np.array(stream.choice([0, [0], [size - 1, 0], [[-1]], [-size]]), np.int64)), axis=axis)
    elif op == "GatherElements" and rank:
        g.add(op, x, g.hold(np.zeros(shape, np.int64)), axis=axis)
    elif op in ("DepthToSpace", "SpaceToDepth"):
        g.add(op, x, blocksize=stream.choice([1, 2]))
    elif op == "Resize" and rank > 2:
        scales = np.array([1, 1, *[stream.choice([1, 2, 0.5, 1.5]) for _ in shape[2:]]], np.float32)
        g.add(op, x, "", g.hold(scales), mode=stream.choice(["nearest", "linear"]))
    elif op == "Trilu":
        g.add(op, x, upper=stream.randrange(2))
    else:
        g.add("Shape" if op != "Size" else op, x)


def along(g, x, stream):
    rank = len(g.shape(x))
    axis = stream.randrange(-rank, rank) if rank else -1
    op = stream.choice(
        [
            "Softmax",
            "LogSoftmax",
            "Hardmax",
            "norm",
            "reduce",
            "reduce",
            "reduce",
            "CumSum",
            "TopK",
            "ArgMax",
            "LRN",
            "BatchNormalization",
            "InstanceNormalization",
            "LpNormalization",
            "Einsum",
        ]
    )
    shape = g.shape(x)
    if op == "norm" and rank:
        g.add("LayerNormalization", x, g.weights(shape[-1]), *[g.weights(shape[-1])] * stream.randrange(2))
    elif op == "reduce":
        kind = stream.choice(["Sum", "Mean", "Max", "Min", "L1", "L2", "Prod", "SumSquare", "LogSumExp"])
        axes = stream.sample(range(-rank, 0), stream.randrange(rank + 1))
        old = g.opset < (13 if kind == "Sum" else 18)
        attrs = {"axes": axes} if old and axes else {}
        given = [] if old else [g.ints(*axes)]
        g.add(f"Reduce{kind}", x, *given, keepdims=stream.randrange(2), **attrs)
    elif op == "CumSum":
        g.add(op, x, g.ints(axis), exclusive=stream.randrange(2), reverse=stream.randrange(2))
    elif op == "TopK" and rank:
        g.add(op, x, g.ints(stream.choice([1, 1, shape[axis], 2])), results=2, axis=axis, largest=stream.randrange(2))
    elif op == "ArgMax":
        g.add(op, x, axis=axis, keepdims=stream.randrange(2))
    elif op in ("BatchNormalization", "InstanceNormalization") and rank > 1:
        scale, shift = g.weights(shape[1]), g.weights(shape[1])
        rest = [g.weights(shape[1]), g.hold(np.ones(shape[1], np.float32))] if op[0] == "B" else []
        g.add(op, x, scale, shift, *rest)
    elif op == "LRN":
        g.add(op, x, size=3)
    elif op == "Einsum" and rank == 2:
        g.add(op, x, x, equation=stream.choice(["ij,ij->i", "ij,kj->ik", "ij,ij->", "ij,kj->jik"]))
    elif op in ("Softmax", "LogSoftmax", "Hardmax", "LpNormalization"):
        g.add(op, x, axis=axis)


def clipped(g, x, stream):
    low, high = g.hold(np.float32(-0.5)), g.hold(np.float32(stream.choice([0.5, -1])))
    g.add("Clip", x, *stream.choice([[low, high], [low], ["", high], [low, low]]))


def recurrent(g, x, stream):
    x = x if len(g.shape(x)) == 3 else reshaped(g, x, 3)
    if x is None or g.shape(x)[0] > 8:
        return
    op, gates = stream.choice([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    ways, hidden = stream.choice([1, 1, 2]), stream.choice([1, 4, 5])
    w, r = g.weights(ways, gates * hidden, g.shape(x)[2]), g.weights(ways, gates * hidden, hidden)
    g.add(op, x, w, r, results=2, hidden_size=hidden, direction="bidirectional" if ways == 2 else "forward")


def quantised(g, x, stream):
    scale, zero = g.hold(np.float32(0.05)), g.hold(np.int8(stream.choice([0, 3])))
    inside = g.add("Clip", x, g.hold(np.float32(-5)), g.hold(np.float32(5)))  # the device has no -128
    found = g.add("QuantizeLinear", inside[0], scale, zero) if inside else None
    if found:
        g.add("DequantizeLinear", found[0], scale, zero)


def of_constants(g, _, stream):
    op = stream.choice(["Constant", "ConstantOfShape", "Range", "OneHot", "chain"])
    if op == "Constant":
        array = np.random.default_rng(1).standard_normal(some_shape(stream)).astype(np.float32)
        g.add(op, value=numpy_helper.from_array(array))
    elif op == "ConstantOfShape":
        g.add(op, g.ints(*some_shape(stream)))
    elif op == "Range":
        g.add(op, g.hold(np.float32(0)), g.hold(np.float32(stream.choice([1, 5, 40]))), g.hold(np.float32(1)))
    elif op == "OneHot":
        g.add(
            op, g.ints(0, 2, -1), g.hold(np.int64(4)), g.hold(np.array([0, 1], np.float32)), axis=stream.choice([0, -1])
        )
    else:
        g.add("Relu", g.weights(*some_shape(stream)))


def branched(g, x, stream):
    bodies = []
    for op in ("Relu", "Neg"):
        result = helper.make_tensor_value_info(f"r{op}", *g.types[x])
        bodies.append(helper.make_graph([helper.make_node(op, [x], [result.name])], op, [], [result]))
    what = g.hold(np.array(stream.random() < 0.5)) if stream.random() < 0.7 else g.input((), BOOL)
    g.add("If", what, then_branch=bodies[0], else_branch=bodies[1])


def looped(g, x, stream):
    kind, shape = g.types[x]
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["again"]), helper.make_node("Neg", ["state"], ["next"])],
        "body",
        [info("turn", INT64, []), info("go", BOOL, []), info("state", kind, shape)],
        [info("again", BOOL, []), info("next", kind, shape)],
    )
    g.add("Loop", g.hold(np.int64(stream.choice([0, 2, 1 << 40]))), g.hold(np.array(True)), x, body=body)


def embedded(g, _, stream):
    rows = stream.choice([3, 40])
    index = g.input(stream.choice([(), (4,), (2, 3), (1,)]), INT64)
    g.add("Gather", g.weights(rows, stream.choice([1, 8, 33])), index)


STEPS = [
    plain, plain, plain, two, two, two, compared, product, product, window, window, moved, moved, moved, moved, along,
    along, along, clipped, recurrent, quantised, of_constants, branched, looped, embedded,
]  # fmt: skip


def generated(stream):
    """A model of one to a dozen operators; outputs are its last values and some others."""
    g = Growing(stream, stream.choice([11, 13, 14, 17, 17, 18, 18, 20, 21]))
    for _ in range(stream.choice([1, 1, 1, 2])):
        g.input()
    for _ in range(stream.choice([1, 1, 2, 3, 5, 8, 12])):
        x = g.pick() if g.types else None
        if x is not None:
            stream.choice(STEPS)(g, x, stream)
    made = [name for node in g.nodes for name in node.output]
    outputs = made[-1:] or g.inputs[:1]
    outputs = list(dict.fromkeys([*outputs, *stream.sample(made, min(len(made), stream.randrange(3)))]))
    if stream.random() < 0.1:
        outputs.append(stream.choice([name for name in g.types if name not in outputs] or outputs[:1]))
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        g.nodes,
        stream.choice(NAMES) if g.strange else "g",
        [info(name, *g.types[name]) for name in g.inputs],
        [info(name, *g.types[name]) for name in dict.fromkeys(outputs)],
        [numpy_helper.from_array(array, name) for name, array in g.held.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", g.opset)], ir_version=8)


def products_in_a_row(layers: int, rows: int, width: int):
    """`layers` products by constants, each with a sigmoid after it."""
    rng = np.random.default_rng(1)
    nodes, held, before = [], [], "x"
    for n in range(layers):
        held.append(numpy_helper.from_array(rng.standard_normal((width, width), np.float32) / 16, f"w{n}"))
        nodes.append(helper.make_node("MatMul", [before, f"w{n}"], [f"h{n}"], name=f"h{n}"))
        nodes.append(helper.make_node("Sigmoid", [f"h{n}"], [f"y{n}"], name=f"y{n}"))
        before = f"y{n}"
    x, y = (helper.make_tensor_value_info(name, FLOAT, [rows, width]) for name in ("x", before))
    graph = helper.make_graph(nodes, "stack", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
