import pytest

from buda_emu.netlist.model import FusedOp, Tm
from buda_emu.netlist.reader import WrittenNetlist, read_document
from buda_emu.netlist.yaml_reader import read_tree
from buda_emu.support.checker.diagnostic import Diagnostic
from netlist.netlist_texts import FUSED, NETLIST, edited

SUB_OP = "{type: add, inputs: [input0, input0], mblock: [2, 1], ublock: [1, 2], output: output}"


def read(fused: str) -> WrittenNetlist:
    return read_document(read_tree(NETLIST + fused), "net.yaml", None)


def fused_op(fused: str, name: str = "0") -> FusedOp:
    document = read(fused)
    assert not document.diagnostics
    return document.fused_ops[name]


def findings(fused: str) -> list[Diagnostic]:
    return read(fused).diagnostics


def test_every_field_is_read() -> None:
    sub_op = (
        "{type: dequantization, inputs: [intermed0, input1], output: dest, mblock: [2, 1], ublock: [1, 2], "
        "pop: [intermed0], pop_last: [intermed1], zero_point: 3, input_0_tms: [broadcast: {c: 2}, tile_broadcast: c], "
        "attributes: {m_k: 2, u_kt: 1, relu_en: true}}"
    )
    text = FUSED.replace(SUB_OP, sub_op).replace("inputs: 1", "inputs: 1\n    custom_kernel_path: k.cpp")
    definition = fused_op(text)
    assert (definition.id, definition.inputs, definition.intermediates) == ("0", 1, 0)
    assert definition.custom_kernel_path == "k.cpp"
    ((op,),) = definition.schedules
    assert (op.name, op.type, op.inputs, op.output) == ("double", "dequantization", ("intermed0", "input1"), "dest")
    assert (op.mblock, op.ublock, op.zero_point) == ((2, 1), (1, 2), 3.0)
    assert (op.pop, op.pop_last) == (("intermed0",), ("intermed1",))
    assert op.input_tms == ((Tm("broadcast", ("c", 2)), Tm("tile_broadcast", ("c",))), ())
    assert (op.attributes.m_k, op.attributes.u_kt, op.attributes.relu_en) == (2, 1, True)


def test_ids_are_texts() -> None:
    assert fused_op(FUSED.replace("  0:", "  00:"), "00").id == "00"


def test_of_a_repeated_id_the_first_definition_counts() -> None:
    # NETLIST 11.3 C1
    second = FUSED.replace("fused_ops:\n", "").replace("double", "second")
    assert fused_op(FUSED + second).schedules[0][0].name == "double"


def test_pops_are_appended() -> None:
    text = FUSED.replace(SUB_OP, SUB_OP.replace("type: add", "type: add, pop: [input0], pop: [intermed1]"))
    assert fused_op(text).schedules[0][0].pop == ("input0", "intermed1")


def test_unknown_keys_of_a_fused_op_are_ignored() -> None:
    assert fused_op(FUSED.replace("inputs: 1", "foo: [1]\n    inputs: 1")).inputs == 1


def test_what_only_verification_refuses_is_read() -> None:
    # NETLIST 11.3 C13: unreferenced definitions are parsed but not verified
    assert not findings("fused_ops: {3: {inputs: -1, intermediates: 99, schedules: [[]]}, 4: }")


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (SUB_OP, "5", "V130"),
        ("- - double: ", "- - extra: {}\n          double: ", "V130"),
        ("- - double: " + SUB_OP, "- 4", "V130"),
        ("- - double: " + SUB_OP, "- - word", "V130"),
        ("\n      - - double: " + SUB_OP, " 4", "V130"),
        ("inputs: 1", "inputs: x", "V180"),
        ("type: add", "type: add, foo: 1", "V190"),
        ("type: add", "type: add, grid_size: [1, 1]", "V190"),
        ("type: add", "type: add, pop: intermed0", "V183"),
        ("inputs: [input0, input0]", "inputs: input0", "V183"),
        ("inputs: [input0, input0]", "inputs: [[input0]]", "V131"),
        ("output: output", "output: [output]", "V131"),
        ("mblock: [2, 1]", "mblock: [2]", "V131"),
        ("type: add", "type: add, zero_point: x", "V182"),
        ("type: add", "type: add, input_2_tms: [hslice: 1]", "V038"),
        ("type: add", "type: add, input_0_tms: [foo: 1]", "V038"),
        ("type: add", "type: add, attributes: {slope: 2.0}", "V191"),
        ("type: add", "type: add, attributes: {approximate_mode: true}", "V191"),
        ("type: add", "type: add, attributes: {foo: 1}", "V191"),
        ("type: add", "type: add, attributes: 5", "V191"),
        ("type: add", "type: add, attributes: {relu_threshold: -1}", "V037"),
        ("type: add", "type: dropout, attributes: {p: 2.0}", "V037"),
    ],
)
def test_malformed_definitions(old: str, new: str, rule: str) -> None:
    assert [item.rule for item in findings(edited(old, new, FUSED))] == [rule]


@pytest.mark.parametrize(
    "attributes",
    ["{}", "", "{relu_en: true, relu_mode: foo}", "{vector: z}", "{m_k: 1, u_kt: 2, vector: r, relu_mode: max}"],
)
def test_attributes_that_are_not_judged(attributes: str) -> None:
    # NETLIST 11.1 A8
    assert not findings(edited("type: add", f"type: add, attributes: {attributes}", FUSED))


@pytest.mark.parametrize(
    ("op_type", "attribute"),
    [("reduce", "dim: c, type: max"), ("dropout", "p: 0.5, seed: 1"), ("lrelu", "slope: 0.1"), ("power", "exp: 3")],
)
def test_attributes_bound_to_a_type(op_type: str, attribute: str) -> None:
    assert not findings(edited("type: add", f"type: {op_type}, attributes: {{{attribute}}}", FUSED))


def test_findings_name_the_scheduled_op() -> None:
    (finding,) = findings(edited("type: add", "type: add, foo: 1", FUSED))
    assert finding.message == "fused op 0, op double: unknown field 'foo'"


def test_scalars_in_place_of_tm_lists_are_no_tms() -> None:
    definition = fused_op(edited("type: add", "type: add, input_0_tms: transpose", FUSED))
    assert definition.schedules[0][0].input_tms == ((), ())
