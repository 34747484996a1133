"""What is imported when it is first asked for."""

import re
import sys
import types
from importlib import import_module

import pytest

import buda_emu as be
from buda_emu.foreign import darwinn, gemini, vpux
from buda_emu.support.lazy import lazy


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a module that counts how often it is imported."""
    folder = tmp_path / "lazily_made"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from buda_emu.support.lazy import lazy_names\n_OF = {'answer': 'lazily_made.part'}\n"
        "__getattr__, __dir__ = lazy_names(__name__, _OF)\n"
    )
    (folder / "part.py").write_text("answer = 42\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "lazily_made"
    for name in ("lazily_made", "lazily_made.part"):
        sys.modules.pop(name, None)


def test_a_module_is_imported_with_the_first_name_of_it(package):
    part = lazy(f"{package}.part")
    assert isinstance(part, types.ModuleType)
    assert package not in sys.modules
    assert part.answer == 42
    assert vars(part)["answer"] == 42  # from now on without a detour
    with pytest.raises(AttributeError, match="has no attribute 'question'"):
        part.question  # noqa: B018 - the access is the test


def test_names_of_a_package_are_imported_when_they_are_asked_for(package):
    made = __import__(package)
    assert "answer" in dir(made)
    assert f"{package}.part" not in sys.modules
    assert made.answer == 42
    with pytest.raises(AttributeError, match="module 'lazily_made' has no attribute 'question'"):
        made.question  # noqa: B018


@pytest.mark.parametrize("module", [be, vpux, gemini, darwinn])
def test_a_name_that_does_not_exist_comes_with_the_one_that_was_meant(module):
    with pytest.raises(AttributeError, match=r"has no attribute 'laod' \(did you mean 'load'\?\)"):
        module.laod  # noqa: B018
    assert not hasattr(module, "__laod__")


@pytest.mark.parametrize("name", sorted(be._ELSEWHERE))
def test_a_verb_of_the_command_is_found_where_python_has_it(name):
    place = be._ELSEWHERE[name]
    with pytest.raises(AttributeError, match=rf"no attribute '{name}' \({re.escape(place)}\)"):
        getattr(be, name)
    for words in re.findall(r"buda_emu(?:\.\w+)+", place):
        module, _, function = words.rpartition(".")
        if module != "buda_emu":
            assert callable(getattr(import_module(module), function))
