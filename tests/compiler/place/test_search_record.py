"""The search ends at a counted bound, with the best so far, and says what it did."""

import re
import threading

import pytest

import buda_emu as be
from buda_emu.compiler import search_record
from buda_emu.compiler.compile import compile as compile_model
from buda_emu.compiler.pipeline import Observer
from buda_emu.compiler.search import improve
from buda_emu.compiler.search_record import SearchRecord, Trial
from buda_emu.support.errors import UnsupportedError
from buda_emu.support.workers.job import Workers

onnx = pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def stack():
    """Eight layers, more than one epoch of them."""
    from onnx_graphs import products_in_a_row

    return products_in_a_row(8, 64, 256)


@pytest.fixture(scope="module")
def two_layers():
    """A model whose search is short."""
    from onnx_graphs import products_in_a_row

    return products_in_a_row(2, 32, 64)


def test_the_summary_names_each_effort_and_its_gain():
    record = SearchRecord(1000, trials=[Trial("default", 200.0), Trial("default", 100.0), Trial("high", 90.0)])
    assert record.summary() == (
        "default effort searched 2 placements, the best takes 100 cycles an input; "
        "high effort searched 1 placement, the best takes 90 cycles an input, 10.0 % fewer"
    )
    record.trials[2] = Trial("high", 100.0)
    assert record.summary().endswith("which gains nothing")
    assert SearchRecord().summary() == ""


def test_high_effort_says_why_nothing_but_the_default_was_searched():
    record = SearchRecord(1000, effort="high", bound_by="the host link", trials=[Trial("default", 32_077.0)])
    assert record.summary() == (
        "default effort, with which high effort begins, searched 1 placement, the best takes 32,077 cycles an input; "
        "this is as long as the host link takes, which no placement undercuts, so high effort had nothing left to try"
    )
    assert record.at_bound
    assert record.is_notable


def test_a_search_ends_at_its_bound_with_the_best_so_far(stack, monkeypatch):
    free = compile_model(stack)
    monkeypatch.setitem(search_record.LIMITS, "default", 10)
    bound = compile_model(stack)
    assert bound.placement.record.modelled < free.placement.record.modelled
    assert bound.placement.record.cut
    assert "ended at its bound of 10 modelled ops, with the best so far" in bound.report()
    assert bound.check(strict=True) == ()
    assert bound.perf().inputs_per_second >= compile_model(stack, effort="low").perf().inputs_per_second
    assert not free.placement.record.cut


def test_a_search_says_how_far_it_is_and_ends_with_the_best_so_far_when_it_is_asked(stack):
    said: list[str] = []
    compile_model(stack, microbatch=1, observer=Observer(tell=said.append))
    assert said[0] == "searching, Ctrl-C keeps the best: placement 1, epoch 1 of 1, 0 of at most 40000 ops modelled"
    assert re.search(r": placement [2-9], epoch 1 of \d+, \d+ of at most 40000 ops modelled, best \d+ cycles$", said[1])

    asked: list[bool] = []
    observer = Observer()
    observer.tell = lambda _: asked.extend(observer.work.end() for _ in range(2))
    found = compile_model(stack, microbatch=1, observer=observer)
    record = found.placement.record
    assert asked == [True, False]
    assert record.summary().endswith("the search was ended by Ctrl-C, with the best so far")
    assert record.is_notable
    assert not record.end()
    assert found.check(strict=True) == ()
    assert found.perf().cycles <= compile_model(stack, microbatch=1, effort="low").perf().cycles


def test_each_pass_and_each_epoch_of_the_search_is_an_activity(two_layers):
    seen: list[be.Activity] = []
    found = compile_model(two_layers, microbatch=1, progress=seen.append)
    stages = [activity.stage for activity in seen]
    assert stages[0] == "preparing"
    assert list(dict.fromkeys(stages)) == ["preparing", "passes", "search"]
    assert all(activity.done < activity.total for activity in seen if activity.stage == "passes")
    (search, *_) = (activity for activity in seen if activity.stage == "search")
    assert search.text == "searching: placement 1, epoch 1 of 1, 0 of at most 40000 ops modelled"
    assert search.total == 40000
    assert found.text == compile_model(two_layers, microbatch=1).text
    assert found.placement.record.report is None


@pytest.mark.parametrize("stage", ["preparing", "passes", "search"])
@pytest.mark.parametrize("error", [UnsupportedError("of a callback"), KeyboardInterrupt()])
def test_an_exception_of_a_callback_ends_the_compilation(two_layers, stage, error):
    def refuse(activity: be.Activity) -> None:
        if activity.stage == stage:
            raise error

    with pytest.raises(type(error)) as raised:
        compile_model(two_layers, microbatch=1, progress=refuse, workers=Workers(2) if stage == "search" else None)
    assert raised.value is error
    assert "buda-emu progress" not in {thread.name for thread in threading.enumerate()}


def test_high_effort_says_what_it_searched_and_gained(stack):
    record = compile_model(stack, effort="high").placement.record
    assert record.is_notable
    assert {trial.effort for trial in record.trials} == {"default", "high"} or record.at_bound
    assert "high effort searched" in record.summary() or record.at_bound


def test_workers_do_not_change_what_is_found(stack, monkeypatch):
    """Nor where the search ends at its bound, in the middle of what they have found ahead."""
    for limit in (search_record.LIMITS["high"], 60):
        monkeypatch.setitem(search_record.LIMITS, "high", limit)
        alone, *others = (compile_model(stack, effort="high", workers=Workers(count)) for count in (1, 2, 4))
        for shared in others:
            assert alone.text == shared.text
            assert alone.placement.record.summary() == shared.placement.record.summary()
            assert alone.placement.record.modelled == shared.placement.record.modelled


def test_high_effort_stops_where_no_placement_is_quicker():
    """A single wide input and next to no work: the host link sets the pace."""
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [512, 2048])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [512, 2048])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], name="y")], "relu", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    compiled = be.compile(model, effort="high")
    assert compiled.placement.record.at_bound
    assert {trial.effort for trial in compiled.placement.record.trials} == {"default"}
    assert "this is as long as the host link takes, which no placement undercuts, so high effort" in compiled.report()
    assert "The host link bounds the whole" in compiled.report()
    perf = be.perf(compiled)
    assert perf.overall_inputs_per_second == pytest.approx(compiled.perf().inputs_per_second)
    cycles = min(trial.cycles for trial in compiled.placement.record.trials)
    assert perf.overall_cycles_per_input == pytest.approx(cycles)


def test_high_effort_takes_from_default_effort_what_both_try(stack, monkeypatch):
    asked: list[list[str]] = []

    def spied(line, start, work, names, cache, improve_one=improve.improve_epoch):
        asked.append(names)
        return improve_one(line, start, work, names, cache)

    monkeypatch.setattr(improve, "improve_epoch", spied)
    compile_model(stack, microbatch=4)
    once = len(asked)
    asked.clear()
    record = compile_model(stack, microbatch=4, effort="high").placement.record
    assert not record.at_bound
    assert len([trial for trial in record.trials if trial.effort == "high"]) > 1
    assert len(asked) == once
