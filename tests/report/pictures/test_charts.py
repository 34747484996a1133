"""Charts are well-formed SVG that shows what the figures say."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from buda_emu.report.pictures.error_charts import heat_map, histogram, op_chart, op_heat
from buda_emu.testing.verify.result import OpResult, OutputDetail, TilePlace

KEPT = Path(__file__).with_name("charts.txt")


def svg(text):
    return ET.fromstring(text)


def classes(text):
    return [item.get("class") for item in svg(text).iter("rect")]


def output_detail(errors, cell=(1, 1), bins=((0.0, 4),)):
    return OutputDetail(np.array(errors, float), cell, tuple(bins))


def op(index, pcc, name="n"):
    return OpResult(
        index,
        f"{name}{index}",
        "nop",
        "g",
        "Float16_b",
        (1, 32, 32),
        1,
        ("a",),
        "ideal",
        pcc,
        0.1,
        0.01,
        1.0,
        0.5,
        0.0,
        0.0,
    )


def test_each_decade_below_the_largest_error_has_its_shade():
    drawn = classes(heat_map(output_detail([[1.0, 0.5, 0.1], [0.09, 0.0, 1e-12], [np.nan, 1e-3, 0.011]]), None))
    assert drawn[:9] == [
        "cell h7",
        "cell h7",
        "cell h6",
        "cell h6",
        "cell h0",
        "cell h1",
        "cell lost",
        "cell h4",
        "cell h6",
    ]


def test_errors_of_one_decade_are_told_apart_by_equal_steps():
    """Decades would give them all one shade; each cell has its shade by either scale."""
    drawn = heat_map(output_detail([[0.9, 0.95, 1.0], [0.0, np.inf, 0.91]]), None)
    assert classes(drawn)[:6] == ["cell h1", "cell h4", "cell h7", "cell h0", "cell lost", "cell h1"]
    cells = [item for item in svg(drawn).iter("rect") if item.get("data-log")]
    assert [(item.get("data-log"), item.get("data-linear")) for item in cells] == [
        ("7", "1"), ("7", "4"), ("7", "7"), ("0", "0"), ("7", "1"),
    ]  # fmt: skip
    assert "by-linear" in svg(drawn).get("class")
    assert "by-log" in svg(heat_map(output_detail([[0.09, 1.0]]), None)).get("class")


def test_equal_outputs_are_said_to_be():
    text = heat_map(output_detail([[0.0, 0.0]]), None)
    assert "every finite element is equal" in text
    assert set(classes(text)) == {"cell h0"}


def test_the_first_bad_tile_is_marked_and_cells_name_their_tiles():
    text = heat_map(output_detail([[1.0] * 3], cell=(1, 4)), TilePlace(0, 0, 0, 9))
    assert "tile [0, 8..11]" in text
    assert "marked" in classes(text)


def test_a_histogram_has_a_bar_for_each_bin():
    text = histogram(output_detail([[1.0]], bins=((0.0, 90), (0.1, 9), (1.0, 0), (10.0, 1))))
    widths = [float(item.get("width")) for item in svg(text).iter("rect")]
    assert widths == [*sorted(widths[:2], reverse=True), 0.0, pytest.approx(widths[0] / 90, abs=1)]
    words = " ".join(item.text for item in svg(text).iter("text"))
    for label in ("equal", "1e-1..1e0", "1e1..1e2", "90.00 %", "9.00 %"):
        assert label in words


def test_the_op_chart_marks_the_bad_one_and_the_threshold():
    ops = [op(0, 0.9999), op(1, 0.5), op(2, None)]
    text = op_chart(ops, 0.99, 1)
    assert classes(text) == ["bar", "bar worst"]
    assert "limit" in text
    assert "no PCC" in text
    assert "limit" not in op_chart(ops, 0.0, None)


def test_long_names_fit():
    for item in svg(op_chart([op(0, 0.5, "a_very_long_name_of_an_op_that_goes_on_and_on_")], 0.9, None)).iter("text"):
        assert len(item.text) < 40


def test_heat_grows_with_the_error():
    heat = op_heat([op(0, 1.0), op(1, 0.99999), op(2, 0.99), op(3, 0.5), op(4, None)])
    assert heat["n0"] == heat["n1"] == 0.0
    assert 0 < heat["n2"] < heat["n3"] == 1.0
    assert "n4" not in heat


def draw_charts() -> str:
    ops = [op(index, pcc) for index, pcc in enumerate((1.0, 0.999, 0.5, 1 - 1e-9, -0.5))]
    charts = [
        heat_map(output_detail(np.arange(60.0).reshape(5, 12) / 7), TilePlace(0, 0, 1, 2)),
        heat_map(output_detail(np.geomspace(1e-9, 10, 9 * 11).reshape(9, 11), (2, 3)), None),
        histogram(output_detail([[1.0]], bins=((0.0, 9), (1e-12, 0), (1e-3, 5), (10.0, 1)))),
        op_chart(ops, 0.99, 2),
    ]
    return "\n".join(charts).replace("><", ">\n<") + "\n"


def test_charts_equal_the_stored_ones() -> None:
    """`python tests/report/pictures/test_charts.py` writes them anew, after a change that is meant."""
    assert draw_charts() == KEPT.read_text(encoding="utf-8")


if __name__ == "__main__":
    KEPT.write_text(draw_charts(), encoding="utf-8")
