"""Which netlists a test is about."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.support.errors import HostError
from buda_emu.testing.verify.runs.collect import collect, selection

NETLIST = "devices: {arch: grayskull}\nqueues: {}\n"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A folder with netlists, other YAML files and others."""
    for name, text in {
        "b.yaml": NETLIST,
        "a.yml": NETLIST,
        "notes.txt": NETLIST,
        "defaults.yaml": "test-config: {}\nqueues: {}\n",
        "sub/z.yaml": NETLIST,
        "sub/deep/y.yaml": "graphs: {}\nprograms: []\n",
        "sub/settings.yaml": "a: 1\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_folders_give_their_netlists_by_name(tree):
    assert collect(["."]) == ["./a.yml", "./b.yaml", "./sub/z.yaml", "./sub/deep/y.yaml"]  # a folder's own files first
    assert collect(["sub"]) == ["sub/z.yaml", "sub/deep/y.yaml"]


def test_a_named_file_is_taken_whatever_it_holds(tree):
    assert collect(["notes.txt", "defaults.yaml"]) == ["notes.txt", "defaults.yaml"]


def test_patterns_and_doubles(tree):
    assert collect(["*.y*ml", "b.yaml"]) == ["a.yml", "b.yaml", "defaults.yaml"]
    assert collect(["sub/**/*.yaml"]) == ["sub/deep/y.yaml", "sub/settings.yaml", "sub/z.yaml"]
    assert collect(["b.yaml", "b.yaml"]) == ["b.yaml"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("c.yaml", "c.yaml: there is no such file (did you mean"),
        ("*.json", "no file matches this pattern"),
        ("empty", "no netlist in this folder"),
        ("nowhere/x.yaml", "there is no such file"),
    ],
)
def test_a_path_that_gives_nothing_is_said(tree, path, words):
    (tree / "empty").mkdir()
    with pytest.raises(HostError) as caught:
        collect([path])
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("bert", ["nets/Bert.yaml", "nets/bert_big.yaml"]),
        ("bert and not big", ["nets/Bert.yaml"]),
        ("not bert", ["nets/mha.yaml"]),
        ("not not bert", ["nets/Bert.yaml", "nets/bert_big.yaml"]),
        ("big or mha", ["nets/bert_big.yaml", "nets/mha.yaml"]),
        ("nets/ and (big or mha)", ["nets/bert_big.yaml", "nets/mha.yaml"]),
        ("mha or bert and big", ["nets/bert_big.yaml", "nets/mha.yaml"]),
        ("(mha or bert) and big", ["nets/bert_big.yaml"]),
    ],
)
def test_expressions(expression, chosen):
    names = ["nets/Bert.yaml", "nets/bert_big.yaml", "nets/mha.yaml"]
    assert [name for name in names if selection(expression)(name)] == chosen


@pytest.mark.parametrize(
    ("expression", "words"),
    [("", "missing at the end"), ("a and", "missing at the end"), ("(a", "not closed"), ("a b", "'b' is not expected"),
     ("and a", "missing before 'and'"), ("a )", "')' is not expected")],
)  # fmt: skip
def test_broken_expressions(expression, words):
    with pytest.raises(HostError, match="-k ") as caught:
        selection(expression)
    assert words in str(caught.value)


@given(st.text(alphabet="ab ()notrd", max_size=30))
def test_any_expression_selects_or_is_refused(expression):
    with suppress(HostError):
        assert selection(expression)("a/b") in (True, False)
