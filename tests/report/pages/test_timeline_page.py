"""The page of a run, as text and in a browser."""

import json
import re
from random import Random

import pytest

from buda_emu.performance.timeline.picture import Lane, Slice, TimelinePicture
from buda_emu.report.pages.timeline import timeline_page
from report.browsing import in_browser, layout_problems, open_page, opens_all, wait_until_drawn
from report.drawn import epochs, pipeline


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


def test_lanes_have_their_groups_and_sections():
    drawn = epochs()
    data = data_of(timeline_page(drawn))
    found = [tuple(data["words"][number] for number in lane) for lane in data["lanes"]]
    assert found == [(lane.name, lane.group, lane.section) for lane in drawn.lanes]
    assert all(lane.group.startswith(f"{lane.section}, ") for lane in drawn.lanes)


@pytest.mark.parametrize("part", ["tl-overview", "tl-fit", "tl-arrows", "tl-order", "tl-fold", "tl-unfold", "tl-only"])
def test_the_page_has_what_one_moves_with(part):
    assert f'class="{part}"' in timeline_page(pipeline())


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
            rows = page.evaluate("document.querySelector('.timeline').shown().rows")
            (top,) = [row["top"] for row in rows if row.get("lane") == "core 5"]
            page.mouse.move(box["x"] + label + (box["width"] - label) / 2, box["y"] + top + 9)
            said = page.inner_text(".tl-tip")
            assert said.startswith("tile 77 of layer 5\ncore 5\n")
            assert "waited for" in said


SHOWN = "document.querySelector('.timeline').shown()"


@pytest.fixture(scope="module")
def epochs_file(tmp_path_factory):
    """The page of three epochs."""
    file = tmp_path_factory.mktemp("epochs") / "trace.html"
    file.write_text(timeline_page(epochs()))
    return file


def heads(view):
    return {row["head"]: row["folded"] for row in view["rows"] if "head" in row}


@pytest.fixture(scope="module")
def opened(browser, epochs_file):
    """The page of three epochs in a browser."""
    with open_page(browser, epochs_file) as page:
        yield page


@pytest.fixture
def page(opened):
    """The same page as it is when it is opened."""
    opened.reload()
    wait_until_drawn(opened)
    return opened


WHEEL = """([x, y, delta, ticks]) => {
  const canvas = document.querySelector('.tl-canvas'), box = canvas.getBoundingClientRect();
  const place = {clientX: box.left + x, clientY: box.top + y};
  for (let i = 0; i < ticks; i++)
    canvas.dispatchEvent(new WheelEvent('wheel', {...place, deltaY: delta, ctrlKey: true, cancelable: true}));
}"""


def turn_wheel(page, x, y, delta, ticks):
    """Turn the wheel over a point of the lanes with Ctrl held, and wait for what it draws."""
    page.evaluate(WHEEL, [x, y, delta, ticks])
    wait_until_drawn(page)


class TestEpochsInABrowser:
    """What one does with a long run: fold, zoom, find."""

    pytestmark = in_browser

    def test_the_longest_epoch_is_open_and_its_busiest_lanes_are_first(self, page):
        view = page.evaluate(SHOWN)
        names = [f"run: epoch_{epoch} (chip 0)" for epoch in range(3)]
        assert heads(view) == {names[0]: True, names[1]: False, "cores": False, "transfers": True, names[2]: True}
        lanes = [row["lane"] for row in view["rows"] if "lane" in row]
        spans = {}
        for lane, slices in zip(view["lanes"], view["slices"], strict=True):
            for number, part in enumerate(slices):
                key = lane.rpartition(":")[0], number
                spans.setdefault(key, []).extend((part["start"], part["end"]))
        work = {}
        for (op, _), times in spans.items():
            work[op] = work.get(op, 0) + max(times) - min(times)
        order = [work[lane.rpartition(":")[0]] for lane in lanes]
        assert len(order) == 36
        assert order == sorted(order, reverse=True)
        for op in range(0, 36, 3):  # the threads of an op stay together
            assert [lane.rpartition(": ")[2] for lane in lanes[op : op + 3]] == ["unpack", "math", "pack"]
        page.select_option(".tl-order", "given")
        lanes = [row["lane"] for row in page.evaluate(SHOWN)["rows"] if "lane" in row]
        assert lanes == [lane for lane in view["lanes"] if lane in lanes]

    def test_a_click_folds_and_unfolds(self, page):
        box = page.locator(".tl-canvas").bounding_box()
        (top,) = [row["top"] for row in page.evaluate(SHOWN)["rows"] if row.get("head") == "cores"]
        page.mouse.click(box["x"] + 60, box["y"] + top + 8)
        assert heads(page.evaluate(SHOWN))["cores"]
        page.mouse.click(box["x"] + 60, box["y"] + top + 8)
        assert not heads(page.evaluate(SHOWN))["cores"]
        page.click(".tl-fold")
        assert list(heads(page.evaluate(SHOWN)).values()) == [True] * 3
        page.click(".tl-unfold")
        view = page.evaluate(SHOWN)
        assert not any(heads(view).values())
        assert sum("head" in row for row in view["rows"]) == 9
        assert sum("lane" in row for row in view["rows"]) == len(view["lanes"])

    def test_a_tick_of_the_wheel_zooms_a_little_and_around_the_pointer(self, page):
        for delta in (-100, -3000, 100, 3000):
            before = page.evaluate(SHOWN)
            turn_wheel(page, 800, 200, delta, 1)
            after = page.evaluate(SHOWN)
            factor = (before["to"] - before["from"]) / (after["to"] - after["from"])
            assert max(factor, 1 / factor) <= 1.2501
            if delta > 0:  # the whole of the run stops it
                continue
            assert factor > 1.1
            width = page.locator(".tl-canvas").bounding_box()["width"]
            share = (800 - 270) / (width - 270)
            for view in (before, after):
                view["pointer"] = view["from"] + share * (view["to"] - view["from"])
            assert after["pointer"] == pytest.approx(before["pointer"], rel=1e-3)

    @pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))])
    def test_no_zoom_loses_what_is_drawn(self, page, seed):
        draw = Random(seed)
        for _ in range(6):
            turn_wheel(page, draw.randint(280, 1300), draw.randint(30, 500), draw.choice((-120, -3000)), 40)
            view = page.evaluate(SHOWN)
            assert view["hasContent"]
            assert view["least"] * 0.999 <= view["to"] - view["from"] <= view["whole"] * 1.02
            if draw.random() < 0.5:
                page.focus(".tl-view")
                page.keyboard.press("f")
        turn_wheel(page, 700, 200, 3000, 120)  # and out again
        view = page.evaluate(SHOWN)
        assert view["to"] - view["from"] >= view["whole"]
        turn_wheel(page, 700, 200, -3000, 60)
        page.click(".tl-fit")
        view = page.evaluate(SHOWN)
        assert view["to"] - view["from"] == view["whole"]

    def test_the_overview_moves_the_window(self, page):
        turn_wheel(page, 700, 100, -100, 12)
        before = page.evaluate(SHOWN)
        box = page.locator(".tl-overview").bounding_box()
        page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + 10)
        wait_until_drawn(page)
        after = page.evaluate(SHOWN)
        assert after["to"] - after["from"] == pytest.approx(before["to"] - before["from"])
        assert (after["from"] + after["to"]) / 2 == pytest.approx(0.9 * after["whole"], rel=0.02)
        assert f"{round(after['from']):,}"[:4] in page.get_attribute(".tl-overview", "aria-label")

    def test_the_search_finds_lanes_first_and_unfolds_them(self, page):
        page.fill(".tl-search", "layer_2.conv2d.7")
        assert page.inner_text(".tl-found") == "4 lanes and 13 slices found"
        assert page.locator(".tl-lanes button").count() == 4
        page.press(".tl-search", "Enter")
        view = page.evaluate(SHOWN)
        name = view["lanes"][view["marked"]]
        assert page.inner_text(".tl-found") == f"lane 1 of 4: {name}"
        assert name == "layer_2.conv2d.7.dc.sparse_matmul: math"
        (top,) = [row["top"] for row in view["rows"] if row.get("lane") == name]
        assert 0 < top < page.locator(".tl-canvas").bounding_box()["height"]
        assert not heads(view)["run: epoch_2 (chip 0)"]
        page.press(".tl-search", "Shift+Enter")
        assert page.inner_text(".tl-found").startswith("13 of 13: layer_2.conv2d.7")
        page.check(".tl-only")
        lanes = [row["lane"] for row in page.evaluate(SHOWN)["rows"] if "lane" in row]
        assert lanes
        assert all("layer_2.conv2d.7" in lane for lane in lanes)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))])
class TestNamesInABrowser:
    """`shortNames`, which cuts the names of lanes and of boxes."""

    pytestmark = in_browser

    def test_names_that_differ_are_cut_to_texts_that_differ(self, page, seed):
        draw = Random(seed)
        words = ["conv2d", "dc", "sparse_matmul", "1", "3", "5", "lc2", "fork_clone", "layer", "buffer", "11"]
        for _ in range(20):
            stem = [draw.choice(words) for _ in range(draw.randint(3, 9))]
            names = set()
            while len(names) < 40:
                parts = [*stem, draw.choice("0123456789")]
                for _ in range(draw.randint(1, 3)):
                    parts[draw.randrange(len(parts))] = f"{draw.choice(words)}{draw.randint(0, 99)}"
                names.add(".".join(parts))
            most = draw.randint(12, 30)
            cut = page.evaluate(
                "([names, most]) => { const short = shortNames(names); return names.map(name => short(name, most)); }",
                [sorted(names), most],
            )
            assert max(map(len, cut)) <= most
            assert len(set(cut)) == len(names)
            for name, short in zip(sorted(names), cut, strict=True):
                assert all(part in name for part in short.split("…"))
