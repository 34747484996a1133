"""Faults of time: how much longer a run takes, and when it is late."""

import pytest

import buda_emu as be
from buda_emu.testing.injection.fault import Fault
from example_netlists import DIRECTORY
from faults_bench import bench


def effect(found, kind, where, how, entry=-1):
    return found._inject(found._draw.resolve(Fault(0, kind, "", where, "chip", "", entry=entry, how=how)), None)


def test_a_slower_clock():
    found = bench("attention")
    ratios = [effect(found, "clock", "clock", how, 0).ratio for how in ("90 %", "75 %", "50 %", "25 %")]
    assert ratios == sorted(ratios)
    assert all(1 < ratio <= 100 / share + 1e-9 for ratio, share in zip(ratios, (90, 75, 50, 25), strict=True))
    later = [effect(found, "clock", "clock", "50 %", entry).ratio for entry in range(len(found.trace.epochs))]
    assert later == sorted(later, reverse=True)
    assert later[-1] < later[0]


def test_only_links_that_are_used_count():
    found = bench("attention")
    assert effect(found, "link", "eth_gbps", "25 %").outcome == "masked"  # one chip
    slow = effect(found, "link", "dram_gbps", "25 %")
    assert slow.ratio > 1.1
    assert slow.outcome == "late"
    assert effect(bench("attention", late=10.0), "link", "dram_gbps", "25 %").outcome == "tolerable"
    assert effect(bench("two_chips"), "link", "eth_gbps", "25 %").ratio > 1


def test_a_bound_of_the_netlist_that_is_missed(tmp_path):
    path, plain = tmp_path / "net.yaml", DIRECTORY / "attention.yaml"
    cycles = be.perf(plain).epochs[1].timing.cycles_per_input
    bound = f"""
performance-check:
  steady:
    graph-name: output_epoch
    program-name: run_fwd
    cycles-per-tensor: {{expected: {cycles:.0f}, rtol: 0.05}}
"""
    path.write_text(plain.read_text() + bound)
    made = effect(bench(str(path), late=100.0), "link", "dram_gbps", "25 %")
    assert made.outcome == "late"
    assert "steady output_epoch" in made.error


def test_netlists_whose_time_is_not_modelled(monkeypatch):
    found = bench("matmul", kinds=("clock",))
    monkeypatch.setattr(found._times, "_runs", {(): None})
    with pytest.raises(be.HostError, match="not modelled"):
        found.effect(0)
