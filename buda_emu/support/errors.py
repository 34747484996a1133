"""The exceptions of buda-emu, one class for each party that can be at fault (docs/architecture.md, "Errors").

The library raises, never prints and never exits. `exit_code` is what the command line turns each leaf into.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:  # data only, below the errors that carry it
    from buda_emu.support.checker.diagnostic import Diagnostic
    from buda_emu.support.stopped import Stopped


class Exit(IntEnum):
    """The exit codes of the command (docs/run/run.md, "Exit codes")."""

    OK = 0
    DIFFERS = 1
    """A comparison or a performance check was outside of its tolerance, or a baseline does not hold."""
    REFUSED = 2
    """Wrong usage, a document that is refused, inputs that do not fit."""
    UNSUPPORTED = 3
    FAILED = 4
    """The emulated program did."""
    INTERNAL = 101
    INTERRUPTED = 130  # 128 and the number of SIGINT, as shells report it


_NOTEBOOK: Final = ("/IPython/", "/ipykernel/")
"""Parts of the paths of files that run the cells of a notebook."""
_CELL: Final = ("/ipykernel_", "<ipython-input")
"""Parts of the names that cells have in tracebacks."""


def _caller_lines(error: BaseException) -> Iterator[str]:
    """Yield a line for each frame of an exception that belongs neither to this package nor to what runs a notebook,
    from the outermost to the innermost: its place and its source."""
    import traceback  # only a notebook needs it

    package = __file__.removesuffix(f"support{os.sep}errors.py")
    for frame in traceback.extract_tb(error.__traceback__):
        file = frame.filename.replace("\\", "/")
        if frame.filename.startswith(package) or any(part in file for part in _NOTEBOOK):
            continue
        if any(part in file for part in _CELL):
            place = f"cell, line {frame.lineno}"
        else:
            place = f'File "{frame.filename}", line {frame.lineno}, in {frame.name}'
        if frame.line:
            place = f"{place}: {frame.line}"
        yield place


class BudaError(Exception):
    """The root of all exceptions that buda-emu raises on purpose."""

    exit_code: ClassVar[int] = Exit.INTERNAL

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows of the exception: the caller's lines, and the message. The frames of this
        package, which may be hundreds of lines, tell whoever made the mistake nothing."""
        return [*_caller_lines(self), f"{type(self).__name__}: {self}"]


class DocumentError(BudaError):
    """Raised for a document that is wrong. `diagnostics` holds every finding, each with its rule and place. There is
    one subclass for each kind of document."""

    exit_code: ClassVar[int] = Exit.REFUSED
    is_report: ClassVar[bool] = True  # the message is all findings as text, where there are any

    def __init__(self, message: str, diagnostics: "Sequence[Diagnostic]" = ()) -> None:
        super().__init__(message)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)


class NetlistError(DocumentError):
    """Raised for a netlist that breaks a rule."""


class ScheduleError(DocumentError):
    """Raised for a Gemini schedule that breaks a rule (`buda_emu.foreign.gemini`)."""


class VpuxError(DocumentError):
    """Raised for a VPUX document that breaks a rule (`buda_emu.foreign.vpux`)."""


class PackageError(DocumentError):
    """Raised for a DarwiNN package that breaks a rule (`buda_emu.foreign.darwinn`)."""


class HostError(BudaError):
    """Raised for a mistake of the host program: unknown queue, wrong tensor shape, push to a full queue, pop of an
    empty one."""

    exit_code: ClassVar[int] = Exit.REFUSED


class HostTimeoutError(HostError):
    """Raised where a push finds no room, or a pop or peek too few entries, within its time. `done`: entries pushed
    before that."""

    def __init__(self, message: str, done: int = 0) -> None:
        super().__init__(message)
        self.done = done


class RunCancelledError(HostError):
    """Raised where `Run.cancel`, or closing the machine, stopped the program."""


class ProgramError(BudaError):
    """Raised where the emulated program fails: uninitialised read, queue overflow, unknown variable, zero-trip loop,
    ...

    `kind` (STOP_KINDS), `queue` and `op` are set as far as the place that raises knows them, `rule` is the id of the
    rule that a schedule broke while it ran. An error that leaves `Emulator.run` has `stopped`, the report of everything
    around it (docs/run/stopped-programs.md), and prints it all.
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
        """The message without the report, on one line."""
        return str(self.args[0])

    def within(self, place: str) -> None:
        """Put the place in front of the message."""
        self.args = (f"{place}: {self.problem}",)

    def belongs_to(self, op: str) -> None:
        """Set the op at fault, unless the error has one already, and the kind "op" where the error has no kind of
        its own."""
        self.op = self.op or op
        if self.kind == "value":
            self.kind = "op"

    def __str__(self) -> str:
        if self.stopped is not None:
            return self.stopped.report()
        return self.problem


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
    """Raised for a construct that is understood but not emulated. `what` names it where programs may ask for it, `rule`
    is the rule of the checker that refuses it as well, "" if none does."""

    exit_code: ClassVar[int] = Exit.UNSUPPORTED

    def __init__(self, message: str, what: str = "", rule: str = "") -> None:
        super().__init__(message)
        self.what = what
        self.rule = rule


class InternalError(BudaError):
    """Raised for a bug of buda-emu itself."""

    exit_code: ClassVar[int] = Exit.INTERNAL

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows of the exception: all of its frames, for who looks for the bug."""
        from traceback import format_exception

        return "".join(format_exception(self)).splitlines()


class NetlistWarning(UserWarning):
    """Warns that the checker has findings about a netlist that is loaded all the same."""


class HostWarning(UserWarning):
    """Warns of a call that is carried out, and most likely not what was meant."""


class StochasticRoundingWarning(UserWarning):
    """Warns that an op asks for stochastic rounding, and precision "device" rounds deterministically instead."""
