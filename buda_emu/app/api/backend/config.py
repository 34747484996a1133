"""BackendConfig (NETLIST 7.2)."""

import os
from typing import Final

from buda_emu.app.api.backend.enums import BackendDevice, BackendType, DeviceMode
from buda_emu.spec.precision import PRECISIONS, Precision, precision_named

DEFAULT_OUTPUT = "tt_build/test_out"
_SO_IN_ANY_CASE: Final = ("--concurrent-mode",)


class BackendConfig:
    """What to run on, and where. Paths, mode and optimisation level are recorded; docs/python/backend-api.md says what
    acts.

    `TT_BACKEND_OPT_LEVEL` in the environment overrides `opt_level`. Golden ignores the precision of formats unless
    `set_golden_ignore_df_precision(False)` says otherwise; `--precision WORD` in the runtime arguments goes before.
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
        word, _ = _precision_and_rest(self.runtime_args)
        if word is None:
            return "ideal" if self.type == BackendType.Golden and self.golden_ignore_df_precision else "format"
        found = precision_named(word)
        if found is None:
            raise RuntimeError(f"runtime arguments: --precision {word!r} is not one of: {', '.join(PRECISIONS)}")
        return found

    @property
    def ignores_precision(self) -> bool:
        """Does everything run in float32, whatever the formats of the netlist?"""
        return self.precision == "ideal"

    @property
    def runtime_args_left(self) -> str:
        """Runtime arguments that do nothing here, and whose effect a caller might miss."""
        return " ".join(word for word in _precision_and_rest(self.runtime_args)[1] if word not in _SO_IN_ANY_CASE)

    def set_golden_ignore_df_precision(self, ignore: bool) -> None:
        """Let Golden run in float32 throughout (its default), or with the netlist's formats."""
        self.golden_ignore_df_precision = bool(ignore)

    def set_performance_trace_args(self, args: str) -> None:
        """Record what a device would trace. No trace is written here: `buda-emu perf` models cycles."""
        self.performance_trace_args = str(args)

    def set_runtime_args(self, args: str) -> None:
        """Arguments of the device's runtime. `--precision format|ideal|device` acts, all others are recorded.

        `--concurrent-mode`, which front ends always pass (NETLIST 12), asks for what is so here in any case: the host
        and programs may act at the same time.
        """
        self.runtime_args = str(args)


def _precision_and_rest(args: str) -> tuple[str | None, list[str]]:
    """The word after the last `--precision`, None without one, and the other arguments."""
    words = args.replace("--precision=", "--precision ").split()
    word: str | None = None
    while "--precision" in words:
        at = words.index("--precision")
        word = next(iter(words[at + 1 : at + 2]), "")
        del words[at : at + 2]
    return word, words


def _opt_level(given: int) -> int:
    text = os.environ.get("TT_BACKEND_OPT_LEVEL", "")
    if not text:
        return int(given)
    try:
        return int(text)
    except ValueError:
        raise RuntimeError(f"TT_BACKEND_OPT_LEVEL={text!r} is not an integer") from None
