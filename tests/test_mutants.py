"""The tool that changes code and asks whether a test notices; and that the tests of every room mostly do."""

import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import mutate
from mutation.forked import in_child, run_in_order
from mutation.judging import explanations
from mutation.sites import PACKAGE, at_lines, count, mutant, sample
from mutation.touched import OF_SEVERAL, Touched, digest
from shared_files import ROOT

FOLDERS = [path for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))]
ROOMS = sorted(
    path.relative_to(PACKAGE).as_posix()
    for folder in FOLDERS
    for path in (folder.iterdir() if folder.name in OF_SEVERAL else (folder,))
    if path.is_dir() and any(path.glob("*.py"))
)


def changes(text: str, tmp_path: Path) -> list[str]:
    path = tmp_path / "module.py"
    path.write_text(text)
    return [mutant(path, number).change for number in range(count(path))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = a < 2", ["a < 2 -> a <= 2", "a < 2 -> a > 2", "2 -> 3"]),
        ("x = a and not b", ["a and (not b) -> a or not b", "not b -> not not b"]),
        ("x = a << b", ["a << b -> a >> b"]),
        ("x = True", ["True -> False"]),
        ("x = -1", ["-1 -> -0"]),
        ("x += y", ["x += y -> x -= y"]),
        ("x = a is None", ["a is None -> a is not None"]),
        ("@cache(8)\ndef f(a: int | None) -> int | None: ...", []),
        ("raise Error(f'{a + 1}', 2 + 3)", []),
        ("x = f'{a + 1}'", []),
        ("x = 'a' + b", []),
    ],
)
def test_what_is_changed(text: str, expected: list[str], tmp_path: Path) -> None:
    assert sorted(changes(text, tmp_path)) == sorted(expected)


def test_a_sample_is_the_same_each_time_and_another_for_another_seed() -> None:
    paths = mutate.files("arithmetic/formats")
    one, again, other = (sample(paths, 10, seed) for seed in (1, 1, 2))
    assert [str(item) for item in one] == [str(item) for item in again]
    assert [str(item) for item in one] != [str(item) for item in other]
    assert len(sample([PACKAGE / "arithmetic/formats/bits.py"], None, 0)) == count(
        PACKAGE / "arithmetic/formats/bits.py"
    )


def test_a_sample_does_not_depend_on_other_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutation.sites.ROOT", tmp_path)
    path = tmp_path / "module.py"
    lines = [f"x{number} = {number}" for number in range(50)]
    path.write_text("\n".join(lines))
    before = [item.source for item in sample([path], 10, 0)]
    path.write_text("\n".join(["# a line more", *lines]))
    assert [item.source for item in sample([path], 10, 0)] == before


def test_the_lines_of_a_mutant_and_when_they_run(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("x = (\n    1\n)\ndef f(a=2):\n    if (a\n            < 3):\n        return a\n")
    found = {item.change: (item.lines, item.at_import) for item in (mutant(path, n) for n in range(count(path)))}
    assert found["1 -> 2"] == (range(1, 4), True)
    assert found["2 -> 3"] == (range(4, 5), True)
    assert found["3 -> 4"] == found["a < 3 -> a > 3"] == (range(5, 7), False)


def test_tests_that_run_the_line_come_first_and_quick_ones_before_slow() -> None:
    path = PACKAGE / "arithmetic/formats/packing.py"
    one = next(item for item in sample([path], None, 0) if not item.at_import)
    file, own, far = (
        str(path.relative_to(ROOT)),
        "tests/arithmetic/formats/test_packing.py::a",
        "tests/arithmetic/formats/test_x.py::b",
    )
    line = one.lines[0]
    found = Touched(
        {
            own: 2.0,
            far: 1.0,
            "t.py::slow": 5.0,
            "t.py::quick": 0.1,
            "u.py::starts": 0.1,
            "u.py::none": 0.1,
            "t.py::beside": 9.0,
        },
        {"u.py::starts"},
        {file: {line: ["t.py::slow", "t.py::quick", own], line + 1000: [far]}},
        {file: digest(path)},
    )
    assert found.tests(one) == [own, "t.py::quick", "t.py::slow", far, "t.py::beside", "u.py::starts"]
    found.digests.clear()  # lines of another time say nothing
    assert found.tests(one) == [own, "t.py::quick", far, "t.py::slow", "u.py::starts"]


def test_explained_survivors_are_mutants_of_today() -> None:
    """Each row of tools/mutants.tsv is a mutant of its file, and has a reason."""
    assert all(explanations().values())
    for file in {path for path, _, _ in explanations()}:
        path = PACKAGE / file
        known = {key for key in explanations() if key[0] == file}
        assert known <= {item.key for item in at_lines(path, {source for _, source, _ in known})}


def test_every_room_has_been_tried() -> None:
    """At least 30 mutants of each, nine tenths noticed or explained; contributing.md tells the sum."""
    head, *rows = (line.split("\t") for line in mutate.TRIED.read_text(encoding="utf-8").splitlines())
    assert head == ["room", "seed", "tried", "noticed", "explained", "survived"]
    assert {row[0] for row in rows} <= set(ROOMS)
    figures = [[int(figure) for figure in row[2:]] for row in rows]
    for tried, noticed, known, survived in figures:
        assert tried == noticed + known + survived >= 30
        assert noticed + known >= mutate.ENOUGH * tried
    tried, noticed, known, survived = (sum(column) for column in zip(*figures, strict=True))
    left = sorted(set(ROOMS) - {row[0] for row in rows})
    told = " ".join((ROOT / "docs/contributing.md").read_text(encoding="utf-8").split())
    begun = f"Of {tried} mutants in {len(rows)} rooms"
    assert f"{begun} {noticed} are noticed, {known} explained and {survived} left" in told
    assert not left or f"not yet sampled: {', '.join(left)}." in told


def test_a_survivor_is_printed_and_fails_the_run(tmp_path: Path) -> None:
    """In a small package of its own: a comparison that its test looks at, one that the test looks at in a process with
    an environment of its own, and a number that nothing looks at, in a module that is run by its name."""
    shutil.copytree(ROOT / "tools/mutation", tmp_path / "tools/mutation")
    shutil.copy(ROOT / "tools/mutate.py", tmp_path / "tools")
    room, tests = tmp_path / "buda_emu/room", tmp_path / "tests/room"
    room.mkdir(parents=True)
    tests.mkdir(parents=True)
    (tmp_path / "buda_emu/__init__.py").write_text("")
    (room / "__init__.py").write_text("")
    (room / "small.py").write_text("def less(a, b):\n    return a < b\n")
    (tests / "test_small.py").write_text(
        "from buda_emu.room.small import less\n\n\ndef test_less():\n    assert less(1, 2) and not less(2, 2)\n"
    )
    (room / "named.py").write_text("UNUSED = 3\n")
    (tests / "test_named.py").write_text(
        "import subprocess\nimport sys\n\n\ndef test_named():\n"
        "    subprocess.run([sys.executable, '-m', 'buda_emu.room.named'], check=True)\n"
    )
    (room / "told.py").write_text("def positive(a):\n    return a > 0\n")
    (tests / "test_told.py").write_text(
        "import subprocess\nimport sys\n\n\ndef test_told():\n"
        "    code = 'from buda_emu.room.told import positive; assert positive(1) and not positive(0)'\n"
        f"    subprocess.run([sys.executable, '-c', code], env={{'PYTHONPATH': {str(tmp_path)!r}}}, check=True)\n"
    )
    run = [sys.executable, "tools/mutate.py", "room", "--all"]
    environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    found = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert not found.stderr
    assert found.stdout == "buda_emu/room/named.py:1: 3 -> 4: UNUSED = 3\nroom: 5 noticed, 1 survived\n"
    assert found.returncode == 1
    (tmp_path / "tools/mutants.tsv").write_text("# why\nroom/named.py\tUNUSED = 3\t3 -> 4\tnobody reads it\n")
    found = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert found.stdout == "room: 5 noticed, 1 explained, 0 survived\n"
    assert found.returncode == 0


def test_a_test_that_waits_for_ever_gets_its_own_time_not_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutation.forked.WAIT", 1)
    hook = SimpleNamespace(pytest_runtest_protocol=lambda **_: time.sleep(60))
    session = SimpleNamespace(items=[SimpleNamespace(nodeid="waits", config=SimpleNamespace(hook=hook))], testsfailed=0)
    begun = time.monotonic()
    assert in_child(lambda folder: run_in_order(session, {"waits": 0.0}, folder), 1000.0, compiled=False) == "waits"
    assert time.monotonic() - begun < 50


WHOLE = (
    "arithmetic/formats/bits.py",
    "testing/verify/comparison.py",
    "testing/verify/figures.py",
)
"""Files that decide whether a run is good: no mutant may be left."""


@pytest.mark.slow
@pytest.mark.parametrize("file", WHOLE)
def test_every_mutant_of_what_decides_is_noticed(file: str) -> None:
    found = subprocess.run([sys.executable, "tools/mutate.py", file, "--all"], cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_most_mutants_of_a_room_are_noticed(room: str) -> None:
    """A tenth of a sample of 30 may be left; no longer than 20 minutes each."""
    run = [sys.executable, "tools/mutate.py", room, "--sample", "30", "--seconds", "1200"]
    found = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
