"""The exceptions of buda-emu, one leaf per whose fault it is (docs/architecture.md, "Errors").

The library raises, never prints and never exits. `exit_code` is what the command line turns each leaf into.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from buda_emu.netlist.diagnostics import Diagnostic


class BudaError(Exception):
    """Root of every exception that buda-emu raises on purpose."""

    exit_code: ClassVar[int] = 101


class NetlistError(BudaError):
    """The document is wrong. `diagnostics` holds every finding, each with rule id, file, line and column."""

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, diagnostics: "Sequence[Diagnostic]" = ()) -> None:
        super().__init__(message)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)


class HostError(BudaError):
    """The host caller is wrong: unknown queue, wrong tensor shape, push to a full queue, pop of an empty one."""

    exit_code: ClassVar[int] = 2


class ProgramError(BudaError):
    """The emulated program failed: uninitialised read, queue overflow, unknown variable, zero-trip loop, ..."""

    exit_code: ClassVar[int] = 4


class UnsupportedError(BudaError):
    """A construct that is understood but not emulated, said by name."""

    exit_code: ClassVar[int] = 3


class InternalError(BudaError):
    """A bug of buda-emu."""

    exit_code: ClassVar[int] = 101
