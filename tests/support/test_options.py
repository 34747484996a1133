"""Options that are declared once: keywords of functions, arguments of the command, and the help of both."""

import argparse
import inspect
from typing import Annotated, TypedDict, Unpack

import pytest

import buda_emu as be
from buda_emu.app.cli.config import COMMAND_LINE_ONLY, LOWERABLE
from buda_emu.app.cli.shared_arguments import add_group, read_options
from buda_emu.emulator.options import Execution, SharedOptions
from buda_emu.support.errors import HostError
from buda_emu.support.options import Option, declared_options, names_of, parse_positive, parse_size, with_options


class Sampling(TypedDict, total=False):
    """Options of a sampler, declared here and nowhere else."""

    samples: Annotated[
        int, Option("{what} of each tensor", "N", parse_positive, short="-s", default=8, words={"what": "samples"})
    ]
    names: Annotated[
        list[str], Option("only these", "NAME", flag="--name", default=(), is_repeatable=True, accept=names_of)
    ]
    exact: Annotated[bool, Option("take all", default=False)]


@with_options
def sample(source: str, **options: Unpack[Sampling]) -> str:
    """Return a source and the options for it."""
    return f"{source} {sorted(options.items())}"


def parse(*words):
    parser = argparse.ArgumentParser(prog="sample")
    add_group(parser, Sampling, what="draws")
    return parser, parser.parse_args(words)


def test_a_function_shows_the_options_of_its_group():
    assert str(inspect.signature(sample)) == (
        "(source: str, *, samples: int = 8, names: list[str] = (), exact: bool = False) -> str"
    )
    assert sample("a", samples=2) == "a [('samples', 2)]"
    with pytest.raises(TypeError, match=r"sample\(\) got an unexpected .* 'sample' \(did you mean 'samples'\?\)"):
        sample("a", sample=2)


@pytest.mark.parametrize("names", ["x", ["x"], ("x",), iter(["x"])])
def test_a_name_may_stand_alone(names):
    assert sample("a", names=names) == "a [('names', ('x',))]"


def test_what_is_no_name_is_refused():
    assert names_of(None) == ()
    with pytest.raises(HostError, match="3: expected a name or a list of names"):
        sample("a", names=3)


@pytest.mark.parametrize("names", [b"ab", b"", bytearray(b"a"), {"a": 1}, ["a", 3], [b"a"], [["a"]]])
def test_names_are_texts(names):
    with pytest.raises(HostError, match="expected a name or a list of names"):
        names_of(names)


def test_any_function_can_hint_at_the_keyword_that_was_meant():
    with pytest.raises(TypeError, match=r"load\(\) got an unexpected .* 'arhc' \(did you mean 'arch'\?\)"):
        be.load("net.yaml", arhc="grayskull")
    assert str(inspect.signature(be.load)).startswith("(path: ")


def test_the_command_takes_and_gives_the_same_options():
    parser, args = parse("-s", "3", "--name", "a", "--name", "b", "--exact")
    assert read_options(args, Sampling) == {"samples": 3, "names": ["a", "b"], "exact": True}
    assert read_options(parse()[1], Sampling) == {"samples": 8, "names": [], "exact": False}
    assert "-s N, --samples N  draws of each tensor" in " ".join(parser.format_help().split(" " * 1)).replace(
        "   ", "  "
    )


def test_a_value_is_converted_by_the_declaration(capsys):
    with pytest.raises(SystemExit):
        parse("--samples", "0")
    assert "argument -s/--samples: must be at least 1" in capsys.readouterr().err


def test_every_shared_option_is_known_to_the_settings_by_its_declaration():
    options = {option.flag_of(keyword)[2:]: option for keyword, option in declared_options(SharedOptions).items()}
    assert {"dask", "allow-pickle"} <= COMMAND_LINE_ONLY.keys()
    assert frozenset({"memory-limit"}) == LOWERABLE
    assert all(option.help and (option.metavar or option.choices or option.is_switch) for option in options.values())


@pytest.mark.parametrize("function", [be.advise, be.debug, be.faults, be.numerics, be.perf, be.test])
def test_public_functions_refuse_words_that_are_no_options(function):
    with pytest.raises(TypeError, match="unexpected keyword argument 'memroy_limit'"):
        function("no.yaml", memroy_limit=1)


def test_public_functions_name_their_shared_options():
    known = inspect.signature(be.test).parameters
    assert declared_options(Execution).keys() < known.keys()
    assert known["workers"].default == 1
    assert known["timeout"].default == 600.0


@pytest.mark.parametrize("text", ["much", "-1", "", "G", "0"])
def test_sizes_that_are_not_numbers_are_refused(text):
    with pytest.raises(HostError, match="is not a size"):
        parse_size(text)
