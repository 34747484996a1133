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

from zoo.small import First, Source, settle

from . import generation
from .extras import EXTRAS
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
    """The settings that a model was compiled with: format, fidelity, and inputs of a round."""

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
    """One row of the table. `build` returns a module and its inputs, or programs that generate text. `figures` has the
    published figures by board: results per second, or, if `runs` is not 0, the seconds of so many runs. `whole` is
    False if fewer layers are measured than were published. `fitted`: batch norms take their statistics from the
    input, since with random ones the output would hardly differ from place to place."""

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

    @property
    def package(self) -> str:
        """The package that builds the model; empty for a model that is written out in this folder."""
        package = self.library.split()[0]
        return package if package in EXTRAS else ""

    def settings(self, board: str) -> Settings:
        """Return the settings of a board's column."""
        return self.wormhole if board in WORMHOLE else self.grayskull

    def source(self, seed: int = 0) -> Source | Generation:
        """Return programs, or the module in eval mode and its inputs. Batch norms have statistics other than 0 and
        1."""
        torch.manual_seed(seed)
        source = self.build()
        if isinstance(source, Generation):
            return source
        return _fit_norms(*source) if self.fitted else (settle(source[0]), source[1])

    def in_published_unit(self, rate: float) -> float:
        """Return a rate (runs per second) in the unit of the published figures."""
        return self.runs / rate if self.runs else rate

    def ratio(self, rate: float, board: str) -> float | None:
        """Return the modelled speed as a multiple of the published one; None if the two cannot be compared."""
        if board not in self.figures or not self.whole:
            return None
        return self.figures[board] / self.in_published_unit(rate) if self.runs else rate / self.figures[board]


def _fit_norms(module: nn.Module, inputs: tuple[Tensor, ...]) -> Source:
    """Put a module into eval mode, with the statistics of the inputs in its batch norms."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.momentum = 1.0
    with torch.no_grad():
        module.train()(*inputs)
    return module.eval(), inputs


class Called(nn.Module):
    """A model of transformers or diffusers that takes its inputs by name and returns its first tensor."""

    def __init__(self, inner: nn.Module, *names: str) -> None:
        super().__init__()
        self.inner = inner
        self.names = names

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the model's first output: scores, or hidden states."""
        return self.inner(**dict(zip(self.names, inputs, strict=True)), return_dict=False)[0]


def _image(size: int = 224, batch: int = 1) -> Tensor:
    """Return random images [batch, 3, size, size]."""
    return torch.randn(batch, 3, size, size)


def _transformers(
    config: str, cls: str, name: str, make_input: Callable[[], Tensor], **words: Any
) -> Callable[[], Source]:
    """Return a function that builds a class of transformers, whose input is called `name`, with a configuration of
    `words`."""

    def build() -> Source:
        package = importlib.import_module("transformers")
        settings = getattr(package, f"{config}Config")(**words)
        settings._attn_implementation = "eager"
        return Called(getattr(package, cls)(settings), name), (make_input(),)

    return build


def _image_classifier(config: str, **words: Any) -> Callable[[], Source]:
    """Return a function that builds an image classifier of transformers."""
    return _transformers(config, f"{config}ForImageClassification", "pixel_values", _image, num_labels=1000, **words)


def _timm(name: str) -> Callable[[], Source]:
    """Return a function that builds a model of timm."""
    return lambda: (importlib.import_module("timm").create_model(name), (_image(),))


def _pytorchcv(name: str) -> Callable[[], Source]:
    """Return a function that builds a model of pytorchcv."""

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
    """Return figures by board, from the order of the published columns."""
    boards = (*GRAYSKULL, *WORMHOLE)
    return {board: figure for board, figure in zip(boards, figures, strict=True) if figure is not None}


_IMAGES = "images/s"
_SENTENCES = "sentences/s"
_PACE = "tokens/s"

MODELS: Mapping[str, Model] = {
    model.name: model
    for model in (
        Model(
            name="bert_large",
            title="BERT-Large",
            library="transformers BertForSequenceClassification",
            input="384 tokens",
            unit=_SENTENCES,
            build=_bert_large,
            figures=_columns(81, 99, 118, 103, None),
            wormhole=LOW,
            grayskull=LOW,
        ),
        Model(
            name="t5_large",
            title="T5-Large",
            library="transformers T5ForConditionalGeneration",
            input="64 tokens",
            unit=_PACE,
            build=_t5(d_ff=4096),
            figures=_columns(25, 30, 75, 68, None),
            wormhole=Settings(microbatch=1),
            grayskull=Settings(microbatch=1),
        ),
        Model(
            name="flan_t5_large",
            title="FLAN-T5-Large",
            library="transformers T5ForConditionalGeneration, gated GELU",
            input="64 tokens",
            unit=_PACE,
            build=_t5(d_ff=2816, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
            figures=_columns(9, 25, 71, 52, None),
            wormhole=Settings(microbatch=1),
            grayskull=Settings(microbatch=1),
        ),
        Model(
            name="whisper_small",
            title="Whisper-Small",
            library="transformers WhisperForConditionalGeneration",
            input="30 s of sound",
            unit=_PACE,
            build=_whisper,
            figures=_columns(3.4, 3.7, 16, 10, None),
            wormhole=Settings(microbatch=1),
            grayskull=Settings(microbatch=1),
        ),
        Model(
            name="falcon_7b",
            title="Falcon-7B",
            library="transformers FalconForCausalLM, 4 of 32 layers",
            input="128 tokens",
            unit=_PACE,
            build=_falcon,
            figures=_columns(None, None, 76, 77, None),
            wormhole=Settings(microbatch=32),
            grayskull=Settings(microbatch=32),
            whole=False,
        ),
        Model(
            name="stable_diffusion",
            title="Stable Diffusion 1.4",
            library="diffusers UNet2DConditionModel",
            input="64x64 latents",
            unit="seconds/image",
            build=_diffusion,
            figures=_columns(None, None, 50, 50, None),
            wormhole=Settings(microbatch=1),
            grayskull=Settings(microbatch=1),
            runs=100,
        ),
        Model(
            name="resnet50",
            title="ResNet-50",
            library="transformers ResNetForImageClassification",
            input="3x224x224",
            unit=_IMAGES,
            build=_image_classifier("ResNet"),
            figures=_columns(1106, 1410, 2891, 1060, 2000),
            wormhole=Settings("Bfp8_b", "LoFi", 256),
        ),
        Model(
            name="vovnet",
            title="VoVNet-V2",
            library="timm ese_vovnet39b",
            input="3x224x224",
            unit=_IMAGES,
            build=_timm("ese_vovnet39b"),
            figures=_columns(518, 819, 1603, 1197, 1931),
            wormhole=Settings("Bfp8_b", "LoFi", 128),
        ),
        Model(
            name="mobilenet_v1",
            title="MobileNet-V1",
            library="transformers MobileNetV1ForImageClassification",
            input="3x224x224",
            unit=_IMAGES,
            build=_image_classifier("MobileNetV1"),
            figures=_columns(2468, 2924, 3102, 2338, 2978),
            wormhole=Settings("Bfp8_b", "LoFi", 128),
        ),
        Model(
            name="mobilenet_v2",
            title="MobileNet-V2",
            library="transformers MobileNetV2ForImageClassification",
            input="3x224x224",
            unit=_IMAGES,
            build=_image_classifier("MobileNetV2"),
            figures=_columns(1141, 1491, 2721, 2439, 4332),
            wormhole=Settings("Bfp8_b", "LoFi", 256),
        ),
        Model(
            name="mobilenet_v3",
            title="MobileNet-V3",
            library="timm mobilenetv3_large_100",
            input="3x224x224",
            unit=_IMAGES,
            build=_timm("mobilenetv3_large_100"),
            figures=_columns(1192, 1741, 1981, 1670, 2017),
            wormhole=Settings("Float16_b", "HiFi2", 64),
        ),
        Model(
            name="hrnet",
            title="HRNet-V2",
            library="pytorchcv hrnetv2_w64",
            input="3x224x224",
            unit=_IMAGES,
            build=_pytorchcv("hrnetv2_w64"),
            figures=_columns(197, 233, 324, 257, 269),
            wormhole=Settings("Bfp8_b", "LoFi", 128),
            grayskull=LOW,
        ),
        Model(
            name="vit_base",
            title="ViT-Base",
            library="transformers ViTForImageClassification",
            input="3x224x224",
            unit=_IMAGES,
            build=_image_classifier("ViT"),
            figures=_columns(301, 363, 540, 447, 546),
            wormhole=Settings("Bfp8_b", "LoFi", 256),
            grayskull=LOW,
        ),
        Model(
            name="deit_base",
            title="DeiT-Base",
            library="transformers ViTForImageClassification",
            input="3x224x224",
            unit=_IMAGES,
            build=_image_classifier("ViT"),
            figures=_columns(301, 363, 539, 446, 545),
            wormhole=Settings("Bfp8_b", "LoFi", 256),
            grayskull=LOW,
        ),
        Model(
            name="yolov5s",
            title="YOLOv5-Small",
            library="yolov5 s",
            input="3x320x320",
            unit=_IMAGES,
            build=_yolov5s,
            figures=_columns(290, 232, 1190, 1090, 1435),
            wormhole=Settings(microbatch=128),
        ),
        Model(
            name="openpose",
            title="OpenPose-2D",
            library="pytorchcv lwopenpose2d_mobilenet_cmupan_coco",
            input="3x224x224",
            unit=_IMAGES,
            build=_pytorchcv("lwopenpose2d_mobilenet_cmupan_coco"),
            figures=_columns(828, 1098, 1252, 1204, 1805),
            wormhole=Settings("Float16"),
            grayskull=Settings("Float16"),
        ),
        Model(
            name="unet",
            title="U-Net",
            library="written out in benchmarks/zoo/vendor.py",
            input="3x256x256",
            unit=_IMAGES,
            build=_unet,
            figures=_columns(222, 268, 490, 344, 547),
            wormhole=LOW,
            fitted=True,
        ),
        Model(
            name="inception_v4",
            title="Inception-v4",
            library="timm inception_v4",
            input="3x224x224",
            unit=_IMAGES,
            build=_timm("inception_v4"),
            figures=_columns(371, 458, 1061, 1116, 1810),
            wormhole=Settings("Bfp8_b", "LoFi", 128),
        ),
    )
}
