"""Series of generated netlists that leave nothing out."""

from itertools import islice

from buda_emu.coverage.report import Coverage
from buda_emu.spec.ops import OP_TYPES
from buda_emu.testing.generator.netlist import GENERATED
from buda_emu.testing.generator.steering import EVERY, Steering, evenly


def test_what_a_coverage_lacks_is_drawn():
    coverage = Coverage()
    first = next(islice(Steering(coverage).netlists(), 1))
    assert "matmul" in {op.type for op in first.netlist.ops.values()}
    assert "matmul" not in coverage.missing("op types")


def test_in_an_even_series_everything_has_its_turn():
    made = [evenly(number) for number in range(300)]
    ops = [(item.netlist.arch_name, op) for item in made for op in item.netlist.ops.values()]
    assert {op.type for _, op in ops} == set(GENERATED) - {"ethernet_datacopy"}  # which needs two chips
    assert any(op.gradient_op for _, op in ops)
    assert any(op.out_df == "Int8" for _, op in ops)
    assert {arch for arch, _ in ops} == set(EVERY)
    seen = {name for _, op in ops for name in op.attributes.given}
    assert {"bias", "l1_acc", "identity", "accumulate", "vector", "p", "slope", "dim"} <= seen
    assert all(len({op.written_name for op in item.netlist.ops.values()}) <= 2 for item in made)


def test_an_even_series_hangs_on_seed_and_number_alone():
    assert [evenly(n, seed=1).text for n in range(20)] == [evenly(n, seed=1).text for n in range(20)]
    assert all(evenly(n, seed=1).text != evenly(n, seed=2).text for n in range(20))


def test_an_op_that_an_architecture_does_not_have_is_left_out_there():
    types = {op.type for n in range(60) for op in evenly(n, archs=("grayskull",)).netlist.ops.values()}
    assert not types & {name for name in GENERATED if OP_TYPES[name].family == "quantization"}
