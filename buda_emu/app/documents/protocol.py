"""What an opened document of any kind can do, and what the module that opens it offers."""

from collections.abc import Mapping
from typing import Protocol

from buda_emu.performance.timeline.picture import TimelinePicture
from buda_emu.support.checker import CheckResult, Options


class Document(Protocol):
    """A document that was read. What a rule refuses need not be refused when it is opened: a check says it."""

    def summary(self) -> Mapping[str, int | str]:
        """What it is, in figures by name."""
        ...

    def timeline(self) -> TimelinePicture:
        """When everything in it happens, with the defaults of its kind, as a picture for a page or a trace.

        Raises UnsupportedError for what is not emulated, ProgramError for what stops.
        """
        ...


class DocumentModule(Protocol):
    """What the module of a kind of document offers."""

    def load(self, path: str, /) -> Document:
        """Open a file. Raises DocumentError with the findings for one that cannot be opened, OSError."""
        ...

    def check_file(self, path: str, options: Options, /) -> CheckResult[object]:
        """Every finding about a file; never raises for what is in it. Raises OSError where it cannot be read."""
        ...
