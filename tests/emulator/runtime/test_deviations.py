"""Cases of docs/reference/deviations.md that are decided here, since the reference leaves them open or crashes (OPS
12)."""

import numpy as np
import pytest

import buda_emu as be
from shared_files import CORPUS, needs_corpus
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

ZERO = "var: {$c_zero: 0}"


def ran(net, pushed, precision="ideal", *, threads=1):
    with be.Emulator(net, precision, threads=threads) as emu:
        for name, array in pushed.items():
            emu.push(name, array)
        for name in emu.programs:
            emu.run(name)
        return emu.outputs("raw")


def tiles(*values, t=1):
    return np.stack([np.full((t, 32, 32), value, np.float32) for value in values])


@pytest.mark.parametrize("arch", ["blackhole", "wormhole_b0"])
def test_depthwise_rounds_product_and_sum(load, arch):
    kind = op("d", "depthwise", ["a", "b"], more=", attributes: {m_k: 1, u_kt: 1}")
    settings = (fifo_settings("a"), fifo_settings("b"))
    content = text(
        [queue("a"), queue("b"), queue("o", "d")],
        [graph("g", kind)],
        [program("p", ZERO, execute("g", *settings))],
        arch=arch,
    )
    a, b = np.zeros((2, 1, 1, 32, 32), np.float32)
    a[..., 0], b[..., 0, :] = -1, 1
    a[..., 1], b[..., 1, :] = 1 + 2.0**-12, 1 + 2.0**-12
    precision = "format" if arch == "blackhole" else "ideal"
    out = ran(load(content), {"a": a, "b": b}, precision)["o"]
    assert (out == 2.0**-11).all()  # contracted: 2^-11 + 2^-24


def test_an_int32_result_below_the_range_is_zero(load):
    kind = op("n", "nop", ["a"], out_df="Int32").replace("acc_df: Float32", "acc_df: Int32")
    content = text(
        [queue("a"), queue("o", "n", df="Int32")],
        [graph("g", kind)],
        [program("p", ZERO, execute("g", fifo_settings("a")))],
    )
    pushed = tiles(-(2.0**31), -3e9, -(2.0**31) + 128, -2.5)
    out = [ran(load(content), {"a": pushed[i : i + 1]})["o"].flat[0] for i in range(4)]
    assert out == [0, 0, -(2.0**31) + 128, -3]


def test_a_slot_of_a_view_that_nobody_pushed_to_reads_what_lies_beneath(load):
    base, view = queue("base", kind="ram", entries=2), queue("view", kind="ram", entries=1, t=2)
    view = view[: view.index("dram:")] + base[base.index("dram:") :].replace("}", ", alias: base}")
    content = text(
        [base, view, queue("o", "n", t=2)],
        [graph("g", op("n", "nop", ["view"], t=2))],
        [program("p", ZERO, execute("g", ram_settings("view")))],
    )
    assert ran(load(content), {"base": tiles(3, 4)})["o"][0, :, 0, 0].tolist() == [3, 4]


def fed_and_read(local):
    return text(
        [queue("a"), queue("m", "f"), queue("o", "n")],
        [graph("g", op("f", "nop", ["a"]), op("n", "nop", ["m"], loc=(0, 1)), inputs=4)],
        [
            program(
                "p",
                "var: {$c_zero: 0, $local: " + str(local) + "}",
                execute("g", fifo_settings("a"), fifo_settings("m", local="$local", prologue="true")),
            )
        ],
    )


@pytest.mark.parametrize("inputs_at_once", [None, 1])
def test_prologue_on_a_queue_that_its_graph_feeds_reads_one_entry_for_all_inputs(load, inputs_at_once):
    with be.Emulator(load(fed_and_read(0)), threads=1, inputs_at_once=inputs_at_once) as emu:
        emu.push("a", tiles(1, 2, 3, 4))
        emu.run("p")
        assert emu.peek("m")[:, 0, 0, 0].tolist() == [1, 2, 3, 4]
        assert emu.peek("o")[:, 0, 0, 0].tolist() == [1, 1, 1, 1]


def test_an_entry_that_the_graph_has_not_filled_yet_is_said_to_be_that(load):
    with be.Emulator(load(fed_and_read(2)), threads=1) as emu:
        emu.push("a", tiles(1, 2, 3, 4))
        with pytest.raises(be.ProgramError, match="the entry that is read is not among those") as stop:
            emu.run("p")
    assert "rd_ptr_local 2 is 2 ahead of rd_ptr_global 0" in str(stop.value)


@needs_corpus
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("case", ["matmul", "depthwise", "gelu_derivative"])
def test_the_sign_of_a_nan_does_not_depend_on_threads(case, threads):
    path = CORPUS / "edge" / "said" / f"F8_nan_sign_{case}.yaml"
    pushed = dict(np.load(path.with_suffix(".npz")))
    one, more = (ran(be.load(path), pushed, "format", threads=number)["o"] for number in (1, threads))
    assert set(np.abs(one[np.abs(one) > 2])) == {65536.0}  # NaN as Bfp2
    np.testing.assert_array_equal(one, more)
