"""What differs between two netlists."""

import json
from pathlib import Path

import pytest

import buda_emu as be
from buda_emu.app.api.diff import diff
from buda_emu.app.cli.main import main
from buda_emu.emulator.image.rules import ImageError
from shared_files import ROOT

GOOD = ROOT / "netlists/matmul.yaml"


@pytest.fixture
def changed(tmp_path):
    """A netlist with one thing changed."""

    def make(*pairs):
        text = GOOD.read_text()
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "changed.yaml"
        path.write_text(text)
        return path

    return make


def test_layout_and_comments_do_not_count(changed):
    assert diff(GOOD, changed(("# A matrix product", "# Another word"), ("  weights: {", "  weights:     {"))).same


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("grid_loc: [0, 0]", "grid_loc: [1, 0]", ("op", "product", "placement", "grid_loc", "[0, 0]", "[1, 0]")),
        ("math_fidelity: HiFi3", "math_fidelity: LoFi", ("op", "product", "formats", "math_fidelity", "HiFi3", "LoFi")),
        ("buf_size_mb: 2", "buf_size_mb: 1", ("op", "product", "values", "buf_size_mb", "2", "1")),
        ("relu_mode: min", "relu_mode: max", ("op", "product", "values", "relu_mode", "min", "max")),
    ],
)
def test_a_field(changed, old, new, expected):
    found = diff(GOOD, changed((old, new)), cycles=False)
    (change,) = found.changes
    assert (change.kind, change.name, change.about, change.field, change.before, change.after) == expected
    assert not found.gone
    assert not found.programs


def test_names_that_one_alone_has_and_programs(changed):
    found = diff(GOOD, changed(("activations", "x"), ("incwrap, 2, 4", "incwrap, 2, 8")), cycles=False)
    assert found.gone == (("queue", "activations"),)
    assert found.new == (("queue", "x"),)
    assert any(line.startswith("+") and "incwrap, 2, 8" in line for line in found.programs["run_fwd"])


def test_cycles_of_both(changed):
    (row,) = diff(GOOD, changed(("math_fidelity: HiFi3", "math_fidelity: HiFi4"))).cycles
    assert row.name == "run_fwd"
    assert row.before < row.after


def test_the_verb(changed, capsys):
    path = changed(("grid_loc: [0, 0]", "grid_loc: [1, 0]"))
    assert main(["diff", str(GOOD), str(GOOD)]) == 0
    assert capsys.readouterr().out == f"{GOOD} and {GOOD} say the same\n"
    assert main(["diff", str(GOOD), str(path)]) == 1
    said = capsys.readouterr().out
    assert "placement:" in said
    assert "cycles before" in said
    assert main(["diff", str(GOOD), str(path), "--json", "--no-cycles"]) == 1
    assert json.loads(capsys.readouterr().out)["changes"][0]["field"] == "grid_loc"


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """The same layer for two grids of cores, and the first one again with other weights."""
    torch = pytest.importorskip("torch")
    found = []
    for name, seed, width in (("one", 0, 64), ("other_weights", 1, 64), ("wider", 0, 96)):
        torch.manual_seed(seed)
        compiled = be.compile(torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU()), [torch.ones(1, 32, 64)])
        found.append(str(compiled.save(tmp_path_factory.mktemp(name))[1]))
    return found


def test_images_are_compared_by_their_netlists(images, capsys):
    one, other_weights, wider = images
    found = diff(one, wider)
    assert not found.same
    assert {change.kind for change in found.changes} == {"op", "queue"}
    (row,) = found.cycles
    assert 0 < row.before < row.after
    assert main(["diff", one, wider, "--no-cycles"]) == 1
    assert "everything else:" in capsys.readouterr().out
    assert diff(one, other_weights).same
    assert main(["diff", one, other_weights]) == 0
    assert "what their tensors hold was not compared" in capsys.readouterr().out


def test_an_image_is_compared_with_its_own_netlist(images, tmp_path):
    path = tmp_path / "n.yaml"
    path.write_bytes(be.load_image(images[0]).netlist_text())
    assert diff(images[0], path).same


def test_a_broken_image_is_refused(images, tmp_path):
    path = tmp_path / "cut.tti"
    path.write_bytes(Path(images[0]).read_bytes()[:2000])
    with pytest.raises(ImageError):
        diff(images[0], path)
