"""Commands of breakpoints."""

import re

from buda_emu.debugger import inspection
from buda_emu.debugger.answer import Answer, answer
from buda_emu.debugger.breakpoints import Breakpoint
from buda_emu.debugger.console.command import command
from buda_emu.debugger.console.console import Console
from buda_emu.debugger.console.words import number
from buda_emu.errors import HostError


def _set(found: Breakpoint) -> Answer:
    kind = "log point" if found.log else "tbreak" if found.temporary else "breakpoint"
    own = f" if {found.condition_text}" if found.condition_text and found.kind != "if" else ""
    told = f", tells {found.log_text}" if found.log else ""
    return answer("breakpoint", [f"{kind} {found.number}: {found.text}{own}{told}"], breakpoint=found.as_json())


def _break(console: Console, text: str, *, temporary: bool = False, log: str = "") -> Answer:
    where, condition = text, ""
    if text == "if" or text.startswith("if "):
        where, condition = "", text[2:].strip()
    elif " if " in text:
        where, _, condition = text.partition(" if ")
    if not where and not condition and not text:  # here, as gdb has it
        engine = console.run.engine
        where = f"op {engine.op_now.name}" if engine.op_now is not None else f"{engine.program}:{engine.index}"
        if not engine.program:
            raise HostError("break WHERE: the run has not begun, so there is no place to stop at again")
    return _set(console.run.break_at(where.strip(), condition.strip(), temporary=temporary, log=log))


@command("break [WHERE] [if CONDITION]", "break if nan(op:exp)", "stopping", aliases=("b",), takes=("places",))
def set_breakpoint(console: Console, text: str) -> Answer:
    """Stop there. WHERE is a line of the netlist, PROGRAM:INSTRUCTION, the name of an op, graph, program or queue, or:
    `op NAME`, `graph NAME`, `line N`, `instruction [PROGRAM] N`, `input N [GRAPH]`, `pointer QUEUE [VALUE]`, `wrap
    QUEUE`, `node NAME` of a compiled model, `nan` for a NaN in any op's result, `inf` for an infinity, too. CONDITION
    is an expression (help expressions); alone it stops when a tensor that it names is new and it holds, or when it
    becomes true.
    """
    return _break(console, text)


@command("tbreak [WHERE] [if CONDITION]", "tbreak graph fwd", "stopping", aliases=("tb",), takes=("places",))
def set_temporary(console: Console, text: str) -> Answer:
    """As break, once."""
    return _break(console, text, temporary=True)


@command('dprintf WHERE [if CONDITION], "TEXT"', 'dprintf exp, "input {input}: {q}"', "stopping", takes=("places",))
def log_point(console: Console, text: str) -> Answer:
    """Print TEXT whenever the run comes there, and do not stop. Between braces it has expressions (help expressions),
    or queues and ops, of which it tells the figures. WHERE is that of break.
    """
    found = re.fullmatch(r'(.*?),\s*"(.*)"', text)
    if found is None:
        raise HostError('dprintf WHERE, "TEXT with {expressions}"')
    return _break(console, found[1], log=found[2])


@command("watch QUEUE", "watch out", "stopping", takes=("queues",))
def watch(console: Console, text: str) -> Answer:
    """Stop when an entry of a queue or ram is written, or a pointer of it moves."""
    if not text:
        raise HostError("watch QUEUE")
    return _set(console.run.watch(text))


@command("condition N [CONDITION]", "condition 1 $i == 3", "stopping", takes=("breakpoints",))
def condition(console: Console, text: str) -> Answer:
    """Let a breakpoint stop only where it holds; without one, always."""
    which, _, own = text.partition(" ")
    return _set(console.run.set_condition(number(which, "a breakpoint"), own.strip()))


@command("ignore N COUNT", "ignore 1 10", "stopping", takes=("breakpoints",))
def ignore(console: Console, text: str) -> Answer:
    """Pass over the next COUNT hits of a breakpoint."""
    which, _, times = text.partition(" ")
    found = console.run.breakpoints.of(number(which, "a breakpoint"))
    found.ignore = number(times, "how often")
    return _set(found)


def _each(console: Console, text: str) -> list[Breakpoint]:
    own = console.run.breakpoints
    return [own.of(number(word, "a breakpoint")) for word in text.split()] if text else list(own.items.values())


@command("delete [N ...]", "delete 1", "stopping", aliases=("d",), takes=("breakpoints",))
def delete(console: Console, text: str) -> Answer:
    """Take breakpoints away; without a number all."""
    for found in _each(console, text):
        del console.run.breakpoints.items[found.number]
    return inspection.breakpoints(console.run)


@command("disable [N ...]", "disable 1", "stopping", takes=("breakpoints",))
def disable(console: Console, text: str) -> Answer:
    """Let breakpoints stop no more until they are enabled."""
    for found in _each(console, text):
        found.enabled = False
    return inspection.breakpoints(console.run)


@command("enable [N ...]", "enable 1", "stopping", takes=("breakpoints",))
def enable(console: Console, text: str) -> Answer:
    """Let breakpoints stop again."""
    for found in _each(console, text):
        found.enabled = True
    return inspection.breakpoints(console.run)
