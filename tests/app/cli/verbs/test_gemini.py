"""`buda-emu gemini`: what each verb prints and writes, and its exit codes."""

import csv
import json

import pytest

from buda_emu.app.cli.main import main
from gemini_schedules import drop, edited, put, schedule
from shared_files import ROOT

EXAMPLES = ROOT / "examples" / "gemini"
HALO, NETWORK, UNPLACED = (str(EXAMPLES / name) for name in ("halo.json", "halo.frontend.json", "unplaced.json"))
DEADLOCK = [put(f"0/{place}/tensor_order", order) for place, order in (
    ("0/buffer/0", 2), ("1/buffer/0", 2), ("1/buffer/2", 0), ("2/buffer/0", 0))]  # fmt: skip


def file(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def gemini(*arguments):
    return main(["gemini", *map(str, arguments)])


def test_the_examples_are_the_schedules_of_the_tests():
    assert json.loads((EXAMPLES / "halo.json").read_text()) == schedule("two_cores")
    assert json.loads((EXAMPLES / "unplaced.json").read_text()) == schedule("b")


def test_check(tmp_path, capsys):
    assert gemini("check", HALO, "--frontend", NETWORK) == 0
    assert "no findings" in capsys.readouterr().out
    bad = file(tmp_path / "bad.json", edited(schedule("two_cores"), put("0/1/time", -1)))
    assert gemini("check", bad) == 1
    assert "bad.json:0/1/time: error[G060]: core 0 workload 1 (c1) takes -1 cycles" in capsys.readouterr().out
    assert gemini("check", "--json", bad) == 1
    content = json.loads(capsys.readouterr().out)
    assert (content["errors"], content["diagnostics"][0]["pointer"]) == (1, "0/1/time")
    assert gemini("check", "--format", "sarif", bad) == 1
    assert json.loads(capsys.readouterr().out)["runs"][0]["results"][0]["ruleId"] == "G060"
    assert gemini("check", "--format", "github", bad) == 1
    assert capsys.readouterr().out.startswith("::error file=")


@pytest.mark.parametrize("content", ["no json", {"hello": 1}, edited(schedule("two_cores"), drop("0/0/time"))])
def test_what_is_no_schedule(content, tmp_path, capsys):
    path = file(tmp_path / "x.json", content)
    for verb in (["check"], ["run"], ["stats"], ["exec", "--frontend", NETWORK]):
        assert gemini(verb[0], path, *verb[1:]) == 2
        printed = "".join(capsys.readouterr())
        assert "error[G00" in printed
        assert "Traceback" not in printed


def test_files_that_are_not_there(capsys):
    assert gemini("run", "none.json") == 2
    assert "none.json" in capsys.readouterr().err


def test_documents_of_every_kind_are_distinguished(tmp_path, capsys):
    path = file(tmp_path / "s.json", edited(schedule("two_cores"), drop("-1")))
    assert main(["check", HALO]) == 0
    assert main(["check", path]) == 2
    assert "error[G001]" in capsys.readouterr().out
    assert main(["explain", "G041", "schedule"]) == 0
    said = capsys.readouterr().out
    assert "two tensors of a snapshot share a byte" in said
    assert "G090" in said


def test_run(tmp_path, capsys):
    assert gemini("run", HALO) == 0
    text = capsys.readouterr().out
    for said in (
        "2,079 cycles",
        "model: schedules of several cores",
        "L2: 4,544 of 32,768",
        "slowest layers",
        "wait: producer",
    ):
        assert said in text
    assert gemini("run", "--json", HALO, "--dram-gibps", 8) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["schema_version"], content["total"], len(content["models"])) == (1, 2333, 2)
    for core in content["cores"]:
        assert core["compute"] + sum(core["waits"].values()) + core["rest"] == content["total"]
    assert gemini("run", UNPLACED) == 0
    text = capsys.readouterr().out
    assert "L2: not checkable: no addresses" in text
    assert "dialect B has no reference" in text
    assert gemini("run", file(tmp_path / "stop.json", edited(schedule("third_tile"), *DEADLOCK))) == 4
    assert "deadlock" in capsys.readouterr().err


def test_lanes_of_trace_and_page_add_up(tmp_path, capsys):
    trace, page = tmp_path / "t.json", tmp_path / "p.html"
    assert gemini("run", HALO, "--perfetto", trace, "--page", page) == 0
    capsys.readouterr()
    events = json.loads(trace.read_text())["traceEvents"]
    lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    busy = dict.fromkeys(lanes.values(), 0.0)
    for event in events:
        if event["ph"] == "X":
            busy[lanes[event["pid"], event["tid"]]] += event["dur"] * 1000
    assert {name: round(time) for name, time in busy.items() if name.startswith("core")} == {
        "core 0": 1670,
        "core 1": 1630,
    }
    assert round(busy["DRAM"]) == 684
    assert any(event["ph"] == "C" and "L2 of core 1" in event["name"] for event in events)
    assert any(event["ph"] == "s" for event in events)
    assert "A model: schedules of several cores" in page.read_text()


def test_differences_to_a_trace(tmp_path, capsys):
    lines = [
        f"[vp_self, {{'wkl': {n}, 'tile': 0}}, {{'inst_idx': {n}, 'time': [{n * 100}, {n * 100 + 90}]}}, {{}}]"
        for n in range(2)
    ]
    trace = file(tmp_path / "t.txt", "\n".join(lines))
    asm = file(tmp_path / "a.txt", "\n".join(f"[vp_self, {{'wkl': {n}, 'tile': 0}}, {{}}]" for n in range(2)))
    path = file(tmp_path / "s.json", schedule("ring_wrap"))
    assert gemini("run", path, "--trace", trace) == 0
    assert "reference trace: 190 cycles, here 3,360" in capsys.readouterr().out
    assert gemini("run", path, "--asm", asm, "--trace", trace, "--json") == 0
    found = json.loads(capsys.readouterr().out)["trace"]
    assert (found["instructions"], found["exact_starts"], found["compared_durations"]) == (2, 1, 2)
    assert gemini("run", path, "--asm", asm, "--trace", trace) == 0
    assert "1 of 2 instructions start as there" in capsys.readouterr().out
    assert gemini("run", path, "--asm", asm, "--trace", asm) == 2


def test_exec(tmp_path, capsys):
    assert gemini("exec", HALO, "--frontend", NETWORK, "--seed", 1) == 0
    assert "weights of 3 layers are seeded (seed 1): none were published" in capsys.readouterr().out
    bad = file(
        tmp_path / "bad.json", edited(schedule("two_cores"), put("0/2/ring_buffer_info", [[0, 4096], [4096, 4160]]))
    )
    assert gemini("exec", bad, "--frontend", NETWORK) == 1
    assert "mismatch: core 0 workload 2 (c2)" in capsys.readouterr().out
    assert gemini("exec", bad, "--frontend", NETWORK, "--json") == 1
    content = json.loads(capsys.readouterr().out)
    assert not content["ok"]
    assert content["mismatches"][0]["workload_id"] == 2
    assert gemini("exec", UNPLACED, "--frontend", NETWORK) == 3


def test_exec_notes_the_network_of_another_schedule(tmp_path, capsys):
    network = (EXAMPLES / "halo.frontend.json").read_text().replace('"c1"', '"c9"')
    assert gemini("exec", HALO, "--frontend", file(tmp_path / "other.json", network)) == 1
    note = "note: the network lacks 1 layer of the schedule, such as c1: it may belong to another schedule"
    assert note in capsys.readouterr().out


def test_alloc(tmp_path, capsys):
    out = tmp_path / "placed.json"
    assert gemini("alloc", UNPLACED) == 0
    assert "needs 1792 bytes: core 1, workload 3" in capsys.readouterr().out
    assert gemini("alloc", UNPLACED, "--buffersize", 1791, "-o", out) == 4
    assert "workload 3" in capsys.readouterr().err
    assert not out.exists()
    assert gemini("alloc", UNPLACED, "--buffersize", 4096, "-o", out) == 0
    assert gemini("check", out) == 0
    assert gemini("alloc", UNPLACED, "-o", out) == 2
    assert gemini("alloc", HALO) == 2


def test_stats(tmp_path, capsys):
    assert gemini("stats", HALO, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["accesses"]["mac"] == 109568  # 8 x 8 pixels: 16 x 27, 8 x 144 and 8 x 16 products each
    assert content["bytes"] == {"load": 512, "weight": 6912, "store": 512, "noc": 384}
    assert content["links"] == [
        {"from": [0, 0], "to": [1, 0], "bytes": 192},
        {"from": [1, 0], "to": [0, 0], "bytes": 192},
    ]
    table = file(tmp_path / "t.yaml", "mac: 2\ndram_write_byte: 3\n")
    assert gemini("stats", HALO, "--json", "--energy", table) == 0
    assert json.loads(capsys.readouterr().out)["energy"] == {"mac": 219136, "dram_write_byte": 1536, "total": 220672}
    assert gemini("stats", UNPLACED, "--energy", table) == 0
    for text, says in (
        ("macs: 1", "did you mean 'mac'?"),
        ("mac: x", "a number of 0 or more"),
        ("[1]", "a map"),
        ("{", "expected"),
    ):
        assert gemini("stats", HALO, "--energy", file(tmp_path / "bad.yaml", text)) == 2
        assert says in capsys.readouterr().err


def test_sweep(tmp_path, capsys):
    table, chart = tmp_path / "s.csv", tmp_path / "s.svg"
    sizes = ("--dram-gibps", "4,16", "--buffersize", "4096,8192", "--mesh", "2x1,1x2")
    assert gemini("sweep", HALO, *sizes, "--csv", table, "--chart", chart) == 0
    assert "core 0 workload 1 (c1) needs 4544 bytes" in capsys.readouterr().out
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert len(rows) == 8
    assert [row["cycles"] for row in rows if row["buffersize"] == "8192"] == ["2841", "2079"] * 2
    assert chart.read_text().startswith("<svg")
    capsys.readouterr()
    assert gemini("sweep", UNPLACED, "--dram-gibps", "4,16") == 0
    assert "allocates the schedule first" not in capsys.readouterr().out
    assert gemini("sweep", UNPLACED, "--mesh", "2x1,3x3", "--buffersize", "1K,4K") == 0
    printed = capsys.readouterr().out
    assert "a buffer size allocates the schedule first, as `gemini alloc` does" in printed
    assert "1024 bytes is too small" in printed
    assert gemini("sweep", HALO, "--mesh", "1x1") == 2
    assert "no place for core number 1" in capsys.readouterr().err


def test_diff_notes_schedules_of_different_networks(tmp_path, capsys):
    same = edited(schedule("two_cores"), put("0/1/time", 7))
    other = json.loads(json.dumps(schedule("two_cores")).replace('"c1"', '"c9"'))
    for content, layers in ((same, ""), (other, "c1, c9")):
        assert gemini("diff", HALO, file(tmp_path / "other.json", content)) == 0
        notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ")]
        assert len(notes) == bool(layers)
        assert all("different networks" in note and note.endswith(f": {layers}") for note in notes)


def test_diff(tmp_path, capsys):
    assert gemini("diff", HALO, HALO) == 0
    assert "all 5 layers take the same time" in capsys.readouterr().out
    later = edited(
        schedule("two_cores"), put("1/4/time", 600), drop("0/1/buffer/2"), put("0/2/buffer/0/newly_added", True)
    )
    other = file(tmp_path / "o.json", later)
    assert gemini("diff", HALO, other) == 0
    text = capsys.readouterr().out
    assert "+540" in text
    assert "prefetch moved" in text
    assert gemini("diff", HALO, other, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["prefetches"] == [{"layer": "c2", "what": "weight", "ahead": [[1, 1], [0, 1]]}]


def test_slice(tmp_path, capsys):
    out = tmp_path / "small.json"
    assert gemini("slice", HALO, "--layers", "c1..c2", "-o", out) == 0
    assert "4 of 10 workloads, 2 layers, checks clean" in capsys.readouterr().out
    assert gemini("check", out) == 0
    assert gemini("exec", out, "--frontend", NETWORK, "--seed", 1) == 0
    assert gemini("slice", HALO, "--layers", "c1B", "-o", out) == 2
    assert "did you mean 'c1b'?" in capsys.readouterr().err
    bad = file(tmp_path / "bad.json", edited(schedule("two_cores"), put("0/1/time", -1)))
    assert gemini("slice", bad, "--layers", "c1", "-o", out) == 2


def test_help_begins_with_an_example(capsys):
    from buda_emu.foreign.gemini.command.arguments import VERBS

    for verb in VERBS:
        with pytest.raises(SystemExit) as done:
            gemini(verb, "--help")
        assert done.value.code == 0
        assert capsys.readouterr().out.startswith(f"example: buda-emu gemini {verb}")
