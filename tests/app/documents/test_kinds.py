"""Every kind of document through one protocol: told by what it holds, opened, checked, summed up, timed."""

import gzip

import pytest

from buda_emu.app.documents.kinds import NETLIST, files_below, kind_by_name, kind_of, kinds
from buda_emu.foreign.darwinn.example import example_files
from buda_emu.performance.timeline.picture import TimelinePicture
from buda_emu.support.checker import CheckResult, Options
from buda_emu.support.errors import HostError
from buda_emu.testing.verify.runs.collect import collect
from shared_files import ROOT
from small_images import good, tar_bytes


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """One of each kind, under names that say nothing where content tells the kind."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "image.tti").write_bytes(tar_bytes(good()))
    (folder / "a").write_bytes((ROOT / "netlists" / "matmul.yaml").read_bytes())
    (folder / "b").write_bytes(gzip.compress((ROOT / "examples" / "gemini" / "halo.json").read_bytes()))
    (folder / "c").write_bytes(example_files()["edges_edgetpu.tflite"])
    (folder / "d.mlir").write_bytes((ROOT / "examples" / "vpux" / "clamp.mlir").read_bytes())
    names = {"netlist": "a", "image": "image.tti", "schedule": "b", "package": "c", "vpux": "d.mlir"}
    return {kind: str(folder / name) for kind, name in names.items()}


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_each_kind_can_do_the_same(kind, documents):
    path = documents[kind.name]
    assert kind_of(path) is kind
    result = kind.check(path, Options())
    assert isinstance(result, CheckResult)
    assert result.ok
    document = kind.load(path)
    summary = document.summary()
    assert summary
    assert all(isinstance(value, int | str) for value in summary.values())
    picture = document.timeline()
    assert isinstance(picture, TimelinePicture)
    assert picture.lanes
    assert picture.slices


def test_an_architecture_of_another_kind_is_not_asked_for(documents):
    result = kind_by_name("vpux").check(documents["vpux"], Options(arch="wormhole_b0"))
    assert result.diagnostics == kind_by_name("vpux").check(documents["vpux"], Options()).diagnostics


def test_a_folder_has_documents_of_every_kind(tmp_path):
    (tmp_path / "net.yaml").write_text("devices: {arch: grayskull}\nqueues: {}\n")
    (tmp_path / "s.json").write_text('{"-1": {}}')
    (tmp_path / "other.json").write_text('{"name": 1}')
    (tmp_path / "archive.zip").write_bytes(b"PK\x03\x04")  # an image has its name, unless it is given by name
    for name, data in example_files().items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "notes.txt").write_text("queues: graphs:")
    names = {name.rpartition("/")[2] for name in files_below([str(tmp_path)])}
    assert names == {"net.yaml", "s.json", "edges_edgetpu.tflite", "spots_edgetpu.tflite"}
    assert files_below([str(tmp_path)], kind_by_name("schedule")) == [str(tmp_path / "s.json")]
    assert files_below([str(tmp_path)], NETLIST) == [str(tmp_path / "net.yaml")]
    with pytest.raises(HostError, match="no VPUX program in this folder"):
        files_below([str(tmp_path)], kind_by_name("vpux"))


def test_an_archive_is_an_image_whatever_its_name(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(tar_bytes(good()))
    assert kind_of(str(path)).name == "image"
    path.write_bytes(b"\0" * 258 + b"ustar")  # one byte too far
    assert kind_of(str(path)) is NETLIST


def test_a_vpux_program_is_checked_for_the_architecture_that_was_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr("buda_emu.foreign.vpux.document.check_file", lambda _, options: asked.append(options.arch))
    for arch in ("37XX", "40XX", "wormhole_b0", None):
        kind_by_name("vpux").check("d.mlir", Options(arch=arch))
    assert asked == ["37XX", "40XX", None, None]


def test_hidden_folders_are_passed_over(tmp_path):
    for folder in (".git", "nets"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "s.json").write_text('{"-1": {}}')
    assert files_below([str(tmp_path)]) == [str(tmp_path / "nets" / "s.json")]


def test_a_pattern_stands_for_the_files_and_folders_that_match_it(tmp_path):
    for name in ("a/one.yml", "a/two.yml", "b/three.YAML", "b/[x].yaml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("queues: {}\ngraphs: {}\n")
    one, two, three, named = (str(tmp_path / name) for name in ("a/one.yml", "a/two.yml", "b/three.YAML", "b/[x].yaml"))
    assert files_below([f"{tmp_path}/**/*.yml", one]) == [one, two]
    assert files_below([f"{tmp_path}/[ab]"]) == [one, two, named, three]
    assert files_below([named]) == [named]  # a file of this name comes before the pattern
    assert collect([str(tmp_path)]) == files_below([str(tmp_path)]) == [one, two, named, three]
    with pytest.raises(HostError, match="no file matches this pattern"):
        files_below([f"{tmp_path}/*.yml"])


@pytest.mark.parametrize("name", ["net.YAML", "net.Yml"])
def test_capitals_in_the_suffix_do_not_hide_a_netlist_or_what_is_left_of_one(tmp_path, name):
    path = tmp_path / name
    path.write_text("queues: {}\ngraphs: {}\n")
    assert files_below([str(tmp_path)]) == collect([str(tmp_path)]) == [str(path)]
    (tmp_path / f"cut_{name}").write_text("")
    left_out = []
    files_below([str(tmp_path)], on_left_out=left_out.append)
    collect([str(tmp_path)], left_out.append)
    assert left_out == 2 * [str(tmp_path / f"cut_{name}")]
