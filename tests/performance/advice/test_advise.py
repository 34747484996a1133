"""Advice: what it says is what a fresh model of the written netlist says, and the netlist computes the same."""

import json
import re
from types import SimpleNamespace

import pytest

import buda_emu as be
from buda_emu.app.api.run_netlist import run_netlist
from buda_emu.app.cli.main import main
from buda_emu.netlist.load import check, check_bytes
from buda_emu.performance.advice.accuracy import Accuracy
from buda_emu.performance.advice.edits import merge_edits
from buda_emu.performance.advice.moves import MOVES
from buda_emu.performance.advice.patch import check_patch
from buda_emu.performance.advice.search import Found, Search, _drop_idle_steps
from buda_emu.support.errors import HostError, NetlistError
from shared_files import CORPUS, ROOT, needs_corpus

ATTENTION = ROOT / "netlists/attention.yaml"
NETLISTS = ("attention", "matmul", "training", "softmax", "two_chips")


@pytest.fixture(scope="module")
def advice():
    return be.advise(ATTENTION)


def paces(perf):
    return [epoch.pace for epoch in perf.epochs]


@pytest.mark.parametrize("name", NETLISTS)
def test_what_is_said_is_what_a_fresh_perf_says(name, tmp_path):
    path = ROOT / f"netlists/{name}.yaml"
    found = be.advise(path, tries=60)
    data, netlist = path.read_bytes(), check(path).netlist
    assert [report.pace for report in found.before.reports] == paces(be.perf(path))
    new = tmp_path / "new.yaml"
    new.write_bytes(found.text)
    assert [report.pace for report in found.after.reports] == paces(be.perf(new))
    assert found.after.slowest <= found.before.slowest
    for item in found.found.alone:
        text, result = check_patch(data, netlist, merge_edits(item.proposal.edits))
        new.write_bytes(text)
        fresh = be.perf(new)
        assert fresh.epochs[item.epoch].pace == item.after < item.before
        assert max(paces(fresh)) == item.slowest
        assert {d.rule for d in result.diagnostics} <= {d.rule for d in netlist.diagnostics}
    steps = [variant.slowest for variant in found.found.steps]
    assert steps == sorted(steps, reverse=True)
    totals = [found.before.cycles, *(variant.cycles for variant in found.found.steps)]
    assert totals == sorted(totals, reverse=True)  # no step makes the programs slower
    assert all(item.total < found.before.cycles for item in found.found.alone)


def search_of(*epochs):
    """A search, and a variant whose epochs have these (cycles for each input, cycles of all runs)."""
    evaluator = SimpleNamespace(tries=0)
    search = Search(b"", evaluator, Accuracy(0), 1e-3, 10)
    reports = tuple(SimpleNamespace(pace=pace) for pace, _ in epochs)
    variant = SimpleNamespace(
        reports=reports,
        figures=reports,
        cycles=sum(cycles for _, cycles in epochs),
        score=lambda number: (reports[number].pace, 0.0),
    )
    return search, variant


def test_a_step_that_makes_the_programs_slower_is_none():
    search, before = search_of((100.0, 5_000.0), (60.0, 3_000.0))
    _, shorter = search_of((90.0, 4_000.0), (60.0, 3_000.0))
    _, longer = search_of((90.0, 5_100.0), (60.0, 3_000.0))  # a faster pace after a longer way in
    assert search._is_better(before, shorter, 0)
    assert search._gains(before, shorter, 0)
    assert not search._is_better(before, longer, 0)
    assert not search._gains(before, longer, 0)


def test_the_last_steps_count_only_where_they_gain():
    (start, used, idle) = (SimpleNamespace(cycles=cycles) for cycles in (1_000.0, 900.0, 899.99))
    found = Found(start, idle, taken=[("a", None), ("b", None)], steps=[used, idle])
    _drop_idle_steps(found)
    assert (found.best, found.taken, found.steps) == (used, [("a", None)], [used])
    idle = SimpleNamespace(cycles=999.99)
    found = Found(start, idle, taken=[("a", None)], steps=[idle])
    _drop_idle_steps(found)
    assert (found.best, found.taken, found.steps) == (start, [], [])


def test_nothing_found_is_said_in_words(tmp_path, capsys):
    path = ROOT / "netlists/softmax.yaml"
    new = tmp_path / "new.yaml"
    words = ["advise", str(path), "--move", "rows", "--write", str(new), "--json", str(tmp_path / "a.json")]
    assert main(words) == 0
    *lines, written = capsys.readouterr().out.splitlines()
    said = next(line for line in lines if line.startswith("nothing was found"))
    assert "op softmax bounds fwd on 4 cores while cores are free: the blocks of its cores stand" in " ".join(lines)
    assert said.startswith("nothing was found that helps: no kind of change applies to its bottleneck. 100 % of")
    assert "of them for loading it: op softmax works" in said
    assert "it sets the pace; its cycles are, link by link: op softmax" in said
    assert written == f"{new}: the netlist as it is"
    assert new.read_bytes() == path.read_bytes()
    assert json.loads((tmp_path / "a.json").read_text())["nothing_found"] in said
    tried = be.advise(path, moves=["rows"])
    tried.found.modelled, tried.found.refused = 3, [("a", "V001")]
    assert "3 changes modelled, none makes the programs faster; 1 change that would, the checker" in tried.reason


@needs_corpus
def test_of_a_real_netlist_an_epoch_is_not_made_faster_at_the_cost_of_the_program():
    path = CORPUS / "netlists/verif/netlist_tests/netlists/basic_graph/netlist_temporal_graph.yaml"
    found = be.advise(path, tries=40)
    totals = [found.before.cycles, *(variant.cycles for variant in found.found.steps)]
    assert totals == sorted(totals, reverse=True)


def test_the_slowest_epoch_of_attention_takes_half(advice):
    assert advice.after.slowest < 0.6 * advice.before.slowest
    assert advice.lost <= 1e-3
    assert "exponentials on 4 cores" in advice.found.taken[0][0].sentence  # exact changes come first
    assert advice.ranked[0].proposal.move == "approximate"


def test_the_text_keeps_its_comments_and_checks_clean(advice):
    before, after = ATTENTION.read_text(), advice.text.decode()
    comments = [line.partition("#")[2] for line in before.splitlines() if "#" in line]
    assert [line.partition("#")[2] for line in after.splitlines() if "#" in line] == comments
    result = check_bytes(advice.text, "new.yaml", strict=True)
    assert result.diagnostics == ()


def test_exact_changes_change_no_bit(tmp_path):
    found = be.advise(ATTENTION, moves=["cores", "channel", "block", "buffer"])
    assert found.found.taken
    (tmp_path / "new.yaml").write_bytes(found.text)
    for precision in ("format", "device"):
        old = run_netlist(be.load(ATTENTION), precision=precision).outputs
        new = run_netlist(be.load(tmp_path / "new.yaml"), precision=precision).outputs
        assert old == new  # their checksums, too


def test_it_is_the_same_again(advice):
    assert be.advise(ATTENTION).to_json() == advice.to_json()


def test_a_loss_that_is_not_allowed_is_not_taken():
    strict = be.advise(ATTENTION, most_loss=0.0)
    assert strict.lost == 0.0
    assert not any(loss and loss.pcc_lost for _, loss in strict.found.taken)
    loose = be.advise(ATTENTION, most_loss=0.5, moves=["fidelity", "approximate"])
    assert {proposal.move for proposal, _ in loose.found.taken} == {"fidelity", "approximate"} & {
        proposal.move for proposal, _ in loose.found.taken
    }
    assert loose.lost > 0
    front = loose.front()
    assert [point.lost for point in front] == sorted(point.lost for point in front)
    assert [point.cycles for point in front] == sorted((point.cycles for point in front), reverse=True)


def test_every_move_declares_itself():
    names = [move.name for move in MOVES]
    assert len(set(names)) == len(names) == 9
    assert all(move.changes and move.applies for move in MOVES)
    page = (ROOT / "docs/timing/advise.md").read_text()
    for move in MOVES:
        assert f"| `{move.name}` | {move.changes} |" in page


def test_what_is_refused():
    with pytest.raises(HostError, match=r"no move 'core'.*did you mean 'cores'"):
        be.advise(ATTENTION, moves=["core"])
    with pytest.raises(HostError):
        be.advise(ATTENTION, programs=["nowhere"])
    with pytest.raises(NetlistError):
        be.advise(ROOT / "nowhere.yaml")
    with pytest.raises(NetlistError):
        be.advise(ROOT / "pyproject.toml")


def test_the_command_writes_what_it_says(tmp_path, capsys):
    new, told = tmp_path / "new.yaml", tmp_path / "advice.json"
    assert main(["advise", str(ATTENTION), "--write", str(new), "--json", str(told)]) == 0
    lines = capsys.readouterr().out.splitlines()
    content = json.loads(told.read_text())
    assert content["schema_version"] == 1
    assert content["after"]["slowest_cycles"] == max(paces(be.perf(new)))
    assert content["alone"][0]["edits"][0]["kind"] == "op"
    place = next(number for number, line in enumerate(lines) if line.startswith("all programs: "))
    assert lines[place + 1].startswith("loading epochs takes ")
    assert "it is loaded less often" in lines[place + 2]
    assert lines[place + 3].startswith("op exponentials bounds scores_epoch on 4 cores while cores are free: ")
    assert [(entry["op"], entry["cores"]) for entry in content["no_more_cores"]] == [
        ("exponentials", 4),
        ("context", 2),
    ]
    assert content["on_one_core"] == []
    assert main(["check", str(new), "--strict"]) == 0
    assert main(["advise", str(new), "-q", "--tries", "20"]) == 0


@needs_corpus
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "verif/graph_tests/netlists/netlist_bert_base",
        "dbd/test/netlists/resnet50",
        "verif/graph_tests/netlists/t5_wormhole_b0",
    ],
)
def test_real_netlists_take_fifteen_per_cent_less(name, tmp_path):
    path = CORPUS / f"netlists/{name}.yaml"
    found = be.advise(path)
    assert found.lost <= 1e-3
    assert found.after.slowest <= 0.85 * found.before.slowest
    new = tmp_path / "new.yaml"
    new.write_bytes(found.text)
    assert check(new, strict=True).diagnostics == ()
    assert max(paces(be.perf(new))) == found.after.slowest
    if name.endswith("bert_base"):
        few = {}
        for kind, text in (("old", path.read_text()), ("new", new.read_text())):
            (tmp_path / f"{kind}.yaml").write_text(re.sub(r"\b256\b", "4", text))  # inputs
            few[kind] = run_netlist(be.load(tmp_path / f"{kind}.yaml"), parameters={"$p_loop_count": "1"}).outputs
        assert few["old"]
        assert few["old"] == few["new"]  # format rounds data alone: neither cores nor channels nor approximation count


LAYOUT = """devices: {arch: wormhole_b0}
queues:
  x: {input: HOST, type: queue, entries: 8, grid_size: [1, 1], t: SLICES, mblock: [SIDE, SIDE], ublock: [1, 1],
    df: Float16_b, target_device: 0, loc: dram, dram: [[0, 0x10000000]]}
  out: {input: layout, type: queue, entries: 8, grid_size: [1, 1], t: SLICES, QUEUE, df: Float16_b,
    target_device: 0, loc: dram, dram: [[1, 0x20000000]]}
graphs:
  fwd:
    target_device: 0
    input_count: 8
    layout: {type: nop, grid_loc: [0, 0], grid_size: [1, 1], inputs: [x], in_df: [Float16_b], out_df: Float16_b,
      intermed_df: Float16_b, acc_df: Float16_b, math_fidelity: HiFi3, t: SLICES, mblock: [SIDE, SIDE], ublock: [1, 1],
      buf_size_mb: 2, ublock_order: r, input_0_tms: [transpose]}
programs:
  - run_fwd:
      - var: {$c_zero: 0}
      - execute: {graph_name: fwd, queue_settings: {
          x: {prologue: false, epilogue: false, zero: false, rd_ptr_global: $c_zero, rd_ptr_local: $c_zero}}}
"""


def layout_netlist(tmp_path, *, t=1, side=8, queue="mblock: [SIDE, SIDE], ublock: [1, 1]"):
    """A netlist whose only op, a layout op on core [0, 0], bounds its epoch."""
    path = tmp_path / "layout.yaml"
    path.write_text(LAYOUT.replace("QUEUE", queue).replace("SLICES", str(t)).replace("SIDE", str(side)))
    return path


def test_a_layout_op_on_one_core_is_split(tmp_path):
    found = be.advise(layout_netlist(tmp_path), moves=["cores"])
    assert {proposal.target for proposal, _ in found.found.taken} == {"layout"}
    assert found.after.slowest < found.before.slowest
    assert found.found.unsplit == []


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ({"t": 8, "side": 1}, "put its 8 slices below each other (vstack)"),
        ({"side": 1}, "a slice of its result is 1 tile high and 1 tile wide, and cores share its tiles, not less"),
        ({"queue": "mblock: [4, 4], ublock: [2, 2]"}, "queue out, which it feeds, has other blocks"),
    ],
)
def test_why_an_op_on_one_core_is_not_split(tmp_path, capsys, shape, said):
    path = layout_netlist(tmp_path, **shape)
    assert main(["advise", str(path), "--move", "cores", "--json", str(tmp_path / "a.json")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "op layout bounds fwd on one core while cores are free: " in shown
    assert said in shown
    (entry,) = json.loads((tmp_path / "a.json").read_text())["on_one_core"]
    assert (entry["op"], entry["graphs"]) == ("layout", ["fwd"])
    assert said in entry["reason"]
