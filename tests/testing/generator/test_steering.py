"""Series of generated netlists that leave nothing out."""

from itertools import islice

import pytest

from buda_emu.netlist.load import check_text
from buda_emu.spec.ops import OP_TYPES
from buda_emu.testing.coverage.report import Coverage, every_list
from buda_emu.testing.generator.netlist import GENERATED
from buda_emu.testing.generator.steering import EVERY, Steering, evenly


def test_what_a_coverage_lacks_is_drawn():
    coverage = Coverage()
    first = next(islice(Steering(coverage).netlists(), 1))
    assert "matmul" in {op.type for op in first.netlist.ops.values()}
    assert "matmul" not in coverage.missing("op types")


def lacking(*names):
    """A coverage that has everything but these."""
    coverage = Coverage()
    for subject, there in every_list().items():
        coverage.counts[subject] = dict.fromkeys((name for name in there if name not in names), 1)
    return coverage


@pytest.mark.parametrize(
    "name",
    [
        "pick lines into L1", "function cast_to_fp16", "integer subtract", "pack int32 to Bfp8", "pack fp32 to UInt8",
        "pack bf16 to Lf8", "unpack RawUInt8 to Lf8", "multiply onto Dst", "recode",
        "ram: read and written by one input",
    ],
)  # fmt: skip
def test_what_runs_lack_is_drawn(name):
    coverage = lacking(name)
    (made,) = Steering(coverage).netlists()
    assert check_text(made.text).ok
    assert not any(coverage.missing(subject) for subject in every_list())


@pytest.mark.slow
def test_every_list_of_language_and_runs_comes_to_100_percent():
    steering = Steering(Coverage())
    assert len(list(steering.netlists())) < 300
    assert steering.unreached == {}
    assert [what for what, _, _, missing in steering.coverage.rows() if missing] == ["rules broken"]


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
