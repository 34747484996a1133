"""Every kind of work that is spread: equal for one worker and two, in the same order, and safe to interrupt."""

import json
import os
from contextlib import closing
from pathlib import Path

import pytest

import buda_emu as be
from buda_emu.app.api.sweep import sweep
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.sweep import sweep as gemini_sweep
from buda_emu.support.errors import HostError, InternalError
from buda_emu.support.workers.job import Job, Workers
from buda_emu.support.workers.pool import Pool
from buda_emu.support.workers.spread import JobPool, in_order, spread, spread_with_caller
from shared_files import ROOT

ATTENTION = str(ROOT / "netlists/attention.yaml")
TWO = Workers(2)


def results(items, workers=TWO, job="spread_functions:twice", **more):
    return list(in_order(spread(Job(job), items, workers, **more)))


def test_who_leaves_early_ends_the_workers():
    with closing(Pool(Job("spread_functions:twice"), 2, None, {})) as pool:
        answers = pool.answers(range(100))
        assert next(answers)[1][0]
        processes = [worker.process for worker in pool._workers]
        answers.close()
        assert pool.closed
        assert processes
        assert all(process.has_ended for process in processes)


def test_workers_outlast_a_round_that_is_done():
    with closing(Pool(Job("spread_functions:twice"), 2, None, {})) as pool:
        assert sorted(answer for _, (_, answer) in pool.answers(range(4))) == [0, 2, 4, 6]
        assert not pool.closed
        assert not any(worker.process.has_ended for worker in pool._workers)


@pytest.mark.parametrize("workers", [Workers(), TWO])
def test_results_come_in_the_order_of_the_items(workers):
    assert results(range(50), workers) == [2 * number for number in range(50)]


def test_items_are_asked_for_when_there_is_somebody_to_take_them():
    asked = []

    def items():
        for number in range(100):
            asked.append(number)
            yield number

    with closing(spread(Job("spread_functions:twice"), items(), TWO)) as found:
        next(found)
        assert len(asked) < 10


def test_the_error_of_an_item_is_raised():
    with pytest.raises(HostError, match="three is refused"):
        results(range(5), job="spread_functions:no_three")


def test_an_item_that_loses_its_worker_is_tried_once_more(tmp_path):
    mark = str(tmp_path / "mark")
    assert results([mark, ""], job="spread_functions:dies_once") == [mark, ""]
    with pytest.raises(InternalError, match=r"item 1 of the work: .*signal SIGKILL.*tried it again"):
        results([0, 1], job="spread_functions:dies_at_one")


def after_others(path, count):
    """Items of a job in which this process waits for another one."""
    file = path / "first"
    return file, spread_with_caller(
        Job("spread_functions:after_others", (os.getpid(), str(file))), range(8), Workers(count)
    )


@pytest.mark.parametrize("count", [2, 3])
def test_who_asks_is_one_of_the_workers(tmp_path, count):
    _, made = after_others(tmp_path, count)
    found = dict(made)
    assert {item: item for item in range(8)} == {number: item for number, (item, _) in found.items()}
    processes = {process for _, process in found.values()}
    assert os.getpid() in processes
    assert 2 <= len(processes) <= count


def test_who_leaves_early_ends_the_others(tmp_path):
    file, made = after_others(tmp_path, 2)
    with closing(made) as found:
        next(found)
        other = int(file.read_text())
    assert not Path(f"/proc/{other}").exists()


@pytest.mark.parametrize("workers", [Workers(), TWO])
def test_the_error_of_an_item_is_raised_wherever_it_is_done(workers):
    with pytest.raises(HostError, match="three is refused"):
        list(spread_with_caller(Job("spread_functions:no_three"), range(5), workers))


def test_processes_may_start_before_there_are_items():
    with closing(JobPool(Job("spread_functions:twice"), TWO)) as pool:
        pool.start()
        begun = [worker.process for worker in pool._hands._workers]
        assert len(begun) == 2
        assert list(in_order(pool.spread(range(3)))) == [0, 2, 4]
        assert [worker.process for worker in pool._hands._workers] == begun
    with closing(JobPool(Job("spread_functions:twice"), Workers())) as pool:
        pool.start()
        assert pool._hands is None  # this process does it


def test_a_worker_is_kept_and_values_are_shared_once():
    # one worker: of two, a quick one may do a whole round alone
    with closing(JobPool(Job("spread_functions:part_of"), Workers(), isolated=True)) as pool:
        many = pool.share(list(range(10)))
        first = list(in_order(pool.spread((many, place) for place in range(10))))
        again = list(in_order(pool.spread((many, place) for place in (3, 4))))
        with closing(pool.spread((many, place) for place in range(10))) as left:
            next(left)
        anew = list(in_order(pool.spread((many, place) for place in (5, 6))))
    assert [value for value, _, _ in first] == list(range(10))
    assert {process for _, process, _ in again} == {process for _, process, _ in first}
    assert [value for value, _, _ in anew] == [5, 6]
    assert {process for _, process, _ in anew}.isdisjoint(process for _, process, _ in first)
    assert all(loads == 1 for _, _, loads in first)


def test_a_sweep():
    axes = {"noc_bytes": ("8", "16", "32"), "dram_gbps": ("1", "2")}
    alone = sweep(ATTENTION, axes)
    assert len({point.cycles for point in alone}) > 1
    assert alone == sweep(ATTENTION, axes, workers=2) == sweep(ATTENTION, axes, workers=4)


def test_a_sweep_over_a_schedule():
    ir = gemini.load(str(ROOT / "tests/foreign/gemini/schedules/two_cores.json"))
    alone = list(gemini_sweep(ir, dram_gibps=(4, 16), freq_ghz=(1, 2)))
    assert alone == list(gemini_sweep(ir, dram_gibps=(4, 16), freq_ghz=(1, 2), workers=TWO))


def test_advice():
    alone, shared = (be.advise(ATTENTION, tries=40, workers=count).to_json() for count in (1, 2))
    assert alone == shared


def test_numerics():
    alone, shared = (be.numerics(ATTENTION, workers=count).to_json() for count in (1, 2))
    assert json.dumps(alone) == json.dumps(shared)


@pytest.mark.parametrize("workers", [Workers(), TWO])
def test_what_the_work_reports_comes_with_the_number_of_its_item(workers):
    told = []
    job = Job("spread_functions:reports_halves", 100, reports=True)
    found = list(in_order(spread(job, range(6), workers, on_report=lambda number, value: told.append((number, value)))))
    assert found == [100 + number for number in range(6)]
    assert sorted(told) == [(number, ("half of", number / 2)) for number in range(6)]


def test_a_report_that_cannot_be_taken_ends_the_workers():
    def refuse(_number, _value):
        raise KeyboardInterrupt

    job = Job("spread_functions:reports_halves", 100, reports=True)
    with closing(JobPool(job, TWO, on_report=refuse)) as pool:
        with pytest.raises(KeyboardInterrupt):
            list(pool.spread(range(6)))
        assert pool._hands.closed
