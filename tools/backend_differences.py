"""How `buda_emu.app.backend_api` differs from the compiled module: the list of docs/python/backend-api.md.

Each public name that only one of the two has, and each whose signature or fields differ, is named here; a test keeps it
up to date.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. `names` are the public names that it is about, as `Class` or `Class.member`."""

    names: tuple[str, ...]
    there: str
    """The behaviour of the compiled module."""
    here: str
    """The behaviour of this package."""


def _of(*names: str, **behaviour: str) -> Difference:
    """Return the difference of some names, with `there` and `here` by keyword."""
    return Difference(names, **behaviour)


DIFFERENCES: Final = (
    _of("PytorchTensorDesc", there="the buffer's element code is `f`, whatever the item size",
        here="it states the format"),
    _of("PytorchTensorDesc", there="takes PyTorch tensors and capsules",
        here="takes numpy arrays and any contiguous buffer, too"),
    _of("PytorchTensorDesc", there="unpickled, it points to its address, whatever is there now",
        here="an error if that memory is gone"),
    _of("PytorchTensorDesc.adopt", "PytorchTensorDesc.address", "PytorchTensorDesc.alive",
        "PytorchTensorDesc.backend_owned", "PytorchTensorDesc.buffer_source", "PytorchTensorDesc.elements",
        "PytorchTensorDesc.release", "TilizedTensorDesc.adopt", "TilizedTensorDesc.buffers", "TilizedTensorDesc.data",
        "TilizedTensorDesc.release", there="–", here="used by this module's own functions"),
    _of("push_input", there="Golden overwrites the oldest entry of a full queue, and pushes several entries to one "
        "slot of a ram", here="a queue holds its `entries`, a ram takes several entries in consecutive slots, as on "
        "silicon ([deviations.md](../reference/deviations.md))"),
    _of("push_input", there="Golden counts elements", here="an entry has the queue's own t, rows and columns, except "
        "in raw and flat queues"),
    _of("push_input", there="packed Fp8_e4m3 is taken", here="refused with formats on: each rounding would change it"),
    _of("get_output", there="a dimension that is swapped with the batch is renamed", here="it is moved"),
    _of("get_output", there="Golden gives the contents of the slots of a queue that is not empty",
        here="only entries that were pushed are returned"),
    _of("translate_addresses", there="fills in host addresses",
        here="there are none; Success, or on an emulated device RuntimeError when the machine is gone"),
    _of("DataFormat", there="Fp8_e4m3, Tf32 and UInt8 have no name in Python", here="neither: their `name` is `???`, "
        "but queues of these formats are pushed and read"),
    _of("DataFormat", there="`pybuda._C` has the enum", here="a member of another module is accepted by name "
    "or number; results are of this enum, and compare only with its own members"),
    _of("BackendType", there="Silicon, Versim, Emulation and Model are four things",
        here="all are one emulated device"),
    _of("BackendType", there="`from_json` knows `NoBackend`, not the `Invalid` that `to_json` writes",
        here="it knows both"),
    _of("BackendConfig", there="all seven arguments are needed, and nothing can be read back", here="only type and "
        "device are needed; the rest has the C++ defaults, and all are attributes"),
    _of("BackendConfig.cluster_descriptor_path", "BackendConfig.device", "BackendConfig.golden_ignore_df_precision",
        "BackendConfig.ignores_precision", "BackendConfig.mode", "BackendConfig.opt_level", "BackendConfig.output_dir",
        "BackendConfig.performance_trace_args", "BackendConfig.precision", "BackendConfig.runtime_args",
        "BackendConfig.runtime_args_left", "BackendConfig.soc_descriptor_path", "BackendConfig.type",
        there="–", here="attributes with the values that were set"),
    _of("BackendConfig", there="descriptors of SOC and cluster decide rows and chips", here="recorded; netlists run on "
        "the whole chips of the tables"),
    _of("BackendConfig", there="`TT_BACKEND_OPT_LEVEL` that is not a number is 0", here="a RuntimeError"),
    _of("BackendApi.memory_barrier", "BackendApi.get_programs", there="in C++ only", here="in Python, too"),
    _of("BackendApi", there="compiles the netlist, and writes what it compiled", here="nothing is compiled or written; "
        "the rules of stages N and R stand for the compiler"),
    _of("BackendApi", there="several on one netlist are several", here="the second takes the place of the first, with "
        "a warning"),
    _of("DramIODesc", there="the compiled class cannot be made without a backend's help", here="`DramIODesc()` is an "
        "empty one; the fields of its pickle are attributes"),
    _of("DramIODesc.backend_type", "DramIODesc.bufq_entry_size", "DramIODesc.bufq_num_slots",
        "DramIODesc.bufq_start_addr_channel", "DramIODesc.io_type", "DramIODesc.layout", there="in the pickle only",
        here="attributes"),
    _of("DeviceConfig", there="all seven arguments are needed", here="only the architecture is"),
    _of("DeviceConfig", there="parameters of a file must equal those of the machine",
        here="they take precedence over the tables of this package; `params_to_ignore` are left out"),
    _of("DeviceConfig", there="a wrong chip id is detected later", here="at once, where a cluster file is given"),
    _of("get_custom_device_desc", there="any grid that has its own file", here="any within the whole one"),
    _of("detect_available_silicon_devices", "get_device_descs_for_available_devices", "get_device_cluster_yaml",
        there="the hardware's", here="those of `BUDA_EMU_DEVICES` or `present_devices`, else none"),
    _of("get_device_cluster_yaml", there="`out_dir` is needed", here="`./tt_build` by default"),
    _of("present_devices", there="–", here="shows emulated devices to a front end, as `BUDA_EMU_DEVICES` does"),
    _of("finish_child_process", "initialize_child_process", there="other processes open the device themselves",
        here="they reach this one's machine over a local socket"),
    _of("get_op_model_param", there="logs a warning for an unknown name", here="a `BackendWarning`"),
    _of("OpModelDesc.vector_mode", "OpModelDesc.l1_accumulate", there="–", here="two more fields that cost cycles"),
    _of("BackendWarning", there="–", here="the class of all warnings of this module"),
)  # fmt: skip
"""The differences in the order of the page."""
