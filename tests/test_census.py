"""The census: its enumeration and judgement on tiny models, and twenty models of installed libraries with --slow."""

import importlib.util
import socket
import sys
import types
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from buda_emu.support.errors import HostError
from census import page
from census.offline import NetworkRefusedError, _refuse
from census.rows import Case, append_row, make_row, read_rows, write_gzip

torch = pytest.importorskip("torch")
pytest.importorskip("onnx")

from census import judge, libraries  # noqa: E402 - only where torch is
from census.__main__ import in_rounds  # noqa: E402
from census.libraries import shrinking  # noqa: E402
from census.models import build_model, list_cases, settle  # noqa: E402
from census.processes import Limits, run_rows  # noqa: E402

SMALL = (
    Case("transformers", "bert", "bert:BertForMaskedLM"),
    Case("transformers", "gpt2", "gpt2:GPT2LMHeadModel"),
    Case("transformers", "llama", "llama:LlamaForCausalLM"),
    Case("transformers", "t5", "t5:T5ForConditionalGeneration"),
    Case("transformers", "vit", "vit:ViTForImageClassification"),
    Case("transformers", "wav2vec2", "wav2vec2:Wav2Vec2ForCTC"),
    Case("transformers", "convnextv2", "convnextv2:ConvNextV2Model"),
    Case("timm", "efficientnet", "efficientnet_lite0"),
    Case("timm", "vision_transformer", "vit_tiny_patch16_224"),
    Case("timm", "regnet", "regnetx_002"),
    Case("timm", "ghostnet", "ghostnet_050"),
    Case("torchvision", "squeezenet", "squeezenet1_1"),
    Case("torchvision", "shufflenet", "shufflenet_v2_x0_5"),
    Case("pytorchcv", "darknet", "darknet_tiny"),
    Case("segmentation_models_pytorch", "unet", "unet:resnet18"),
    Case("vit_pytorch", "simple_vit", "vit_pytorch.simple_vit:SimpleViT"),
    Case("diffusers", "unet_2d_blocks", "diffusers.models.unets.unet_2d_blocks:DownBlock2D"),
    Case("x_transformers", "Decoder", "Decoder:plain"),
    Case("torch_geometric", "dense layer", "DenseSAGEConv"),
    Case("onnx", "onnx/light", "light_squeezenet", "onnx"),
)


class Gate(torch.nn.Module):
    def forward(self, x):
        return torch.sigmoid(x) * x


class Determinant(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.det(x)


class Logarithm(torch.nn.Module):
    def forward(self, x):
        return torch.log(x)


class Noise(torch.nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


class Ties(torch.nn.Module):
    """Reads the elements at the places of the largest two, which nearly all are as large as each other."""

    def forward(self, x):
        places = torch.relu(x - 3).topk(2, dim=-1).indices
        return x.gather(-1, places)


class Saturated(torch.nn.Module):
    """Selects among probabilities that differ in float64, and are all 1 in float32."""

    def forward(self, x):
        places = torch.sigmoid(30 + x).topk(2, dim=-1).indices
        return x.gather(-1, places)


class Masked(torch.nn.Module):
    """Decides in Python by its mask, if there is one."""

    def forward(self, values, value_mask=None):
        if value_mask is not None and not value_mask.numpy().all():
            return values * value_mask
        return torch.exp(values)


class Chaotic(torch.nn.Module):
    """The logistic map, whose numbers after so many steps depend on the last bit of the first ones."""

    def __init__(self):
        super().__init__()
        self.start = torch.nn.Parameter(torch.linspace(0.1, 0.9, 50))

    def forward(self, x):
        numbers = self.start
        for _ in range(60):
            numbers = 3.9 * numbers * (1 - numbers)
        return x[..., :1] * 0 + numbers


class TinyModels(libraries.LibrarySource):
    MODELS: ClassVar = {"gate": Gate, "determinant": Determinant, "logarithm": Logarithm, "noise": Noise}
    MODELS |= {"chaotic": Chaotic, "ties": Ties, "saturated": Saturated, "masked": Masked}

    def names(self):
        for name in self.MODELS:
            yield name[0], name

    def build(self, name):
        if name == "masked":
            inputs = torch.randn(1, 5, 5), torch.ones(1, 5, 5)
            return libraries.Outputs(Masked(), ("values", "value_mask")), inputs
        return libraries.Outputs(self.MODELS[name](), ("",)), (torch.randn(1, 5, 5),)


@pytest.fixture
def tiny(monkeypatch):
    module = types.ModuleType("tiny_models")
    module.SOURCES = {"tiny": TinyModels}
    monkeypatch.setitem(sys.modules, "tiny_models", module)
    monkeypatch.setattr(libraries, "LIBRARIES", {"tiny": "tiny_models"})


def judged(name, form="torch", **options):
    row = make_row(Case("tiny", name[0], name, form, **options), 0, {}, "")
    written = []
    judge.judge(row, 0, lambda row: written.append(row.stage))
    assert written[-1] == "done"
    return row


def test_a_model_that_is_right(tiny):
    row = judged("gate")
    assert (row.verdict, row.findings, row.why) == ("right", (), "")
    assert row.error <= 1e-4
    assert {"building", "compiling", "checking", "running"} == set(row.seconds)
    assert row.ops > 0


def test_a_model_that_decides_by_its_mask_is_compiled_without(tiny):
    row = judged("masked")
    assert (row.verdict, row.without_masks, row.operators) == ("right", True, ())
    assert "without its masks; with them: compile: torch.export cannot trace" in row.why


def test_a_refusal_names_the_operator(tiny):
    row = judged("determinant")
    assert row.verdict == "refused"
    assert len(row.operators) == 1
    assert "det" in row.operators[0]


@pytest.mark.parametrize(("name", "why"), [("logarithm", "not finite"), ("noise", "differ from run to run")])
def test_what_is_no_measure_is_not_counted(tiny, name, why):
    row = judged(name)
    assert row.verdict == "unbuilt"
    assert why in row.why
    assert page.page([row]).count("unbuilt") > 0


def test_the_first_of_equal_elements_counts_where_torch_leaves_the_choice_open(tiny):
    model = build_model("tiny", "ties", "torch", 0)
    with judge._FirstOfEquals() as mode:
        first_of_equals = model.run()
    assert mode.has_chosen
    assert not np.array_equal(first_of_equals[0], model.run()[0])  # torch chose others
    assert judged("ties").verdict == "right"
    assert not judge._hangs_on_rounding(model, first_of_equals)
    row = make_row(Case("tiny", "ties", "ties"), 0, {}, "")
    wrong = [-array for array in first_of_equals]
    judge._compare(row, model.run(), wrong)
    judge._compare_with_first_of_equals(row, model, model.run(), wrong)
    assert row.verdict == "wrong"


def test_a_model_that_float64_contradicts_is_no_measure(tiny):
    model = build_model("tiny", "saturated", "torch", 0)
    assert judge._hangs_on_rounding(model, model.run())


@pytest.mark.parametrize(("name", "is_wrong"), [("chaotic", True), ("gate", False)])
@torch.no_grad()
def test_a_model_that_depends_on_the_last_bit_is_no_measure(tiny, name, is_wrong):
    model, expected = judge.build(Case("tiny", name[0], name), 0)
    assert judge._differs_with_noise(model, expected, 0) == is_wrong


def test_a_model_is_the_same_in_each_process(tiny):
    first, second = (build_model("tiny", "gate", "torch", 0) for _ in range(2))
    other = build_model("tiny", "gate", "torch", 1)
    assert torch.equal(first.inputs[0], second.inputs[0])
    assert not torch.equal(first.inputs[0], other.inputs[0])


@pytest.mark.parametrize(
    ("have", "verdict"),
    [
        (np.linspace(-1, 1, 50), "right"),
        (np.linspace(-1, 1, 50) + 1e-5, "right"),
        (np.linspace(1, -1, 50), "wrong"),
        (np.where(np.arange(50) == 7, np.nan, np.linspace(-1, 1, 50)), "wrong"),
        (np.linspace(-1, 1, 49), "wrong"),
    ],
)
def test_outputs_are_compared(have, verdict):
    row = make_row(Case("tiny", "t", "t"), 0, {}, "")
    row.verdict = "right"
    judge._compare(row, [np.linspace(-1, 1, 50)], [have])
    assert row.verdict == verdict
    assert bool(row.why) == (verdict == "wrong")


def test_a_missing_output_is_wrong():
    row = make_row(Case("tiny", "t", "t"), 0, {}, "")
    judge._compare(row, [np.zeros(3), np.zeros(3)], [np.zeros(3)])
    assert row.verdict == "wrong"


@pytest.mark.parametrize(
    ("message", "operators"),
    [
        ("compile: g: not supported: Det: 1 time, first at d; be.compile_in_parts ...", ("Det",)),
        ("compile: g: not supported: T (a mask; use where): 1 time; Det: 1 time", ("T (a mask; use where)", "Det")),
        ("compile: g: not supported: Det: 2 times; NonZero: 1 time, first at a.py:3", ("Det", "NonZero")),
        (
            "compile: torch.export cannot trace M: shape 'x' is wrong for 13",
            ("torch.export: shape ... is wrong for N",),
        ),
        ("compile: input 3 is complex", ("input N is complex",)),
    ],
)
def test_refused_operators_are_named_by_kind(message, operators):
    assert judge.refused_operators(message) == operators


def test_rows_are_read_again(tmp_path):
    row = make_row(SMALL[0], 0, {"torch": "1"}, "abc")
    row.seconds["building"] = 1.5
    append_row(tmp_path / "rows.jsonl", row)
    assert read_rows(tmp_path / "rows.jsonl") == {row.identity: row}
    write_gzip(tmp_path / "rows.jsonl.gz", [row])
    assert read_rows(tmp_path / "rows.jsonl.gz") == {row.identity: row}
    assert read_rows(tmp_path / "none") == {}


def test_a_line_that_is_no_row_is_refused_with_its_place(tmp_path):
    (tmp_path / "rows").write_text("{}}\n")
    with pytest.raises(HostError, match="rows:1"):
        read_rows(tmp_path / "rows")


def test_a_row_belongs_to_its_case_seed_and_versions():
    case = SMALL[0]
    others = [replace(case, arch="grayskull"), replace(case, effort="high"), replace(case, form="onnx")]
    identities = {make_row(other, 0, {"torch": "1"}, "").identity for other in (case, *others)}
    identities |= {make_row(case, 1, {"torch": "1"}, "").identity, make_row(case, 0, {"torch": "2"}, "").identity}
    assert len(identities) == 6
    assert make_row(case, 0, {"torch": "1"}, "other commit").identity in identities


def test_each_family_comes_first_once():
    cases = [[Case("a", "x", "1"), Case("a", "x", "2"), Case("a", "y", "3")], [Case("b", "z", "4")]]
    assert [case.name for case in in_rounds(cases)] == ["1", "4", "3", "2"]


def test_the_network_is_refused_by_name():
    with pytest.raises(NetworkRefusedError, match=r"example\.com"):
        _refuse("socket.getaddrinfo", ("example.com", 443))
    with pytest.raises(NetworkRefusedError, match=r"192\.0\.2\.1"):
        _refuse("socket.connect", (None, ("192.0.2.1", 443)))
    _refuse("socket.connect", (None, "/tmp/socket"))
    assert socket.AF_UNIX


def test_configurations_become_small_and_fit_together():
    words = {
        "vocab_size": 50000, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "eos_token_id": [128001, 2], "tied": True,
        "layer_types": ["full", "full", "sliding"] * 8, "image_token_id": 30000,
        "vision_config": {"hidden_size": 1024, "image_size": 336, "patch_size": 14, "out_hidden_size": 4096},
    }  # fmt: skip
    small = shrinking.shrink_words(words)
    assert small["hidden_size"] == small["vision_config"]["hidden_size"] == small["vision_config"]["out_hidden_size"]
    assert small["hidden_size"] % small["num_attention_heads"] == 0
    assert small["num_attention_heads"] % small["num_key_value_heads"] == 0
    assert len(small["layer_types"]) == small["num_hidden_layers"] == 2
    assert set(small["layer_types"]) == {"full", "sliding"}
    assert small["vision_config"]["image_size"] % 14 == 0
    assert all(token < small["vocab_size"] for token in (small["image_token_id"], *small["eos_token_id"]))
    assert shrinking.shrink_words(words, widths=False)["intermediate_size"] == 14336


def test_stages_keep_what_heads_divide():
    small = shrinking.shrink_words({"hidden_sizes": [96, 192, 384, 768], "depths": [2, 2, 18, 2]})
    assert small == {"hidden_sizes": [16, 32, 64, 128], "depths": [1, 1, 1, 1]}


def test_parameters_that_begin_as_nothing_get_values():
    module = torch.nn.Sequential(torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 4))
    torch.nn.init.zeros_(module[1].bias)
    module = settle(module)
    assert module[0].running_mean.abs().max() > 0
    assert module[1].bias.abs().min() > 0
    assert not module.training


def test_the_page_names_what_is_wrong_and_what_is_refused():
    rows = [make_row(case, 0, {"torch": "2"}, "abc") for case in SMALL[:4]]
    for row, verdict in zip(rows, ("right", "wrong", "refused", "unbuilt"), strict=True):
        row.verdict, row.seconds = verdict, {"compiling": 2.0}
    rows[0].without_masks = True
    rows[1].why, rows[2].operators = "output 0: PCC 0.3", ("aten.frobnicate",)
    text = page.page(rows)
    assert "3 models of 3 families were run" in text
    assert "| wrong | transformers | `gpt2:GPT2LMHeadModel` |" in text
    assert "aten.frobnicate" in text
    assert "33.3 %" in text
    assert "1 of the runs that are right are of models that decide in Python by values of a mask" in text


def test_the_page_is_that_of_the_rows():
    assert page.PAGE.read_text(encoding="utf-8") == page.page(list(read_rows(page.ROWS).values()))


@pytest.mark.filterwarnings("ignore")  # what libraries say when they are imported
@pytest.mark.parametrize("library", libraries.LIBRARIES)
def test_installed_libraries_list_each_model_once(library):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed (extra census)")
    libraries.declare_missing_operators()
    names = [case.name for case in list_cases(library)]
    assert len(names) == len({*names})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", SMALL, ids=lambda case: f"{case.library}-{case.name}")
def test_the_census_in_small(case):
    if importlib.util.find_spec(case.library) is None:
        pytest.skip(f"{case.library} is not installed (extra census)")
    libraries.declare_missing_operators()
    (row,) = run_rows([make_row(case, 0, {}, "")], 1, 0, Limits(seconds=120))
    assert (row.verdict, row.findings) == ("right", ()), row.why


@pytest.mark.slow
def test_a_process_that_takes_too_long_is_ended():
    case = Case("onnx", "onnx/light", "light_vgg19", "onnx")
    (row,) = run_rows([make_row(case, 0, {}, "")], 1, 0, Limits(seconds=1))
    assert row.verdict in ("slow", "unbuilt")
    assert "1 processor seconds" in row.why or "killed while" in row.why
