"""Commands that inspect the run."""

import re
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
    find_command,
    parse_number,
    require_choice,
    split_flags,
    split_tile,
)
from buda_emu.app.debugger.expressions import PAIR_FUNCTIONS, POINTER_FUNCTIONS, TENSOR_FUNCTIONS, WORDS, parse_tensor
from buda_emu.app.debugger.names import line_of
from buda_emu.app.debugger.session import Session
from buda_emu.app.debugger.tensors import TensorValue, difference, tensor_answer, tile_answer
from buda_emu.netlist.model import Queue
from buda_emu.support.checker.text import plural
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
    "breakpoints": inspection.list_breakpoints,
}
_LIST = 10  # lines that `list` prints at a time
_BYTES = 64  # that a memory dump prints unless a count is given
_FILE = re.compile(r"(?P<path>.*[.]np[yz])(?:\[(?P<number>[0-9]+)\])?", re.IGNORECASE)  # with the entry in it


@command("info queues|vars|ops|epochs|memory|breakpoints", "info queues", "looking", aliases=("i",), takes=("info",))
def info(console: Console, text: str) -> Answer:
    """Tables: queues with their pointers (`info queues TEXT`: those with it in their names), variables of the program,
    ops of the epoch, epochs, memory, breakpoints.
    """
    word, _, argument = text.partition(" ")
    completions = [name for name in _INFO if word and name.startswith(word)]
    if len(completions) == 1:
        name = completions[0]
    else:
        name = require_choice(word, _INFO, "info tells of")
    if name == "queues":
        return inspection.queues(console.run, argument.strip())
    return _INFO[name](console.run)


@command("where", "where", "looking", aliases=("w", "bt", "backtrace"))
def where(console: Console, text: str) -> Answer:  # noqa: ARG001
    """Show program, loops, instruction, epoch, input, op and its cores."""
    return inspection.describe_place(console.run)


@command(
    "print TENSOR [tile [T,]R,C] [--bits] [--all] | print EXPRESSION",
    "print q[0] tile 0,0 --bits",
    "looking",
    aliases=("p",),
    takes=("tensors",),
)
def print_value(console: Console, text: str) -> Answer:
    """A tensor: QUEUE[slot], QUEUE (its newest entry) or op:NAME; one tile of it, with --bits as its format has it,
    with --all whole. Or the value of an expression: absmax(q), $i, pcc(op:exp, ideal).
    """
    if not text:
        raise HostError("print TENSOR or print EXPRESSION")
    plain, flags = split_flags(text, ("--bits", "--all"))
    name, place, rest = split_tile(plain)
    if rest:
        raise HostError(f"print: {rest!r} is too much")
    if place is None and not flags and not _is_tensor(console, name):
        value = console.run.evaluate(name)
        return answer("value", [f"{value:g}" if value != as_integer(value) else f"{int(value)}"], value=value)
    tensor = console.run.tensor(name)
    if place is None and not flags:
        return tensor_answer(tensor)
    return tile_answer(tensor, place or (0, 0, 0), bits="--bits" in flags, all_of_it="--all" in flags)


def as_integer(value: float) -> float:
    """Return the integer part of a value as a float; NaN from 1e15 on, where printing it as an integer would show
    digits that mean nothing."""
    if abs(value) < 1e15:
        return float(int(value))
    return float("nan")


def _is_tensor(console: Console, text: str) -> bool:
    """Return whether the text is a reference to a tensor alone, rather than an expression or a word of one."""
    try:
        name = parse_tensor(text).name
    except HostError:
        return False
    names = console.run.names
    return name in names.ops or name in names.netlist.queues or name in names.labels or name not in WORDS


@command("x QUEUE[slot] [OFFSET] [COUNT]", "x q[0] 0 64", "looking", takes=("queues",))
def raw(console: Console, text: str) -> Answer:
    """Bytes of an entry as they lie in DRAM or L1, for each buffer of the queue's grid, with their addresses."""
    words = text.split()
    if "tile" in words:
        raise HostError(f"x prints bytes from an offset on: x QUEUE[slot] [OFFSET] [COUNT]; a tile: print {text}")
    if not words or len(words) > 3:
        raise HostError("x QUEUE[slot] [OFFSET] [COUNT]")
    offset = 0
    count = _BYTES
    if len(words) > 1:
        offset = parse_number(words[1], "the offset")
    if len(words) > 2:
        count = parse_number(words[2], "the count")
    return inspection.raw_bytes(console.run, words[0], offset, count)


@command("diff A [B]", "diff q[0] ideal", "looking", takes=("tensors",))
def diff(console: Console, text: str) -> Answer:
    """Compare two tensors. B: another tensor, `ideal` for A as precision ideal has it, or a file (.npy, or .npz with an
    array of A's name). Of a file with several entries, FILE[N] is one of them; without N it is that of A's slot.
    """
    words = text.split()
    if len(words) not in (1, 2):
        raise HostError("diff A B: two tensors, a tensor and `ideal`, or a tensor and a file")
    run = console.run
    first = run.tensor(words[0])
    second = (*words, "ideal")[1]
    file = _FILE.fullmatch(second)
    if file is not None:
        number = int(file["number"]) if file["number"] else None
        return _difference_from_file(first, Path(file["path"]), number)
    if second == "ideal":
        reference = words[0]
        if first.slot is not None:  # the same entry, not the newest of the other machine
            reference = f"queue:'{first.of.name}'[{first.slot}]"
        return difference(first.name, first.values(), f"{first.name} ideal", run.tensor(reference, ideal=True).values())
    other = run.tensor(second)
    return difference(first.name, first.values(), other.name, other.values())


def _difference_from_file(tensor: TensorValue, path: Path, number: int | None) -> Answer:
    """Compare a tensor with the array in a file, or with its entry `number`. Without a number, an array with several
    entries is compared by the slot of the tensor, if it has no more entries than the queue has slots. The answer names
    the entry. Raises HostError if the file does not have that entry, or several could be meant."""
    values = tensor.values()
    array = _read_array(path, tensor.of.name)
    entries = array.size // max(1, values.size)
    if number is None and (entries < 2 or array.shape[:1] != (entries,) or array.size != entries * values.size):
        return difference(tensor.name, values, str(path), array)
    if number is None:
        number = _entry_of(tensor, entries, path)
    if number >= len(array):
        raise HostError(f"{path} has {plural(len(array), 'entry')}, none of number {number} (they count from 0)")
    return difference(tensor.name, values, f"{path}[{number}]", array[number])


def _entry_of(tensor: TensorValue, entries: int, path: Path) -> int:
    """Return which entry of a file with `entries` entries belongs to a tensor: the slot of a queue's entry. Raises
    HostError for the result of an op, and for a file that has more entries than the queue."""
    if tensor.slot is not None and isinstance(tensor.of, Queue) and entries <= tensor.of.entries:
        return tensor.slot
    raise HostError(f"{path} has {entries} entries: say which one {tensor.name} is, {path}[0] to {path}[{entries - 1}]")


def _read_array(path: Path, name: str) -> "NDArray[Any]":
    """Read the array of a .npy file, or the one called `name` of an .npz file. Raises HostError if there is none."""
    from buda_emu.emulator.inputs.numpy_files import npz_of, read_npy

    if path.suffix.lower() == ".npy":
        return read_npy(path)
    arrays = npz_of(str(path), path)
    array = arrays.get(name)
    if array is None:
        raise HostError(f"{path} has no array {name!r}; it has {', '.join(arrays)}")
    return array


@command("why QUEUE[slot]", "why q[0]", "looking", takes=("queues",))
def why(console: Console, text: str) -> Answer:
    """Tell which op wrote this entry from which entries, back to what the host gave."""
    if not text:
        raise HostError("why QUEUE[slot]")
    return inspection.provenance(console.run, text)


@command("why-not", "why-not", "looking")
def why_not(console: Console, text: str) -> Answer:  # noqa: ARG001
    """Explain why a stopped program waits, or how it failed."""
    return inspection.explain_stop(console.run)


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
    current = inspection.describe_place(run).data["line"]
    first = _first_line(console, text, current)
    last = min(len(lines), first + _LIST - 1)
    if first > len(lines):
        console.listed = None
        return answer("list", ["(end of the netlist)"], first=first, source=[])
    console.listed = last + 1
    nodes = {op.at().line: run.names.nodes.get(name, "") for name, op in run.names.ops.items()}
    rows: list[dict[str, Any]] = [
        {"line": at, "text": lines[at - 1], "here": at == current, "node": nodes.get(at, "")}
        for at in range(first, last + 1)
    ]
    stops = {point.line(run.names) for point in run.breakpoints.enabled}
    return answer("list", [_source_line(row, stops) for row in rows], first=first, source=rows)


def _first_line(console: Console, text: str, current: int | None) -> int:
    """Return the number of the first line to list: around the line or name in `text`; without text, after the lines
    that were listed last, or else around the `current` line. Raises HostError for a line that does not exist."""
    if not text and console.listed is not None:
        return console.listed
    middle = current or 1
    if text:
        middle = parse_number(text, "a line") if text.isdecimal() else _line_of_name(console, text)
        count = len(console.run.names.lines)
        if not 1 <= middle <= count:
            raise HostError(f"the netlist has lines 1..{count}")
    return max(1, middle - _LIST // 2)


def _source_line(row: dict[str, Any], stops: set[int]) -> str:
    """Return a row of a listing as text, with `->` before the current line, `B` before one of `stops`, which have a
    breakpoint, and with its node."""
    mark = "  "
    if row["here"]:
        mark = "->"
    elif row["line"] in stops:
        mark = "B "
    node = f"[{row['node']}] " if row["node"] else ""
    return f"{mark} {row['line']:>5}  {node}{row['text']}"


def _line_of_name(console: Console, name: str) -> int:
    """Return the line on which a graph, the first instruction of a program, a queue or an op stands. Raises HostError
    for an unknown name."""
    names = console.run.names
    if name in names.netlist.graphs:
        return names.netlist.graphs[name].at().line
    if name in names.netlist.programs:
        return line_of(names.netlist.programs[name].instructions[0])
    return names.queue_or_op(name.removeprefix("op:")).at().line


@command("help [COMMAND|expressions]", "help break", "other", aliases=("h", "?"), takes=("commands",))
def help_of(console: Console, text: str) -> Answer:  # noqa: ARG001
    """List the commands, or explain one of them."""
    if text == "expressions":
        return answer("help", _expression_help())
    if text:
        entry = find_command(text)
        return answer("help", entry.help(), command=entry.name)
    lines: list[str] = []
    for group in GROUPS:
        lines.append(f"{group}:")
        entries = [entry for entry in COMMANDS.values() if entry.group == group]
        width = max(len(entry.usage) for entry in entries if len(entry.usage) < 40)
        lines += [
            f"  {entry.usage.ljust(width)}  {entry.words.partition('. ')[0].removesuffix('.')}." for entry in entries
        ]
    lines.append(
        "An empty line does the last step again. `help COMMAND` says more, `help expressions` what conditions are."
    )
    return answer("help", lines)


def _expression_help() -> list[str]:
    """Return the lines of `help expressions`."""
    lines = ["example: break if absmax(op:exp) > 1e4 and $i == 3", "of a tensor, QUEUE[slot], QUEUE or op:NAME:"]
    lines += [f"  {name}(T)  {words}" for name, (words, _) in TENSOR_FUNCTIONS.items()]
    lines.append("of two, one of which may be `ideal`, the other tensor in precision ideal:")
    lines += [f"  {name}(A, B)  {words}" for name, (words, _) in PAIR_FUNCTIONS.items()]
    lines.append("of a queue's pointers:")
    lines += [f"  {name}(QUEUE)  {words}" for name, words in POINTER_FUNCTIONS.items()]
    lines.append("words:")
    lines += [f"  {name}  {words}" for name, words in WORDS.items()]
    lines.append("$NAME is a variable of the program; + - * / % < <= > >= == != and or not ( ) mean what they say.")
    lines.append("A name with other letters than a-z, 0-9, _ and . is written in quotes: nan('my-queue'[0]).")
    return lines


@command("quit", "quit", "other", aliases=("q", "exit"))
def quit_debugger(console: Console, text: str) -> Answer:  # noqa: ARG001
    """End the debugger."""
    console.quit = True
    return answer("quit", [])
