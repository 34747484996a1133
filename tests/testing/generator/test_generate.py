"""Generated netlists: the checker accepts them, they run, and kernels give the bits of the plain reference."""

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import buda_emu as be
from buda_emu.netlist.load import check_text
from buda_emu.spec.ops import OP_TYPES
from buda_emu.testing import Budget, generate, netlists
from buda_emu.testing.generator.netlist import GENERATED
from plain_definitions import difference

ARCHS = ("wormhole_b0", "grayskull", "blackhole")
NOT_DRAWN = {"buffer", "drainer"}
"""The reference runs neither."""
NOT_ON_GRAYSKULL = {"quantization", "requantization", "dequantization"}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("precision", ["format", "ideal", "device"])
def test_kernels_give_the_bits_of_the_reference(arch, precision):
    for seed in range(25):
        made = generate(seed, arch=arch)
        assert difference(made.text, precision, arch) == "", made.text


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("precision", ["format", "device"])
def test_kernels_give_the_bits_of_the_reference_on_many(arch, precision):
    for seed in range(1000, 1000 + 1667):
        made = generate(seed, arch=arch)
        assert difference(made.text, precision, arch) == "", made.text


@pytest.mark.parametrize("arch", ARCHS)
def test_a_netlist_hangs_on_its_seed_alone(arch):
    texts = [generate(seed, arch=arch).text for seed in range(40)]
    assert texts == [generate(seed, arch=arch).text for seed in range(40)]
    assert len(set(texts)) == 40


@pytest.mark.parametrize("arch", ARCHS)
def test_nearly_every_draw_is_valid(arch):
    """By construction: the check at the end is a net, not the method."""
    tries = [generate(seed, arch=arch).tries for seed in range(300)]
    assert sum(count == 1 for count in tries) >= 295


@pytest.mark.parametrize("arch", ARCHS)
def test_every_op_type_is_drawn(arch):
    drawn = {op.type for seed in range(250) for op in generate(seed, arch=arch).netlist.ops.values()}
    known = {name for name in OP_TYPES if OP_TYPES.is_own(name)} - NOT_DRAWN
    assert drawn == known - (NOT_ON_GRAYSKULL if arch == "grayskull" else set())


def test_what_reads_rows_reads_them_in_dram():
    read = ("embedding", "tilizer")
    for seed in range(40):
        made = generate(seed, arch="grayskull", op_types=read)
        assert "V082" not in {finding.rule for finding in check_text(made.text, strict=True).diagnostics}


def test_op_types_can_be_chosen():
    types = {op.type for seed in range(20) for op in generate(seed, op_types=("matmul", "exp")).netlist.ops.values()}
    assert types == {"matmul", "exp"}
    with pytest.raises(be.HostError, match="op types matmull: known are"):
        generate(0, op_types=("matmull",))


def test_a_budget_bounds_everything():
    budget = Budget(ops=3, graphs=1, tiles=4, inputs=1)
    for seed in range(60):
        netlist = generate(seed, budget=budget).netlist
        assert len({op.written_name for op in netlist.ops.values()}) <= 3
        assert len({op.graph.partition(".")[0] for op in netlist.ops.values()}) == 1  # on one chip, or copied to two
        assert all(np.prod(op.blocking.shape) <= 4 for op in netlist.ops.values())
        assert all(graph.input_count == 1 for graph in netlist.graphs.values())


@given(netlists())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_strategy_of_hypothesis(made):
    assert check_text(made.text).ok
    assert made.netlist.ops.keys() == check_text(made.text).netlist.ops.keys()


def test_a_source_of_choices_can_be_given():
    assert generate(Random(7)).text == generate(7).text
    assert set(GENERATED) <= set(OP_TYPES)
