"""The option `--baseline` of the verbs that have it."""

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from buda_emu.cli.output import say
from buda_emu.errors import Exit, HostError

if TYPE_CHECKING:
    from buda_emu.report.baselines.file import Baseline
    from buda_emu.report.baselines.verdict import Comparison, Measure, Section


def open_baseline(
    args: argparse.Namespace, section: "Section", settings: Mapping[str, Any], measure: "Measure | None" = None
) -> "Baseline | None":
    """The baseline that was asked for, None without; read before the work. Raises HostError."""
    if args.baseline is None:
        if args.update_baseline:
            raise HostError("--update-baseline: which one? --baseline FILE names it")
        return None
    from buda_emu.report.baselines.file import read_baseline

    return read_baseline(args.baseline, section, settings, update=args.update_baseline, measure=measure)


def settle(held: "Comparison", *, updated: bool, tell: Callable[[str], None] = say) -> int:
    """Tell what is new, worse and mended; the exit code."""
    for line in held.lines():
        tell(line)
    return Exit.OK if updated or held.holds else Exit.DIFFERS
