"""The chain that makes up an epoch's cycles: it adds up, and its first link is the one to shorten."""

from dataclasses import replace

import pytest

import buda_emu as be
from buda_emu.timing import model as modelling
from buda_emu.timing.critical import CAUSE_WORDS, chain_sentence, critical_steps
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


@pytest.mark.parametrize("path", corpus_files("netlists/**/*.yaml")[::20])
def test_links_add_up_in_real_netlists(path):
    try:
        found = be.perf(path)
    except be.BudaError:
        return
    adds_up(found)


def slower(monkeypatch, op, factor):
    """Ops cost as they do, one of them `factor` times."""
    usual = modelling._Costs.of

    def of(self, item, **how):
        cost = usual(self, item, **how)
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
    assert f"{steps[0].name} {100 * steps[0].share:.0f} %, and {len(steps) - 1} more" in chain_sentence(steps, 1)
    assert chain_sentence(()) == ""
