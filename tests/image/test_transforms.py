"""Runtime transforms: what the format says of them is done, what it does not say is refused by name."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.errors import HostError, UnsupportedError
from buda_emu.image.metadata import TRANSFORMS
from small_images import bin_entry as entry
from small_images import members, netlist_text, parts, tar_bytes, values, write


def dims(*sizes):
    return {"dims_": list(sizes)}


def image(tmp_path, *, inputs=None, outputs=None, tms=None, t=1, mblock=(1, 1)):
    shape = (1, t, 32 * mblock[0], 32 * mblock[1])
    net = netlist_text(t=t, mblock=mblock)
    content, files = parts(c=entry("c", values(shape)), w=entry("w", values(shape)), net=net)
    state = content["compiled_graph_state"]
    state["ordered_input_runtime_tensor_transforms"] = [inputs] if inputs else []
    state["ordered_output_runtime_tensor_transforms"] = [outputs] if outputs else []
    state["output_host_tms"] = tms or {}
    return be.load_image(write(tmp_path / "x.tti", tar_bytes(members(content, files))))


def test_no_transform_takes_the_queues_shape_and_fewer_dimensions(tmp_path):
    found = image(tmp_path, inputs={"type": "NoTransform"})
    array = values((2, 1, 32, 32))
    assert found.host_input("x", array) is array
    assert np.array_equal(found.host_input("x", array[:, 0]), array)  # NETLIST 7.4: [n, h, w]
    with pytest.raises(HostError, match=r"x: shape \[1, 1, 30, 32\] gives .* takes \[entries, 1, 32, 32\]"):
        found.host_input("x", values((1, 1, 30, 32)))


def test_a_queue_shaped_input_needs_no_transform(tmp_path):
    transform = {
        "type": "ReinterpretShape",
        "original_shape": dims(1, 4, 16, 16),
        "reinterpreted_shape": dims(1, 1, 32, 32),
    }
    array = values()
    assert image(tmp_path, inputs=transform).host_input("x", array) is array


def test_reinterpret_shape(tmp_path):
    transform = {
        "type": "ReinterpretShape",
        "original_shape": dims(1, 4, 16, 16),
        "reinterpreted_shape": dims(1, 1, 32, 32),
    }
    found = image(tmp_path, inputs=transform)
    array = values((3, 4, 16, 16))
    assert np.array_equal(found.host_input("x", array), array.reshape(3, 1, 32, 32))
    with pytest.raises(HostError, match=r"x: shape \[1, 4, 16, 15\], the image states \[1, 4, 16, 16\]"):
        found.host_input("x", array[:1, :, :, :15])


@pytest.mark.parametrize("field", ["original_shape", "reinterpreted_shape"])
def test_a_transform_without_its_shapes(field, tmp_path):
    transform = {
        "type": "ReinterpretShape",
        "original_shape": dims(1, 4, 16, 16),
        "reinterpreted_shape": dims(1, 1, 32, 32),
    }
    del transform[field]
    with pytest.raises(HostError, match=f"the image states no {field}"):
        image(tmp_path, inputs=transform).host_input("x", values((1, 4, 16, 16)))


def test_shapes_of_different_size(tmp_path):
    transform = {
        "type": "ReinterpretShape",
        "original_shape": dims(1, 4, 16, 16),
        "reinterpreted_shape": dims(1, 1, 32, 31),
    }
    with pytest.raises(HostError, match="for a tensor of 1024 elements"):
        image(tmp_path, inputs=transform).host_input("x", values((1, 4, 16, 16)))


def test_prestride(tmp_path):
    """LAYOUT 5: a 3 channel image of 8x12 with stride 2 becomes 12 rows (padded to 32) of 24 columns (padded to 32)."""
    transform = {"type": "Prestride", "original_shape": dims(1, 3, 8, 12), "stride_height": 2, "stride_width": 2,
                 "kernel_height": 3, "kernel_width": 3}  # fmt: skip
    array = values((2, 3, 8, 12))
    got = image(tmp_path, inputs=transform).host_input("x", array)
    expected = np.zeros((2, 1, 32, 32), np.float32)
    for (w, c, y, x), value in np.ndenumerate(array):
        expected[w, 0, ((y % 2) * 2 + x % 2) * 3 + c, (y // 2) * 6 + x // 2] = value
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("strides", [(2, 1), (0, 0), (None, None)])
def test_prestride_with_unequal_strides(strides, tmp_path):
    transform = {"type": "Prestride", "stride_height": strides[0], "stride_width": strides[1]}
    with pytest.raises(HostError, match="both must be equal"):
        image(tmp_path, inputs=transform).host_input("x", values((1, 3, 8, 12)))


def test_prestride_of_integers(tmp_path):
    transform = {"type": "Prestride", "stride_height": 2, "stride_width": 2}
    with pytest.raises(HostError, match="Prestride takes floats, not int32"):
        image(tmp_path, inputs=transform).host_input("x", values((1, 3, 8, 12)).astype(np.int32))


@pytest.mark.parametrize("kind", ["EmbeddingIndex", "ConstantInput", "Unpad", "Concatenate"])
def test_transforms_of_inputs_that_nothing_documents(kind, tmp_path):
    found = image(tmp_path, inputs={"type": kind, "original_shape": dims(1, 1, 1, 32)})
    with pytest.raises(UnsupportedError, match=f"x: the runtime transform {kind} is not emulated"):
        found.host_input("x", values((1, 1, 1, 32)))
    assert found.host_input("x", values()).shape == (1, 1, 32, 32)


@pytest.mark.parametrize("kind", sorted(set(TRANSFORMS) - {"NoTransform", "Unpad", "ReinterpretShape"}))
def test_transforms_of_outputs_that_nothing_documents(kind, tmp_path):
    found = image(tmp_path, outputs={"type": kind})
    with pytest.raises(UnsupportedError, match=f"out: the runtime transform {kind} is not emulated"):
        found.host_output("out", values())
    with pytest.raises(UnsupportedError, match=kind):
        found.check_outputs()


def test_outputs_are_narrowed(tmp_path):
    array = values((2, 1, 32, 32))
    found = image(tmp_path, outputs={"type": "Unpad", "unpadded_shape": dims(1, 1, 5, 7)})
    assert np.array_equal(found.host_output("out", array), array[:, :, :5, :7])
    found = image(tmp_path, outputs={"type": "Unpad", "unpadded_shape": dims(1, 5, 7)})
    assert np.array_equal(found.host_output("out", array), array[:, 0, :5, :7])
    with pytest.raises(HostError, match="cannot be narrowed"):
        image(tmp_path, outputs={"type": "Unpad", "unpadded_shape": dims(1, 1, 33, 7)}).host_output("out", array)


def test_outputs_are_narrowed_and_reshaped(tmp_path):
    array = values((2, 1, 32, 32))
    transform = {"type": "ReinterpretShape", "original_shape": dims(1, 1, 6, 10), "reinterpreted_shape": dims(1, 60)}
    got = image(tmp_path, outputs=transform).host_output("out", array)
    assert np.array_equal(got, array[:, 0, :6, :10].reshape(2, 60))


def test_outputs_are_stacked(tmp_path):
    """LAYOUT 3.5: z = (block of rows) * hstack + (block of columns)."""
    found = image(tmp_path, t=4, tms={"out": {"hstack_factor": 2, "vstack_factor": 2, "row_major": True}})
    array = values((1, 4, 32, 32))
    got = found.host_output("out", array)
    assert np.array_equal(got[0, 0], np.block([[array[0, 0], array[0, 1]], [array[0, 2], array[0, 3]]]))


def test_without_a_role_an_output_is_as_it_is(tmp_path):
    array = values()
    assert image(tmp_path).host_output("out", array) is array
