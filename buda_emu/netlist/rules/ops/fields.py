"""Rules on the fields of an op: type, inputs, sizes, place, formats (NETLIST 1.4, 2); on attributes that do nothing,
although they were written to do something (V214, stage W), and on an `sfpu_op` that a run refuses (V215, stage X).
"""

from collections.abc import Iterator
from typing import Final

from buda_emu.netlist.model import Op, SubOp
from buda_emu.netlist.nodes import Mapping, Scalar
from buda_emu.netlist.rules.context import Context, attribute_mark, on_ethernet, size_problem, written_text
from buda_emu.netlist.rules.fused_use import FusedUse
from buda_emu.netlist.rules.missing import missing, size_hint
from buda_emu.netlist.rules.registry import Finding, Findings, fused_check, op_check, rule
from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.ops import OP_TYPES, SFPU_TYPES
from buda_emu.support.checker.fix import replacing
from buda_emu.support.checker.suggest import near, nearest
from buda_emu.support.checker.text import plural, quote


@op_check(
    rule(
        "V051",
        "P",
        "the op type is unknown, or a one-input op has not one input",
        "There are no op types but those that `buda-emu ops` lists. relu, softmax, conv and pad are not op types: "
        "relu is an attribute, pad a TM. Copies and sfpu ops have exactly one input.",
        "type: relu",
        "{type: nop, attributes: {relu_en: true, relu_mode: min}}",
        "NETLIST 1.4, OPS 1",
    ),
    basic=True,
)
def op_type_exists(_: Context, op: Op) -> Findings:
    """Refuse unknown op types, and buffer and drainer, which the reference refuses when the op is made (NETLIST
    1.4)."""
    declaration = OP_TYPES.get(op.type)
    if declaration is None or not declaration.runs:
        words = [runnable.name for runnable in OP_TYPES.values() if runnable.runs]
        if op.type:
            message = f"unknown op type '{op.type}'"
        else:
            message = "type is missing"
        yield Finding(op.at("type"), message, near(op.type, words))


@op_check("V051", "tile by tile", basic=True)
def one_input(_: Context, op: Op) -> Findings:
    """Refuse copies and functions of the vector unit that do not have exactly one input (NETLIST 1.4)."""
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
    """Refuse ops with too few inputs; more than needed are accepted (NETLIST 11.1 A4)."""
    declaration = OP_TYPES.get(op.type)
    if declaration is None or declaration.one_input:
        return
    if op.type == "matmul" and op.attributes.bias:
        least = 3
    else:
        least = declaration.inputs[0]
    if len(op.inputs) < least:
        message = "matmul with bias" if least == 3 else op.type
        yield Finding(op.at("inputs"), f"{message} needs {plural(least, 'input')}, has {len(op.inputs)}")


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
def sizes(ctx: Context, op: Op) -> Findings:
    """Refuse an op whose t, mblock or ublock is missing or below 1, or whose order of ublocks is not r or c; they
    have no defaults (NETLIST 1.4).
    """
    blocking = op.blocking
    for key, value in (("t", blocking.t), ("mblock", blocking.mblock), ("ublock", blocking.ublock)):
        if message := size_problem(op, key, value):
            yield Finding(op.at(key), message, size_hint(ctx, op, key))
    if blocking.ublock_order not in ("r", "c"):
        text = written_text(op, "ublock_order")
        if text:
            message = f"ublock_order '{text}' is unknown"
        else:
            message = "ublock_order is missing"
        hint = "ops have no default: write `ublock_order: r` or `ublock_order: c`"
        yield Finding(op.at("ublock_order"), message, hint if text else missing(ctx, op, "ublock_order", hint))


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
def mandatory_fields(ctx: Context, op: Op) -> Findings:
    """Refuse ops without out_df, intermed_df, math_fidelity or buf_size_mb, which have no defaults; acc_df may be
    left out (NETLIST 1.4)."""
    for key, value in (("out_df", op.out_df), ("intermed_df", op.intermed_df), ("math_fidelity", op.math_fidelity)):
        if not value:
            yield Finding(op.at(key), f"{key} is missing", missing(ctx, op, key))
    if problem := size_problem(op, "buf_size_mb", op.buf_size_mb, least=0):
        hint = "add the number of output mblocks, such as 2"
        yield Finding(op.at("buf_size_mb"), problem, size_hint(ctx, op, "buf_size_mb", hint))


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
def place(ctx: Context, op: Op) -> Findings:
    """Refuse an invalid grid_size and a grid_loc that is not a pair (NETLIST 1.4). A negative or huge grid_loc is
    V150 (11.2 B10)."""
    if problem := size_problem(op, "grid_size", op.blocking.grid_size):
        yield Finding(op.at("grid_size"), problem, size_hint(ctx, op, "grid_size"))
    if len(op.grid_loc) != 2 and not on_ethernet(op):
        if op.grid_loc:
            problem = f"has {plural(len(op.grid_loc), 'value')}, must be [row, column]"
        else:
            problem = "is missing"
        yield Finding(op.at("grid_loc"), f"grid_loc {problem}")


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
def formats_for_inputs(ctx: Context, op: Op) -> Findings:
    """Refuse an in_df that has not one format for each input, and more forked_dram_inputs than inputs (NETLIST 1.4).
    A queue counts once among those (11.2 B4)."""
    if len(op.in_df) != len(op.inputs):
        message = f"in_df lists {plural(len(op.in_df), 'format')} for {plural(len(op.inputs), 'input')}"
        yield Finding(op.at("in_df", "inputs"), message, "" if op.in_df else missing(ctx, op, "in_df"))
    forked = len({name for name, _ in op.forked_dram_inputs})
    if forked > len(op.inputs):
        yield Finding(op.at("forked_dram_inputs"), f"{forked} forked_dram_inputs for {plural(len(op.inputs), 'input')}")


# Found while a netlist is read, or not checked
rule(
    "V020",
    "P",
    "two ops or two graphs have one name",
    "Op names are global: ops of different graphs feed each other by name.",
    "g0: {a: {...}}, g1: {a: {...}}",
    "g0: {a: {...}}, g1: {b: {...}}",
    source="NETLIST 2",
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
    "a TM is malformed or not allowed at this place",
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
    "The SFPU runs on the math thread, or, from wormhole on, next to the packer.",
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


_RUNS: Final = "gelu"
"""The only function that the device computes at the end of a product."""
_NOTHING: Final = frozenset(("", "~", "null", "none", "None", "invalid"))
"""Words that say that there is none: front ends write `sfpu_op: invalid` (NETLIST 11.2 B1)."""
_RELU_DETAILS: Final = ("relu_threshold", "relu_mode")


@op_check(
    rule(
        "V214",
        "W",
        "an attribute has no effect",
        "A word that an attribute does not know counts as none, and some attributes may stand on every op but act on"
        " few types: `sfpu_op`, `bias` and `accumulate` on products, `vector` where the vector unit computes,"
        " `zero_point` where numbers are quantized. A threshold or mode of a relu acts where `relu_en: true` stands,"
        " too. Nothing"
        " refuses the netlist, and the result is that of an op without the attribute.",
        "{type: matmul, attributes: {m_k: 1, u_kt: 2, sfpu_op: relu}}",
        "{type: matmul, attributes: {m_k: 1, u_kt: 2, relu_en: true, relu_mode: min}}",
        "NETLIST 1.4, 11.2 B1, B2, OPS 6.1, 6.14",
    )
)
def without_effect(_: Context, op: Op) -> Findings:
    """Warn of attributes with unknown words, on op types that ignore them, and of the details of no relu."""
    yield from _ignored_words(op)
    yield from _ignored_attributes(op)
    attributes = op.attributes
    if attributes.relu_en or "relu_en" in attributes.given:
        return
    for name in _RELU_DETAILS:
        if name in attributes.given and getattr(attributes, name) not in (ATTRIBUTES[name].default, "none"):
            message = f"{name} has no effect without relu_en"
            yield Finding(attribute_mark(op, name), message, "write `relu_en: true`, too")


@fused_check("V214")
def without_effect_in_schedule(_: Context, use: FusedUse) -> Findings:
    """Warn of attributes of sub-ops whose value is no word that they know, and that therefore have no effect."""
    for step in use.steps:
        for finding in _ignored_words(step.sub):
            yield step.about(attribute_mark(step.sub, "attributes"), finding.message, str(finding.hint))


def _ignored_attributes(op: Op) -> Findings:
    """Yield a finding for each attribute that changes results on other op types, but not on this one."""
    for name in sorted(op.attributes.given):
        spec = ATTRIBUTES[name]
        value = getattr(op.attributes, name)
        if op.type in OP_TYPES and spec.has_effect and not spec.acts(op.type) and value != spec.default:
            places = ", ".join(other.name for other in OP_TYPES.values() if other.runs and spec.acts(other.name))
            message = f"{name} has no effect on {op.type}"
            yield Finding(attribute_mark(op, name), message, f"it acts on {places}")


def _ignored_words(subject: Op | SubOp) -> Findings:
    """Yield a finding for each attribute whose word is none of its words, and that therefore counts as absent."""
    for name, value in _attribute_words(subject):
        spec = ATTRIBUTES.get(name)
        if spec is None or spec.kind != "word" or value.text in spec.words or value.text in _NOTHING:
            continue
        hint = near(value.text, spec.words) or f"one of {', '.join(spec.words)}"
        if name == "sfpu_op":
            hint = _sfpu_op_hint(value.text)
        yield Finding(value.mark, f"{name} {quote(value.text)} is unknown and has no effect", hint)


def _sfpu_op_hint(word: str) -> str:
    """Return the hint for an unknown `sfpu_op`: the way to write a relu, gelu where it is misspelt, or that only
    gelu runs.
    """
    meant = nearest(word, (_RUNS, "relu_en"))
    if meant == "relu_en":
        return "a relu is `relu_en: true, relu_mode: min`"
    if meant == _RUNS:
        return replacing(f"did you mean '{_RUNS}'?", word, _RUNS)
    return f"only {_RUNS} runs there"


def _attribute_words(subject: Op | SubOp) -> Iterator[tuple[str, Scalar]]:
    """Yield names and values of the attributes that are written as words or numbers."""
    if not isinstance(subject.source, Mapping):
        return
    for key, _, attributes in subject.source.items():
        if key == "attributes" and isinstance(attributes, Mapping):
            yield from ((name, value) for name, _, value in attributes.items() if isinstance(value, Scalar))


@op_check(
    rule(
        "V215",
        "X",
        "a matmul with an sfpu_op that cannot run",
        "The language knows every function of the vector unit as sfpu_op, but a matmul computes gelu only, and ends the"
        " run with an error for any other. An op of its own after the product does what is meant.",
        "{type: matmul, inputs: [x, w], attributes: {m_k: 1, u_kt: 2, sfpu_op: tanh}}",
        "{type: tanh, inputs: [product]} after the matmul",
        "OPS 6.1",
    ),
    "matmul",
)
def functions_that_run(_: Context, op: Op) -> Findings:
    """Report an sfpu_op other than gelu on a matmul."""
    function = op.attributes.sfpu_op
    if function in SFPU_TYPES and function != _RUNS:
        message = f"sfpu_op {function}: only {_RUNS} runs at the end of a matmul"
        yield Finding(attribute_mark(op, "sfpu_op"), message, f"put an op of type {function} after it")
