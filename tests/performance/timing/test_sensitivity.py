"""Sensitivity: more of a resource never costs cycles, less never saves any, and nothing changed changes nothing."""

import pytest

import buda_emu as be
from buda_emu.netlist.load import check_text
from buda_emu.performance.timing.model import EpochModel
from buda_emu.performance.timing.op.call import OpCall
from buda_emu.performance.timing.op.cost import MEASURED, CoreSpeed, ideal_threads, op_cost
from buda_emu.performance.timing.sensitivity import RESOURCES, sensitivity
from buda_emu.performance.timing.transfers.rates import speed
from buda_emu.spec.devices import device
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.errors import BudaError, HostError
from buda_emu.testing import generate
from example_netlists import DIRECTORY
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

ARCHS = ("wormhole_b0", "grayskull", "blackhole")
EXAMPLES = ("attention", "matmul", "softmax", "training", "two_chips", "eltwise_tms")
FEW, MANY = range(4), range(100, 180)
ROUNDING = 1e-3
"""Share by which figures may differ because steps of transfers and parts of ops take whole cycles."""


def check_study(perf):
    """The properties of every study."""
    study = sensitivity(perf.netlist, perf.run)
    base = study.base.cycles_per_input
    assert base * study.inputs == pytest.approx(perf.cycles, rel=1e-12)
    assert list(study.base.paces) == [epoch.pace for epoch in perf.epochs]
    gains = [effect.gain for effect in study.resources]
    assert gains == sorted(gains, reverse=True)
    for effect in study.resources:
        for scaled in (effect.doubled, effect.halved):
            assert sum(scaled.epochs) == pytest.approx(scaled.cycles_per_input)
        assert effect.doubled.cycles_per_input <= base * (1 + ROUNDING), effect
        assert effect.halved.cycles_per_input >= base * (1 - ROUNDING), effect
        assert effect.gain == pytest.approx(1 - effect.doubled.cycles_per_input / base)
        assert effect.loss == pytest.approx(effect.halved.cycles_per_input / base - 1)
    named = {effect.title for effect in study.resources} | {title for title, _ in study.unused}
    assert named == {resource.title for resource in RESOURCES} | {"cores"}
    return study


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name):
    study = check_study(be.perf(DIRECTORY / f"{name}.yaml", sensitivity=True))
    assert study == be.perf(DIRECTORY / f"{name}.yaml", sensitivity=True).sensitivity
    assert ("Ethernet" in dict(study.unused)) == (name != "two_chips")


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("seed", [*FEW, *(pytest.param(seed, marks=pytest.mark.slow) for seed in MANY)])
def test_random_netlists(arch, seed):
    netlist = generate(seed, arch=arch).netlist
    try:
        perf = be.perf(netlist)
    except BudaError:
        pytest.skip("not modelled")
    check_study(perf)


def test_the_resource_that_limits_a_netlist_brings_most():
    """A long product is bound by the FPU, a copy of many tiles by DRAM."""

    def study_of(*ops, **shape):
        checked = check_text(
            text(
                [queue("a", entries=64, **shape), queue("o", "n", entries=64, **shape)],
                [graph("g", *ops, inputs=64)],
                [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
            )
        )
        assert checked.netlist is not None, checked.diagnostics
        return check_study(be.perf(checked.netlist))

    block = {"mblock": (4, 4), "ublock": (2, 2), "df": "Float16_b"}
    copy = study_of(op("n", "nop", ["a"], **block), **block)
    assert copy.resources[0].resource == "dram"
    product = study_of(op("n", "exp", ["a"], **block), **block)
    assert product.resources[0].resource in ("fpu", "clock")
    fpu = next(effect for effect in product.resources if effect.resource == "fpu")
    assert fpu.gain > 0.3
    assert fpu.loss > 0.6


def test_a_clock_that_all_cycles_follow_has_no_row(monkeypatch):
    """Where DRAM is no limit, the clock is one: a row would say what everybody knows."""
    perf = be.perf(DIRECTORY / "softmax.yaml", what_if={"dram_gbps": 1e6, "epoch_setup": 1e7})
    study = sensitivity(perf.netlist, perf.run)
    assert dict(study.unused)["clock"] == "all cycles follow it"
    assert "clock" not in [effect.resource for effect in study.resources]


def test_what_if_is_the_base():
    usual = be.perf(DIRECTORY / "attention.yaml", sensitivity=True).sensitivity
    doubled = next(effect for effect in usual.resources if effect.resource == "dram").doubled
    chip = device("wormhole_b0")
    twice = speed(chip, {}).dram * 2 / 1e9
    changed = be.perf(DIRECTORY / "attention.yaml", what_if={"dram_gbps": twice}, sensitivity=True).sensitivity
    assert changed.base.epochs == pytest.approx(doubled.epochs)


def test_the_vendors_model_has_no_units():
    with pytest.raises(HostError, match="take the fitted model"):
        be.perf(DIRECTORY / "matmul.yaml", model="vendor", sensitivity=True)
    with pytest.raises(HostError, match="know no other speed"):
        be.perf(DIRECTORY / "matmul.yaml", model="vendor", what_if={"fpu": 2})


def test_a_modelled_epoch_is_modelled_alike_again():
    perf = be.perf(DIRECTORY / "attention.yaml")
    model = EpochModel(speed(perf.run.chip, {}), perf.run.chip)
    for epoch in perf.epochs:
        timing, load = model.time_again(perf.netlist, epoch)
        assert (timing.total, timing.pace, load) == (epoch.timing.total, epoch.pace, epoch.load)


CALLS = [name for name, declared in OP_TYPES.items() if declared.runs and not declared.has("sub-ops")]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", CALLS)
def test_a_faster_core_never_makes_an_op_slower(arch, name):
    """Of every op type, however it is measured; a core of the measured speed changes nothing."""
    sizes = {"t": 2, "mblock_m": 2, "mblock_n": 2, "ublock_rt": 2, "ublock_ct": 2}
    more = {"m_k": 4, "u_kt": 2} if OP_TYPES[name].has("inner dimension") else {}
    if OP_TYPES[name].has("reduces"):
        more = {"reduce_dim": "c"}
    variants = [{}, {"untilize": True}, {"vector_mode": "r"}] if OP_TYPES[name].has("vector unit") else [{}]
    for variant in variants:
        call = OpCall(op_type=name, arch=arch, **sizes, **more, **variant)
        base = op_cost(call)
        assert op_cost(call, core=MEASURED) == base
        for unit in ("math", "moving", "dram"):
            fast, slow = (op_cost(call, core=CoreSpeed(**{unit: factor})) for factor in (2.0, 0.5))
            assert fast.cycles <= base.cycles <= slow.cycles
            assert fast.core_cycles <= base.core_cycles <= slow.core_cycles
            assert fast.cycles >= base.cycles / 2 - 1e-6
            assert slow.cycles <= base.cycles * 2 + 1e-6
        whole = op_cost(call, core=CoreSpeed(2.0, 2.0, 2.0))
        assert whole.cycles <= min(
            op_cost(call, core=CoreSpeed(**{unit: 2.0})).cycles for unit in ("math", "moving", "dram")
        )
        assert whole.cycles >= max(ideal_threads(call)) / 2
