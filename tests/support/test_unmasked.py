"""Masked arrays are refused by every way in which arrays are given."""

import io
from pathlib import Path

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.backend.tensor_descs import _array_memory
from buda_emu.compiler.compiled import as_numpy
from buda_emu.emulator.image.pack import Contents, write_image
from buda_emu.support.errors import HostError
from buda_emu.support.unmasked import refuse_masked_arrays

NETLIST = Path(__file__).parents[2] / "netlists" / "matmul.yaml"
MASKED = np.ma.masked_array(np.ones((1, 1, 128, 256), np.float32), mask=False)
REFUSED = r"a masked array, and its mask would be ignored: pass array.filled\(value\)"


@pytest.mark.parametrize("given", [MASKED, [MASKED], (np.zeros(3), [MASKED])])
def test_a_masked_array_alone_or_in_lists(given: object) -> None:
    with pytest.raises(HostError, match=f"^x: {REFUSED}"):
        refuse_masked_arrays(given, "x")


@pytest.mark.parametrize("given", [np.zeros(3), [1, 2], None, "text", MASKED.filled(0), MASKED.data])
def test_other_values(given: object) -> None:
    refuse_masked_arrays(given, "x")


def test_pushed() -> None:
    net = be.load(NETLIST)
    with be.Emulator(net) as emulator, pytest.raises(HostError, match=f"activations: {REFUSED}"):
        emulator.push("activations", MASKED)


def test_packed() -> None:
    net = be.load(NETLIST)
    contents = Contents(net, NETLIST.read_bytes(), {"activations": MASKED}, "small", "1")
    with pytest.raises(HostError, match=f"pack: activations: {REFUSED}"):
        write_image(io.BytesIO(), contents)


def test_given_to_a_compiled_model() -> None:
    with pytest.raises(HostError, match=REFUSED):
        as_numpy(MASKED)


def test_in_the_backend() -> None:
    with pytest.raises(HostError, match=REFUSED):
        _array_memory(MASKED)
