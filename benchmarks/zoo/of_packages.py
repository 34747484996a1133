"""Small models of transformers, timm and torchvision, where these are installed, with random weights: what
`acceptance.py` compiles beside those of `zoo/small.py`. Nothing is downloaded.
"""

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from zoo import of_transformers
from zoo.small import First, Source, settle

TIMM: dict[str, tuple[str, Mapping[str, Any], int]] = {
    "resnet18": ("resnet18", {}, 64),
    "resnext": ("resnext26ts", {}, 64),
    "seresnet": ("seresnet18", {}, 64),
    "mobilenetv2": ("mobilenetv2_035", {}, 64),
    "mobilenetv3": ("mobilenetv3_small_050", {}, 64),
    "efficientnet": ("efficientnet_lite0", {}, 64),
    "densenet": ("densenet121", {"growth_rate": 8, "block_config": (2, 3, 2)}, 64),
    "regnet": ("regnetx_002", {}, 64),
    "regnet_y": ("regnety_002", {}, 64),
    "vit_small": ("vit_tiny_patch16_224", {"img_size": 48, "embed_dim": 48, "depth": 2, "num_heads": 3}, 48),
    "swin_small": (
        "swin_tiny_patch4_window7_224", {"img_size": 56, "embed_dim": 24, "depths": (2, 2), "num_heads": (2, 4)}, 56,
    ),
    "convnext_small": ("convnext_atto", {"depths": (1, 1, 2, 1), "dims": (16, 24, 40, 56)}, 64),
    "mixer": ("mixer_s32_224", {"img_size": 64}, 64),
    "ghostnet": ("ghostnet_050", {}, 64),
    "mnasnet": ("mnasnet_small", {}, 64),
    "hardcorenas": ("hardcorenas_a", {}, 64),
    "repvgg": ("repvgg_a0", {}, 64),
    "dla": ("dla46_c", {}, 64),
    "cspnet": ("cspresnet50", {}, 64),
    "xcit": ("xcit_nano_12_p16_224", {"img_size": 64, "depth": 2}, 64),
    "pit": ("pit_ti_224", {"img_size": 64}, 64),
    "levit": ("levit_128s", {"img_size": 224}, 224),
    "edgenext": ("edgenext_xx_small", {}, 64),
    "mobilevit": ("mobilevit_xxs", {}, 64),
    "resnet10t": ("resnet10t", {}, 64),
    "skresnet": ("skresnet18", {}, 64),
    "tinynet": ("tinynet_e", {}, 64),
    "lcnet": ("lcnet_050", {}, 64),
    "efficientvit": ("efficientvit_b0", {}, 64),
    "efficientvit_m": ("efficientvit_m0", {}, 224),
    "fastvit": ("fastvit_t8", {"layers": (1, 1, 2, 1)}, 64),
    "repghost": ("repghostnet_050", {}, 64),
    "mobileone": ("mobileone_s0", {}, 64),
    "mobilenetv4": ("mobilenetv4_conv_small_035", {}, 64),
    "caformer": ("caformer_s18", {}, 64),
    "cait": ("cait_xxs24_224", {"img_size": 48, "depth": 2}, 48),
    "coat": ("coat_tiny", {"img_size": 64}, 64),
    "convit": ("convit_tiny", {"img_size": 64, "depth": 4}, 64),
    "deit3": ("deit3_small_patch16_224", {"img_size": 48, "embed_dim": 48, "depth": 2, "num_heads": 3}, 48),
    "eva02": ("eva02_tiny_patch14_224", {"img_size": 56, "depth": 2}, 56),
    "gernet": ("gernet_s", {}, 64),
    "halonet": ("halonet26t", {}, 64),
    "lambda_resnet": ("lambda_resnet26t", {}, 64),
    "botnet": ("botnet26t_256", {"img_size": 64}, 64),
    "hrnet": ("hrnet_w18_small", {}, 64),
    "nest": ("nest_tiny", {"img_size": 64}, 64),
    "nfnet": ("eca_nfnet_l0", {}, 64),
    "rexnet": ("rexnet_100", {}, 64),
    "res2net": ("res2net50_14w_8s", {}, 64),
    "resmlp": ("resmlp_12_224", {"img_size": 64}, 64),
    "gmlp": ("gmlp_ti16_224", {"img_size": 64}, 64),
    "selecsls": ("selecsls42b", {}, 64),
    "tnt": ("tnt_s_patch16_224", {"img_size": 64, "depth": 2}, 64),
    "twins": ("twins_pcpvt_small", {"img_size": 64, "depths": (1, 1, 2, 1)}, 64),
    "visformer": ("visformer_tiny", {"img_size": 64}, 64),
    "volo": ("volo_d1_224", {"img_size": 64, "layers": (1, 1, 2, 1)}, 64),
    "xception": ("xception41", {}, 64),
    "inception_next": ("inception_next_atto", {}, 64),
    "starnet": ("starnet_s1", {}, 64),
    "mambaout": ("mambaout_femto", {}, 64),
    "ghostnetv2": ("ghostnetv2_100", {}, 64),
    "hgnet": ("hgnetv2_b0", {}, 64),
    "dpn": ("dpn48b", {}, 64),
}  # fmt: skip
"""By name: timm's name of the model, its options, and the size of the image."""

TORCHVISION: dict[str, tuple[str, int]] = {
    "squeezenet": ("squeezenet1_1", 64),
    "shufflenet": ("shufflenet_v2_x0_5", 64),
    "alexnet": ("alexnet", 64),
    "googlenet": ("googlenet", 64),
    "mobilenet_v2": ("mobilenet_v2", 64),
    "fcn": ("segmentation.fcn_resnet50", 64),
    "vgg": ("vgg11_bn", 64),
    "mnasnet": ("mnasnet0_5", 64),
    "efficientnet": ("efficientnet_b0", 64),
    "convnext": ("convnext_tiny", 64),
    "regnet_y": ("regnet_y_400mf", 64),
    "resnext": ("resnext50_32x4d", 64),
    "densenet": ("densenet121", 64),
    "inception": ("inception_v3", 96),
    "deeplab": ("segmentation.deeplabv3_mobilenet_v3_large", 64),
    "swin": ("swin_t", 64),
    "swin_v2": ("swin_v2_t", 64),
    "lraspp": ("segmentation.lraspp_mobilenet_v3_large", 64),
}


def _timm(name: str, words: Mapping[str, Any], size: int) -> Source:
    """Return a model of timm with 29 classes, and an image."""
    package = importlib.import_module("timm")
    return package.create_model(name, num_classes=29, **words), (torch.randn(1, 3, size, size),)


def _torchvision(name: str, size: int) -> Source:
    """Return a model of torchvision, and an image."""
    models = importlib.import_module("torchvision.models")
    room, _, last = name.rpartition(".")
    maker = getattr(getattr(models, room) if room else models, last)
    words: dict[str, Any] = {}
    if room:
        words["weights_backbone"] = None
    elif last in ("googlenet", "inception_v3"):
        words["init_weights"] = True
    return First(maker(weights=None, **words)), (torch.randn(1, 3, size, size),)


def _fill_empty_parameters(module: nn.Module) -> nn.Module:
    """Give random values to parameters that begin as zeros, as biases and layer scales do: zeros would hide faults."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.numel() and parameter.abs().max() < 1e-3:
                parameter.normal_(std=0.1)
    return module


def models() -> dict[str, Callable[[], Source]]:
    """Return, by name, functions that build the seeded models of the installed packages."""

    def seeded_builder(build: Callable[..., Source], name: str, row: tuple[Any, ...]) -> Callable[[], Source]:
        def build_model() -> Source:
            torch.manual_seed(sum(map(ord, name)))
            module, inputs = build(*row)
            return _fill_empty_parameters(settle(module)), inputs

        return build_model

    builders: dict[str, Callable[[], Source]] = {}
    for package, build, rows in (
        ("transformers", of_transformers.build_model, of_transformers.TRANSFORMERS),
        ("timm", _timm, TIMM),
        ("torchvision", _torchvision, TORCHVISION),
    ):
        if importlib.util.find_spec(package) is not None:
            builders |= {f"{package}.{name}": seeded_builder(build, name, row) for name, row in rows.items()}
    return builders
