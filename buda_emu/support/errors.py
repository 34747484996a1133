"""The exceptions of buda-emu, one class for each party that can be at fault (docs/architecture.md, "Errors").

The library raises, never prints and never exits. `exit_code` is what the command line turns each leaf into.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:  # data only, below the errors that carry it
    from buda_emu.support.checker.diagnostic import Diagnostic
    from buda_emu.support.stopped import Stopped


class Exit(IntEnum):
    """Every exit code of the command (docs/run/run.md, "Exit codes")."""

    OK = 0
    DIFFERS = 1
    """A comparison or a performance check was outside of its tolerance, or a baseline does not hold."""
    REFUSED = 2
    """Wrong usage, a document that is refused, inputs that do not fit."""
    UNSUPPORTED = 3
    FAILED = 4
    """The emulated program did."""
    INTERNAL = 101
    INTERRUPTED = 130


class BudaError(Exception):
    """Root of every exception that buda-emu raises on purpose."""

    exit_code: ClassVar[int] = Exit.INTERNAL


class DocumentError(BudaError):
    """The document is wrong. `diagnostics` holds every finding, each with its rule and place; one leaf for each kind
    of document."""

    exit_code: ClassVar[int] = Exit.REFUSED
    is_report: ClassVar[bool] = True  # the message is all findings as text, where there are any

    def __init__(self, message: str, diagnostics: "Sequence[Diagnostic]" = ()) -> None:
        super().__init__(message)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)


class NetlistError(DocumentError):
    """A netlist is refused."""


class ScheduleError(DocumentError):
    """A Gemini schedule is refused (`buda_emu.foreign.gemini`)."""


class VpuxError(DocumentError):
    """A VPUX document is refused (`buda_emu.foreign.vpux`)."""


class PackageError(DocumentError):
    """A DarwiNN package is refused (`buda_emu.foreign.darwinn`)."""


class HostError(BudaError):
    """The host caller is wrong: unknown queue, wrong tensor shape, push to a full queue, pop of an empty one."""

    exit_code: ClassVar[int] = Exit.REFUSED


class HostTimeoutError(HostError):
    """A push found no room, or a pop or peek too few entries, within its time. `done`: entries pushed before that."""

    def __init__(self, message: str, done: int = 0) -> None:
        super().__init__(message)
        self.done = done


class RunCancelledError(HostError):
    """The program was stopped by `Run.cancel` or by closing the machine."""


class ProgramError(BudaError):
    """The emulated program failed: uninitialised read, queue overflow, unknown variable, zero-trip loop, ...

    `kind` (STOP_KINDS), `queue` and `op` are what the place that raises it knows, `rule` is the id of the rule that a
    schedule broke while it ran. An error that leaves
    `Emulator.run` has `stopped`, everything around it (docs/run/stopped-programs.md), and prints it all.
    """

    exit_code: ClassVar[int] = Exit.FAILED

    def __init__(self, message: str, *, kind: str = "value", queue: str = "", op: str = "", rule: str = "") -> None:
        super().__init__(message)
        self.rule = rule
        self.kind = kind
        self.queue = queue
        self.op = op
        self.input: tuple[int, int] | None = None  # of the epoch, from 1, and how many it has
        self.stopped: Stopped | None = None

    @property
    def problem(self) -> str:
        """What went wrong, on one line."""
        return str(self.args[0])

    def within(self, where: str) -> None:
        """Say where, before what."""
        self.args = (f"{where}: {self.problem}",)

    def belongs_to(self, op: str) -> None:
        """Say whose it is, if nobody has."""
        self.op = self.op or op
        self.kind = "op" if self.kind == "value" else self.kind

    def __str__(self) -> str:
        return self.stopped.report() if self.stopped is not None else self.problem


STOP_KINDS: Mapping[str, str] = {
    "full": "an op writes to a full queue, so its epoch would wait for ever",
    "empty": "an op reads from an empty queue, so its epoch would wait for ever",
    "unwritten": "an op reads an entry that nothing has written",
    "pointer": "a pointer is outside the slots of its ram, or negative",
    "settings": "queue settings that exclude each other, or an epoch that does not fit its queue",
    "value": "a variable, parameter or operand without a usable value",
    "loop": "a loop that does not run, or an endloop without one",
    "allocation": "allocate_queue or deallocate_queue of memory that is taken or not held",
    "deadlock": "tasks of a schedule that wait for each other for ever, or for something that no task provides",
    "op": "an op cannot compute with its operands",
    "limit": "more work or memory than the limits allow",
}
"""What can stop a program: `ProgramError.kind` and what it means."""


class UnsupportedError(BudaError):
    """A construct that is understood but not emulated, said by name: `what`, where programs may ask."""

    exit_code: ClassVar[int] = Exit.UNSUPPORTED

    def __init__(self, message: str, what: str = "") -> None:
        super().__init__(message)
        self.what = what


class InternalError(BudaError):
    """A bug of buda-emu."""

    exit_code: ClassVar[int] = Exit.INTERNAL


class NetlistWarning(UserWarning):
    """The checker has findings about a netlist that is loaded all the same."""


class StochasticRoundingWarning(UserWarning):
    """An op asks for stochastic rounding, and precision "device" rounds deterministically instead."""
