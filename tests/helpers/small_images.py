"""Small device images for tests, written by hand from NETLIST 8, without the project's own writer."""

import copy
import io
import json
import tarfile
import zipfile

import numpy as np

from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

TOP = "unzipped_tti"
STATE_LISTS = (
    "ordered_input_gradient_names", "ordered_output_gradient_names", "ordered_target_names",
    "ordered_input_subgraph_indices", "ordered_output_subgraph_indices", "ordered_target_subgraph_indices",
    "ordered_input_tile_broadcast_dims", "ordered_target_tile_broadcast_dims", "ordered_bw_input_tile_broadcast_dims",
    "ordered_input_requires_grad", "ordered_output_requires_grad", "ordered_input_shapes", "ordered_output_shapes",
    "ordered_target_shapes", "ordered_intermediate_shapes", "ordered_intermediate_activation_names",
    "ordered_input_runtime_tensor_transforms", "ordered_output_runtime_tensor_transforms",
)  # fmt: skip
STATE_MAPS = (
    "input_to_tile_dims", "parameter_to_tile_dims", "constant_to_tile_dims", "output_host_tms", "consteval_trace",
    "optimizer_param_info",
)  # fmt: skip


def netlist_text(df="Float32", arch="wormhole_b0", *, t=1, mblock=(1, 1), more=()):
    """out = (x + c) + w: an input x, a constant c (a queue of 2), a parameter w (a ram). `more`: further queues."""
    shape = {"t": t, "mblock": mblock}
    return text(
        [
            queue("x", entries=2, df=df, **shape),
            queue("c", entries=2, df=df, **shape),
            queue("w", kind="ram", entries=2, df=df, **shape),
            queue("out", "sum", entries=2, df=df, **shape),
            *more,
        ],
        [
            graph(
                "fwd",
                op("plus", "add", ["x", "c"], df=df, **shape),
                op("sum", "add", ["plus", "w"], df=df, loc=(0, 1), **shape),
            )
        ],
        [
            program(
                "run",
                "var: {$c_zero: 0}",
                execute("fwd", fifo_settings("x"), fifo_settings("c", prologue="true"), ram_settings("w")),
            )
        ],
        arch=arch,
    )


ELEMENTS = {
    "Float32": "<f4", "Float16": "<f2", "Float16_b": "<u2", "Int32": "<i4", "Int8": "<i1", "UInt8": "<u1",
    "UInt16": "<u2", "RawUInt32": "<u4", "RawUInt16": "<u2", "RawUInt8": "<u1",
}  # fmt: skip


def bin_entry(name, array, df="Float32", dim=4):
    """A BACKEND tensor: its description and its file."""
    data = np.ascontiguousarray(array, ELEMENTS[df])
    shape = [1] * (4 - data.ndim) + list(data.shape)
    size = data.itemsize
    strides = [size * int(np.prod(shape[place:])) for place in range(1, 5)]
    file = f"tensors/torch.Tensor.{name}.bin"
    entry = {"bin": file, "itemsize": size, "shape": shape, "strides": strides, "dim": dim, "format": df}
    return entry, {f"{TOP}/{file}": data.tobytes()}


def device(constants, parameters, **changes):
    """device.json of an image of `netlist_text`."""
    state = {
        "microbatch": 1,
        "graph_name": "fwd",
        "ordered_input_names": ["x"],
        "ordered_output_names": ["out"],
        "ordered_constant_node_names": list(constants),
        "ordered_parameter_node_names": list(parameters),
        "ordered_output_data_formats": ["Float32"],
        "netlist_filename": "/build/of/someone/net.yaml",
        "post_const_eval_constants": constants,
        "post_const_eval_parameters": parameters,
        "cpueval_outputs": None,
        "has_cache_buffers": False,
        **{key: [] for key in STATE_LISTS},
        **{key: {} for key in STATE_MAPS},
    }
    return {
        "version": "1.1.0",
        "device_image_name": "small",
        "arch": "Wormhole_B0",
        "devtype": "Silicon",
        "chip_ids": [0],
        "fp32_fallback": "Float16_b",
        "optimizer": None,
        "training": False,
        "microbatch_size": 1,
        "microbatch_count": 1,
        "grid_size": [8, 8],
        "harvested_rows": [],
        "compiled_graph_state": state,
        "verify_cfg": {},
        "compiler_cfg": {},
        "loss_module": None,
        "module_name_to_metadata": {"m": {"module": "m", "class": "M", "module_file_path": "m.py"}},
        "pybuda_pip_version_id": "0.1",
        "pybuda_commit_hash": "a",
        "budabackend_commit_hash": "b",
        **changes,
    }


def values(shape=(1, 1, 32, 32), seed=1):
    """float32 data that Float16_b holds exactly."""
    return np.random.default_rng(seed).integers(-64, 64, shape).astype(np.float32)


def parts(c=None, w=None, net=None, **changes):
    """The JSON of device.json and every other member, of a good image."""
    constant, first = c or bin_entry("c", values((2, 1, 32, 32), 2))
    parameter, second = w or bin_entry("w", values((1, 1, 32, 32), 3))
    return device({"c": constant}, {"w": parameter}, **changes), {
        f"{TOP}/compile_and_runtime_config.json": b'{"PYBUDA_DEVMODE": "1"}',
        f"{TOP}/net.yaml": (net or netlist_text()).encode(),
        f"{TOP}/module_files/m.py": b"class M: pass\n",
        **first,
        **second,
    }


def members(content, files):
    """All members, device.json among them."""
    return {f"{TOP}/device.json": json.dumps(content, indent=4).encode(), **files}


def good():
    """The members of a good image, which the caller may spoil."""
    content, files = parts()
    return members(copy.deepcopy(content), files)


def pairs(contents):
    """(name, bytes) of a map or a list of pairs."""
    return contents.items() if isinstance(contents, dict) else contents


def tar_bytes(contents, spoil=lambda info: info):
    """A tar of (name, bytes) pairs or a map; `spoil` may change each header."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in pairs(contents):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(spoil(info), io.BytesIO(data))
    return stream.getvalue()


def zip_bytes(contents, method=zipfile.ZIP_STORED):
    """A zip of the same."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in pairs(contents):
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=method)
    return stream.getvalue()


def write(path, data):
    """Write a file and return its path."""
    path.write_bytes(data)
    return path
