"""Outputs part by part are the outputs."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.report import Summariser, summarise
from small_netlists import execute, fifo_settings, graph, op, program, queue, text


@pytest.mark.parametrize("readout", ["host", "raw"])
def test_they_are_the_outputs(load, monkeypatch, readout):
    monkeypatch.setattr("buda_emu.emulator.runtime.host.exchange.PART_BYTES", 2 * 4096)
    net = load(
        text(
            [
                queue("x", entries=5, df="Float16_b"),
                queue("y"),
                queue("o", "n", entries=5, df="Float16_b"),
                queue("r", "m", kind="ram", entries=3),
                queue("e", "k", entries=3),
            ],
            [
                graph("g", op("n", "nop", ["x"], df="Float16_b"), inputs=5),
                graph("h", op("m", "nop", ["y"])),
                graph("f", op("k", "nop", ["y"], loc=(0, 1))),
            ],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("x")))],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        emu.push("x", np.random.default_rng(1).standard_normal((5, 1, 32, 32)).astype(np.float32))
        emu.run("p")
        whole = emu.outputs(readout)
        parts = {}
        for output in emu.outputs_in_parts(readout):
            parts[output.queue] = found = list(output.parts)
            assert output.shape == whole[output.queue].shape
            assert {part.dtype for part in found} == {output.dtype}
        assert list(emu.outputs(readout, queues={"x", "r"})) == ["r"]
    assert list(parts) == list(whole) == ["o", "r"]
    assert [len(part) for part in parts["o"]] == [2, 2, 1]
    for name, found in parts.items():
        np.testing.assert_array_equal(np.concatenate(found), whole[name])


def test_figures_of_parts_are_those_of_the_whole():
    array = np.arange(60, dtype=np.float32).reshape(6, 1, 2, 5) - 20
    array[1, 0, 0, :2] = np.inf, np.nan
    array[3] = np.nan
    figures = Summariser()
    for part in array:
        figures.add(part)
    found = figures.summary("o", "queue", "Float32", array.shape)
    assert found == summarise("o", "queue", "Float32", array)
    assert (found.min, found.max, found.not_finite, found.zeros) == (-20.0, 39.0, 12, 1)
