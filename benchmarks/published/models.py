"""The models: where each comes from, what goes in, at which settings it was published, and what was published.

Weights are random and hang on a seed; nothing is downloaded. Figures and settings are those of `silicon/published.csv`
in the shared material (of tenstorrent/benchmarking, Apache License 2.0); its empty formats are float32 models lowered
to Float16_b with HiFi3.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from zoo.small import First, Source, settled

from . import generation
from .generation import Generation

VENDOR = {
    "bert_large": ("grayskull/bert_large_lofi_bfp8b_v2", "wormhole_b0/bert_large_hifi3_fp16b"),
    "resnet50": ("wormhole_b0/resnet50_hifi3_fp16b",),
    "mobilenet_v2": ("wormhole_b0/mobilenet_v2_hifi2_fp16b",),
    "mobilenet_v3": ("wormhole_b0/mobilenet_v3_hifi2_fp16b",),
    "unet": ("wormhole_b0/unet_hifi3_fp16b",),
    "yolov5s": ("wormhole_b0/yolo_v5_hifi3_fp16b",),
}
"""Netlists that the vendor's compiler wrote for the same networks, in `compile/vendor`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a model was compiled at: format, fidelity, inputs of a round."""

    df: str = "Float16_b"
    fidelity: str = "HiFi3"
    microbatch: int = 64

    def __str__(self) -> str:
        return f"{self.df} {self.fidelity} {self.microbatch}"


LOW = Settings("Bfp8_b", "LoFi")
WORMHOLE = ("n150", "n300:1", "n300")
GRAYSKULL = ("e75", "e150")
"""Boards of the published columns; `n300:1` is one of the two chips."""


@dataclass(frozen=True, slots=True)
class Model:
    """One row. `build` gives a module and its inputs, or programs that generate text; `figures`: by board what was
    published. `runs`: of how many runs the figure is the seconds; 0: it is results a second. `whole`: False where
    fewer layers are measured than were published. `fitted`: batch norms have the statistics of the input, not random
    ones, with which what comes out would hardly differ from place to place."""

    name: str
    title: str
    library: str
    input: str
    unit: str
    build: Callable[[], Source | Generation]
    figures: Mapping[str, float]
    wormhole: Settings = field(default_factory=Settings)
    grayskull: Settings = field(default_factory=Settings)
    runs: int = 0
    whole: bool = True
    fitted: bool = False

    def settings(self, board: str) -> Settings:
        """Those of a board's column."""
        return self.wormhole if board in WORMHOLE else self.grayskull

    def source(self, seed: int = 0) -> Source | Generation:
        """The module in eval mode, with statistics of batch norms that are not 0 and 1, and its inputs; or programs."""
        torch.manual_seed(seed)
        made = self.build()
        if isinstance(made, Generation):
            return made
        return _fitted(*made) if self.fitted else (settled(made[0]), made[1])

    def shown(self, rate: float) -> float:
        """Runs a second in the unit of the published figures."""
        return self.runs / rate if self.runs else rate

    def ratio(self, rate: float, board: str) -> float | None:
        """How many times as fast as what was published; None where that is not a comparison."""
        if board not in self.figures or not self.whole:
            return None
        return self.figures[board] / self.shown(rate) if self.runs else rate / self.figures[board]


def _fitted(module: nn.Module, inputs: tuple[Tensor, ...]) -> Source:
    """In eval mode, with the statistics of the inputs in batch norms."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.momentum = 1.0
    with torch.no_grad():
        module.train()(*inputs)
    return module.eval(), inputs


class Called(nn.Module):
    """A model of transformers or diffusers with its inputs by name, and the first tensor that it gives."""

    def __init__(self, inner: nn.Module, *names: str) -> None:
        super().__init__()
        self.inner = inner
        self.names = names

    def forward(self, *inputs: Tensor) -> Tensor:
        """What the model gives first: scores, or hidden states."""
        return self.inner(**dict(zip(self.names, inputs, strict=True)), return_dict=False)[0]


def _image(size: int = 224, batch: int = 1) -> Tensor:
    return torch.randn(batch, 3, size, size)


def _transformers(config: str, cls: str, name: str, given: Callable[[], Tensor], **words: Any) -> Callable[[], Source]:
    def build() -> Source:
        package = importlib.import_module("transformers")
        made = getattr(package, f"{config}Config")(**words)
        made._attn_implementation = "eager"
        return Called(getattr(package, cls)(made), name), (given(),)

    return build


def _seen(config: str, **words: Any) -> Callable[[], Source]:
    return _transformers(config, f"{config}ForImageClassification", "pixel_values", _image, num_labels=1000, **words)


def _timm(name: str) -> Callable[[], Source]:
    return lambda: (importlib.import_module("timm").create_model(name), (_image(),))


def _pytorchcv(name: str) -> Callable[[], Source]:
    def build() -> Source:
        providers = importlib.import_module("pytorchcv.model_provider")
        return providers.get_model(name, pretrained=False), (_image(),)

    return build


def _bert_large() -> Source:
    package = importlib.import_module("transformers")
    config = package.BertConfig(  # labels of one tile: as quick as two, of which any two results have a PCC of 1 or -1
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, num_labels=32
    )
    config._attn_implementation = "eager"
    module = Called(package.BertForSequenceClassification(config), "input_ids", "attention_mask")
    return module, (torch.randint(0, 30522, (1, 384)), torch.ones(1, 384, dtype=torch.int64))


def _yolov5s() -> Source:
    from pathlib import Path

    package = importlib.import_module("yolov5.models.yolo")
    assert package.__file__ is not None
    module = package.Model(str(Path(package.__file__).parent / "yolov5s.yaml"), ch=3).eval()
    with torch.no_grad():
        module(_image(320))  # makes the grids of anchors, which the exporter then finds
    return First(module), (_image(320),)


def _unet() -> Source:
    from zoo.vendor import unet

    return unet()


def _diffusion() -> Source:
    package = importlib.import_module("diffusers")
    module = package.UNet2DConditionModel(sample_size=64, cross_attention_dim=768, attention_head_dim=8)
    inputs = torch.randn(1, 4, 64, 64), torch.tensor([500]), torch.randn(1, 77, 768)
    return Called(module, "sample", "timestep", "encoder_hidden_states"), inputs


def _falcon() -> Generation:
    return generation.falcon(num_hidden_layers=4)


def _t5(**words: Any) -> Callable[[], Generation]:
    return lambda: generation.t5(d_model=1024, d_kv=64, num_layers=24, num_heads=16, **words)


def _whisper() -> Generation:
    return generation.whisper(
        d_model=768,
        encoder_layers=12,
        decoder_layers=12,
        encoder_attention_heads=12,
        decoder_attention_heads=12,
        encoder_ffn_dim=3072,
        decoder_ffn_dim=3072,
    )


def _columns(*figures: float | None) -> dict[str, float]:
    """In the order of the published columns."""
    boards = (*GRAYSKULL, *WORMHOLE)
    return {board: figure for board, figure in zip(boards, figures, strict=True) if figure is not None}


_IMAGES = "images/s"
_SENTENCES = "sentences/s"
_PACE = "tokens/s"

MODELS: Mapping[str, Model] = {
    model.name: model
    for model in (
        Model(
            "bert_large", "BERT-Large", "transformers BertForSequenceClassification", "384 tokens", _SENTENCES,
            _bert_large, _columns(81, 99, 118, 103, None), LOW, LOW,
        ),
        Model(
            "t5_large", "T5-Large", "transformers T5ForConditionalGeneration", "64 tokens", _PACE,
            _t5(d_ff=4096), _columns(25, 30, 75, 68, None), Settings(microbatch=1), Settings(microbatch=1),
        ),
        Model(
            "flan_t5_large", "FLAN-T5-Large", "transformers T5ForConditionalGeneration, gated GELU", "64 tokens", _PACE,
            _t5(d_ff=2816, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
            _columns(9, 25, 71, 52, None), Settings(microbatch=1), Settings(microbatch=1),
        ),
        Model(
            "whisper_small", "Whisper-Small", "transformers WhisperForConditionalGeneration", "30 s of sound", _PACE,
            _whisper, _columns(3.4, 3.7, 16, 10, None), Settings(microbatch=1), Settings(microbatch=1),
        ),
        Model(
            "falcon_7b", "Falcon-7B", "transformers FalconForCausalLM, 4 of 32 layers", "128 tokens", _PACE,
            _falcon, _columns(None, None, 76, 77, None), Settings(microbatch=32), Settings(microbatch=32),
            whole=False,
        ),
        Model(
            "stable_diffusion", "Stable Diffusion 1.4", "diffusers UNet2DConditionModel", "64x64 latents",
            "seconds/image", _diffusion, _columns(None, None, 50, 50, None), Settings(microbatch=1),
            Settings(microbatch=1), runs=100,
        ),
        Model(
            "resnet50", "ResNet-50", "transformers ResNetForImageClassification", "3x224x224", _IMAGES,
            _seen("ResNet"), _columns(1106, 1410, 2891, 1060, 2000), Settings("Bfp8_b", "LoFi", 256),
        ),
        Model(
            "vovnet", "VoVNet-V2", "timm ese_vovnet39b", "3x224x224", _IMAGES,
            _timm("ese_vovnet39b"), _columns(518, 819, 1603, 1197, 1931), Settings("Bfp8_b", "LoFi", 128),
        ),
        Model(
            "mobilenet_v1", "MobileNet-V1", "transformers MobileNetV1ForImageClassification", "3x224x224", _IMAGES,
            _seen("MobileNetV1"), _columns(2468, 2924, 3102, 2338, 2978), Settings("Bfp8_b", "LoFi", 128),
        ),
        Model(
            "mobilenet_v2", "MobileNet-V2", "transformers MobileNetV2ForImageClassification", "3x224x224", _IMAGES,
            _seen("MobileNetV2"), _columns(1141, 1491, 2721, 2439, 4332), Settings("Bfp8_b", "LoFi", 256),
        ),
        Model(
            "mobilenet_v3", "MobileNet-V3", "timm mobilenetv3_large_100", "3x224x224", _IMAGES,
            _timm("mobilenetv3_large_100"), _columns(1192, 1741, 1981, 1670, 2017), Settings("Float16_b", "HiFi2", 64),
        ),
        Model(
            "hrnet", "HRNet-V2", "pytorchcv hrnetv2_w64", "3x224x224", _IMAGES,
            _pytorchcv("hrnetv2_w64"), _columns(197, 233, 324, 257, 269), Settings("Bfp8_b", "LoFi", 128), LOW,
        ),
        Model(
            "vit_base", "ViT-Base", "transformers ViTForImageClassification", "3x224x224", _IMAGES,
            _seen("ViT"), _columns(301, 363, 540, 447, 546), Settings("Bfp8_b", "LoFi", 256), LOW,
        ),
        Model(
            "deit_base", "DeiT-Base", "transformers ViTForImageClassification", "3x224x224", _IMAGES,
            _seen("ViT"), _columns(301, 363, 539, 446, 545), Settings("Bfp8_b", "LoFi", 256), LOW,
        ),
        Model(
            "yolov5s", "YOLOv5-Small", "yolov5 s", "3x320x320", _IMAGES,
            _yolov5s, _columns(290, 232, 1190, 1090, 1435), Settings(microbatch=128),
        ),
        Model(
            "openpose", "OpenPose-2D", "pytorchcv lwopenpose2d_mobilenet_cmupan_coco", "3x224x224", _IMAGES,
            _pytorchcv("lwopenpose2d_mobilenet_cmupan_coco"), _columns(828, 1098, 1252, 1204, 1805),
            Settings("Float16"), Settings("Float16"),
        ),
        Model(
            "unet", "U-Net", "written out in benchmarks/zoo/vendor.py", "3x256x256", _IMAGES,
            _unet, _columns(222, 268, 490, 344, 547), LOW, fitted=True,
        ),
        Model(
            "inception_v4", "Inception-v4", "timm inception_v4", "3x224x224", _IMAGES,
            _timm("inception_v4"), _columns(371, 458, 1061, 1116, 1810), Settings("Bfp8_b", "LoFi", 128),
        ),
    )
}  # fmt: skip
