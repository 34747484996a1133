"""The tool that changes code and asks whether a test notices; and that the tests of every room mostly do."""

import subprocess
import sys
from pathlib import Path

import pytest

import mutate
from shared_files import ROOT

ROOMS = sorted(path.name for path in (ROOT / "buda_emu").iterdir() if path.is_dir() and any(path.glob("*.py")))


def changes(text: str, tmp_path: Path) -> list[str]:
    path = tmp_path / "module.py"
    path.write_text(text)
    return [mutate.mutant(path, number).change for number in range(mutate.count(path))]


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
    paths = mutate.files("numerics")
    one, again, other = (mutate.sample(paths, 10, seed) for seed in (1, 1, 2))
    assert [str(item) for item in one] == [str(item) for item in again]
    assert [str(item) for item in one] != [str(item) for item in other]
    assert len(mutate.sample([mutate.PACKAGE / "numerics/bits.py"], None, 0)) == mutate.count(
        mutate.PACKAGE / "numerics/bits.py"
    )


def test_the_tests_of_a_file_come_first() -> None:
    first, second = mutate.tests_of(mutate.PACKAGE / "numerics/floats.py")
    assert first == [str(ROOT / "tests/numerics/test_floats.py")]
    assert second == [str(ROOT / "tests/numerics")]
    (whole,) = mutate.tests_of(mutate.PACKAGE / "kernels/pack.py")
    assert whole[:2] == ["-m", "tiny"]


def test_explained_survivors_are_mutants_of_today() -> None:
    """Each row of tools/mutants.tsv is a mutant of its file, and has a reason."""
    assert all(mutate.explained().values())
    for file in {path for path, _, _ in mutate.explained()}:
        path = mutate.PACKAGE / file
        of_today = {mutate.mutant(path, number).key for number in range(mutate.count(path))}
        assert {key for key in mutate.explained() if key[0] == file} <= of_today


def test_a_survivor_is_printed_and_fails_the_run(tmp_path: Path) -> None:
    """In a small package of its own: one comparison that its test looks at, and a number that nothing does."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/mutate.py").write_text((ROOT / "tools/mutate.py").read_text(encoding="utf-8"))
    room, tests = tmp_path / "buda_emu/room", tmp_path / "tests/room"
    room.mkdir(parents=True)
    tests.mkdir(parents=True)
    (tmp_path / "buda_emu/__init__.py").write_text("")
    (room / "__init__.py").write_text("")
    (room / "small.py").write_text("UNUSED = 3\n\n\ndef less(a, b):\n    return a < b\n")
    (tests / "test_small.py").write_text(
        "from buda_emu.room.small import less\n\n\ndef test_less():\n    assert less(1, 2) and not less(2, 2)\n"
    )
    run = [sys.executable, "tools/mutate.py", "room", "--all"]
    environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    found = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert not found.stderr
    assert found.stdout == "buda_emu/room/small.py:1: 3 -> 4: UNUSED = 3\nroom: 2 noticed, 1 survived\n"
    assert found.returncode == 1
    (tmp_path / "tools/mutants.tsv").write_text("# why\nroom/small.py\tUNUSED = 3\t3 -> 4\tnobody reads it\n")
    found = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert found.stdout == "room: 2 noticed, 1 explained, 0 survived\n"
    assert found.returncode == 0


WHOLE = (
    "numerics/ulp.py",
    *(f"verify/comparison/{name}.py" for name in ("allclose", "compare", "figures", "moments", "pcc")),
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
