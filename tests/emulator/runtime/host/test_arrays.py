"""What a host may push, and what it reads back (FORMATS 3.10, NETLIST 7.4)."""

import array

import ml_dtypes
import numpy as np
import pytest

import buda_emu as be
from buda_emu.emulator.runtime.host.host_io import as_numpy
from small_netlists import execute, fifo_settings, graph, op, program, queue, text


@pytest.fixture(params=["format", "device"])
def emulator(tmp_path, request):
    """A function that gives a machine with one host queue `x` of a format, that holds values or bits."""
    made = []

    def of(df="Float32", *, t=1, mblock=(1, 1)):
        path = tmp_path / "net.yaml"
        path.write_text(
            text(
                [queue("x", df=df, t=t, mblock=mblock, entries=4), queue("y"), queue("o", "n")],
                [graph("g", op("n", "nop", ["y"]))],
                [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("y")))],
            )
        )
        emu = be.Emulator(be.load(path), request.param, threads=1)
        made.append(emu)
        return emu

    yield of
    for emu in made:
        emu.close()


RAMP = np.arange(1024, dtype=np.float32).reshape(1, 1, 32, 32) % 100

TYPES = [
    np.float16, np.float32, np.float64, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64,
    ml_dtypes.bfloat16, ">f4", ">i2",
]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES, ids=lambda item: np.dtype(item).str + np.dtype(item).name)
def test_numbers_keep_their_value(emulator, dtype):
    emu = emulator()
    emu.push("x", RAMP.astype(dtype))
    np.testing.assert_array_equal(emu.pop("x"), RAMP)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "int4"])
def test_every_small_value_of_ml_dtypes(emulator, name):
    codes = np.arange(16 if name == "int4" else 256, dtype=np.uint8)
    values = codes.astype(name) if name == "int4" else codes.view(getattr(ml_dtypes, name))
    given = np.resize(values, (1, 1, 32, 32))
    emu = emulator()
    emu.push("x", given)
    np.testing.assert_array_equal(emu.pop("x", readout="raw"), given.astype(np.float32))


def test_truth_values_are_one_and_zero(emulator):
    emu = emulator()
    emu.push("x", RAMP > 50)
    np.testing.assert_array_equal(emu.pop("x"), (RAMP > 50).astype(np.float32))


def test_raw_words_keep_their_bits(emulator):
    emu = emulator("RawUInt32")
    given = np.array([-1, 1 << 30, 7, -(1 << 31)], np.int32)
    emu.push("x", np.resize(given, (1, 1, 32, 32)))
    emu.push("x", np.resize(given.astype(np.int64), (1, 1, 32, 32)))
    both = emu.pop("x", 2)
    assert both.dtype == np.uint32
    np.testing.assert_array_equal(both[0], both[1])
    np.testing.assert_array_equal(both[0].ravel()[:4], given.view(np.uint32))
    with pytest.raises(be.HostError, match="RawUInt32 takes unsigned integers"):
        emu.push("x", RAMP)


class WithArray:
    """Something of another library."""

    def __array__(self, dtype=None, copy=None):
        return RAMP if dtype is None else RAMP.astype(dtype)


class WithInterface:
    __array_interface__ = RAMP.__array_interface__


@pytest.mark.parametrize(
    "given",
    [WithArray(), WithInterface(), memoryview(RAMP), RAMP.tolist(), RAMP[::1, :, ::1][..., ::1].copy(order="F")],
    ids=["__array__", "interface", "buffer", "lists", "Fortran order"],
)
def test_whatever_numpy_takes(emulator, given):
    emu = emulator()
    emu.push("x", given)
    np.testing.assert_array_equal(emu.pop("x"), RAMP)


def test_a_buffer_of_the_standard_library(emulator):
    emu = emulator()
    words = memoryview(array.array("f", RAMP.ravel().tolist())).cast("B").cast("f", (32, 32))
    emu.push("x", words)  # two dimensions: one entry
    np.testing.assert_array_equal(emu.pop("x"), RAMP)


def test_three_dimensions_are_a_batch_of_entries(emulator):  # NETLIST 7.4
    emu = emulator()
    batch = np.concatenate([RAMP[0], RAMP[0] + 1, RAMP[0] + 2])
    emu.push("x", batch)
    np.testing.assert_array_equal(emu.pop("x", 3), batch[:, np.newaxis])
    deep = emulator(t=3)
    with pytest.raises(be.HostError, match=r"shape \[3, 32, 32\], expected \[entries, 3, 32, 32\]"):
        deep.push("x", batch)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (np.zeros((1, 1, 32, 31), np.float32), r"shape \[1, 1, 32, 31\], expected"),
        (np.zeros((1, 1, 1, 32, 32), np.float32), r"shape \[1, 1, 1, 32, 32\], expected"),
        (np.zeros((1, 1, 32, 32), np.complex64), "element type complex64"),
        (np.zeros((1, 1, 32, 32), "U3"), "element type <U3"),
        (np.zeros((1, 1, 32, 32), "datetime64[s]"), "element type datetime64"),
        (np.zeros((1, 1, 32, 32), [("a", "f4")]), "element type"),
        (object(), "object is not an array of numbers"),
        ([[1], [1, 2]], "list is not an array"),
        (None, "NoneType is not an array of numbers"),
        (1.0, r"shape \[\], expected"),
    ],
    ids=lambda item: item if isinstance(item, str) else type(item).__name__,
)
def test_what_holds_no_numbers_or_the_wrong_ones_is_refused_by_name(emulator, given, problem):
    emu = emulator()
    with pytest.raises(be.HostError, match=f"push to x: {problem}"):
        emu.push("x", given)
    assert len(emu.peek("x")) == 0


def test_float32_is_not_copied():
    assert np.shares_memory(as_numpy(RAMP), RAMP)
    assert np.shares_memory(as_numpy(memoryview(RAMP)), RAMP)


# ------------------------------------------------------------------------------------------------------- torch
@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize(
    "name",
    ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "bool", "float8_e4m3fn",
     "float8_e5m2"],
)  # fmt: skip
def test_torch_tensors(torch, emulator, name):
    tensor = torch.from_numpy(RAMP % 16).to(getattr(torch, name))
    emu = emulator()
    emu.push("x", tensor)
    np.testing.assert_array_equal(emu.pop("x"), tensor.to(torch.float32).numpy())


def test_bits_of_bfloat16_are_kept(torch):
    words = np.arange(1 << 16, dtype=np.uint16)
    tensor = torch.from_numpy(words.view(np.int16)).view(torch.bfloat16)
    np.testing.assert_array_equal(as_numpy(tensor).view(np.uint32), words.astype(np.uint32) << 16)


def test_torch_memory_is_shared(torch):
    for dtype in (torch.float32, torch.float16, torch.int32):
        tensor = torch.zeros(4, dtype=dtype)
        assert as_numpy(tensor).ctypes.data == tensor.data_ptr()


def test_torch_views_and_gradients(torch, emulator):
    emu = emulator(mblock=(1, 2))
    tensor = torch.arange(2 * 32 * 64, dtype=torch.float32).reshape(2, 64, 32).requires_grad_()
    turned = tensor.transpose(1, 2)  # not contiguous, three dimensions: two entries
    emu.push("x", turned)
    emu.push("x", turned.to(torch.bfloat16))
    first, second = emu.pop("x", 2), emu.pop("x", 2)
    np.testing.assert_array_equal(first[:, 0], turned.detach().numpy())
    np.testing.assert_array_equal(second[:, 0], turned.detach().to(torch.bfloat16).float().numpy())
    assert torch.equal(torch.from_numpy(first)[:, 0], turned)


def test_torch_tensors_without_plain_numbers_are_refused(torch, emulator):
    emu = emulator()
    with pytest.raises(be.HostError, match="sparse"):
        emu.push("x", torch.zeros(1, 1, 32, 32).to_sparse())
    with pytest.raises(be.HostError, match="element type"):
        emu.push("x", torch.zeros(1, 1, 32, 32, dtype=torch.complex64))
    with pytest.raises(be.HostError, match="on meta"):
        emu.push("x", torch.zeros(1, 1, 32, 32, device="meta"))


def test_raw_words_from_torch(torch, emulator):
    emu = emulator("RawUInt32")
    emu.push("x", torch.full((1, 32, 32), -2, dtype=torch.int64))
    assert (emu.pop("x") == 0xFFFFFFFE).all()


def test_torch_is_not_imported_by_us(child_environment):
    import subprocess
    import sys

    script = (
        "import sys, numpy as np, buda_emu as be\n"
        "net = be.load(sys.argv[1])\n"
        "with be.Emulator(net, threads=1) as emu:\n"
        "    emu.push('x', np.zeros((1, 1, 64, 128), np.float32))\n"
        "print([name for name in ('torch', 'ml_dtypes') if name in sys.modules])"
    )
    from shared_files import ROOT

    command = [sys.executable, "-c", script, str(ROOT / "netlists" / "training.yaml")]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
