"""What `buda-emu debug --json` prints for each command, as a schema."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from buda_emu.report.machine_readable.schema import Row, document


def _debug() -> Any:
    stop = Row(
        reason=Literal["start", "step", "breakpoint", "interrupted", "end", "error"],
        position=str,
        text=str,
        breakpoints=list[int],
        instructions=int,
        input=int | None,
    )
    return document(
        "One line of buda-emu debug --json",
        command=str,
        kind=str,
        text=list[str],
        data=dict[str, Any],
        error=str | None,
        stop=stop,
        changed=list[str],
    )


SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {"debug": _debug}
"""By verb."""
