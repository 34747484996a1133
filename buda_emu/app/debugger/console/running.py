"""Commands of breakpoints, and commands that run the program forward and backward."""

import re

from buda_emu.app.debugger import inspection
from buda_emu.app.debugger.answer import Answer, answer
from buda_emu.app.debugger.breakpoints import Breakpoint, place
from buda_emu.app.debugger.console.console import Console, command, count, number, one_of
from buda_emu.app.debugger.machine.backwards import BACK
from buda_emu.app.debugger.machine.stop import Kind
from buda_emu.support.errors import HostError


def _set(found: Breakpoint) -> Answer:
    kind = "log point" if found.log else "tbreak" if found.temporary else "breakpoint"
    own = f" if {found.condition_text}" if found.condition_text and found.kind != "if" else ""
    told = f", tells {found.log_text}" if found.log else ""
    return answer("breakpoint", [f"{kind} {found.number}: {found.text}{own}{told}"], breakpoint=found.as_json())


def _break(console: Console, text: str, *, temporary: bool = False, log: str = "") -> Answer:
    where = text
    condition = ""
    if text == "if" or text.startswith("if "):
        where = ""
        condition = text[2:].strip()
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


def _go(console: Console, kind: Kind, text: str) -> Answer:
    times = count(text, 1)
    if console.inner is not None:
        return console.inner_move(times) if kind in ("step", "next") else console.left_then(lambda: console.go(kind))
    return console.go(kind, times)


@command("step [N]", "step 3", "going", aliases=("s",), repeats=True)
def step(console: Console, text: str) -> Answer:
    """Run to the next instruction, or the N-th; an epoch that runs is run to its end. Inside of an op (`into`): the
    next unit.
    """
    return _go(console, "step", text)


@command("next [N]", "next", "going", aliases=("n",), repeats=True)
def next_op(console: Console, text: str) -> Answer:
    """Run to the next op, or the N-th; outside of epochs to the next instruction. Inside of an op (`into`): the next
    unit.
    """
    return _go(console, "next", text)


@command("input [N]", "input 2", "going", repeats=True)
def next_input(console: Console, text: str) -> Answer:
    """Run to the first op of the next input of an epoch, or the N-th."""
    return _go(console, "input", text)


@command("epoch [N]", "epoch", "going", repeats=True)
def next_epoch(console: Console, text: str) -> Answer:
    """Run to the first op of the next epoch, or the N-th."""
    return _go(console, "epoch", text)


@command("continue [N]", "continue", "going", aliases=("c", "cont"), repeats=True)
def continue_run(console: Console, text: str) -> Answer:
    """Run to the next breakpoint that stops, or the N-th, or to the end."""
    found = console.go("continue")
    for _ in range(count(text, 1) - 1):
        if found.data["reason"] != "breakpoint":
            break
        found = console.go("continue")
    return found


@command("until [WHERE]", "until run_fwd:4", "going", aliases=("u",), takes=("places",))
def until(console: Console, text: str) -> Answer:
    """Run until a later instruction than this one, so that a loop is run to its end; or to an instruction or line of
    the program.
    """
    if not text:
        return console.go("until")
    run = console.run
    location = place(text if ":" in text or not text.isdecimal() else f"line {text}", run.names, run.engine)
    if location.kind != "instruction":
        raise HostError(f"until {text}: it goes to instructions; tbreak and continue go to {location.text}")
    return console.go("until", 1, location.index)


@command("finish", "finish", "going", aliases=("fin",))
def finish(console: Console, text: str) -> Answer:  # noqa: ARG001 - it takes nothing
    """Run to the end of the epoch; outside of one to the end of the innermost loop, or of the program. Inside of an
    op: leave it.
    """
    if console.inner is not None:
        return console.left_then(console.here)
    return console.go("finish")


@command("run", "run", "going", aliases=("r",))
def run_anew(console: Console, text: str) -> Answer:  # noqa: ARG001
    """Begin again, and run to the first breakpoint or the end. Changes are undone."""
    console.inner = None
    return console.stopped(console.run.run())


@command("into [tile [T,]R,C]", "into tile 0,0", "going", takes=("tile",))
def into(console: Console, text: str) -> Answer:
    """Step inside of the op where the run stands, for one tile of its result (precision device): unpacker, phases of
    the product, Dst before and after spills, SFPU, packer, each with its bits. step and back go from unit to unit,
    finish leaves.
    """
    return console.into(text)


# ------------------------------------------------------------------------------------------------------- backwards
@command("back [step|next|input|epoch|finish|continue] [N]", "back epoch", "going back", takes=("steps",), repeats=True)
def back(console: Console, text: str) -> Answer:
    """Go back as the step of that name goes forward, `next` without one; N times. Inside of an op: the unit before."""
    words = text.split()
    kind = words.pop(0) if words and not words[0].isdecimal() else "next"
    times = count(" ".join(words), 1)
    if console.inner is not None and kind == "next":
        return console.inner_move(-times)
    kind = one_of(kind, (*BACK, "continue"), "back goes by")
    if kind == "continue":
        return reverse_continue(console, "")
    console.inner = None
    return console.stopped(console.run.back(kind, times))  # pyright: ignore[reportArgumentType] - a key of BACK


@command("reverse-continue", "reverse-continue", "going back", aliases=("rc",), repeats=True)
def reverse_continue(console: Console, text: str) -> Answer:  # noqa: ARG001
    """Go back to the last moment at which a breakpoint stops, or to the start."""
    console.inner = None
    return console.stopped(console.run.reverse_continue())


def _reverse(kind: str, *aliases: str) -> None:
    def act(console: Console, text: str) -> Answer:
        return back(console, f"{kind} {text}")

    act.__doc__ = f"As `back {kind}`."
    command(f"reverse-{kind} [N]", f"reverse-{kind}", "going back", aliases=aliases, repeats=True)(act)


for _kind, *_aliases in (("step", "rs"), ("next", "rn"), ("input",), ("epoch",)):
    _reverse(_kind, *_aliases)


@command("reverse-finish", "reverse-finish", "going back")
def reverse_finish(console: Console, text: str) -> Answer:  # noqa: ARG001
    """Go back to the instruction that began the epoch; outside of one to the first instruction of the program."""
    return back(console, "finish")


@command("reverse-until WHERE", "reverse-until run_fwd:0", "going back", takes=("places",))
def reverse_until(console: Console, text: str) -> Answer:
    """Go back to where the run came through WHERE last."""
    if not text:
        raise HostError("reverse-until WHERE: a line, an instruction, an op")
    run = console.run
    others = dict(run.breakpoints.items)
    run.breakpoints.items.clear()
    try:
        run.break_at(text, temporary=True)
        return console.stopped(run.reverse_continue())
    finally:
        run.breakpoints.items.clear()
        run.breakpoints.items.update(others)
