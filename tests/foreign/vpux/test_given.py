"""The given files: the acceptance script holds, and their mutations end in documented errors only."""

import random
import re
import subprocess
import sys

import pytest

from buda_emu.foreign import vpux
from buda_emu.support.errors import BudaError, InternalError
from shared_files import SHARED
from vpux_documents import NETWORK

GIVEN = SHARED / "vpux"
needs_given = pytest.mark.skipif(not GIVEN.is_dir(), reason=f"no data at {GIVEN} (set BUDA_EMU_SHARED)")
NUMBERS = ["0", "1", "2", "3", "7", "-1", "64", "1000", "65536", "16777216", "4294967296", "99999999999999999999"]
MOST_BYTES = 64 << 20
"""That a mutated function may hold: fewer than the default, so that many are quick."""


@needs_given
@pytest.mark.parametrize(
    "parts",
    ["layout,args,mutants,serialize", pytest.param("documents,command", marks=pytest.mark.slow)],
)
def test_acceptance(parts: str) -> None:
    done = subprocess.run(
        [sys.executable, str(GIVEN / "check.py"), "--only", parts], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def mutated(text: str, chance: random.Random) -> str:
    """Cut, double, move, change a number, exchange lines, replace a word: one to four times."""
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        if not text:
            break
        start = chance.randrange(len(text))
        stop = min(len(text), start + chance.choice([1, 2, 8, 40, 300]))
        kind = chance.choice(["cut", "double", "move", "number", "number", "number", "lines", "word"])
        if kind == "cut":
            text = text[:start] + text[stop:]
        elif kind == "double":
            text = text[:stop] + text[start:]
        elif kind == "move":
            other = chance.randrange(len(text))
            text = text[:start] + text[other : other + 20] + text[start:]
        elif kind == "lines":
            lines = text.split("\n")
            one, two = chance.randrange(len(lines)), chance.randrange(len(lines))
            lines[one], lines[two] = lines[two], lines[one]
            text = "\n".join(lines)
        else:
            found = list(re.finditer(r"\d+" if kind == "number" else r"[%@#!]?\w+", text))
            if found:
                place = chance.choice(found)
                new = chance.choice(NUMBERS) if kind == "number" else chance.choice(found)[0]
                text = text[: place.start()] + new + text[place.end() :]
    return text


def hold(text: str, arch: str) -> None:
    """Everything that can be done with a document; only errors that are documented come out."""
    document = vpux.read(text)
    document.check(arch)
    for function in document.functions[:2]:
        for work in (
            lambda function=function: vpux.run(
                document, function.name, function.split, arch=arch, memory_limit=MOST_BYTES
            ),
            lambda function=function: vpux.serialize(document, function.name, function.split, arch=arch),
        ):
            try:
                work()
            except InternalError:
                raise
            except BudaError as error:
                assert str(error)  # noqa: PT017 - any of them will do, as long as it says something


def hold_mutations(texts: list[str], seed: int, count: int) -> None:
    chance = random.Random(seed)
    for number in range(count):
        text = mutated(chance.choice(texts), chance)
        try:
            hold(text, chance.choice(["37XX", "40XX"]))
        except Exception as error:
            raise AssertionError(f"mutation {number} of seed {seed}: {error!r}\n{text}") from error


def given_texts() -> list[str]:
    parts = [
        part
        for path in sorted(GIVEN.rglob("*.mlir"))
        for part in re.split(r"(?m)^// -----.*$", path.read_text(errors="replace"))
    ]
    return [part for part in parts if "func" in part and len(part) < 20_000]


def test_mutations_of_the_network() -> None:
    hold_mutations([NETWORK], 1, 300)


@needs_given
def test_mutations_of_the_given_files() -> None:
    hold_mutations(given_texts(), 2, 200)


@needs_given
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_50_000_mutations_of_the_given_files(seed: int) -> None:
    hold_mutations(given_texts(), seed, 5_000)
