"""Commands that inspect the run."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buda_emu.app.debugger import inspection
from buda_emu.app.debugger.answer import Answer, answer
from buda_emu.app.debugger.console.console import (
    COMMANDS,
    GROUPS,
    Console,
    command,
    find,
    flags_of,
    number,
    one_of,
    split_tile,
)
from buda_emu.app.debugger.expressions import OF_POINTERS, OF_TENSOR, OF_TWO, WORDS, tensor
from buda_emu.app.debugger.names import line_of
from buda_emu.app.debugger.session import Session
from buda_emu.app.debugger.tensors import difference, tile, whole
from buda_emu.support.errors import HostError
from buda_emu.support.files import write_file

if TYPE_CHECKING:
    from numpy.typing import NDArray


_INFO: Mapping[str, Callable[[Session], Answer]] = {
    "queues": inspection.queues,
    "vars": inspection.variables,
    "ops": inspection.ops,
    "epochs": inspection.epochs,
    "memory": inspection.memory,
    "breakpoints": inspection.breakpoints,
}
_LIST = 10
_BYTES = 64
_FILES = (".npy", ".npz")


@command("info queues|vars|ops|epochs|memory|breakpoints", "info queues", "looking", aliases=("i",), takes=("info",))
def info(console: Console, text: str) -> Answer:
    """Tables: queues with their pointers (`info queues TEXT`: those with it in their names), variables of the program,
    ops of the epoch, epochs, memory, breakpoints.
    """
    word, _, rest = text.partition(" ")
    near = [name for name in _INFO if word and name.startswith(word)]
    name = near[0] if len(near) == 1 else one_of(word, _INFO, "info tells of")
    if name == "queues":
        return inspection.queues(console.run, rest.strip())
    return _INFO[name](console.run)


@command("where", "where", "looking", aliases=("w", "bt", "backtrace"))
def where(console: Console, text: str) -> Answer:  # noqa: ARG001
    """Program, loops, instruction, epoch, input, op and its cores."""
    return inspection.where(console.run)


@command(
    "print TENSOR [tile [T,]R,C] [--bits] [--all] | print EXPRESSION",
    "print q[0] tile 0,0 --bits",
    "looking",
    aliases=("p",),
    takes=("tensors",),
)
def print_it(console: Console, text: str) -> Answer:
    """A tensor: QUEUE[slot], QUEUE (its newest entry) or op:NAME; one tile of it, with --bits as its format has it,
    with --all whole. Or the value of an expression: absmax(q), $i, pcc(op:exp, ideal).
    """
    if not text:
        raise HostError("print TENSOR or print EXPRESSION")
    plain, flags = flags_of(text, ("--bits", "--all"))
    name, place, rest = split_tile(plain)
    if rest:
        raise HostError(f"print: {rest!r} is too much")
    if place is None and not flags and not _is_tensor(console, name):
        value = console.run.evaluate(name)
        return answer("value", [f"{value:g}" if value != int_or(value) else f"{int(value)}"], value=value)
    found = console.run.tensor(name)
    if place is None and not flags:
        return whole(found)
    return tile(found, place or (0, 0, 0), bits="--bits" in flags, all_of_it="--all" in flags)


def int_or(value: float) -> float:
    """The value as an integer, if it is one."""
    return float(int(value)) if abs(value) < 1e15 else float("nan")


def _is_tensor(console: Console, text: str) -> bool:
    """A name alone, and no word of the language."""
    try:
        which = tensor(text)
    except HostError:
        return False
    names = console.run.names
    known = which.name in names.ops or which.name in names.netlist.queues or which.name in names.labels
    return known or which.name not in WORDS


@command("x QUEUE[slot] [OFFSET] [COUNT]", "x q[0] 0 64", "looking", takes=("queues",))
def raw(console: Console, text: str) -> Answer:
    """Bytes of an entry as they lie in DRAM or L1, for each buffer of the queue's grid, with their addresses."""
    words = text.split()
    if not words or len(words) > 3:
        raise HostError("x QUEUE[slot] [OFFSET] [COUNT]")
    offset = number(words[1], "the offset") if len(words) > 1 else 0
    amount = number(words[2], "the count") if len(words) > 2 else _BYTES
    return inspection.raw_bytes(console.run, words[0], offset, amount)


@command("diff A [B]", "diff q[0] ideal", "looking", takes=("tensors",))
def diff(console: Console, text: str) -> Answer:
    """How far two tensors are apart. B: another tensor, `ideal` for A as precision ideal has it, or a file (.npy, or
    .npz with an array of A's name).
    """
    words = text.split()
    if len(words) not in (1, 2):
        raise HostError("diff A B: two tensors, a tensor and `ideal`, or a tensor and a file")
    run = console.run
    first = run.tensor(words[0])
    second = words[1] if len(words) > 1 else "ideal"
    if second.lower().endswith(_FILES):
        return difference(first.name, first.values(), second, _from_file(Path(second), first.of.name, first.values()))
    if second == "ideal":
        text = words[0] if first.slot is None else f"queue:'{first.of.name}'[{first.slot}]"
        return difference(first.name, first.values(), f"{first.name} ideal", run.tensor(text, ideal=True).values())
    other = run.tensor(second)
    return difference(first.name, first.values(), other.name, other.values())


def _from_file(path: Path, name: str, like: "NDArray[Any]") -> "NDArray[Any]":
    from buda_emu.emulator.inputs.numpy_files import npz_of, read_npy

    if path.suffix.lower() == ".npy":
        found = read_npy(path)
    else:
        arrays = npz_of(str(path), path)
        found = arrays.get(name)
        if found is None:
            raise HostError(f"{path} has no array {name!r}; it has {', '.join(arrays)}")
    entries = found.size // max(1, like.size)
    return found[-1] if entries > 1 and found.size == entries * like.size and len(found) == entries else found


@command("why QUEUE[slot]", "why q[0]", "looking", takes=("queues",))
def why(console: Console, text: str) -> Answer:
    """Who wrote this entry from what, back to what the host gave."""
    if not text:
        raise HostError("why QUEUE[slot]")
    return inspection.provenance(console.run, text)


@command("why-not", "why-not", "looking")
def why_not(console: Console, text: str) -> Answer:  # noqa: ARG001
    """Why a stopped program waits, or failed."""
    return inspection.why_not(console.run)


@command("graph [FILE.svg]", "graph epoch.svg", "looking")
def graph(console: Console, text: str) -> Answer:
    """The ops (* has run, > is next) and queues of the running epoch with the extremes of what was read and given; in a
    file on the core grid, with all figures in the tooltips.
    """
    if not text:
        return inspection.graph(console.run)
    if not text.lower().endswith(".svg"):
        raise HostError(f"graph {text}: the file's name ends in .svg")
    picture = inspection.graph_svg(console.run).encode()
    write_file(text, lambda stream: stream.write(picture))
    return answer("file", [f"written: {text}"], file=text)


@command("list [LINE|NAME]", "list out", "looking", aliases=("l",), takes=("places",), repeats=True)
def list_lines(console: Console, text: str) -> Answer:
    """Lines of the netlist around where the run stands, a line, or what has a name; for a compiled model with the node
    that an op was made of. Again: the lines after.
    """
    run = console.run
    lines = run.names.lines
    if not lines:
        raise HostError(f"the text of {run.netlist.path} is not there any more")
    here = inspection.where(run).data["line"]
    if text:
        middle = number(text, "a line") if text.isdecimal() else _line_of(console, text)
        if not 1 <= middle <= len(lines):
            raise HostError(f"the netlist has lines 1..{len(lines)}")
        first = max(1, middle - _LIST // 2)
    elif console.listed is not None:
        first = console.listed
    else:
        first = max(1, (here or 1) - _LIST // 2)
    last = min(len(lines), first + _LIST - 1)
    if first > len(lines):
        console.listed = None
        return answer("list", ["(end of the netlist)"], first=first, source=[])
    console.listed = last + 1
    stops = {item.line(console.run.names) for item in run.breakpoints.enabled}
    nodes = {op.at().line: run.names.nodes.get(name, "") for name, op in run.names.ops.items()}
    rows: list[dict[str, Any]] = [
        {"line": at, "text": lines[at - 1], "here": at == here, "node": nodes.get(at, "")}
        for at in range(first, last + 1)
    ]
    shown = [
        f"{'->' if row['here'] else 'B ' if row['line'] in stops else '  '} {row['line']:>5}  "
        f"{'[' + row['node'] + '] ' if row['node'] else ''}{row['text']}"
        for row in rows
    ]
    return answer("list", shown, first=first, source=rows)


def _line_of(console: Console, name: str) -> int:
    names = console.run.names
    if name in names.netlist.graphs:
        return names.netlist.graphs[name].at().line
    if name in names.netlist.programs:
        return line_of(names.netlist.programs[name].instructions[0])
    return names.either(name.removeprefix("op:")).at().line


@command("help [COMMAND|expressions]", "help break", "other", aliases=("h", "?"), takes=("commands",))
def help_of(console: Console, text: str) -> Answer:  # noqa: ARG001
    """What commands there are, and what one does."""
    if text == "expressions":
        return answer("help", _expressions())
    if text:
        found = find(text)
        return answer("help", found.help(), command=found.name)
    lines: list[str] = []
    for group in GROUPS:
        lines.append(f"{group}:")
        own = [found for found in COMMANDS.values() if found.group == group]
        width = max(len(found.usage) for found in own if len(found.usage) < 40)
        lines += [f"  {found.usage.ljust(width)}  {found.words.partition('. ')[0].removesuffix('.')}." for found in own]
    lines.append(
        "An empty line does the last step again. `help COMMAND` says more, `help expressions` what conditions are."
    )
    return answer("help", lines)


def _expressions() -> list[str]:
    lines = ["example: break if absmax(op:exp) > 1e4 and $i == 3", "of a tensor, QUEUE[slot], QUEUE or op:NAME:"]
    lines += [f"  {name}(T)  {words}" for name, (words, _) in OF_TENSOR.items()]
    lines.append("of two, one of which may be `ideal`, the other tensor in precision ideal:")
    lines += [f"  {name}(A, B)  {words}" for name, (words, _) in OF_TWO.items()]
    lines.append("of a queue's pointers:")
    lines += [f"  {name}(QUEUE)  {words}" for name, words in OF_POINTERS.items()]
    lines.append("words:")
    lines += [f"  {name}  {words}" for name, words in WORDS.items()]
    lines.append("$NAME is a variable of the program; + - * / % < <= > >= == != and or not ( ) mean what they say.")
    lines.append("A name with other letters than a-z, 0-9, _ and . is written in quotes: nan('my-queue'[0]).")
    return lines


@command("quit", "quit", "other", aliases=("q", "exit"))
def quit_it(console: Console, text: str) -> Answer:  # noqa: ARG001
    """End the debugger."""
    console.quit = True
    return answer("quit", [])
