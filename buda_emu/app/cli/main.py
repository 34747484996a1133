"""Parse the command line, run one verb, turn what it raises into an exit code (docs/run/run.md, "Exit codes")."""

import gc
import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NoReturn, cast

from buda_emu.app.cli import findings
from buda_emu.app.cli.config import WITHOUT_SETTINGS, Settings, configure
from buda_emu.app.cli.output import complain, keep_stdout_for_results, say, stream_for_words
from buda_emu.app.cli.parser import ExampleParser, Verb, add_verb
from buda_emu.app.cli.shared_arguments import add_shared
from buda_emu.app.documents.kinds import KINDS
from buda_emu.support.errors import BudaError, DocumentError, Exit
from buda_emu.support.files import keep_pipe, refuse_pipe
from buda_emu.support.screen import clean_streams, printing_on, screen_of
from buda_emu.support.version import __version__

# One line for each verb, by the folder of the module that has EXAMPLE and add_arguments. What a verb does is `main` of
# the module of its name in `cli.verbs`, imported when the verb is called; verbs in `about` have all three in one file.
_FOLDERS: Mapping[str, Mapping[str, str]] = {
    "buda_emu.app.cli.arguments": {
        "run": "Run the programs of a netlist or device image and print what its queues hold.",
        "check": "Check documents of any kind against their rules and print every finding with its place.",
        "info": "Say what any file is: its kind, its figures, whether the rules of its kind accept it.",
        "test": "Test netlists: generate inputs, compare outputs, say which are within tolerance.",
        "debug": "Debug a netlist's programs: stop anywhere, inspect, change, go back; also from an editor (--dap).",
        "numerics": "Say why the chip's answer differs: the error of each op, its cause, the cheapest repair.",
        "perf": "Model the cycles of a netlist: its bottleneck, and whether it meets its performance-check.",
        "advise": "Find changes that make a netlist faster, their cost in accuracy, and write the changed netlist.",
        "graph": "Draw a netlist: ops on the core grid of each chip and epoch.",
        "route": "Route a netlist's tiles as the chip's tools do: streams and L1 by core, and what they refuse.",
        "compile": "Compile a model (ONNX, PyTorch) to a netlist and an image with its parameters.",
        "pack": "Write a device image: a netlist with its constants and parameters in one archive.",
        "faults": "Inject thousands of single faults and say what each does to the outputs.",
        "generate": "Write random valid netlists, for tests of backends, kernels and compilers.",
        "reduce": "Shrink a netlist as long as a command still fails on it.",
        "opcycles": "Predict the cycles of the ops that a table lists, one op on one core in each row.",
    },
    # verbs for one kind of document are declared with the kind
    "": {kind.verb: kind.verb_help for kind in KINDS if kind.verb},
    "buda_emu.app.cli.arguments.editing": {
        "new": "Write a first netlist from a few words: a shape and op types.",
        "fmt": "Format netlists in one layout, without changing comments and values.",
        "diff": "Say what differs between two netlists or images: ops, placement, formats, programs, cycles.",
        "lsp": "Serve editors: findings while typing, completion, definitions, renaming, formatting.",
    },
    "buda_emu.app.cli.verbs.about": {
        "explain": "Explain a rule of the checker, or list all of them.",
        "ops": "List the op types of the netlist language and their attributes.",
        "formats": "List the number formats of the netlist language.",
        "schema": "Print the JSON schema of a document that is read or written: netlists, results, settings.",
        "completion": "Print the script that completes this command in a shell.",
        "cache": "Show, fill or clear the caches: compiled kernels, netlists.",
    },
}
_FOLDER_OF = {name: folder for folder, verbs in _FOLDERS.items() for name in verbs}
VERBS: Mapping[str, str] = {name: line for verbs in _FOLDERS.values() for name, line in verbs.items()}
GROUPS: Mapping[str, Sequence[str]] = {
    "write and check netlists": ("new", "check", "info", "graph", "fmt", "diff"),
    "run and test them": ("run", "test", "debug", "numerics"),
    "make them fast": ("perf", "advise", "route", "opcycles"),
    "compile models": ("compile", "pack"),
    "stress tools and chips": ("generate", "faults", "reduce"),
    "files of other compilers": tuple(kind.verb for kind in KINDS if kind.verb),
    "look something up": ("explain", "ops", "formats", "schema"),
    "set up editors, shells and caches": ("lsp", "completion", "cache"),
}
"""The verbs in the order of the help, by what people do with them."""
_ARGUMENTS_OF_KINDS = {kind.verb: f"{kind.command}.arguments" for kind in KINDS if kind.verb}
EXAMPLE = "buda-emu run netlists/attention.yaml"
_INSTEAD: Mapping[tuple[str, str], str] = {
    ("test", "inputs"): "here tensors come from --reference DIR, <queue>.npy for each queue, or from the test-config",
}
"""What a verb takes in place of an option of others, where it has another name."""
_GC_THRESHOLD = 200_000  # imports make many objects and no garbage: collect after so many, not after every 700


def build_parser(*used: str, alone: bool = False) -> ExampleParser:
    """The parser of the command line, with the arguments of the verbs that are going to be used; `alone`: without the
    names of all others, which only the help of the whole command shows."""
    parser = ExampleParser(
        prog="buda-emu",
        example=EXAMPLE,
        description="Load, check and run BUDA netlists with the reference model's exact bits.",
        epilog="buda-emu VERB --help describes each verb.",
    )
    parser.add_argument("--version", action="version", version=f"buda-emu {__version__}")
    verbs = parser.add_subparsers(prog="buda-emu", metavar="VERB", title="verbs", required=True)
    verbs.groups = GROUPS
    for name, line in VERBS.items():
        if name not in used:
            if not alone:
                verbs.add_parser(name, help=line)
            continue
        module = import_module(_ARGUMENTS_OF_KINDS.get(name) or f"{_FOLDER_OF[name]}.{name}")
        work = module.__name__.replace(".arguments.", ".verbs.")
        own = add_verb(verbs, name, Verb(line, module.EXAMPLE, module.add_arguments), work)
        for parser_of_arguments in own.leaves():
            general = parser_of_arguments.add_argument_group("of every verb")
            add_shared(general, "--color", "--config")
            if "verbose" not in parser_of_arguments.options:
                add_shared(general, "--verbose")
        own.set_defaults(color="auto")
    parser.elsewhere = lambda option: _takers(option, used)
    return parser


def _takers(option: str, used: Sequence[str]) -> str:
    """Which other verbs take an option, and what the verbs in use take in its place; "" where none does."""
    name = option.removeprefix("--")
    instead = next((text for verb in used for text in [_INSTEAD.get((verb, name))] if text), "")
    others = [verb for verb in VERBS if verb not in used]
    takers = [f"`{verb}`" for verb, parser in build_parser(*others).below.items() if _takes(parser, name)]
    said = f"an option of {', '.join(takers)}" if takers else ""
    return ": ".join(filter(None, (said, instead)))


def _takes(parser: ExampleParser, name: str) -> bool:
    return any(name in leaf.options for leaf in parser.leaves())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code. Only an internal error shows a traceback."""
    _prepare_streams()
    given = sys.argv[1:] if arguments is None else arguments
    with clean_streams(given):
        return _run(given)


def _run(given: Sequence[str]) -> int:
    verb = next((text for text in given if not text.startswith("-")), "")
    settings = Settings()
    try:
        if not given:
            say(build_parser(verb).format_help().rstrip())
            return Exit.OK
        if verb and verb not in VERBS:
            return _unknown_verb(verb)
        parser = build_parser(verb, alone=given[0] == verb)
        if verb and verb not in WITHOUT_SETTINGS:
            settings = configure(parser.below[verb], verb, VERBS, given)
            findings.choose(settings.choice)
        args = parser.parse_args(given)
        _keep_pipes(given, _documents(parser, args))
        _tell(settings, getattr(args, "verbose", False))
        keep_stdout_for_results(vars(args).values())
        with printing_on(screen_of(stream_for_words(), args.color)):
            return args.verb(args)
    except BudaError as error:
        if error.exit_code == Exit.INTERNAL:
            return _internal_error()
        # findings come with their places; any other message says who speaks
        if isinstance(error, DocumentError) and error.diagnostics and error.is_report:
            complain(_findings(error))
        else:
            complain(f"buda-emu: {error}")
        return error.exit_code
    except OSError as error:
        complain(f"buda-emu: {_describe(error)}")
        return Exit.REFUSED
    except MemoryError as error:
        complain(f"buda-emu: not enough memory{f' ({error})' if str(error) else ''}")
        return Exit.UNSUPPORTED
    except KeyboardInterrupt:
        complain("buda-emu: interrupted")
        return Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the one place where a bug becomes an exit code
        if _stems_from_interrupt(error):
            complain("buda-emu: interrupted")
            return Exit.INTERRUPTED
        return _internal_error()


def _keep_pipes(words: Sequence[str], documents: Iterable[str]) -> None:
    """Keep what pipes give that the caller handed over open, wherever the command line names them. Raises HostError for
    any other pipe in the place of a document."""
    for word in words:
        keep_pipe(word[word.rfind("=") + 1 :])
    for name in documents:
        refuse_pipe(name)


def _documents(parser: ExampleParser, args: Namespace) -> Iterator[str]:
    """What the arguments without an option name."""
    names = {action.dest for leaf in parser.leaves() for action in leaf.arguments if not action.option_strings}
    for name in names:
        value: Any = getattr(args, name, None)
        yield from map(str, cast("list[Any]", value) if isinstance(value, list) else [value])


def _tell(settings: Settings, verbose: bool) -> None:
    """Which settings hold, where that is asked; and which might have been meant to, always."""
    for reason in settings.passed_over:
        complain(f"buda-emu: settings not used: {reason} (--config takes them all the same)")
    if verbose:
        complain(f"buda-emu: settings: {settings.path or 'none'}")


def _stems_from_interrupt(error: BaseException) -> bool:
    """Python and some modules raise another error in place of a Ctrl-C that came while a module was imported."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, KeyboardInterrupt):
            return True
        found = found.__cause__ or found.__context__
    return False


def _prepare_streams() -> None:
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller; what is opened next must not take its place
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
        elif name != "stdin" and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a netlist may hold any character


def _unknown_verb(word: str) -> int:
    from buda_emu.support.checker.suggest import near

    looks_like_file = word.lower().endswith((".yaml", ".yml", ".tti"))
    hint = f"to run it: buda-emu run {word}" if looks_like_file else near(word, VERBS)
    complain(f"buda-emu: no verb {word!r}{f' ({hint})' if hint else ''}; verbs: {', '.join(VERBS)}")
    return Exit.REFUSED


def _findings(error: DocumentError) -> str:
    """The message, its findings in the colours and within the width of standard error."""
    from buda_emu.support.checker.render import render

    text = str(error)
    plain = render(error.diagnostics)
    return text.replace(plain, render(error.diagnostics, screen_of(sys.stderr)), 1)


def _describe(error: OSError) -> str:
    """`file: reason`, without the number."""
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def _internal_error() -> int:
    """Show the traceback of the exception being handled and ask for a report."""
    import traceback

    complain(traceback.format_exc().rstrip())
    complain(
        f"buda-emu: internal error: this is a bug of buda-emu {__version__}, not of the netlist. "
        "Please report it with the traceback above and the netlist."
    )
    return Exit.INTERNAL


def entry() -> NoReturn:
    """Console script. Start and end of the process are a good part of a short run, so both are kept cheap."""
    gc.set_threshold(_GC_THRESHOLD)
    code = main()
    # Nothing is left to do, and taking numba's and numpy's modules apart takes a tenth of a second.
    with suppress(OSError, ValueError):  # a stream that is gone has been dealt with, or was never there
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
