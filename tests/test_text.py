"""The text of the package, and of the folders beside it, does not become harder to read (tools/text_figures.py)."""

import ast

import pytest

from text_figures import FIGURES, Measurement, complexity, exceeded_limits, measure_file, measure_packages, read_limits


def measured(text, tmp_path, monkeypatch):
    monkeypatch.setattr("text_figures.ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(text)
    measurement = Measurement()
    measure_file(path, measurement)
    return {name: places.total() for name, places in measurement.places.items() if places}


@pytest.fixture(scope="module")
def packages():
    return measure_packages()


def test_no_figure_of_a_package_rises(packages):
    assert list(exceeded_limits(packages, read_limits())) == []


def test_limits_name_packages_and_figures_that_exist(packages):
    names = {figure.name for figure in FIGURES}
    assert {package for package, _ in read_limits()} == set(packages)
    assert {figure for _, figure in read_limits()} == names


@pytest.mark.parametrize(
    ("text", "figure"),
    [
        ("def place(found):\n    pass", "vague names"),
        ("def place():\n    for item in ():\n        pass", "vague names"),
        ("def placed():\n    pass", "participles"),
        ("def place():\n    '''Of all pipes.'''", "continuing docstrings"),
        ("class Place:\n    '''Whether it is.'''", "continuing docstrings"),
        ("x = 1 if y else 2", "conditional expressions"),
        ("a, b = 1, 2", "parallel assignments"),
        ("x = [b for a in c for b in a]", "nested comprehensions"),
        ("Place(1, 2, 3, 4, 5)", "positional records"),
        ("def place():\n" + "    if x:\n        pass\n" * 10, "complex functions"),
    ],
)
def test_each_figure_counts_what_it_says(text, figure, tmp_path, monkeypatch):
    assert measured(text, tmp_path, monkeypatch) == {figure: 1}


@pytest.mark.parametrize(
    "text",
    [
        "@property\ndef placed(self):\n    pass",
        "def place(queues):\n    '''Return the place.'''",
        "'''What the module does.'''",
        "a, b = pair",
        "x = [a for a in c if a]",
        "place(1, 2, 3, 4, 5)",
        "Place(1, 2, 3, 4, e=5)",
        "def place():\n" + "    if x:\n        pass\n" * 9,
    ],
)
def test_what_reads_well_is_not_counted(text, tmp_path, monkeypatch):
    assert measured(text, tmp_path, monkeypatch) == {}


def test_a_rise_is_reported_with_the_files(tmp_path, monkeypatch):
    monkeypatch.setattr("text_figures.ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text("def placed():\n    pass")
    measurement = Measurement()
    measure_file(path, measurement)
    (message,) = exceeded_limits({"netlist": measurement}, {})
    assert message == "netlist: participles rise from 1.0 to 100.0; most in module.py"


def test_complexity_counts_decisions():
    text = "def f():\n    if a and b:\n        pass\n    return [c for c in d if c]"
    (function,) = ast.parse(text).body
    assert complexity(ast.walk(function)) == 4
