"""Arguments that several verbs share mean the same everywhere."""

import argparse

import pytest

from buda_emu.app.cli import shared_arguments as shared
from buda_emu.app.cli.main import VERBS, build_parser
from buda_emu.spec.archs import ARCHS

SHARED = {
    "--arch": (
        [
            "run",
            "test",
            "numerics",
            "check",
            "pack",
            "graph",
            "perf",
            "compile",
            "advise",
            "route",
            "reduce",
            "generate",
            "faults",
            "debug",
            "new",
            "diff",
        ],
        "Blackhole",
        "blackhole",
    ),
    "--board": (["run", "perf", "compile", "advise"], "n150", "n150"),
    "--program": (["run", "test", "numerics", "perf", "advise", "faults", "debug"], "p", ["p"]),
    "--param": (["run", "test", "numerics", "perf", "advise", "faults", "debug"], "n=4", [("$n", "4")]),
    "--seed": (["run", "test", "numerics", "advise", "generate", "faults", "debug"], "7", 7),
    "--threads": (["run", "numerics", "debug"], "2", 2),
    "--memory-limit": (["run", "test", "numerics", "faults", "debug", "compile"], "2K", 2048),
    "--workers": (["run", "test", "numerics", "advise", "perf", "compile", "faults"], "3", 3),
    "--dask": (["run", "test", "numerics", "advise", "perf", "compile", "faults"], "tcp://h:1", "tcp://h:1"),
    "--no-cache": (["run", "test", "numerics", "check", "debug"], None, False),
}
_WITHOUT_LIST = f"{', '.join(ARCHS)}; default: wormhole_b0"
NOT_LISTED = {
    "compile": f"{_WITHOUT_LIST}, or that of --board",
    "generate": f"{_WITHOUT_LIST}; with --for-coverage all",
    "new": _WITHOUT_LIST,
}
"""A model lists no architectures, nor do a few words or chance."""
MORE = {
    "pack": ["--tensors", "t", "-o", "o.tti"],
    "reduce": ["--check", "false"],
    "generate": ["-o", "d"],
    "diff": ["g"],
}
NO_FILE = {"generate"}
CASES = [(verb, option) for option, (verbs, *_) in SHARED.items() for verb in verbs]


@pytest.mark.parametrize(("verb", "option"), CASES)
def test_every_verb_reads_them_alike(verb, option):
    _, word, value = SHARED[option]
    given = build_parser(verb).parse_args(
        [verb, *(() if verb in NO_FILE else ("f",)), *MORE.get(verb, ()), option, *([word] if word else ())]
    )
    name = "cache" if option == "--no-cache" else option.strip("-").replace("-", "_")
    assert getattr(given, name) == value


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_describes_them_alike(verb):
    own = {option: action.help for action in _verb_parser(verb)._actions for option in action.option_strings}
    in_run = {option: action.help for action in _verb_parser("run")._actions for option in action.option_strings}
    for option in own.keys() & SHARED.keys():
        assert verb in SHARED[option][0], option
        expected = NOT_LISTED[verb] if option == "--arch" and verb in NOT_LISTED else in_run[option]
        expected += "; of VPUX programs: 37XX, 40XX" if (verb, option) == ("check", "--arch") else ""
        expected = expected.replace("default: 1", "default: one for each processor") if verb == "test" else expected
        assert own[option].replace("to model", "to run").replace("to make faster", "to run") == expected


def _verb_parser(verb):
    """The verb's own parser."""
    (verbs,) = (item for item in build_parser(verb)._actions if isinstance(item, argparse._SubParsersAction))
    return verbs.choices[verb]


NUMBERS = (shared.finite, shared.nonnegative, shared.percentage, shared.correlation)


@pytest.mark.parametrize(
    ("kind", "text", "complaint"),
    [
        (shared.parameter, "n", "is not NAME=VALUE"),
        (shared.parameter, "=4", "is not NAME=VALUE"),
        (shared.natural, "-1", "is not an integer of 0 or more"),
        (shared.positive, "0", "must be at least 1"),
        (shared.seconds, "nan", "is not a number of seconds above 0"),
        (shared.seconds, "0", "is not a number of seconds above 0"),
        (shared.memory_size, "much", "much"),
        *(
            (kind, text, f"'{text}' is not a")
            for kind in NUMBERS
            for text in ("nan", "inf", "-inf", "1e999", "much", "")
        ),
        (shared.nonnegative, "-0.1", "is not a number from 0 on"),
        (shared.percentage, "100.1", "is not a percentage from 0 to 100"),
        (shared.correlation, "99", "is not a PCC from -1 to 1"),
    ],
)
def test_invalid_values_are_refused(kind, text, complaint):
    with pytest.raises(argparse.ArgumentTypeError, match=complaint):
        kind(text)


@pytest.mark.parametrize("verb", VERBS)
def test_no_number_of_a_verb_may_be_nan(verb):
    """Whatever is compared with a limit that is NaN keeps to it, so a gate would be open for ever."""

    def leaves(parser):
        for leaf in parser.below.values():
            yield from leaves(leaf)
        if not parser.below:
            yield parser

    names = [name for leaf in leaves(build_parser(verb).below[verb]) for name, action in leaf.options.items()
             if action.type is float]  # fmt: skip
    assert names == []


def test_a_memory_limit_takes_the_same_words_in_every_verb():
    """One parser: bytes, or a size with its unit."""
    found = {}

    def walk(name, parser):
        for word, leaf in parser.below.items():
            walk(f"{name} {word}", leaf)
        if not parser.below and "memory-limit" in parser.options:
            found[name] = parser.options["memory-limit"]

    for verb in VERBS:
        walk(verb, build_parser(verb).below[verb])
    assert found.keys() == {"run", "test", "numerics", "faults", "debug", "compile", "vpux run"}
    for action in found.values():
        assert (action.type, action.metavar) == (shared.memory_size, "SIZE")
        assert [action.type(text) for text in ("4GiB", "512M", "1.5k", "4096")] == [4 << 30, 512 << 20, 1536, 4096]
    assert found["vpux run"].default == 768 << 20


@pytest.mark.parametrize(
    "text", ["9" * 400, "9" * 400 + "G", "1." + "0" * 400 + "G", "-1", "1e9", "inf", "nan", "", "G", "0"]
)
def test_sizes_that_are_not_numbers_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a size"):
        shared.memory_size(text)
