"""Reports in a real browser: no error, nothing too wide or hard to read, and what people do with them."""

import os
import re
from collections import Counter
from dataclasses import replace
from urllib.parse import unquote

import pytest

import buda_emu as be
from buda_emu.performance.timing.epoch.critical import critical_steps
from buda_emu.performance.timing.epoch.pipeline import extend_until_full, steady
from buda_emu.report.pages.coverage import coverage_page
from buda_emu.report.pages.faults import faults_page
from buda_emu.report.pages.perf import perf_page
from buda_emu.report.test_report import Picture, html_page, write_report
from buda_emu.testing.coverage.features import features
from buda_emu.testing.coverage.report import Coverage, every_list
from report.browsing import in_browser, layout_problems, open_page, opens_all, wait_until_drawn
from report.results import finished_run
from shared_files import corpus_files

pytestmark = in_browser
SIZES = [(390, "dark"), (1400, "light")]
OTHERS = [(390, "light"), (1400, "dark"), (2600, "light"), (2600, "dark")]
seen = pytest.mark.parametrize(
    ("width", "scheme"), [*SIZES, *(pytest.param(*size, marks=pytest.mark.slow) for size in OTHERS)]
)
FEWER = corpus_files("netlists/**/resnet50.yaml")
BIG = [
    *FEWER, *corpus_files("netlists/**/netlist_bert_base.yaml"), *corpus_files("netlists/**/t5_wormhole_b0.yaml"),
]  # fmt: skip
SOME_BIG = pytest.mark.parametrize(
    "path",
    [*FEWER, *(pytest.param(*item.values, marks=[pytest.mark.slow, *item.marks], id=item.id) for item in BIG[1:])],
)
INTERACTIVE = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory, root):
    """A report with netlists of every fate."""
    directory = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        write_report(finished_run(), directory)
    return directory / "report.html"


@pytest.fixture(scope="module")
def perf(root):
    """Three ops, two epochs' worth of tables and a hypothetical clock."""
    return be.perf(root / "netlists/attention.yaml", what_if={"clock": 500})


@pytest.fixture(scope="module")
def perf_file(tmp_path_factory, perf):
    """The page of modelled cycles."""
    file = tmp_path_factory.mktemp("perf") / "perf.html"
    file.write_text(perf_page(perf.netlist, perf.run, perf.checks, "buda-emu perf netlists/attention.yaml"))
    return file


@seen
def test_a_report_of_a_test_is_fine(browser, page_file, width, scheme):
    with open_page(browser, page_file, width, scheme) as page:
        assert page.title() == "buda-emu test: 2 passed, 1 failed, 1 rejected, 1 stopped, 1 crashed"
        opens_all(page)
        assert layout_problems(page, width) == []
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(18, 21, 26)") == (scheme == "dark")


@seen
def test_a_report_of_cycles_is_fine(browser, perf_file, width, scheme):
    with open_page(browser, perf_file, width, scheme) as page:
        opens_all(page)
        assert layout_problems(page, width) == []
        page.click(".grid-view .bg-op >> nth=1")
        wait_until_drawn(page)
        assert layout_problems(page, width) == []  # what is dimmed, too


# Lines of the tallest cell: as many as those of its row, unless a narrow screen stacks the cells of a row.
TALLEST = """[...document.querySelectorAll('tbody td')].reduce((most, cell) =>
  Math.max(most, cell.getBoundingClientRect().height / parseFloat(getComputedStyle(cell).lineHeight)), 0)"""


@pytest.fixture(scope="module")
def long_names_file(tmp_path_factory, root):
    """The page of a netlist whose ops have names as long as front ends make them, one as long as YAML lets it be."""
    text = (root / "netlists/attention.yaml").read_text()
    for number, op in enumerate(be.load(root / "netlists/attention.yaml").ops):
        more = "_of_encoder_layer_11_self_attention_output_dense_matmul_fork_clone"
        more += "_and_on" * (120 if number == 2 else 0)
        text = re.sub(rf"\b{op}\b", op + more, text)
    folder = tmp_path_factory.mktemp("long")
    (folder / "long.yaml").write_text(text)
    found = be.perf(folder / "long.yaml")
    (folder / "perf.html").write_text(perf_page(found.netlist, found.run, found.checks, ""))
    return folder / "perf.html"


@pytest.mark.parametrize("width", [390, 1280, 1440])
def test_rows_of_long_names_are_a_few_lines_tall(browser, long_names_file, width):
    with open_page(browser, long_names_file, width) as page:
        opens_all(page)
        assert 1 < page.evaluate(TALLEST) <= 7
        assert layout_problems(page, width) == []
        row = page.locator(".ops tbody tr[data-name*='and_on_and_on']").first
        assert len(row.locator("td").first.inner_text()) < 100
        assert len(row.locator("td").first.get_attribute("title")) > 800
        page.fill(".ops input", "and_on_" * 100)  # what is cut is found all the same
        assert row.is_visible()


@pytest.mark.parametrize("width", [1280, 1440])
@SOME_BIG
def test_rows_of_big_netlists_are_a_few_lines_tall(browser, big_pages, path, width):
    _, file = big_pages(path)
    with open_page(browser, file, width) as page:
        opens_all(page)
        assert page.evaluate(TALLEST) <= 6


def test_sources_of_cycles_are_letters_with_a_legend(browser, perf_file, perf):
    with open_page(browser, perf_file) as page:
        opens_all(page)
        kinds = {row["provenance"] for row in perf.op_rows}
        legends = " ".join(page.locator(".ops p.soft").all_inner_texts())
        assert all(kind in legends for kind in kinds)
        cells = page.locator(".ops tbody td:nth-last-child(2)").all_inner_texts()  # before the flags
        assert cells
        assert all(re.fullmatch(r"[a-z]\d*", text) for text in cells)


def count_visible_rows(page, table):
    return page.locator(f"{table} tbody tr:not([hidden])").count()


def test_verdicts_are_filtered_sorted_and_searched(browser, page_file):
    with open_page(browser, page_file) as page:
        verdicts = page.locator(".verdicts tbody td:nth-child(2)").all_inner_texts()
        assert verdicts[-2:] == ["passed", "passed"]
        page.select_option(".verdicts select", "failed")
        assert count_visible_rows(page, ".verdicts") == 1
        assert "lossy.yaml" in page.inner_text(".verdicts tbody tr:not([hidden])")
        page.select_option(".verdicts select", "")
        page.fill(".verdicts input", "two_ch")
        assert count_visible_rows(page, ".verdicts") == 1
        page.fill(".verdicts input", "")
        page.click(".verdicts th >> nth=4")  # seconds, the longest first
        seconds = [float(text) for text in page.locator(".verdicts tbody td:nth-child(5)").all_inner_texts()]
        assert seconds == sorted(seconds, reverse=True)
        assert page.get_attribute(".verdicts th >> nth=4", "aria-sort") == "descending"
        page.click(".verdicts th >> nth=4")
        seconds = [float(text) for text in page.locator(".verdicts tbody td:nth-child(5)").all_inner_texts()]
        assert seconds == sorted(seconds)


def test_verdicts_lead_to_their_details(browser, page_file):
    with open_page(browser, page_file) as page:
        links = page.locator(".verdicts a")
        assert links.count() == 6
        for link in links.all():
            link.click()
            wait_until_drawn(page)
            part = page.locator("id=" + link.get_attribute("href")[1:])
            assert part.get_attribute("open") is not None
            assert link.inner_text() in part.locator("summary").first.inner_text()
            assert "How to run it again" in part.inner_text()


def test_a_click_shows_who_feeds_whom(browser, perf_file, perf):
    netlist = perf.netlist
    op = next(op for op in netlist.ops.values() if any(op.name in other.inputs for other in netlist.ops.values()))
    feeds = {other.name for other in netlist.ops.values() if op.name in other.inputs}
    feeds |= {queue.name for queue in netlist.queues.values() if queue.input == op.name}
    with open_page(browser, perf_file) as page:
        page.click(f".grid-view [data-name='{op.name}']")
        wait_until_drawn(page)
        near = page.locator(".grid-view .near").evaluate_all("items => items.map(item => item.dataset.name)")
        assert set(near) == {*op.inputs, *feeds}
        assert page.locator(".grid-view .here").get_attribute("data-name") == op.name
        edges = page.locator(".grid-view .bg-edge.from, .grid-view .bg-edge.to")
        assert edges.count() == len(set(op.inputs)) + len(feeds)
        said = page.inner_text("aside")
        assert all(name in said for name in [op.name, *op.inputs, *feeds])
        assert f"{netlist.path}:{op.at().line}" in said  # the line of the netlist, and what it says
        assert f"type: {op.type}" in said
        assert page.locator(".ops tr.here").get_attribute("data-name") == op.name
        assert page.locator(".yaml .here").get_attribute("data-name") == op.name
        page.click(f"aside button:text-is('{sorted(feeds)[0]}')")  # one goes on from there
        assert page.locator(".grid-view .here").get_attribute("data-name") == sorted(feeds)[0]
        page.keyboard.press("Escape")
        assert page.locator(".grid-view .here, aside:visible").count() == 0


def test_pages_work_by_keyboard_alone(browser, perf_file):
    with open_page(browser, perf_file) as page:
        page.focus(".ops tr[data-name]")
        page.keyboard.press("ArrowDown")
        name = page.evaluate("document.activeElement.dataset.name")
        page.keyboard.press("Enter")
        wait_until_drawn(page)
        assert page.locator(".grid-view .here").get_attribute("data-name") == name
        page.focus(".grid-view")
        before = page.get_attribute(".grid-view svg", "viewBox")
        for key in ("+", "ArrowRight"):
            page.keyboard.press(key)
            wait_until_drawn(page)
            assert page.get_attribute(".grid-view svg", "viewBox") != before
            before = page.get_attribute(".grid-view svg", "viewBox")
        page.focus(".ops th button")
        page.keyboard.press("Enter")
        assert page.get_attribute(".ops th", "aria-sort") == "ascending"


def test_names_of_ops_leave_room_for_what_their_cores_take(browser, perf_file):
    with open_page(browser, perf_file) as page:
        for zoom in ("all", "+", "+"):
            page.click(f".grid-view button:text-is('{zoom}')")
            wait_until_drawn(page)
            ends = page.evaluate(_LOWEST_WORDS)
            assert ends
            assert all(words <= use for words, use in ends)


_LOWEST_WORDS = """() => [...document.querySelectorAll('.grid-view .bg-use')].flatMap(use => {
  const top = use.querySelector('text').getBoundingClientRect().top + 3, left = use.getBoundingClientRect().left;
  return [...document.querySelectorAll('.grid-view .bg-op')].flatMap(op => {
    const box = op.querySelector('rect').getBoundingClientRect(), first = box.top > top - box.height;
    const words = op.querySelector('text').getBoundingClientRect();
    return first && box.left < left && left < box.right && box.top < top && words.height ? [[words.bottom, top]] : [];
  });
})"""


def test_a_timeline_chooses_too(browser, perf_file):
    with open_page(browser, perf_file) as page:
        view = page.evaluate("document.querySelector('.timeline').shown()")
        page.locator(".tl-canvas").scroll_into_view_if_needed()
        box = page.locator(".tl-canvas").bounding_box()
        page.mouse.click(box["x"] + 20, box["y"] + 26 + 9)  # the name of the first lane
        wait_until_drawn(page)
        assert page.locator(".grid-view .here").get_attribute("data-name") in re.split(" > |: ", view["lanes"][0])


def test_the_critical_path_is_drawn(browser, perf_file, perf):
    epoch = max(perf.epochs, key=lambda item: item.cycles * item.runs)
    steps = critical_steps(epoch.timing)
    links = {name for step in steps if step.share >= 0.005 for name in (step.through or [step.name])}
    with open_page(browser, perf_file) as page:
        framed = page.locator(".grid-view .bg-op.bg-path").evaluate_all("items => items.map(item => item.dataset.name)")
        assert set(framed) == links & set(perf.netlist.ops)
        view = page.evaluate("document.querySelector('.timeline').shown()")
        assert any(item["chain"] for lane in view["slices"] for item in lane)
        shares = page.locator("tbody >> nth=1").locator("td:first-child").all_inner_texts()
        assert sum(float(text.split()[0]) for text in shares) == pytest.approx(100, abs=0.01 * len(shares))
        assert "Its cycles are, link by link: " in page.inner_text("main")


IN_VIEW = """name => [...document.querySelectorAll('section .table')].slice(0, 1).flatMap(table => {
  const at = [...table.querySelectorAll('th')].findIndex(head => head.textContent === name);
  return [...table.querySelectorAll('tbody tr')].map(row => {
    const box = row.cells[at].getBoundingClientRect();
    return box.width > 0 && box.left >= 0 && box.right <= innerWidth ? row.cells[at].textContent : '';
  });
})"""


@pytest.mark.parametrize("width", [390, 1280])
def test_the_share_of_each_epoch_and_its_bottleneck_are_seen(browser, plain_perf_file, width):
    """At any width, without scrolling to the side."""
    modelled, file = plain_perf_file
    with open_page(browser, file, width) as page:
        epochs = sorted(modelled.epochs, key=lambda epoch: -epoch.cycles * epoch.runs)
        assert len(page.evaluate(IN_VIEW, "share")) == len(epochs)
        assert all(text.endswith(" %") for text in page.evaluate(IN_VIEW, "share"))
        assert page.evaluate(IN_VIEW, "kind") == [epoch.bottleneck.kind for epoch in epochs]
        for epoch, text in zip(epochs, page.evaluate(IN_VIEW, "held back by"), strict=True):
            assert epoch.bottleneck.name in text


@pytest.fixture(scope="module")
def plain_perf_file(tmp_path_factory, root):
    """A netlist of two epochs, modelled, and its page."""
    modelled = be.perf(root / "netlists/attention.yaml")
    file = tmp_path_factory.mktemp("plain") / "perf.html"
    file.write_text(perf_page(modelled.netlist, modelled.run, modelled.checks, "buda-emu perf"))
    return modelled, file


NARROW_TABLES = """() => [...document.querySelectorAll('.table')].filter(box => box.clientWidth).flatMap(box => {
  const table = box.querySelector('table').getBoundingClientRect(), frame = box.querySelector('.wide');
  return table.width < frame.clientWidth - 2 ? [box.textContent.slice(0, 60)] : [];
})"""


@pytest.mark.parametrize("width", [1280, pytest.param(1920, marks=pytest.mark.slow)])
def test_tables_use_the_width(browser, plain_perf_file, width):
    with open_page(browser, plain_perf_file[1], width) as page:
        opens_all(page)
        assert page.evaluate(NARROW_TABLES) == []


BOXES = """() => {
  const frame = document.querySelector('.grid-svg').getBoundingClientRect();
  return [...document.querySelectorAll('.grid-view .bg-queue')].map(group => {
    const box = group.querySelector('rect').getBoundingClientRect();
    const text = [...group.querySelectorAll('tspan:not(.more)')].map(span => span.textContent).join('');
    return {name: group.dataset.name, cut: box.left < frame.left - 1 && box.right > frame.left + 1, text};
  });
}"""
OPACITIES = """selector => [...document.querySelectorAll(`.grid-view g[id^=bg-edges] > ${selector}`)]
  .map(edge => parseFloat(getComputedStyle(edge).opacity))"""
FILLS = """() => [...document.querySelectorAll('.grid-view .bg-op')].map(group => {
  const [box, heat] = ['.bg-box', '.bg-heat'].map(part => getComputedStyle(group.querySelector(part)));
  return [parseFloat(box.fillOpacity), heat.display];
})"""


def test_the_core_grid_has_one_scale_and_arrows_of_what_is_pointed_at(browser, plain_perf_file):
    modelled, file = plain_perf_file
    with open_page(browser, file, 1280) as page:
        legend = page.inner_text(".grid-legend")
        assert "busy: 0 %" in legend
        assert "100 % of the time between two inputs" in legend
        assert page.locator(".grid-legend i.heat").count() == 5
        assert {tuple(pair) for pair in page.evaluate(FILLS)} == {(0, "inline")}  # heat alone, no mixture
        page.select_option(".grid-colour", "type")
        assert {tuple(pair) for pair in page.evaluate(FILLS)} == {(0.16, "none")}
        assert "busy" not in page.inner_text(".grid-legend")
        page.select_option(".grid-colour", "heat")
        boxes = page.evaluate(BOXES)
        assert boxes
        assert not any(box["cut"] for box in boxes)
        assert set(page.evaluate(OPACITIES, ".bg-edge:not(.bg-path)")) == {0}
        op = next(op for op in modelled.epochs[0].timing.ops if len(modelled.netlist.ops[op.op].inputs) > 1).op
        page.hover(f".grid-view .bg-op[data-name='{op}']")
        wait_until_drawn(page)
        lit = page.locator(".grid-view g[id^=bg-edges] > .lit")
        ends = lit.evaluate_all("edges => edges.map(edge => [edge.dataset.from, edge.dataset.to])")
        assert {source for source, target in ends if target == op} == set(modelled.netlist.ops[op].inputs)
        assert all(op in pair for pair in ends)
        assert set(page.evaluate(OPACITIES, ".lit")) == {1}
        page.check(".grid-edges")
        assert min(page.evaluate(OPACITIES, ".bg-edge")) > 0.3


def test_a_point_of_the_roofline_leads_to_its_op(browser, plain_perf_file):
    with open_page(browser, plain_perf_file[1], 1280) as page:
        dots = page.locator("svg.roofline .dot")
        assert "math cycles for each byte" in page.locator("svg.roofline text.axis >> nth=0").text_content()
        assert "cycles" in dots.last.locator("title").text_content()
        dots.last.scroll_into_view_if_needed()
        dots.last.click(force=True)
        wait_until_drawn(page)
        row = page.locator(".ops tr.here")
        assert row.get_attribute("data-name") == dots.last.get_attribute("data-name")
        assert row.evaluate(
            "row => { const box = row.getBoundingClientRect(); return box.top >= 0 && box.top < innerHeight; }"
        )


def test_shades_of_errors_are_of_two_scales(browser, page_file):
    with open_page(browser, page_file) as page:
        opens_all(page)
        figure = page.locator("figure.map:has(.cell[data-log] ~ .cell[data-log] ~ .cell[data-log])").first
        figure.scroll_into_view_if_needed()
        cells = figure.locator(".cell[data-log]")
        for scale in ("linear", "log"):
            figure.locator("select").select_option(scale)
            shades = cells.evaluate_all(
                "cells => cells.map(cell => [cell.getAttribute('class'), cell.dataset.log, cell.dataset.linear])"
            )
            assert [shade for shade, *_ in shades] == [
                f"cell h{(log, linear)[scale == 'linear']}" for _, log, linear in shades
            ]
        assert len(cells.all()) > 1
        cells.last.hover()
        assert figure.locator("[role=status]").inner_text() == cells.last.locator("title").text_content()


@pytest.fixture(scope="module")
def coverage_file(tmp_path_factory, root):
    """The page of what two netlists exercise."""
    file = tmp_path_factory.mktemp("coverage") / "coverage.html"
    coverage = Coverage()
    for name in ("matmul.yaml", "softmax.yaml"):
        netlist = root / "netlists" / name
        coverage.count(features(be.load(netlist)), os.path.relpath(netlist, file.parent))
    file.write_text(coverage_page(coverage, "coverage.json"))
    return file


@seen
def test_a_page_of_coverage_is_fine(browser, coverage_file, width, scheme):
    with open_page(browser, coverage_file, width, scheme) as page:
        assert layout_problems(page, width) == []
        squares = page.locator(".strip div a")
        assert squares.count() == sum(map(len, every_list().values()))
        exercised = page.locator(".strip div a:has(i:not(.heat0))").first
        exercised.click()
        row = page.locator(f"id={exercised.get_attribute('href')[1:]}")
        name, _, said = exercised.get_attribute("title").partition(": ")
        assert name in row.inner_text()
        link = row.locator("a").last.get_attribute("href")
        assert unquote(link) == said.partition("such as ")[2]
        assert (coverage_file.parent / unquote(link)).exists()
        assert row.evaluate("row => row.getBoundingClientRect().top < innerHeight")


@pytest.fixture(scope="module")
def faults_file(tmp_path_factory, root):
    """The page of a small campaign."""
    path = root / "netlists/attention.yaml"
    file = tmp_path_factory.mktemp("faults") / "report.html"
    file.write_text(faults_page(be.faults(path, 60), be.load(path)))
    return file


@seen
def test_a_page_of_faults_is_fine(browser, faults_file, width, scheme):
    with open_page(browser, faults_file, width, scheme) as page:
        assert layout_problems(page, width) == []
        legend = page.locator(".outcomes dt").all_inner_texts()
        colours = page.locator(".outcomes dt i").evaluate_all("items => items.map(item => item.getAttribute('style'))")
        bars = page.locator(".columns svg rect").evaluate_all("bars => bars.map(bar => bar.getAttribute('fill'))")
        assert len(legend) == len(colours) >= 2
        assert {f"background:{fill}" for fill in bars} <= set(colours)
        scale = page.inner_text(".grid-legend")
        assert re.search(r"fail: 0 %\s+[125]0?(\.00)? %|fail: 0 %\s+100 %", scale)
        for chart in page.locator(".columns svg").all():  # none is cut
            assert chart.bounding_box()["width"] <= width


@pytest.mark.slow
def test_tables_of_a_notebook_do_not_overflow(browser, tmp_path, root):
    explained = be.numerics(root / "netlists/two_chips.yaml", threads=1)
    (tmp_path / "cell.html").write_text(f'<div style="width:600px">{explained._repr_html_()}</div>')
    with open_page(browser, tmp_path / "cell.html", 640) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 640
        assert page.evaluate("document.querySelector('table').scrollWidth") > 640  # it scrolls in its frame


def test_hypothetical_figures_are_said_to_be(browser, perf_file):
    with open_page(browser, perf_file) as page:
        said = page.inner_text("main")
        assert "Hypothetical: clock 500" in said
        assert said.count("(hypothetical: clock 500)") >= 2


def test_three_hundred_netlists(browser, tmp_path, root):
    """Under 5 MB, and interactive within a second."""
    run = finished_run()
    cases = [replace(case, netlist=f"netlists/{i}/{case.netlist}") for i in range(50) for case in run.cases]
    svg = (root / "docs/pictures/two_chips.svg").read_text()
    file = tmp_path / "report.html"
    file.write_text(html_page(replace(run, cases=tuple(cases)), {case.netlist: Picture(svg) for case in cases[:40]}))
    assert file.stat().st_size < 5e6
    times: list[float] = []
    for _ in range(3):  # other work may go on
        with open_page(browser, file) as page:
            times.append(page.evaluate(INTERACTIVE))
            page.fill(".verdicts input", "17/lossy")
            assert count_visible_rows(page, ".verdicts") == 1
    assert min(times) < 1000
    counts = Counter(case.status for case in cases)
    assert len(cases) == 300
    assert f"{counts['passed']} passed" in file.read_text()


@pytest.fixture(scope="module")
def big_pages(tmp_path_factory):
    """The pages of big netlists, once each."""
    made = {}

    def page_of(path):
        if path not in made:
            found = be.perf(path)
            file = tmp_path_factory.mktemp(path.stem) / "perf.html"
            file.write_text(perf_page(found.netlist, found.run, found.checks, "buda-emu perf"))
            made[path] = found, file
        return made[path]

    return page_of


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [*SIZES, *OTHERS])
@pytest.mark.parametrize("path", BIG)
def test_big_netlists_are_fine(browser, big_pages, path, width, scheme):
    _, file = big_pages(path)
    with open_page(browser, file, width, scheme) as page:
        assert layout_problems(page, width) == []


@SOME_BIG
def test_big_netlists(browser, big_pages, path):
    found, file = big_pages(path)
    assert file.stat().st_size < 5e6
    with open_page(browser, file) as page:
        assert page.evaluate(INTERACTIVE) < 3000  # a second on a machine that does nothing else
        opens_all(page)
        views = page.evaluate("[...document.querySelectorAll('.timeline')].map(item => item.shown())")
        order = sorted(found.epochs, key=lambda epoch: -epoch.cycles * epoch.runs)
        assert len(views) == len(order)
        for epoch, view in zip(order, views, strict=True):
            stretch = steady(extend_until_full(epoch.timing, epoch.bottleneck.name), epoch.bottleneck.name)
            parts = next(op.parts for op in epoch.timing.ops if op.op == stretch.op)
            own = view["slices"][view["lanes"].index(stretch.op)]
            whole = Counter(item["name"] for item in own if view["from"] <= item["start"] and item["end"] <= view["to"])
            full = sum(count == parts for count in whole.values())
            assert full >= min(3, epoch.timing.inputs)
            if epoch.bottleneck.name:
                known = epoch.bottleneck.kind not in ("link", "buffers")
                assert view["lanes"][0].startswith(epoch.bottleneck.name) or not known
        op = found.epochs[-1].timing.ops[-1].op
        page.fill(".finder input", op)
        page.click(f".found button:has-text('{op}') >> nth=0")
        wait_until_drawn(page)
        assert page.locator(".grid-view .here").get_attribute("data-name") == op
        assert page.is_visible(".grid-view .here")
