"""`buda-emu debug`: debug a netlist's programs: stop anywhere, inspect, change, go back."""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from buda_emu.app.cli.command_lines import read_commands
from buda_emu.app.cli.ctrl_c import CtrlC
from buda_emu.app.cli.findings import print_findings
from buda_emu.app.cli.output import Progress, complain, print_words_to_stderr, require_open, say
from buda_emu.app.cli.shared_arguments import read_options
from buda_emu.app.debugger.answer import Answer, answer
from buda_emu.app.debugger.console.console import Console
from buda_emu.app.debugger.console.execute import execute
from buda_emu.app.debugger.inspection import STOP
from buda_emu.app.debugger.session import DebugOptions, Session
from buda_emu.emulator.image.opened import is_image, open_file
from buda_emu.emulator.options import Arithmetic, Document
from buda_emu.report.terminal.text import wrap
from buda_emu.support.columns import Column, Columns
from buda_emu.support.errors import BudaError, Exit, HostError
from buda_emu.support.files import read_whole
from buda_emu.support.screen import current
from buda_emu.support.strict_json import strict

_MOST_PORT = 65535  # of TCP, 16 bits


def main(args: argparse.Namespace) -> int:
    """Run debugger commands until there are no more. Exit code 0; with --batch see its help, 130 after Ctrl-C."""
    if args.dap or args.port is not None:
        return _serve_editor(args)
    if args.file is None:
        raise HostError("debug: which FILE? An editor names it itself: --dap")
    commands = [*_read_script(args.script), *args.command]
    if args.json:
        print_words_to_stderr()
    run = open_session(args)
    with CtrlC(run.interrupt, run.clear_interrupt) as ctrl_c, closing(run):
        return _run_commands(run, ctrl_c, commands, args)


def greeting(run: Session) -> str:
    """Return a line on the netlist that is debugged, and how to get help."""
    net = run.netlist
    programs = ", ".join(name for name, _ in run.programs)
    return f"{net.path} on {net.arch_name}, precision {run.precision}, programs {programs}; `help` lists the commands"


def _run_commands(run: Session, ctrl_c: CtrlC, commands: list[str], args: argparse.Namespace) -> int:
    """Run the commands of the options, then, without --batch, those that the user types. Return the exit code."""
    console = Console(run)
    run.breakpoints.on_log = lambda text: _print_log(console, text, args)
    if not args.quiet and not args.json:
        say(greeting(run))
    for line in commands:
        code = _run_command(console, ctrl_c, line, args, echo=not args.json)
        if code and args.batch:
            return code
        if console.quit:
            return Exit.OK
        if code == Exit.INTERRUPTED:
            break
    if args.batch:
        return Exit.FAILED if run.stop.reason == "error" else Exit.OK
    _run_typed_commands(console, ctrl_c, args)
    return Exit.OK


def _run_typed_commands(console: Console, ctrl_c: CtrlC, args: argparse.Namespace) -> None:
    """Run the commands that are typed until the input ends or one of them quits."""
    interactive = sys.stdin.isatty() and not args.json
    for line in read_commands(console, ctrl_c, interactive=interactive, quiet=args.json):
        _run_command(console, ctrl_c, line, args, echo=False)
        if console.quit:
            break


def _serve_editor(args: argparse.Namespace) -> int:
    """Serve an editor by the Debug Adapter Protocol, on standard streams or on a port, until it leaves. Return exit
    code 0. Raises HostError for closed streams and for a number that is no port."""
    from buda_emu.app.debugger.dap.serve import serve_port, serve_stdio

    if args.port is None:
        require_open("debug --dap", "stdin", "stdout")
        with CtrlC(_raise_interrupt, lambda: None):  # ends the process even while a program runs
            serve_stdio(sys.stdin.buffer, sys.stdout.buffer)
        return Exit.OK
    if args.port > _MOST_PORT:
        raise HostError(f"debug: ports are 0..{_MOST_PORT}, not {args.port}")
    serve_port(args.port, _announce)
    return Exit.OK


def _announce(port: int, token: str) -> None:
    """Print the port on which an editor is awaited, and the token that it must send."""
    complain(f'buda-emu debug: waiting for an editor on 127.0.0.1:{port}; its launch needs "token": "{token}"')


def _raise_interrupt() -> None:
    """Raise KeyboardInterrupt, also in a program that is running."""
    raise KeyboardInterrupt


def _read_script(path: Path | None) -> list[str]:
    """Return the lines of a script of commands. Raises HostError for a file that cannot be read."""
    if path is None:
        return []
    try:
        return read_whole(path, 16).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(f"debug: {path}: {getattr(error, 'strerror', None) or error}") from None


def open_session(args: argparse.Namespace) -> Session:
    """Load the document and its inputs, print findings about it, and return the session that the options ask for.
    Raises HostError, and NetlistError or ImageError for a document that is refused."""
    progress = Progress(args.quiet or args.json)
    progress.show(f"loading {args.file}")
    try:
        if args.allow_pickle and not is_image(args.file):
            raise HostError(f"--allow-pickle is for device images (.tti); {args.file} is a netlist, without pickles")
        document = open_file(args.file, **read_options(args, Document))
        if not args.quiet:
            progress.clear()
            print_findings(document.netlist.diagnostics, args.file)
        progress.show("inputs")
        return Session(
            document,
            inputs=args.inputs,
            history_limit=args.history_limit,
            **read_options(args, DebugOptions),
            **read_options(args, Arithmetic),
        )
    finally:
        progress.clear()


def _run_command(console: Console, ctrl_c: CtrlC, line: str, args: argparse.Namespace, *, echo: bool) -> int:
    """Run one command and print its answer, with `echo` the command before it. Return 0, the exit code of the command's
    error, or that of Ctrl-C if it was pressed meanwhile."""
    if echo and line.strip():
        say(f"(buda) {line}")
    reply, error = _execute(console, line)
    interrupted = ctrl_c.seen
    ctrl_c.seen = False
    if args.json:
        _print_json(console, line, reply, error)
    elif error is not None:
        say(current().paint(f"{error}", "red"))
    elif reply is not None:
        _print_reply(reply, ctrl_c)
    if interrupted or ctrl_c.seen:
        return Exit.INTERRUPTED
    return error.exit_code if error is not None else 0


def _execute(console: Console, line: str) -> tuple[Answer | None, BudaError | None]:
    """Run a command. Return its answer and None, or None and the error that refused it. Raises internal errors."""
    try:
        return execute(console, line), None
    except BudaError as error:
        if error.exit_code == Exit.INTERNAL:
            raise
        return None, error
    except OSError as error:
        return None, HostError(f"{error.filename or ''}: {error.strerror or error}")


def _print_reply(reply: Answer, ctrl_c: CtrlC) -> None:
    """Print the lines of an answer until Ctrl-C."""
    for text in colour_lines(reply):
        if ctrl_c.seen:
            break
        say(text)


def _continuation_indent(line: str, columns: int | None) -> str:
    """Return the indentation of the lines on which a row of the help continues: below its description, if that leaves
    room."""
    first_column = re.match(r"  \S.*?  +(?=\S)", line)
    if first_column is None:
        return " " * 2
    if columns and first_column.end() <= columns // 2:
        return " " * first_column.end()
    return " " * 6


def colour_lines(reply: Answer) -> Iterator[str]:
    """Yield the lines of an answer for a terminal. The reason of a stop and changed values stand out; lines of a
    netlist are cut, and sentences of the help wrapped."""
    screen = current()
    for text in reply.lines:
        line = _fit_line(text, reply.kind, screen.columns)
        if reply.kind == "stop" and line.startswith(("breakpoint ", "interrupted")):
            yield screen.paint(line, "bold", "cyan")
        elif line.startswith("(changed: "):
            yield screen.paint(line, "yellow")
        elif reply.kind in ("list", "graph") and line.startswith(("->", "> ")):
            yield screen.paint(line, "bold")
        else:
            yield line


def _fit_line(text: str, kind: str, columns: int | None) -> str:
    """Return a line of an answer: for the kind "help" wrapped at the terminal's width, for a list, stop or graph cut
    there, for other kinds as it is."""
    if kind == "help":
        return wrap(text, _continuation_indent(text, columns))
    if kind in ("list", "stop", "graph") and columns is not None and len(text) > columns:
        return f"{text[: columns - 3]}..."
    return text


def _print_log(console: Console, text: str, args: argparse.Namespace) -> None:
    """Print the message of a log point while the run goes on."""
    if args.json:
        _print_json(console, "", answer("log", [text]), None)
    else:
        say(text)


def _print_json(console: Console, line: str, reply: Answer | None, error: BudaError | None) -> None:
    """Print the answer to a command, or its error, as one line of JSON."""
    if reply is None:
        reply = answer("error", ())
    content = LINE.document(_Line(line, reply, error, console.run))
    say(json.dumps(strict(content), allow_nan=False), sys.stdout)


class _Line(NamedTuple):
    """A command, its answer, its error, and the run after it."""

    command: str
    reply: Answer
    error: BudaError | None
    run: Session


LINE: Final = Columns[_Line](
    Column("command", str, lambda line: line.command),
    Column("kind", str, lambda line: line.reply.kind),
    Column("text", list[str], lambda line: line.reply.lines),
    Column("data", dict[str, Any], lambda line: line.reply.data),
    Column("error", str | None, lambda line: None if line.error is None else str(line.error)),
    Column("stop", STOP, lambda line: line.run.stop),
    Column("changed", list[str], lambda line: line.run.changed),
)
"""A line of `debug --json`."""
