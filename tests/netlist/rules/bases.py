"""Small valid netlists, one for each kind of op and program. Tests break one rule by replacing a piece of the text."""

from collections.abc import Sequence

DEVICES = "devices: {arch: [grayskull, wormhole, wormhole_b0, blackhole]}"


def queue(
    name: str, source: str = "HOST", blocks: str = "mblock: [1, 1], ublock: [1, 1]", at: str = "", **fields: str
) -> str:
    """One line of the `queues` section; `at` is the DRAM list without its outer brackets."""
    given = {"type": "queue", "entries": "2", "grid_size": "[1, 1]", "t": "1", "df": "Float16_b", "target_device": "0"}
    words = ", ".join(f"{key}: {value}" for key, value in (given | fields).items())
    return f"  {name}: {{input: {source}, {words}, {blocks}, loc: dram, dram: [{at or _address(name)}]}}"


def ram(
    name: str, source: str = "HOST", blocks: str = "mblock: [1, 1], ublock: [1, 1]", at: str = "", **fields: str
) -> str:
    """As `queue`, for a ram of one entry."""
    return queue(name, source, blocks, at, **({"type": "ram", "entries": "1"} | fields))


def _address(name: str) -> str:
    """A buffer of its own for every name of up to two letters."""
    number = sum((ord(letter) - ord("a") + 1) * 27**place for place, letter in enumerate(name))
    return f"[0, {0x10000000 + number * 0x100000:#x}]"


def op(
    name: str, kind: str, inputs: str, blocks: str = "mblock: [1, 1], ublock: [1, 1]", in_df: str = "", **fields: str
) -> str:
    """One op of a graph. `attributes` stands last."""
    formats = in_df or ", ".join(["Float16_b"] * len(inputs.split(",")))
    given = {
        "grid_loc": "[0, 0]",
        "grid_size": "[1, 1]",
        "t": "1",
        "out_df": "Float16_b",
        "intermed_df": "Float16_b",
        "acc_df": "Float16_b",
        "math_fidelity": "HiFi4",
        "ublock_order": "r",
        "buf_size_mb": "2",
        "untilize_output": "false",
    }
    words = ", ".join(f"{key}: {value}" for key, value in (given | fields).items())
    return f"    {name}: {{type: {kind}, inputs: [{inputs}], in_df: [{formats}], {blocks}, {words}}}"


def settings(*names: str, rams: Sequence[str] = ()) -> str:
    """The queue_settings of an execute."""
    lines = [f"          {name}: {{rd_ptr_local: $lp, rd_ptr_global: $gp}}" for name in names]
    lines += [f"          {name}: {{prologue: true, rd_ptr_global: $z, wr_ptr_global: $z}}" for name in rams]
    return "\n".join(lines)


def netlist(queues: Sequence[str], ops: Sequence[str], run: str, more: str = "", devices: str = DEVICES) -> str:
    """A netlist with one graph `g` on one chip, and a program that executes it with the given settings."""
    return graphs_netlist(queues, ["  g:\n    target_device: 0\n    input_count: 1", *ops], [("g", run)], more, devices)


def graphs_netlist(
    queues: Sequence[str],
    graphs: Sequence[str],
    runs: Sequence[tuple[str, str]],
    more: str = "",
    devices: str = DEVICES,
) -> str:
    """A netlist of several graphs, executed in order."""
    executes = "".join(
        f"    - execute:\n        graph_name: {name}\n        queue_settings:\n{run}\n" for name, run in runs
    )
    return "\n".join(
        [
            devices,
            "queues:",
            *queues,
            "graphs:",
            *graphs,
            "programs:",
            "  - main:",
            "    - param: [$p_n]",
            "    - staticvar: {$lp: 0, $gp: 0}",
            "    - var: [$z, $c_one]" if any("$z" in run for _, run in runs) else "    - var: [$c_one]",
            "    - varinst: [$c_one, set, 1]",
            "    - loop: $p_n",
            f"{executes}    - varinst: [$lp, incwrap, $c_one, 4]",
            "    - varinst: [$gp, incwrap, $c_one, 4]",
            "    - endloop",
            more,
        ]
    )


BLOCK = "mblock: [2, 2], ublock: [1, 2]"

COPY = netlist([queue("a", blocks=BLOCK), queue("o", "cp", BLOCK)], [op("cp", "nop", "a", BLOCK)], settings("a"))

ADD = netlist(
    [queue("a", blocks=BLOCK), ram("b", blocks=BLOCK), queue("o", "ad", BLOCK)],
    [op("ad", "add", "a, b", BLOCK)],
    settings("a", rams=["b"]),
)

# x [2 x 6 tiles] times w [6 x 4], plus a bias that is broadcast over the rows; two cores
MATMUL = netlist(
    [
        queue("x", blocks="mblock: [1, 3], ublock: [1, 2]", grid_size="[2, 1]", at="[0, 0x20000000], [1, 0x20000000]"),
        ram("w", blocks="mblock: [3, 2], ublock: [2, 2]"),
        ram("b", blocks="mblock: [1, 2], ublock: [1, 2]"),
        queue("o", "mm", "mblock: [1, 2], ublock: [1, 2]", grid_size="[2, 1]", at="[0, 0x30000000], [1, 0x30000000]"),
    ],
    [
        op("mm", "matmul", "x, w, b", "mblock: [1, 2], ublock: [1, 2]", grid_size="[2, 1]",
           input_2_tms="[broadcast: {r: 2}]", attributes="{m_k: 3, u_kt: 2, bias: true}"),
    ],
    settings("x", rams=["w", "b"]),
)  # fmt: skip

IDENTITY = netlist(
    [
        queue("s", df="Bfp8_b"),
        queue("a", blocks="mblock: [2, 1], ublock: [1, 1]"),
        queue("e", df="RawUInt32"),
        queue("o", "im"),
    ],
    [
        op("im", "matmul", "s, a, e", in_df="Bfp8_b, Float16_b, RawUInt32", input_2_tms="[broadcast: {c: 1}]",
           attributes="{m_k: 2, u_kt: 1, identity: true, num_index_tiles: 1, num_sparse_tiles: 1}"),
    ],
    settings("s", "a", "e"),
)  # fmt: skip

DEPTHWISE = netlist(
    [
        queue("a", blocks="mblock: [2, 4], ublock: [1, 1]"),
        queue("w", blocks="mblock: [4, 1], ublock: [1, 1]"),
        queue("o", "dw", "mblock: [2, 1], ublock: [1, 1]"),
    ],
    [op("dw", "depthwise", "a, w", "mblock: [2, 1], ublock: [1, 1]", attributes="{m_k: 4, u_kt: 1}")],
    settings("a", "w"),
)

REDUCE = netlist(
    [queue("a", blocks=BLOCK), queue("o", "rd", "mblock: [2, 1], ublock: [1, 1]")],
    [op("rd", "reduce", "a", "mblock: [2, 1], ublock: [1, 1]", attributes="{dim: c, type: max, m_k: 2, u_kt: 2}")],
    settings("a"),
)

# x times the reciprocal of its largest element, which a matmul by ones spreads over the columns
SOFTMAX = netlist(
    [queue("a"), ram("b"), ram("w"), queue("o", "mu"), queue("p", "sp"), queue("q", "pl")],
    [
        op("x", "exp", "a", grid_loc="[0, 0]"),
        op("rd", "reduce", "x", grid_loc="[0, 1]", attributes="{dim: c, type: max, m_k: 1, u_kt: 1}"),
        op("rc", "reciprocal", "rd", grid_loc="[0, 2]"),
        op("sp", "matmul", "rc, b", grid_loc="[0, 3]", attributes="{m_k: 1, u_kt: 1}"),
        op("mu", "multiply", "x, sp", grid_loc="[0, 4]"),
        op("pl", "nop", "w", grid_loc="[0, 5]"),
    ],
    settings("a", rams=["b", "w"]),
)

REDUCE_Z = netlist(
    [queue("a", t="4"), queue("o", "rd", t="2")],
    [op("rd", "reduce", "a", t="2", attributes="{dim: z, type: max, z: 2}")],
    settings("a"),
)

SPLICE = netlist(
    [queue("a", t="2"), queue("b", t="2"), queue("o", "sp", t="4")],
    [op("sp", "splice", "a, b", t="4", attributes="{granularity: t, input0: [0, 2, 2], input1: [0, 2, 2]}")],
    settings("a", "b"),
)

EMBEDDING = netlist(
    [
        ram("a", blocks="mblock: [1, 4], ublock: [1, 2]", layout="flat"),
        queue("i", df="RawUInt32"),
        queue("o", "em", "mblock: [2, 2], ublock: [1, 2]"),
    ],
    [
        op("em", "embedding", "a, i", "mblock: [2, 2], ublock: [1, 2]", "Float16_b, RawUInt32",
           attributes="{num_indices: 64}"),
    ],
    settings("i") + "\n          a: {rd_ptr_global: $z, wr_ptr_global: $z}",
)  # fmt: skip

TILIZER = netlist(
    [queue("a", blocks=BLOCK, layout="flat"), queue("o", "ti", BLOCK)], [op("ti", "tilizer", "a", BLOCK)], settings("a")
)

TOPK = netlist(
    [
        queue("a", blocks="mblock: [1, 2], ublock: [1, 1]"),
        queue("i", blocks="mblock: [1, 2], ublock: [1, 1]", df="UInt16"),
        queue("o", "tk"),
    ],
    [op("tk", "topk", "a, i", in_df="Float16_b, UInt16", attributes="{m_k: 1, u_kt: 2, k: 32, sort: max}")],
    settings("a", "i"),
)

INTEGERS = {"acc_df": "Int32", "intermed_df": "Int8"}

INT_ADD = netlist(
    [queue("a", df="Int8"), queue("b", df="Int32"), queue("o", "ad", df="Int32")],
    [
        op(
            "ad",
            "add",
            "a, b",
            in_df="Int8, Int32",
            out_df="Int32",
            attributes="{relu_en: true, relu_mode: min}",
            **INTEGERS,
        )
    ],
    settings("a", "b"),
)

INT_MATMUL = netlist(
    [queue("a", df="Int8"), queue("b", df="Int8"), queue("c", df="Int32"), queue("s", df="Float32"),
     queue("o", "mm", df="Int8")],
    [
        op("mm", "matmul", "a, b, c, s", in_df="Int8, Int8, Int32, Float32", out_df="Int8",
           attributes="{m_k: 1, u_kt: 1, bias: true, requant: true}", **INTEGERS),
    ],
    settings("a", "b", "c", "s"),
)  # fmt: skip

QUANTIZATION = netlist(
    [queue("a", df="Float32"), queue("s", df="Float32"), queue("o", "qn", df="Int8")],
    [op("qn", "quantization", "a, s", in_df="Float32, Float32", out_df="Int8", **INTEGERS)],
    settings("a", "s"),
)

DEQUANTIZATION = netlist(
    [queue("a", df="Int8"), queue("s", df="Float32"), queue("o", "dq", df="Float32")],
    [op("dq", "dequantization", "a, s", in_df="Int8, Float32", out_df="Float32", **INTEGERS)],
    settings("a", "s"),
)

UNTILIZE = netlist(
    [
        queue("a", grid_size="[2, 1]", at="[0, 0x20000000], [1, 0x20000000]"),
        queue("o", "un", "mblock: [2, 1], ublock: [1, 1]"),
    ],
    [op("un", "nop", "a", grid_size="[2, 1]", untilize_output="true")],
    settings("a"),
)

GRADIENT = netlist(
    [queue("a"), queue("b"), ram("o", "gm")],
    [op("gm", "multiply", "a, b", gradient_op="true")],
    settings("a", "b")
    + "\n          o: {prologue: true, epilogue: true, zero: $z, rd_ptr_global: $z, wr_ptr_global: $z}",
)

SMALL_MATMUL = netlist(
    [queue("a", tile_dim="[16, 32]"), ram("b", tile_dim="[32, 32]"), queue("o", "mm", tile_dim="[16, 32]")],
    [op("mm", "matmul", "a, b", tile_dim="[16, 32]", attributes="{m_k: 1, u_kt: 1}")],
    settings("a", rams=["b"]),
)

SMALL_EXP = netlist(
    [queue("a", tile_dim="[16, 32]"), queue("o", "ex", tile_dim="[16, 32]")],
    [op("ex", "exp", "a", tile_dim="[16, 32]", attributes="{vector: r}")],
    settings("a"),
)

# g0 feeds g1 on another chip without a queue: one temporal graph
TWO_CHIPS = graphs_netlist(
    [queue("a"), queue("o", "k1", target_device="1")],
    [
        "  g0:\n    target_device: 0\n    input_count: 1",
        op("k0", "nop", "a"),
        "  g1:\n    target_device: 1\n    input_count: 1",
        op("k1", "exp", "k0"),
    ],
    [("g0", settings("a")), ("g1", "")],
)

# g0 and g1 one after the other on one chip, a queue between them; c and d are two views of one memory
IN_TURN = graphs_netlist(
    [
        queue("a"),
        queue("b", "k0"),
        queue("o", "k1"),
        ram("c", "k0", entries="4", at="[2, 0x30000000]"),
        ram("d", entries="4", at="[2, 0x30000000]", alias="c"),
    ],
    [
        "  g0:\n    target_device: 0\n    input_count: 1",
        op("k0", "nop", "a"),
        "  g1:\n    target_device: 0\n    input_count: 1",
        op("k1", "add", "b, d"),
    ],
    [
        ("g0", settings("a") + "\n          c: {rd_ptr_global: $z, wr_ptr_global: $z}"),
        ("g1", settings("b") + "\n          d: {rd_ptr_global: $z, wr_ptr_global: $z}"),
    ],
)  # fmt: skip

# one graph on two chips
ON_DEVICES = graphs_netlist(
    [queue("a", target_device="[0, 1]"), queue("o", "k0", target_device="[0, 1]")],
    ["  g:\n    target_device: [0, 1]\n    input_count: 1", op("k0", "nop", "a")],
    [("g", settings("a"))],
)

COPIES = graphs_netlist(
    [
        queue("a", target_device="[0, 1]"),
        queue("b", target_device="[0, 1]"),
        queue("o", "k0", target_device="[0, 1]"),
    ],
    ["  g:\n    target_device: [0, 1]\n    input_count: 1", op("k0", "add", "a, b")],
    [("g", settings("a", "b"))],
)

FUSED = netlist(
    [queue("a", blocks=BLOCK), queue("b", blocks=BLOCK), queue("c", blocks="mblock: [2, 1], ublock: [2, 1]"),
     queue("o", "fz", BLOCK)],
    [op("fz", "fused_op", "a, b, c", BLOCK, attributes="{fused_op_id: f1}")],
    settings("a", "b", "c"),
    """\
fused_ops:
  f1:
    inputs: 3
    intermediates: 2
    schedules:
      - - s1: {type: add, inputs: [input0, input1], output: intermed0, mblock: [2, 2], ublock: [1, 2]}
        - s2: {type: exp, inputs: [intermed0], output: dest, mblock: [2, 2], ublock: [1, 2]}
        - s3: {type: multiply, inputs: [dest, intermed0], pop: [intermed0], output: intermed1, \
mblock: [2, 2], ublock: [1, 2]}
        - s4: {type: matmul, inputs: [intermed1, input2], pop_last: [intermed1], output: intermed0, mblock: [2, 1], \
ublock: [1, 1], attributes: {m_k: 2, u_kt: 2}}
      - - s5: {type: add, inputs: [input0, intermed0], pop: [intermed0], output: output, \
mblock: [2, 2], ublock: [1, 2], input_1_tms: [broadcast: {c: 4}]}
""",
)  # fmt: skip

FUSED_REDUCE = netlist(
    [queue("a", blocks=BLOCK), queue("o", "fz", BLOCK)],
    [
        op(
            "fz",
            "fused_op",
            "a",
            BLOCK,
            attributes="{fused_op_id: 7, relu_en: true, relu_mode: min, relu_threshold: 1.0}",
        )
    ],
    settings("a"),
    """\
fused_ops:
  7:
    inputs: 1
    intermediates: 1
    schedules:
      - - r1: {type: reduce, inputs: [input0], output: intermed0, mblock: [2, 1], ublock: [1, 1], \
attributes: {type: max, dim: c, m_k: 2, u_kt: 2}}
      - - r2: {type: subtract, inputs: [input0, intermed0], pop: [intermed0], output: output, \
mblock: [2, 2], ublock: [1, 2], input_1_tms: [broadcast: {c: 4}, tile_broadcast: c], \
attributes: {relu_en: true, relu_mode: min, relu_threshold: 1.0}}
""",
)

FUSED_INT = netlist(
    [queue("a", df="Int8"), queue("b", df="Int8"), queue("s", df="Float32"), queue("o", "fz", df="Float32")],
    [op("fz", "fused_op", "a, b, s", in_df="Int8, Int8, Float32", out_df="Float32", attributes="{fused_op_id: 9}",
        **INTEGERS)],
    settings("a", "b", "s"),
    """\
fused_ops:
  9:
    inputs: 3
    intermediates: 1
    schedules:
      - - f1: {type: add, inputs: [input0, input1], output: intermed0, mblock: [1, 1], ublock: [1, 1]}
        - f2: {type: dequantization, inputs: [intermed0, input2], pop: [intermed0], output: output, mblock: [1, 1], \
ublock: [1, 1]}
""",
)  # fmt: skip

ALL = {name: text for name, text in globals().items() if name.isupper() and isinstance(text, str) and "queues:" in text}
