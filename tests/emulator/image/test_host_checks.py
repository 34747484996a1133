"""What device.json says of the host's tensors is held against the queues, each finding with its place."""

import pytest

import buda_emu as be
from buda_emu.emulator.image.load import check_image
from buda_emu.emulator.image.rules import ImageError
from small_images import bin_entry, members, netlist_text, parts, tar_bytes, values, write
from small_netlists import queue

STATE = "compiled_graph_state"
INPUT, OUTPUT = "ordered_input_runtime_tensor_transforms", "ordered_output_runtime_tensor_transforms"


def dims(*sizes):
    return {"dims_": list(sizes)}


def kind(name, **fields):
    return [{"type": name, **{key: dims(*value) for key, value in fields.items()}}]


def findings(tmp_path, changes, *, t=1, more=()):
    """(severity, pointer below the graph's state, message) of an image with such fields."""
    shape = (1, t, 32, 32)
    content, files = parts(
        c=bin_entry("c", values(shape)), w=bin_entry("w", values(shape)), net=netlist_text(t=t, more=more)
    )
    content[STATE].update(changes)
    path = write(tmp_path / "x.tti", tar_bytes(members(content, files)))
    found = check_image(path).diagnostics
    if any(item.severity == "error" for item in found):
        with pytest.raises(ImageError):
            be.load_image(path)
    return [(item.severity, item.pointer.removeprefix(f"{STATE}/"), item.message) for item in found]


@pytest.mark.parametrize(
    ("changes", "place", "says"),
    [
        ({"ordered_input_shapes": [[1, 1, 33, 32]]}, "ordered_input_shapes/0",
         "x: shape [1, 1, 33, 32] gives [1, 64, 32] for an entry, queue x takes [1, 32, 32]"),
        ({"ordered_input_shapes": [[1, 2, 32, 32]]}, "ordered_input_shapes/0",
         "x: shape [1, 2, 32, 32] gives [2, 32, 32] for an entry, queue x takes [1, 32, 32]"),
        ({"ordered_input_shapes": [[2, 1, 1, 32, 32]]}, "ordered_input_shapes/0",
         "x: a tensor of shape (2, 1, 1, 32, 32) has no form [w, z, r, c]"),
        ({"ordered_input_shapes": [[]]}, "ordered_input_shapes/0", "x: a tensor of shape () has no form [w, z, r, c]"),
        ({"ordered_input_shapes": [[1, 3, 32]], "ordered_input_tile_broadcast_dims": [[-2]]}, "ordered_input_shapes/0",
         "x: 3 rows cannot be repeated over a tile, only 1 can"),
        ({"ordered_input_shapes": [[1, 32], [1, 32]]}, "ordered_input_shapes", "2 ordered_input_shapes for 1 inputs"),
        ({"ordered_input_tile_broadcast_dims": [[], []]}, "ordered_input_tile_broadcast_dims",
         "2 ordered_input_tile_broadcast_dims for 1 inputs"),
        ({INPUT: kind("ReinterpretShape", original_shape=(1, 1024), reinterpreted_shape=(1, 1, 32, 31))}, f"{INPUT}/0",
         "x: the image states shape [1, 1, 32, 31] for a tensor of 1024 elements"),
        ({INPUT: kind("ReinterpretShape", original_shape=(1, 4096), reinterpreted_shape=(1, 1, 64, 64))}, f"{INPUT}/0",
         "x: shape [1, 1, 64, 64] gives [1, 64, 64] for an entry, queue x takes [1, 32, 32]"),
        ({INPUT: kind("ReinterpretShape", original_shape=(1, 1024))}, f"{INPUT}/0",
         "x: the image states no reinterpreted_shape for its runtime transform ReinterpretShape"),
        ({INPUT: [{"type": "Prestride", "stride_height": 1 << 40, "stride_width": 1 << 40}]}, f"{INPUT}/0",
         "x: Prestride with stride 1099511627776: a window has more elements than the 32 rows of its queue"),
        ({INPUT: [{"type": "Prestride", "stride_height": -2, "stride_width": -2}]}, f"{INPUT}/0",
         "x: Prestride with stride -2x-2: both must be equal, and 1 or more"),
        ({INPUT: kind("EmbeddingIndex", original_shape=(1, 2, 32))}, f"{INPUT}/0",
         "x: EmbeddingIndex takes indices [w, n], not [1, 2, 32]"),
        ({INPUT: kind("EmbeddingIndex", original_shape=(1, 2048))}, f"{INPUT}/0",
         "x: shape [1, 2048] gives [1, 32, 64] for an entry, queue x takes [1, 32, 32]"),
        ({"ordered_input_names": ["out"]}, "ordered_input_names/0", "queue out is filled by op sum"),
        ({"ordered_input_names": ["x", "x"]}, "ordered_input_names/1", "x occurs twice"),
        ({"ordered_output_names": ["x"], "ordered_output_data_formats": []}, "ordered_output_names/0",
         "queue x is filled by the host"),
        ({"ordered_output_shapes": [[1, 1, 33, 7]]}, "ordered_output_shapes/0",
         "out: shape [1, 1, 32, 32] cannot be narrowed to [1, 1, 33, 7]"),
        ({"ordered_output_shapes": [[1, 7], [1, 7]]}, "ordered_output_shapes", "2 ordered_output_shapes for 1 output"),
        ({OUTPUT: kind("Unpad", unpadded_shape=(1, 2, 5, 7))}, f"{OUTPUT}/0",
         "out: shape [1, 1, 32, 32] cannot be narrowed to [1, 2, 5, 7]"),
        ({OUTPUT: kind("ReinterpretShape", original_shape=(1, 61), reinterpreted_shape=(1, 1, 6, 10))}, f"{OUTPUT}/0",
         "out: the image states shape [1, 61] for entries of 60 elements"),
        ({"microbatch": 1 << 30}, "microbatch", "a microbatch of 1073741824, but queue x holds 2 entries"),
    ],
)  # fmt: skip
def test_what_no_tensor_fits(changes, place, says, tmp_path):
    errors = [item for item in findings(tmp_path, changes) if item[0] == "error"]
    assert errors == [("error", place, says)]


def test_outputs_that_cannot_be_concatenated(tmp_path):
    joined = [{"type": "Concatenate", "concat_group": 0, "concat_index": index, "concat_dim": 2} for index in (0, 1)]
    changes = {"ordered_output_names": ["out", "second"], "ordered_output_data_formats": [], OUTPUT: joined}
    assert findings(tmp_path, changes, more=[queue("second", "plus", entries=2)]) == []
    changes["output_host_tms"] = {"second": {"hstack_factor": 2}}
    found = findings(tmp_path, changes, t=2, more=[queue("second", "plus", t=2)])
    assert found == [("error", f"{OUTPUT}/0", "out: 2 outputs cannot be concatenated along dimension 2")]
    joined[0]["concat_dim"] = 7
    changes["output_host_tms"] = {}
    found = findings(tmp_path, changes, t=2, more=[queue("second", "plus", t=2)])
    assert found == [("error", f"{OUTPUT}/0", "out: 2 outputs cannot be concatenated along dimension 7")]


@pytest.mark.parametrize(
    ("changes", "place", "says"),
    [
        ({"microbatch": 2}, "microbatch", "a microbatch of 2, but the netlist's input_count is 1"),
        ({"ordered_output_data_formats": ["Bfp8_b"]}, "ordered_output_data_formats/0", "queue out has format Float32"),
        ({"input_to_tile_dims": {"x": [16, 32]}}, "input_to_tile_dims/x", "queue x has tiles of [32, 32]"),
        ({"ordered_input_requires_grad": [True, True]}, "ordered_input_requires_grad",
         "2 ordered_input_requires_grad for 1 inputs"),
    ],
)  # fmt: skip
def test_what_no_run_depends_on_is_a_warning(changes, place, says, tmp_path):
    assert findings(tmp_path, changes) == [("warning", place, says)]


def test_every_field_that_is_wrong_is_told_with_its_place(tmp_path):
    content, files = parts(chip_ids=[0, -1], training="no", grid_size=[1])
    state = content[STATE]
    state["ordered_input_shapes"] = [[1, 2, "x"]]
    state["post_const_eval_constants"]["c"]["dim"] = 9
    state["post_const_eval_parameters"]["w"]["bin"] = "../w.bin"
    state["output_host_tms"] = {"a/b": {"vstack_factor": 0}}
    del content["arch"], state["netlist_filename"]
    path = write(tmp_path / "x.tti", tar_bytes(members(content, files)))
    found = {item.pointer: item.message for item in check_image(path).diagnostics}
    assert found == {
        f"{STATE}/post_const_eval_constants/c/dim": "9 is not an integer from 1 to 4",
        f"{STATE}/post_const_eval_parameters/w/bin": "../w.bin: a part of its name is empty, '.' or '..', "
        "or ends in ' ' or '.'",
        f"{STATE}/ordered_input_shapes/0/2": "'x' is not an integer from 1 to 2147483647",
        f"{STATE}/netlist_filename": "this field is missing",
        f"{STATE}/output_host_tms/a~1b/vstack_factor": "0 is not an integer from 1 to 2147483647",
        "arch": "this field is missing",
        "chip_ids/1": "-1 is not an integer from 0 to 2147483647",
        "training": "'no' is not true or false",
        "grid_size": "[1] is not a list of 2",
    }
    with pytest.raises(ImageError, match=r"constants/c/dim: 9 is not .* \(and 8 more, which `buda-emu check` shows\)"):
        be.load_image(path)


@pytest.mark.parametrize("count", [0, 1 << 20])
def test_rounds_that_no_image_has(count, tmp_path):
    """A program loops over them: a million took minutes."""
    content, files = parts(microbatch_count=count)
    (found,) = check_image(write(tmp_path / "x.tti", tar_bytes(members(content, files)))).diagnostics
    assert (found.pointer, found.message) == ("microbatch_count", f"{count} is not an integer from 1 to 65536")
