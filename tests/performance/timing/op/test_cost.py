"""The op cost model obeys physics and says how well founded it is."""

import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from buda_emu.performance.timing import OpCall, op_cost, op_cycles
from buda_emu.performance.timing.op.cost import ideal_cycles, math_active_cycles, parameter_sets
from buda_emu.performance.timing.op.features import features, form_of, stages
from buda_emu.spec.archs import ARCHS
from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.spec.precision import PHASES
from buda_emu.support.errors import HostError, UnsupportedError

TYPES = sorted(name for name, op in OP_TYPES.items() if op.family not in ("fused", "refused"))
ARCH_NAMES = sorted(name for name, arch in ARCHS.items() if arch.documented)
SIZE = {"mblock_m": 2, "mblock_n": 2, "ublock_rt": 2, "ublock_ct": 2}
PRODUCT = {"m_k": 2, "u_kt": 4, **SIZE}
SPARSE = {"sparse": True, "nz_tiles": 47, "nz_ublocks": 9, "nz_strips": 3, **PRODUCT}
ROUNDS_OF = ("m_k", "z")  # dimensions whose first step costs another amount than the further ones
OTHERS = ("t", "mblock_m", "mblock_n", "ublock_rt", "ublock_ct", "u_kt", "nz_tiles", "nz_ublocks", "nz_strips")
DIMENSIONS = (*ROUNDS_OF, *OTHERS)


@st.composite
def calls(draw, types=TYPES):
    """Ops of every type, architecture, format and size, far beyond what was measured."""
    op_type = draw(st.sampled_from(types))
    size = st.one_of(st.integers(1, 16), st.integers(1, 4096))
    given = {name: draw(size) for name in ("t", "mblock_m", "mblock_n", "ublock_rt", "ublock_ct")}
    if op_type in ("matmul", "depthwise"):
        given |= {"m_k": draw(size), "u_kt": draw(size), "l1_acc": draw(st.booleans())}
    if op_type == "matmul" and draw(st.booleans()):
        given |= {"sparse": True, "nz_tiles": draw(size), "nz_ublocks": draw(size), "nz_strips": draw(size)}
    if op_type == "reduce":
        given |= {"reduce_dim": draw(st.sampled_from("rcz")), "z": draw(size)}
    return OpCall(
        op_type=op_type,
        arch=draw(st.sampled_from(ARCH_NAMES)),
        in0_df=draw(st.sampled_from(NETLIST_FORMATS)),
        in1_df=draw(st.sampled_from(NETLIST_FORMATS)),
        out_df=draw(st.sampled_from(NETLIST_FORMATS)),
        fidelity=draw(st.sampled_from(sorted(PHASES))),
        approximate=draw(st.booleans()),
        vector_mode=draw(st.sampled_from(("rc", "r", "c"))),
        tile_rows=draw(st.sampled_from((1, 2, 4, 8, 16, 32))),
        untilize=draw(st.booleans()),
        **given,
    )


@settings(max_examples=300, deadline=None)
@given(calls())
def test_never_below_the_ideal_rate(call):
    cost = op_cost(call)
    assert cost.cycles >= cost.core_cycles >= cost.ideal_cycles == ideal_cycles(call) > 0


@settings(max_examples=300, deadline=None)
@given(calls(), st.data())
def test_no_dimension_makes_an_op_cheaper(call, data):
    names = [name for name in DIMENSIONS if getattr(call, name)]
    name = data.draw(st.sampled_from(names))
    more = replace(call, **{name: getattr(call, name) + data.draw(st.integers(1, 500))})
    assert op_cycles(more) >= op_cycles(call)
    assert ideal_cycles(more) >= ideal_cycles(call)


@settings(max_examples=300, deadline=None)
@given(calls(), st.data())
def test_twice_the_work_costs_at_most_twice_the_time(call, data):
    """Unless a threshold lies between the two: an output that begins to stream to DRAM, a sum that is spilled."""
    name = data.draw(st.sampled_from([name for name in OTHERS if getattr(call, name)]))
    twice = replace(call, **{name: 2 * getattr(call, name)})
    assume(bool(features(twice)["streamed_tiles"]) == bool(features(call)["streamed_tiles"]))
    assert op_cycles(twice) <= 2.0000001 * op_cycles(call)


@settings(max_examples=300, deadline=None)
@given(calls(types=("matmul", "depthwise", "reduce")), st.sampled_from(ROUNDS_OF))
def test_a_further_round_costs_no_more_than_a_spill(call, name):
    """A round of the inner dimension after the first spills and reloads each tile, whatever share of the tile is used:
    at most eight times the first round where tiles are full (measured, 4.2), or as much as full tiles would cost."""
    twice = replace(call, **{name: 2 * getattr(call, name)})
    full = {"tile_rows": 32, "tile_cols": 32}
    assert op_cycles(replace(twice, **full)) <= 8 * op_cycles(replace(call, **full))
    assert op_cycles(twice) <= op_cycles(replace(twice, **full))


@pytest.mark.parametrize("op_type", ["matmul", "depthwise"])
def test_tiny_tiles_shorten_every_round(op_type):
    """The second and all further rounds as the first: a tile of one row has a 32nd of the products."""
    given = {"t": 2, "mblock_m": 4, "mblock_n": 4, "ublock_rt": 4, "ublock_ct": 4, "u_kt": 16}
    call = OpCall(
        op_type=op_type,
        arch="wormhole_b0",
        in0_df="Float16_b",
        in1_df="Float16_b",
        out_df="Float16_b",
        fidelity="HiFi4",
        m_k=8,
        **given,
    )
    assert op_cycles(replace(call, tile_rows=1)) < op_cycles(call) / 20


@settings(max_examples=200, deadline=None)
@given(calls())
def test_a_fidelity_phase_never_saves_cycles(call):
    least, most = (op_cycles(replace(call, fidelity=name)) for name in ("LoFi", "HiFi4"))
    assert most >= least


@settings(max_examples=200, deadline=None)
@given(calls())
def test_provenance_is_one_of_its_kinds(call):
    provenance = op_cost(call).provenance
    assert provenance in ("measured", "interpolated") or provenance.startswith("estimated from ")
    if call.arch in ("blackhole", "wormhole") or call.tile_rows != 32 or call.untilize or call.vector_mode != "rc":
        assert provenance.startswith("estimated from ")


def test_a_call_costs_the_same_every_time():
    call = OpCall(op_type="matmul", **PRODUCT)
    assert op_cost(call) == op_cost(call)


@pytest.mark.parametrize(
    ("given", "provenance"),
    [
        ({"op_type": "exp", "in0_df": "Bfp8_b"}, "measured"),
        ({"op_type": "exp", "in0_df": "Bfp4_b"}, "interpolated"),
        ({"op_type": "exp", "in0_df": "Bfp8_b", "mblock_m": 500},
         "estimated from wormhole_b0 exp Bfp8_b, beyond the measured sizes"),
        ({"op_type": "exp", "in0_df": "Float32"}, "estimated from wormhole_b0 exp Float16_b"),
        ({"op_type": "exp", "in0_df": "Bfp8_b", "vector_mode": "r"}, "estimated from wormhole_b0 exp Bfp8_b"),
        ({"op_type": "exp", "in0_df": "Bfp8_b", "arch": "blackhole"}, "estimated from wormhole_b0 exp Bfp8_b"),
        ({"op_type": "tanh", "in0_df": "Bfp8_b", "arch": "grayskull"}, "estimated from wormhole_b0 tanh Bfp8_b"),
        ({"op_type": "topk", "in0_df": "Bfp8_b"}, "estimated from wormhole_b0 maximum Bfp8_b"),
        ({"op_type": "tilizer", "in0_df": "Float16_b"}, "estimated from wormhole_b0 nop Float16_b"),
        ({"op_type": "embedding", "in0_df": "Float16_b"}, "estimated from wormhole_b0 nop Float16_b"),
        ({"op_type": "matmul", "in0_df": "Bfp8_b", "fidelity": "LoFi", **PRODUCT}, "measured"),
        ({"op_type": "matmul", "in0_df": "Bfp8_b", "fidelity": "HiFi2", **PRODUCT}, "interpolated"),
        ({"op_type": "matmul", "in0_df": "Bfp8_b", "untilize": True, "fidelity": "LoFi", **PRODUCT},
         "estimated from wormhole_b0 matmul Bfp8_b"),
        ({"op_type": "matmul", "in0_df": "Bfp2", "in1_df": "Bfp8", "out_df": "Bfp8", "fidelity": "LoFi", **SPARSE},
         "measured"),
    ],
)  # fmt: skip
def test_provenance(given, provenance):
    assert op_cost(OpCall(**(SIZE | given))).provenance == provenance


def test_fidelity_costs_its_fpu_cycles_where_math_governs():
    big = {
        "op_type": "matmul",
        "in0_df": "Float16_b",
        "mblock_m": 2,
        "mblock_n": 2,
        "ublock_rt": 2,
        "ublock_ct": 4,
        "m_k": 1,
        "u_kt": 8,
    }
    low, high = (op_cycles(OpCall(fidelity=name, **big)) for name in ("HiFi3", "HiFi4"))
    assert high - low == pytest.approx(16 * 4 * 8 * 8, rel=0.01)


def test_vector_modes_and_tiny_tiles_shorten_sfpu_work():
    full, columns, rows = (op_cycles(OpCall(op_type="exp", vector_mode=mode, **SIZE)) for mode in ("rc", "c", "r"))
    assert full > columns > rows >= op_cycles(OpCall(op_type="nop", **SIZE))
    assert op_cycles(OpCall(op_type="exp", tile_rows=8, **SIZE)) < full / 2


def test_dram_slows_big_copies_only():
    small, big = (op_cost(OpCall(op_type="nop", mblock_m=2, mblock_n=n, ublock_rt=1, ublock_ct=8)) for n in (1, 4))
    assert small.core_cycles == small.cycles
    assert big.core_cycles < 0.6 * big.cycles


def test_only_operands_out_of_dram_take_time_to_arrive():
    call = OpCall(op_type="matmul", t=64, m_k=1, u_kt=24, in0_df="Float16_b", fidelity="HiFi3")
    both, right, neither = (op_cost(call, reads=reads).cycles for reads in ({0, 1}, {1}, set()))
    assert both > right >= neither >= op_cost(call).core_cycles
    assert op_cost(call, reads={0}).cycles > 2 * right  # the left operand of small blocks comes again and again
    assert op_cost(call).cycles == both
    assert op_cost(call, reads={1}).core_cycles == op_cost(call).core_cycles


def test_untilized_output_takes_longer():
    assert op_cycles(OpCall(op_type="nop", untilize=True, **SIZE)) > op_cycles(OpCall(op_type="nop", **SIZE))


def test_math_active_cycles():
    size = {"op_type": "matmul", "mblock_m": 2, "mblock_n": 2, "ublock_rt": 2, "ublock_ct": 2, "m_k": 4, "u_kt": 2}
    low = {"in0_df": "Bfp8_b", "fidelity": "LoFi", **size}
    assert math_active_cycles(OpCall(**low)) == 16 * 16 * 8 + 8 * 3 * 16
    assert math_active_cycles(OpCall(l1_acc=True, **low)) == 16 * 16 * 8 + 8 * 16
    assert math_active_cycles(OpCall(in0_df="Float16_b", fidelity="HiFi4", **size)) == 64 * 16 * 8 + 8 * 3 * 16
    assert math_active_cycles(OpCall(in0_df="Float16_b", fidelity="HiFi4", l1_acc=True, **size)) == 64 * 16 * 8
    assert math_active_cycles(OpCall(in0_df="Int8", out_df="Int32", fidelity="HiFi4", **size)) == 64 * 16 * 8
    with pytest.raises(UnsupportedError, match="dense matmul only, not of nop"):
        math_active_cycles(OpCall(op_type="nop"))


def test_every_set_has_the_weights_of_its_form_and_none_is_negative():
    for one in parameter_sets().values():
        assert {stage.name: set(stage.counts) for stage in stages(form_of(one.kind))} == {
            name: set(values) for name, values in one.weights.items()
        }
        assert all(value >= 0 for values in one.weights.values() for value in values.values())


def test_no_numpy_is_loaded(child_environment):
    code = (
        "import sys, buda_emu.performance.timing as t; t.op_cycles(t.OpCall(op_type='nop'))\n"
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], env=child_environment, check=True)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"op_type": "nope"}, "op_type: 'nope' is not an op type"),
        ({"op_type": "buffer"}, "op_type: 'buffer' is not an op type"),
        ({"op_type": "nop", "arch": "jawbridge"}, "arch: 'jawbridge'"),
        ({"op_type": "nop", "in0_df": "Float12"}, "in0_df: 'Float12'"),
        ({"op_type": "nop", "fidelity": "MidFi"}, "fidelity: 'MidFi'"),
        ({"op_type": "nop", "vector_mode": "x"}, "vector_mode: 'x'"),
        ({"op_type": "reduce"}, "reduce_dim: ''"),
        ({"op_type": "nop", "mblock_m": 0}, "mblock_m: 0 is not between 1"),
        ({"op_type": "matmul", "u_kt": 2}, "m_k: matmul needs it"),
        ({"op_type": "nop", "sparse": True}, "sparse: only a matmul"),
        ({"op_type": "matmul", "m_k": 1, "u_kt": 1, "sparse": True}, "nz_tiles: a sparse matmul needs it"),
        ({"op_type": "nop", "tile_rows": 3}, "no tile is 3x32"),
    ],
)
def test_what_no_op_can_be(given, words):
    with pytest.raises(HostError, match=words):
        OpCall(**given)


def test_fused_ops_are_refused_by_name():
    with pytest.raises(UnsupportedError, match="add up the ops of its schedule"):
        OpCall(op_type="fused_op")
