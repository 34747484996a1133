"""Runs of a netlist by the kernels and by the plain definitions of its ops, compared bit by bit."""

from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from buda_emu.app.api.run_netlist import run_netlist
from buda_emu.emulator.inputs.feed import push
from buda_emu.emulator.inputs.prepared import RunChoice, prepare_run
from buda_emu.emulator.ops.on_device.reference_units import ReferenceUnits
from buda_emu.emulator.ops.operands import convert, relu_in_place
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.emulator.runtime.graph import device_run, execute
from buda_emu.netlist.load import check_text
from buda_emu.support.errors import BudaError
from buda_emu.testing import awkward_inputs


def by_reference(step, inputs, previous, out, parallel):
    """`execute.run_step` by the definitions of the ops: plain numpy on whole tensors."""
    count = len(out)
    tensors = []
    for operand, source in zip(step.call.operands, inputs, strict=True):
        whole = np.broadcast_to(source, (count, *source.shape[1:]))
        t, rows, cols = operand.map.source_shape
        tensors.append(operand.map.apply(whole.reshape(count, t, rows, cols, 32, 32)))
    out[...] = step.implementation.reference(step.call, tensors).reshape(out.shape)
    if previous is not None:
        out += previous
    relu_in_place(out, step.relu, parallel)
    if step.output_format:
        convert(out, step.output_format, parallel, truncate=True)


@contextmanager
def definitions():
    """All precisions run by the definitions."""
    with (
        patch.object(execute, "run_step", by_reference),
        patch.object(device_run, "KernelUnits", lambda core, **_: ReferenceUnits(core)),
    ):
        yield


def bits(netlist, precision, threads=2):
    """Every output, as words."""
    report = run_netlist(netlist, precision=precision, readout="raw", threads=threads)
    return {name: array.view(np.uint32) for name, array in report.arrays.items()}


def outputs(text, precision, arch=None, seed=None):
    """Every output as words; `seed`: for awkward inputs. Where such a run fails, the error's text."""
    netlist = check_text(text, arch=arch).netlist  # a new one: a netlist object keeps its plans
    if seed is None:
        return bits(netlist, precision)
    try:
        ready = prepare_run(netlist, RunChoice())
        with Emulator(netlist, precision) as emulator, np.errstate(all="ignore"):
            push(emulator, awkward_inputs(netlist, seed))
            for program in ready.bodies:
                emulator.run(program.name, ready.values)
            return {name: array.view(np.uint32) for name, array in emulator.outputs("raw").items()}
    except BudaError as error:
        return {f"{type(error).__name__}: {error}": np.zeros(0, np.uint32)}


def difference(text, precision, arch=None, seed=None):
    """The first output whose bits differ between kernels and definitions, "" where none does."""
    by_kernels = outputs(text, precision, arch, seed)
    with definitions():
        expected = outputs(text, precision, arch, seed)
    if by_kernels.keys() != expected.keys():
        return f"{', '.join(by_kernels)} instead of {', '.join(expected)}"
    return next((name for name, words in by_kernels.items() if not np.array_equal(words, expected[name])), "")
