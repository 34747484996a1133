"""Whatever a file holds, it ends in a documented result: findings, times, bytes, or an error of ours."""

import copy
import random

import pytest

from buda_emu import BudaError, DocumentError
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.figures import run_figures
from buda_emu.foreign.gemini.slice import slice_layers
from buda_emu.foreign.gemini.statistics import statistics
from buda_emu.support.errors import InternalError
from gemini_schedules import NAMES, network, schedule

NONSENSE = (
    None,
    "x",
    -1,
    [],
    {},
    True,
    1 << 40,
    1 << 70,
    1.5,
    float("nan"),
    [None],
    [[]],
    {"a": 1},
    0,
    2,
    64,
    [0, 0, 0, 0],
)
QUICK = 100  # mutants of each of nine schedules; all together about 50,000 with --slow
SLOW = 5_600


def places(value):
    """Every (container, key) below a value."""
    found = []
    stack = [value]
    while stack:
        one = stack.pop()
        for key in one if isinstance(one, dict) else range(len(one)):
            found.append((one, key))
            if isinstance(one[key], (dict, list)):
                stack.append(one[key])
    return found


def mutate(document, rng):
    """One to three changes: nonsense, a neighbouring number, something taken away or doubled, two values exchanged."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        everywhere = places(document)
        if not everywhere:
            return
        container, key = rng.choice(everywhere)
        value, kind = container[key], rng.randrange(5)
        if kind == 0:
            container[key] = copy.deepcopy(rng.choice(NONSENSE))
        elif kind == 1 and type(value) is int:
            container[key] = value + rng.choice((-64, -1, 1, 7, 64))
        elif kind == 2:
            del container[key]
        elif kind == 3 and isinstance(container, list):
            container.append(copy.deepcopy(value))
        else:
            other, place = rng.choice(everywhere)
            if (isinstance(other, dict) and place in other) or (isinstance(other, list) and place < len(other)):
                container[key] = copy.deepcopy(other[place])


def end_of(document, frontend, rng):
    """What a file comes to, in a word. Any other exception than ours fails the test."""
    try:
        ir = gemini.load(document)
    except DocumentError as error:
        return "unreadable" if {item.rule for item in error.diagnostics} <= {"G001", "G002", "G003"} else "unknown"
    found = ir.check(frontend if rng.random() < 0.5 else None)
    assert all(item.where is not None and item.message for item in found)
    errors = any(item.severity == "error" for item in found)
    for work in (
        lambda: run_figures(ir, gemini.simulate(ir)),
        lambda: statistics(ir),
        lambda: further(ir, frontend, rng),
    ):
        try:
            work()
        except InternalError:
            raise
        except BudaError:
            errors = True
    return "wrong" if errors else "legal"


def further(ir, frontend, rng):
    """The dearer half, of some."""
    if rng.random() < 0.25:
        if ir.dialect == "B":
            gemini.allocate(ir, 1 << 16)
        else:
            gemini.execute(ir, frontend)
    elif ir.workloads():
        slice_layers(ir, [rng.choice(ir.workloads()).layer_name])


@pytest.mark.parametrize("name", [*NAMES, "b"])
@pytest.mark.parametrize("count", [QUICK, pytest.param(SLOW, marks=pytest.mark.slow)])
def test_mutated_files_end_in_documented_results(name, count):
    frontend = network(name if name != "b" else "ring_wrap")
    base, rng = schedule(name), random.Random(f"{name} {count}")
    ends = {"unreadable": 0, "wrong": 0, "legal": 0}
    for _ in range(count):
        document = copy.deepcopy(base)
        mutate(document, rng)
        ends[end_of(document, frontend, rng)] += 1
    assert min(ends.values()) > 0, ends


@pytest.mark.parametrize("name", NAMES)
def test_mutated_networks_end_in_documented_results(name):
    ir, base, rng = gemini.load(schedule(name)), network(name), random.Random(name)
    for _ in range(60):
        frontend = copy.deepcopy(base)
        mutate(frontend, rng)
        try:
            ir.check(frontend)
            gemini.execute(ir, frontend)
        except InternalError:
            raise
        except BudaError:
            pass


def test_an_empty_workload_is_told_by_its_missing_fields():
    document = copy.deepcopy(schedule("ring_wrap"))
    document["0"][2] = {}
    with pytest.raises(DocumentError) as caught:
        gemini.load(document)
    found = [(finding.rule, finding.pointer) for finding in caught.value.diagnostics]
    assert found
    assert all(rule == "G002" and place.startswith("0/2") for rule, place in found)
