"""Images written by hand from NETLIST 8 load, say what they hold, and run."""

import os
import struct

import numpy as np
import pytest

import buda_emu as be
from buda_emu.emulator.image.rules import ImageError
from buda_emu.support.errors import HostError
from small_images import TOP, bin_entry, good, members, netlist_text, parts, tar_bytes, values, write, zip_bytes
from small_netlists import queue


def load(tmp_path, content, files, **options):
    return be.load_image(write(tmp_path / "small.tti", tar_bytes(members(content, files))), **options)


@pytest.mark.parametrize("pack", [tar_bytes, zip_bytes, lambda m: zip_bytes(m, 8)], ids=["tar", "zip", "deflated"])
def test_what_an_image_says_and_holds(pack, tmp_path):
    before = dict(os.environ)
    image = be.load_image(write(tmp_path / "small.tti", pack(good())))
    assert os.environ == before
    assert image.runtime_config == {"PYBUDA_DEVMODE": "1"}
    assert image.findings == ()
    data, state = image.metadata, image.metadata.compiled_graph_state
    assert (data.arch, data.devtype, data.fp32_fallback, data.grid_size) == (
        "wormhole_b0",
        "Silicon",
        "Float16_b",
        (8, 8),
    )
    assert data.module_name_to_metadata["m"].class_name == "M"
    assert (state.ordered_input_names, state.netlist_filename) == (("x",), "net.yaml")
    assert list(image.tensors) == ["c", "w"]
    assert image.tensors["c"].shape == (2, 1, 32, 32)
    assert np.array_equal(image.tensor("c"), values((2, 1, 32, 32), 2))
    assert set(image.netlist.queues) == {"x", "c", "w", "out"}
    assert [entry.name for entry in os.scandir(tmp_path)] == ["small.tti"]  # nothing unpacked


def test_the_machine_holds_constants_and_parameters_and_runs(tmp_path):
    image = load(tmp_path, *parts())
    x = values(seed=9)
    with image.emulator("ideal", threads=1) as emulator:
        emulator.push("x", x)
        emulator.run("run")
        out = emulator.pop("out")
    assert np.array_equal(out, x + image.tensor("c")[:1] + image.tensor("w"))


def test_a_tar_made_with_folders_long_names_and_leading_dots(tmp_path):
    import tarfile

    folder = tmp_path / TOP
    for name, data in good().items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / ("deep" * 20) / ("deeper" * 20)).mkdir(parents=True)
    (folder / ("deep" * 20) / ("deeper" * 20) / "é.txt").write_text("x")
    for number, form in enumerate((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)):
        for name in (TOP, f"./{TOP}"):
            path = tmp_path / f"{number}.tti"
            with tarfile.open(path, "w", format=form) as archive:
                archive.add(folder, name)  # modification times with fractions: extension headers in pax
            assert np.array_equal(be.load_image(path).tensor("w"), values((1, 1, 32, 32), 3))


@pytest.mark.parametrize("word", ["Wormhole_B0", "wormhole_b0", {"__enum__": "BackendDevice.Wormhole_B0"}])
def test_enums_come_as_words_or_as_objects(word, tmp_path):
    content, files = parts(arch=word, devtype={"__enum__": "pybuda._C.BackendType.Golden"})
    image = load(tmp_path, content, files)
    assert (image.metadata.arch, image.metadata.devtype) == ("wormhole_b0", "Golden")


def test_unknown_fields_are_kept(tmp_path):
    content, files = parts(colour=["red", {"a": 1}])
    content["compiled_graph_state"]["mood"] = 3
    metadata = load(tmp_path, content, files).metadata
    assert metadata.extra["colour"] == ("red", {"a": 1})
    assert metadata.compiled_graph_state.extra == {"mood": 3}


def test_missing_fields_are_said(tmp_path):
    content, files = parts()
    del content["verify_cfg"], content["compiled_graph_state"]["has_cache_buffers"]
    image = load(tmp_path, content, files)
    assert image.metadata.missing == ("compiled_graph_state.has_cache_buffers", "verify_cfg")
    path = f"{image.path}!{TOP}/device.json"
    assert [(item.path, item.pointer, item.message) for item in image.findings] == [
        (path, "compiled_graph_state/has_cache_buffers", "this field is missing"),
        (path, "verify_cfg", "this field is missing"),
    ]


@pytest.mark.parametrize("field", ["arch", "compiled_graph_state", "netlist_filename"])
def test_fields_without_which_nothing_goes(field, tmp_path):
    content, files = parts()
    where = content if field in content else content["compiled_graph_state"]
    del where[field]
    with pytest.raises(ImageError, match=rf"device.json: (.*/)?{field}: this field is missing \[image-field"):
        load(tmp_path, content, files)


@pytest.mark.parametrize("version", ["1.1", "1.1.1", "2.0.0", 1, None])
def test_other_versions(version, tmp_path):
    with pytest.raises(ImageError, match="image-version"):
        load(tmp_path, *parts(version=version))


@pytest.mark.parametrize(
    ("df", "dtype"),
    [("Float32", "f4"), ("Float16", "f2"), ("Int32", "i4"), ("Int8", "i1"), ("UInt8", "u1"), ("UInt16", "u2"),
     ("RawUInt32", "u4"), ("RawUInt16", "u2"), ("RawUInt8", "u1")],
)  # fmt: skip
def test_raw_tensors_of_every_host_format(df, dtype, tmp_path):
    array = np.arange(1024).reshape(1, 1, 32, 32).astype(dtype)
    tensor = load(tmp_path, *parts(w=bin_entry("w", array, df))).tensor("w")
    assert tensor.dtype == np.dtype(dtype)
    assert np.array_equal(tensor, array)


def test_bfloat16_comes_as_float32(tmp_path):
    words = (values().view(np.uint32) >> 16).astype(np.uint16)
    tensor = load(tmp_path, *parts(w=bin_entry("w", words, "Float16_b"))).tensor("w")
    assert tensor.dtype == np.float32
    assert np.array_equal(tensor, values())


def test_the_outermost_dimension_is_the_batch(tmp_path):
    """NETLIST 7.4: [N, H, W] is N entries."""
    array = values((2, 32, 32))
    image = load(tmp_path, *parts(c=bin_entry("c", array, dim=3)))
    assert np.array_equal(image.tensor("c"), array.reshape(2, 1, 32, 32))


def raw_words(tmp_path, array, df, raw):
    """What a ram of a raw format holds that the image gives a tensor."""
    net = netlist_text(more=[queue("r", kind="ram", df=raw)])
    constant, files = bin_entry("r", array, df)
    content, rest = parts(net=net)
    content["compiled_graph_state"]["post_const_eval_constants"]["r"] = constant
    with load(tmp_path, content, files | rest).emulator(threads=1) as emulator:
        return emulator.peek("r")


@pytest.mark.parametrize(("df", "raw", "dtype"), [("Int32", "RawUInt32", np.int32), ("Int8", "RawUInt8", np.int8)])
def test_integers_for_raw_queues_are_reinterpreted(df, raw, dtype, tmp_path):
    array = np.arange(-512, 512).astype(dtype).reshape(1, 1, 32, 32)
    assert np.array_equal(raw_words(tmp_path, array, df, raw), array.view(f"u{array.itemsize}").astype(np.uint32))


def test_floats_for_raw_queues_give_their_bits(tmp_path):
    assert np.array_equal(raw_words(tmp_path, values(), "Float32", "RawUInt32"), values().view(np.uint32))


def tiles(array, df_bytes=4128):
    """A Float32 .tbin of one buffer, packed by hand: header word, zeros, four faces, 16 zero bytes (FORMATS 2)."""
    blob = b""
    for entry in array:
        for z in entry:
            for r in range(0, z.shape[0], 32):
                for c in range(0, z.shape[1], 32):
                    tile = z[r : r + 32, c : c + 32]
                    faces = [tile[i : i + 16, j : j + 16].astype("<f4").tobytes() for i in (0, 16) for j in (0, 16)]
                    blob += (struct.pack("<4I", df_bytes // 16, 0, 0, 0) + b"".join(faces)).ljust(df_bytes, b"\0")
    return blob


def tbin(name, array, size_key="buf_size_bytes"):
    entry, _ = bin_entry(name, array)
    data, file = tiles(array), f"tensors/torch.Tensor.{name}.tbin"
    return {**entry, "bin": file, "num_buffers": 1, size_key: len(data)}, {f"{TOP}/{file}": data}


@pytest.mark.parametrize("key", ["buf_size_bytes", "buffer_size_bytes"])
def test_tiles(key, tmp_path):
    array = values((2, 2, 64, 32), 5)
    net = netlist_text(t=2, mblock=(2, 1))
    image = load(tmp_path, *parts(c=tbin("c", array, key), w=tbin("w", array[:1], key), net=net))
    assert np.array_equal(image.tensor("c"), array)
    with image.emulator(threads=1) as emulator:
        assert np.array_equal(emulator.peek("c", 2), array)
        assert np.array_equal(
            np.concatenate([b.reshape(-1) for b in emulator.memory_image("w")]).tobytes(), tiles(array[:1])
        )


def test_a_tile_whose_header_states_another_size(tmp_path):
    entry, files = tbin("w", values())
    files = {name: b"\x01" + data[1:] for name, data in files.items()}
    image = load(tmp_path, *parts(w=(entry, files)))
    with pytest.raises(ImageError, match=r"torch.Tensor.w.tbin: entry 0: the header of a Float32 tile .*image-tensor"):
        image.tensor("w")


def test_an_image_that_changed_since_it_was_loaded(tmp_path):
    image = load(tmp_path, *parts())
    write(tmp_path / "small.tti", tar_bytes(good()) + bytes(512))
    with pytest.raises(ImageError, match="image-changed"):
        image.tensor("w")


def test_another_architecture_than_expected(tmp_path):
    assert load(tmp_path, *parts(), arch="Wormhole_B0").metadata.arch == "wormhole_b0"
    with pytest.raises(ImageError, match=r"it is for wormhole_b0, not for grayskull \[image-device"):
        load(tmp_path, *parts(), arch="grayskull")


def test_an_unknown_tensor(tmp_path):
    with pytest.raises(HostError, match="no tensor 'x'; tensors: c, w"):
        load(tmp_path, *parts()).tensor("x")
    with pytest.raises(HostError, match="no queue 'y'"):
        load(tmp_path, *parts()).tensor("y")


def test_a_netlist_that_is_refused(tmp_path):
    with pytest.raises(be.NetlistError) as caught:
        load(tmp_path, *parts(net=netlist_text().replace("type: add", "type: ad")))
    assert caught.value.diagnostics[0].path.endswith(f"small.tti!{TOP}/net.yaml")


def test_a_ram_is_written_at_slot_0_and_the_rest_stays_unwritten(tmp_path):
    with load(tmp_path, *parts()).emulator(threads=1) as emulator:
        assert np.array_equal(emulator.peek("w"), values((1, 1, 32, 32), 3))
        with pytest.raises(HostError, match="entry 1 of w was never written"):
            emulator.peek("w", 1, slot=1)


def test_tensors_are_pushed_in_the_order_of_the_netlist(tmp_path):
    """Whatever the order of device.json: rams may share their memory (NETLIST 1.10)."""
    ram = queue("w", kind="ram", entries=2).replace("  w:", "  a:")
    net = netlist_text(more=[ram])
    entry, files = bin_entry("a", values(seed=8))
    content, rest = parts(net=net)
    parameters = content["compiled_graph_state"]["post_const_eval_parameters"]
    content["compiled_graph_state"]["post_const_eval_parameters"] = {"a": entry, **parameters}
    image = load(tmp_path, content, files | rest)
    assert list(image.tensors) == ["c", "a", "w"]
    assert [(held.queue, held.slot) for held in image.initial_tensors()] == [("c", None), ("w", 0), ("a", 0)]


def test_one_tensor_for_the_copies_of_a_queue_on_several_chips(tmp_path):
    """NETLIST 1.7: the image may give the written name."""
    net = netlist_text(more=[queue("r", kind="ram", device="[0, 1]")])
    entry, files = bin_entry("r", values(seed=8))
    content, rest = parts(net=net)
    content["compiled_graph_state"]["post_const_eval_parameters"]["r"] = entry
    image = load(tmp_path, content, files | rest)
    assert image.held_queues == {"c", "w", "r.0", "r.1"}
    with image.emulator(threads=1) as emulator:
        for name in ("r.0", "r.1"):
            assert np.array_equal(emulator.peek(name), values(seed=8))


def test_what_a_compiler_may_leave_open(tmp_path):
    """NETLIST 12: null commit hashes, chips by their places; numbers that a transform does not use are anything."""
    content, files = parts(chip_ids=[[0, 0, 0, 0], [1, 0, 0, 0]], pybuda_commit_hash=None, budabackend_commit_hash=None)
    odd = {"type": "NoTransform", "stride_height": -1094795586, "kernel_width": 1 << 31, "concat_dim": -1}
    content["compiled_graph_state"]["ordered_input_runtime_tensor_transforms"] = [odd]
    image = be.load_image(write(tmp_path / "x.tti", tar_bytes(members(content, files))))
    assert image.metadata.chip_ids == ((0, 0, 0, 0), (1, 0, 0, 0))
    assert image.metadata.pybuda_commit_hash is image.metadata.budabackend_commit_hash is None
    assert image.findings == ()
