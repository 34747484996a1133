"""What is packed comes back: the same tensors, the same bytes of the device, the same results."""

import io
import json
import tarfile
import zipfile

import numpy as np
import pytest

import buda_emu as be
from buda_emu.arithmetic.tensor.referenced import reference_to
from buda_emu.emulator.image.pack import Contents, write_image
from buda_emu.netlist.load import check_text
from buda_emu.spec.formats import NETLIST_FORMATS, is_raw
from buda_emu.support.errors import HostError, UnsupportedError
from small_images import TOP, netlist_text, values, write
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text


def netlist(source):
    result = check_text(source, "net.yaml")
    assert result.netlist is not None, result.diagnostics
    return result.netlist


def packed(source, tensors, form="BACKEND", container="tar"):
    stream = io.BytesIO()
    write_image(stream, Contents(netlist(source), source.encode(), tensors, "small", "9.9", form), container)
    return stream.getvalue()


def loaded(tmp_path, *args, **kwargs):
    return be.load_image(write(tmp_path / "small.tti", packed(*args, **kwargs)))


TENSORS = {"c": values((2, 1, 32, 32), 2), "w": values((1, 1, 32, 32), 3)}
SOURCE = netlist_text()


@pytest.mark.parametrize("container", ["tar", "zip"])
@pytest.mark.parametrize("form", ["BACKEND", "BACKEND_TILIZED"])
def test_tensors_come_back(form, container, tmp_path):
    image = loaded(tmp_path, SOURCE, TENSORS, form, container)
    assert image.findings == ()
    assert set(image.tensors) == set(TENSORS)
    for name, array in TENSORS.items():
        assert np.array_equal(image.tensor(name), array)
    with image.emulator(threads=1) as emulator:
        emulator.push("x", values(seed=7))
        emulator.run("run")
        assert np.array_equal(emulator.pop("out"), values(seed=7) + TENSORS["c"][:1] + TENSORS["w"])


def test_device_json_says_what_it_is(tmp_path):
    image = loaded(tmp_path, SOURCE, TENSORS)
    data, state = image.metadata, image.metadata.compiled_graph_state
    assert state.has_cache_buffers is False
    assert data.missing == ()
    assert data.extra == state.extra == {}
    assert data.pybuda_pip_version_id == "9.9"
    assert data.pybuda_commit_hash is data.budabackend_commit_hash is None
    assert data.verify_cfg is None
    assert (data.device_image_name, data.arch, data.grid_size) == ("small", "wormhole_b0", (10, 8))
    assert state.ordered_input_names == ("x",)
    assert state.ordered_output_names == ("out",)
    assert state.ordered_constant_node_names == ("c",)
    assert state.ordered_parameter_node_names == ("w",)
    assert data.compiler_cfg["tti_dump_format"] == "BACKEND"


def device_json(source, tensors):
    with tarfile.open(fileobj=io.BytesIO(packed(source, tensors))) as archive:
        return json.load(archive.extractfile(f"{TOP}/device.json"))


def test_a_front_end_finds_what_it_reads():
    """FRONTEND 7: all 11 keys of a transform; NETLIST 12: the whole compiler configuration, verify_cfg null."""
    content = device_json(SOURCE, TENSORS)
    state = content["compiled_graph_state"]
    for transforms in ("ordered_input_runtime_tensor_transforms", "ordered_output_runtime_tensor_transforms"):
        for transform in state[transforms]:
            shapes = {"original_shape", "reinterpreted_shape", "unpadded_shape"}
            numbers = {
                "stride_height",
                "stride_width",
                "kernel_height",
                "kernel_width",
                "concat_group",
                "concat_index",
                "concat_dim",
            }
            assert set(transform) == {"type"} | shapes | numbers
            assert all(set(transform[shape]) == {"valid_", "type_", "dims_"} for shape in shapes)
            assert all(type(transform[number]) is int for number in numbers)
    config = content["compiler_cfg"]
    assert {"balancer_policy", "compile_depth", "device_mode", "dram_placement_algorithm", "paddings"} <= set(config)
    assert len(config) > 75
    assert (content["verify_cfg"], content["pybuda_commit_hash"]) == (None, None)


def test_microbatch_is_the_input_count_and_queues_between_graphs_are_no_intermediates():
    """NETLIST 12. Two graphs, joined by the queue `between`."""
    source = text(
        [queue("x", entries=4), queue("between", "n", entries=4), queue("out", "m", entries=4)],
        [graph("g", op("n", "nop", ["x"]), inputs=2), graph("h", op("m", "nop", ["between"]), inputs=2)],
        [program("run", "var: {$c_zero: 0}", execute("g", fifo_settings("x")), execute("h", fifo_settings("between")))],
    )
    content = device_json(source, {})
    state = content["compiled_graph_state"]
    assert (content["microbatch_size"], state["microbatch"]) == (2, 2)
    assert state["ordered_intermediate_activation_names"] == state["ordered_intermediate_shapes"] == []
    assert (state["ordered_input_names"], state["ordered_output_names"]) == (["x"], ["out"])
    assert state["ordered_input_shapes"] == [[2, 1, 32, 32]]


@pytest.mark.parametrize("container", ["tar", "zip"])
def test_equal_contents_give_equal_bytes(container):
    backwards = dict(reversed(TENSORS.items()))
    assert packed(SOURCE, TENSORS, container=container) == packed(SOURCE, backwards, container=container)


def test_any_reader_of_archives_reads_it():
    names = sorted(
        [
            f"{TOP}/device.json",
            f"{TOP}/compile_and_runtime_config.json",
            f"{TOP}/net.yaml",
            f"{TOP}/tensors/torch.Tensor.c.bin",
            f"{TOP}/tensors/torch.Tensor.w.bin",
        ]
    )
    with tarfile.open(fileobj=io.BytesIO(packed(SOURCE, TENSORS))) as archive:
        assert sorted(member.name for member in archive if member.isfile()) == names
        assert {member.mtime for member in archive} == {0}
        content = json.load(archive.extractfile(f"{TOP}/device.json"))
        entry = content["compiled_graph_state"]["post_const_eval_constants"]["c"]
        data = archive.extractfile(f"{TOP}/{entry.pop('bin')}").read()
        assert entry == {
            "itemsize": 4,
            "shape": [2, 1, 32, 32],
            "strides": [4096, 4096, 128, 4],
            "dim": 4,
            "format": "Float32",
        }
        assert data == TENSORS["c"].astype("<f4").tobytes()
    with zipfile.ZipFile(io.BytesIO(packed(SOURCE, TENSORS, container="zip"))) as archive:
        assert archive.testzip() is None
        assert sorted(name for name in archive.namelist() if not name.endswith("/")) == names


def one_queue(df, arch="wormhole_b0", more="", grid="grid_size: [1, 1]", dram="dram: [[0, 0x20000000]]"):
    """A ram r of any format, 2 entries of t 2 and 2x3 tiles on each core, and a graph that does not use it."""
    ram = (
        f"  r: {{input: HOST, type: ram, entries: 2, {grid}, t: 2, mblock: [2, 1], ublock: [1, 3], df: {df}, "
        f"target_device: 0, loc: dram, {dram}{more}}}\n"
    )
    return netlist_text("Float16_b", arch, more=[ram])


GRID = {
    "grid": "grid_size: [2, 2]",
    "dram": f"dram: [{', '.join(f'[0, {0x20000000 + i * 0x1000000:#x}]' for i in range(4))}]",
}


def data_for(df, shape, seed):
    stream = np.random.default_rng(seed)
    if is_raw(df):
        return stream.integers(0, 1 << 32, shape, dtype=np.uint32)
    array = (stream.standard_normal(shape) * 2.0 ** stream.integers(-40, 40, shape)).astype(np.float32)
    if "Int" in df:
        return (stream.standard_normal(shape) * 100).astype(np.float32).round()
    array.reshape(-1)[:4] = 0.0, -0.0, 1e-30, -3e4
    return array


@pytest.mark.parametrize("more", ["", ", ublock_order: c"], ids=["r", "c"])
@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole", "grayskull"])
@pytest.mark.parametrize("df", NETLIST_FORMATS)
def test_tiles_are_what_the_device_holds(df, arch, more, tmp_path):
    """A machine from the image has the very bits of one that the tensors were pushed to, in every format."""
    source = one_queue(df, arch, more, **GRID)
    array = data_for(df, (2, 2, 128, 192), 4)
    image = loaded(tmp_path, source, {"r": array}, "BACKEND_TILIZED")
    with be.Emulator(netlist(source), threads=1) as pushed, image.emulator(threads=1) as packed_one:
        pushed.push("r", array)
        expected = pushed.peek("r", 2, "raw")
        assert np.array_equal(packed_one.peek("r", 2, "raw").view(np.uint32), expected.view(np.uint32))
        assert np.array_equal(image.tensor("r").view(np.uint32), expected.view(np.uint32))
        if df != "Fp8_e4m3":  # packed as Lf8, read as itself (FORMATS 3.6): its tiles change when they are read back
            data = b"".join(
                part.tobytes()
                for cell in zip(*(pushed.memory_image("r", i) for i in range(2)), strict=True)
                for part in cell
            )
            with tarfile.open(tmp_path / "small.tti") as archive:
                assert archive.extractfile(f"{TOP}/tensors/torch.Tensor.r.tbin").read() == data


@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "i1", "u1", "u2", "f8", "i8", "u4", "?"])
def test_host_tensors_keep_their_type_or_become_what_a_push_makes_of_them(dtype, tmp_path):
    array = (np.arange(2 * 2 * 64 * 96) % 100).reshape(2, 2, 64, 96).astype(dtype)
    source = one_queue("Float32")
    tensor = loaded(tmp_path, source, {"r": array}).tensor("r")
    kept = dtype in ("f4", "f2", "i4", "i1", "u1", "u2")
    assert tensor.dtype == np.dtype(dtype if kept else "f4")
    assert np.array_equal(tensor, array)


def test_special_halves_are_pushed_as_they_are_from_a_file(tmp_path):
    """Every half, denormals, infinities and NaN among them, in a queue of Float16."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)[: 1 << 16].reshape(1, 1, 64, 1024)
    ram = (
        "  r: {input: HOST, type: ram, entries: 1, grid_size: [1, 1], t: 1, mblock: [2, 32], ublock: [1, 1], "
        "df: Float16, target_device: 0, loc: dram, dram: [[0, 0x20000000]]}\n"
    )
    source = netlist_text(more=[ram])
    with be.Emulator(netlist(source), threads=1) as emulator:
        emulator.push("r", halves)
        expected = emulator.peek("r", 1, "raw").view(np.uint32)
    for form in ("BACKEND", "BACKEND_TILIZED"):
        with loaded(tmp_path, source, {"r": halves}, form).emulator(threads=1) as emulator:
            assert np.array_equal(emulator.peek("r", 1, "raw").view(np.uint32), expected), form


@pytest.mark.parametrize(
    ("tensors", "says"),
    [
        ({"v": values()}, "v is not a queue of net.yaml"),
        ({"out": values()}, "queue out is filled by op sum"),
        ({"w": values((3, 1, 32, 32))}, r"w has shape \[3, 1, 32, 32\], its queue takes \[1..2, 1, 32, 32\]"),
        ({"w": values((1, 1, 64, 32))}, "w has shape"),
        ({"w": values((32, 32))}, "w has shape"),
        ({"w": values().astype(complex)}, "elements of type complex128"),
    ],
)
def test_tensors_that_do_not_fit(tensors, says):
    with pytest.raises(HostError, match=says):
        packed(SOURCE, tensors)


def test_floats_for_a_raw_queue_are_refused_as_by_push():
    with pytest.raises(HostError, match="type float32, which a RawUInt32 queue does not take"):
        packed(one_queue("RawUInt32"), {"r": values((1, 2, 64, 96))})


@pytest.mark.parametrize(("df", "size"), [("Float32", 4), ("Float16_b", 2)])
def test_a_flat_queue_has_no_tiles_but_elements_of_its_format(df, size, tmp_path):
    source = one_queue(df, more=", layout: flat")
    array = (values((1, 2, 64, 96), 3).view(np.uint32) & 0xFFFF0000).view(np.float32)
    assert np.array_equal(loaded(tmp_path, source, {"r": array}).tensor("r"), array)
    image = loaded(tmp_path, source, {"r": array}, "BACKEND_TILIZED")
    assert image.findings == ()
    assert (image.tensors["r"].format, image.tensors["r"].file_bytes) == (df, size * array.size)
    assert np.array_equal(image.tensor("r"), array)


def test_tiles_of_words_for_a_flat_queue_are_refused_by_name():
    source = one_queue("RawUInt32", more=", layout: flat")
    with pytest.raises(UnsupportedError, match="queue r has layout flat"):
        packed(source, {"r": data_for("RawUInt32", (1, 2, 64, 96), 3)}, "BACKEND_TILIZED")


@pytest.mark.parametrize("container", ["tar", "zip"])
@pytest.mark.parametrize("form", ["BACKEND", "BACKEND_TILIZED"])
@pytest.mark.parametrize("order", ["r", "c"])
@pytest.mark.parametrize("df", ["Bfp8_b", "Float16_b"])
def test_an_array_by_reference_gives_the_same_bytes_strip_by_strip(monkeypatch, df, order, form, container):
    source = one_queue(df, more=f", ublock_order: {order}", **GRID)
    array = values((1, 2, 128, 192), 3)
    whole = packed(source, {"r": array}, form, container)
    read = []
    given_back = []
    reference = reference_to(array, "w", lambda: given_back.append(True)).each(
        "told", lambda part: read.append(part.size) or part, 10.0
    )
    monkeypatch.setattr("buda_emu.emulator.image.pack.BLOCK", 32 * 96)
    monkeypatch.setattr("buda_emu.arithmetic.tensor.referenced.BLOCK", 32 * 96)
    assert packed(source, {"r": reference}, form, container) == whole
    assert packed(source, {"r": array}, form, container) == whole
    assert sum(read) == array.size
    assert given_back, "pages that were read stay in memory"
    if form == "BACKEND_TILIZED":
        assert max(read) <= 64 * 96, "no more than a row or a column of ublocks of a core"


def test_names_that_an_image_cannot_tell_apart():
    source = netlist_text(more=[queue("W", kind="ram")])
    with pytest.raises(HostError, match=r"torch.Tensor.w.bin: .*cannot tell these names apart"):
        packed(source, {**TENSORS, "W": values()})
    source = netlist_text(more=[queue("a/b", kind="ram"), queue("a_b", kind="ram")])
    with pytest.raises(HostError, match="two members would be"):
        packed(source, {"a/b": values(), "a_b": values()})


def test_a_queue_on_several_chips(tmp_path):
    """NETLIST 1.7: one name in the netlist, a copy on each chip."""
    source = text(
        [queue("x", device="[0, 1]"), queue("w", kind="ram", device="[0, 1]"), queue("out", "n", device="[0, 1]")],
        [graph("g", op("n", "add", ["x", "w"]), device="[0, 1]")],
        [program("run", "var: {$c_zero: 0}", execute("g", fifo_settings("x"), ram_settings("w")))],
    )
    image = loaded(tmp_path, source, {"w.0": values(seed=1), "w.1": values(seed=2)})
    assert image.held_queues == {"w.0", "w.1"}
    with image.emulator(threads=1) as emulator:
        for name in ("x.0", "x.1"):
            emulator.push(name, values(seed=5))
        emulator.run("run")
        assert np.array_equal(emulator.pop("out.1"), values(seed=5) + values(seed=2))


def test_an_architecture_without_images():
    with pytest.raises(UnsupportedError, match="there are no images for wormhole,"):
        packed(netlist_text(arch="wormhole"), TENSORS)
