"""Faults: what was recorded is the run, what is computed again is what a machine computes, and flips do what theory
says."""

import json
import subprocess
import sys
import time
from functools import cache

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.faults import Maker, Settings, Subject
from buda_emu.app.api.run_netlist import run_netlist
from buda_emu.emulator.runtime.graph.steps import Run
from buda_emu.support.options import SettingsName
from buda_emu.testing import generate
from buda_emu.testing.injection.corrupt import spoils, tiles_of_core
from buda_emu.testing.injection.fault import KINDS, Fault
from buda_emu.testing.injection.result import FAILURES, Effect, wilson
from example_netlists import DIRECTORY
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

ATTENTION = str(DIRECTORY / "attention.yaml")
PRECISIONS = ("format", "ideal", "device")


@cache
def bench(path, precision="format", **settings):
    return Maker(Subject(path, precision=precision), Settings(**settings))()


def outputs(found, changed=None):
    """Recorded outputs by queue and slot; `changed`: nodes that a fault gave other values."""
    values = {number: node.value for number, node in enumerate(found.trace.nodes)} | (changed or {})
    floats = found.trace.arithmetic.floats
    return {place: floats(values[number]) for place, number in found.trace.outputs().items()}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ["attention", "matmul", "softmax", "training", "two_chips", "eltwise_tms"])
def test_what_is_recorded_is_the_run(name, precision):
    found = bench(str(DIRECTORY / f"{name}.yaml"), precision)
    report = run_netlist(be.load(DIRECTORY / f"{name}.yaml"), precision=precision, readout="raw")
    recorded = outputs(found)
    assert recorded
    for (queue_name, slot), tiles in recorded.items():
        blocking = found.trace.netlist.queues[queue_name].blocking
        t, rows, cols = blocking.shape
        height, width = blocking.tile_dim
        whole = tiles.reshape(t, rows, cols, 32, 32)[..., :height, :width]
        untiled = whole.swapaxes(2, 3).reshape(t, rows * height, cols * width)
        assert np.array_equal(untiled.view(np.uint32), report.arrays[queue_name][slot].view(np.uint32)), queue_name


def sums(tmp_path, df="Float32"):
    """x + y, then exp, in two graphs with a queue between; a second queue that nobody reads."""
    path = tmp_path / "net.yaml"
    path.write_text(
        text(
            [
                queue("x", df=df),
                queue("y", df=df),
                queue("between", "sum", df=df),
                queue("spare", "sum", df=df),
                queue("z", "power", df=df),
            ],
            [
                graph("first", op("sum", "add", ["x", "y"], df=df)),
                graph("second", op("power", "exp", ["between"], df=df)),
            ],
            [
                program(
                    "run",
                    "var: {$c_zero: 0}",
                    execute("first", fifo_settings("x"), fifo_settings("y")),
                    execute("second", fifo_settings("between")),
                )
            ],
        )
    )
    return str(path)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_fault_in_an_input_is_a_run_with_that_input(tmp_path, precision):
    """The machine itself, given the input that the fault makes, has the outputs that are computed from the record."""
    path = sums(tmp_path, "Float16_b")
    found = bench(path, precision, places=("dram",), only="x")
    for number in range(12):
        fault = found.fault(number)
        changed, _ = found.trace.propagate(spoils(fault, found.trace, 0))
        (node,) = fault.nodes
        emulator = be.Emulator(be.load(path), precision)
        values = {
            item.queue: item.value for item in found.trace.nodes if item.step is None and item.queue in ("x", "y")
        }
        values["x"] = changed.get(node, found.trace.nodes[node].value)
        with emulator:
            for name, value in values.items():
                tile = found.trace.arithmetic.floats(value).reshape(1, 1, 32, 32)
                emulator.push(name, tile)
            emulator.run("run")
            real = emulator.outputs("raw")["z"].reshape(-1)
        mine = outputs(found, changed)["z", 0].reshape(-1)
        assert np.array_equal(np.nan_to_num(real, nan=1e9), np.nan_to_num(mine, nan=1e9)), fault


def test_a_flipped_sign_is_a_negation(tmp_path):
    found = bench(sums(tmp_path), places=("dram",), only="x")
    (node,) = found.fault(0).nodes
    fault = Fault(0, "flip", "dram", "x", "queue", "Float32", (node,), tile=0, datum=5, bits=(31,))
    changed, _ = found.trace.propagate(spoils(fault, found.trace, 0))
    clean = found.trace.nodes[node].value.reshape(-1)
    differ = np.flatnonzero(changed[node].reshape(-1) != clean)
    assert differ.tolist() == [5]
    assert changed[node].reshape(-1)[5] == -clean[5]


def test_what_nobody_reads_is_not_corrupted(tmp_path):
    """`spare` is an output that the host may read; flips in a queue that an op fills beside the one that is read change
    nothing but that."""
    found = bench(sums(tmp_path), places=("dram",), only="spare")
    for number in range(10):
        changed, computed = found.trace.propagate(spoils(found.fault(number), found.trace, 0))
        assert computed == 0
        assert {found.trace.nodes[node].queue for node in changed} <= {"spare"}


@pytest.mark.parametrize("precision", ["format", "device"])
def test_a_dead_core_takes_its_own_tiles_and_no_others(precision):
    found = bench(ATTENTION, precision, kinds=("core",), only="residual")
    step = next(
        node.step for node in found.trace.nodes if isinstance(node.step, Run) and node.step.op.name == "residual"
    )
    blocking = step.op.blocking
    seen = set()
    for number in range(12):
        fault = found.fault(number)
        changed, _ = found.trace.propagate(spoils(fault, found.trace, number))
        own = set(tiles_of_core(blocking, fault.core).tolist())
        seen.add(fault.core)
        for node in fault.nodes:
            clean = found.trace.nodes[node].value
            before, after = map(found.trace.arithmetic.floats, (clean, changed.get(node, clean)))
            differ = set(np.flatnonzero((before != after).any(axis=-1)[0]).tolist())
            assert differ <= own
            if fault.how == "zero":
                assert differ == own
                assert not after[0, sorted(own)].any()
    assert len(seen) == blocking.cells


def share(effects):
    return sum(effect.outcome in FAILURES for effect in effects) / len(effects)


def error(effects):
    """The median of largest errors."""
    return float(np.median([effect.max_error or 0.0 for effect in effects]))


def test_shared_exponents_are_worse_than_mantissas():
    """Of Bfp8_b parameters: the high bits of an exponent move sixteen numbers by powers of two."""
    found = bench(ATTENTION, places=("dram",), only="wo", least_pcc=0.999)
    effects = [found.effect(number) for number in range(700)]
    exponents = [item for item in effects if item.fault.exponent and item.fault.bits[0] >= 2]
    mantissas = [item for item in effects if item.fault.bit_name == "mantissa"]
    assert len(exponents) >= 10
    assert share(exponents) > 2 * share(mantissas)
    assert error(exponents) > 10 * error(mantissas)


def test_low_mantissa_bits_are_harmless_and_the_highest_exponent_bit_is_not():
    found = bench(ATTENTION)
    effects = [found.effect(number) for number in range(1500)]
    of_bit = {
        bit: [item for item in effects if item.fault.df == "Float16_b" and item.fault.bits == (bit,)]
        for bit in (0, 1, 2, 14)
    }
    assert all(share(of_bit[bit]) == 0 for bit in (0, 1, 2))
    assert share(of_bit[14]) > 0.25


@pytest.mark.parametrize("precision", ["format", "device"])
def test_every_kind_is_drawn_and_repeats(precision):
    made = bench(ATTENTION, precision, kinds=KINDS)
    effects = [made.effect(number) for number in range(80)]
    assert {item.fault.kind for item in effects} == set(KINDS)
    again = [made.effect(number) for number in range(80)]
    assert [item.as_json() for item in effects] == [item.as_json() for item in again]


def test_workers_and_interruptions_change_nothing():
    settings = Settings(kinds=KINDS)
    alone = be.faults(ATTENTION, 150, settings=settings)
    shared = be.faults(ATTENTION, 150, settings=settings, workers=2)
    resumed = be.faults(ATTENTION, 150, settings=settings, known=alone.effects[20:90])
    texts = {json.dumps(item.as_json()) for item in (alone, shared, resumed)}
    assert len(texts) == 1
    assert alone.finished
    effect = alone.effects[3]
    assert Effect.from_json(json.loads(json.dumps(effect.as_json()))).as_json() == effect.as_json()


@pytest.mark.parametrize("precision", ["format", "device"])
def test_generated_netlists_end_in_a_documented_way(precision, tmp_path):
    for seed in range(12):
        path = tmp_path / f"{seed}.yaml"
        path.write_text(generate(seed).text)
        try:
            found = be.faults(Subject(str(path), precision=precision), 40, settings=Settings(kinds=("flip", "core")))
        except be.UnsupportedError:
            continue
        assert len(found.effects) == 40


def test_words_are_checked():
    with pytest.raises(be.HostError, match=r"kind 'flipp' is not one of flip, .*did you mean 'flip'"):
        be.faults(ATTENTION, 1, settings=Settings(kinds=("flipp",)))
    with pytest.raises(be.HostError, match="place 'dest' is not one of"):
        be.faults(ATTENTION, 1, settings=Settings(places=("dest",)))
    with pytest.raises(be.HostError, match="no op or queue 'softmaxx'"):
        be.faults(ATTENTION, 1, settings=Settings(only="softmaxx"))
    with pytest.raises(be.UnsupportedError, match="do not fit the memory limit"):
        be.faults(Subject(ATTENTION, machine={"memory_limit": 1_200_000}), 1)


def test_parameters_are_pairs():
    def effects(parameters):
        return be.faults(Subject(ATTENTION, parameters=parameters), 2).effects

    assert effects(None) == effects(())
    assert effects({"p_loop_count": 1}) == effects([("p_loop_count", 9), ("p_loop_count", 1)]) != effects(None)
    for parameters in (["ab"], [("p", 1, 2)], [3]):
        with pytest.raises(be.HostError, match="is no parameter: expected a pair"):
            be.faults(Subject(ATTENTION, parameters=parameters), 1)
    with pytest.raises(be.HostError, match=r"parameters are pairs such as .*, not int"):
        be.faults(Subject(ATTENTION, parameters=3), 1)


def test_a_parameter_of_the_settings_that_no_program_takes_is_left_out_by_all_workers():
    given = Subject(ATTENTION, parameters=((SettingsName("$elsewhere"), "1"),))
    alone = be.faults(ATTENTION, 70)
    for workers in (1, 2):
        assert be.faults(given, 70, workers=workers).effects == alone.effects
    with pytest.raises(be.HostError, match=r"no program takes the parameter \$elsewhere"):
        be.faults(Subject(ATTENTION, parameters=((SettingsName("$elsewhere"), "1"), ("$elsewhere", "2"))), 1)


def test_wilson():
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(5, 100)
    assert (round(low, 4), round(high, 4)) == (0.0215, 0.1118)
    assert wilson(0, 100)[0] == 0.0
    assert round(wilson(100, 100)[1], 6) == 1.0


def test_a_campaign_that_is_killed_goes_on(tmp_path):
    """The log of a killed run, whose last line is cut, and the command once more: what an undisturbed run writes."""
    command = [sys.executable, "-m", "buda_emu", "faults", str(DIRECTORY / "matmul.yaml"), "--count", "320", "-q", "-o"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run([*command, str(whole)], check=True)
    with subprocess.Popen([*command, str(killed)]) as process:
        log = killed / "faults.jsonl"
        while process.poll() is None and (not log.exists() or log.read_bytes().count(b"\n") < 65):
            time.sleep(0.005)
        process.kill()
    log.write_text(log.read_text()[:-20])
    subprocess.run([*command, str(killed)], check=True)
    assert (killed / "faults.json").read_bytes() == (whole / "faults.json").read_bytes()
