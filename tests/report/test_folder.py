"""`--report DIR`."""

import json

import pytest

from buda_emu.errors import HostError
from buda_emu.report import folder
from buda_emu.report.folder import write_report
from buda_emu.report.json_form import as_json
from report.results import ODD_NAME, finished_run


@pytest.fixture(scope="module")
def report(tmp_path_factory, root):
    """A written report."""
    directory = tmp_path_factory.mktemp("report") / "new" / "folder"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)  # where the netlists' names lead
        write_report(finished_run(), directory)
    return directory


def test_three_files(report):
    assert sorted(path.name for path in report.iterdir()) == ["report.html", "report.json", "report.md"]
    assert json.loads((report / "report.json").read_text()) == json.loads(json.dumps(as_json(finished_run())))


def test_the_page_needs_nothing_else(report):
    page = (report / "report.html").read_text()
    assert "<script" not in page
    for outside in ("http://", "https://", "src=", "@import", "url(h", "<link"):
        assert outside not in page.replace("http://www.w3.org/2000/svg", "")


def test_names_are_escaped(report):
    page = (report / "report.html").read_text()
    assert ODD_NAME not in page
    assert "odd &lt;b&gt;&amp;&quot;name&quot; | `x`.yaml" in page


def test_it_shows_the_ops_on_the_grid_and_says_why_where_it_cannot(report):
    page = (report / "report.html").read_text()
    assert "epoch 0, chip 1" in page  # two_chips
    assert "no picture: " in page  # lossy.yaml was tested by content and is no file


def test_ids_are_unique(report):
    import re

    ids = re.findall(r' id="([^"]+)"', (report / "report.html").read_text())
    assert {name for name in ids if ids.count(name) > 1} <= {"bg-tip"}  # the same arrow in every picture


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match="report: cannot write"):
        write_report(finished_run(), tmp_path / "file" / "report")


def test_big_runs_have_details_of_what_did_not_pass_first(monkeypatch, tmp_path):
    monkeypatch.setattr(folder, "MOST_DETAILED", 2)
    write_report(finished_run(), tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "4 netlists without details here" in page
    assert page.count('<details class="case"') == 2
    assert "How to run it again" in page
    assert "buda-emu test lossy.yaml" in page


def test_pictures_of_big_netlists_show_the_epoch_of_the_bad_op(monkeypatch, root):
    monkeypatch.setattr(folder, "MOST_PANELS", 1)
    monkeypatch.chdir(root)
    monkeypatch.setattr("buda_emu.report.folder.grid_svg", lambda _netlist, **kwargs: str(kwargs["epochs"]))
    found = folder._picture(finished_run().cases[0], "")
    assert found.svg == "[0]"
    assert found.note.startswith("The first epochs, this part of 2 graphs; the whole: buda-emu graph netlists/")
