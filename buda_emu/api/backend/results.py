"""What `BackendApi.initialize` says of a compilation (NETLIST 7.2, 12)."""

from dataclasses import dataclass, field

from buda_emu.api.backend.enums import BackendCompileFailure


@dataclass(slots=True)
class BackendBaseCompileResult:
    """Whether something was compiled, and what stopped it. A success until somebody says otherwise."""

    success: bool = True
    failure_type: BackendCompileFailure = BackendCompileFailure.Invalid
    failure_message: str = ""
    failure_target: str = ""


@dataclass(slots=True)
class BackendFwCompileResult(BackendBaseCompileResult):
    """The firmware's compilation. Never filled here: there is no firmware."""


@dataclass(slots=True)
class BackendCompileResultPerEpoch:
    """What did not fit where. Core coordinates are 255 where unknown."""

    failure_type: BackendCompileFailure = BackendCompileFailure.Invalid
    failure_message: str = ""
    device_id: int = 0
    temporal_epoch_id: int = 0
    logical_core_x: int = 255
    logical_core_y: int = 255
    maximum_size_bytes: int = 0
    allocated_size_bytes: int = 0
    extra_size_bytes: int = 0


@dataclass(slots=True)
class BackendOverlayCompileResult(BackendBaseCompileResult):
    """The overlay's compilation. Its list is always empty here: there is no overlay."""

    failed_compile_results_per_epoch: list[BackendCompileResultPerEpoch] = field(
        default_factory=list[BackendCompileResultPerEpoch]
    )


@dataclass(slots=True)
class BackendCompileResult(BackendBaseCompileResult):
    """How `BackendApi.initialize` went, filled by it."""

    fw_compile_result: BackendFwCompileResult = field(default_factory=BackendFwCompileResult)
    overlay_compile_result: BackendOverlayCompileResult = field(default_factory=BackendOverlayCompileResult)
