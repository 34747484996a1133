"""What an epoch loads each time it is executed (PERF 5.1)."""

import re

import pytest

import buda_emu as be
from buda_emu.netlist.load import check_text
from buda_emu.performance.timing.model import model_netlist
from buda_emu.performance.timing.transfers.loading import ChipLoad, EpochLoad, load_bytes, load_cycles
from buda_emu.performance.timing.transfers.rates import speed
from buda_emu.spec.devices import device
from small_netlists import execute, fifo_settings, graph, op, program, queue, text


@pytest.mark.parametrize(
    ("arch", "cores", "dram", "cycles"),
    [  # the figures of PERF 5.1: measured rates of the backend, then theoretical ones
        ("wormhole_b0", 80, None, 80_000), ("grayskull", 120, None, 196_000), ("wormhole_b0", 80, 48.0, 34_000),
        ("grayskull", 120, 12.8 * 1.073741824, 161_000),
    ],
)  # fmt: skip
def test_the_figures_of_the_facts(arch, cores, dram, cycles):
    chip = device(arch)
    fast = speed(chip, {"dram_gbps": dram} if dram else {})
    assert load_cycles(chip, cores, fast=fast) == pytest.approx(cycles, rel=0.01)


def test_cores_without_a_kernel_read_the_blob_alone():
    chip = device("wormhole_b0")
    assert load_bytes(chip, 80) == 80 * 122_880
    assert load_bytes(chip, 0) == 80 * 65_536
    assert load_bytes(chip, 3, extra=1000) == 80 * 66_536 + 3 * 57_344
    assert load_bytes(chip.harvested([1, 2]), 0) == 64 * 65_536
    costs = [load_cycles(chip, kernels) for kernels in range(81)]
    assert costs == sorted(costs)
    alone = chip.with_grid(1, 1)  # one core takes its bytes through one port
    assert load_cycles(alone, 1, fast=speed(chip, {"dram_gbps": 1e6})) == pytest.approx(122_880 / 28.1)


def small(executes=1, overlay=""):
    line = op("n", "add", ["a", "b"], df="Float16_b")
    run = [execute("g", fifo_settings("a"), fifo_settings("b"))] * executes
    shape = {"df": "Float16_b", "entries": 64}
    checked = check_text(
        text(
            [queue("a", **shape), queue("b", **shape), queue("o", "n", **shape)],
            [graph("g", line.replace("buf_size_mb", f"{overlay}buf_size_mb"), inputs=2)],
            [program("p", "var: {$c_zero: 0}", *run)],
        )
    )
    assert checked.netlist is not None, checked.diagnostics
    return checked.netlist


def modelled(netlist, **more):
    return model_netlist(netlist, list(netlist.programs.values()), {}, **more)


@pytest.mark.parametrize("executes", [1, 3])
def test_every_execute_loads_again(executes):
    run = modelled(small(executes))
    (epoch,) = run.epochs
    chip = device("wormhole_b0")
    headers = 3 * 270  # two queues to read, one to write, none in the row or column of the core
    assert epoch.load == EpochLoad((ChipLoad(0, 80, 1, load_bytes(chip, 1), load_cycles(chip, 1), headers),))
    assert epoch.load.cycles == load_cycles(chip, 1) + headers
    assert epoch.runs == executes
    assert run.program_loads() == {"p": executes * epoch.load.cycles}
    assert run.programs() == {"p": executes * (epoch.load.cycles + epoch.timing.total)}
    assert epoch.load_share == epoch.load.cycles / (epoch.load.cycles + epoch.timing.total)


def test_the_extra_blob_of_an_op_is_read_by_all_cores():
    usual, more = modelled(small()), modelled(small(overlay="overlay_size: 103424, "))
    grown = more.epochs[0].load.chips[0].bytes - usual.epochs[0].load.chips[0].bytes
    assert grown == 80 * (103_424 - 65_408)
    assert modelled(small(overlay="overlay_size: 4096, ")).epochs[0].load == usual.epochs[0].load


def test_chips_load_side_by_side(root):
    (epoch,) = be.perf(root / "netlists/two_chips.yaml").epochs
    assert [load.chip for load in epoch.load.chips] == [0, 1]
    assert epoch.load.cycles == max(load.total for load in epoch.load.chips)


def test_what_silicon_figures_hold_is_not_changed_by_loading(root):
    """PERF 5.1: they are taken inside an epoch."""
    path = root / "netlists/attention.yaml"
    usual, slow = be.perf(path), be.perf(path, what_if={"epoch_setup": 1e6})
    assert [epoch.pace for epoch in usual.epochs] == [epoch.pace for epoch in slow.epochs]
    assert slow.cycles == usual.cycles + sum(epoch.runs for epoch in usual.epochs) * 1e6


def test_all_that_is_written_says_what_part_is_loading(root, tmp_path, capsys):
    from buda_emu.app.cli.main import main

    path = root / "netlists/attention.yaml"
    found = be.perf(path)
    assert main(["perf", str(path), "--report", str(tmp_path), "--trace", str(tmp_path / "t.json")]) == 0
    out = capsys.readouterr().out
    epoch = found.epochs[0]
    assert re.search(rf"{epoch.load.cycles:,.0f} +{100 * epoch.load_share:.1f}", out)
    assert "% loading epochs\n" in out
    written = found.to_json()
    assert written["epochs"][0]["load_cycles"] == epoch.load.cycles
    assert written["epochs"][0]["loads"][0]["cores"] == 80
    assert written["program_load_cycles"] == found.run.program_loads()
    assert found.epoch_rows[0]["load_share"] == epoch.load_share
    table = (tmp_path / "perf_info_all_epochs.csv").read_text().splitlines()
    assert table[1].rpartition(",")[2] == str(int(epoch.load.cycles))


def test_the_page_shows_loading_where_it_shows_an_epoch_as_a_whole(root):
    from buda_emu.report.pictures.epoch_picture import steady_picture

    (epoch,) = be.perf(root / "netlists/two_chips.yaml").epochs
    picture = steady_picture(epoch, epoch.timing)
    names = [lane.name for lane in picture.lanes]
    assert names[:3] == [epoch.bottleneck.name, "load, chip 0", "load, chip 1"]
    slices = {names[item.lane]: item for item in picture.slices if names[item.lane].startswith("load, ")}
    for load in epoch.load.chips:
        found = slices[f"load, chip {load.chip}"]
        assert (found.start, found.end) == (0, round(load.total))
    others = [item for item in picture.slices if not names[item.lane].startswith("load, ")]
    assert {names[item.lane] for item in others} == {*names} - {*slices}
    assert min(item.start for item in others) == round(epoch.load.cycles)
    assert max(item.end for item in others) == round(epoch.cycles)


def test_a_trace_begins_each_epoch_with_its_load(root, tmp_path):
    import json

    from buda_emu.app.cli.main import main

    path = root / "netlists/two_chips.yaml"
    (epoch,) = be.perf(path).epochs
    assert main(["perf", str(path), "-q", "--trace", str(tmp_path / "t.json")]) == 0
    events = [event for event in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if event["ph"] == "X"]
    loads = {event["name"]: event for event in events if event["name"].startswith("load, ")}
    assert set(loads) == {"load, chip 0", "load, chip 1"}
    first = min(event["ts"] for event in events if event["name"] in {op.op for op in epoch.timing.ops})
    last = max(event["ts"] + event["dur"] for event in loads.values())
    assert last == pytest.approx(epoch.load.cycles / 1000, rel=0.01)  # microseconds at 1 GHz
    assert min(event["ts"] for event in loads.values()) == 0
    assert first >= last - 0.001
