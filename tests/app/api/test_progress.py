"""`progress=` and `activity=` of library calls: which activities they get, and that their exceptions end the work."""

import logging

import pytest

import buda_emu as be
from buda_emu.app.api import test as test_module
from buda_emu.arithmetic.jit import kernel
from buda_emu.support.workers.wire import pack, unpack
from buda_emu.testing import awkward_inputs
from buda_emu.testing.verify.result import CaseResult
from buda_emu.testing.verify.runs import run_case
from shared_files import ROOT

SOFTMAX = ROOT / "netlists" / "softmax.yaml"
ATTENTION = ROOT / "netlists" / "attention.yaml"


class StopError(Exception):
    """Of a callback."""


def stops(error):
    def callback(_):
        raise error

    return callback


def calls():
    """Return each call with a callback, by name, as a function of the callback."""
    net = be.load(SOFTMAX)
    return {
        "numerics": lambda callback: be.numerics(net, threads=1, progress=callback),
        "perf": lambda callback: be.perf(net, progress=callback),
        "advise": lambda callback: be.advise(ATTENTION, tries=2, progress=callback),
        "test": lambda callback: be.test(SOFTMAX, precision="format", threads=1, activity=callback),
    }


@pytest.mark.parametrize("name", ["numerics", "perf", "advise", "test"])
def test_a_call_reports_typed_activities(name):
    seen = []
    calls()[name](seen.append)
    assert seen
    assert all(isinstance(activity, be.Activity) and activity.text for activity in seen)
    assert all(0 <= activity.done <= activity.total or not activity.total for activity in seen)
    counted = {"numerics": "ops", "perf": "epochs", "advise": "search", "test": "netlists"}
    assert counted[name] in {activity.stage for activity in seen}


@pytest.mark.parametrize("name", ["numerics", "perf", "advise", "test"])
@pytest.mark.parametrize("error", [StopError("enough"), KeyboardInterrupt()])
def test_an_exception_of_a_callback_comes_out_of_the_call(name, error):
    with pytest.raises(type(error)) as raised:
        calls()[name](stops(error))
    assert raised.value is error


def test_the_exception_of_a_callback_is_no_verdict_of_a_netlist(monkeypatch):
    """`run_case` makes a result of each exception: not of this one, and nothing is tested after it."""
    tested = []

    def compiles(case):
        tested.append(case.name)
        try:
            kernel.announce("gather", None)
        except Exception:  # noqa: BLE001 - as `run_case` does
            return CaseResult(case.name, "error")
        return CaseResult(case.name, "passed")

    monkeypatch.setattr(test_module, "run_case", compiles)

    def refuse_kernels(activity):
        if activity.stage == "kernels":
            raise StopError

    with pytest.raises(StopError):
        be.test([SOFTMAX, ATTENTION], activity=refuse_kernels)
    assert tested == [str(SOFTMAX)]


def test_a_worker_reports_the_kernels_of_its_case(monkeypatch):
    def compiles(case):
        kernel.announce("gather", None)
        kernel.announce("gather", 1.5)
        return case

    monkeypatch.setattr(run_case, "run_case", compiles)
    told = []
    assert run_case.runner(None, told.append)("case") == "case"
    assert told == [("gather", None), ("gather", 1.5)]
    assert unpack(pack(told)) == told  # as they travel


def test_kernels_of_workers_are_activities(monkeypatch):
    def run_all(cases, workers, *, timeout, on_result, on_kernel):
        on_kernel("gather", None)
        on_kernel("gather", 1.5)
        results = [CaseResult(case.name, "passed") for case in cases]
        for number, result in enumerate(results):
            on_result(number, result)
        return results

    monkeypatch.setattr(test_module, "run_all", run_all)
    seen, results = [], []
    be.test([SOFTMAX, ATTENTION], workers=2, activity=seen.append, progress=results.append)
    assert [(activity.text, activity.stage, activity.done, activity.total) for activity in seen] == [
        ("compiling kernel gather for this machine", "kernels", 0, 0),
        ("compiled kernel gather in 1.5 s", "kernels", 1, 0),
        ("1 of 2 netlists", "netlists", 1, 2),
        ("2 of 2 netlists", "netlists", 2, 2),
    ]
    assert [case.status for case in results] == ["passed", "passed"]


def test_a_run_counts_its_inputs_and_ends_with_its_callback():
    net = be.load(ROOT / "netlists" / "training.yaml")
    with be.Emulator(net) as emulator:
        for block in awkward_inputs(net, seed=1):
            emulator.push(block.queue, block.array, block.slot)
        program, values, stop = net.program_order[0], {"$p_loop_count": 1}, stops(StopError())
        with pytest.raises(StopError):
            emulator.run(program, values, progress=stop)


@pytest.mark.skipif(kernel.disabled, reason="nothing is compiled")
def test_each_compiled_kernel_is_logged(caplog, tmp_path, monkeypatch):
    monkeypatch.setattr("buda_emu.support.caches.own_caches", lambda: tmp_path)

    def double(number):
        return number + number

    compiled = kernel.kernel(double)
    with caplog.at_level(logging.INFO, "buda_emu"):
        assert compiled(4) == 8
    (record,) = caplog.records
    assert record.name == "buda_emu.kernels"
    assert record.getMessage().startswith("compiled kernel double for this machine in ")
