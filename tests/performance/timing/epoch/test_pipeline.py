"""The epoch model: what must hold whatever the figures are, and small pipelines by hand."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import buda_emu as be
from buda_emu.netlist.load import check_text
from buda_emu.performance.timing.epoch.pipeline import epoch_timing
from buda_emu.performance.timing.epoch.result import Cost
from buda_emu.performance.timing.epoch.tasks import parts_of
from buda_emu.performance.timing.model import epochs, model_netlist, model_totals
from buda_emu.performance.timing.op.table import calls_of
from buda_emu.performance.timing.transfers.flows import _tiles_per_core, flows, operand_shape
from buda_emu.performance.timing.transfers.noc import paths
from buda_emu.performance.timing.transfers.rates import WHAT_IF, Rates, speed
from buda_emu.spec.devices import device
from buda_emu.support.errors import HostError
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

FAST = Rates(1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 0, 0)


def chain(length=1, *, inputs=8, t=1, mblock=(1, 1), buffers=2, entries=None):
    """a -> n0 -> ... -> o."""
    ops, source = [], "a"
    for number in range(length):
        place = (number // 8, number % 8)
        line = op(f"n{number}", "nop", [source], loc=place, t=t, mblock=mblock, df="Float16_b")
        ops.append(line.replace("buf_size_mb: 2", f"buf_size_mb: {buffers}"))
        source = f"n{number}"
    shape = {"t": t, "mblock": mblock, "df": "Float16_b", "entries": entries or 2 * inputs}
    netlist = text(
        [queue("a", **shape), queue("o", source, **shape)],
        [graph("g", *ops, inputs=inputs)],
        [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
    )
    checked = check_text(netlist)
    assert checked.netlist is not None, checked.diagnostics
    return checked.netlist


def timed(netlist, cost=lambda _op: Cost(1000.0, 500.0, "made up"), rates=FAST):
    (epoch,) = epochs(netlist, list(netlist.programs.values()), {})
    edges = flows(netlist, epoch.temporal, epoch.executes)
    ways = paths(netlist, edges, device(netlist.arch_name))
    costs = {name: cost(item) for name, item in netlist.ops.items()}
    return epoch_timing(netlist, epoch.temporal, list(zip(edges, ways, strict=True)), costs, rates)


def test_a_core_reads_its_share_of_the_tiles_and_one_at_least():
    nop = chain().ops["n0"]
    four = replace(nop, blocking=replace(nop.blocking, grid_size=(2, 2)))
    assert [_tiles_per_core(nop, 0, shape) for shape in ((1, 1, 1), (2, 3, 4))] == [1, 24]
    assert [_tiles_per_core(four, 0, shape) for shape in ((1, 1, 1), (2, 4, 4))] == [1, 8]
    product = replace(four, type="matmul")
    assert [_tiles_per_core(product, operand, (2, 4, 4)) for operand in (0, 1, 2)] == [16, 16, 8]


def test_a_single_op_takes_its_cost():
    found = timed(chain())
    assert found.cycles_per_input == 1000
    assert found.ops[0].active == 8 * 1000
    assert found.first_input == pytest.approx(1000, abs=5)
    assert found.ops[0].waiting_for_room == 0


def test_a_pipeline_runs_at_the_pace_of_its_slowest_op():
    costs = {"n0": 300.0, "n1": 1000.0, "n2": 400.0}
    found = timed(chain(3, inputs=64, t=4), lambda op: Cost(costs[op.name], 0.0, ""))
    assert found.cycles_per_input == pytest.approx(1000, rel=0.01)
    waits = {item.op: (item.waiting_for_input, item.waiting_for_room) for item in found.ops}
    assert waits["n0"][1] > 0  # held back by n1
    assert waits["n2"][0] > 0  # fed slowly by n1
    assert max(waits["n1"]) < 100


def test_memory_sets_the_pace_where_it_is_slow():
    slow = replace(FAST, dram=1.0)
    found = timed(chain(inputs=32), rates=slow)
    # a and o lie in one channel: 2080 bytes in and 2080 out, a tile with its header each
    assert found.cycles_per_input == pytest.approx(4160, rel=0.01)
    assert {item.name: round(item.cycles) for item in found.shared.memory} == {"DRAM channel 0": 4160}


def test_ten_thousand_inputs_take_no_longer_than_some():
    few, many = chain(3, inputs=100), chain(3, inputs=10_000)
    found = timed(many)
    assert found.run.inputs < 100
    assert found.cycles_per_input == pytest.approx(timed(few).cycles_per_input, rel=1e-3)
    assert found.total == pytest.approx(10_000 * 1000, rel=0.01)


def test_one_input_has_no_pace():
    found = timed(chain(inputs=1))
    assert found.cycles_per_input is None
    assert found.last_pack == found.first_input
    assert found.total == found.last_pack + 1  # its output takes a cycle at this speed


@pytest.mark.parametrize(("t", "mblock", "parts"), [(1, (1, 1), 1), (1, (2, 4), 4), (2, (2, 2), 4), (6, (1, 1), 6),
                                                    (64, (1, 1), 16), (22, (1, 1), 11), (17, (1, 1), 16),
                                                    (34, (1, 1), 16)])  # fmt: skip
def test_parts(t, mblock, parts):
    netlist = chain(t=t, mblock=mblock)
    assert parts_of(netlist.ops["n0"]) == parts


def test_the_host_pushes_and_pops_what_queues_of_its_own_hold():
    netlist = chain(mblock=(1, 2))
    (epoch,) = model_netlist(netlist, list(netlist.programs.values()), {}).epochs
    assert epoch.host_bytes == 8 * (2 + 2) * 2080  # a tile has a header of 32 bytes


def test_a_queue_that_two_epochs_read_is_pushed_once():
    netlist = be.load(Path(__file__).parents[4] / "netlists" / "attention.yaml")
    run = be.perf(netlist).run
    by_queue = [epoch.host_queues for epoch in run.epochs]
    assert [sorted(queues) for queues in by_queue] == [["x"], ["out", "x"]]
    pushed, popped = 2 * by_queue[0]["x"], 2 * by_queue[1]["out"]  # two rounds
    assert run.host_seconds()["run_fwd"] == pytest.approx((pushed + popped) / run.host_rate)
    programs = list(netlist.programs.values())
    totals = model_totals(netlist, programs, run.parameters, run.chip, {})
    assert totals.host == pytest.approx(sum(run.host_seconds().values()))
    assert totals.cycles == pytest.approx(sum(run.programs().values()))


def test_a_call_has_the_formats_of_both_operands():
    shape = {"mblock": (1, 1), "df": "Bfp8_b"}
    source = text(
        [queue("a", **shape), queue("b", df="Float16_b"), queue("o", "n")],
        [graph("g", op("n", "add", ["a", "b"]).replace("in_df: [Float32, Float32]", "in_df: [Bfp8_b, Float16_b]"))],
        [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a"), fifo_settings("b")))],
    )
    netlist = check_text(source).netlist
    assert netlist is not None
    (call,) = calls_of(netlist, netlist.ops["n"])
    assert (call.in0_df, call.in1_df) == ("Bfp8_b", "Float16_b")


def test_two_buffers_of_a_slice_overlap_filling_and_sending():
    """A sixteenth of 251 slices is many: their op goes on while those before are on their way."""
    rates = replace(FAST, dram=251 * 2080 * 2 / 10_000)  # what is read and written takes ten thousand cycles, too
    one, two = (
        timed(chain(inputs=1, t=251, buffers=count), lambda _: Cost(10_000.0, 0.0, ""), rates).total for count in (1, 2)
    )
    assert one >= 20_000
    assert 10_000 < two < 13_000


CHAINS = st.builds(
    chain, st.integers(1, 4), inputs=st.sampled_from([2, 8, 16]), t=st.integers(1, 5),
    mblock=st.tuples(st.integers(1, 3), st.integers(1, 3)),
)  # fmt: skip
RATES = st.builds(
    Rates, st.floats(0.5, 50), st.floats(0.5, 50), st.floats(1, 32), st.floats(1, 32), st.floats(1, 64),
    st.floats(0.5, 50), st.integers(0, 50), st.integers(0, 9),
)  # fmt: skip


@settings(deadline=None, max_examples=25)
@given(CHAINS, RATES, st.floats(100, 20000), st.sampled_from(["dram", "host", "stream", "gather", "link", "ethernet"]))
def test_more_bandwidth_never_slows_and_less_never_speeds_up(netlist, rates, cycles, name):
    def pace(given_rates):
        return timed(netlist, lambda _op: Cost(cycles, 0.0, ""), given_rates).total

    base = pace(rates)
    slack = 1.002 * base + 64  # durations are whole cycles
    assert pace(replace(rates, **{name: 2 * getattr(rates, name)})) <= slack
    assert base <= 1.002 * pace(replace(rates, **{name: getattr(rates, name) / 2})) + 64


@settings(deadline=None, max_examples=25)
@given(CHAINS, RATES, st.floats(100, 20000))
def test_cheaper_ops_never_slow_an_epoch_and_it_is_never_faster_than_its_slowest(netlist, rates, cycles):
    base = timed(netlist, lambda _op: Cost(cycles, 0.0, ""), rates)
    cheaper = timed(netlist, lambda _op: Cost(cycles / 2, 0.0, ""), rates)
    assert cheaper.total <= 1.002 * base.total + 64
    if base.cycles_per_input is not None:
        parts = parts_of(netlist.ops["n0"])
        assert base.cycles_per_input >= cycles - parts  # rounded for each part


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), RATES, st.floats(100, 20000))
def test_bigger_buffers_never_slow(length, t, buffers, rates, cycles):
    def total(size):
        netlist = chain(length, inputs=8, t=t, mblock=(2, 2), buffers=size)
        return timed(netlist, lambda _op: Cost(cycles, 0.0, ""), rates).total

    assert total(2 * buffers + 2) <= total(2 * buffers)


SPLIT = """
devices: {{arch: wormhole_b0}}
queues:
  a: {{input: HOST, {shape}, type: queue, entries: 16, df: Float16_b, target_device: 0, loc: dram, dram: [{low}]}}
  o: {{input: n, {shape}, type: queue, entries: 16, df: Float16_b, target_device: 0, loc: dram, dram: [{high}]}}
graphs:
  g:
    target_device: 0
    input_count: 8
    n: {{type: {kind}, grid_loc: [0, 0], {shape}, inputs: [a], in_df: [Float16_b], out_df: Float16_b, acc_df: Float16_b,
      intermed_df: Float16_b, ublock_order: r, buf_size_mb: 2, math_fidelity: HiFi3}}
programs:
  - p:
    - var: {{$zero: 0}}
    - execute: {{graph_name: g, queue_settings: {{a: {{prologue: false, epilogue: false, zero: false,
        rd_ptr_local: $zero, rd_ptr_global: $zero}}}}}}
"""


@pytest.mark.parametrize("kind", ["nop", "exp", "gelu"])
def test_more_cores_never_slow(kind):
    totals = []
    for rows in (1, 2, 4, 8):
        shape = f"grid_size: [{rows}, 1], t: 1, mblock: [{8 // rows}, 2], ublock: [1, 1]"
        low, high = (
            ", ".join(f"[{row % 6}, {base + 0x100000 * row:#x}]" for row in range(rows))
            for base in (0x10000000, 0x20000000)
        )
        checked = check_text(SPLIT.format(kind=kind, shape=shape, low=low, high=high))
        assert checked.netlist is not None, checked.diagnostics
        run = model_netlist(checked.netlist, list(checked.netlist.programs.values()), {})
        totals.append(run.epochs[0].timing.total)
    assert totals == sorted(totals, reverse=True)
    assert totals[0] > 2 * totals[-1]


@pytest.mark.parametrize("name", WHAT_IF)
def test_what_if(name):
    chip = device("wormhole_b0")
    field, factor, _ = WHAT_IF[name]
    assert getattr(speed(chip, {name: 7.0}), field) == 7.0 * factor
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(HostError, match=f"what-if: {name} must be above 0"):
            speed(chip, {name: wrong})


def test_an_unknown_what_if_is_refused():
    with pytest.raises(HostError, match="'dram' is not one of clock, dram_gbps"):
        speed(device("wormhole_b0"), {"dram": 1.0})


@pytest.mark.parametrize("name", ["attention", "matmul", "softmax", "training", "two_chips", "eltwise_tms"])
def test_a_faster_clock_never_slows_an_example(root, name):
    from buda_emu.netlist.load import load

    netlist = load(root / f"netlists/{name}.yaml")
    bodies = list(netlist.programs.values())
    parameters = {"$p_loop_count": "2", "$p_microbatch_count": "1", "$p_zero_grad": "1"}
    slow = model_netlist(netlist, bodies, parameters, what_if={"clock": 500})
    fast = model_netlist(netlist, bodies, parameters, what_if={"clock": 2000})
    assert len(slow.epochs) == len(fast.epochs) > 0
    for before, after in zip(slow.epochs, fast.epochs, strict=True):
        assert fast.seconds(after.timing.total) <= slow.seconds(before.timing.total)


def test_ops_beyond_the_chip_are_refused(root):
    from buda_emu.netlist.load import load

    netlist = load(root / "netlists/two_chips.yaml")
    small = device("wormhole_b0").with_grid(2, 2)
    with pytest.raises(HostError, match=r"op expand is on cores \[0, 0\] to \[1, 3\], the chip has 2x2"):
        model_netlist(netlist, list(netlist.programs.values()), {}, chip=small)


@pytest.mark.parametrize(
    ("tms", "shape"),
    [
        ("[broadcast: {z: 3}]", (6, 4, 8)), ("[broadcast: {r: 2}]", (2, 8, 8)), ("[hslice: 4]", (8, 4, 2)),
        ("[hstack: 2]", (1, 4, 16)), ("[vslice: 2]", (4, 2, 8)), ("[vstack: 2]", (1, 8, 8)), ("[transpose]", (2, 8, 4)),
    ],
)  # fmt: skip
def test_shapes_after_tms(tms, shape):
    from buda_emu.netlist.model import Op, Tm

    name, _, rest = tms.strip("[]").partition(": ")
    args = ()
    if rest.startswith("{"):
        dim, _, count = rest.strip("{}").partition(": ")
        args = (dim, int(count))
    elif rest:
        args = (int(rest),)
    assert operand_shape(Op(name="x", graph="g", input_tms=((Tm(name, args),),)), 0, (2, 4, 8)) == shape


def test_whatever_the_check_accepts_is_modelled_or_refused(corpus):
    """Valid mutants of small netlists: figures or a documented error."""
    from buda_emu.emulator.inputs.entries import default_parameters
    from buda_emu.netlist.load import check
    from buda_emu.report.machine_readable.perf_json import op_perf_table, perf_info_all_epochs_csv, runtime_table_csv
    from buda_emu.report.pages.perf import perf_page
    from buda_emu.report.terminal.perf import perf_lines
    from buda_emu.support.errors import BudaError

    modelled = refused = 0
    for path in sorted((corpus / "mutants").rglob("*.yaml")):
        netlist = check(path).netlist
        if netlist is None:
            continue
        bodies = list(netlist.programs.values())
        try:
            run = model_netlist(netlist, bodies, default_parameters(bodies, {}))
        except BudaError as error:
            assert error.exit_code in (2, 3, 4), path  # noqa: PT017 - the others count
            refused += 1
            continue
        assert list(perf_lines(netlist, run))
        assert perf_page(netlist, run, [], "")
        assert isinstance(op_perf_table(netlist, run), dict)
        assert runtime_table_csv(netlist, run).count("\n") == 1 + sum(len(epoch.timing.ops) for epoch in run.epochs)
        assert perf_info_all_epochs_csv(run)
        modelled += 1
    assert modelled > 200
    assert refused < 20


def test_a_vector_op_costs_more_in_a_graph_of_grayskull_only():
    from buda_emu.performance.timing import OpCall
    from buda_emu.performance.timing.op.cost import VECTOR_UNIT, in_graph

    def factor(kind, arch):
        return in_graph(OpCall(op_type=kind, arch=arch, mblock_m=1, mblock_n=1, ublock_rt=1, ublock_ct=1))

    assert factor("exp", "grayskull") == VECTOR_UNIT["grayskull"] > 1
    assert factor("add", "grayskull") == factor("exp", "wormhole_b0") == factor("exp", "blackhole") == 1


@pytest.mark.parametrize("inputs", [10, 60, 1000])
@pytest.mark.parametrize("buffers", [2, 80, 2000])
def test_a_channel_that_falls_behind_sets_the_pace_however_large_the_output_buffer(inputs, buffers):
    netlist = chain(inputs=inputs, buffers=buffers)
    rates = replace(FAST, dram=2080 / 600)  # an input and an output of one tile take 1,200 cycles, the op 1,000
    found = timed(netlist, rates=rates)
    assert found.total >= inputs * 1200 * 0.995
    assert found.total <= inputs * 1200 + 6000


def test_silicon_figures_that_public_netlists_state(corpus):
    """performance-check sections that state measured figures: two thirds within 10 %, all within 25 %."""
    import csv

    from buda_emu.emulator.inputs.entries import default_parameters
    from buda_emu.netlist.load import load
    from buda_emu.netlist.test_config import read_performance_checks
    from buda_emu.performance.timing.checks import evaluate

    with (corpus / "expectations.tsv").open(newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    errors = []
    for name in sorted({row["netlist"] for row in rows}):
        netlist = load(corpus / "netlists" / name)
        bodies = list(netlist.programs.values())
        run = model_netlist(netlist, bodies, default_parameters(bodies, {}))
        results = evaluate(netlist, run, read_performance_checks(netlist.path, netlist.sections))
        modelled = {(item.graph, item.bound.metric): item for item in results}
        for row in rows:
            if row["netlist"] == name:
                found = modelled[row["graph"], row["metric"]]
                errors.append(abs(found.observed / float(row["expected"]) - 1))
    assert len(errors) == len(rows) >= 14
    assert max(errors) < 0.25
    assert sum(error <= 0.1 for error in errors) >= 2 / 3 * len(errors)
