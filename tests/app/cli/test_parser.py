"""Help and complaints of the command line's parser."""

import re

import pytest

from buda_emu.app.cli.main import GROUPS, VERBS, main


def exit_code_and_output(capsys, *words):
    with pytest.raises(SystemExit) as leaving:
        main(list(words))
    shown = capsys.readouterr()
    return leaving.value.code, shown.out or shown.err


@pytest.mark.parametrize(
    ("verb", "usage"),
    [
        ("perf", "usage: buda-emu perf [options] FILE"),
        ("pack", "usage: buda-emu pack [options] --tensors DIR -o FILE FILE"),  # what is needed stays
        ("formats", "usage: buda-emu formats [-h] [--color {auto,always,never}] [--config FILE]"),
    ],
)
def test_usage_is_one_line(verb, usage, capsys):
    code, text = exit_code_and_output(capsys, verb, "--help")
    assert code == 0
    assert text.splitlines()[2] == usage


@pytest.mark.parametrize("verb", ["run", "perf", "gemini run", "vpux check", "darwinn run"])
def test_options_of_every_verb_stand_last(verb, capsys):
    _, text = exit_code_and_output(capsys, *verb.split(), "--help")
    assert text.partition("\nof every verb:\n")[2].split()[0] == "--color"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("perf", "net.yaml", "--quite"), "--quite (did you mean '--quiet'?)"),
        (("run", "net.yaml", "--precison=ideal"), "--precison=ideal (did you mean '--precision'?)"),
        (("gemini", "run", "a.json", "--freqghz", "2"), "--freqghz 2 (did you mean '--freq-ghz'?)"),
        (("perf", "net.yaml", "--zzzzzzzz"), "--zzzzzzzz\n"),
        (("perf", "net.yaml", "--what-is-not", "-q"), "--what-is-not\n"),
        (
            ("perf", "net.yaml", "--inputs", "x.npz"),
            "--inputs x.npz (an option of `run`, `debug`, `numerics`, `faults`)",
        ),
        (("run", "net.yaml", "--fail-above", "3"), "--fail-above 3 (an option of `perf`)"),
        (("test", "net.yaml", "--inputs", "x.npz"), "`faults`: here tensors come from --reference DIR"),
    ],
)
def test_an_unknown_option_gets_the_one_that_was_meant(words, hint, capsys):
    code, text = exit_code_and_output(capsys, *words)
    assert code == 2
    assert hint in text
    verb = "gemini" if words[0] == "gemini" else f"{words[0]} [options]"
    assert text.startswith(f"usage: buda-emu {verb} ")


def test_the_help_groups_verbs_by_what_people_do(capsys):
    code, text = exit_code_and_output(capsys, "--help")
    assert code == 0
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(VERBS)  # each once
    places = [text.index(f"\n  {title}:\n") for title in GROUPS]
    assert places == sorted(places)
    for (title, names), start, end in zip(GROUPS.items(), places, [*places[1:], len(text)], strict=True):
        shown = re.findall(r"^    (\w+)(?: |$)", text[start:end], re.MULTILINE)
        assert tuple(shown) == tuple(names), title
    assert main([]) == 0
    assert f"\n  {next(iter(GROUPS))}:\n" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "says"), [
    (("perf", "a.yaml", "b.yaml"), "unrecognized arguments: b.yaml: perf takes one FILE at a time\n"),
    (("vpux", "run", "a.mlir", "b.mlir"), "unrecognized arguments: b.mlir: run takes one FILE at a time\n"),
    (("diff", "a", "b", "c"), "unrecognized arguments: c\n"),
])  # fmt: skip
def test_a_verb_of_one_file_says_so(words, says, capsys):
    assert exit_code_and_output(capsys, *words)[1].endswith(says)
