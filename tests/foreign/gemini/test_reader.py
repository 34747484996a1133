"""Reading: both dialects, compressed files, and everything that is not a schedule."""

import gzip
import json
import re
from pathlib import Path
from random import Random

import pytest

from buda_emu import DocumentError
from buda_emu.app.documents.kinds import files_below, kind_of
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.frontend import read_network
from buda_emu.foreign.gemini.stages import SCHEDULE, TRACE, recognise_beginning, recognise_content
from buda_emu.foreign.gemini.time.assembler import read_assembler
from buda_emu.support.checker import Options
from buda_emu.support.errors import HostError, ScheduleError
from gemini_schedules import NAMES, drop, edited, put, schedule

FOLDER = Path(__file__).parent / "schedules"


@pytest.mark.parametrize("name", [*NAMES, "b"])
def test_json_of_a_schedule_is_the_same_schedule(name, tmp_path):
    ir = gemini.load(schedule(name))
    assert ir.dialect == ("B" if name == "b" else "A")
    assert gemini.load(ir.to_json()) == ir
    path = tmp_path / "s.json.gz"
    path.write_bytes(gzip.compress(json.dumps(ir.to_json()).encode()))
    assert gemini.load(path) == ir
    assert gemini.load(str(path)).path == str(path)


def test_to_json_is_a_copy_with_unknown_keys():
    ir = gemini.load(edited(schedule("two_cores"), put("0/0/remark", "x")))
    content = ir.to_json()
    assert content["0"][0]["remark"] == "x"
    content["0"].clear()
    assert len(ir.to_json()["0"]) == 5


def test_counts():
    ir = gemini.load(schedule("two_cores"))
    assert list(ir.cores) == [0, 1]
    assert (len(ir.transfers), len(ir.dram_in), len(ir.dram_out)) == (19, 2, 5)
    work = ir.cores[1][2]
    assert (work.workload_id, work.layer_name, work.time) == (2, "c2", 450)
    assert ir.position(1) == (1, 0)
    assert gemini.load(schedule("b")).position(2) == (1, 0)


def test_only_what_is_read_may_be_newly_added():
    tensors = [item for work in gemini.load(schedule("fp16_dram")).workloads() for item in work.buffer]
    assert {item.newly_added for item in tensors if item.type == "ofmap"} == {False}
    assert {item.newly_added for item in tensors if item.type != "ofmap"} == {False, True}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"no json", "no JSON"),
        (b"", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[1, 2]", "a schedule is an object"),
        (b"{}", "no core"),
        (b"[" * 100_000, "no JSON"),
        (b'{"-1": ' + b"9" * 5000 + b"}", "no JSON"),
        (b"\x1f\x8bnot gzip", "damaged"),
        (gzip.compress(b"{}" * 1000, mtime=0)[:-9], "cut off"),
    ],
)
def test_what_is_no_schedule(text, says, tmp_path):
    path = tmp_path / "s.json"
    path.write_bytes(text)
    with pytest.raises(ScheduleError, match=says) as error:
        gemini.load(path)
    assert {item.rule for item in error.value.diagnostics} == {"G001"}


def test_a_syntax_error_has_its_line(tmp_path):
    path = tmp_path / "s.json"
    path.write_text('{\n "xlen": 1,\n "ylen" 1}')
    with pytest.raises(DocumentError) as error:
        gemini.load(path)
    (only,) = error.value.diagnostics
    assert (only.line, only.column) == (3, 9)


def test_a_missing_key_names_a_near_one():
    broken = edited(schedule("two_cores"), drop("0/1/buffer/0/address"), put("0/1/buffer/0/adress", 0))
    with pytest.raises(ScheduleError) as error:
        gemini.load(broken)
    (only,) = error.value.diagnostics
    assert (only.rule, only.where, only.hint) == ("G002", "0/1/buffer/0", "did you mean 'adress'?")


def test_all_findings_are_told_at_once():
    broken = edited(schedule("two_cores"), drop("0/1/time"), put("1/0/workload", [1]), put("1/2/layer_type", "pee"))
    with pytest.raises(ScheduleError) as error:
        gemini.load(broken)
    assert [(item.rule, item.where) for item in error.value.diagnostics] == [
        ("G002", "0/1"),
        ("G003", "1/0/workload"),
        ("G002", "1/2/layer_type"),
    ]
    assert "3 errors" in str(error.value)


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        gemini.load(tmp_path / "none.json")


ASSEMBLER_LINE = "[ct_st, {'slyr': 0, 'wkl': 0, 'tile': -1}, {'Prev_Insts': [], 'Next_Insts': []}]\n"
TRACE_LINE = "[ct_st, {'slyr': 0, 'wkl': 0, 'tile': -1}, {'inst_idx': 1, 'time': [0, 33]}, {'Prev_Insts': []}]\n"


def draw_other_stage(random):
    """The text of a file of another stage, and what it is: keys in any order, some of them left out, in any layout."""
    stage = random.choice(["network", "quantisation scales", "assembler file", "reference trace"])
    if stage == "assembler file":
        return ASSEMBLER_LINE * random.randint(1, 40), stage
    if stage == "reference trace":
        return TRACE_LINE * random.randint(1, 40), stage
    if stage == "network":
        layers = json.loads((FOLDER / f"{random.choice(NAMES)}.frontend.json").read_text())
        optional = {"layer_index", "name", "module_list", "next_layer", "file_list", "device"}
    else:
        scales = [random.random() for _ in range(random.choice((1, 64, 512)))]
        layer = {"weight_scale": scales, "weight_dtype": "int8", "input_dtype": "int8", "output_scale": 0.5}
        layers = {f"Conv_{number}": dict(layer) for number in range(random.randint(1, 5))}
        optional = {"weight_dtype", "output_scale"}
    content = {}
    for name in random.sample(list(layers), len(layers)):
        keys = [key for key in layers[name] if key not in optional or random.random() < 0.7]
        content[name] = {key: layers[name][key] for key in random.sample(keys, len(keys))}
    return json.dumps(content, indent=random.choice((None, 1, 3))), stage


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 300))])
def test_a_file_of_another_stage_is_recognised_in_one_sentence(seed, tmp_path):
    random = Random(seed)
    text, stage = draw_other_stage(random)
    path = tmp_path / random.choice(("stage.json", "stage.txt", "stage"))
    path.write_bytes(gzip.compress(text.encode()) if random.random() < 0.3 else text.encode())
    kind = kind_of(str(path))
    assert kind.name == "schedule"
    (finding,) = kind.check(str(path), Options()).diagnostics
    assert finding.rule == "G001"
    assert re.match(rf"this is an? .*{stage}.*, not a schedule: .*give the schedule", finding.message)
    assert files_below([str(path)]) == [str(path)]
    with pytest.raises(HostError):  # what nobody named is not taken for a schedule
        files_below([str(tmp_path)])


@pytest.mark.parametrize("name", [*NAMES, "b"])
def test_a_schedule_is_recognised_where_another_stage_is_needed(name, tmp_path):
    path = tmp_path / "s.json"
    path.write_text(json.dumps(schedule(name)))
    assert recognise_content(schedule(name)) is SCHEDULE
    with pytest.raises(ScheduleError, match=r"this is a schedule, not a network \(front-end IR\)"):
        read_network(str(path))
    with pytest.raises(ScheduleError, match="this is a schedule, not an assembler file"):
        read_assembler(str(path))
    with pytest.raises(ScheduleError, match="this is a schedule, not a reference trace"):
        read_assembler(str(path), TRACE)


def test_a_network_is_recognised_where_an_assembler_file_is_needed():
    with pytest.raises(ScheduleError, match=r"this is a network \(front-end IR\), not an assembler file"):
        read_assembler(str(FOLDER / f"{NAMES[0]}.frontend.json"))


@pytest.mark.parametrize("content", [None, [], {}, {"name": 1}, {"devices": {"arch": "grayskull"}}, {"a": {"b": {}}}])
def test_other_content_is_of_no_stage(content):
    assert recognise_content(content) is None
    assert recognise_beginning(json.dumps(content).encode()) is None
