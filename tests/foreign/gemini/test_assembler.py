"""Assembler files: parsed by hand, token queues between units, predicted durations, traces."""

import pytest

from buda_emu import HostError, ProgramError
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.time.assembler import parse_literal, read_assembler
from buda_emu.support.errors import ScheduleError
from gemini_schedules import edited, put, schedule

WHERE = "{'slyr': 0, 'wkl': %d, 'tile': %d}"


def line(name, wkl=0, tile=-1, takes=(), gives=(), time=None, **parameters):
    content = {**parameters, "Prev_Insts": list(takes), "Next_Insts": list(gives)}
    text = ", ".join(
        f"{key!r}: {value if isinstance(value, str) and value[0] == '<' else repr(value)}"
        for key, value in content.items()
    )
    span = f", {{'inst_idx': 0, 'time': {list(time)}}}" if time else ""
    return f"[{name}, {WHERE % (wkl, tile)}{span}, {{{text}}}]"


PROGRAM = [
    ("ct_st", {"gives": ["LD"]}, 35),
    ("lda_cfg", {"RS": 0, "DF": "<DataFmt.FP16: 3>"}, 21),
    ("lda_mov", {"RS": 0, "Tile": [1, 3, 12, 12], "takes": ["CT"], "gives": ["VP"]}, 88),  # 1152 B: 20 + ceil(67.06)
    ("lw_cfg", {"DF": "<DataFmt.INT8: 1>"}, 21),
    ("lw_mov", {"SS": 1, "Wsize": [8, 3, 3, 3], "gives": ["PE"]}, 158),  # 832 B: 20 + ceil(48.4) + 89
    ("vp_self", {"wkl": 0, "tile": 0, "takes": ["LD"], "gives": ["PE"]}, 420),
    ("pe_conv", {"wkl": 1, "tile": 0, "takes": ["VP", "LW"]}, 470),
    ("pe_conv", {"wkl": 1, "tile": 1, "gives": ["ST"]}, 470),
    ("lw_mov", {"SS": 0, "Wsize": [8, 3, 3, 3]}, 0),
    ("dt_cal", {}, 0),
    ("sta_cfg", {"RS": 1, "DF": "<DataFmt.INT8: 1>"}, 21),
    ("sta_mov", {"RS": 1, "Tile": [1, 8, 12, 12], "takes": ["PE"]}, 98),  # 1152 B: 30 + ceil(67.06)
]


def file(tmp_path, lines, name="asm.txt"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return path


def program(times=None):
    spans = times or [None] * len(PROGRAM)
    return [line(name, time=span, **content) for (name, content, _), span in zip(PROGRAM, spans, strict=True)]


def test_predicted_durations_and_token_queues(tmp_path):
    ir = gemini.load(schedule("ring_wrap"))
    timeline = gemini.simulate(ir, asm=file(tmp_path, program()))
    assert [span.end - span.start for span in timeline.instructions] == [cycles for *_, cycles in PROGRAM]
    starts = [span.start for span in timeline.instructions]
    # LD: cfg at 0, mov when CT gives at 35; LW beside it; VP at 123; PE at 543; ST when PE's second ends
    assert starts == [0, 0, 35, 0, 21, 123, 543, 1013, 179, 0, 0, 1483]
    assert timeline.total == 1581
    assert timeline.workloads[0, 1] == (543, 1483)
    assert [item.kind for item in timeline.dram] == ["weight", "load", "store"]


def test_durations_of_a_trace(tmp_path):
    asm = file(tmp_path, program())
    times = [
        (0, 31),
        (0, 21),
        (31, 131),
        (0, 21),
        (21, 121),
        (131, 231),
        (231, 300),
        (300, 310),
        (121, 121),
        (0, 0),
        (0, 21),
        (310, 400),
    ]
    trace = file(tmp_path, program(times), "trace.txt")
    timeline = gemini.simulate(None, asm=asm, durations=trace)
    assert [tuple(span) for span in timeline.instructions] == times
    assert timeline.total == 400
    with pytest.raises(ScheduleError, match="this is not a trace"):
        gemini.simulate(None, asm=asm, durations=asm)
    with pytest.raises(ScheduleError, match=r"12 instructions, .* has 2"):
        gemini.simulate(None, asm=file(tmp_path, program()[:2], "short.txt"), durations=trace)
    with pytest.raises(ScheduleError, match=r"trace\.txt:1: ct_st"):
        gemini.simulate(None, asm=file(tmp_path, program()[::-1], "other.txt"), durations=trace)


def test_a_deadlock_names_the_units(tmp_path):
    lines = [line("pe_conv", 1, 0, ["VP"], ["VP"]), line("vp_self", 0, 0, ["PE"], ["PE"])]
    with pytest.raises(ProgramError, match="tokens VP to PE") as error:
        gemini.simulate(gemini.load(schedule("ring_wrap")), asm=file(tmp_path, lines))
    assert error.value.kind == "deadlock"


def test_what_is_needed(tmp_path):
    asm = file(tmp_path, program())
    with pytest.raises(HostError, match="need its schedule"):
        gemini.simulate(None, asm=asm)
    with pytest.raises(HostError, match="give asm"):
        gemini.simulate(gemini.load(schedule("ring_wrap")), durations="trace.txt")
    with pytest.raises(HostError, match="there must be a schedule"):
        gemini.simulate(None)
    only = edited(schedule("ring_wrap"), put("0/1/workload_id", 1))
    lines = [line("pe_conv", 77, 0)]
    with pytest.raises(ScheduleError, match=r"asm\.txt:1: pe_conv: the schedule has no workload 77"):
        gemini.simulate(gemini.load(only), asm=file(tmp_path, lines))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[a, 1, -2.5, 1e3, 'x y', True, None]", ["a", 1, -2.5, 1000.0, "x y", True, None]),
        ("{'DF': <DataFmt.FP16: 3>, 'l': []}", {"DF": "FP16", "l": []}),
        ("[]", []),
    ],
)
def test_values(text, value):
    assert parse_literal(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1",
        "[1,, 2]",
        "{'a' 1}",
        "{1: 2}",
        "[1] 2",
        "[;]",
        "[" * 50,
        "__import__('os')",
        "[" + "9" * 30 + "]",
        "[a b]",
    ],
)
def test_what_is_no_value(text):
    with pytest.raises(ValueError, match=r"."):
        parse_literal(text)


@pytest.mark.parametrize(
    "text",
    [
        "x", "[pe_conv]", "[pe_conv, 1, 2]", "[nobody_x, {'wkl': 0, 'tile': 0}, {}]", "[pe_conv, {'wkl': 0}, {}]",
        "[pe_conv, {'wkl': 0, 'tile': 0}, {'Prev_Insts': ['XX']}]",
        "[pe_conv, {'wkl': 0, 'tile': 0}, {'Prev_Insts': 1}]",
        "[pe_conv, {'wkl': 0, 'tile': 0}, {'time': [2, 1]}, {}]",
    ],
)  # fmt: skip
def test_what_is_no_instruction(text, tmp_path):
    path = file(tmp_path, ["", text])
    with pytest.raises(ScheduleError, match=r"asm\.txt:2: "):
        read_assembler(str(path))


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([line("lda_mov", Tile=[1, 1, 1, 1])], "no lda_cfg before it"),
        ([line("lw_mov", SS=1, Wsize=[1, 1])], "Wsize is a list of four extents"),
        ([line("si_mov")], "how long it takes is not known"),
    ],
)
def test_what_has_no_duration(lines, says, tmp_path):
    with pytest.raises(ScheduleError, match=says):
        gemini.simulate(gemini.load(schedule("ring_wrap")), asm=file(tmp_path, lines))
