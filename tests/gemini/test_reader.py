"""Reading: both dialects, compressed files, and everything that is not a schedule."""

import gzip
import json

import pytest

from buda_emu import DocumentError, gemini
from buda_emu.errors import ScheduleError
from gemini_schedules import NAMES, drop, edited, put, schedule


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
