"""The table of op types, beside OPS 1 and 8.2."""

from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.spec.ops import ANY, OP_TYPES


def types_with(names):
    """The declarations of these names."""
    return [OP_TYPES[name] for name in names.split()]


def test_how_many_inputs_an_op_takes():
    """OPS 1. What is not named here, as an op type that is new, only has to make sense."""
    two = "matmul add subtract multiply maximum quantization requantization dequantization"
    assert {op.inputs[0] for op in types_with(two)} == {2}
    assert {op.name for op in types_with(two)} == {
        op.name for op in OP_TYPES.values() if OP_TYPES.is_own(op.name) and (op.is_binary or op.has("rows by columns"))
    }
    one = [op for op in OP_TYPES.values() if op.family in ("unary", "ethernet", "sfpu")]
    assert {op.inputs for op in (*one, OP_TYPES["drainer"])} == {(1, 1)}
    assert {op.inputs for op in types_with("reduce embedding tilizer topk depthwise fused_op buffer")} == {(1, ANY)}
    assert OP_TYPES["splice"].inputs == (1, 8)
    for op in OP_TYPES.values():
        assert 1 <= op.inputs[0] <= op.inputs[1], op.name
        assert (op.inputs[0] == 2) == (op.is_binary or op.has("rows by columns")), op.name


def test_what_may_stand_in_a_fused_op():
    """OPS 8.2."""
    never = "depthwise splice embedding tilizer topk fused_op buffer drainer"
    assert not any(op.in_fused for op in types_with(never))
    families = ("unary", "ethernet", "sfpu", "binary", "quantization", "reduce", "matmul")
    assert all(op.in_fused for op in OP_TYPES.values() if op.family in families)
    assert all(op.runs for op in OP_TYPES.values() if op.in_fused)


def test_claims_name_formats_or_say_what_is_open():
    for op in OP_TYPES.values():
        claims = bool(op.on_device.exact or op.on_device.open)
        assert claims == bool(op.device), f"{op.name}: with `device`, and only then, `on_device` says what is claimed"
        assert set(op.on_device.exact) <= {*NETLIST_FORMATS}, op.name
        assert {"Bfp8", "Bfp4", "Bfp2"}.isdisjoint(op.on_device.exact) or op.family == "ethernet"


def test_attributes_and_costs_are_declared():
    for op in OP_TYPES.values():
        assert set(op.attributes) <= {*ATTRIBUTES}, op.name
        assert op.costs_as in OP_TYPES, op.name
