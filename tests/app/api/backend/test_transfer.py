"""Pushes, reads, pops and their failures (NETLIST 4.6, 7.3, 7.4)."""

import time

import ml_dtypes
import numpy as np
import pytest

import buda_emu as be
from app.api.backend.front_end import describe, widened
from app.api.backend.small import SHAPE, entries, machine, push, written
from buda_emu.app import backend_api as api
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

OK = api.BackendStatusCode.Success
WRONG = api.BackendStatusCode.RuntimeError
LATE = api.BackendStatusCode.TimeoutError
LOOP = {"$p_loop_count": "1"}


@pytest.fixture
def golden(tmp_path):
    """A machine that ignores precision, with something in ram `c`."""
    backend, descs = machine(tmp_path)
    assert push(descs["c"], entries(1), ptr=0) == OK
    yield backend, descs
    backend.finish()


def got(desc, one=False, timeout=0, ptr=0, dim=4):
    out = api.PytorchTensorDesc()
    out.dim = dim
    assert api.get_output(desc, out, one, timeout, ptr) == OK
    return out


# ------------------------------------------------------------------------------------------------------ descriptors
def test_queue_descriptor(tmp_path):
    backend, descs = machine(tmp_path, quantise=True, df="Bfp8_b", out_df="Float16_b")
    desc = descs["a"]
    assert desc.name == "a"
    assert desc.data_format == api.DataFormat.Bfp8_b
    assert (desc.bufq_grid_dim_r, desc.bufq_grid_dim_c, desc.ublock_rt, desc.ublock_ct) == (1, 1, 1, 1)
    assert (desc.mblock_m, desc.mblock_n, desc.tile_height, desc.tile_width, desc.t) == (2, 1, 32, 32, 1)
    assert (desc.hstack_factor, desc.vstack_factor, desc.stack_row_major) == (1, 1, True)
    assert (desc.input_count, desc.bufq_num_slots, desc.bufq_entry_size) == (2, 4, 2 * 1120)
    assert (desc.io_type, desc.layout) == (api.IOType.Queue, api.IOLayout.Tilized)
    assert descs["c"].io_type == api.IOType.RandomAccess
    assert desc.s_descriptor == api.StrideDescriptor()
    with pytest.raises(AttributeError):
        desc.name = "b"
    with pytest.raises(AttributeError):
        desc.data_format = api.DataFormat.Bfp8
    backend.finish()


def test_pickle_of_a_descriptor_is_the_tuple_of_the_facts(tmp_path):
    backend, descs = machine(tmp_path)
    desc = descs["a"]
    desc.hstack_factor, desc.stack_row_major = 2, False
    assert desc.__getstate__() == (
        desc.netlist_path,
        "a",
        1,
        1,
        4,
        1,
        1,
        2,
        1,
        32,
        32,
        1,
        2,
        2,
        1,
        False,
        api.DataFormat.Float32,
        [(0, 0)],
        2 * 4128,
        api.IOType.Queue,
        api.StrideDescriptor(),
        api.BackendType.Golden,
        api.IOLayout.Tilized,
    )
    import pickle

    copy = pickle.loads(pickle.dumps(desc))
    assert copy.__getstate__() == desc.__getstate__()
    assert push(copy, entries(2)) == OK
    backend.finish()
    assert push(copy, entries(2)) == WRONG


def test_golden_reports_float32_and_no_addresses_and_silicon_formats_and_places(tmp_path):
    for kind, quantise, formats, places in (
        ("Golden", False, "Float32", False),
        ("Golden", True, "Bfp8_b", False),
        ("Silicon", False, "Bfp8_b", True),
    ):
        backend, descs = machine(tmp_path, kind, quantise=quantise, df="Bfp8_b", out_df="Float16_b")
        assert descs["a"].data_format.name == formats
        queue = be.load(descs["a"].netlist_path).queues["a"]
        expected = [(queue.buffers[0].address, queue.buffers[0].channel)] if places else [(0, 0)]
        assert descs["a"].bufq_start_addr_channel == expected
        assert descs["a"].backend_type.name == kind
        backend.finish()


def test_a_queue_that_nothing_consumes_has_the_largest_count(tmp_path):
    path = written(
        tmp_path,
        text(
            [queue("a"), queue("b", entries=2), queue("o", "n")],
            [graph("g", op("n", "nop", ["a"]))],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
        ),
    )
    backend = api.BackendApi(path, api.get_golden_config())
    assert backend.initialize() == OK
    desc = backend.get_queue_descriptor("b")
    assert desc.input_count == 2**32 - 1
    assert push(desc, entries(1, shape=(1, 32, 32))) == OK
    assert push(desc, entries(2, shape=(1, 32, 32))) == WRONG
    assert api.get_output(desc, api.PytorchTensorDesc(), False, 0, 0) == WRONG
    assert got(desc, one=True).shape == [1, 1, 32, 32]
    backend.finish()


# ------------------------------------------------------------------------------------------------------ round trips
def test_push_run_get_pop(golden):
    backend, descs = golden
    data = entries(4)
    assert push(descs["a"], data) == OK
    assert backend.run_program("p", LOOP) == OK
    assert backend.wait_for_idle() == OK
    out = got(descs["o"])
    assert (out.shape, out.strides, out.itemsize, out.dim) == ([2, *SHAPE], [8192, 8192, 128, 4], 4, 4)
    np.testing.assert_array_equal(np.asarray(out), data[:2])
    np.testing.assert_array_equal(np.asarray(got(descs["o"], one=True)), data[:1])
    assert api.pop_output(descs["o"], True, 0) == OK
    np.testing.assert_array_equal(np.asarray(got(descs["o"], one=True)), data[1:2])
    assert api.pop_output(descs["o"], True, 0) == OK
    assert backend.run_program("p", LOOP) == OK
    np.testing.assert_array_equal(np.asarray(got(descs["o"])), data[2:])
    np.testing.assert_array_equal(np.asarray(got(descs["w"])), entries(1))
    assert api.pop_output(descs["o"], False, 0) == OK
    assert api.get_output(descs["o"], out, False, 0, 0) == WRONG


FORMATS = [
    ("Float32", np.float32, "Float32"), ("Float16_b", np.float32, "Float16_b"), ("Float16", np.float32, "Float16"),
    ("Bfp8_b", np.float32, "Float16_b"), ("Bfp8", np.float32, "Float16"), ("Int8", np.int8, "Int8"),
    ("Int32", np.int32, "Int32"), ("UInt8", np.uint8, "UInt8"), ("UInt16", np.uint16, "UInt16"),
    ("RawUInt32", np.uint32, "RawUInt32"), ("RawUInt16", np.uint16, "RawUInt16"), ("RawUInt8", np.uint8, "RawUInt16"),
]  # fmt: skip


@pytest.mark.parametrize(("quantise", "args"), [(True, ""), (False, ""), (True, "--precision device")])
@pytest.mark.parametrize(("df", "dtype", "read"), FORMATS, ids=lambda value: getattr(value, "__name__", value))
def test_formats_in_and_out(tmp_path, df, dtype, read, quantise, args):
    """NETLIST 7.4, get_output dtype: all formats of a host tensor, read from the queue they were pushed to."""
    backend, descs = machine(tmp_path, quantise=quantise, unread=df, args=args)
    data = entries(1)
    data = (np.abs(data) if np.dtype(dtype).kind == "u" else data).astype(dtype)
    word = {"UInt8": "UInt8", "UInt16": "UInt16", "RawUInt16": "RawUInt16", "RawUInt8": "RawUInt8"}.get(df)
    assert push(descs["x"], data, word) == OK
    out = got(descs["x"], one=True)
    expected = read if quantise or df.startswith("Raw") else "Float32"
    assert out.format == api.get_format_from_string(expected)
    assert out.itemsize == {"Float32": 4, "Int32": 4, "RawUInt32": 4, "Int8": 1, "UInt8": 1}.get(expected, 2)
    found = np.asarray(out) if expected in ("UInt8", "UInt16") else widened(out)
    np.testing.assert_array_equal(found.astype(np.float64), data.astype(np.float64))
    backend.finish()


def test_halves_and_words_go_in(tmp_path):
    backend, descs = machine(tmp_path, quantise=True)
    data = entries(2)
    for array, word in ((data.astype(np.float16), "Float16"), (data.astype(ml_dtypes.bfloat16), "Float16_b")):
        assert push(descs["a"], array, word) == OK
        np.testing.assert_array_equal(np.asarray(got(descs["a"])), data)
        assert api.pop_output(descs["a"], False, 0) == OK
    backend.finish()


def test_integers_stay_words_in_a_raw_queue(tmp_path):
    backend, descs = machine(tmp_path, df="RawUInt32")
    data = entries(2, np.int32)
    assert push(descs["a"], data) == OK
    np.testing.assert_array_equal(np.asarray(got(descs["a"])).view(np.int32), data)
    assert api.pop_output(descs["a"], False, 0) == OK
    floats = entries(2)
    assert push(descs["a"], floats) == OK
    np.testing.assert_array_equal(np.asarray(got(descs["a"])).view(np.float32), floats)
    backend.finish()


def test_three_dimensions_are_a_batch(golden):
    _, descs = golden
    data = entries(2)
    assert push(descs["a"], data.reshape(1, 2, 64, 32), dim=3) == OK
    np.testing.assert_array_equal(np.asarray(got(descs["a"])), data)
    out = got(descs["a"], dim=3)
    assert (out.shape, out.dim) == ([1, 2, 64, 32], 3)
    np.testing.assert_array_equal(np.asarray(out), data.reshape(1, 2, 64, 32))


def test_one_entry_or_whole_batches(golden):
    _, descs = golden
    assert push(descs["a"], entries(1)) == OK
    assert push(descs["a"], entries(3)) == WRONG
    assert push(descs["a"], entries(2)) == OK
    assert push(descs["a"], entries(1), timeout=0) == OK
    assert push(descs["a"], entries(1)) == WRONG


def test_stacking_is_applied_on_reading(golden):
    _, descs = golden
    data = entries(2)
    assert push(descs["a"], data) == OK
    descs["a"].vstack_factor = 2
    assert api.get_output(descs["a"], api.PytorchTensorDesc(), False, 0, 0) == WRONG  # t is 1


def test_strides_are_applied_on_pushing(golden):
    _, descs = golden
    descs["a"].s_descriptor.stride = 2
    descs["a"].s_descriptor.xy_offsets = [(x, y) for x in range(2) for y in range(2)]
    image = entries(1, shape=(16, 8, 16))  # 16 channels: 64 rows of 32 places
    assert push(descs["a"], image) == OK
    found = np.asarray(got(descs["a"], one=True))
    assert found[0, 0, 16 * 1 + 3, 8 * 2 + 5] == image[0, 3, 2 * 2, 5 * 2 + 1]
    descs["a"].s_descriptor.stride = 1
    assert push(descs["a"], image) == WRONG  # 32 x 128: another shape


# ---------------------------------------------------------------------------------------------------------- rams
def test_rams_take_slots(golden, caplog):
    _, descs = golden
    data = entries(2)
    assert push(descs["c"], data, ptr=0) == OK  # slots 0 and 1
    for slot in range(2):
        np.testing.assert_array_equal(np.asarray(got(descs["c"], ptr=slot)), data[slot : slot + 1])
    assert push(descs["c"], data[:1], ptr=1) == OK
    np.testing.assert_array_equal(np.asarray(got(descs["c"], ptr=1)), data[:1])
    assert push(descs["c"], data[:1], ptr=-1) == WRONG
    assert push(descs["c"], data[:1], ptr=2) == WRONG
    assert api.get_output(descs["c"], api.PytorchTensorDesc(), True, 0, -1) == WRONG
    assert api.get_output(descs["c"], api.PytorchTensorDesc(), True, 0, 2) == WRONG
    assert api.pop_output(descs["c"], True, 0) == WRONG
    assert "its slot must be given, not -1" in caplog.text
    assert "a ram has no entries to pop" in caplog.text


def test_a_slot_that_was_never_written(golden, caplog):
    _, descs = golden
    assert api.get_output(descs["c"], api.PytorchTensorDesc(), True, 0, 1) == WRONG
    assert "never written" in caplog.text


# ------------------------------------------------------------------------------------------------------ time-outs
def test_a_full_queue(golden, monkeypatch):
    _, descs = golden
    assert push(descs["a"], entries(4)) == OK
    assert push(descs["a"], entries(2)) == WRONG
    start = time.monotonic()
    assert push(descs["a"], entries(2), timeout=0.2) == LATE
    assert 0.2 <= time.monotonic() - start < 5
    monkeypatch.setenv("TT_BACKEND_PUSH_TIMEOUT", "0.05")
    assert push(descs["a"], entries(2), timeout=0) == LATE
    monkeypatch.setenv("TT_BACKEND_PUSH_TIMEOUT", "0")
    assert push(descs["a"], entries(2), timeout=100) == WRONG
    monkeypatch.setenv("TT_BACKEND_PUSH_TIMEOUT", "soon")
    assert push(descs["a"], entries(2), timeout=100) == WRONG


def test_packed_entries_obey_no_time_out_variable(golden, monkeypatch):
    """NETLIST 12."""
    _, descs = golden
    packed = api.tilize_tensor(descs["a"], describe(entries(2)))
    assert push(descs["a"], entries(4)) == OK
    monkeypatch.setenv("TT_BACKEND_PUSH_TIMEOUT", "soon")
    assert api.push_input(descs["a"], packed, 0.05, -1) == LATE
    assert api.push_input(descs["a"], packed, 0, -1) == WRONG


def test_an_empty_queue(golden, monkeypatch):
    _, descs = golden
    out = api.PytorchTensorDesc()
    calls = {
        "GET": lambda timeout: api.get_output(descs["o"], out, False, timeout, 0),
        "POP": lambda timeout: api.pop_output(descs["o"], False, timeout),
    }
    for name, call in calls.items():
        assert call(0) == call(-1) == WRONG
        start = time.monotonic()
        assert call(0.2) == LATE
        assert 0.2 <= time.monotonic() - start < 5
        monkeypatch.setenv(f"TT_BACKEND_{name}_TIMEOUT", "0.05")
        assert call(0) == LATE
        monkeypatch.setenv(f"TT_BACKEND_{name}_TIMEOUT", "0")
        assert call(100) == WRONG
        monkeypatch.setenv(f"TT_BACKEND_{name}_TIMEOUT", "x")
        assert call(100) == WRONG
    assert out.address == 0


def test_fewer_entries_than_a_batch(golden):
    _, descs = golden
    assert push(descs["a"], entries(1)) == OK
    assert api.get_output(descs["a"], api.PytorchTensorDesc(), False, 0.05, 0) == LATE
    assert api.pop_output(descs["a"], False, 0.05) == LATE
    assert api.pop_output(descs["a"], True, 0.05) == OK


# --------------------------------------------------------------------------------------------------- wrong tensors
@pytest.mark.parametrize(
    ("array", "word", "said"),
    [
        (entries(2, shape=(1, 32, 32)), None, "an entry has shape"),
        (entries(2, shape=(1, 32, 64)), None, "an entry has shape"),
        (entries(2), "Bfp8_b", "cannot have format Bfp8_b"),
        (entries(2), "Float16", "has 2 bytes, not itemsize 4"),
    ],
)
def test_tensors_that_do_not_fit(golden, caplog, array, word, said):
    _, descs = golden
    assert push(descs["a"], array, word) == WRONG
    assert said in caplog.text


def test_an_empty_descriptor(golden, caplog):
    _, descs = golden
    assert api.push_input(descs["a"], api.PytorchTensorDesc(), False, 0, -1) == WRONG
    assert "is empty" in caplog.text
    assert api.push_input(descs["a"], api.TilizedTensorDesc(), 0, -1) == WRONG
    with pytest.raises(TypeError):
        api.push_input(descs["a"], api.PytorchTensorDesc(), 0, -1)


def test_a_descriptor_of_nowhere(caplog):
    nowhere = api.DramIODesc()
    tensor = describe(entries(1))
    assert api.push_input(nowhere, tensor, False, 0, -1) == WRONG
    assert api.get_output(nowhere, tensor, False, 0, -1) == WRONG
    assert api.pop_output(nowhere, False, 0) == WRONG
    assert api.translate_addresses(nowhere) == WRONG
    nowhere.backend_type = api.BackendType.Golden
    assert api.translate_addresses(nowhere) == OK  # NETLIST 12
    with pytest.raises(RuntimeError, match="no running backend"):
        api.tilize_tensor(nowhere, tensor)
    assert "no running backend" in caplog.text


# -------------------------------------------------------------------------------------------------------- the rest
def test_translate_addresses(golden):
    backend, descs = golden
    assert api.translate_addresses(descs["a"]) == OK
    backend.finish()
    assert api.translate_addresses(descs["a"]) == OK  # NETLIST 12


def test_free_tensor(golden):
    import pickle

    _, descs = golden
    assert push(descs["a"], entries(2)) == OK
    out = got(descs["a"])
    pickled = pickle.dumps(out)
    assert api.free_tensor(out) == OK
    assert out.address == 0
    assert api.free_tensor(out) == WRONG
    assert api.free_tensor(pickle.loads(pickled)) == OK  # gone already
    assert api.free_tensor(describe(entries(1))) == WRONG
    packed = api.tilize_tensor(descs["a"], describe(entries(2)))
    assert api.free_tensor(packed) == OK
    assert api.free_tensor(packed) == WRONG


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["Golden", "Silicon"])
@pytest.mark.parametrize(("df", "read"), [(df, read) for df, dtype, read in FORMATS if dtype == np.float32])
def test_tensors_of_the_device_are_those_of_the_plain_machine(tmp_path, df, read, kind, packed):
    """Pushed, rounded as the host encodes, held as bits, computed on by the chip, read back."""
    backend, descs = machine(tmp_path, kind, df=df, args="--precision device", quantise=True)
    data = np.random.default_rng(8).normal(0, 3, (2, *SHAPE)).astype(np.float32)
    if packed:
        assert api.push_input(descs["a"], api.tilize_tensor(descs["a"], describe(data)), 0, -1) == OK
    else:
        assert push(descs["a"], data) == OK
    assert push(descs["c"], data, ptr=0) == OK
    with be.Emulator(be.load(descs["a"].netlist_path), "device", threads=1) as plain:

        def same(name):
            out = got(descs[name])
            assert out.format == api.get_format_from_string(read)
            np.testing.assert_array_equal(widened(out), plain.peek(name, len(widened(out))))

        plain.push("a", data)
        plain.push("c", data)
        same("a")
        assert backend.run_program("p", LOOP) == OK
        assert backend.wait_for_idle() == OK
        plain.run("p", LOOP)
        same("o")
        same("w")
        assert not np.array_equal(plain.peek("o"), data)
    backend.finish()


def test_what_the_device_refuses_is_logged(tmp_path, caplog):
    backend, descs = machine(tmp_path, df="Fp8_e4m3", args="--precision device")
    assert push(descs["a"], entries(2)) == push(descs["c"], entries(1), ptr=0) == OK
    assert backend.run_program("p", LOOP) == WRONG
    assert "op n: Fp8_e4m3 is a format of blackhole, which wormhole_b0 does not have" in caplog.text
    backend.finish()


@pytest.mark.parametrize("df", ["Float32", "Float16_b", "Bfp8_b", "Bfp4", "Int8", "RawUInt16"])
@pytest.mark.parametrize("quantise", [True, False])
def test_packed_tensors(tmp_path, df, quantise):
    backend, descs = machine(tmp_path, quantise=quantise, unread=df)
    integers = {"Int8": np.int8, "RawUInt16": np.uint16}
    data = np.abs(entries(1)).astype(integers.get(df, np.float32))
    packed = api.tilize_tensor(descs["x"], describe(data, "RawUInt16" if df == "RawUInt16" else None))
    assert packed.format == api.get_format_from_string(df)
    assert (packed.num_buffers, packed.buf_size_bytes) == (1, descs["x"].bufq_entry_size)
    assert api.push_input(descs["x"], packed, 0, -1) == OK
    with be.Emulator(be.load(descs["x"].netlist_path), threads=1) as plain:
        plain.push("x", data)
        assert packed.buffers().tobytes() == plain.memory_image("x")[0].tobytes()
        expected = plain.peek("x", readout="host" if quantise else "raw")
    np.testing.assert_array_equal(widened(got(descs["x"], one=True)), expected)
    backend.finish()


def test_packed_batches(golden):
    _, descs = golden
    data = entries(2)
    packed = api.tilize_tensor(descs["a"], describe(data))
    assert packed.buf_size_bytes == 2 * descs["a"].bufq_entry_size
    assert api.push_input(descs["a"], packed, 0, -1) == OK
    assert api.push_input(descs["c"], packed, 0, 0) == OK
    assert api.push_input(descs["c"], packed, 0, -1) == WRONG
    np.testing.assert_array_equal(np.asarray(got(descs["a"])), data)
    np.testing.assert_array_equal(np.asarray(got(descs["c"], ptr=1)), data[1:])


def test_packed_tensors_that_do_not_fit(golden, caplog):
    _, descs = golden
    packed = api.tilize_tensor(descs["a"], describe(entries(2)))
    packed.format = api.DataFormat.Float16
    assert api.push_input(descs["a"], packed, 0, -1) == WRONG
    packed.adopt(packed.buffers()[:, :-32].copy(), "Float32")
    assert api.push_input(descs["a"], packed, 0, -1) == WRONG
    with pytest.raises(RuntimeError, match="an entry has shape"):
        api.tilize_tensor(descs["a"], describe(entries(2, shape=(1, 32, 32))))
    assert "packed as Float16, the queue holds Float32" in caplog.text
    assert "expected 1 of a multiple of 8256" in caplog.text


def test_packed_tensors_are_for_tilized_queues(tmp_path, caplog):
    backend, descs = machine(tmp_path, more=", layout: flat")
    with pytest.raises(RuntimeError, match="packed tensors are for tilized queues"):
        api.tilize_tensor(descs["a"], describe(entries(2)))
    assert descs["a"].layout == api.IOLayout.Flat
    backend.finish()


def test_packed_fp8_is_refused_where_rounding_would_change_it(tmp_path, caplog):
    for quantise, status in ((True, WRONG), (False, OK)):
        backend, descs = machine(tmp_path, quantise=quantise, df="Fp8_e4m3")
        packed = api.tilize_tensor(descs["a"], describe(entries(2)))
        assert api.push_input(descs["a"], packed, 0, -1) == status
        backend.finish()
    assert "packed Fp8_e4m3 tensors cannot be pushed" in caplog.text


def test_dumps(golden, tmp_path):
    _, descs = golden
    data = entries(2)
    path = str(tmp_path / "tensor.bin")
    api.binarize_tensor(describe(data), path)
    assert np.fromfile(path, np.float32).reshape(data.shape).tolist() == data.tolist()
    other = describe(np.zeros_like(data))
    api.debinarize_tensor(other, path)
    assert np.asarray(other).tolist() == data.tolist()
    assert other.backend_owned

    odd = entries(1, np.int8, shape=(1, 1, 3))
    api.binarize_tensor(describe(odd), path)
    assert (tmp_path / "tensor.bin").stat().st_size == 4
    back = describe(np.zeros_like(odd))
    api.debinarize_tensor(back, path)
    assert np.asarray(back).tolist() == odd.tolist()

    packed = api.tilize_tensor(descs["a"], describe(data))
    api.binarize_tensor(packed, path)
    empty = api.TilizedTensorDesc(packed.num_buffers, packed.buf_size_bytes, packed.format)
    api.debinarize_tensor(empty, path)
    assert empty.buffers().tobytes() == packed.buffers().tobytes()


def test_dumps_that_fail(tmp_path):
    data = entries(1)
    path = str(tmp_path / "tensor.bin")
    with pytest.raises(RuntimeError, match="is empty"):
        api.binarize_tensor(api.PytorchTensorDesc(), path)
    with pytest.raises(RuntimeError, match="No such file"):
        api.binarize_tensor(describe(data), str(tmp_path / "no" / "place"))
    with pytest.raises(RuntimeError, match="No such file"):
        api.debinarize_tensor(describe(data), path)
    (tmp_path / "tensor.bin").write_bytes(bytes(8))
    with pytest.raises(RuntimeError, match="has 8 bytes, expected 8192"):
        api.debinarize_tensor(describe(data), path)
    with pytest.raises(RuntimeError, match="cannot have format"):
        api.debinarize_tensor(api.PytorchTensorDesc(), path)


def test_stacking_end_to_end(tmp_path):
    """z-slices of a queue become blocks of rows and columns (LAYOUT 3.5)."""
    path = written(
        tmp_path,
        text(
            [queue("a", t=4), queue("o", "n", t=4)],
            [graph("g", op("n", "nop", ["a"], t=4))],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
        ),
    )
    backend = api.BackendApi(path, api.get_golden_config())
    assert backend.initialize() == OK
    desc = backend.get_queue_descriptor("o")
    data = entries(1, shape=(4, 32, 32))
    assert push(backend.get_queue_descriptor("a"), data) == OK
    assert backend.run_program("p", {}) == OK
    desc.hstack_factor, desc.vstack_factor = 2, 2
    rows = np.block([[data[0, 0], data[0, 1]], [data[0, 2], data[0, 3]]])
    np.testing.assert_array_equal(np.asarray(got(desc))[0, 0], rows)
    desc.stack_row_major = False
    columns = np.block([[data[0, 0], data[0, 2]], [data[0, 1], data[0, 3]]])
    np.testing.assert_array_equal(np.asarray(got(desc))[0, 0], columns)
    desc.hstack_factor = 3
    assert api.get_output(desc, api.PytorchTensorDesc(), False, 0, 0) == WRONG
    backend.finish()


def test_an_untilized_queue_is_stacked_by_rows_only(tmp_path, caplog):
    path = written(
        tmp_path,
        text(
            [queue("a", t=2), queue("o", "n", t=2)],
            [graph("g", op("n", "nop", ["a"], t=2, more=", untilize_output: true"))],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
        ),
    )
    backend = api.BackendApi(path, api.get_golden_config())
    assert backend.initialize() == OK
    data = entries(1, shape=(2, 32, 32))
    assert push(backend.get_queue_descriptor("a"), data) == OK
    assert backend.run_program("p", {}) == OK
    desc = backend.get_queue_descriptor("o")
    assert desc.bufq_entry_size == 2 * 4096  # no headers
    desc.vstack_factor = 2
    np.testing.assert_array_equal(np.asarray(got(desc)), data.reshape(1, 1, 64, 32))
    desc.hstack_factor, desc.vstack_factor = 2, 1
    assert api.get_output(desc, api.PytorchTensorDesc(), False, 0, 0) == WRONG
    assert "can be stacked by vstack alone" in caplog.text
    backend.finish()
