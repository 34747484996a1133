"""What drawings say: words stand at what they name and inside of the picture, lengths are to scale."""

import re
from itertools import pairwise
from math import floor, log10
from random import Random
from xml.etree import ElementTree

import pytest

import buda_emu as be
from buda_emu.performance.timing.figures import OpFigures
from buda_emu.report.pages.timeline import timeline_page
from buda_emu.report.pictures.axes import LogAxis, round_ticks, round_up, tick_text, value_ticks
from buda_emu.report.pictures.epoch_picture import THREADS, run_picture
from buda_emu.report.pictures.floorplan import TITLE, Panel
from buda_emu.report.pictures.grid_svg import FAMILIES, _arrange, grid_svg, width_of
from buda_emu.report.pictures.roofline import roofline_chart
from buda_emu.report.sweep import sweep_chart
from example_netlists import DIRECTORY
from report.drawn import pipeline


def elements(svg, name):
    """Of a picture in SVG, by their name."""
    return [item for item in ElementTree.fromstring(svg).iter() if item.tag.rpartition("}")[2] == name]


def attribute_numbers(item, *names):
    return tuple(float(item.get(name)) for name in names)


def text_span(item):
    """From where to where the words of a text element reach."""
    (x,), wide = attribute_numbers(item, "x"), width_of(item.text, float(item.get("font-size")))
    left = {"start": x, "middle": x - wide / 2, "end": x - wide}[item.get("text-anchor")]
    return left, left + wide


def assert_words_inside(svg):
    (picture,) = elements(svg, "svg")
    width, height = attribute_numbers(picture, "width", "height")
    for item in elements(svg, "text"):
        left, right = text_span(item)
        assert left >= 0, item.text
        assert right <= width, item.text
        assert 0 < attribute_numbers(item, "y")[0] <= height, item.text


# --------------------------------------------------------------------------------------------------------- floor plans
def panel(width, height):
    return Panel(0, 0, "g", 1, (width, height), (), ())


def test_panels_stand_in_rows_one_gap_apart():
    """Three of one height fit into a row about as wide as all are high; the next begins below the highest."""
    places, width, height = _arrange([panel(100, 100), panel(60, 200), panel(90, 50), panel(250, 80)])
    margin = places[0][0]
    (first, second, third, fourth) = places
    gap = second[0] - first[0] - 100
    assert gap > 0
    assert third == (second[0] + 60 + gap, margin)
    assert first[1] == second[1] == margin
    assert fourth == (margin, margin + 200 + gap)
    assert (width, height) == (third[0] + 90 + margin, fourth[1] + 80 + margin)


@pytest.mark.parametrize("heat", [{}, {"x": 1.0}])
def test_the_legend_of_a_floor_plan_stands_below_the_panels_and_inside(heat):
    drawn = grid_svg(be.load(DIRECTORY / "matmul.yaml"), heat=heat)
    panels_end = 12 + max(
        attribute_numbers(item, "height")[0] for item in elements(drawn, "rect") if item.get("class") == "bg-panel"
    )
    words = {label for label, _ in FAMILIES.values()} | {"red: the error of the op"}
    items = [item for item in elements(drawn, "text") if item.text in words]
    swatches = [
        attribute_numbers(item, "x", "y", "height") for item in elements(drawn, "rect") if item.get("width") == "14"
    ]
    assert len(swatches) == len(FAMILIES) == len(items) - bool(heat)
    (height,) = attribute_numbers(elements(drawn, "svg")[0], "height")
    end = 0.0
    for (x, y, high), item in zip(swatches, items, strict=False):
        left, right = text_span(item)
        assert end < x < x + 14 < left < x + 24  # its words are beside it
        assert panels_end < y < y + high < height
        assert x - end < 24  # one after the other
        assert y < attribute_numbers(item, "y")[0] <= y + high
        end = right
    assert (not heat) or end < text_span(items[-1])[0] < end + 24


def test_the_lines_of_a_panel_begin_at_one_place():
    title, below = elements(grid_svg(be.load(DIRECTORY / "matmul.yaml")), "text")[:2]
    assert (title.text, below.text.partition(" ")[0]) == ("epoch 0, chip 0", "graph")
    assert attribute_numbers(title, "x") == attribute_numbers(below, "x")
    assert attribute_numbers(title, "y") < attribute_numbers(below, "y") < (TITLE,)


# --------------------------------------------------------------------------------------------------------------- runs
@pytest.fixture(scope="module")
def modelled():
    return be.perf(str(DIRECTORY / "attention.yaml")).run


@pytest.fixture
def run(modelled):
    return run_picture(modelled)


def test_threads_of_a_core_work_from_the_start_to_the_end_of_a_part(run):
    """Unpack begins with it, pack ends with it, math works in its middle."""
    of_ops = [item for item in run.slices if item.category in THREADS]
    assert of_ops
    for unpack, math, pack in zip(of_ops[::3], of_ops[1::3], of_ops[2::3], strict=True):
        assert (unpack.category, math.category, pack.category) == THREADS
        assert unpack.start <= math.start <= math.end <= pack.end
        assert unpack.end <= pack.end
        assert unpack.start <= pack.start
        assert math.start - unpack.start == pytest.approx(pack.end - math.end)


def test_arrows_lead_from_the_end_of_a_part_to_the_begin_of_another(run):
    assert run.flows
    for flow in run.flows:
        source, target = run.slices[flow.source], run.slices[flow.target]
        assert source.category not in ("unpack", "math")
        assert target.category not in ("math", "pack")
        assert source.end <= target.start


def test_the_table_of_lanes_counts_slices():
    drawn = pipeline()
    rows = re.findall(r"<tr>(.*?)</tr>", timeline_page(drawn), re.S)
    counts = {}
    for row in rows:
        cells = [re.sub("<.*?>", "", cell).strip() for cell in re.findall(r"<td.*?>(.*?)</td>", row, re.S)]
        if len(cells) == 5:
            counts[cells[1]] = int(cells[2])
    assert counts == {
        lane.name: sum(item.lane == number for item in drawn.slices) for number, lane in enumerate(drawn.lanes)
    }


# --------------------------------------------------------------------------------------------------------------- axes
def is_round(step):
    """Whether a number is 1, 2 or 5 times a power of ten."""
    return any(abs(step / 10 ** floor(log10(step) + 1e-9) - factor) < 1e-6 for factor in (1, 2, 5))


@pytest.mark.parametrize("seed", range(5))
def test_ticks_are_round_and_enclose_the_values(seed):
    draw = Random(seed)
    for _ in range(200):
        low = draw.choice((0.0, draw.uniform(-1, 1) * 10 ** draw.randint(-6, 9)))
        high = low + max(draw.uniform(0.001, 1) * 10 ** draw.randint(-3, 9), 1e-6 * abs(low))
        most = draw.randint(2, 10)
        ticks = round_ticks(low, high, most)
        steps = [after - before for before, after in pairwise(ticks)]
        assert 1 <= len(steps) <= most
        assert is_round(steps[0])
        assert max(steps) == pytest.approx(min(steps), rel=1e-6)
        noise = 1e-8 * steps[0]
        assert -noise <= low - ticks[0] < steps[0]
        assert -noise <= ticks[-1] - high < steps[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([338_645, 357_709], [335_000, 340_000, 345_000, 350_000, 355_000, 360_000]),
        ([50, 400], [0, 100, 200, 300, 400]),
        ([1.0, 1.0 + 1e-9], [0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2]),
        ([1.0, 1.0], [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        ([], [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
    ],
)
def test_an_axis_begins_at_0_unless_its_values_would_look_the_same(values, expected):
    assert value_ticks(values) == pytest.approx(expected)


@pytest.mark.parametrize(("value", "expected"), [(0.0, 0.0), (1.0, 1.0), (0.06, 0.1), (0.143, 0.2), (3, 5), (51, 100)])
def test_a_figure_is_rounded_up_to_1_2_or_5(value, expected):
    assert round_up(value) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "0"), (0.2, "0.2"), (400_000, "400,000"), (1e-8, "1e-8"), (2e9, "2e9"), (0.001, "0.001"), (5.0, "5")],
)
def test_ticks_are_written_without_noise(value, words):
    assert tick_text(value) == words


def test_a_short_logarithmic_axis_has_lines_at_2_and_5():
    assert LogAxis([0.02, 0.9], 0, 100).ticks == [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
    assert LogAxis([0.002, 0.9], 0, 100).ticks == [0.001, 0.01, 0.1, 1.0]


# ------------------------------------------------------------------------------------------------------------- charts
ROWS = [
    {"clock": clock, "grid": grid, "overall_inputs_per_second": value}
    for grid, values in (("8x8", (100.0, 200.0, 400.0)), ("4x4", (50.0, 100.0, None)))
    for clock, value in zip(("250", "500", "1000"), values, strict=True)
]


def test_a_sweep_is_drawn_to_scale():
    drawn = sweep_chart(ROWS, ("grid", "clock"), "t")
    assert_words_inside(drawn)
    words = {item.text: item for item in elements(drawn, "text")}
    at = {item.find("{*}title").text: attribute_numbers(item, "cx", "cy") for item in elements(drawn, "circle")}
    assert len(at) == 5  # what has no value is left out
    floor = max(y for _, y in (attribute_numbers(item, "x1", "y1") for item in elements(drawn, "line")))
    high = {name: floor - y for name, (_, y) in at.items()}
    most = high["grid=8x8 1000: 400 inputs per second"]
    assert most > 100
    for name, value in (("grid=8x8 250", 100), ("grid=8x8 500", 200), ("grid=4x4 250", 50)):
        assert high[f"{name}: {value} inputs per second"] == pytest.approx(most * value / 400, abs=0.02)
    for tick in ("250", "500", "1000"):  # below the lines, under their points
        x, y = attribute_numbers(words[tick], "x", "y")
        assert floor < y < floor + 30
        assert {where[0] for name, where in at.items() if f" {tick}:" in name} == {x}
    assert (
        attribute_numbers(words["250"], "x")
        < attribute_numbers(words["500"], "x")
        < attribute_numbers(words["1000"], "x")
    )


def tick_values(drawn):
    """Return the labels of the vertical axis of a sweep as numbers."""
    labels = [item.text for item in elements(drawn, "text") if item.get("text-anchor") == "end"]
    return [float(label.replace(",", "")) for label in labels]


@pytest.mark.parametrize("seed", range(3))
def test_a_sweep_has_round_ticks_around_all_of_its_values(seed):
    draw = Random(seed)
    for _ in range(20):
        size = 10 ** draw.uniform(-1, 6)
        rows = [
            {"clock": str(clock), "overall_inputs_per_second": size * draw.uniform(0.5, 1)} for clock in range(1, 6)
        ]
        drawn = sweep_chart(rows, ("clock",), "t")
        assert_words_inside(drawn)
        ticks = tick_values(drawn)
        assert is_round(ticks[1] - ticks[0])
        assert ticks[0] <= min(row["overall_inputs_per_second"] for row in rows)
        assert ticks[-1] >= max(row["overall_inputs_per_second"] for row in rows)


def test_a_sweep_draws_the_whole_run():
    """The pace of the slowest epoch may stay while the time of all does not."""
    rows = [
        {"noc_bytes": str(size), "inputs_per_second": 70_000.0, "overall_inputs_per_second": 30_000.0 - 100 * number}
        for number, size in enumerate((32, 16, 8, 4))
    ]
    drawn = sweep_chart(rows, ("noc_bytes",), "t")
    heights = [attribute_numbers(item, "cy")[0] for item in elements(drawn, "circle")]
    assert heights == sorted(heights)
    assert heights[-1] - heights[0] > 100  # not a flat line
    words = " ".join(item.text for item in elements(drawn, "text"))
    assert "inputs per second of the whole run" in words
    assert "axis does not begin at 0" in words
    assert_words_inside(drawn)


def test_a_line_that_another_one_covers_is_seen():
    rows = [
        {"board": board, "clock": clock, "overall_inputs_per_second": value}
        for board, values in (("n150", (1.0, 2.0)), ("n300", (1.0, 2.0)), ("p150", (3.0, 2.0)))
        for clock, value in zip(("500", "1000"), values, strict=True)
    ]
    drawn = sweep_chart(rows, ("board", "clock"), "t")
    assert [line.get("stroke-dasharray") is not None for line in elements(drawn, "polyline")] == [False, True, False]
    assert [item.text for item in elements(drawn, "text")][-2:] == ["board=n300 (as n150)", "board=p150"]
    dots = elements(drawn, "circle")
    assert [dot.get("fill") == "none" for dot in dots] == [False, False, True, True, False, True]
    seen = {(*attribute_numbers(dot, "cx", "cy"), *attribute_numbers(dot, "r")) for dot in dots}
    assert len(seen) == len(dots)  # no dot lies exactly on another
    assert_words_inside(drawn)


def test_labels_of_a_crowded_axis_do_not_touch():
    rows = [{"clock": str(clock), "overall_inputs_per_second": 1.0} for clock in range(1000, 1100)]
    spans = sorted(
        text_span(item)
        for item in elements(sweep_chart(rows, ("clock",), "t"), "text")
        if item.text.isdigit() and len(item.text) == 4
    )
    assert len(spans) > 5
    assert all(before[1] < after[0] for before, after in pairwise(spans))


def test_the_axis_of_a_sweep_is_logarithmic_only_where_it_spans_much():
    def gaps(*ticks):
        rows = [{"clock": tick, "overall_inputs_per_second": 1.0} for tick in ticks]
        a, b, c = (attribute_numbers(item, "cx")[0] for item in elements(sweep_chart(rows, ("clock",), "t"), "circle"))
        return (c - b) / (b - a)

    assert gaps("1", "2", "4") == pytest.approx(2, rel=0.01)
    assert gaps("1", "10", "100") == pytest.approx(1, rel=0.01)
    assert gaps("8x8", "2x2", "4x4") == pytest.approx(1, rel=0.01)  # as they come


def figures(name, math, kind="matmul"):
    return OpFigures(name, kind, 0, (0, 0), 1, 1, math, math, math, math, math, 50.0, (1.0,), 1.0, 0.0, 0.0, "fitted")


STREAM = 32.0
OPS = [figures("busy", 9_000.0), figures("starved", 400.0, "add"), figures("silent", 100.0), figures("idle", 0.0)]
CYCLES = [10_000.0, 500.0, 200.0, 100.0]
BYTES = {"busy": 30_000.0, "starved": 64_000.0, "idle": 100.0}


def test_a_roofline_is_drawn_to_scale():
    drawn = roofline_chart(OPS, CYCLES, BYTES, STREAM)
    assert_words_inside(drawn)
    dots = {item.get("data-name"): attribute_numbers(item, "cx", "cy") for item in elements(drawn, "circle")}
    assert set(dots) == {"starved", "busy"}  # the others take nothing in, or do not compute
    words = {item.text: attribute_numbers(item, "x", "y") for item in elements(drawn, "text")}
    decade = words["0.1"][0] - words["0.01"][0]
    assert dots["busy"][0] == pytest.approx(words["0.1"][0] + decade * log10(0.3 / 0.1), abs=0.02)
    assert dots["starved"][0] == pytest.approx(words["0.01"][0] + decade * log10(400 / 64_000 / 0.01), abs=0.02)
    up = words["10 %"][1] - words["100 %"][1]
    assert dots["busy"][1] == pytest.approx(words["100 %"][1] - 4 + up * log10(1 / 0.9), abs=0.02)
    assert dots["starved"][1] == pytest.approx(words["100 %"][1] - 4 + up * log10(2_000 / 400), abs=0.02)
    bottom = max(y for x, y in words.values())
    assert all(words[tick][1] < bottom and words[tick][1] > dots["starved"][1] for tick in ("0.01", "0.1"))
    assert words["0.1"][1] - words["10 %"][1] < 330
    for name, (x, y) in dots.items():  # their names stand beside them
        left, line = words[name]
        assert min(abs(left - x), abs(left + width_of(name, 11) - x)) <= 10.01
        assert abs(line - 4 - y) <= 45


def test_the_roof_ends_in_the_middle_of_the_math_unit_and_what_a_core_takes_in():
    """Its corner is where a core computes all the time on what just comes in."""
    drawn = roofline_chart(OPS, CYCLES, BYTES, STREAM)
    words = {item.text: attribute_numbers(item, "x", "y") for item in elements(drawn, "text")}
    (roof,) = [item.get("d") for item in elements(drawn, "path") if item.get("class") == "limit"]
    x, y = map(float, re.search(r"L([\d.]+) ([\d.]+)H", roof).groups())
    decade = words["0.1"][0] - words["0.01"][0]
    assert x == pytest.approx(words["0.01"][0] + decade * log10(1 / STREAM / 0.01), abs=0.02)
    assert y == pytest.approx(words["100 %"][1] - 4, abs=0.02)


def test_a_roofline_says_what_its_axes_are_and_names_places():
    """Ops at one place share a name, so that no two names lie on each other."""
    ops = [figures(f"op_{number}", 400.0) for number in range(5)]
    drawn = roofline_chart(ops, [500.0] * 5, dict.fromkeys((op.op for op in ops), 64_000.0), STREAM)
    words = [item.text for item in elements(drawn, "text")]
    assert "math cycles for each byte that a core takes in" in words
    assert "share of the time in which the math unit works" in words
    assert sum(text.startswith("op_") for text in words) == 1
    assert "op_4 and 4 more" in words
    assert len(elements(drawn, "circle")) == 5


def test_without_a_point_there_is_no_roofline():
    assert roofline_chart(OPS[2:], CYCLES[2:], BYTES, STREAM) == ""
