"""The commands for help and for the end of a session."""

from buda_emu.app.debugger.answer import Answer, answer
from buda_emu.app.debugger.console.console import COMMANDS, GROUPS, Console, command, find
from buda_emu.app.debugger.expressions import OF_POINTERS, OF_TENSOR, OF_TWO, WORDS


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
