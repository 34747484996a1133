"""The floor plan as SVG: what `buda-emu graph` has no option for (tests/app/cli/verbs/test_graph.py has the rest)."""

from xml.etree import ElementTree

import pytest

import buda_emu as be
from buda_emu.performance.routing.streams.model import CoreUse, Place
from buda_emu.report.pictures import grid_svg as core_use
from buda_emu.report.pictures.grid_svg import FAMILIES, clean, fit_text, grid_svg, number, text, width_of
from example_netlists import DIRECTORY

SVG = "{http://www.w3.org/2000/svg}"
NETLIST = be.load(DIRECTORY / "two_chips.yaml")
OP = next(iter(NETLIST.ops))


def draw_grid(**more):
    return ElementTree.fromstring(grid_svg(NETLIST, **more))


def elements_of_class(root, name):
    return [element for element in root.iter() if element.get("class") == name]


def test_heat_reddens_ops_and_is_explained():
    root = draw_grid(heat={OP: 0.5})
    (red,) = elements_of_class(root, "bg-heat")
    assert 0.2 < float(red.get("fill-opacity")) < 0.25
    assert "red: the error of the op" in [element.text for element in root.iter(f"{SVG}text")]
    assert elements_of_class(draw_grid(), "bg-heat") == []
    assert "red: the error of the op" not in [element.text for element in draw_grid().iter(f"{SVG}text")]
    for value, opacity in ((7.0, "0.45"), (-1.0, "0")):
        assert elements_of_class(draw_grid(heat={OP: value}), "bg-heat")[0].get("fill-opacity") == opacity


def test_notes_stand_in_tooltips():
    titles = [element.text for element in draw_grid(notes={OP: "PCC <0.5>"}).iter(f"{SVG}title")]
    assert len([title for title in titles if title.endswith("\nPCC <0.5>")]) == 1


def test_marks_keep_pictures_of_one_page_apart():
    def ids(**more):
        return {element.get("id") for element in draw_grid(**more).iter(f"{SVG}g") if element.get("id")}

    assert len(ids()) == 2
    assert not ids(mark="-a") & ids(mark="-b")


def test_panels_do_not_overlap_and_lie_inside():
    root = draw_grid()
    places = []
    for group in root.findall(f"{SVG}g[@transform]"):
        x, y = map(float, group.get("transform").removeprefix("translate(").removesuffix(")").split())
        panel = group.find(f"{SVG}rect[@class='bg-panel']")
        places.append((x, y, x + float(panel.get("width")), y + float(panel.get("height"))))
    (a, b) = places
    assert a[2] <= b[0] or a[3] <= b[1]
    assert max(a[2], b[2]) <= float(root.get("width"))
    assert max(a[3], b[3]) <= float(root.get("height"))


def test_a_netlist_of_which_nothing_is_asked_is_still_a_picture():
    assert elements_of_class(draw_grid(epochs=[9]), "bg-panel") == []


def test_every_op_has_a_colour_that_the_legend_explains():
    words = [element.text for element in draw_grid().iter(f"{SVG}text")]
    assert all(label in words for label, _ in FAMILIES.values())
    assert len({colour for _, colour in FAMILIES.values()}) == len(FAMILIES)
    boxes = [box for box in elements_of_class(draw_grid(), "bg-box") if box.get("width") != "14"]
    assert len(boxes) == len(NETLIST.ops)
    assert {box.get("fill") for box in boxes} <= {colour for _, colour in FAMILIES.values()}


@pytest.mark.parametrize("name", ["short", "a_long_name_of_an_op_that_fits_nowhere", "日本語の名前がここにある", ""])
@pytest.mark.parametrize("width", [0, 5, 20, 60, 400])
def test_texts_fit_their_boxes(name, width):
    short = fit_text(name, width, 10)
    assert width_of(short, 10) <= width
    if width_of(name, 10) <= width:
        assert short == name
    elif len(short) > 3:
        head, tail = short.split("…")
        assert name.startswith(head)
        assert name.endswith(tail)


def test_escaping_and_numbers():
    assert clean('<a href="x">&\x00\x1b\ud800\uffff\n') == "&lt;a href=&quot;x&quot;&gt;&amp;????\n"
    assert [number(value) for value in (1.0, 0.5, 1 / 3, 100.0, 0.0)] == ["1", "0.5", "0.33", "100", "0"]
    assert text(1, 2, "", 10) == ""
    assert text(1, 2, "a<b", 10, "c") == '<text x="1" y="2" font-size="10" text-anchor="start" class="c">a&lt;b</text>'


def test_bars_of_a_core_are_red_from_nine_tenths_on():
    def bars(extra, l1):
        use = CoreUse(
            Place(0, 1, 2),
            ("a",),
            (),
            extra,
            0,
            1,
            1,
            tile_header_bytes=0,
            stream_bytes=l1,
            fallback_bytes=0,
            blob_bytes=0,
            available_bytes=1000,
        )
        root = ElementTree.fromstring(core_use.draw_use(use, "wormhole_b0", 0, 0, 120))
        rects = [element for element in root.iter("rect") if element.get("class") != "bg-track"]
        return [(element.get("class"), float(element.get("width"))) for element in rects]

    assert bars(12, 899) == [("bg-used", 60.0), ("bg-used", 107.88)]
    assert bars(22, 900) == [("bg-full", 110.0), ("bg-full", 108.0)]
    assert bars(30, 2000) == [("bg-full", 120.0), ("bg-full", 120.0)]
