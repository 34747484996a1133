"""Commands of breakpoints, and commands that run the program forward and backward."""

import re

from buda_emu.app.debugger import inspection
from buda_emu.app.debugger.answer import Answer, answer
from buda_emu.app.debugger.breakpoints import Breakpoint, locate
from buda_emu.app.debugger.console.console import Console, command, parse_count, parse_number, require_choice
from buda_emu.app.debugger.machine.backwards import BACK_STEPS
from buda_emu.app.debugger.machine.stop import Kind
from buda_emu.support.errors import HostError


def _breakpoint_answer(point: Breakpoint) -> Answer:
    """Return the answer of a command that set or changed a breakpoint."""
    kind = "breakpoint"
    if point.log:
        kind = "log point"
    elif point.temporary:
        kind = "tbreak"
    text = f"{kind} {point.number}: {point.text}"
    if point.condition_text and point.kind != "if":
        text += f" if {point.condition_text}"
    if point.log:
        text += f", tells {point.log_text}"
    return answer("breakpoint", [text], breakpoint=point.as_json())


def _set_break(console: Console, text: str, *, temporary: bool = False, log: str = "") -> Answer:
    """Set a breakpoint from `WHERE if CONDITION`, each part of which may be missing (without both, at the current
    place), and return the answer. `log` is the text of a log point."""
    location = text
    condition = ""
    if text == "if" or text.startswith("if "):
        location = ""
        condition = text[2:].strip()
    elif " if " in text:
        location, _, condition = text.partition(" if ")
    if not text:  # without arguments at the current place, as gdb has it
        engine = console.run.engine
        if not engine.program:
            raise HostError("break WHERE: the run has not begun, so there is no place to stop at again")
        location = f"{engine.program}:{engine.index}"
        if engine.op_now is not None:
            location = f"op {engine.op_now.name}"
    return _breakpoint_answer(console.run.break_at(location.strip(), condition.strip(), temporary=temporary, log=log))


@command("break [WHERE] [if CONDITION]", "break if nan(op:exp)", "stopping", aliases=("b",), takes=("places",))
def set_breakpoint(console: Console, text: str) -> Answer:
    """Stop there. WHERE is a line of the netlist, PROGRAM:INSTRUCTION, the name of an op, graph, program or queue, or:
    `op NAME`, `graph NAME`, `line N`, `instruction [PROGRAM] N`, `input N [GRAPH]`, `pointer QUEUE [VALUE]`, `wrap
    QUEUE`, `node NAME` of a compiled model, `nan` for a NaN in any op's result, `inf` for an infinity, too. CONDITION
    is an expression (help expressions); alone it stops when a tensor that it names is new and it holds, or when it
    becomes true.
    """
    return _set_break(console, text)


@command("tbreak [WHERE] [if CONDITION]", "tbreak graph fwd", "stopping", aliases=("tb",), takes=("places",))
def set_temporary(console: Console, text: str) -> Answer:
    """Stop there once, as break does."""
    return _set_break(console, text, temporary=True)


@command('dprintf WHERE [if CONDITION], "TEXT"', 'dprintf exp, "input {input}: {q}"', "stopping", takes=("places",))
def log_point(console: Console, text: str) -> Answer:
    """Print TEXT whenever the run comes there, and do not stop. Between braces it has expressions (help expressions),
    or queues and ops, of which it tells the figures. WHERE is that of break.
    """
    parts = re.fullmatch(r'(.*?),\s*"(.*)"', text)
    if parts is None:
        raise HostError('dprintf WHERE, "TEXT with {expressions}"')
    return _set_break(console, parts[1], log=parts[2])


@command("watch QUEUE", "watch out", "stopping", takes=("queues",))
def watch(console: Console, text: str) -> Answer:
    """Stop when an entry of a queue or ram is written, or a pointer of it moves."""
    if not text:
        raise HostError("watch QUEUE")
    return _breakpoint_answer(console.run.watch(text))


@command("condition N [CONDITION]", "condition 1 $i == 3", "stopping", takes=("breakpoints",))
def condition(console: Console, text: str) -> Answer:
    """Let a breakpoint stop only where it holds; without one, always."""
    point_number, _, expression = text.partition(" ")
    return _breakpoint_answer(console.run.set_condition(parse_number(point_number, "a breakpoint"), expression.strip()))


@command("ignore N COUNT", "ignore 1 10", "stopping", takes=("breakpoints",))
def ignore(console: Console, text: str) -> Answer:
    """Pass over the next COUNT hits of a breakpoint."""
    point_number, _, times = text.partition(" ")
    point = console.run.breakpoints.get(parse_number(point_number, "a breakpoint"))
    point.ignore = parse_number(times, "how often")
    return _breakpoint_answer(point)


def _parse_breakpoints(console: Console, text: str) -> list[Breakpoint]:
    """Return the breakpoints whose numbers the text lists, or all of them for an empty text. Raises HostError."""
    points = console.run.breakpoints
    if not text:
        return list(points.items.values())
    return [points.get(parse_number(word, "a breakpoint")) for word in text.split()]


@command("delete [N ...]", "delete 1", "stopping", aliases=("d",), takes=("breakpoints",))
def delete(console: Console, text: str) -> Answer:
    """Take breakpoints away; without a number all."""
    for point in _parse_breakpoints(console, text):
        del console.run.breakpoints.items[point.number]
    return inspection.list_breakpoints(console.run)


@command("disable [N ...]", "disable 1", "stopping", takes=("breakpoints",))
def disable(console: Console, text: str) -> Answer:
    """Let breakpoints stop no more until they are enabled."""
    for point in _parse_breakpoints(console, text):
        point.enabled = False
    return inspection.list_breakpoints(console.run)


@command("enable [N ...]", "enable 1", "stopping", takes=("breakpoints",))
def enable(console: Console, text: str) -> Answer:
    """Let breakpoints stop again."""
    for point in _parse_breakpoints(console, text):
        point.enabled = True
    return inspection.list_breakpoints(console.run)


def _go_or_move_inside(console: Console, kind: Kind, text: str) -> Answer:
    """Run forward by the number of steps in `text`, 1 without one. While the user is inside of an op, `step` and `next`
    move between its unit steps, and other kinds leave the op first."""
    times = parse_count(text, 1)
    if console.inner is None:
        return console.go(kind, times)
    if kind in ("step", "next"):
        return console.move_inside(times)
    return console.leave_op_then(lambda: console.go(kind))


@command("step [N]", "step 3", "going", aliases=("s",), repeats=True)
def step(console: Console, text: str) -> Answer:
    """Run to the next instruction, or the N-th; an epoch that runs is run to its end. Inside of an op (`into`): the
    next unit.
    """
    return _go_or_move_inside(console, "step", text)


@command("next [N]", "next", "going", aliases=("n",), repeats=True)
def next_op(console: Console, text: str) -> Answer:
    """Run to the next op, or the N-th; outside of epochs to the next instruction. Inside of an op (`into`): the next
    unit.
    """
    return _go_or_move_inside(console, "next", text)


@command("input [N]", "input 2", "going", repeats=True)
def next_input(console: Console, text: str) -> Answer:
    """Run to the first op of the next input of an epoch, or the N-th."""
    return _go_or_move_inside(console, "input", text)


@command("epoch [N]", "epoch", "going", repeats=True)
def next_epoch(console: Console, text: str) -> Answer:
    """Run to the first op of the next epoch, or the N-th."""
    return _go_or_move_inside(console, "epoch", text)


@command("continue [N]", "continue", "going", aliases=("c", "cont"), repeats=True)
def continue_run(console: Console, text: str) -> Answer:
    """Run to the next breakpoint that stops, or the N-th, or to the end."""
    stop_answer = console.go("continue")
    for _ in range(parse_count(text, 1) - 1):
        if stop_answer.data["reason"] != "breakpoint":
            break
        stop_answer = console.go("continue")
    return stop_answer


@command("until [WHERE]", "until run_fwd:4", "going", aliases=("u",), takes=("places",))
def until(console: Console, text: str) -> Answer:
    """Run until a later instruction than this one, so that a loop is run to its end; or to an instruction or line of
    the program.
    """
    if not text:
        return console.go("until")
    run = console.run
    place = f"line {text}" if text.isdecimal() else text
    location = locate(place, run.names, run.engine)
    if location.kind != "instruction":
        raise HostError(f"until {text}: it goes to instructions; tbreak and continue go to {location.text}")
    return console.go("until", 1, location.index)


@command("finish", "finish", "going", aliases=("fin",))
def finish(console: Console, text: str) -> Answer:  # noqa: ARG001 - it takes nothing
    """Run to the end of the epoch; outside of one to the end of the innermost loop, or of the program. Inside of an
    op: leave it.
    """
    if console.inner is not None:
        return console.leave_op_then(console.describe_here)
    return console.go("finish")


@command("run", "run", "going", aliases=("r",))
def run_again(console: Console, text: str) -> Answer:  # noqa: ARG001
    """Begin again, and run to the first breakpoint or the end. Changes are undone."""
    console.inner = None
    return console.describe_stop(console.run.run())


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
    times = parse_count(" ".join(words), 1)
    if console.inner is not None and kind == "next":
        return console.move_inside(-times)
    kind = require_choice(kind, (*BACK_STEPS, "continue"), "back goes by")
    if kind == "continue":
        return reverse_continue(console, "")
    console.inner = None
    return console.describe_stop(console.run.back(kind, times))  # pyright: ignore[reportArgumentType] - a key of BACK


@command("reverse-continue", "reverse-continue", "going back", aliases=("rc",), repeats=True)
def reverse_continue(console: Console, text: str) -> Answer:  # noqa: ARG001
    """Go back to the last moment at which a breakpoint stops, or to the start."""
    console.inner = None
    return console.describe_stop(console.run.reverse_continue())


def _define_reverse(kind: str, *aliases: str) -> None:
    """Add the command `reverse-KIND`, which is `back KIND` by another name."""

    def act(console: Console, text: str) -> Answer:
        """Go back as `back` does; the help text of each command replaces this docstring."""
        return back(console, f"{kind} {text}")

    act.__doc__ = f"Go back as `back {kind}` does."
    command(f"reverse-{kind} [N]", f"reverse-{kind}", "going back", aliases=aliases, repeats=True)(act)


for _kind, *_aliases in (("step", "rs"), ("next", "rn"), ("input",), ("epoch",)):
    _define_reverse(_kind, *_aliases)


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
        return console.describe_stop(run.reverse_continue())
    finally:
        run.breakpoints.items.clear()
        run.breakpoints.items.update(others)
