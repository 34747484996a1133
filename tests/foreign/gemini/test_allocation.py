"""L2 allocation: legal where it fits, refused where not, by hand and over sizes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu import HostError, ProgramError, UnsupportedError
from buda_emu.foreign import gemini
from buda_emu.support.errors import ScheduleError
from gemini_schedules import drop, edited, put, schedule

SMALL = schedule("b")


def test_peak_by_hand():
    # core 1 (0 of dialect A), workload 0: input 3 channels 3x4 padded 96 -> 128, weight 8*(32+32) = 512, the operand of
    # workload 2 is one tensor of both halves: 8*4*4 = 128; workload 2: 128 + store 128
    # core 2 (1), workload 3: operand 128, weight 10*(128+32) = 1600, store 16 -> 64
    assert gemini.peak(gemini.load(SMALL)) == (1792, 1, 3)


def test_an_addressed_schedule():
    ir = gemini.load(SMALL)
    placed = gemini.allocate(ir, 1792)
    assert placed.dialect == "A"
    assert [item for item in placed.check() if item.severity == "error"] == []
    assert list(placed.cores) == [0, 1]
    work = placed.cores[0][1]
    assert work.ifmap[0].transfer_id == (4, 5)
    assert [tensor.type for tensor in work.buffer].count("ofmap") == 1
    assert any(tensor.box.upper == (0, 9, 127, 0) for tensor in placed.cores[1][1].buffer)
    assert gemini.simulate(placed).total >= max(sum(w.time for w in works) for works in ir.cores.values())
    assert gemini.load(placed.to_json()) == placed


def test_a_result_is_stored_while_the_next_workload_runs_and_gone_after_it():
    def on_one_core(document):
        document["1"].append(document["2"].pop(1))
        document["-1"]["in"][1]["core_id"] = 1
        for number in (3, 7):
            (out,) = (out for out in document["-1"]["out"] if out["transfer_id"] == number)
            out["destination"][0]["id"] = 1
        document["1"][0]["ofmap"][0]["destination"].append({"id": 0, "type": "DRAM", "layer_name": "output"})
        half = {"workload_id": 0, "transfer_id": 4, "related_ofmap": [], "upper": [0, 7, 1, 3]}
        document["-1"]["in"].append({**document["-1"]["in"][0], **half})

    ir = gemini.load(edited(SMALL, on_one_core))
    assert [item.rule for item in ir.check() if item.severity == "error"] == []
    placed = gemini.allocate(ir, 1 << 20)
    stored = [{tensor.layer_name for tensor in work.buffer if tensor.type == "ofmap"} for work in placed.cores[0]]
    assert stored == [{"c"}, {"c", "e"}, {"e", "f"}]


@pytest.mark.parametrize("size", [0, -1, 1 << 62, True, 1.5, "1"])
def test_sizes_that_no_buffer_has(size):
    with pytest.raises(HostError, match="a buffer has 1 byte or more"):
        gemini.allocate(gemini.load(SMALL), size)


def test_too_small_a_buffer_names_core_and_workload():
    with pytest.raises(ProgramError, match="1791 bytes is too small: core 1 needs 1792 for workload 3") as error:
        gemini.allocate(gemini.load(SMALL), 1791)
    assert error.value.kind == "allocation"


@given(st.integers(1, 8192))
@settings(max_examples=60, deadline=None)
def test_whatever_is_accepted_checks_clean(size):
    ir = gemini.load(SMALL)
    try:
        placed = gemini.allocate(ir, size)
    except ProgramError:
        assert size < 2 * gemini.peak(ir)[0]
        return
    assert size >= gemini.peak(ir)[0]
    assert [item for item in placed.check() if item.severity == "error"] == []


def activations(document):
    weight = document["2"][1]["weight"]
    weight.update(lower=[0, 0, 0], upper=[0, 9, 7], from_ofmap=True, size=640)
    weight.pop("transfer_id")
    entry = document["2"][1]["buffer"][0]
    entry.update(lower=[0, 0, 0], upper=[0, 9, 7], source=None)
    entry.pop("transfer_id")
    del document["-1"]["out"][3]


def test_activations_as_weights_are_not_allocated():
    ir = gemini.load(edited(SMALL, activations))
    assert [item.rule for item in ir.check() if item.severity == "error"] == []
    with pytest.raises(UnsupportedError, match="activations as weights"):
        gemini.allocate(ir, 1 << 20)


def test_what_is_refused():
    with pytest.raises(HostError, match="has addresses"):
        gemini.peak(gemini.load(schedule("ring_wrap")))
    with pytest.raises(HostError, match="1 byte or more"):
        gemini.allocate(gemini.load(SMALL), 0)
    with pytest.raises(ScheduleError, match="breaks rules") as error:
        gemini.allocate(gemini.load(edited(SMALL, drop("-1/in/0"))), 1 << 20)
    assert {item.rule for item in error.value.diagnostics} == {"G012"}


@pytest.mark.parametrize("channel", [[-1, 6], [5, 2], [0, 8]])
def test_channels_that_are_not_those_of_the_source_are_refused(channel):
    ir = gemini.load(edited(SMALL, put("1/1/buffer/0/source/0/channel", channel)))
    with pytest.raises(ProgramError, match=r"1/1/buffer/0/source/0/channel: .* 8 channels"):
        gemini.allocate(ir, 1 << 20)


def test_pieces_that_overlap_are_tensors_of_their_own():
    def overlap(document):
        for work in document["1"]:
            for entry in work["buffer"]:
                if entry["type"] == "ifmap" and entry["layer"] == "e":
                    entry["source"][1].update(lower=[0, 0, 0, 0], upper=[0, 7, 1, 3])
        bottom = document["2"][0]
        bottom["workload"] = [[0, 0, 0, 0], [0, 7, 1, 3]]
        bottom["layer_name"] = "d"
        bottom["ofmap"][0].update(lower=[0, 0, 0, 0], upper=[0, 7, 1, 3])
        for entry in bottom["buffer"]:
            entry["layer"] = "d"
        bottom["buffer"][1].update(lower=[0, 0, 0, 0], upper=[0, 7, 1, 3])

    ir = gemini.load(edited(SMALL, overlap))
    assert [item.rule for item in ir.check() if item.severity == "error"] == []
    placed = gemini.allocate(ir, 4096)
    assert [item.transfer_id for item in placed.cores[0][1].ifmap] == [(4,), (5,)]


def test_where_a_core_stands():
    """Dialect B counts a column of memory on either side, dialect A cores alone (GEMINI 2, 3)."""
    ir = gemini.load(SMALL)
    width = ir.xlen
    assert [ir.position(y * (width + 2) + 1 + x) for y in (0, 1, 3) for x in range(width)] == [
        (x, y) for y in (0, 1, 3) for x in range(width)
    ]
    addressed = gemini.allocate(ir, 1792)
    assert [addressed.position(y * width + x) for y in (0, 2) for x in range(width)] == [
        (x, y) for y in (0, 2) for x in range(width)
    ]
