"""The table of published models: its machinery on tiny models; the real ones with --slow, where their packages are."""

import importlib.util
import json

import pytest

from shared_files import SHARED

torch = pytest.importorskip("torch")
pytest.importorskip("onnx")

from published import table  # noqa: E402 - only where torch is
from published.measure import measure  # noqa: E402
from published.models import GRAYSKULL, MODELS, WORMHOLE, Model, Settings  # noqa: E402


def tiny():
    layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, 2, 1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                                 torch.nn.Flatten(), torch.nn.Linear(128, 10))  # fmt: skip
    return layers, (torch.randn(1, 3, 8, 8),)


class Determinant(torch.nn.Module):
    """What the chip has no op for."""

    def forward(self, x):
        return torch.linalg.det(x)


TINY = Model("tiny", "Tiny", "torch", "3x8x8", "images/s", tiny, {"n150": 1e3, "n300:1": 900.0},
             Settings("Bfp8_b", "LoFi", 8))  # fmt: skip
LATER = Model("later", "Later", "torch", "x", "images/s", tiny, {"n150": 1.0}, missing="nobody has done it")
REFUSED = Model("refused", "Refused", "torch", "4x4", "images/s", lambda: (Determinant(), (torch.randn(1, 4, 4),)), {})
BOTH = {"tiny": TINY, "later": LATER}


def cell(board="n150", form="torch", **more):
    return {
        "model": "tiny", "board": board, "form": form, "settings": "Bfp8_b LoFi 8", "commit": "abc", "seconds": 1.4,
        "memory": 5 << 20, "ops": 3, "epochs": 2, "inputs": 8, "findings": 0, "rate": 1500.0, "problem": "",
        "bounds": {"op": 0.7, "link": 0.27, "loading": 0.03, "host link": 0.4}, "longest": "op conv, 60 %",
        "pcc": {"ideal": 0.99999, "device": 0.9}, **more,
    }  # fmt: skip


def test_the_18_models_have_names_settings_and_figures():
    assert len(MODELS) == 18
    for model in MODELS.values():
        assert set(model.figures) <= {*WORMHOLE, *GRAYSKULL}
        assert model.figures["n150"] > 0


@pytest.mark.skipif(not (SHARED / "silicon" / "published.csv").exists(), reason="the shared material is not there")
def test_figures_and_settings_are_those_that_were_published():
    import csv

    columns = {"e75": "e75", "e150": "e150", "n150": "n150", "n300:1": "n300_one_chip", "n300": "n300_two_chips"}
    lines = (SHARED / "silicon" / "published.csv").read_text().splitlines()
    rows = {row["model"].replace("Stable-Diffusion-1.4", "Stable Diffusion 1.4"): row for row in csv.DictReader(lines)}
    for model in MODELS.values():
        row = rows[model.title]
        assert dict(model.figures) == {board: float(row[name]) for board, name in columns.items() if row[name]}
        for prefix, settings in (("wh", model.wormhole), ("gs", model.grayskull)):
            if row[f"{prefix}_microbatch"]:
                assert settings.df == (row[f"{prefix}_df"] or "Float16_b"), model.name
                assert settings.fidelity == (row[f"{prefix}_fidelity"] or "HiFi3"), model.name
                assert settings.microbatch == int(row[f"{prefix}_microbatch"]), model.name


@pytest.mark.parametrize("form", ["torch", "onnx"])
def test_a_cell_of_a_tiny_model(form):
    found = measure(TINY, "n150", form, ("ideal", "device"), "abc", "low")
    assert found.problem == ""
    assert (found.settings, found.findings) == ("Bfp8_b LoFi 8", 0)
    assert found.rate > 0
    assert found.memory > 0
    assert found.pcc["ideal"] > 0.99999
    assert 0.9 < found.pcc["device"] < found.pcc["ideal"]
    assert sum(share for kind, share in found.bounds.items() if kind != "host link") == pytest.approx(1, abs=0.01)
    assert found.longest.endswith("%")


def test_where_memory_is_full_fewer_inputs_go_through_a_round():
    def wide():
        return torch.nn.Conv2d(3, 1, 1), (torch.randn(1, 3, 256, 256),)  # a column of places: 2048 tiles an input

    model = Model("wide", "Wide", "torch", "3x256x256", "images/s", wide, {}, Settings("Float16_b", "LoFi", 128))
    found = measure(model, "n150", "torch", (), "abc", "low")
    assert found.problem == ""
    assert 1 <= found.inputs < 128
    assert found.settings == "Float16_b LoFi 128"


def test_one_chip_of_a_board_of_two():
    assert measure(TINY, "n300:1", "torch", (), "abc", "low").problem == ""


def test_what_is_refused_is_kept_as_the_reason():
    found = measure(REFUSED, "n150", "torch", ("ideal",), "abc")
    assert "det" in found.problem
    assert found.pcc == {}


def test_what_is_missing_comes_in_order_and_once(tmp_path):
    path = tmp_path / "results.json"
    first = [("tiny", "n150", "torch"), ("tiny", "e150", "torch")]
    late = [("tiny", "n150", "onnx"), ("tiny", "n300:1", "torch")]
    assert table.missing({}, BOTH) == [*first, *late]
    cells = table.keep(path, cell())
    assert table.missing(cells, BOTH) == [first[1], *late]
    assert table.missing(cells, BOTH, again=["tiny"]) == [*first, *late]
    assert table.missing(cells, BOTH, boards=["n300:1"], forms=["torch"]) == [late[1]]


def test_results_stay_when_another_run_wrote_meanwhile(tmp_path):
    path = tmp_path / "results.json"
    table.keep(path, cell())
    table.keep(path, cell("e150"))
    table.keep(path, cell(rate=7.0))
    assert {name: item["rate"] for name, item in table.read(path).items()} == {
        "tiny e150 torch": 1500.0, "tiny n150 torch": 7.0,
    }  # fmt: skip
    path.write_text(json.dumps({"schema_version": 99, "cells": {}}))
    with pytest.raises(ValueError, match="schema version 99"):
        table.read(path)


def test_the_page_shows_figures_ratios_and_what_is_missing():
    cells = {f"tiny {item['board']} {item['form']}": item for item in (
        cell(), cell("n300:1", problem="no grid has room"),
        cell("n150", "onnx", pcc={}, bounds={"op": 1.0, "host link": 2.0}),
    )}  # fmt: skip
    text = table.page(cells, BOTH)
    assert "| Tiny | n150 | Bfp8_b LoFi 8 | 1000 images/s | 1500 | 1.50 | op 70 %; link 27 %; longest: op conv" in text
    assert "| 0.9999900 | **0.9000000, too low** | 0 |" in text
    assert "| Tiny | torch, onnx | n150 | not measured | not measured |" in text
    assert "* Tiny, n300:1 by torch: refused: no grid has room" in text
    assert "* Tiny: not measured yet: e150 by torch." in text
    assert "* Later (torch): nobody has done it." in text


def test_the_vendors_netlist_stands_beside_ours():
    theirs = {"model": "tiny", "board": "wormhole_b0/tiny", "form": "vendor", "netlist": "wormhole_b0/tiny",
              "problem": "", "rate": 700.0, "epochs": 4}  # fmt: skip
    text = table.page({"tiny n150 torch": cell(), "tiny wormhole_b0/tiny vendor": theirs}, BOTH)
    assert "| Tiny | `wormhole_b0/tiny` | 700.0 | 4 | 1000, n150 | 1500 |" in text


def test_the_host_is_named_where_it_is_the_pace():
    text = table.page({"tiny n150 torch": cell(bounds={"op": 1.0, "host link": 2.0}, longest="")}, {"tiny": TINY})
    assert "host bound, 2.0 times the chip's time; op 100 % |" in text


@pytest.mark.slow
@pytest.mark.parametrize(("name", "package"), [("mobilenet_v3", "timm"), ("mobilenet_v1", "transformers")])
def test_a_published_model(name, package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    found = measure(MODELS[name], "n150", "torch", ("ideal",), "abc")
    assert found.problem == ""
    assert found.findings == 0
    assert found.pcc["ideal"] >= table.LEAST["ideal"]
