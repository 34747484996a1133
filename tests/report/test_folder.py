"""`--report DIR`."""

import json
import re

import pytest

from buda_emu.report import test_report as folder
from buda_emu.report import test_report as testing
from buda_emu.report.machine_readable.json_form import as_json
from buda_emu.report.test_report import write_report
from buda_emu.support.errors import HostError
from report.results import ODD_NAME, finished_run
from report.unpacked import unpack_page


@pytest.fixture(scope="module")
def report(tmp_path_factory, root):
    """A written report."""
    directory = tmp_path_factory.mktemp("report") / "new" / "folder"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)  # where the netlists' names lead
        write_report(finished_run(), directory)
    return directory


def test_write_report_makes_three_files(report):
    assert sorted(path.name for path in report.iterdir()) == ["report.html", "report.json", "report.md"]
    assert json.loads((report / "report.json").read_text()) == json.loads(json.dumps(as_json(finished_run())))


def test_the_page_needs_nothing_else(report):
    page = unpack_page(report / "report.html")
    for outside in ("http://", "https://", "src=", "@import", "url(h", "<link"):
        assert outside not in page.replace("http://www.w3.org/2000/svg", "").replace("data-place", "")


def test_names_are_escaped(report):
    page = unpack_page(report / "report.html")
    assert ODD_NAME not in page
    assert "odd &lt;b&gt;&amp;&#34;name&#34; | `x`.yaml" in page


def test_it_shows_the_ops_on_the_grid_and_says_why_where_it_cannot(report):
    page = unpack_page(report / "report.html")
    assert "epoch 0, chip 1" in page  # two_chips
    assert "no picture: " in page  # lossy.yaml was tested by content and is not a file


def test_ids_are_unique(report):
    ids = re.findall(r' id="([^"]+)"', unpack_page(report / "report.html"))
    assert len(ids) == len(set(ids)) > 6


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match="report: cannot write"):
        write_report(finished_run(), tmp_path / "file" / "report")


def test_big_runs_have_details_of_what_did_not_pass_first(monkeypatch, tmp_path):
    size = len(testing.pack_part(testing._case_part(finished_run().cases[2], None, 0.99)))
    monkeypatch.setattr(testing, "MOST_BYTES", 1.5 * size)
    write_report(finished_run(), tmp_path)
    page = unpack_page(tmp_path / "report.html")
    left = re.search(r"(\d) netlists without details here", page)
    assert left is not None
    assert page.count('<details class="case"') == 6 - int(left[1]) > 0
    assert "How to run it again" in page
    assert "buda-emu test lossy.yaml" in page


def test_markdown_has_details_of_the_worst(monkeypatch, tmp_path):
    monkeypatch.setattr(folder, "MOST_DETAILED", 2)
    write_report(finished_run(), tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert re.findall("^## (.*):", text, re.M) == ["`lossy.yaml`", "`crashed.yaml`"]


@pytest.mark.parametrize(
    ("paths", "prefix"),
    [
        (["a/b/c.yaml", "a/b/d.yaml", "a/be.yaml"], "a/"), (["a/b/c.yaml", "a/b/d.yaml"], "a/b/"), (["a/b.yaml"], ""),
        (["ab/c", "ac/c"], ""), (["/x/y", "/x/y"], "/x/"), ([], ""),
    ],
)  # fmt: skip
def test_the_folder_that_all_names_begin_with(paths, prefix):
    assert testing.common_prefix(paths) == prefix


def test_pictures_of_big_netlists_show_the_epoch_of_the_bad_op(monkeypatch, root):
    monkeypatch.setattr(folder, "MOST_PANELS", 1)
    monkeypatch.chdir(root)
    monkeypatch.setattr("buda_emu.report.test_report.grid_svg", lambda _netlist, **kwargs: str(kwargs["epochs"]))
    found = folder._draw_netlist(finished_run().cases[0], "")
    assert found.svg == "[0]"
    assert found.note.startswith("The first epochs, this part of 2 graphs; the whole: buda-emu graph netlists/")
