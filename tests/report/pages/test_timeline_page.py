"""The page of a run, as text and in a browser."""

import json
import re

import pytest

from buda_emu.performance.timeline.picture import Lane, Slice, TimelinePicture
from buda_emu.report.pages.timeline import timeline_page
from report.browsing import in_browser, layout_problems, open_page, opens_all
from report.drawn import pipeline


def data_of(page):
    return json.loads(re.search(r'class="tl-data">(.*?)</script>', page, re.S)[1])


def test_the_page_holds_the_picture():
    drawn = pipeline()
    data = data_of(timeline_page(drawn))
    words = data["words"]
    lane, start, length, name, category, detail = data["slices"]
    assert [words[number] for number in name] == [item.name for item in drawn.slices]
    assert [words[number] for number in category] == [item.category for item in drawn.slices]
    assert lane == [item.lane for item in drawn.slices]
    assert [a + b for a, b in zip(start, length, strict=True)] == [item.end for item in drawn.slices]
    assert words[detail[0]] == "bytes: 4,096\nlayer: conv_0"
    assert [(source, target) for source, target, _ in data["flows"]] == [flow[:2] for flow in drawn.flows]
    ((memory, size, tensors, peak),) = data["memories"]
    assert (words[memory], size) == ("L2", 262_144)
    assert sum(high - low for _, _, low, high, *_ in tensors) == sum(live.size for live in drawn.memories[0].lives)
    assert len(tensors) > len(drawn.memories[0].lives)  # a ring wraps
    assert peak == drawn.memories[0].peak > 0


def test_the_table_adds_up():
    drawn = pipeline()
    page = timeline_page(drawn)
    cells = re.findall(r'<td class="right" data-by="[^"]+">([\d,]{4,})</td>', page)
    busy = [int(text.replace(",", "")) for text in cells]
    assert busy == [sum(s.end - s.start for s in drawn.slices if s.lane == lane) for lane in range(4)]


def test_no_text_breaks_out():
    evil = '</script><script>alert(1)</script>"\x00<b>'
    page = timeline_page(
        TimelinePicture(evil, [Lane(evil, evil)], [Slice(0, 0, 1, evil, evil, {evil: evil})], notes=[evil]), evil
    )
    assert "<script>alert" not in page
    assert page.count("</script>") == 2
    assert evil in data_of(page)["words"]


def test_nothing_is_fetched():
    page = timeline_page(pipeline()).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"""(src|href)\s*=|@import|url\(|https?://""", page)


STATE = "document.querySelector('.tl-canvas').toDataURL()"


class TestInABrowser:
    pytestmark = in_browser

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("width", [1400, 390])
    def test_it_zooms_and_finds(self, browser, tmp_path, width, scheme):
        file = tmp_path / "page.html"
        file.write_text(timeline_page(pipeline(100, 300), "buda-emu ..."))  # 30,000 slices in 100 lanes
        with open_page(browser, file, width, scheme) as page:
            opens_all(page)
            assert layout_problems(page, width) == []
            page.wait_for_timeout(100)
            whole = page.evaluate(STATE)

            page.click(".tl-in")
            page.wait_for_timeout(100)
            assert page.evaluate(STATE) != whole
            page.click(".tl-fit")
            page.wait_for_timeout(100)
            assert page.evaluate(STATE) == whole

            page.fill(".tl-search", "tile 77 of layer 5")
            assert page.inner_text(".tl-found") == "11 found"  # layer 5 and layers 50 to 59
            page.press(".tl-search", "Enter")
            assert page.inner_text(".tl-found") == "1 of 11: tile 77 of layer 5"
            page.locator(".tl-canvas").scroll_into_view_if_needed()
            box = page.locator(".tl-canvas").bounding_box()
            label = min(270 if box["width"] > 1100 else 190, round(box["width"] * 0.28))
            page.wait_for_timeout(100)
            page.mouse.move(box["x"] + label + (box["width"] - label) / 2, box["y"] + box["height"] / 2 + 9)
            said = page.inner_text(".tl-tip")
            assert said.startswith("tile 77 of layer 5\ncore 5\n")
            assert "waited for" in said
