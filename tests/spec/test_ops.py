"""The table of op types, beside OPS 1 and 8.2."""

from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.spec.ops import OP_TYPES


def test_how_many_inputs_an_op_takes():
    least = {name: op.inputs[0] for name, op in OP_TYPES.items()}
    assert {name for name, number in least.items() if number == 2} == {
        "matmul",
        "add",
        "subtract",
        "multiply",
        "maximum",
        "quantization",
        "requantization",
        "dequantization",
    }
    assert set(least.values()) == {1, 2}
    exact = {name for name, op in OP_TYPES.items() if op.inputs == (1, 1)}
    assert exact == {name for name, op in OP_TYPES.items() if op.family in ("unary", "ethernet", "sfpu")} | {"drainer"}
    assert OP_TYPES["splice"].inputs == (1, 8)


def test_what_may_stand_in_a_fused_op():
    never = {"depthwise", "splice", "embedding", "tilizer", "topk", "fused_op", "buffer", "drainer"}
    assert {name for name, op in OP_TYPES.items() if not op.in_fused} == never


def test_claims_name_formats_or_say_what_is_open():
    for op in OP_TYPES.values():
        if op.family != "refused":
            assert op.on_device.exact or op.on_device.open, op.name
            assert set(op.on_device.exact) <= {*NETLIST_FORMATS}, op.name
            assert {"Bfp8", "Bfp4", "Bfp2"}.isdisjoint(op.on_device.exact) or op.family == "ethernet"
