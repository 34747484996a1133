"""What does not belong together is found, by name."""

import pytest

import buda_emu as be
from buda_emu.emulator.image.load import check_image
from buda_emu.emulator.image.rules import ImageError
from small_images import TOP, bin_entry, members, netlist_text, parts, tar_bytes, values, write

STATE = "compiled_graph_state"


def findings(tmp_path, content, files, **options):
    path = write(tmp_path / "x.tti", tar_bytes(members(content, files)))
    found = check_image(path, **options).diagnostics
    errors = [item for item in found if item.severity == "error"]
    if errors and not options:
        with pytest.raises((ImageError, be.NetlistError)):
            be.load_image(path)
    return [(item.rule, item.severity, item.message) for item in found]


def test_a_sound_image(tmp_path):
    assert findings(tmp_path, *parts()) == []


@pytest.mark.parametrize(
    "role",
    ["ordered_input_names", "ordered_output_names", "ordered_target_names", "ordered_input_gradient_names",
     "ordered_output_gradient_names"],
)  # fmt: skip
def test_names_that_are_no_queues(role, tmp_path):
    content, files = parts()
    content[STATE][role] = ["nowhere"]
    assert findings(tmp_path, content, files) == [
        ("image-queue", "error", f"{role} has nowhere, which is not a queue of the netlist")
    ]


def test_intermediates_and_stacked_outputs_that_are_no_queues(tmp_path):
    content, files = parts()
    content[STATE]["ordered_intermediate_activation_names"] = [["op", "nowhere"]]
    content[STATE]["output_host_tms"] = {"out": {"hstack_factor": 2}, "nothing": {}}
    assert findings(tmp_path, content, files) == [
        (
            "image-queue",
            "error",
            "ordered_intermediate_activation_names has nowhere, which is not a queue of the netlist",
        ),
        ("image-queue", "error", "output_host_tms of out: hstack 2 and vstack 1 do not divide t = 1"),
        ("image-queue", "error", "output_host_tms has nothing, which is not a queue of the netlist"),
    ]


def test_constants_without_tensors_and_tensors_without_files_or_queues(tmp_path):
    content, files = parts()
    content[STATE]["ordered_constant_node_names"] = ["c", "x"]
    content[STATE]["post_const_eval_parameters"]["v"], more = bin_entry("v", values())
    del files[f"{TOP}/tensors/torch.Tensor.w.bin"]
    assert findings(tmp_path, content, files | more) == [
        ("image-member", "error", "constant x has no tensor in post_const_eval_constants"),
        ("image-member", "error", "tensor w has no file: it is not in the archive"),
        ("image-queue", "error", "tensor v belongs to no queue of the netlist"),
    ]


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (values((1, 1, 64, 32)), r"tensor w: shape [1, 1, 64, 32], queue w takes [entries, 1, 32, 32]"),
        (values((1, 2, 32, 32)), r"tensor w: shape [1, 2, 32, 32], queue w takes [entries, 1, 32, 32]"),
        (values((3, 1, 32, 32)), "tensor w: 3 entries, queue w holds 2"),
    ],
)
def test_shapes_that_do_not_fit(array, says, tmp_path):
    assert findings(tmp_path, *parts(w=bin_entry("w", array))) == [("image-queue", "error", says)]


def test_a_tensor_for_a_queue_that_an_op_fills(tmp_path):
    content, files = parts()
    content[STATE]["post_const_eval_parameters"] = {"out": bin_entry("w", values())[0]}
    content[STATE]["ordered_parameter_node_names"] = []
    says = "tensor out: queue out is filled by op sum, not by the host"
    assert findings(tmp_path, content, files) == [("image-queue", "error", says)]


def tiles(**changes):
    entry = {
        **bin_entry("w", values())[0],
        "bin": "tensors/w.tbin",
        "num_buffers": 1,
        "buf_size_bytes": 4128,
        **changes,
    }
    size = entry["num_buffers"] * entry["buf_size_bytes"]
    return entry, {f"{TOP}/tensors/w.tbin": bytes(size)}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format": "Float16_b"}, "tiles of Float16_b, queue w has Float32"),
        ({"num_buffers": 2}, "2 buffers, queue w has 1"),
        ({"buf_size_bytes": 4096}, "buffers of 4096 bytes, an entry of queue w takes 4128 in each"),
        ({"buf_size_bytes": 8256}, "shape [1, 1, 32, 32] has not the elements of 2 entries [1, 32, 32]"),
        ({"buf_size_bytes": 3 * 4128, "shape": [3, 1, 32, 32]}, "3 entries, queue w holds 2"),
    ],
)
def test_tiles_that_do_not_fit(changes, says, tmp_path):
    assert findings(tmp_path, *parts(w=tiles(**changes))) == [("image-queue", "error", f"tensor w: {says}")]


def test_tiles_for_a_flat_queue(tmp_path):
    net = netlist_text()
    line = next(line for line in net.splitlines() if line.startswith("  w:"))
    flat = net.replace(line, line.replace("loc: dram", "layout: flat, loc: dram"))
    says = "tensor w: tiles, but queue w has layout flat"
    assert findings(tmp_path, *parts(w=tiles(), net=flat)) == [("image-queue", "error", says)]


def test_another_architecture_in_the_netlist(tmp_path):
    found = findings(tmp_path, *parts(net=netlist_text(arch="blackhole")))
    assert ("image-device", "error", "arch Wormhole_B0, but the netlist is for blackhole") in found


def test_a_device_that_does_not_exist(tmp_path):
    says = "grid_size [10, 12], a Wormhole_B0 has [10, 8] at most"
    assert findings(tmp_path, *parts(grid_size=[10, 12])) == [("image-device", "error", says)]


def test_the_callers_architecture(tmp_path):
    says = "the image is for wormhole_b0, not for blackhole"
    assert findings(tmp_path, *parts(), arch="blackhole") == [("image-device", "error", says)]


def test_what_is_missing_and_does_no_harm_is_a_warning(tmp_path):
    content, files = parts(optimizer="Optimizer.SGD.pkl")
    del content["chip_ids"], files[f"{TOP}/compile_and_runtime_config.json"]
    content[STATE]["ordered_output_data_formats"] = ["Float32", "Float32"]
    expected = [
        ("image-field", "2 ordered_output_data_formats for 1 outputs"),
        ("image-member", "it is not in the archive"),
        ("image-member", "it is not in the archive"),
        ("image-field", "this field is missing"),
    ]
    for strict, severity in ((False, "warning"), (True, "error")):
        found = findings(tmp_path, content, files, strict=strict)
        assert found == [(rule, severity, says) for rule, says in expected]


def test_a_missing_netlist(tmp_path):
    content, files = parts()
    del files[f"{TOP}/net.yaml"]
    assert findings(tmp_path, content, files) == [("image-member", "error", "it is not in the archive")]


def test_findings_in_the_netlist_have_their_places(tmp_path):
    net = netlist_text().replace("type: ram", "type: rum")
    path = write(tmp_path / "x.tti", tar_bytes(members(*parts(net=net))))
    (found,) = (item for item in check_image(path).diagnostics if item.rule == "V013")
    assert found.path == f"{path}!{TOP}/net.yaml"
    assert net.splitlines()[found.line - 1].startswith("  w:")
