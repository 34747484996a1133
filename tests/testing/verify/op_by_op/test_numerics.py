"""Each cause of error is found where it was put, and the repair is what takes it away."""

import subprocess
import sys

import numpy as np
import pytest

from buda_emu.emulator.op_errors.numerics import explain, op_numerics
from buda_emu.netlist.load import check_text
from buda_emu.support.errors import HostError
from example_netlists import DIRECTORY
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

K = 32  # inner tiles


def loaded(netlist):
    checked = check_text(netlist)
    assert checked.netlist is not None, checked.diagnostics
    return checked.netlist


def line(name, kind, inputs, in_df, out_df, *, acc="Float32", intermed="Float32", fidelity="HiFi4", column=0, more=""):
    """An op of one tile with every format of its own."""
    return (
        f"    {name}: {{type: {kind}, grid_loc: [0, {column}], grid_size: [1, 1], inputs: [{', '.join(inputs)}], t: 1, "
        f"mblock: [1, 1], ublock: [1, 1], in_df: [{', '.join(in_df)}], out_df: {out_df}, intermed_df: {intermed}, "
        f"acc_df: {acc}, ublock_order: r, buf_size_mb: 2, math_fidelity: {fidelity}{more}}}\n"
    )


def product(fidelity="HiFi4", acc="Float32", intermed="Float32", blocks=1, df="Float32", arch="wormhole_b0", more=""):
    """a [1 x K] times b [K x 1], in so many blocks."""
    attributes = f", attributes: {{m_k: {blocks}, u_kt: {K // blocks}{more}}}"
    settings = fifo_settings("a"), ram_settings("b", prologue="true")
    return loaded(
        text(
            [
                queue("a", mblock=(1, K), df=df),
                queue("b", kind="ram", entries=1, mblock=(K, 1), df=df),
                queue("o", "m"),
            ],
            [
                graph(
                    "g",
                    line(
                        "m",
                        "matmul",
                        ["a", "b"],
                        [df, df],
                        "Float32",
                        acc=acc,
                        intermed=intermed,
                        fidelity=fidelity,
                        more=attributes,
                    ),
                )
            ],
            [program("p", "var: {$c_zero: 0}", execute("g", *settings))],
            arch=arch,
        )
    )


def alone(kind, in_df, out_df, *, acc="Float32", attributes="", fidelity="HiFi4", intermed="Float32"):
    """One op on one tile."""
    more = f", attributes: {{{attributes}}}" if attributes else ""
    made = line("n", kind, ["a"], [in_df], out_df, acc=acc, intermed=intermed, more=more, fidelity=fidelity)
    return loaded(
        text(
            [queue("a", df=in_df), queue("o", "n", df=out_df)],
            [graph("g", made)],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
        )
    )


def only(netlist, **options):
    (found,) = explain(netlist, **options).ops
    return found


def on_data(netlist, data):
    """The one op of `alone` on these values."""
    (found,) = op_numerics(netlist, lambda emulator: emulator.push("a", data), [("p", {})], memory_limit=1 << 30)
    return found


def repaired(op):
    assert op.repair is not None
    (change,) = op.repair.changes
    return change.field, change.before, change.after


@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
def test_fidelity(arch):
    op = only(product("LoFi", arch=arch))
    assert op.cause == "fidelity"
    assert op.without["fidelity"] < op.local.rms / 5
    name, before, after = repaired(op)
    assert (name, before, after) == ("math_fidelity", "LoFi", "HiFi3")  # HiFi4 costs more and gains little
    assert op.repair.error < op.local.rms / 5


def test_width_of_dest():
    op = only(product(acc="Float16_b", df="Float16_b", intermed="Float16_b"))
    assert op.cause == "dest"
    assert op.without["dest"] < op.local.rms / 2
    assert op.without["spills"] == op.local.rms  # one block: there are none
    assert repaired(op) == ("acc_df", "Float16_b", "Float32")


def test_spills():
    op = only(product(intermed="Bfp8_b", df="Float16_b", blocks=K))
    assert op.cause == "spills"
    assert op.without["spills"] < 0.6 * op.local.rms
    assert op.without["dest"] is None  # it is wide already
    assert op.repair.changes[0].field == "intermed_df"


@pytest.mark.parametrize("out_df", ["Bfp2_b", "Bfp4_b"])
def test_packing(out_df):
    op = only(alone("nop", "Float16_b", out_df))
    assert op.cause == "packing"
    assert op.without["packing"] < op.local.rms / 10
    assert op.without["fidelity"] is None
    assert repaired(op) == ("out_df", out_df, "Bfp8_b")  # about as good as Float16_b, and half its size


def test_vector_unit():
    op = only(alone("exp", "Float32", "Float32", attributes="approximate_mode: true"))
    assert op.cause == "sfpu"
    assert op.without["sfpu"] < op.local.rms / 10
    assert op.without["packing"] is None
    assert repaired(op) == ("approximate_mode", "true", "false")


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [("lrelu", "slope: 0.1"), ("power", "exp: 3"), ("sine", ""), ("gelu", ""), ("tanh", ""), ("abs", "")],
)
def test_exact_functions_are_those_of_ideal(kind, attributes):
    """Operands that tf32 holds, a Dst of 32 bits: only the function is left."""
    data = np.round(np.random.default_rng(0).uniform(-2, 2, (1, 1, 32, 32)) * 64).astype(np.float32) / 64
    netlist = alone(kind, "Float32", "Float32", attributes=attributes)
    op = on_data(netlist, data)
    assert op.without["sfpu"] in ([None, 0.0] if op.local.rms == 0 else [0.0])


def test_input_format():
    netlist = loaded(
        text(
            [queue("a"), queue("o", "n1")],
            [
                graph(
                    "g",
                    line("n0", "nop", ["a"], ["Float32"], "Bfp2_b"),
                    line("n1", "nop", ["n0"], ["Bfp2_b"], "Float32", column=1),
                )
            ],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
        )
    )
    n0, n1 = explain(netlist).ops
    assert (n0.cause, n1.cause) == ("packing", "inputs")
    assert n1.in_df == ("Bfp2_b",)
    assert n1.total.rms == n0.total.rms
    assert n1.without["inputs"] < n1.local.rms / 100
    assert repaired(n1)[0] == "in_df"


def test_errors_of_others_are_not_an_ops_own():
    netlist = loaded(
        text(
            [queue("a", df="Float16_b"), queue("o", "n1", df="Bfp4_b")],
            [
                graph(
                    "g",
                    op("n0", "nop", ["a"], df="Float16_b", out_df="Bfp4_b"),
                    op("n1", "nop", ["n0"], loc=(0, 1), df="Bfp4_b"),
                )
            ],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
        )
    )
    first, second = explain(netlist).ops
    assert second.local.rms == first.total.rms == second.total.rms  # the same rounding, once


def test_exact_ops_have_no_cause_and_no_repair():
    netlist = alone("nop", "Float16_b", "Float16_b")
    ones = np.ones((1, 1, 32, 32), np.float32)
    found = on_data(netlist, ones)
    assert found.local.rms == found.total.rms == found.total.max_error == 0
    assert (found.cause, found.repair) == ("", None)


def test_zeros_that_are_not_met_have_no_relative_error():
    netlist = alone("log", "Float32", "Float32")
    ones = np.ones((1, 1, 32, 32), np.float32)
    found = on_data(netlist, ones)
    assert found.local.max_error > 0
    assert found.local.rms is None
    assert found.cause == ""


def test_values_that_are_finite_on_one_side_only_are_counted():
    data = np.ones((1, 1, 32, 32), np.float32)
    data[0, 0, 0, :4] = np.inf, -np.inf, np.nan, 3.4e38
    data[0, 0, 1, :5] = 1e5  # above all of Float16
    found = on_data(alone("nop", "Float32", "Float16"), data)
    assert found.local.not_finite == found.total.not_finite
    assert found.total.not_finite >= 3


def test_causes_that_only_matter_together():
    """Operand and result have 8 bits each: one is rounded where the other is not."""
    op = only(alone("nop", "Float16_b", "Bfp8_b"))
    assert op.cause == "packing"
    data = np.random.default_rng(0).uniform(1, 1.99, (1, 1, 32, 32)).astype(np.float32)
    op = on_data(alone("nop", "Bfp4_b", "Bfp4_b"), data)
    assert op.cause == "inputs+packing"
    assert op.without["inputs"] > 0.9 * op.local.rms
    assert op.without["packing"] > 0.9 * op.local.rms
    assert {change.field for change in op.repair.changes} == {"in_df", "out_df"}


def test_values_beyond_the_range_of_the_output():
    data = np.linspace(1e5, 3e5, 1024, dtype=np.float32).reshape(1, 1, 32, 32)
    op = on_data(alone("nop", "Float32", "Float16"), data)
    assert op.largest == 131008
    assert op.beyond == np.count_nonzero(data > 131008)
    assert op.cause == "packing"
    assert on_data(alone("nop", "Float32", "Float16"), data / 4).beyond == 0


@pytest.mark.parametrize("mode", ["r", "c"])
def test_what_a_vector_mode_does_not_touch(mode):
    """The chip leaves the operand there, ideal has zeros."""
    data = np.random.default_rng(0).uniform(1, 2, (1, 1, 32, 32)).astype(np.float32)
    op = on_data(alone("exp", "Float32", "Float32", attributes=f"vector: {mode}"), data)
    assert op.cause == "vector"
    assert op.without["vector"] < 0.03 < 0.1 < op.local.rms
    assert only(alone("exp", "Float32", "Float32")).without["vector"] is None


def test_vector_modes_of_sub_ops():
    """Of all of them only what every one computes is compared."""
    fused = (
        "fused_ops:\n  0:\n    inputs: 1\n    intermediates: 0\n    schedules:\n"
        "    -\n      - e: {type: exp, inputs: [input0], mblock: [1, 1], ublock: [1, 1], output: dest, "
        "attributes: {vector: r}}\n"
        "      - s: {type: sigmoid, inputs: [dest], mblock: [1, 1], ublock: [1, 1], output: output, "
        "attributes: {vector: c}}\n"
    )
    made = line("n", "fused_op", ["a"], ["Float32"], "Float32", more=", attributes: {fused_op_id: 0}")
    netlist = loaded(
        text(
            [queue("a"), queue("o", "n")],
            [graph("g", made)],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
            fused=fused,
        )
    )
    op = on_data(netlist, np.random.default_rng(0).uniform(3, 4, (1, 1, 32, 32)).astype(np.float32))
    assert op.cause == "vector"
    assert op.without["vector"] < 0.03 < op.local.rms


def test_errors_of_operands_that_grow():
    """A rough exponential, from which nearly the same is taken."""
    netlist = loaded(
        text(
            [queue("a"), queue("b"), queue("o", "n1")],
            [
                graph(
                    "g",
                    line("n0", "exp", ["a"], ["Float32"], "Float32", more=", attributes: {approximate_mode: true}"),
                    line("n1", "subtract", ["n0", "b"], ["Float32", "Float32"], "Float32", column=1),
                )
            ],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a"), fifo_settings("b")))],
        )
    )
    data = np.random.default_rng(0).uniform(1, 2, (1, 1, 32, 32)).astype(np.float32)

    def fill(emulator):
        emulator.push("a", data)
        emulator.push("b", np.float32(0.75) * np.exp(data))

    first, second = op_numerics(netlist, fill, [("p", {})], memory_limit=1 << 30)
    assert first.operands is None
    assert second.operands == first.total.rms
    assert second.total.rms > 2 * max(second.operands, second.local.rms) > 0


def test_several_changes_that_only_help_together():
    netlist = loaded((DIRECTORY / "attention.yaml").read_text())
    op = only(netlist, only="q")
    assert [change.field for change in op.repair.changes] == ["in_df", "acc_df"]
    assert op.repair.error < op.local.rms / 2


def test_threads_change_nothing():
    netlist = loaded((DIRECTORY / "softmax.yaml").read_text())
    assert explain(netlist, threads=1).as_json() == explain(netlist, threads=2).as_json()


def test_gradient_ops_and_every_epoch_are_looked_at():
    found = explain(loaded((DIRECTORY / "training.yaml").read_text()))
    assert [op.index for op in found.ops] == list(range(len(found.ops)))
    assert {op.graph for op in found.ops} == set(loaded((DIRECTORY / "training.yaml").read_text()).graphs)
    assert all(op.local is not None for op in found.ops)
    (gradient,) = [op for op in found.ops if op.name == "grad_w2_sum"]
    assert 0 < gradient.local.rms < gradient.total.rms


def test_an_op_that_is_not_there():
    with pytest.raises(HostError, match="no op 'x'"):
        explain(product(), only="x")


def test_figures_do_not_depend_on_the_threads_of_blas(child_environment):
    command = (
        f"import json, buda_emu as be; print(json.dumps(be.numerics({str(DIRECTORY / 'attention.yaml')!r}).to_json()))"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", command],
            env={**child_environment, "OPENBLAS_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    ]
    assert found[0] == found[1]
