"""What other packages add by entry points, such as op types and kinds of documents: how it is loaded, and which of
these packages an exception came from."""

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeVar

from buda_emu.support.errors import HostError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OPS: Final = "buda_emu.ops"
"""The group of entry points by which other packages declare op types."""
DOCUMENTS: Final = "buda_emu.documents"
"""The group of entry points by which other packages declare kinds of documents."""
T = TypeVar("T")


def declared_by_others(group: str, type: type[T]) -> Iterator[T]:
    """Yield the objects of all entry points of a group. Raises HostError, with the name of the package, for an entry
    point that cannot be imported, or whose object is no `type` with the entry point's name."""
    from importlib.metadata import entry_points  # takes longer than the check of a small netlist

    for point in entry_points(group=group):
        declared = _load(point)
        if not isinstance(declared, type) or getattr(declared, "name", None) != point.name:
            noun = type.__name__
            raise HostError(f"{_describe(point)} is not a {noun} named {point.name!r}, but {declared!r}")
        yield declared


def _load(point: "EntryPoint") -> object:
    """Import the object of an entry point. Raises HostError where it is not there; what its module raises by itself
    passes through."""
    try:
        return point.load()
    except (ModuleNotFoundError, AttributeError) as error:
        raise HostError(f"{_describe(point)} cannot be imported: {error}") from error


def _describe(point: "EntryPoint") -> str:
    """Return an entry point with its package, for messages."""
    package = point.dist.name if point.dist is not None else point.value
    return f"package {package}: entry point {point.name} of {point.group} ({point.value})"


def package_at_fault(traceback: TracebackType | None, this_package: str) -> str:
    """Return the name of the package that adds to this one and from whose code an exception came; "" where it came from
    the package `this_package`. Frames of all further packages are passed over: whoever called them is at fault."""
    from importlib.metadata import entry_points

    adding: dict[str, str] = {}
    for group in (OPS, DOCUMENTS):
        for point in entry_points(group=group):
            top = point.module.partition(".")[0]
            adding[top] = point.dist.name if point.dist is not None else top
    at_fault = ""
    while traceback is not None:
        top = str(traceback.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if top == this_package:
            at_fault = ""
        elif top in adding:
            at_fault = adding[top]
        traceback = traceback.tb_next
    return at_fault
