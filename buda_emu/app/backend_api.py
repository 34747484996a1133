"""PyBUDA's `_C.backend_api` on an emulated machine: the same names, signatures and status codes (NETLIST 7).

docs/python/backend-api.md says how to put it in place, and what each call does here. Importing it loads neither numpy
nor torch nor numba.
"""

from buda_emu.app.api.backend.config import BackendConfig
from buda_emu.app.api.backend.descriptors import DramIODesc
from buda_emu.app.api.backend.devices import (
    BackendDeviceDesc,
    DeviceConfig,
    DeviceGrid,
    detect_available_silicon_devices,
    get_custom_device_desc,
    get_device_cluster_yaml,
    get_device_descs_for_available_devices,
    load_cached_sys_param,
    present_devices,
)
from buda_emu.app.api.backend.enums import (
    BackendCompileFailure,
    BackendDevice,
    BackendStatusCode,
    BackendType,
    DataFormat,
    DeviceMode,
    IOLayout,
    IOType,
    get_format_from_string,
)
from buda_emu.app.api.backend.op_model import OpModelDesc, get_op_model_execution_cycles, get_op_model_param
from buda_emu.app.api.backend.process_family import finish_child_process, initialize_child_process
from buda_emu.app.api.backend.session import (
    BackendApi,
    BackendBaseCompileResult,
    BackendCompileResult,
    BackendCompileResultPerEpoch,
    BackendFwCompileResult,
    BackendOverlayCompileResult,
    clear_backend_param_cache,
    free_tensor,
    get_golden_config,
    get_io_size_in_bytes,
    get_next_aligned_address,
    get_output,
    pop_output,
    push_input,
    release_backend_ptr,
    tilize_tensor,
    translate_addresses,
)
from buda_emu.app.api.backend.status import BackendWarning
from buda_emu.app.api.backend.tensor_descs import PytorchTensorDesc, StrideDescriptor, TilizedTensorDesc
from buda_emu.app.api.backend.tensor_files import binarize_tensor, debinarize_tensor

__all__ = [
    "BackendApi",
    "BackendBaseCompileResult",
    "BackendCompileFailure",
    "BackendCompileResult",
    "BackendCompileResultPerEpoch",
    "BackendConfig",
    "BackendDevice",
    "BackendDeviceDesc",
    "BackendFwCompileResult",
    "BackendOverlayCompileResult",
    "BackendStatusCode",
    "BackendType",
    "BackendWarning",
    "DataFormat",
    "DeviceConfig",
    "DeviceGrid",
    "DeviceMode",
    "DramIODesc",
    "IOLayout",
    "IOType",
    "OpModelDesc",
    "PytorchTensorDesc",
    "StrideDescriptor",
    "TilizedTensorDesc",
    "binarize_tensor",
    "clear_backend_param_cache",
    "debinarize_tensor",
    "detect_available_silicon_devices",
    "finish_child_process",
    "free_tensor",
    "get_custom_device_desc",
    "get_device_cluster_yaml",
    "get_device_descs_for_available_devices",
    "get_format_from_string",
    "get_golden_config",
    "get_io_size_in_bytes",
    "get_next_aligned_address",
    "get_op_model_execution_cycles",
    "get_op_model_param",
    "get_output",
    "initialize_child_process",
    "load_cached_sys_param",
    "pop_output",
    "present_devices",
    "push_input",
    "release_backend_ptr",
    "tilize_tensor",
    "translate_addresses",
]
