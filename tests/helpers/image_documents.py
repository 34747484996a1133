"""Small images that `compile` and `pack` wrote, and ways to spoil each document inside of them."""

import copy
import functools
import io
import json
import re
import tarfile

import numpy as np

from buda_emu.compiler.compilation import Compilation, CompileOptions
from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.emulator.image.pack import Contents, write_image
from buda_emu.netlist.load import check_text
from small_images import TOP, good, members, netlist_text, parts, values

DEVICE = f"{TOP}/device.json"
CONFIG = f"{TOP}/compile_and_runtime_config.json"
ODD = [
    None, True, False, 0, -1, 1, 2, 3, 31, 32, 33, 4096, 1 << 20, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 63,
    -(1 << 63), (1 << 64) - 1, 1 << 64, 1e308, -0.0, 0.5, float("nan"), float("inf"), "", "x", "c", "w", "out", "../x",
    "/x", "tensors/a.pkl", "\0", "\ud800", "é", "a" * 10_000, "Float32", "Bfp8_b", "RawUInt32", "int64", "object",
    "datetime64", "Unpad", "Concatenate", "Prestride", "EmbeddingIndex", "ConstantInput", "ReinterpretShape",
    "Grayskull", [], {}, [[]], [0], [1], [-1], [1, 1], [1, 1, 32, 32], [2, 1, 32, 32], [32, 1], [0, 0, 0, 0],
    [1 << 31] * 4,
    [1 << 62, 4], [1] * 70, {"dims_": [1]}, {"__enum__": "A.Grayskull"}, {"bin": "x.bin"}, {"": 1},
    functools.reduce(lambda inner, _: [inner], range(200), 0), [[0]] * 5_000, {str(n): n for n in range(5_000)},
]  # fmt: skip
WORDS = ["null", "~", "-1", "0", "1e400", ".nan", ".inf", "99999999999999999999", "[]", "{}", "[[]]", "''", "x", "*a",
         "&a 1", "!!binary AA==", "$v", "true", "Float32", "HOST", "[1, 1, 1]", "é", "2147483648", "65536",
         "loop"]  # fmt: skip


def members_of(data):
    """The files of a tar by name."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {info.name: archive.extractfile(info).read() for info in archive if info.isfile()}


def packed(source, tensors, form="BACKEND"):
    stream = io.BytesIO()
    write_image(stream, Contents(check_text(source, "net.yaml").netlist, source.encode(), tensors, "t", "0", form))
    return members_of(stream.getvalue())


def compiled(graph, folder, **options):
    model = CompiledModel(*Compilation.of(CompileOptions(effort="low", **options)).place(graph))
    return members_of(model.save(folder)[1].read_bytes())


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def table_graph():
    """Some indices of an input pick rows of a table, which go through a product; another input is added."""
    b = Builder(Graph("g"))
    picked = b.linear(b.input("i", (1, 5), "int64"), dim=1, matrix=Sparse.gather(np.array([3, 1]), 5), dtype="int64")
    rows = b.embedding(b.constant(random(10, 32)), picked)
    y = b.add(b.matmul(rows, b.constant(random(32, 8))), b.input("x", (1, 2, 8), "float32"))
    b.graph.outputs.append(Output("y", y.name, "float32"))
    return b.graph


def windows_graph():
    """A convolution whose input the host lays out."""
    b = Builder(Graph("g"))
    x, w = b.input("x", (1, 3, 8, 8), "float32"), b.constant(random(4, 3, 3, 3))
    y = b.conv(x, w, strides=(2, 2), pads=((1, 1), (1, 1)), dilations=(1, 1))
    b.graph.outputs.append(Output("y", y.name, "float32"))
    return b.graph


def product_graph():
    b = Builder(Graph("g"))
    y = b.matmul(b.input("x", (1, 32), "float32"), b.constant(random(32, 8)))
    b.graph.outputs.append(Output("y", y.name, "float32"))
    return b.graph


def transformed():
    """An image with every kind of transform that one of its few queues can have."""
    content, files = parts()
    state = content["compiled_graph_state"]
    shape = {"dims_": [1, 4, 16, 16]}
    state["ordered_input_runtime_tensor_transforms"] = [
        {
            "type": "ReinterpretShape",
            "original_shape": shape,
            "reinterpreted_shape": {"dims_": [1, 1, 32, 32]},
            "stride_height": 2,
            "stride_width": 2,
            "concat_group": 0,
            "concat_index": 0,
            "concat_dim": -1,
        }
    ]
    state["ordered_output_runtime_tensor_transforms"] = [{"type": "Unpad", "unpadded_shape": {"dims_": [1, 1, 5, 7]}}]
    state["ordered_input_shapes"] = [[1, 4, 16, 16]]
    state["ordered_output_shapes"] = [[1, 1, 5, 7]]
    state["ordered_input_tile_broadcast_dims"] = [[-2]]
    state["output_host_tms"] = {"out": {"hstack_factor": 1, "vstack_factor": 1, "row_major": True}}
    state["input_to_tile_dims"] = {"x": [32, 32]}
    return members(content, files)


def bases(folder):
    """Images to spoil, by name."""
    tiles = {"c": values((2, 2, 64, 32), 2), "w": values((1, 2, 64, 32), 3)}
    return {
        "table": compiled(table_graph(), folder / "table"),
        "windows": compiled(windows_graph(), folder / "windows"),
        "chips": compiled(product_graph(), folder / "chips", chips=2),
        "packed": packed(netlist_text("Bfp8_b", t=2, mblock=(2, 1)), tiles, "BACKEND_TILIZED"),
        "written": good(),
        "transformed": transformed(),
    }


# ----------------------------------------------------------------------------------------------------------- spoiling
def paths(value, path=()):
    """Paths of all values of a JSON, but its own."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from paths(item, (*path, key))


def spoil_value(stream, value, path):
    """One value dropped, doubled, replaced, renamed, wrapped, exchanged or put out of order, in place."""
    parent = functools.reduce(lambda inner, key: inner[key], path[:-1], value)
    key, actions = path[-1], ["drop", "odd", "odd", "odd", "odd", "rename", "wrap", "number", "order", "twice", "other"]
    action, item = stream.choice(actions), parent[key]
    if action == "drop":
        del parent[key]
    elif action == "rename" and isinstance(parent, dict):
        parent[stream.choice(["c", "w", "x", "out", "bin", "", "\0", "__enum__", "a/b~c"])] = parent.pop(key)
    elif action == "wrap":
        parent[key] = stream.choice([[item], {"dims_": item}, [[item] * 3]])
    elif action == "number" and type(item) is int:
        parent[key] = item * stream.choice([-1, 2, 1 << 20]) + stream.choice([-1, 0, 1])
    elif action == "order" and isinstance(item, list):
        stream.shuffle(item)
    elif action == "twice" and isinstance(item, list) and item:
        item.append(copy.deepcopy(stream.choice(item)))
    elif action == "twice" and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(item))
    elif action == "other" and isinstance(parent, dict):
        parent[key] = copy.deepcopy(stream.choice(list(parent.values())))
    else:
        parent[key] = copy.deepcopy(stream.choice(ODD))


def spoil_text(stream, data):
    """Bytes of a document changed where nobody asks what they mean."""
    at = stream.randrange(len(data) + 1)
    pieces = [
        b"NaN",
        b"Infinity",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"[" * 3000,
        b"9" * 500,
        b"\\ud800",
        b"}",
        b'"',
        b"\0",
        b"-",
        b"1e999",
        b"\xef\xbb\xbf",
        b'"version": "1.1.0", ',
        b",,",
        b"//x\n",
    ]
    return stream.choice([data[:at] + stream.choice(pieces) + data[at:], data[:at], b"", stream.randbytes(40)])


def spoil_json(stream, data, place):
    """A JSON document with its `place`th value spoilt, now and then several of them or the text."""
    value = json.loads(data)
    all_of_them = list(paths(value))
    if not all_of_them or stream.random() < 0.05:
        return spoil_text(stream, data)
    spoil_value(stream, value, all_of_them[place % len(all_of_them)])
    for _ in range(stream.choice([0, 0, 0, 1, 3])):
        left = list(paths(value))
        if left:
            spoil_value(stream, value, stream.choice(left))
    return json.dumps(value).encode()


def spoil_netlist(stream, data):
    """A netlist with a line or a word dropped, doubled, replaced or exchanged."""
    if stream.random() < 0.1:
        return spoil_text(stream, data)
    lines = data.decode().split("\n")
    for _ in range(stream.choice([1, 1, 2])):
        at = stream.randrange(len(lines))
        action = stream.choice(["word", "word", "word", "drop", "twice", "exchange"])
        if action == "drop":
            lines[at] = ""
        elif action == "twice":
            lines[at] += "\n" + lines[at]
        elif action == "exchange":
            other = stream.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif found := list(re.finditer(r"[\w.$]+", lines[at])):
            word = stream.choice(found)
            lines[at] = lines[at][: word.start()] + stream.choice(WORDS) + lines[at][word.end() :]
    return "\n".join(lines).encode()


def spoilt(stream, contents, place):
    """An image with one of its documents spoilt, mostly device.json."""
    found = dict(contents)
    netlist = next(name for name in found if name.endswith(".yaml"))
    document = stream.choice([DEVICE] * 8 + [CONFIG, netlist])
    if document == netlist:
        found[document] = spoil_netlist(stream, found[document])
    elif document in found:
        found[document] = spoil_json(stream, found[document], place)
    return found
