"""The table of published models: its machinery on tiny models; the real ones with --slow, where their packages are."""

import importlib.util
import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import buda_emu as be
from shared_files import SHARED

torch = pytest.importorskip("torch")
pytest.importorskip("onnx")

from published import __main__, extras, generation, table  # noqa: E402 - only where torch is
from published.measure import measure  # noqa: E402
from published.models import GRAYSKULL, MODELS, WORMHOLE, Model, Settings  # noqa: E402


def tiny():
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, 2, 1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(128, 10),
    )
    return layers, (torch.randn(1, 3, 8, 8),)


def test_what_was_measured_names_the_commit_or_says_that_there_is_none():
    assert re.fullmatch(r"unknown|[0-9a-f]{7,}\+?", __main__._commit())


class Determinant(torch.nn.Module):
    """What the chip has no op for."""

    def forward(self, x):
        return torch.linalg.det(x)


TINY = Model("tiny", "Tiny", "torch", "3x8x8", "images/s", tiny, {"n150": 1e3, "n300:1": 900.0},
             Settings("Bfp8_b", "LoFi", 8))  # fmt: skip
LATER = Model("later", "Later", "torch", "x", "seconds/image", tiny, {"n150": 6.0}, runs=10)
REFUSED = Model("refused", "Refused", "torch", "4x4", "images/s", lambda: (Determinant(), (torch.randn(1, 4, 4),)), {})
ONLY = {"tiny": TINY}
BOTH = {"tiny": TINY, "later": LATER}


def cell(board="n150", form="torch", **more):
    return {
        "model": "tiny",
        "board": board,
        "form": form,
        "settings": "Bfp8_b LoFi 8",
        "commit": "abc",
        "seconds": 1.4,
        "memory": 5 << 20,
        "ops": 3,
        "epochs": 2,
        "inputs": 8,
        "findings": 0,
        "rate": 1500.0,
        "problem": "",
        "bounds": {"op": 0.7, "link": 0.27, "loading": 0.03, "host link": 0.4},
        "longest": "op conv, 60 %",
        "pcc": {"ideal": 0.99999, "device": 0.9},
        **more,
    }


def test_a_missing_library_is_named_with_its_extra_and_its_rows_stay(monkeypatch, capsys, tmp_path):
    results = tmp_path / "results.json"
    monkeypatch.setattr(__main__, "RESULTS", results)
    monkeypatch.setattr(__main__, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(__main__, "_model_vendor_netlists", lambda: None)
    monkeypatch.setattr(extras, "find_spec", lambda package: None if package == "yolov5" else "installed")
    monkeypatch.setattr("sys.argv", ["published", "--only", "yolov5s"])
    assert __main__.main() == 0
    assert not results.exists()
    assert "yolov5s is left out: yolov5 is not installed: it comes with the extra `yolo`" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["published", "--cell", "yolov5s", "n150", "torch"])
    assert __main__.main() == 2
    assert "published: yolov5 is not installed" in capsys.readouterr().err


def test_every_library_of_the_models_has_an_extra_that_installs_it():
    root = Path(__file__).parents[1]
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for model in MODELS.values():
        if model.package:
            lines = declared[extras.EXTRAS[model.package]]
            assert any(re.match(rf"{model.package}\b", line) for line in lines), model.package
        else:
            assert "benchmarks/" in model.library


def test_norms_are_fitted_to_the_input():
    model, (given,) = replace(TINY, fitted=True).source()
    found = model[:2](given)
    assert not model.training
    assert found.mean((0, 2, 3)).abs().max() < 1e-5
    assert (found.var((0, 2, 3)) - 1).abs().max() < 1e-3


def test_the_output_of_several_epochs_is_compared():
    """What epochs leave to each other is an output of the run, too."""
    deep = torch.nn.Sequential(*(layer for _ in range(60) for layer in (torch.nn.Linear(32, 32), torch.nn.Sigmoid())))
    model = replace(TINY, build=lambda: (deep, (torch.randn(1, 32),)))
    found = measure(model, "n150", "torch", ("ideal",), "abc", "low")
    assert found.epochs > 1
    assert found.pcc["ideal"] > 0.9999


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
    shown = []
    found = measure(
        TINY, "n150", form, ("ideal", "device"), "abc", "low", show=lambda cell: shown.append(cell.as_json())
    )
    assert [(item["rate"], item["findings"], len(item["pcc"])) for item in shown] == [
        (found.rate, 0, n) for n in (0, 1)
    ]
    assert found.problem == ""
    assert (found.settings, found.findings) == ("Bfp8_b LoFi 8", 0)
    assert found.rate > 0
    assert found.memory > found.weights == 4 * (8 * 27 + 5 * 8 + 10 * 129) + 8
    assert found.pcc["ideal"] > 0.99999
    assert 0.9 < found.pcc["device"] < found.pcc["ideal"]
    assert sum(share for kind, share in found.bounds.items() if kind != "host link") == pytest.approx(1, abs=0.01)
    assert found.longest.endswith("%")


def test_where_memory_is_full_fewer_inputs_go_through_a_round():
    def wide():
        return torch.nn.Conv2d(3, 32, 1), (torch.randn(1, 3, 256, 256),)  # 2048 tiles of outputs an input

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
    assert table.missing({}, ONLY) == [*first, *late]
    cells = table.keep(path, cell())
    assert table.missing(cells, ONLY) == [first[1], *late]
    assert table.missing(cells, ONLY, again=["tiny"]) == [*first, *late]
    assert table.missing(cells, ONLY, boards=["n300:1"], forms=["torch"]) == [late[1]]


def test_results_stay_when_another_run_wrote_meanwhile(tmp_path):
    path = tmp_path / "results.json"
    table.keep(path, cell())
    table.keep(path, cell("e150"))
    table.keep(path, cell(rate=7.0))
    assert {name: item["rate"] for name, item in table.read(path).items()} == {
        "tiny e150 torch": 1500.0,
        "tiny n150 torch": 7.0,
    }
    path.write_text(json.dumps({"schema_version": 99, "cells": {}}))
    with pytest.raises(ValueError, match="schema version 99"):
        table.read(path)


def test_the_page_shows_figures_ratios_and_what_is_missing():
    cells = {
        f"tiny {item['board']} {item['form']}": item
        for item in (
            cell(),
            cell("n300:1", problem="no grid has room"),
            cell("n150", "onnx", pcc={}, bounds={"op": 1.0, "host link": 2.0}),
            cell("e150", weights=3 << 20),
        )
    }
    text = table.page(cells, BOTH)
    assert "| Tiny | n150 | Bfp8_b LoFi 8 | 1000 images/s | 1500 | 1.50 | op 70 %; link 27 %; longest: op conv" in text
    assert "| 0.9999900 | **0.9000000, too low** | - | abc | 0 |" in text
    assert "| Tiny | torch, onnx | n150 | not measured | not measured |" in text
    assert "* Tiny, n300:1 by torch: refused: no grid has room" in text
    assert "| 2 | 8 | 1 | 5 | abc |" in text
    assert "| 2 | 8 | 1 | 5 (3) | abc |" in text
    assert "* Tiny: not measured yet" not in text
    assert "* Later: not measured yet: n150 by torch, e150 by torch, n150 by onnx." in text


def test_seconds_for_many_runs_and_models_that_are_not_whole():
    text = table.page({"later n150 torch": cell(model="later", rate=2.0)}, BOTH)
    assert "| Later | n150 | Bfp8_b LoFi 8 | 6 seconds/image | 5.0 | 1.20 |" in text
    assert "slower than" not in text
    part = replace(TINY, whole=False)
    assert "| 1000 images/s | 1500 | - |" in table.page({"tiny n150 torch": cell()}, {"tiny": part})


def test_what_is_slower_is_explained():
    slow = {"tiny n150 torch": cell(rate=500.0), "tiny n300:1 torch": cell("n300:1", rate=300.0)}
    text = table.page(slow, ONLY)
    n300, n150 = (
        f"* Tiny, {board}, {ratio} times what was published: op 70 %, link 27 %."
        for board, ratio in (("n300:1", 0.33), ("n150", "0.50"))
    )
    assert 0 < text.index(n300) < text.index(n150)
    assert "* *op*: one op of an epoch" in text
    assert "* *link*: operands go" in text
    assert "* *memory*" not in text


def two_programs():
    import t5

    torch.manual_seed(0)
    model = generation.sharpen(t5.T5(100, 64, 2, 1, 32, 64))
    encode, decode = t5.Encode(model).eval(), t5.Decode(model).eval()
    source = torch.randint(0, 100, (1, 32))
    given = model.encode(source)

    def scores(tokens):
        n = tokens.shape[1]
        x = model.table(tokens)
        bias = model.bias(model.decoder_bias, n, n, False) + torch.full((n, n), t5.FAR).triu(1)
        for number, layer in enumerate(model.decoder):
            x, _ = layer(x, bias, None, given[2 * number : 2 * number + 2])
        return model.scores(x)

    programs = {
        "encode": be.Program(encode, encode.example(), encode.keeps()),
        "decode": be.Program(decode, decode.example(), decode.keeps()),
    }
    return generation.Generation(programs, scores, [0], (source,))


def test_a_cell_of_a_model_that_generates():
    model = Model("two", "Two", "torch", "32 tokens", table.TOKENS, two_programs, {"n150": 10.0})
    found = measure(model, "n150", "torch", ("ideal", "device"), "abc", "low")
    assert found.problem == ""
    assert found.findings == 0
    same, count, different = found.tokens
    assert (same, count) == (24, 24)
    assert different > 3
    assert found.pcc["ideal"] > 0.999999
    assert 0.5 < found.pcc["device"] < found.pcc["ideal"]
    assert found.rate > 0
    text = table.page({"two n150 torch": found.as_json()}, {"two": model})
    assert f"| 24 of 24 equal, {different} different ones |" in text


SMALL = {
    "t5": lambda: generation.t5(d_model=96, d_kv=32, num_heads=3, d_ff=192, num_layers=2, vocab_size=200),
    "flan": lambda: generation.t5(
        d_model=96, d_kv=32, num_heads=3, d_ff=160, num_layers=2, vocab_size=200, feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
    ),
    "whisper": lambda: generation.whisper(
        64, d_model=96, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3, decoder_attention_heads=3,
        encoder_ffn_dim=192, decoder_ffn_dim=192, max_source_positions=75, max_target_positions=64, num_mel_bins=20,
        vocab_size=200, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3, init_std=0.06,
    ),
    "falcon": lambda: generation.falcon(
        64, hidden_size=160, num_attention_heads=5, num_hidden_layers=2, vocab_size=200
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_a_small_model_of_the_library_generates_what_the_original_does(name):
    pytest.importorskip("transformers")
    found = measure(
        Model(name, name, "transformers", "x", table.TOKENS, SMALL[name], {"n150": 1.0}),
        "n150",
        "torch",
        ("ideal",),
        "abc",
        "low",
    )
    assert found.problem == ""
    assert (found.findings, *found.tokens[:2]) == (0, 24, 24)
    assert found.pcc["ideal"] > table.LEAST["ideal"]


def test_an_image_of_a_few_steps_is_the_original_s():
    """Text encoder, U-Net and decoder compiled, the scheduler on the host."""
    for name in ("diffusers", "transformers"):
        pytest.importorskip(name)
    from published.diffusion import diffusion

    torch.manual_seed(0)
    made = diffusion(8, 32, 2, 100, 16)
    prompts = [torch.randint(0, 99, (1, 16)) for _ in range(2)]
    for tokens in prompts:
        tokens[0, -1] = 99  # the end, whose state the library looks up
    latents = torch.randn(1, 4, 8, 8)
    modules = made.text, made.unet, made.decoder
    with torch.no_grad():
        examples = (prompts[0],), (latents, torch.tensor([500]), made.text(prompts[0])), (latents,)
        parts = [
            be.compile(module, inputs, board="n150", effort="low", microbatch=1)
            for module, inputs in zip(modules, examples, strict=True)
        ]
        assert [part.check() for part in parts] == [(), (), ()]
        wanted, found = (made.image(each, prompts, latents, 3) for each in (modules, parts))
    assert found.shape == (1, 3, 16, 16)
    assert np.corrcoef(found.ravel(), wanted.ravel())[0, 1] > table.LEAST["ideal"]


def test_the_vendors_netlist_stands_beside_ours():
    theirs = {
        "model": "tiny",
        "board": "wormhole_b0/tiny",
        "form": "vendor",
        "netlist": "wormhole_b0/tiny",
        "problem": "",
        "rate": 700.0,
        "epochs": 4,
    }
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


def test_a_cell_that_is_measured_without_checks_keeps_the_older_ones_with_their_commit(tmp_path):
    path = tmp_path / "results.json"
    table.keep(path, cell(tokens=[24, 24, 9]))
    for commit in ("def", "fed"):
        kept = table.keep(path, cell(commit=commit, pcc={}, tokens=[]))["tiny n150 torch"]
        assert (kept["commit"], kept["checked"], kept["tokens"]) == (commit, "abc", [24, 24, 9])
    assert "| abc | 0 |" in table.page(table.read(path), ONLY)
    assert "checked" not in table.keep(path, cell(commit="new"))["tiny n150 torch"]
