"""Rules on one op: mandatory fields, number of inputs, dest, kernel broadcasts (NETLIST 2: V024-V034, V040-V051)."""

from buda_emu.checker.fix import putting
from buda_emu.checker.suggest import near
from buda_emu.checker.text import plural
from buda_emu.netlist.model import Op
from buda_emu.netlist.rules.context import (
    Context,
    attribute_mark,
    item_mark,
    on_ethernet,
    size_problem,
    tms_mark,
    written,
)
from buda_emu.netlist.rules.registry import Finding, Findings, op_check
from buda_emu.netlist.rules.rule import rule
from buda_emu.spec.archs import Arch
from buda_emu.spec.ops import OP_TYPES

WIDE_ACCUMULATORS = ("Float32", "Int32")


@op_check(
    rule(
        "V051",
        "P",
        "the op type is unknown, or a one-input op has not one input",
        "There are no op types but those that `buda-emu ops` lists. relu, softmax, conv and pad are no op types: "
        "relu is an attribute, pad a TM. Copies and sfpu ops have exactly one input.",
        "type: relu",
        "{type: nop, attributes: {relu_en: true, relu_mode: min}}",
        "NETLIST 1.4, OPS 1",
    ),
    basic=True,
)
def type_known(_: Context, op: Op) -> Findings:
    """NETLIST 1.4: an unknown type is refused when the op is made; buffer and drainer are refused as well."""
    known = OP_TYPES.get(op.type)
    if known is None or not known.runs:
        words = [one.name for one in OP_TYPES.values() if one.runs]
        what = f"unknown op type '{op.type}'" if op.type else "type is missing"
        yield Finding(op.at("type"), what, near(op.type, words))


@op_check("V051", "tile by tile", basic=True)
def one_input(_: Context, op: Op) -> Findings:
    """NETLIST 1.4: copies and functions of the vector unit have exactly one input."""
    if OP_TYPES[op.type].one_input and len(op.inputs) != 1:
        yield Finding(op.at("inputs"), f"{op.type} takes 1 input, not {len(op.inputs)}")


@op_check(
    rule(
        "V171",
        "G",
        "an op has too few inputs",
        "Binary ops and matmul read two operands, a matmul with bias three; every op reads at least one. More "
        "than needed are accepted here.",
        "{type: add, inputs: [a]}",
        "{type: add, inputs: [a, b]}",
        "NETLIST 11.1 A4",
    ),
    basic=True,
)
def enough_inputs(_: Context, op: Op) -> Findings:
    """NETLIST 11.1 A4: more inputs than needed are accepted, fewer never work."""
    known = OP_TYPES.get(op.type)
    if known is None or known.one_input:
        return
    least = 3 if op.type == "matmul" and op.attributes.bias else known.inputs[0]
    if len(op.inputs) < least:
        what = "matmul with bias" if least == 3 else op.type
        yield Finding(op.at("inputs"), f"{what} needs {plural(least, 'input')}, has {len(op.inputs)}")


@op_check(
    rule(
        "V024",
        "P",
        "t, mblock, ublock or ublock_order of an op is missing or not positive",
        "They say how much one core computes. Unlike queues, ops have no default for ublock_order.",
        "{t: 1, mblock: [2, 2]}",
        "{t: 1, mblock: [2, 2], ublock: [1, 2], ublock_order: r}",
        "NETLIST 1.4",
    ),
    basic=True,
)
def sizes(_: Context, op: Op) -> Findings:
    """NETLIST 1.4: no defaults."""
    blocking = op.blocking
    for key, value in (("t", blocking.t), ("mblock", blocking.mblock), ("ublock", blocking.ublock)):
        if what := size_problem(op, key, value):
            yield Finding(op.at(key), what)
    if blocking.ublock_order not in ("r", "c"):
        text = written(op, "ublock_order")
        what = f"ublock_order '{text}' is unknown" if text else "ublock_order is missing"
        yield Finding(op.at("ublock_order"), what, "ops have no default: write `ublock_order: r` or `ublock_order: c`")


@op_check(
    rule(
        "V025",
        "P",
        "out_df, intermed_df, math_fidelity or buf_size_mb of an op is missing",
        "None of them has a default. buf_size_mb is the size of the output buffer in mblocks; 2 is usual.",
        "{out_df: Float16_b}",
        "{out_df: Float16_b, intermed_df: Float16_b, math_fidelity: HiFi3, buf_size_mb: 2}",
        "NETLIST 1.4",
    ),
    basic=True,
)
def mandatory_fields(_: Context, op: Op) -> Findings:
    """NETLIST 1.4: these have no defaults either; acc_df may be left out."""
    for key, value in (("out_df", op.out_df), ("intermed_df", op.intermed_df), ("math_fidelity", op.math_fidelity)):
        if not value:
            yield Finding(op.at(key), f"{key} is missing")
    if what := size_problem(op, "buf_size_mb", op.buf_size_mb, least=0):
        yield Finding(op.at("buf_size_mb"), what, "add the number of output mblocks, such as 2")


@op_check(
    rule(
        "V027",
        "P",
        "grid_loc or grid_size of an op is missing or not positive",
        "grid_loc is the core of the op's upper left corner, grid_size its rows and columns of cores. Only "
        "ethernet_datacopy, which runs on no worker core, needs no grid_loc.",
        "grid_loc: [0]",
        "grid_loc: [0, 0]",
        "NETLIST 1.4, 11.2 B10",
    ),
    basic=True,
)
def place(_: Context, op: Op) -> Findings:
    """NETLIST 1.4; 11.2 B10: a negative or huge grid_loc is accepted here (V150 looks at it)."""
    if what := size_problem(op, "grid_size", op.blocking.grid_size):
        yield Finding(op.at("grid_size"), what)
    if len(op.grid_loc) != 2 and not on_ethernet(op):
        what = f"has {plural(len(op.grid_loc), 'value')}, must be [row, column]" if op.grid_loc else "is missing"
        yield Finding(op.at("grid_loc"), f"grid_loc {what}")


@op_check(
    rule(
        "V028",
        "P",
        "in_df or forked_dram_inputs do not match the inputs",
        "Every input has one format in in_df. A repeated in_df appends to the first.",
        "{inputs: [a, b], in_df: [Float16_b]}",
        "{inputs: [a, b], in_df: [Float16_b, Float16_b]}",
        "NETLIST 1.4, 11.2 B4, 11.3 C1",
    ),
    basic=True,
)
def formats_for_inputs(_: Context, op: Op) -> Findings:
    """NETLIST 1.4; 11.2 B4: forked_dram_inputs is a map by queue name."""
    if len(op.in_df) != len(op.inputs):
        what = f"in_df lists {plural(len(op.in_df), 'format')} for {plural(len(op.inputs), 'input')}"
        yield Finding(op.at("in_df", "inputs"), what)
    forked = len({name for name, _ in op.forked_dram_inputs})
    if forked > len(op.inputs):
        yield Finding(op.at("forked_dram_inputs"), f"{forked} forked_dram_inputs for {plural(len(op.inputs), 'input')}")


@op_check(
    rule(
        "V026",
        "P",
        "a matmul's ublock_order is not r",
        "The matmul kernel produces its ublocks row by row.",
        "{type: matmul, ublock_order: c}",
        "{type: matmul, ublock_order: r}",
    ),
    "matmul",
)
def matmul_order(_: Context, op: Op) -> Findings:
    """NETLIST 2."""
    if op.blocking.ublock_order != "r":
        hint = putting("write `ublock_order: r`", "ublock_order", "r", safe=False)
        yield Finding(op.at("ublock_order"), "a matmul needs ublock_order r", hint)


@op_check(
    rule(
        "V033",
        "P",
        "a matmul lacks m_k or u_kt, or mixes accumulate with identity",
        "The inner dimension is worked off in m_k steps of u_kt tiles; their product is the number of tile "
        "columns of input 0. A sparse matmul has no z slices to accumulate.",
        "attributes: {m_k: 4}",
        "attributes: {m_k: 4, u_kt: 1}",
    ),
    "matmul",
)
def matmul_attributes(_: Context, op: Op) -> Findings:
    """NETLIST 2: the inner dimension is m_k ublocks of u_kt tiles."""
    for key, value in (("m_k", op.attributes.m_k), ("u_kt", op.attributes.u_kt)):
        if value < 1:
            what = f"{key} is {value}, must be at least 1" if key in op.attributes.given else f"{key} is missing"
            yield Finding(attribute_mark(op, key), what, "m_k * u_kt is the number of tile columns of input 0")
    if op.attributes.accumulate and op.attributes.identity:
        yield Finding(attribute_mark(op, "accumulate"), "accumulate does not go with identity")


@op_check(
    rule(
        "V034",
        "P",
        "a reduce lacks dim or type",
        "dim is r, c, z or rc: the dimension that disappears. The only type is max.",
        "attributes: {dim: r}",
        "attributes: {dim: r, type: max}",
        "NETLIST 2, 11.3 C15",
    ),
    "reduce",
)
def reduce_attributes(_: Context, op: Op) -> Findings:
    """NETLIST 2; 11.3 C15: `z` may be absent. Unknown words are found while reading."""
    if not op.attributes.dim:
        yield Finding(op.at("attributes"), "reduce needs dim: r, c, z or rc")
    if not op.attributes.type:
        yield Finding(op.at("attributes"), "reduce needs type: max")


@op_check(
    rule(
        "V040",
        "P",
        "a ublock does not fit half of dest",
        "Results pass through half of the dest register: 8 tiles, 4 with acc_df Float32 or Int32 (wormhole A0: "
        "four times that). The ublock of every op and scheduled op must fit; for topk also [ublock rows, u_kt].",
        "{ublock: [4, 4], acc_df: Float16_b}",
        "{ublock: [2, 4], acc_df: Float16_b}",
        "NETLIST 2, OPS 9.2",
    )
)
def ublock_in_dest(ctx: Context, op: Op) -> Findings:
    """NETLIST 2."""
    limit = dest_tiles(ctx.arch, op.acc_df)
    if (tiles := op.blocking.ublock[0] * op.blocking.ublock[1]) > limit:
        yield Finding(op.at("ublock"), dest_message(f"ublock {list(op.blocking.ublock)}", tiles, ctx.arch, op.acc_df))
    pair = (op.blocking.ublock[0], op.attributes.u_kt)
    if op.type == "topk" and (tiles := pair[0] * pair[1]) > limit:
        what = f"[ublock rows, u_kt] {list(pair)}"
        yield Finding(attribute_mark(op, "u_kt"), dest_message(what, tiles, ctx.arch, op.acc_df))


@op_check(
    rule(
        "V045",
        "P",
        "kernel_broadcast on an input that is not broadcast",
        "The attribute says that the operand repeats after so many tiles, so that a core keeps only those. It can"
        " only repeat if a broadcast TM repeats it.",
        "{attributes: {kernel_broadcast: {input_1: 4}}}",
        "{input_1_tms: [broadcast: {r: 4}], attributes: {kernel_broadcast: {input_1: 4}}}",
        "OPS 6.15",
    )
)
def broadcast_of_broadcast(_: Context, op: Op) -> Findings:
    """OPS 6.15: an operand repeats only when a TM repeats it."""
    for key, index, factor in kernel_broadcasts(op):
        names = {tm.name for tm in op.input_tms[index]} if index < len(op.input_tms) else set[str]()
        if factor > 0 and "broadcast" not in names:
            yield Finding(attribute_mark(op, key), f"{key} on input {index}, which has no broadcast TM")


@op_check(
    rule(
        "V046",
        "P",
        "kernel_broadcast does not fit the ublock",
        "From wormhole on the matmul kernel reads whole ublocks: a factor above 1 of input 0 is a multiple of "
        "ublock rows * u_kt where ublock columns < rows, one of input 1 a multiple of ublock columns otherwise.",
        "{ublock: [1, 2], attributes: {kernel_broadcast: {input_1: 3}}}",
        "{ublock: [1, 2], attributes: {kernel_broadcast: {input_1: 4}}}",
        "NETLIST 2, OPS 6.15",
    ),
    "inner dimension",
)
def broadcast_fits_ublock(ctx: Context, op: Op) -> Findings:
    """OPS 6.15, from wormhole on."""
    if ctx.arch.name == "grayskull":
        return
    rows, columns = op.blocking.ublock
    for key, index, factor in kernel_broadcasts(op):
        unit = 1
        if index == 0 and columns < rows:
            unit = rows * op.attributes.u_kt
        elif index == 1 and columns >= rows:
            unit = columns
        if factor > 1 and unit > 0 and factor % unit:
            yield Finding(
                attribute_mark(op, key),
                f"{key} {factor} of input {index} does not divide by {unit}",
                "input 0 needs multiples of ublock rows * u_kt where ublock columns < rows, "
                "input 1 multiples of ublock columns otherwise",
            )


@op_check(
    rule(
        "V047",
        "P",
        "embedding sizes do not match num_indices",
        "A core of the grid picks num_indices rows of the table, 32 for each tile row of its mblock of one-tile "
        "ublocks.",
        "{mblock: [2, 2], ublock: [1, 2], attributes: {num_indices: 60}}",
        "{mblock: [2, 2], ublock: [1, 2], attributes: {num_indices: 64}}",
        "NETLIST 2, OPS 6.9",
    ),
    "embedding",
)
def embedding_sizes(_: Context, op: Op) -> Findings:
    """OPS 6.9: a core picks 32 rows for each tile row of its mblock."""
    indices = op.attributes.num_indices
    if op.blocking.ublock[0] != 1:
        yield Finding(op.at("ublock"), f"an embedding needs one ublock row, has {op.blocking.ublock[0]}")
    if indices % 32:
        yield Finding(attribute_mark(op, "num_indices"), f"num_indices is {indices}, must be a multiple of 32")
    elif indices // 32 != op.blocking.mblock[0]:
        yield Finding(
            attribute_mark(op, "num_indices"),
            f"num_indices {indices} are {indices // 32} tile rows, mblock has {op.blocking.mblock[0]}",
        )


@op_check(
    rule(
        "V048",
        "P",
        "a tilizer has TMs or changes its ublock",
        "It takes the rows of a flat queue as they lie in memory. With more than one ublock row the ublocks of "
        "input and output must be equal.",
        "{type: tilizer, input_0_tms: [hslice: 2]}",
        "{type: tilizer}",
        "NETLIST 2, OPS 6.10",
    ),
    "tilizer",
)
def tilizer_shape(ctx: Context, op: Op) -> Findings:
    """OPS 6.10."""
    for index, tms in enumerate(op.input_tms):
        if tms:
            yield Finding(tms_mark(op, index), f"a tilizer takes no TMs, input {index} has {tms[0].name}")
    for index, source in ctx.sources(op):
        read, own = source.blocking.ublock, op.blocking.ublock
        if read != own and max(read[0], own[0]) > 1:
            what = f"reads ublocks of {list(read)} and writes {list(own)}: with several rows they must be equal"
            yield Finding(item_mark(op, "inputs", index), what)


@op_check(
    rule(
        "V049",
        "P",
        "a depthwise needs u_kt 1 and m_k",
        "It multiplies m_k column groups by one tile row of weights each.",
        "attributes: {m_k: 4, u_kt: 2}",
        "attributes: {m_k: 4, u_kt: 1}",
        "NETLIST 2, OPS 6.3",
    ),
    "depthwise",
)
def depthwise_attributes(_: Context, op: Op) -> Findings:
    """OPS 6.3."""
    if op.attributes.u_kt != 1:
        yield Finding(attribute_mark(op, "u_kt"), f"a depthwise needs u_kt 1, has {op.attributes.u_kt}")
    if op.attributes.m_k < 1:
        yield Finding(attribute_mark(op, "m_k"), "a depthwise needs m_k of at least 1")


@op_check(
    rule(
        "V050",
        "P",
        "an identity matmul has the wrong inputs",
        "A sparse matmul reads sparse tiles, activations, and an encoding of raw words, whose first TM, if any, "
        "is a broadcast. It cannot be a gradient op.",
        "{in_df: [Bfp8_b, Float16_b, Int32], attributes: {identity: true}}",
        "{in_df: [Bfp8_b, Float16_b, RawUInt32], attributes: {identity: true}}",
        "NETLIST 2, OPS 6.2",
    ),
    "matmul",
)
def identity_inputs(_: Context, op: Op) -> Findings:
    """OPS 6.2: weights, activations, encoding."""
    if not op.attributes.identity:
        return
    if len(op.inputs) < 3:
        yield Finding(op.at("inputs"), f"an identity matmul needs 3 inputs, has {len(op.inputs)}")
        return
    if not op.in_df[2].startswith("RawUInt"):
        what = f"the encoding (input 2) is {op.in_df[2]}, must be RawUInt8, RawUInt16 or RawUInt32"
        yield Finding(item_mark(op, "in_df", 2), what)
    if op.gradient_op:
        yield Finding(op.at("gradient_op"), "an identity matmul cannot be a gradient_op")
    tms = op.input_tms[2] if len(op.input_tms) > 2 else ()
    if tms and tms[0].name != "broadcast":
        yield Finding(tms_mark(op, 2), f"the first TM of the encoding must be a broadcast, not {tms[0].name}")


@op_check(
    rule(
        "V172",
        "G",
        "topk without k",
        "k is how many values of each row are kept.",
        "{type: topk, attributes: {sort: max}}",
        "{type: topk, attributes: {sort: max, k: 32}}",
        "NETLIST 11.1 A13",
    ),
    "topk",
)
def topk_count(_: Context, op: Op) -> Findings:
    """NETLIST 11.1 A13: a negative k is accepted."""
    if op.attributes.k == 0:
        what = "k is 0" if "k" in op.attributes.given else "k is missing"
        yield Finding(attribute_mark(op, "k"), f"{what}: nothing to keep")


def dest_tiles(arch: Arch, acc_df: str) -> int:
    """Tiles that half of dest holds (NETLIST V040): a 32-bit accumulator takes two places."""
    return arch.dest_tiles // 2 if acc_df in WIDE_ACCUMULATORS else arch.dest_tiles


def dest_message(what: str, tiles: int, arch: Arch, acc_df: str) -> str:
    """The message of V040."""
    wide = f" with acc_df {acc_df}" if acc_df in WIDE_ACCUMULATORS else ""
    return f"{what} has {tiles} tiles, half of dest holds {dest_tiles(arch, acc_df)}{wide}"


def kernel_broadcasts(op: Op) -> list[tuple[str, int, int]]:
    """(attribute, input, factor) of every kernel_broadcast; single_tile is a factor of 1 (OPS 6.14)."""
    own = op.attributes
    pairs = [("kernel_broadcast", index, factor) for index, factor in own.kernel_broadcast]
    pairs += [("kernel_broadcast_per_t", index, factor) for index, factor in own.kernel_broadcast_per_t]
    return pairs + [("single_tile", index, 1) for index in own.single_tile]


# Found while a netlist is read, or not checked
rule(
    "V020",
    "P",
    "two ops or two graphs have one name",
    "Op names are global: ops of different graphs feed each other by name.",
    "g0: {a: {...}}, g1: {a: {...}}",
    "g0: {a: {...}}, g1: {b: {...}}",
)
rule(
    "V022",
    "P",
    "unknown op field or padding field",
    "Fields of an op are a closed list; attributes of its type go into `attributes`.",
    "{type: matmul, m_k: 2}",
    "{type: matmul, attributes: {m_k: 2}}",
    "NETLIST 1.4",
)
rule(
    "V023",
    "P",
    "grid_size, mblock or ublock of an op is not a pair",
    "Each is [rows, columns]: cores of the grid, ublocks of the mblock, tiles of the ublock.",
    "ublock: 2",
    "ublock: [2, 2]",
    "NETLIST 1.4",
)
rule(
    "V032",
    "P",
    "an attribute is not legal for the op type",
    "Most attributes belong to a few op types. `z` of a reduce needs `dim: z` before it in the map, `z` of a "
    "matmul needs `accumulate: true` before it. The map may not be empty.",
    "{type: nop, attributes: {k: 4}}",
    "{type: topk, attributes: {k: 4}}",
    "NETLIST 1.4, OPS 6.14",
)
rule(
    "V035",
    "P",
    "splice attributes do not describe its inputs",
    "Each input has [index, length, stride]: skip index units, take length, advance by stride. There are at "
    "most 8 inputs; index is 0 or more, length and stride at least 1.",
    "{inputs: [a, b], attributes: {input0: [0, 2, 2]}}",
    "{inputs: [a, b], attributes: {input0: [0, 2, 2], input1: [0, 2, 2]}}",
    "NETLIST 2, 11.3 C9, OPS 6.8",
)
rule(
    "V036",
    "P",
    "the vector mode is not r, c or rc",
    "The mode says which part of a tile the SFPU works on. Unknown words count as not given; z is known, but no mode.",
    "attributes: {vector: z}",
    "attributes: {vector: rc}",
    "NETLIST 1.5, 11.2 B2",
)
rule(
    "V037",
    "P",
    "an attribute value is out of range",
    "relu_threshold and dest_device are not negative, p is a probability, min_buffer_input is 0 or 1 "
    "(depthwise: 0), num_nz_strips has one number for each core, channel lists are not empty.",
    "{type: dropout, attributes: {p: 2.0}}",
    "{type: dropout, attributes: {p: 0.5}}",
    "NETLIST 2, 11.2 B3",
)
rule(
    "V038",
    "P",
    "a TM is malformed or stands where it is not allowed",
    "A TM list holds `transpose`, or maps of one TM to its argument. Transpose works on input 1 of a matmul, "
    "on the input of nop, datacopy and sfpu ops, on input 0 of binary ops (not on grayskull), and not on "
    "Int32 there. pad may stand once.",
    "{type: reduce, input_0_tms: [transpose]}",
    "{type: nop, input_0_tms: [transpose]}",
    "NETLIST 1.6, OPS 7",
)
rule(
    "V186",
    "P",
    "kernel_broadcast or single_tile names no input, or one twice",
    "Keys are input_N with N below the number of inputs. kernel_broadcast and kernel_broadcast_per_t together"
    " name an input once; single_tile replaces an earlier kernel_broadcast.",
    "kernel_broadcast: {input_5: 4}",
    "kernel_broadcast: {input_1: 4}",
    "NETLIST 1.4, 11.3 C1",
)
rule(
    "V187",
    "P",
    "unknown relu_mode",
    "After relu_en: true the mode is min or max. Before it the word is not judged.",
    "attributes: {relu_en: true, relu_mode: none}",
    "attributes: {relu_en: true, relu_mode: min}",
    "NETLIST 1.4, 11.3 C11",
)
rule(
    "V188",
    "P",
    "unknown sfpu_execution_thread",
    "The SFPU runs on the math thread, or from wormhole on beside the packer.",
    "sfpu_execution_thread: unpack",
    "sfpu_execution_thread: pack",
    "NETLIST 1.4",
)
rule(
    "V189",
    "P",
    "unknown or unavailable stochastic rounding mode",
    "The modes are none, fpu, pack and all; grayskull has none.",
    "stoch_rnd_mode: math",
    "stoch_rnd_mode: fpu",
    "NETLIST 1.4",
)
