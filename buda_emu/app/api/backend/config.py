"""BackendConfig, the settings of a backend (NETLIST 7.2)."""

import os
from typing import Final

from buda_emu.app.api.backend.enums import BackendDevice, BackendType, DeviceMode
from buda_emu.spec.precision import PRECISIONS, Precision, find_precision

DEFAULT_OUTPUT = "tt_build/test_out"
_ALWAYS_TRUE: Final = ("--concurrent-mode",)
"""Runtime arguments that ask for behaviour which the emulated machine has in any case."""


class BackendConfig:
    """The settings of a backend: its type, the architecture, paths and options. Most are only recorded;
    docs/python/backend-api.md says which have an effect.

    `TT_BACKEND_OPT_LEVEL` in the environment overrides `opt_level`. Golden ignores the precision of formats unless
    `set_golden_ignore_df_precision(False)` says otherwise; `--precision WORD` in the runtime arguments outranks that.
    """

    def __init__(
        self,
        type: BackendType,
        device: BackendDevice,
        mode: DeviceMode = DeviceMode.CompileAndRun,
        opt_level: int = 0,
        output_dir: str = DEFAULT_OUTPUT,
        soc_descriptor_path: str = "",
        cluster_descriptor_path: str = "",
    ) -> None:
        self.type = type
        self.device = device
        self.mode = mode
        self.opt_level = _opt_level(opt_level)
        self.output_dir = str(output_dir)
        self.soc_descriptor_path = str(soc_descriptor_path)
        self.cluster_descriptor_path = str(cluster_descriptor_path)
        self.golden_ignore_df_precision = type == BackendType.Golden
        self.performance_trace_args = ""
        self.runtime_args = ""

    @property
    def precision(self) -> Precision:
        """The precision of the machine: that of the runtime arguments, else "ideal" for a Golden that ignores formats,
        else "format". Raises RuntimeError for an unknown word."""
        word, _ = _split_precision(self.runtime_args)
        if word is None:
            if self.type == BackendType.Golden and self.golden_ignore_df_precision:
                return "ideal"
            return "format"
        precision = find_precision(word)
        if precision is None:
            raise RuntimeError(f"runtime arguments: --precision {word!r} is not one of: {', '.join(PRECISIONS)}")
        return precision

    @property
    def ignores_precision(self) -> bool:
        """True if everything runs in float32, whatever the formats of the netlist."""
        return self.precision == "ideal"

    @property
    def runtime_args_left(self) -> str:
        """The runtime arguments that have no effect on an emulated machine, of which a caller should be warned."""
        _, arguments = _split_precision(self.runtime_args)
        return " ".join(word for word in arguments if word not in _ALWAYS_TRUE)

    def set_golden_ignore_df_precision(self, ignore: bool) -> None:
        """Let Golden run in float32 throughout (its default), or with the netlist's formats."""
        self.golden_ignore_df_precision = bool(ignore)

    def set_performance_trace_args(self, args: str) -> None:
        """Record the performance events that a device would trace. No trace is written: `buda-emu perf` models
        cycles."""
        self.performance_trace_args = str(args)

    def set_runtime_args(self, args: str) -> None:
        """Set the arguments of the device's runtime. `--precision format|ideal|device` has an effect, all others are
        only recorded.

        `--concurrent-mode`, which front ends always pass (NETLIST 12), asks that the host and programs may act at the
        same time, which an emulated machine always allows.
        """
        self.runtime_args = str(args)


def _split_precision(args: str) -> tuple[str | None, list[str]]:
    """Return the word after the last `--precision`, None without one, and the other arguments."""
    words = args.replace("--precision=", "--precision ").split()
    precision: str | None = None
    while "--precision" in words:
        place = words.index("--precision")
        precision = next(iter(words[place + 1 : place + 2]), "")
        del words[place : place + 2]
    return precision, words


def _opt_level(argument: int) -> int:
    """Return the optimisation level of the environment, else that of the argument. Raises RuntimeError for a text that
    is not an integer."""
    text = os.environ.get("TT_BACKEND_OPT_LEVEL", "")
    if not text:
        return int(argument)
    try:
        return int(text)
    except ValueError:
        raise RuntimeError(f"TT_BACKEND_OPT_LEVEL={text!r} is not an integer") from None
