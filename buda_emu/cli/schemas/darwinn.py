"""What `buda-emu darwinn` prints as JSON, as schemas."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypedDict

from buda_emu.checker import Severity


class Found(TypedDict):
    """A finding in short. `where`: byte offset in the file, table and field."""

    rule: str
    severity: Severity
    where: str
    message: str


class Link(TypedDict):
    """A link to the chip."""

    name: str
    bytes_per_second: int
    header: int
    says: str


class Assumed(TypedDict):
    """What a replay took for granted."""

    transport: str
    overlap: bool
    link: Link | None
    frequency_hz: int | None
    sram_bytes: int


class Output(TypedDict):
    """What a reference computed; `path`: where it was written."""

    dtype: str
    shape: list[int]
    name: str
    computed_by: Literal["reference"]
    path: str | None


class File(TypedDict):
    """A file that was written."""

    path: str
    bytes: int


def _darwinn(title: str, *parts: Any, optional: tuple[str, ...] = ()) -> Any:
    from buda_emu.report.machine_readable.schema import document

    return document(f"Results of buda-emu darwinn {title} --json", *parts, optional=optional)


def _darwinn_inspect() -> Any:
    from buda_emu.darwinn.summary import Summary

    own = {"path": str, "verdict": str, "findings": list[Found], "summary": Summary, "tree": dict[str, Any]}
    return _darwinn("inspect", own)


def _darwinn_check() -> Any:
    from buda_emu.checker.schema import schema

    return schema("darwinn check --json", runtime={"type": "integer"})


def _darwinn_run() -> Any:
    from buda_emu.darwinn.replaying.result import Event, Eviction
    from buda_emu.timeline.hazards import Hazard

    own = {
        "assumptions": Assumed, "packages": list[str], "requests": list[int], "events": list[Event],
        "evictions": list[Eviction], "resets": list[int], "tokens": list[int], "resident": list[int],
        "bytes": dict[str, int], "request_end_ns": list[int], "unknown_compute": int, "warnings": list[str],
        "hazards": list[Hazard] | None, "outputs": list[Output],
    }  # fmt: skip
    return _darwinn("run", own, optional=tuple(name for name in own if name != "outputs"))


def _darwinn_verify() -> Any:
    from buda_emu.darwinn.verifying import Verification

    return _darwinn("verify", {"path": str, "source": str, "matches": bool}, Verification)


def _darwinn_link() -> Any:
    return _darwinn("link", {"path": str, "executable": str, "files": list[str]})


def _darwinn_relayout() -> Any:
    return _darwinn("relayout", {"path": str, "layer": str, "dtype": str, "shape": list[int]})


def _darwinn_extract() -> Any:
    return _darwinn("extract", {"path": str, "files": list[File]})


SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {
    "darwinn inspect": _darwinn_inspect,
    "darwinn check": _darwinn_check,
    "darwinn run": _darwinn_run,
    "darwinn verify": _darwinn_verify,
    "darwinn link": _darwinn_link,
    "darwinn relayout": _darwinn_relayout,
    "darwinn extract": _darwinn_extract,
}
"""By verb."""
