"""The table of all fields of the netlist language; the reader, the JSON schema and the documentation derive from it.

Facts: NETLIST 1.2-1.4, 3, 5 (fused ops), OPS 8. Attributes have their own table, `buda_emu.spec.attributes`.
"""

from collections.abc import Mapping
from typing import Any, Literal

from buda_emu.spec.archs import ARCHS
from buda_emu.spec.boards import BOARDS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.spec.precision import FIDELITIES
from buda_emu.support.records import dataclass

Kind = Literal[
    "int", "bool", "float", "text", "word", "format", "formats", "fidelity", "pair", "ints", "texts", "names",
    "tile_dim", "device", "arch", "loc", "dram", "host", "tms", "forks", "attributes", "value",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a map of the netlist.

    `kind` names the reader and the schema's shape; `words` are the legal words of a `word` field (the reader accepts
    others, the rules refuse them); `rule` is reported for a value of the wrong form where the kind has no rule of its
    own.
    """

    name: str
    kind: Kind
    doc: str
    default: Any = None
    required: bool = False
    words: tuple[str, ...] = ()
    rule: str = ""
    example: Any = None


Table = Mapping[str, Field]


def _table(*rows: Field) -> Table:
    """Return the fields by name."""
    return {row.name: row for row in rows}


ORDERS = ("r", "c")
QUEUE_TYPES = ("queue", "ram")
LOCATIONS = ("dram", "host")
LAYOUTS = ("tilized", "flat")
_ABOUT_ARCHS = "; ".join(f"{arch.name}: {arch.about}" for arch in ARCHS.values() if arch.about)
FIDELITY_WORDS: Mapping[str, str] = {  # NETLIST 1.4: HiFi2_A is the same value as HiFi2
    **{word: word for word in FIDELITIES}, "HiFi2_A": "HiFi2", "HiFi2_B": "HiFi2_B",
}  # fmt: skip

SECTIONS: Mapping[str, str] = {
    "devices": "the architectures that the netlist is written for; first, later sections are read for one of them",
    "queues": "queues and rams: data that the host pushes and reads, and that graphs pass on; before `graphs`",
    "graphs": "graphs of ops; each runs on one chip",
    "programs": "the instructions, in order",
    "fused_ops": "schedules that ops of type fused_op run",
}

OWN_SECTION = "buda-emu"
"""The section that only this emulator reads; the reference ignores it (NETLIST 1.1)."""
UNDEFINED = "undefined"
UNDEFINED_IS_NAN = "nan"
UNDEFINED_WORDS: Mapping[str, str] = {
    "stop": "the run stops, as the reference does; the default",
    UNDEFINED_IS_NAN: "the element is NaN, and the run goes on, as on the chip",
}
"""Treatments of elements on which the reference aborts: roots of negative numbers and of NaN, and reciprocals that
are NaN or -inf."""
EFFORT = "effort"
LOW_EFFORT = "low"
EFFORT_WORDS: Mapping[str, str] = {
    LOW_EFFORT: "its placement is the first legal one",
    "default": "its placement was searched for; also if nothing is said",
    "high": "its placement was searched for at length",
}
"""The effort with which a compiler placed the netlist: `perf` says where it was low."""
LOW_EFFORT_LOSS = "five small models took 1.2 to 30 times the cycles of effort default (docs/compile/placing.md)"
"""The price of low effort, as docs/compile/placing.md has measured it."""
BOARD = "board"
BOARD_WORDS: Mapping[str, str] = {
    board.name: f"a compiler placed it for {board.name} chips: {board.grid[0]} x {board.grid[1]} cores of {board.arch}"
    for board in BOARDS.values()
}
"""The board whose chips a compiler placed the netlist for: `perf` says where it models others."""
OWN_WORDS: Mapping[str, Mapping[str, str]] = {UNDEFINED: UNDEFINED_WORDS, EFFORT: EFFORT_WORDS, BOARD: BOARD_WORDS}
"""The keys of the section `buda-emu`, and the words of each."""

DEVICE_FIELDS = _table(
    Field(
        "arch",
        "arch",
        f"one architecture or a list of them, in any case; {_ABOUT_ARCHS}",
        required=True,
        words=tuple(ARCHS),
        example=["grayskull", "wormhole_b0"],
    ),
)

QUEUE_FIELDS = _table(
    Field(
        name="input",
        kind="text",
        doc="HOST, or the op that feeds it",
        default="",
        required=True,
        example="HOST",
        rule="V016",
    ),
    Field("input_tms", "tms", "TMs between the producing op and the queue", ()),
    Field(name="entries", kind="int", doc="how many tensors it holds", default=-1, required=True, example=2),
    Field(
        name="grid_size",
        kind="pair",
        doc="rows and columns of buffers that one tensor is spread over",
        default=(0, 0),
        required=True,
        rule="V003",
        example=[1, 1],
    ),
    Field(name="t", kind="int", doc="z slices of a tensor", default=-1, required=True, example=1),
    Field(
        name="mblock",
        kind="pair",
        doc="rows and columns of ublocks in one buffer",
        default=(-1, -1),
        required=True,
        rule="V003",
        example=[1, 1],
    ),
    Field(
        name="ublock",
        kind="pair",
        doc="rows and columns of tiles in a ublock",
        default=(-1, -1),
        required=True,
        rule="V003",
        example=[2, 4],
    ),
    Field("ublock_order", "word", "order of the ublocks: by rows or columns", "r", words=ORDERS, rule="V012"),
    Field("tile_dim", "tile_dim", "rows and columns of elements in a tile", (32, 32), example=[32, 32]),
    Field(name="df", kind="format", doc="number format", default="", required=True, example="Float16_b"),
    Field(
        name="target_device",
        kind="device",
        doc="chip; a list makes one copy for each chip",
        default=-1,
        required=True,
        example=0,
    ),
    Field(name="loc", kind="loc", doc="where the buffers are", default="", required=True, words=LOCATIONS),
    Field("dram", "dram", "[channel, address] of each buffer, row by row (loc: dram)", (), example=[[0, 0x20000000]]),
    Field("host", "host", "address or [channel, address] of each buffer (loc: host)", (), example=[0x1000]),
    Field("read_ports", "ints", "DRAM read port (0 to 2) of each buffer; not on grayskull", ()),
    Field("write_ports", "ints", "DRAM write port (0 to 2) of each buffer; not on grayskull", ()),
    Field(
        name="type",
        kind="word",
        doc="queue: entries are consumed; ram: entries are addressed",
        default="",
        required=True,
        words=QUEUE_TYPES,
        rule="V013",
    ),
    Field("layout", "word", "tilized: tiles with headers; flat: plain rows", "tilized", words=LAYOUTS, rule="V013"),
    Field("alias", "text", "another ram that is a second view of the same memory", "", rule="V105"),
)

GRAPH_FIELDS = _table(
    Field(
        name="target_device",
        kind="device",
        doc="chip; a list makes one copy for each chip",
        default=-1,
        required=True,
        example=0,
    ),
    Field(
        name="input_count",
        kind="int",
        doc="how many inputs one execution processes",
        default=-1,
        required=True,
        example=1,
    ),
)

OP_FIELDS = _table(
    Field(
        name="type",
        kind="word",
        doc="op type",
        default="",
        required=True,
        words=tuple(OP_TYPES),
        example="matmul",
        rule="V051",
    ),
    Field(
        name="grid_loc",
        kind="ints",
        doc="row and column of its first core; ethernet_datacopy needs none",
        default=(),
        required=True,
        example=[0, 0],
    ),
    Field(
        name="grid_size",
        kind="pair",
        doc="rows and columns of cores",
        default=(0, 0),
        required=True,
        rule="V023",
        example=[1, 1],
    ),
    Field(
        name="inputs",
        kind="texts",
        doc="queues and ops that it reads",
        default=(),
        required=True,
        example=["q0", "w"],
        rule="V017",
    ),
    Field(
        name="in_df",
        kind="formats",
        doc="number format of each input",
        default=(),
        required=True,
        example=["Float16_b", "Bfp8_b"],
    ),
    Field(
        name="out_df", kind="format", doc="number format of the result", default="", required=True, example="Float16_b"
    ),
    Field(
        name="intermed_df",
        kind="format",
        doc="number format of partial results in L1",
        default="",
        required=True,
        example="Float16_b",
    ),
    Field("acc_df", "format", "number format of the accumulator in dest", "", example="Float16_b"),
    Field(
        name="math_fidelity",
        kind="fidelity",
        doc="how many multiplier passes are made",
        default="",
        required=True,
        words=tuple(FIDELITY_WORDS),
        example="HiFi3",
    ),
    Field("untilize_output", "bool", "write plain rows instead of tiles", False),
    Field("gradient_op", "bool", "add the result to the content of the output ram", False),
    Field("grid_transpose", "bool", "place the op turned by 90 degrees", False),
    Field(name="t", kind="int", doc="z slices of the result", default=-1, required=True, example=1),
    Field(
        name="mblock",
        kind="pair",
        doc="rows and columns of ublocks on a core",
        default=(-1, -1),
        required=True,
        rule="V023",
        example=[2, 2],
    ),
    Field(
        name="ublock",
        kind="pair",
        doc="rows and columns of tiles in a ublock",
        default=(-1, -1),
        required=True,
        rule="V023",
        example=[2, 4],
    ),
    Field(
        name="ublock_order",
        kind="word",
        doc="order of the ublocks: by rows or columns",
        default="",
        required=True,
        words=ORDERS,
        rule="V024",
    ),
    Field(
        name="buf_size_mb", kind="int", doc="size of the output buffer in mblocks", default=-1, required=True, example=2
    ),
    Field("tile_dim", "tile_dim", "rows and columns of elements in an output tile", (32, 32), example=[32, 32]),
    Field("overlay_size", "int", "bytes for the overlay; no effect on values", -1),
    Field("input_buf_min_size_tiles", "ints", "least size of each input buffer in tiles; no effect on values", ()),
    Field("input_dram_io_buf_size_tiles", "ints", "size of each DRAM input buffer in tiles; no effect on values", ()),
    Field("forked_dram_inputs", "forks", "{queue: op}: inputs that share one DRAM read; no effect on values", ()),
    Field("attributes", "attributes", "further parameters of the op type", {}),
)

# `input_N_tms`, `input_N_pad`, `input_N_unpad` (NETLIST 1.4): the name holds the input's index.
INPUT_FIELDS = _table(
    Field("input_N_tms", "tms", "TMs on input N, applied from left to right", ()),
    Field("input_N_pad", "ints", "tiles appended to input N after its TMs", None),
    Field("input_N_unpad", "ints", "tiles removed from input N before its TMs", None),
)
PAD_FIELDS = _table(
    Field("rt", "int", "tile rows", 0, example=1),
    Field("ct", "int", "tile columns", 0, example=0),
    Field("pad_value", "float", "value of every element of the appended tiles", 0.0, example=0.0),
)

FUSED_FIELDS = _table(
    Field(name="inputs", kind="int", doc="how many operands the op has", default=-1, required=True, example=2),
    Field(
        name="intermediates",
        kind="int",
        doc="how many intermediate buffers are used, 0 to 8",
        default=-1,
        required=True,
        example=0,
    ),
    Field(
        name="schedules",
        kind="value",
        doc="lists of one-key maps {name: scheduled op}, run one after the other",
        default=(),
        required=True,
    ),
    Field("custom_kernel_path", "text", "file of a hand-written kernel; no effect on values", "", rule="V130"),
)

SUB_OP_FIELDS = _table(
    Field(
        name="type",
        kind="word",
        doc="op type",
        default="",
        required=True,
        words=tuple(name for name, op in OP_TYPES.items() if op.in_fused),
        example="add",
        rule="V131",
    ),
    Field(
        name="inputs",
        kind="names",
        doc="inputN, intermedN or dest",
        default=(),
        required=True,
        rule="V131",
        example=["input0", "intermed0"],
    ),
    Field(
        name="output",
        kind="text",
        doc="intermedN, dest or output",
        default="",
        required=True,
        example="output",
        rule="V131",
    ),
    Field(
        name="mblock",
        kind="pair",
        doc="rows and columns of ublocks",
        default=(-1, -1),
        required=True,
        rule="V131",
        example=[2, 2],
    ),
    Field(
        name="ublock",
        kind="pair",
        doc="rows and columns of tiles in a ublock",
        default=(-1, -1),
        required=True,
        rule="V131",
        example=[1, 2],
    ),
    Field("pop", "texts", "inputs released after each ublock", (), example=["intermed0"], rule="V131"),
    Field("pop_last", "texts", "intermediates released after the last ublock", (), example=["intermed0"], rule="V131"),
    Field("zero_point", "float", "zero point of the quantization family", 0.0),
    Field("attributes", "attributes", "further parameters of the op type", {}),
)

EXECUTE_FIELDS = _table(
    Field(name="graph_name", kind="text", doc="the graph to run", default="", required=True, example="fwd_0"),
    Field("queue_settings", "value", "{queue: settings} for the queues of the graph", {}),
)

# Values are texts: a boolean or number, or a variable that is looked up when the instruction runs (NETLIST 3.1, 4).
SETTING_FIELDS = _table(
    Field("prologue", "value", "read one entry into L1 before the first input and keep it", "false", example=False),
    Field("epilogue", "value", "write the entry back after the last input", "false", example=False),
    Field("zero", "value", "set the entries to 0 first, for gradient accumulation", "false", example=False),
    Field("read_only", "value", "this view of a ram is only read", "false", example=True),
    Field(
        name="rd_ptr_global",
        kind="value",
        doc="read pointer: entries that the host has consumed",
        default="",
        required=True,
        example="$gptr",
    ),
    Field(
        "rd_ptr_local",
        "value",
        "where the device starts to read; queues need it, rams must not have it",
        "",
        example="$lptr",
    ),
    Field(
        "wr_ptr_global", "value", "where a ram is written; rams need it, queues must not have it", "", example="$gptr"
    ),
    Field(
        "rd_ptr_autoinc",
        "value",
        "step of the local read pointer for each input; 1 for queues, 0 for rams",
        "",
        example=1,
    ),
    Field("global_rdptr_autoinc", "value", "entries consumed with each input", "0", example=0),
    Field(
        "global_wrptr_autoinc",
        "value",
        "step of the write pointer for each input; 1 for queues, 0 for rams",
        "",
        example=1,
    ),
)


@dataclass(frozen=True, slots=True)
class InstructionForm:
    """One instruction of a program: its name, the shape of its operand, and its effect (NETLIST 3)."""

    name: str
    operand: Literal["names", "declarations", "varinst", "count", "none", "execute"]
    doc: str


INSTRUCTIONS: Mapping[str, InstructionForm] = {
    form.name: form
    for form in (
        InstructionForm("param", "names", "variables that the caller sets; the first instruction"),
        InstructionForm("var", "declarations", "variables of this run, 0 unless a value is given"),
        InstructionForm("staticvar", "declarations", "variables that keep their value between runs of the program"),
        InstructionForm("varinst", "varinst", "[variable, opcode, operands]: arithmetic"),
        InstructionForm("loop", "count", "repeat up to the matching endloop, at least once"),
        InstructionForm("endloop", "none", "end of a loop"),
        InstructionForm("execute", "execute", "run a graph"),
        InstructionForm("allocate_queue", "names", "give dynamic queues their memory; pointers start at 0"),
        InstructionForm("deallocate_queue", "names", "take the memory of dynamic queues back"),
    )
}
