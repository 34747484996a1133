"""The command: parse the command line, run one verb, and turn exceptions into exit codes (docs/run/run.md, "Exit
codes")."""

import gc
import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn, cast

from buda_emu.app.cli import findings
from buda_emu.app.cli.config import WITHOUT_SETTINGS, Settings, configure
from buda_emu.app.cli.output import (
    complain,
    keep_stdout_for_results,
    require_suffix,
    require_writable,
    say,
    word_stream,
)
from buda_emu.app.cli.parser import ExampleParser, Verb, add_verb
from buda_emu.app.cli.shared_arguments import add_shared
from buda_emu.app.documents.kinds import KINDS, require_kind, require_netlists
from buda_emu.support.errors import BudaError, DocumentError, Exit
from buda_emu.support.files import keep_pipe, refuse_pipe
from buda_emu.support.lazy import lazy
from buda_emu.support.options import as_list
from buda_emu.support.other_packages import package_at_fault
from buda_emu.support.screen import clean_streams, printing_on, screen_of
from buda_emu.support.version import __version__

if TYPE_CHECKING:
    from buda_emu.emulator.image import opened
else:
    opened = lazy("buda_emu.emulator.image.opened")  # most verbs have nothing for it

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
        "example": "Write one of the commented netlists that come along, or list them.",
        "explain": "Explain a rule of the checker, or list all of them.",
        "ops": "List the op types of the netlist language and their attributes.",
        "formats": "List the number formats of the netlist language.",
        "schema": "Print the JSON schema of a document that is read or written: netlists, results, settings.",
        "completion": "Print the script that completes this command in a shell.",
        "cache": "Show, fill or clear the caches: compiled kernels, netlists.",
    },
}
_FOLDER_OF = {name: folder for folder, verbs in _FOLDERS.items() for name in verbs}
VERBS: Mapping[str, str] = dict(chain.from_iterable(verbs.items() for verbs in _FOLDERS.values()))
GROUPS: Mapping[str, Sequence[str]] = {
    "write and check netlists": ("new", "example", "check", "info", "graph", "fmt", "diff"),
    "run and test them": ("run", "test", "debug", "numerics"),
    "make them fast": ("perf", "advise", "route", "opcycles"),
    "compile models": ("compile", "pack"),
    "stress tools and chips": ("generate", "faults", "reduce"),
    "files of other compilers": tuple(kind.verb for kind in KINDS if kind.verb),
    "look something up": ("explain", "ops", "formats", "schema"),
    "set up editors, shells and caches": ("lsp", "completion", "cache"),
}
"""The verbs in the order of the help, by what people do with them."""
_OF_NETLISTS: Sequence[str] = (
    "run", "test", "debug", "numerics", "perf", "advise", "graph", "route", "faults", "reduce", "pack", "fmt", "diff",
)  # fmt: skip
"""Verbs that take netlists and images, and no document of another kind."""
_WITH_VALUES = ("run", "test", "debug", "numerics", "faults")
"""Those that compute with parameters, and make up what they are not given."""
_ARGUMENTS_OF_KINDS = {kind.verb: f"{kind.command}.arguments" for kind in KINDS if kind.verb}
EXAMPLE = "buda-emu run netlists/attention.yaml"
_INSTEAD: Mapping[tuple[str, str], str] = {
    ("test", "inputs"): "here tensors come from --reference DIR, <queue>.npy for each queue, or from the test-config",
}
"""(verb, option of other verbs) -> what the verb takes instead, under another name."""
_JSON = (".json", ".json.gz")
_PAGE = (".html", ".htm")
_RESULT_FILES: Mapping[str, tuple[str, ...]] = {
    "json": _JSON,
    "junitxml": (".xml",),
    "csv": (".csv",),
    "trace": (*_JSON, ".html"),
    "chart": (".svg",),
    "timeline": (*_JSON, ".html"),
    "perfetto": _JSON,
    "page": _PAGE,
    "coverage": (".json",),
    "write_sites": (".jsonl", ".json"),
}
"""Options whose FILE, where they take one, is written when the work is done, with the endings of its formats."""
_OTHER_WORDS: Mapping[str, str] = {
    "format": "fmt", "lint": "check", "validate": "check", "verify": "check", "simulate": "run", "exec": "run",
    "profile": "perf", "bench": "perf", "benchmark": "perf", "draw": "graph", "plot": "graph", "init": "new",
    "create": "new", "examples": "example", "help": "--help",
}  # fmt: skip
"""The names that other tools have for a verb -> its name here."""
_GC_THRESHOLD = 200_000  # imports make many objects and no garbage: collect after so many, not after every 700


def build_parser(*used: str, alone: bool = False) -> ExampleParser:
    """Build the parser of the command line, with the arguments of the verbs in `used` only, since those of a verb take
    time to import. Of all other verbs it knows the name and the help line, or with `alone` nothing."""
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
        verb_parser = add_verb(verbs, name, Verb(line, module.EXAMPLE, module.add_arguments, f"{work}:main"))
        for leaf in verb_parser.leaves():
            general = leaf.add_argument_group("of every verb")
            add_shared(general, "--color", "--config")
            if "verbose" not in leaf.options:
                add_shared(general, "--verbose")
        verb_parser.set_defaults(color="auto")
    parser.describe_owners = lambda option: _describe_owners(option, used)
    return parser


def _describe_owners(option: str, used: Sequence[str]) -> str:
    """Return text for the error about an unknown option: which verbs outside of `used` take it, and what a verb in
    `used` takes instead; "" if there is neither."""
    name = option.removeprefix("--")
    parts: list[str] = []
    other_verbs = [verb for verb in VERBS if verb not in used]
    owners = [f"`{verb}`" for verb, parser in build_parser(*other_verbs).below.items() if _has_option(parser, name)]
    if owners:
        parts.append(f"an option of {', '.join(owners)}")
    replacements = [_INSTEAD[verb, name] for verb in used if (verb, name) in _INSTEAD]
    return ": ".join([*parts, *replacements[:1]])


def _has_option(parser: ExampleParser, name: str) -> bool:
    """Return whether a verb, or a verb below it, takes an option, named without its dashes."""
    return any(name in leaf.options for leaf in parser.leaves())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code. Only an internal error prints a traceback."""
    _prepare_streams()
    words = sys.argv[1:] if arguments is None else arguments
    with clean_streams(words):
        return _run(words)


def _run(words: Sequence[str]) -> int:
    """Run a verb, report any exception to standard error, and return the exit code."""
    try:
        return _run_verb(words)
    except BudaError as error:
        return _report_error(error)
    except OSError as error:
        complain(f"buda-emu: {_describe_os_error(error)}")
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
        return _report_internal_error()


def _run_verb(words: Sequence[str]) -> int:
    """Parse the words of the command line with the project's settings as defaults, run the verb, and return the exit
    code. Without words, print the help. Raises what the verb raises."""
    if not words:
        say(build_parser("").format_help().rstrip())
        return Exit.OK
    verb = next((text for text in words if not text.startswith("-")), "")
    if verb and verb not in VERBS:
        return _report_unknown_verb(verb)
    parser = build_parser(verb, alone=words[0] == verb)
    settings = Settings()
    if verb and verb not in WITHOUT_SETTINGS:
        settings = configure(parser.below[verb], verb, VERBS, words)
        findings.set_choice(settings.choice)
    args = parser.parse_args(words)
    _keep_pipes(words, _positional_values(parser, args))
    if verb in _ARGUMENTS_OF_KINDS:
        require_kind(verb, _word_below(words, verb), _positional_values(parser, args))
    if verb in _OF_NETLISTS:
        require_netlists(verb, _positional_values(parser, args), models=bool(getattr(args, "sweep", ())))
    if verb in _WITH_VALUES:
        _complain_of_missing_parameters(verb, _positional_values(parser, args))
    _print_settings(settings, getattr(args, "verbose", False))
    keep_stdout_for_results(vars(args).values())
    _require_result_files(args)
    with printing_on(screen_of(word_stream(), args.color)):
        return args.verb(args)


def _report_error(error: BudaError) -> int:
    """Print an error of this package to standard error, and return its exit code."""
    if error.exit_code == Exit.INTERNAL:
        return _report_internal_error()
    # Findings come with their places; any other message says which program prints it.
    if isinstance(error, DocumentError) and error.diagnostics and error.is_report:
        complain(_render_findings(error))
    else:
        complain(f"buda-emu: {error}")
    return error.exit_code


def _keep_pipes(words: Sequence[str], documents: Iterable[str]) -> None:
    """Let each pipe that the command line names, such as /dev/fd/63, be opened more than once. Raises HostError for a
    document whose name is another pipe."""
    for word in words:
        keep_pipe(word[word.rfind("=") + 1 :])
    for name in documents:
        refuse_pipe(name)


def _positional_values(parser: ExampleParser, args: Namespace) -> Iterator[str]:
    """Yield as text the values of all positional arguments, among which are the names of documents, in their order."""
    names: dict[str, None] = {}
    for leaf in parser.leaves():
        names.update(dict.fromkeys(action.dest for action in leaf.arguments if not action.option_strings))
    for name in names:
        value: Any = getattr(args, name, None)
        yield from map(str, as_list(value))


def _complain_of_missing_parameters(verb: str, names: Iterable[str]) -> None:
    """Print a note for each netlist of a compiled model whose parameters are in the image beside it: without them, a
    verb that computes values makes them up."""
    for name in names:
        image = opened.image_beside(name)
        if image is not None:
            complain(
                f"buda-emu: {name} is the netlist of {image}, which also holds its parameters and the names of the "
                f"model's inputs; here they are made up: `buda-emu {verb} {image}`"
            )


def _require_result_files(args: Namespace) -> None:
    """Refuse, before any work is done, files of results that cannot be written, or whose names tell another format.
    Raises OSError, HostError."""
    for name, suffixes in _RESULT_FILES.items():
        path = getattr(args, name, None)
        if isinstance(path, os.PathLike):
            option = f"--{name.replace('_', '-')}"
            require_writable(option, cast("os.PathLike[str]", path))
            require_suffix(option, cast("os.PathLike[str]", path), suffixes)


def _word_below(words: Sequence[str], verb: str) -> str:
    """Return the first word after `verb` on the command line that is no option, which names the verb below it; "" if
    there is none."""
    below = words[words.index(verb) + 1 :]
    return next((word for word in below if not word.startswith("-")), "")


def _print_settings(settings: Settings, verbose: bool) -> None:
    """Print which settings files were not used, and with `verbose` the one that is."""
    for reason in settings.passed_over:
        complain(f"buda-emu: settings not used: {reason} (--config takes them all the same)")
    if verbose:
        complain(f"buda-emu: settings: {settings.path or 'none'}")


def _stems_from_interrupt(error: BaseException) -> bool:
    """Return whether an exception was raised because of Ctrl-C: Python and some modules replace a KeyboardInterrupt
    that arrives during an import."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _prepare_streams() -> None:
    """Open the null device in place of standard streams that the caller closed, and let the output streams escape
    characters that their encoding lacks."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller; what is opened next must not take its place
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
        elif name != "stdin" and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a netlist may hold any character


def _report_unknown_verb(word: str) -> int:
    """Print an error about a word that is no verb, with a hint, and return the exit code."""
    from buda_emu.support.checker.suggest import near

    hint = near(word, VERBS)
    if word.lower() in _OTHER_WORDS:
        hint = f"did you mean '{_OTHER_WORDS[word.lower()]}'?"
    if word.lower().endswith((".yaml", ".yml", ".tti")):  # the user left out the verb
        hint = f"to run it: buda-emu run {word}"
    suffix = f" ({hint})" if hint else ""
    complain(f"buda-emu: no verb {word!r}{suffix}; verbs: {', '.join(VERBS)}")
    return Exit.REFUSED


def _render_findings(error: DocumentError) -> str:
    """Return the message of an error with its findings in the colours and within the width of standard error."""
    from buda_emu.support.checker.render import render

    text = str(error)
    plain = render(error.diagnostics)
    return text.replace(plain, render(error.diagnostics, screen_of(sys.stderr)), 1)


def _describe_os_error(error: OSError) -> str:
    """Return `file: reason` of an operating system error, without its number."""
    reason = error.strerror or str(error)
    if error.filename:
        return f"{error.filename}: {reason}"
    return reason


def _report_internal_error() -> int:
    """Print the traceback of the current exception and whom to report it to, the authors of this package or of an
    extension, and return the exit code."""
    import traceback

    complain(traceback.format_exc().rstrip())
    package = package_at_fault(sys.exc_info()[2], "buda_emu")
    if package:
        complain(
            f"buda-emu: internal error: this is a bug of the package {package}, which adds to buda-emu. "
            "Please report it to its authors with the traceback above and the document."
        )
        return Exit.INTERNAL
    complain(
        f"buda-emu: internal error: this is a bug of buda-emu {__version__}, not of the netlist. "
        "Please report it with the traceback above and the netlist."
    )
    return Exit.INTERNAL


def entry() -> NoReturn:
    """Run the command and end the process. Starting and ending Python is a good part of a short run, so both are kept
    cheap."""
    gc.set_threshold(_GC_THRESHOLD)
    code = main()
    # Nothing is left to do, and taking numba's and numpy's modules apart takes a tenth of a second.
    with suppress(OSError, ValueError):  # a stream that is gone has been dealt with, or was never there
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
