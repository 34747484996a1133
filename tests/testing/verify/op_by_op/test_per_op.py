"""Figures of every op, and the first one that goes wrong."""

import tracemalloc

import numpy as np
import pytest

import buda_emu as be
from buda_emu.netlist.load import check_text
from buda_emu.testing.verify.op_by_op import run_pair
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

FIRST_TILE = (1, 1, 32, 32)


def chain(*formats, kinds=None, inputs=1, blocks=(1, 1)):
    """a -> n0 -> n1 ... -> o, each op in its own format."""
    kinds = kinds or ["nop"] * len(formats)
    ops, source, df = [], "a", "Float32"
    for number, (out_df, kind) in enumerate(zip(formats, kinds, strict=True)):
        ops.append(op(f"n{number}", kind, [source], loc=(0, number), df=df, out_df=out_df, mblock=blocks))
        source, df = f"n{number}", out_df
    netlist = text(
        [queue("a", entries=8, mblock=blocks), queue("o", source, entries=8, df=df, mblock=blocks)],
        [graph("g", *ops, inputs=inputs)],
        [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
    )
    checked = check_text(netlist)
    assert checked.netlist is not None, checked.diagnostics
    return checked.netlist


def pair(netlist, data, reference=lambda _name: None, threshold=0.99):
    return run_pair(
        netlist,
        lambda emulator: emulator.push("a", data),
        [("p", {})],
        precision="format",
        threads=1,
        reference=reference,
        threshold=threshold,
    )


def noise(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_the_first_op_past_the_threshold_is_named_with_what_it_was_given():
    found = pair(chain("Float32", "Bfp2_b", "Float32"), noise(1, *FIRST_TILE[1:]))
    assert [item.name for item in found.ops] == ["n0", "n1", "n2"]
    assert [item.index for item in found.ops] == [0, 1, 2]
    bad = found.first_bad
    assert (bad.op, bad.index) == ("n1", 1)
    assert bad.reason == f"PCC {found.ops[1].pcc:.6g} is below 0.99"
    (given,) = bad.inputs
    assert (given.name, given.kind, given.format) == ("n0", "op", "Float32")
    assert given.pcc == pytest.approx(1.0, abs=1e-5)
    assert found.ops[2].pcc < 0.99  # wrong too, but not the first


def test_nothing_is_named_where_nothing_is_wrong():
    found = pair(chain("Float32", "Float32"), noise(1, *FIRST_TILE[1:]))
    assert found.first_bad is None
    assert all(item.pcc > 0.999 for item in found.ops)
    assert pair(chain("Bfp2_b"), noise(1, *FIRST_TILE[1:]), threshold=0.5).first_bad is None


def test_figures_by_hand():
    data = np.zeros((2, *FIRST_TILE[1:]), np.float32)
    data[0, 0, 0, :2] = 1.0, 2.0 + 2.0**-5
    data[1, 0, 5, 5] = 1.0
    # the second value is 2 in Bfp4_b: the block's exponent is 1, of 3 bits the last is worth 2^(1-2) = 0.5
    (result,) = pair(chain("Bfp4_b", inputs=2), data).ops
    assert result.inputs == 2
    assert result.max_error == 2.0**-5
    assert result.mean_error == 2.0**-5 / 2048
    assert result.max_ulp == 2.0**-5 / 0.5
    assert result.mean_ulp == result.max_ulp / 2048
    assert (result.not_finite_expected, result.not_finite_observed) == (0.0, 0.0)
    assert (result.type, result.graph, result.format, result.shape) == ("nop", "g", "Bfp4_b", (1, 32, 32))
    assert result.operands == ("a",)
    assert result.expected_from == "ideal"


def test_values_that_become_infinite_are_a_reason():
    data = noise(1, *FIRST_TILE[1:])
    reference = {"n1": data.copy()}
    data[0, 0, 3, 3] = np.inf
    bad = pair(chain("Float32", "Float32"), data, reference.get).first_bad
    assert bad.op == "n1"  # n0 is expected to be infinite too
    assert bad.reason == "0.09766 % of its values are not finite, 0 % expected"


def test_a_constant_that_is_off_is_a_reason():
    data = np.full((1, *FIRST_TILE[1:]), 4.0, np.float32)
    reference = {"n0": data + 0.5}
    bad = pair(chain("Float32"), data, reference.get).first_bad
    assert bad.reason == "a constant is off by 0.5, the largest expected magnitude is 4.5"
    assert pair(chain("Float32"), data, reference.get, threshold=0.5).first_bad is None  # 0.5 <= 0.5 * 4.5
    assert pair(chain("Float32"), data).first_bad is None


def test_a_small_constant_is_held_against_its_own_magnitude():
    data = np.full((1, *FIRST_TILE[1:]), 0.125, np.float32)
    bad = pair(chain("Float32"), data, {"n0": data + 0.25}.get, threshold=0.5).first_bad
    assert bad.reason == "a constant is off by 0.25, the largest expected magnitude is 0.375"  # 0.25 > 0.5 * 0.375
    assert pair(chain("Float32"), 2 * data, {"n0": 4 * data}.get, threshold=0.5).first_bad is None  # 0.25 = 0.5 * 0.5


def test_the_threshold_itself_is_good_enough():
    expected = np.zeros((1, *FIRST_TILE[1:]), np.float32)
    expected[:, :, 16:] = 1.0
    observed = expected.copy()
    observed[0, 0, :4], observed[0, 0, 16:20] = 1.0, 0.0  # a quarter is wrong: the PCC is 1/2
    netlist = chain("Float32")
    assert pair(netlist, observed, {"n0": expected}.get, threshold=0.5).first_bad is None
    bad = pair(netlist, observed, {"n0": expected}.get, threshold=0.5001).first_bad
    assert bad.reason == "PCC 0.5 is below 0.5001"


def test_what_a_bad_op_was_given_by_hand():
    data = np.zeros((1, *FIRST_TILE[1:]), np.float32)
    data[0, 0, 16:24], data[0, 0, 24:] = 1.0, 3.0  # mean 1, E[x^2] = 2.5
    bad = pair(chain("Float32", "Bfp2_b"), data).first_bad
    # n1 makes 2 of 3: cov 1, variances 3/2 and 11/16
    assert (bad.op, bad.reason) == ("n1", "PCC 0.984732 is below 0.99")
    (given,) = bad.inputs
    assert (given.name, given.kind, given.format, given.shape) == ("n0", "op", "Float32", (1, 32, 32))
    assert (given.min, given.max, given.mean) == (0.0, 3.0, 1.0)
    assert given.std == pytest.approx(1.5**0.5, rel=1e-12)
    assert (given.zeros, given.not_finite) == (0.5, 0.0)
    (given,) = pair(chain("Bfp2_b"), -data).first_bad.inputs
    assert (given.name, given.kind, given.min, given.max, given.mean) == ("a", "queue", -3.0, 0.0, -1.0)


def test_the_range_of_what_it_was_given_is_that_of_all_inputs():
    data = np.zeros((4, *FIRST_TILE[1:]), np.float32)
    data[0, 0, :16], data[1, 0, :16], data[2, 0, :16] = 3.0, -5.0, 1.0
    (given,) = pair(chain("Float32", "Bfp2_b", inputs=4), data, threshold=0.9999).first_bad.inputs
    assert (given.min, given.max) == (-5.0, 3.0)


def test_what_is_not_finite_is_left_out_of_the_figures():
    data = np.full((1, *FIRST_TILE[1:]), 2.0, np.float32)
    reference = {"n1": data.copy()}
    data[0, 0, 0, 0], data[0, 0, 0, 1], data[0, 0, 0, 2] = np.inf, -np.inf, 4.0
    reference["n1"][0, 0, 9, 9] = np.inf
    found = pair(chain("Float32", "Float32"), data, reference.get)
    assert found.ops[1].max_error == 2.0  # of 4 and 2
    assert found.ops[1].mean_error == 2.0 / (1024 - 3)
    assert (found.ops[1].not_finite_expected, found.ops[1].not_finite_observed) == (1 / 1024, 2 / 1024)
    assert found.first_bad.reason == "0.1953 % of its values are not finite, 0.09766 % expected"
    (given,) = found.first_bad.inputs
    assert (given.min, given.max, given.not_finite) == (2.0, 4.0, 2 / 1024)


def test_an_input_without_a_finite_value_has_no_figures():
    data = np.full((1, *FIRST_TILE[1:]), np.nan, np.float32)
    found = pair(chain("Float32", "Float32"), data, {"n1": np.zeros_like(data)}.get)
    assert found.ops[1].max_error is None
    (given,) = found.first_bad.inputs
    assert (given.min, given.max, given.mean, given.std, given.pcc) == (None,) * 5
    assert (given.zeros, given.not_finite) == (0.0, 1.0)


@pytest.mark.parametrize(("observed", "expected"), [(1.0, 1 - 2.0**-8), (1 - 2.0**-8, 1.0)])
def test_units_are_those_of_the_larger_side(observed, expected):
    data = np.full((1, *FIRST_TILE[1:]), observed, np.float32)
    (result,) = pair(chain("Float16_b"), data, {"n0": np.full_like(data, expected)}.get).ops
    assert result.max_ulp == result.mean_ulp == 0.5  # neighbours; a unit of 1 is 2^-7


@pytest.mark.parametrize(("format_name", "step"), [("Float16_b", 2.0**-7), ("Float16", 2.0**-10), ("Bfp8_b", 2.0**-6)])
def test_neighbours_are_a_unit_apart(format_name, step):
    data = np.full((1, *FIRST_TILE[1:]), 1.25, np.float32)
    (result,) = pair(chain(format_name), data, {"n0": data + np.float32(step)}.get).ops
    assert (result.max_error, result.max_ulp, result.mean_ulp) == (step, 1.0, 1.0)


def test_results_from_outside_stand_for_the_ideal_ones():
    data = noise(2, *FIRST_TILE[1:])
    ops = pair(chain("Float32", "Float32", inputs=2), data, {"n0": data[:1]}.get).ops
    assert [item.expected_from for item in ops] == ["reference", "ideal"]
    assert [item.inputs for item in ops] == [1, 2]  # the second input of n0 has nothing to be held against
    assert ops[0].max_error < 0.01
    both = pair(chain("Float32", inputs=2), data, {"n0": data}.get).ops[0]
    assert both.inputs == 2
    assert both.max_error < 0.01  # each input is held against its own


def test_outputs_of_both_runs_come_with_it():
    data = noise(1, *FIRST_TILE[1:])
    netlist = chain("Bfp4_b")
    found = pair(netlist, data)
    for side, precision in ((found.observed, "format"), (found.expected, "ideal")):
        with be.Emulator(netlist, precision, threads=1) as emulator:
            emulator.push("a", data)
            emulator.run("p")
            assert np.array_equal(side["o"], emulator.outputs()["o"])


def test_memory_does_not_grow_with_the_number_of_ops_and_inputs():
    blocks = (4, 4)  # 64 KiB for each tensor
    peaks = []
    for length, inputs in ((2, 2), (6, 8)):
        netlist = chain(*["Float32"] * length, inputs=inputs, blocks=blocks)
        data = noise(inputs, 1, 128, 128)
        pair(netlist, data)
        tracemalloc.start()
        pair(netlist, data)
        peaks.append(tracemalloc.get_traced_memory()[1] - 8 * data.nbytes)
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 4 * (1 << 20)  # keeping every result of both runs would take 6 MiB more


def test_results_from_outside_of_no_input_are_none():
    data = noise(1, *FIRST_TILE[1:])
    (result,) = pair(chain("Float32"), data, {"n0": data[:0]}.get).ops
    assert (result.inputs, result.expected_from, result.pcc, result.max_error) == (0, "reference", None, None)
    assert (result.not_finite_expected, result.not_finite_observed) == (0.0, 0.0)
