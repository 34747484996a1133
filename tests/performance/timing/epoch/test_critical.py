"""The chain that makes up an epoch's cycles: it adds up, and its first link is the one to shorten."""

from dataclasses import replace

import pytest

import buda_emu as be
from buda_emu.performance.timeline import Schedule
from buda_emu.performance.timing import model as modelling
from buda_emu.performance.timing.epoch.critical import (
    CAUSE_WORDS,
    CriticalStep,
    chain_sentence,
    critical_steps,
    run_with_shorter_steps,
    step_of,
)
from conftest import corpus_files
from example_netlists import DIRECTORY

EXAMPLES = sorted(DIRECTORY.glob("*.yaml"))


def adds_up(found):
    for epoch in found.epochs:
        steps = critical_steps(epoch.timing)
        assert sum(step.cycles for step in steps) == pytest.approx(epoch.timing.total, rel=1e-9)
        assert sum(step.share for step in steps) == pytest.approx(1, rel=1e-9)
        assert [step.cycles for step in steps] == sorted((step.cycles for step in steps), reverse=True)
        for step in steps:
            assert sum(cycles for _, cycles in step.waits) == pytest.approx(step.cycles, rel=1e-9)
            assert step.cause in CAUSE_WORDS
            assert (step.kind == "op") == (step.name in {item.op for item in epoch.timing.ops})


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_links_add_up(path):
    adds_up(be.perf(path))


def sampled(pattern, step):
    """Files of the corpus: one of `step` by default, the others with --slow."""
    return [
        item if number % step == 0 else pytest.param(*item.values, id=item.id, marks=[*item.marks, pytest.mark.slow])
        for number, item in enumerate(corpus_files(pattern))
    ]


def end_of(epoch, names):
    return int(run_with_shorter_steps(epoch.timing, set(names)).end[epoch.timing.run.last_task])


@pytest.mark.parametrize("path", sampled("netlists/**/*.yaml", 24))
def test_links_add_up_in_real_netlists_and_the_first_is_what_to_shorten(path):
    """All shares are the whole, of an epoch of one input, too. What is named first shortens the epoch, with what is as
    long beside it; what is not a link of the chain does not."""
    try:
        found = be.perf(path)
    except be.BudaError:
        return
    adds_up(found)
    for epoch in found.epochs:
        tasks = epoch.timing.run.timing
        steps = critical_steps(epoch.timing)
        if not steps:
            continue
        end = int(tasks.end[epoch.timing.run.last_task])
        assert end_of(epoch, [steps[0].name, *steps[0].alike]) < end
        others = sorted({step_of(unit) for unit in tasks.units} - {step.name for step in steps})
        for name in others[:: max(len(others) // 3, 1)]:
            assert end_of(epoch, [name]) == end


def test_what_is_as_long_beside_the_first_is_named():
    """Two chains of equal length: one alone shortens nothing."""
    schedule = Schedule()
    ended = [schedule.object(name) for name in ("a done", "b done")]
    for name, done in zip("ab", ended, strict=True):
        schedule.task(schedule.unit(name), 100, (), [(done, 1)])
    schedule.task(schedule.unit("c"), 10, [(done, 1) for done in ended])
    timing = schedule.run()
    usual = be.perf(DIRECTORY / "matmul.yaml").epochs[0].timing
    run = replace(usual.run, timing=timing, schedule=schedule, last_task=2, steady_from=0, rooms=())
    epoch = replace(usual, run=run, total=110.0)
    first = critical_steps(epoch)[0]
    assert (first.cycles, {first.name, *first.alike}) == (100, {"a", "b"})
    assert "as long as the first: " in chain_sentence(critical_steps(epoch))


def test_a_sentence_names_three_of_many_steps_that_are_as_long():
    step = CriticalStep("op", "a", 100.0, 0.5, (("own work", 100.0),), alike=("b", "c", "d", "e", "f"))
    assert chain_sentence((step,)).endswith("; as long as the first: b, c, d and 2 more")


def test_an_epoch_of_one_task_is_that_task():
    schedule = Schedule()
    schedule.task(schedule.unit("a"), 100, (), [(schedule.object("done"), 1)])
    usual = be.perf(DIRECTORY / "matmul.yaml").epochs[0].timing
    run = replace(usual.run, timing=schedule.run(), schedule=schedule, last_task=0, steady_from=0, rooms=())
    epoch = replace(usual, run=run, total=100.0)
    assert [(step.name, step.cycles) for step in critical_steps(epoch)] == [("a", 100)]


def slower(monkeypatch, op, factor):
    """Ops cost as they do, one of them `factor` times."""
    usual = modelling._Costs.of

    def of(self, netlist, item, sources):
        cost = usual(self, netlist, item, sources)
        return replace(cost, cycles=cost.cycles * factor) if item.name == op else cost

    monkeypatch.setattr(modelling._Costs, "of", of)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_shorter_first_link_shortens_the_epoch_and_what_is_no_link_does_not(path, monkeypatch):
    usual = be.perf(path)
    for index, epoch in enumerate(usual.epochs):
        steps = critical_steps(epoch.timing)
        links = {step.name for step in steps}
        tried = [step.name for step in steps if step.kind == "op"][:1]
        others = [item.op for item in epoch.timing.ops if item.op not in links][:1]
        for op, shortens in [*((op, True) for op in tried), *((op, False) for op in others)]:
            with monkeypatch.context() as patch:
                slower(patch, op, 0.97)
                total = be.perf(path).epochs[index].timing.total
            if shortens:
                assert total < epoch.timing.total
            else:
                assert total == pytest.approx(epoch.timing.total, rel=2e-3)


def test_the_sentence_names_the_greatest():
    steps = critical_steps(be.perf(DIRECTORY / "matmul.yaml").epochs[0].timing)
    assert chain_sentence(steps).startswith("its cycles are, link by link: ")
    greatest = f"{steps[0].name} {100 * steps[0].share:.0f} % ({CAUSE_WORDS[steps[0].cause]})"
    assert f"{greatest}, and {len(steps) - 1} more" in chain_sentence(steps, 1)
    assert chain_sentence(steps, assumed="clock 9").endswith(" (hypothetical: clock 9)")
    assert chain_sentence(()) == ""
