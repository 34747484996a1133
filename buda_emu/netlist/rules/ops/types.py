"""Rules on what one op type needs: matmul, reduce, depthwise, embedding, tilizer, topk (NETLIST 2, 11)."""

from buda_emu.checker.fix import putting
from buda_emu.netlist.model import Op
from buda_emu.netlist.rules.context import Context, attribute_mark, item_mark, tms_mark
from buda_emu.netlist.rules.missing import missing
from buda_emu.netlist.rules.registry import Finding, Findings, op_check
from buda_emu.netlist.rules.rule import rule


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
def matmul_attributes(ctx: Context, op: Op) -> Findings:
    """NETLIST 2: the inner dimension is m_k ublocks of u_kt tiles."""
    for key, value in (("m_k", op.attributes.m_k), ("u_kt", op.attributes.u_kt)):
        if value < 1:
            what, hint = f"{key} is missing", "m_k * u_kt is the number of tile columns of input 0"
            if key in op.attributes.given:
                what = f"{key} is {value}, must be at least 1"
            elif op.attributes.given:
                hint = missing(ctx, op, key, hint)
            yield Finding(attribute_mark(op, key), what, hint)
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
