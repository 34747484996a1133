"""`buda-emu debug`: stop a netlist's programs anywhere, look, change, go back."""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from buda_emu.app.cli.command_lines import read_commands
from buda_emu.app.cli.ctrl_c import CtrlC
from buda_emu.app.cli.findings import print_findings
from buda_emu.app.cli.output import Progress, complain, print_words_to_stderr, require_open, say
from buda_emu.app.debugger.answer import Answer, answer
from buda_emu.app.debugger.console.console import Console
from buda_emu.app.debugger.console.execute import execute
from buda_emu.app.debugger.inspection import stop_data
from buda_emu.app.debugger.machine.history import DEFAULT_LIMIT
from buda_emu.app.debugger.session import Session
from buda_emu.emulator.image.opened import is_image, open_file
from buda_emu.emulator.memory.host import usable_processors
from buda_emu.report.machine_readable.strict import strict
from buda_emu.report.terminal.text import wrap
from buda_emu.support.errors import BudaError, Exit, HostError
from buda_emu.support.files import read_whole
from buda_emu.support.screen import current
from buda_emu.support.version import RESULT_VERSION

_MOST_PORT = 65535


def main(args: argparse.Namespace) -> int:
    """Take commands until there are no more. Exit code 0; with --batch see its help, 130 after Ctrl-C."""
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
    """What is debugged, and how to ask for help."""
    net = run.netlist
    programs = ", ".join(name for name, _ in run.programs)
    return f"{net.path} on {net.arch_name}, precision {run.precision}, programs {programs}; `help` lists the commands"


def _run_commands(run: Session, ctrl_c: CtrlC, commands: list[str], args: argparse.Namespace) -> int:
    """Those of the command line, then, without --batch, what is typed."""
    console = Console(run)
    run.breakpoints.on_log = lambda text: _print_log(console, text, args)
    interactive = not args.batch and sys.stdin.isatty() and not args.json
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
    if not args.batch:
        for line in read_commands(console, ctrl_c, interactive=interactive, quiet=args.json):
            _run_command(console, ctrl_c, line, args, echo=False)
            if console.quit:
                break
    return Exit.FAILED if args.batch and run.stop.reason == "error" else Exit.OK


def _serve_editor(args: argparse.Namespace) -> int:
    from buda_emu.app.debugger.dap.serve import serve_port, serve_stdio

    if args.port is None:
        require_open("debug --dap", "stdin", "stdout")
        with CtrlC(_raise_interrupt, lambda: None):  # of a program that runs, too
            serve_stdio(sys.stdin.buffer, sys.stdout.buffer)
        return Exit.OK
    if args.port > _MOST_PORT:
        raise HostError(f"debug: ports are 0..{_MOST_PORT}, not {args.port}")
    serve_port(args.port, _announce)
    return Exit.OK


def _announce(port: int, token: str) -> None:
    complain(f'buda-emu debug: waiting for an editor on 127.0.0.1:{port}; its launch needs "token": "{token}"')


def _raise_interrupt() -> None:
    raise KeyboardInterrupt


def _read_script(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        return read_whole(path, 16).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(f"debug: {path}: {getattr(error, 'strerror', None) or error}") from None


def open_session(args: argparse.Namespace) -> Session:
    """The session that the command line asks for."""
    progress = Progress(args.quiet or args.json)
    progress.show(f"loading {args.file}")
    try:
        if args.allow_pickle and not is_image(args.file):
            raise HostError(f"--allow-pickle is for device images (.tti); {args.file} is a netlist, without pickles")
        document = open_file(args.file, args.arch, cache=args.cache, allow_pickle=args.allow_pickle)
        if not args.quiet:
            progress.clear()
            print_findings(document.netlist.diagnostics, args.file)
        progress.show("inputs")

        limit = DEFAULT_LIMIT if args.history_limit is None else args.history_limit
        return Session(
            document,
            precision=args.precision,
            programs=args.program,
            parameters=dict(args.param),
            inputs=args.inputs,
            seed=args.seed,
            threads=args.threads or usable_processors(),
            memory_limit=args.memory_limit,
            history_limit=limit,
        )
    finally:
        progress.clear()


def _run_command(console: Console, ctrl_c: CtrlC, line: str, args: argparse.Namespace, *, echo: bool) -> int:
    """One command, its answer printed; the exit code of what refused it, or of Ctrl-C."""
    if echo and line.strip():
        say(f"(buda) {line}")
    reply = None
    error = None
    try:
        reply = execute(console, line)
    except BudaError as refused:
        if refused.exit_code == Exit.INTERNAL:
            raise
        error = refused
    except OSError as refused:
        error = HostError(f"{refused.filename or ''}: {refused.strerror or refused}")
    interrupted = ctrl_c.seen
    ctrl_c.seen = False
    if args.json:
        _print_json(console, line, reply, error)
    elif error is not None:
        say(current().paint(f"{error}", "red"))
    elif reply is not None:
        for text in colour_lines(reply):
            if ctrl_c.seen:
                break
            say(text)
    if interrupted or ctrl_c.seen:
        return Exit.INTERRUPTED
    return error.exit_code if error is not None else 0


def _continuation_indent(line: str, columns: int | None) -> str:
    """What begins the further lines of a row of the help: they stand below its words where these have room."""
    words = re.match(r"  \S.*?  +(?=\S)", line)
    return " " * (words.end() if words and columns and words.end() <= columns // 2 else 6 if words else 2)


def colour_lines(reply: Answer) -> Iterator[str]:
    """Its lines: what stopped a run, and what was changed, brought out; on a terminal lines of the netlist are cut, and
    sentences go on on a further line."""
    screen = current()
    for text in reply.lines:
        line = wrap(text, _continuation_indent(text, screen.columns)) if reply.kind == "help" else text
        if reply.kind in ("list", "stop", "graph") and screen.columns is not None and len(line) > screen.columns:
            line = f"{line[: screen.columns - 3]}..."
        if reply.kind == "stop" and line.startswith(("breakpoint ", "interrupted")):
            yield screen.paint(line, "bold", "cyan")
        elif line.startswith("(changed: "):
            yield screen.paint(line, "yellow")
        elif reply.kind in ("list", "graph") and line.startswith(("->", "> ")):
            yield screen.paint(line, "bold")
        else:
            yield line


def _print_log(console: Console, text: str, args: argparse.Namespace) -> None:
    """What a log point tells, while the run goes on."""
    if args.json:
        _print_json(console, "", answer("log", [text]), None)
    else:
        say(text)


def _print_json(console: Console, line: str, reply: Answer | None, error: BudaError | None) -> None:
    content: dict[str, Any] = {
        "schema_version": RESULT_VERSION,
        "command": line,
        "kind": reply.kind if reply is not None else "error",
        "text": list(reply.lines) if reply is not None else [],
        "data": reply.data if reply is not None else {},
        "error": str(error) if error is not None else None,
        "stop": stop_data(console.run),
        "changed": console.run.changed,
    }
    say(json.dumps(strict(content), allow_nan=False), sys.stdout)
