"""Commands that run the program, forward and backward, and step inside an op."""

from buda_emu.debugger.answer import Answer
from buda_emu.debugger.console.command import command
from buda_emu.debugger.console.console import Console
from buda_emu.debugger.console.words import count, one_of
from buda_emu.debugger.machine.backwards import BACK
from buda_emu.debugger.machine.goal import Kind
from buda_emu.debugger.places import place
from buda_emu.errors import HostError


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
