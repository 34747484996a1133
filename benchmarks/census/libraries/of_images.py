"""Models of images whose libraries name them: timm, torchvision, pytorchcv, segmentation_models_pytorch, open_clip."""

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import torch

from . import Built, LibrarySource, Outputs, check_size
from .shrinking import shrink_words

_SIZES: Final = (
    "femto", "atto", "pico", "nano", "zepto", "xxx", "xx", "tiny", "mini", "_t", "x_small", "xs", "small", "_s", "_0",
    "b0", "18", "lite", "medium", "base", "_b", "large", "_l", "huge", "giant", "gigantic", "enormous",
)  # fmt: skip
"""Words for sizes, the smallest first."""


def _rank(name: str) -> tuple[int, int, str]:
    """Order names of one family by what they say of the size, then by the first number in them."""
    place = next((place for place, word in enumerate(_SIZES) if word in name), len(_SIZES) // 2)
    number = re.search(r"\d+", name)
    return place, int(number[0]) if number else 0, name


class Timm(LibrarySource):
    """The models of `timm.list_models()`; a family is a module of timm."""

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield all models."""
        timm = importlib.import_module("timm")
        registry = importlib.import_module("timm.models._registry")
        for name in sorted(timm.list_models(), key=_rank):
            yield registry._model_to_module[name], name

    def build(self, name: str) -> Built:
        """Return the model for small images, or for those that it is made for."""
        timm = importlib.import_module("timm")
        with torch.device("meta"):
            check_size(sum(parameter.numel() for parameter in timm.create_model(name).parameters()))
        channels, *sizes = timm.models.get_pretrained_cfg(name).input_size
        for size, words in ((64, {}), (64, {"img_size": 64}), (sizes[0], {})):
            try:
                model = timm.create_model(name, num_classes=29, **words).eval()
                inputs = (torch.randn(1, channels, size, size),)
                with torch.no_grad():
                    model(*inputs)
            except Exception as error:  # noqa: BLE001 - as each model refuses sizes in its own way
                problem = error
            else:
                return Outputs(model, ("",)), inputs
        raise problem


class Torchvision(LibrarySource):
    """Classification, segmentation, video, optical flow and the backbones of detection."""

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield all models but those that are quantised."""
        models = importlib.import_module("torchvision.models")
        for name in sorted(models.list_models(), key=_rank):
            if not name.startswith("quantized_"):
                yield re.split(r"_|\d", name)[0], name

    def build(self, name: str) -> Built:
        """Return the model for small images or films; of a detector its backbone."""
        models = importlib.import_module("torchvision.models")
        maker = models.get_model_builder(name)
        words: dict[str, Any] = {"weights": None}
        if "weights_backbone" in inspect.signature(maker).parameters:
            words["weights_backbone"] = None
        if name in ("googlenet", "inception_v3"):
            words["init_weights"] = True
        model = maker(**words).eval()
        if maker.__module__.startswith("torchvision.models.detection"):
            return Outputs(model.backbone, ("",)), (torch.randn(1, 3, 96, 96),)
        if maker.__module__.startswith("torchvision.models.optical_flow"):
            return Outputs(model, ("", ""), {"num_flow_updates": 2}), tuple(torch.randn(1, 3, 128, 128) for _ in "ab")
        if maker.__module__.startswith("torchvision.models.video"):
            frames, size = (16, 224) if name.startswith("mvit") else (16, 64)
            return Outputs(model, ("",)), (torch.randn(1, 3, frames, size, size),)
        size = {"inception_v3": 96, "maxvit_t": 224}.get(name, 224 if name.startswith("vit") else 64)
        return Outputs(model, ("",)), (torch.randn(1, 3, size, size),)


class PytorchCv(LibrarySource):
    """The models of `pytorchcv.model_provider`; a family is a module of it."""

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield all models."""
        provider = importlib.import_module("pytorchcv.model_provider")
        for name in sorted(provider._models, key=_rank):
            yield provider._models[name].__module__.rpartition(".")[2], name

    def build(self, name: str) -> Built:
        """Return the model for images of 64, or of its own size."""
        provider = importlib.import_module("pytorchcv.model_provider")
        with torch.device("meta"):
            model = provider._models[name]()
        check_size(sum(parameter.numel() for parameter in model.parameters()))
        channels = getattr(model, "in_channels", 3)
        native_size = getattr(model, "in_size", (224, 224))
        for size, words in (((64, 64), {"in_size": (64, 64)}), ((64, 64), {}), (native_size, {})):
            try:
                model = provider._models[name](**words).eval()
                parameters = inspect.signature(model.forward).parameters.values()
                count = sum(entry.default is entry.empty for entry in parameters)
                inputs = tuple(torch.randn(1, channels, *size) for _ in range(count))
                with torch.no_grad():
                    model(*inputs)
            except Exception as error:  # noqa: BLE001 - as each model refuses sizes in its own way
                problem = error
            else:
                return Outputs(model, [""] * count), inputs
        raise problem


class Segmentation(LibrarySource):
    """Every decoder of segmentation_models_pytorch on encoders of several families."""

    ENCODERS: Final = (
        "resnet18", "mobilenet_v2", "efficientnet-b0", "mit_b0", "timm-regnetx_002", "mobileone_s0", "densenet121",
        "vgg11", "dpn68", "timm-skresnet18", "se_resnet50", "timm-mobilenetv3_small_100", "xception", "timm-gernet_s",
    )  # fmt: skip

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield decoders with encoders."""
        package = importlib.import_module("segmentation_models_pytorch")
        for encoder in self.ENCODERS:
            for decoder in package.MODEL_ARCHITECTURES_MAPPING:
                yield decoder, f"{decoder}:{encoder}"

    def build(self, name: str) -> Built:
        """Return a decoder on its encoder."""
        package = importlib.import_module("segmentation_models_pytorch")
        decoder, encoder = name.split(":")
        words = {} if decoder == "dpt" else {"encoder_name": encoder}
        model = package.create_model(decoder, encoder_weights=None, classes=3, **words)
        return Outputs(model, ("",)), (torch.randn(1, 3, 64, 64),)


class OpenClip(LibrarySource):
    """The configurations of open_clip, with few layers and small widths."""

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield all configurations."""
        for name in sorted(importlib.import_module("open_clip").list_models(), key=_rank):
            yield re.split(r"[-_]", name)[0], name

    def build(self, name: str) -> Built:
        """Return both towers, with an image and words."""
        package = importlib.import_module("open_clip")
        words = shrink_words(package.get_model_config(name))
        text = words["text_cfg"]
        image = words["vision_cfg"]
        if "hf_model_name" in text:
            raise ValueError("its tower of words is a model of transformers, which is not shipped with it")
        kind = package.CoCa if "multimodal_cfg" in words else package.CustomTextCLIP
        kind = kind if words.pop("custom_text", False) else package.CLIP
        words = {key: value for key, value in words.items() if key in inspect.signature(kind).parameters}
        with torch.device("meta"):
            check_size(sum(parameter.numel() for parameter in kind(**words).parameters()))
        model = kind(**words)
        size = image.get("image_size", 64)
        tokens = torch.randint(3, 190, (1, text.get("context_length", 77)))
        return Outputs(model, ("image", "text")), (torch.randn(1, 3, size, size), tokens)


SOURCES: Mapping[str, type[LibrarySource]] = {
    "timm": Timm,
    "torchvision": Torchvision,
    "pytorchcv": PytorchCv,
    "segmentation_models_pytorch": Segmentation,
    "open_clip": OpenClip,
}
