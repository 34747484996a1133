"""What the compiled module shows to Python (NETLIST 7.1 to 7.3, 12): functions with their arguments, classes with their
attributes. Written from the facts, not from this project's module."""

ENUM = ("name", "value")
RESULT = ("success", "failure_type", "failure_message", "failure_target")

FUNCTIONS = {
    "push_input": None,  # two of them
    "get_output": None,
    "pop_output": None,
    "free_tensor": None,
    "translate_addresses": None,
    "tilize_tensor": None,
    "binarize_tensor": None,
    "debinarize_tensor": None,
    "get_io_size_in_bytes": {
        "data_formati": ..., "is_untilizesd": ..., "ublock_ct": ..., "ublock_rt": ..., "mblock_m": ..., "mblock_n": ...,
        "t": ..., "entries": ..., "tile_height": 32, "tile_width": 32,
    },
    "get_next_aligned_address": None,
    "get_format_from_string": None,
    "detect_available_silicon_devices": {"only_detect_mmio": True},
    "get_device_descs_for_available_devices": {"out_dir": "./tt_build"},
    "get_custom_device_desc": {
        "arch": "BackendDevice.Invalid", "mmio": False, "harvesting_mask": 0, "grid_dim": (0, 0),
        "out_dir": "./tt_build",
    },
    "get_device_cluster_yaml": {"out_dir": ...},
    "initialize_child_process": None,
    "finish_child_process": None,
    "clear_backend_param_cache": None,
    "release_backend_ptr": None,
    "get_golden_config": None,
    "load_cached_sys_param": None,
    "get_op_model_execution_cycles": None,
    "get_op_model_param": None,
}  # fmt: skip
"""Arguments that can be given by name, with their defaults; None where there are none."""

CLASSES = {
    "BackendType": ("from_string", "to_json", "from_json", *ENUM),
    "BackendDevice": ("to_string", "from_string", "to_json", "from_json", *ENUM),
    "DeviceMode": ("to_json", "from_json", *ENUM),
    "BackendStatusCode": ENUM,
    "IOType": ENUM,
    "IOLayout": ENUM,
    "BackendCompileFailure": ENUM,
    "DataFormat": ("to_json", "from_json", *ENUM),
    "BackendConfig": ("set_golden_ignore_df_precision", "set_performance_trace_args", "set_runtime_args"),
    "BackendApi": ("initialize", "finish", "run_program", "wait_for_idle", "get_queue_descriptor"),
    "DramIODesc": (
        "name", "data_format", "bufq_grid_dim_r", "bufq_grid_dim_c", "ublock_rt", "ublock_ct", "mblock_m", "mblock_n",
        "tile_height", "tile_width", "t", "hstack_factor", "vstack_factor", "stack_row_major", "s_descriptor",
        "input_count", "netlist_path",
    ),
    "StrideDescriptor": ("stride", "xy_offsets"),
    "PytorchTensorDesc": ("itemsize", "format", "shape", "strides", "dim", "print"),
    "TilizedTensorDesc": ("num_buffers", "buf_size_bytes", "format", "print"),
    "BackendBaseCompileResult": RESULT,
    "BackendFwCompileResult": RESULT,
    "BackendCompileResultPerEpoch": (
        "failure_type", "failure_message", "device_id", "temporal_epoch_id", "logical_core_x", "logical_core_y",
        "maximum_size_bytes", "allocated_size_bytes", "extra_size_bytes",
    ),
    "BackendOverlayCompileResult": (*RESULT, "failed_compile_results_per_epoch"),
    "BackendCompileResult": (*RESULT, "fw_compile_result", "overlay_compile_result"),
    "BackendDeviceDesc": ("arch", "soc_desc_yaml", "mmio", "harvesting_mask"),
    "DeviceGrid": ("r", "c"),
    "DeviceConfig": (
        "arch", "arch_name", "device_yaml", "cluster_config_yaml", "backend_type", "grid_size", "chip_ids",
        "get_harvested_cfg", "get_ethernet_connections", "get_dram_backend_reserved_max", "get_dram_num_channels",
        "get_dram_channel_capacity", "get_host_memory_channel_start_address", "get_host_memory_num_channels",
        "get_host_memory_channel_size",
    ),
    "OpModelDesc": (
        "type", "arch", "data_format", "math_fidelity", "t", "mblock_m", "mblock_n", "ublock_rt", "ublock_ct",
        "mblock_k", "ublock_kt", "sparse_indices", "sparse_nz_ublocks", "sparse_nz_strips", "approx_mode", "op_attr",
        "reduce_z", "version",
    ),
}  # fmt: skip
"""Public attributes of an instance."""

ENUMS = tuple(name for name, attributes in CLASSES.items() if "value" in attributes)
