"""Precision "device" gives the same bits with 1 and 2 threads and without compiled kernels, from push to pop."""

import json
import os
import subprocess
import sys
from hashlib import sha256

import numpy as np

import buda_emu as be
from buda_emu.netlist.load import check_text
from small_netlists import execute, fifo_settings, graph, program, queue, text

# op, type, inputs, in_df, out_df, intermed_df, acc_df, fidelity, attributes
FUNCTIONS = (
    ("x", "exp", ("a",), ("Float32",), "Float16_b", "Float16_b", "Float16_b", "LoFi", ""),
    ("y", "multiply", ("x", "b"), ("Float16_b", "Bfp8_b"), "Bfp4_b", "Float16_b", "Float32", "HiFi2", ""),
    ("z", "reduce", ("y",), ("Bfp4_b",), "Float16_b", "Float16_b", "Float16_b", "LoFi",
     "type: max, dim: c, m_k: 1, u_kt: 1"),
)  # fmt: skip
PRODUCT = (
    ("x", "matmul", ("a", "b"), ("Float32", "Bfp8_b"), "Float16_b", "Bfp8_b", "Float16_b", "LoFi",
     "m_k: 1, u_kt: 1, bias: true, sfpu_op: gelu"),
    ("z", "nop", ("x",), ("Float16_b",), "Bfp8_b", "Float16_b", "Float16_b", "LoFi",
     "relu_en: true, relu_mode: max, relu_threshold: 0.5"),
)  # fmt: skip
INTEGERS = (
    ("x", "quantization", ("a", "s"), ("Float32", "Float32"), "Int8", "Int32", "Int32", "HiFi4", "zero_point: 1.0"),
    ("y", "add", ("x", "x"), ("Int8", "Int8"), "Int32", "Int32", "Int32", "HiFi4", ""),
    ("z", "dequantization", ("y", "s"), ("Int32", "Float32"), "Float32", "Int32", "Int32", "HiFi4", "zero_point: 2.0"),
)  # fmt: skip


def netlist(ops, queues):
    """Chains of ops of one tile that end in z."""
    lines: list[str] = []
    for column, (name, kind, inputs, in_df, out_df, intermed, acc, fidelity, attributes) in enumerate(ops):
        inputs = (*inputs, "c") if "bias" in attributes else inputs
        in_df = (*in_df, "Float16_b") if "bias" in attributes else in_df
        more = f", attributes: {{{attributes}}}" if attributes else ""
        lines.append(
            f"    {name}: {{type: {kind}, grid_loc: [0, {column}], grid_size: [1, 1], inputs: [{', '.join(inputs)}], "
            f"t: 1, mblock: [1, 1], ublock: [1, 1], in_df: [{', '.join(in_df)}], out_df: {out_df}, "
            f"intermed_df: {intermed}, acc_df: {acc}, ublock_order: r, buf_size_mb: 2, math_fidelity: {fidelity}"
            f"{more}}}\n"
        )
    settings = [fifo_settings(name) for name in queues]
    checked = check_text(
        text(
            [*(queue(name, df=df) for name, df in queues.items()), queue("o", "z", df=ops[-1][4])],
            [graph("g", *lines)],
            [program("p", "var: {$c_zero: 0}", execute("g", *settings))],
        )
    )
    assert checked.netlist is not None, checked.diagnostics
    return checked.netlist


def digests(threads):
    """Of what each netlist leaves in its queue."""
    found: dict[str, str] = {}
    for name, ops, queues in (
        ("functions", FUNCTIONS, {"a": "Float32", "b": "Bfp8_b"}),
        ("product", PRODUCT, {"a": "Float32", "b": "Bfp8_b", "c": "Float16_b"}),
        ("integers", INTEGERS, {"a": "Float32", "s": "Float32"}),
    ):
        with be.Emulator(netlist(ops, queues), precision="device", threads=threads) as emulator:
            for seed, queue_name in enumerate(queues):
                data = np.random.default_rng(seed).normal(0.5, 1, (1, 1, 32, 32)).astype(np.float32)
                emulator.push(queue_name, data)
            emulator.run("p")
            result = emulator.pop("o", 1, "raw")
        assert np.unique(result).size > 3
        found[name] = sha256(result.tobytes()).hexdigest()
    return found


def test_the_same_bits_without_compilation():
    expected = digests(1)
    assert digests(2) == expected
    paths = [path for path in sys.path if path]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == expected


if __name__ == "__main__":
    print(json.dumps(digests(1)))
