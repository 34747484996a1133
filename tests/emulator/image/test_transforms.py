"""Runtime transforms: what the format says of them is done, what it does not say is refused by name."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.run_netlist import run_netlist
from buda_emu.emulator.image.tensors import _check_batch, _join_outputs
from buda_emu.support.errors import HostError, UnsupportedError
from small_images import bin_entry as entry
from small_images import members, netlist_text, parts, tar_bytes, values, write
from small_netlists import queue


def dims(*sizes):
    return {"dims_": list(sizes)}


def image(
    tmp_path,
    *,
    inputs=None,
    outputs=None,
    tms=None,
    t=1,
    mblock=(1, 1),
    microbatch=1,
    stated=None,
    broadcast=None,
    stated_output=None,
):
    shape = (1, t, 32 * mblock[0], 32 * mblock[1])
    net = netlist_text(t=t, mblock=mblock)
    content, files = parts(c=entry("c", values(shape)), w=entry("w", values(shape)), net=net)
    state = content["compiled_graph_state"]
    state["ordered_input_runtime_tensor_transforms"] = [inputs] if inputs else []
    state["ordered_output_runtime_tensor_transforms"] = [outputs] if outputs else []
    state["output_host_tms"] = tms or {}
    state["microbatch"] = microbatch
    state["ordered_input_shapes"] = [list(stated)] if stated else []
    state["ordered_input_tile_broadcast_dims"] = [broadcast] if broadcast is not None else []
    state["ordered_output_shapes"] = [list(stated_output)] if stated_output else []
    return be.load_image(write(tmp_path / "x.tti", tar_bytes(members(content, files))))


def test_no_transform_takes_the_queues_shape_and_fewer_dimensions(tmp_path):
    found = image(tmp_path, inputs={"type": "NoTransform"})
    array = values((2, 1, 32, 32))
    assert found.host_input("x", array) is array
    assert np.array_equal(found.host_input("x", array[:, 0]), array)  # NETLIST 7.4: [n, h, w]
    with pytest.raises(HostError, match=r"x: shape \[1, 1, 33, 32\] gives .* takes \[entries, 1, 32, 32\]"):
        found.host_input("x", values((1, 1, 33, 32)))


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
    transform = {
        "type": "Prestride",
        "original_shape": dims(1, 3, 8, 12),
        "stride_height": 2,
        "stride_width": 2,
        "kernel_height": 3,
        "kernel_width": 3,
    }
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


@pytest.mark.parametrize("kind", ["Unpad", "Concatenate"])
def test_transforms_that_are_none_for_inputs(kind, tmp_path):
    found = image(tmp_path, inputs={"type": kind, "original_shape": dims(1, 1, 1, 32)})
    with pytest.raises(UnsupportedError, match=f"x: the runtime transform {kind} is not one for an input"):
        found.host_input("x", values((1, 1, 1, 32)))
    assert found.host_input("x", values()).shape == (1, 1, 32, 32)


@pytest.mark.parametrize("kind", ["Prestride", "EmbeddingIndex", "ConstantInput"])
def test_transforms_that_are_none_for_outputs(kind, tmp_path):
    found = image(tmp_path, outputs={"type": kind})
    with pytest.raises(UnsupportedError, match=f"out: the runtime transform {kind} is not one for an output"):
        found.host_output("out", values())
    with pytest.raises(UnsupportedError, match=kind):
        found.check_outputs()


# ----------------------------------------------------------------------------------- to the queue's shape (FRONTEND 7)
@pytest.mark.parametrize(
    ("given", "microbatch", "stated", "broadcast", "expected"),
    [
        ((1, 30, 20), 1, (1, 30, 20), [], "zeros"),  # [n, h, w]
        ((2, 1, 30, 20), 1, None, [], "zeros"),
        ((30, 20), 1, None, [], "zeros"),  # a matrix: 30 is not the microbatch
        ((2, 20), 2, None, [], "zeros"),  # two rows of a batch
        ((3, 20), 1, (1, 20), [], "zeros"),  # the image says that the first dimension is the batch
        ((20,), 1, None, [], "zeros"),
        ((1, 1, 1, 20), 2, None, [-2], "rows"),
        ((2, 1, 30, 1), 2, None, [3], "columns"),
        ((1, 1, 30, 20), 2, None, [], "zeros"),  # one entry serves a microbatch
    ],
)
def test_inputs_are_padded_to_tiles(given, microbatch, stated, broadcast, expected, tmp_path):
    found = image(tmp_path, inputs={"type": "NoTransform"}, microbatch=microbatch, stated=stated, broadcast=broadcast)
    array = values(given)
    got = found.host_input("x", array)
    assert got.shape[1:] == (1, 32, 32)
    if len(given) == 1:
        entries = array.reshape(1, 1, 20)
    elif given == (30, 20):
        entries = array[None]
    else:
        entries = array.reshape(given[0], -1, given[-1])
    rows, columns = entries.shape[1:]
    assert len(got) == max(len(entries), microbatch)
    for number, matrix in enumerate(got[:, 0]):
        whole = np.zeros((32, 32), np.float32)
        whole[:rows, :columns] = entries[number % len(entries)]
        if expected == "rows":
            whole[:] = whole[:1]
        if expected == "columns":
            whole[:] = whole[:, :1]
        assert np.array_equal(matrix, whole)


def test_only_one_row_can_be_repeated(tmp_path):
    found = image(tmp_path, inputs={"type": "NoTransform"}, broadcast=[-2])
    with pytest.raises(HostError, match="x: 3 rows cannot be repeated over a tile, only 1 can"):
        found.host_input("x", values((1, 1, 3, 20)))


def test_reinterpreted_inputs_are_padded(tmp_path):
    transform = {"type": "ReinterpretShape", "original_shape": dims(1, 600), "reinterpreted_shape": dims(1, 1, 30, 20)}
    array = values((3, 600))
    got = image(tmp_path, inputs=transform).host_input("x", array)
    assert np.array_equal(got[:, 0, :30, :20], array.reshape(3, 30, 20))
    assert not got[:, :, 30:].any()
    assert not got[:, :, :, 20:].any()


@pytest.mark.parametrize("batch", [1, 2])
def test_indices_of_an_embedding(batch, tmp_path):
    """FRONTEND 7. 40 indices in one row of tiles: those of a group of 32 lie in one row, as 32-bit words."""
    more = [queue("ids", df="RawUInt32")]
    content, files = parts(net=netlist_text(more=more))
    state = content["compiled_graph_state"]
    state["ordered_input_names"] = ["ids"]
    state["ordered_input_runtime_tensor_transforms"] = [{"type": "EmbeddingIndex", "original_shape": dims(1, 40)}]
    found = be.load_image(write(tmp_path / "x.tti", tar_bytes(members(content, files))))
    indices = np.arange(100, 100 + 40 * batch, dtype=np.int64).reshape(batch, 40)
    got = found.host_input("ids", indices)
    expected = np.zeros((batch, 1, 32, 32), np.uint32)
    expected[:, 0, 1, 8:] = 0xFFFFFFFF
    expected[:, 0, 0] = indices[:, :32]
    expected[:, 0, 1, :8] = indices[:, 32:]
    assert np.array_equal(got, expected)
    if batch == 1:
        assert np.array_equal(found.host_input("ids", indices[0]), expected)
    for wrong in (indices.astype(float), np.zeros((1, 1, 40), int)):
        with pytest.raises(HostError, match="EmbeddingIndex takes integers"):
            found.host_input("ids", wrong)


def test_groups_of_indices_go_down_a_tile_then_to_the_next(tmp_path):
    content, files = parts(net=netlist_text(more=[queue("ids", df="RawUInt32", mblock=(1, 2))]))
    state = content["compiled_graph_state"]
    state["ordered_input_names"] = ["ids"]
    state["ordered_input_runtime_tensor_transforms"] = [{"type": "EmbeddingIndex", "original_shape": dims(1, 1056)}]
    found = be.load_image(write(tmp_path / "x.tti", tar_bytes(members(content, files))))
    got = found.host_input("ids", np.arange(1056, dtype=np.int64).reshape(1, -1))
    assert got.shape == (1, 1, 32, 64)
    assert np.array_equal(got[0, 0, :, :32].ravel(), np.arange(1024))
    assert got[0, 0, 0, 32:].tolist() == list(range(1024, 1056))
    assert not got[0, 0, 1:, 32:].any()


def test_indices_that_do_not_divide_into_rows_of_tiles(tmp_path):
    content, files = parts(net=netlist_text(more=[queue("ids", df="RawUInt32", mblock=(3, 1))]))
    state = content["compiled_graph_state"]
    state["ordered_input_names"] = ["ids"]
    state["ordered_input_runtime_tensor_transforms"] = [{"type": "EmbeddingIndex", "original_shape": dims(1, 64)}]
    says = "ids: 64 indices do not divide into the 3 rows of tiles"
    with pytest.raises(HostError, match=says):
        be.load_image(write(tmp_path / "x.tti", tar_bytes(members(content, files))))
    state["ordered_input_runtime_tensor_transforms"] = [{"type": "EmbeddingIndex", "original_shape": dims(1, 96)}]
    found = be.load_image(write(tmp_path / "y.tti", tar_bytes(members(content, files))))
    with pytest.raises(HostError, match=says):
        found.host_input("ids", np.zeros((1, 64), int))


def test_a_constant_stands_for_an_input(tmp_path):
    """ConstantInput: the stored constant is pushed instead, as often as the input has entries."""
    content, files = parts()
    state = content["compiled_graph_state"]
    state["ordered_input_runtime_tensor_transforms"] = [{"type": "ConstantInput"}]
    with pytest.raises(HostError, match="x: the image has no tensor for its runtime transform ConstantInput"):
        be.load_image(write(tmp_path / "bare.tti", tar_bytes(members(content, files))))
    constant, file = entry("x", values(seed=9))
    state["post_const_eval_constants"]["x"] = constant
    found = be.load_image(write(tmp_path / "x.tti", tar_bytes(members(content, {**files, **file}))))
    assert found.held_queues == {"c", "w"}
    assert np.array_equal(found.host_input("x", values((3, 1, 32, 32))), np.repeat(values(seed=9), 3, 0))
    report = run_netlist(found.netlist, image=found, precision="ideal")
    added = found.tensor("c")[:1] + found.tensor("w")
    assert np.array_equal(report.arrays["out"], values(seed=9) + added)


# ---------------------------------------------------------------------------------------------------- from the queue
def test_outputs_are_cut_to_the_shape_that_the_image_states(tmp_path):
    array = values((2, 1, 32, 32))
    for stated, expected in (((1, 5, 7), array[:, 0, :5, :7]), ((1, 7), array[:, 0, 0, :7]), ((1,), array[:, 0, 0, 0])):
        found = image(tmp_path, outputs={"type": "NoTransform"}, stated_output=stated)
        assert np.array_equal(found.host_output("out", array), expected)
    with pytest.raises(HostError, match="cannot be narrowed"):
        image(tmp_path, stated_output=(1, 33, 7)).host_output("out", array)


def concatenation(tmp_path, dim, *, indices=(1, 0), microbatch=1, stated=()):
    """Outputs `out` and `second` of one group."""
    net = netlist_text(more=[queue("second", "plus")])
    content, files = parts(net=net)
    state = content["compiled_graph_state"]
    state["microbatch"] = microbatch
    state["ordered_output_names"] = ["out", "second"]
    state["ordered_output_data_formats"] = ["Float32", "Float32"]
    state["ordered_output_shapes"] = [list(shape) for shape in stated]
    state["ordered_output_runtime_tensor_transforms"] = [
        {"type": "Concatenate", "concat_group": 0, "concat_index": index, "concat_dim": dim} for index in indices
    ]
    return be.load_image(write(tmp_path / "x.tti", tar_bytes(members(content, files))))


@pytest.mark.parametrize("dim", [-1, 3, 2, 1])
def test_outputs_of_a_group_are_concatenated(dim, tmp_path):
    """By index, in the place of the group's first."""
    found = concatenation(tmp_path, dim)
    out, second = values((2, 1, 32, 32), 1), values((2, 1, 32, 32), 2)
    got = found.host_outputs({"out": out, "second": second})
    assert list(got) == ["out"]
    assert np.array_equal(got["out"], np.concatenate([second, out], dim))
    found.check_outputs()


def test_concatenated_outputs_are_cut(tmp_path):
    found = concatenation(tmp_path, -1, indices=(0, 1), stated=[(1, 10, 40)])
    out, second = values((1, 1, 32, 32), 1), values((1, 1, 32, 32), 2)
    got = found.host_outputs({"out": out, "second": second})
    assert np.array_equal(got["out"], np.concatenate([out, second], -1)[:, 0, :10, :40])


def test_concatenation_along_the_batch_goes_by_microbatches(tmp_path):
    found = concatenation(tmp_path, 0, indices=(0, 1), microbatch=2)
    out, second = values((4, 1, 32, 32), 1), values((4, 1, 32, 32), 2)
    got = found.host_outputs({"out": out, "second": second})["out"]
    assert np.array_equal(got, np.concatenate([out[:2], second[:2], out[2:], second[2:]]))
    with pytest.raises(HostError, match="have not equally many microbatches"):
        found.host_outputs({"out": out, "second": second[:2]})
    with pytest.raises(HostError, match="cannot be concatenated along dimension 0"):
        found.host_outputs({"out": out, "second": second[:3]})


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
    transform = {"type": "ReinterpretShape", "original_shape": dims(1, 60), "reinterpreted_shape": dims(1, 1, 6, 10)}
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


@pytest.mark.parametrize(
    ("given", "stated", "good"),
    [((4, 3, 5), (2, 3, 5), True), ((3, 2, 5), (2, 2, 5), False), ((2, 3, 4), (2, 3, 5), False),
     ((2, 3), (2, 3, 5), False), ((0, 3, 5), (2, 3, 5), False)],
)  # fmt: skip
def test_the_outermost_dimension_may_be_a_multiple(given, stated, good):
    if good:
        _check_batch("x", np.zeros(given), stated)
        return
    with pytest.raises(HostError, match=r"x: shape .*the image states"):
        _check_batch("x", np.zeros(given), stated)


@pytest.mark.parametrize("dim", [4, 5, -5])
def test_outputs_have_four_dimensions(dim):
    arrays = {name: np.zeros((2, 1, 3, 4)) for name in "ab"}
    with pytest.raises(HostError, match=f"cannot be concatenated along dimension {dim}"):
        _join_outputs("ab", arrays, dim, 1)
