"""How varinsts move the pointers of queues: where a variable wraps, and by how many entries it moves on (NETLIST 4.1,
4.3)."""

from buda_emu.netlist.flow.variables import KnownSettings, Notes, Value, operand_mark
from buda_emu.netlist.model import Queue, VarInst
from buda_emu.support.checker.text import plural

WRAP = "V286"
SKIPS = "V292"
STRIDE = "V293"
_WRAP_OPERAND = 3  # of `[out, incwrap, by, wrap]`
_STEP_OPERAND = 2  # likewise, `by`


class Moves:
    """The notes about varinsts that move pointers of queues otherwise than their entries are read."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._counts: dict[str, set[int]] = {}  # by queue: the inputs of the epochs that read it so far

    def read(self, queue: str, inputs: int) -> None:
        """Record that an epoch of `inputs` inputs reads a queue."""
        self._counts.setdefault(queue, set()).add(inputs)

    def note(self, step: VarInst, queue: Queue, settings: KnownSettings, moved: tuple[Value, Value]) -> None:
        """Note what is odd about a varinst that moves pointers of a queue. `settings` are the latest of the queue;
        `moved` holds increment and modulus of the varinst, None where they are not known.
        """
        by, wrap = moved
        local = settings.source.rd_ptr_local == step.out
        read = settings.source.rd_ptr_global == step.out
        if not local and not read:
            return
        if local and settings.still:
            self._note_skip(step, queue, by)
        if _is_no_multiple(wrap, 2 * queue.entries if read else queue.entries):
            self._note_wrap(step, queue, wrap, read=read)
        elif by is not None and settings.still is False and settings.number("rd_ptr_autoinc") == 1:
            self._note_stride(step, queue, by, local=local)

    def _note_skip(self, step: VarInst, queue: Queue, by: Value) -> None:
        """Note that the local pointer of a queue with prologue or epilogue, of which an execute reads one entry, moves
        on by several."""
        if by is not None and by > 1:
            message = f"moves on by {by} entries of {queue.name}, but an execute reads one: prologue or epilogue is set"
            self._notes.add(SKIPS, operand_mark(step, _STEP_OPERAND), message, about=queue.name)

    def _note_wrap(self, step: VarInst, queue: Queue, wrap: Value, *, read: bool) -> None:
        """Note that a variable wraps at another place than the pointers of a queue. `read` tells whether it is that of
        the entries that are popped; the local pointer is only looked up modulo the entries.
        """
        if read:
            period = f"the pointers of {queue.name} run modulo {2 * queue.entries}"
        else:
            period = f"the entries of {queue.name} repeat after {queue.entries}"
        message = f"{step.out} is wrapped at {wrap}, {period}"
        self._notes.add(WRAP, operand_mark(step, _WRAP_OPERAND), message, "wrap at twice the entries", queue.name)

    def _note_stride(self, step: VarInst, queue: Queue, by: int, *, local: bool) -> None:
        """Note that a pointer moves on by another number of entries than any graph reads in one execute. Several
        executes may be popped at once, so rd_ptr_global alone may move by a multiple.
        """
        counts = sorted(self._counts.get(queue.name, ()))
        fits = by in counts if local else any(by % count == 0 for count in counts)
        if fits or not counts:
            return
        read = " or ".join(map(str, counts))
        message = f"moves on by {plural(by, 'entry')} of {queue.name}, an execute reads {read}"
        self._notes.add(
            STRIDE, operand_mark(step, _STEP_OPERAND), message, "move by the graph's input_count", queue.name
        )


def _is_no_multiple(wrap: Value, period: int) -> bool:
    """Return whether a modulus is known, above 0, and no multiple of the period of a pointer."""
    return wrap is not None and wrap > 0 and wrap % period != 0
