"""The call sequence of a front end gives what the plain Python API gives (NETLIST 7.5)."""

import numpy as np
import pytest

from app.api.backend.front_end import in_one_process, in_three_processes, job, plainly
from shared_files import CORPUS, ROOT, needs_corpus

GRAPHS = "netlists/verif/graph_tests/netlists"
MODELS = [
    pytest.param(ROOT / "netlists/attention.yaml", id="attention"),
    *(
        pytest.param(CORPUS / path, id=path.rpartition("/")[2], marks=needs_corpus)
        for path in (
            f"{GRAPHS}/netlist_bert_mha.yaml",
            "netlists/verif/directed_tests/netlist_bert_encoder.yaml",
            f"{GRAPHS}/netlist_encoder_grid.yaml",
        )
    ),
]
MACHINES = [
    pytest.param("Golden", {}, "ideal", id="golden"),
    pytest.param("Golden", {"quantise": True}, "format", id="golden-quantised"),
    pytest.param("Silicon", {}, "format", id="silicon"),
]


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def expected_of(path, precision):
    netlist, inputs, programs = job(path)
    expected = plainly(netlist, inputs, programs, precision)
    assert any(np.abs(array).max() > 0 for array in expected.values())
    return netlist.arch_name, inputs, programs, expected, {name: len(array) for name, array in expected.items()}


@pytest.mark.parametrize(("kind", "options", "precision"), MACHINES)
@pytest.mark.parametrize("path", MODELS)
def test_one_process(path, kind, options, precision):
    device, inputs, programs, expected, entries = expected_of(path, precision)
    same(in_one_process(path, inputs, programs, entries, kind, device=device, **options), expected)


@pytest.mark.parametrize("kind", ["Golden", "Silicon"])
def test_one_process_in_the_arithmetic_of_the_chip(kind):
    path = ROOT / "netlists/attention.yaml"
    device, inputs, programs, expected, entries = expected_of(path, "device")
    same(in_one_process(path, inputs, programs, entries, kind, device=device, args="--precision device"), expected)


@pytest.mark.parametrize("path", [MODELS[0], MODELS[2]])
def test_three_processes_one_after_the_other(path):
    device, inputs, programs, expected, entries = expected_of(path, "ideal")
    found, statuses = in_three_processes(path, inputs, programs, entries, "Golden", device=device)
    same(found, expected)
    assert set(statuses) == {"Success"}


@pytest.mark.parametrize("kind", ["Silicon", "Golden"])
def test_three_processes_at_once_push_and_pop_more_than_the_queues_hold(kind):
    path = ROOT / "netlists/attention.yaml"
    netlist, inputs, _ = job(path)
    stream = np.random.default_rng(1)
    rounds = 4  # of two inputs: x and out hold four
    inputs["x"] = stream.standard_normal((2 * rounds, 1, 64, 128)).astype(np.float32)
    expected = []
    for first in range(0, 2 * rounds, 4):
        part = {**inputs, "x": inputs["x"][first : first + 4]}
        expected.append(plainly(netlist, part, [("run_fwd", {"$p_loop_count": 2})], "format")["out"])
    program = ("run_fwd", {"$p_loop_count": str(rounds)})
    inputs = {**{name: inputs[name] for name in inputs if name != "x"}, "x": inputs["x"]}
    options = {"quantise": True} if kind == "Golden" else {}
    found, statuses = in_three_processes(path, inputs, [program], {"out": 2 * rounds}, kind, at_once=True, **options)
    assert set(statuses) == {"Success"}
    np.testing.assert_array_equal(found["out"], np.concatenate(expected))
