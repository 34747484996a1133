"""Runs the netlists of the project's own directory for tests that compare with plain numpy."""

from pathlib import Path

import numpy as np

import buda_emu as be

DIRECTORY = Path(__file__).resolve().parents[2] / "netlists"
# In precision "format" inputs are rounded to formats of 7 or 8 mantissa bits, and so is what the host reads.
TOLERANCE = {"ideal": 2e-5, "format": 4e-2}


def run(name, precision, inputs, *programs):
    """Push `inputs`, run (program, parameters) in order, return what every op-fed queue and ram holds."""
    netlist = be.load(DIRECTORY / f"{name}.yaml")
    with be.Emulator(netlist, precision=precision, threads=2) as emulator:
        for queue, array in inputs.items():
            emulator.push(queue, array)
        for program, parameters in programs:
            emulator.run(program, parameters)
        return emulator.outputs(readout="host")


def normal(stream, *shape, scale=1.0):
    """float32 data of a normal distribution."""
    return (stream.standard_normal(shape) * scale).astype(np.float32)


def assert_close(got, expected, precision):
    """Equal within the precision's tolerance, relative to the largest value expected; finite, and not all zero."""
    assert got.shape == expected.shape
    assert np.isfinite(got).all()
    largest = np.abs(expected).max()
    assert largest > 0
    worst = np.abs(got.astype(np.float64) - expected).max()
    assert worst <= TOLERANCE[precision] * largest, f"worst difference {worst:.3g}, largest value {largest:.3g}"


def gelu(x):
    """The tanh approximation, in double precision."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    """Over the last axis, in double precision."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
