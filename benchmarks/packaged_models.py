"""Small models of transformers, timm and torchvision, where these are installed, with random weights: what
`acceptance.py` compiles beside those of `small_models.py`. Nothing is downloaded.
"""

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from small_models import Source, settled

TEXT = {
    "vocab_size": 211, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96,
    "max_position_embeddings": 64,
}  # fmt: skip
GROUPED = TEXT | {"num_key_value_heads": 2}
SEEN = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96, "image_size": 48,
    "patch_size": 8,
}  # fmt: skip
SPOKEN = {
    "vocab_size": 211, "d_model": 48, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 80, "decoder_ffn_dim": 80, "max_position_embeddings": 64,
}  # fmt: skip
T5 = {"vocab_size": 211, "d_model": 48, "d_kv": 12, "d_ff": 80, "num_layers": 2, "num_heads": 4}

TRANSFORMERS: dict[str, tuple[str, str, Mapping[str, Any], str]] = {
    "bert": ("Bert", "BertForSequenceClassification", TEXT, "tokens"),
    "roberta": ("Roberta", "RobertaForTokenClassification", TEXT, "tokens"),
    "distilbert": (
        "DistilBert", "DistilBertForSequenceClassification",
        {"vocab_size": 211, "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 96, "max_position_embeddings": 64},
        "tokens",
    ),
    "albert": ("Albert", "AlbertModel", TEXT | {"embedding_size": 24}, "tokens"),
    "electra": ("Electra", "ElectraForSequenceClassification", TEXT | {"embedding_size": 24}, "tokens"),
    "mobilebert": (
        "MobileBert", "MobileBertModel",
        TEXT | {"hidden_size": 64, "embedding_size": 32, "intra_bottleneck_size": 32, "true_hidden_size": 32},
        "tokens",
    ),
    "mpnet": ("MPNet", "MPNetModel", TEXT, "tokens"),
    "squeezebert": ("SqueezeBert", "SqueezeBertModel", TEXT | {"embedding_size": 64}, "tokens"),
    "gpt2": ("GPT2", "GPT2LMHeadModel", {"vocab_size": 211, "n_embd": 48, "n_layer": 2, "n_head": 4}, "tokens"),
    "gpt_neox": ("GPTNeoX", "GPTNeoXForCausalLM", TEXT, "tokens"),
    "gptj": (
        "GPTJ", "GPTJForCausalLM",
        {"vocab_size": 211, "n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8, "n_positions": 64}, "tokens",
    ),
    "opt": (
        "OPT", "OPTForCausalLM",
        {"vocab_size": 211, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 96,
         "word_embed_proj_dim": 64, "max_position_embeddings": 64}, "tokens",
    ),
    "bloom": ("Bloom", "BloomForCausalLM", {"vocab_size": 211, "hidden_size": 64, "n_layer": 2, "n_head": 4}, "tokens"),
    "phi": ("Phi", "PhiForCausalLM", TEXT, "tokens"),
    "llama": ("Llama", "LlamaForCausalLM", GROUPED, "tokens"),
    "mistral": ("Mistral", "MistralForCausalLM", GROUPED | {"sliding_window": 16}, "tokens"),
    "qwen2": ("Qwen2", "Qwen2ForCausalLM", GROUPED, "tokens"),
    "qwen3": ("Qwen3", "Qwen3ForCausalLM", GROUPED | {"head_dim": 16}, "tokens"),
    "gemma": ("Gemma", "GemmaForCausalLM", GROUPED | {"head_dim": 16, "num_key_value_heads": 1}, "tokens"),
    "gemma2": ("Gemma2", "Gemma2ForCausalLM", GROUPED | {"head_dim": 16}, "tokens"),
    "stablelm": ("StableLm", "StableLmForCausalLM", GROUPED, "tokens"),
    "olmo": ("Olmo", "OlmoForCausalLM", GROUPED, "tokens"),
    "starcoder2": ("Starcoder2", "Starcoder2ForCausalLM", GROUPED, "tokens"),
    "t5": ("T5", "T5ForConditionalGeneration", T5, "pair"),
    "bart": ("Bart", "BartForConditionalGeneration", SPOKEN, "pair"),
    "marian": ("Marian", "MarianMTModel", SPOKEN | {"decoder_start_token_id": 1, "pad_token_id": 0}, "pair"),
    "pegasus": ("Pegasus", "PegasusForConditionalGeneration", SPOKEN, "pair"),
    "whisper": (
        "Whisper", "WhisperForConditionalGeneration",
        {**{word: size for word, size in SPOKEN.items() if word != "max_position_embeddings"}, "num_mel_bins": 20,
         "max_source_positions": 60, "max_target_positions": 32, "pad_token_id": 0, "bos_token_id": 1,
         "eos_token_id": 2, "decoder_start_token_id": 1, "suppress_tokens": None, "begin_suppress_tokens": None},
        "spoken",
    ),
    "vit": ("ViT", "ViTForImageClassification", SEEN, "image"),
    "deit": ("DeiT", "DeiTForImageClassification", SEEN, "image"),
    "beit": ("Beit", "BeitForImageClassification", SEEN, "image"),
    "dinov2": (
        "Dinov2", "Dinov2Model",
        {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 48, "patch_size": 8},
        "image",
    ),
    "swin": (
        "Swin", "SwinForImageClassification",
        {"image_size": 64, "patch_size": 4, "embed_dim": 24, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
        "image",
    ),
    "convnext": (
        "ConvNext", "ConvNextModel", {"hidden_sizes": [16, 24, 40], "depths": [1, 2, 1], "num_stages": 3}, "image",
    ),
    "poolformer": (
        "PoolFormer", "PoolFormerModel",
        {"hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 1, 1]}, "image",
    ),
    "segformer": (
        "Segformer", "SegformerModel",
        {"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4]}, "image",
    ),
    "clip_vision": ("CLIPVision", "CLIPVisionModel", SEEN, "image"),
    "clip_text": ("CLIPText", "CLIPTextModel", TEXT | {"eos_token_id": 2}, "tokens"),
}  # fmt: skip
"""By name the word before `Config`, the class, words of the configuration, and what goes in."""

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
}  # fmt: skip
"""By name timm's name, words, and the size of the image."""

TORCHVISION: dict[str, tuple[str, int]] = {
    "squeezenet": ("squeezenet1_1", 64),
    "shufflenet": ("shufflenet_v2_x0_5", 64),
    "alexnet": ("alexnet", 64),
    "googlenet": ("googlenet", 64),
    "mobilenet_v2": ("mobilenet_v2", 64),
    "fcn": ("segmentation.fcn_resnet50", 64),
    "lraspp": ("segmentation.lraspp_mobilenet_v3_large", 64),
}


class Called(nn.Module):
    """A model of transformers with its inputs by name, and its first output."""

    def __init__(self, inner: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.inner, self.names = inner, names

    def forward(self, *inputs: Tensor) -> Tensor:
        words = dict(zip(self.names, inputs, strict=True))
        cached = {"use_cache": False} if hasattr(self.inner.config, "use_cache") else {}
        found = self.inner(**words, **cached, return_dict=True)
        return found.logits if hasattr(found, "logits") else found.last_hidden_state


class First(nn.Module):
    """A model of torchvision, or the first of what it gives by name."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        found = self.inner(x)
        return next(iter(found.values())) if isinstance(found, dict) else found


def _transformers(word: str, cls: str, words: Mapping[str, Any], given: str) -> Source:
    package = importlib.import_module("transformers")
    config = getattr(package, f"{word}Config")(**words)
    config._attn_implementation = "eager"
    tokens = torch.randint(3, 200, (1, 19))
    inputs: dict[str, Tensor] = {
        "tokens": {"input_ids": tokens, "attention_mask": torch.ones(1, 19, dtype=torch.int64)},
        "pair": {"input_ids": tokens, "decoder_input_ids": torch.randint(3, 200, (1, 13))},
        "spoken": {"input_features": torch.randn(1, 20, 120), "decoder_input_ids": torch.randint(3, 200, (1, 13))},
        "image": {"pixel_values": torch.randn(1, 3, words.get("image_size", 64), words.get("image_size", 64))},
    }[given]
    return Called(getattr(package, cls)(config), tuple(inputs)), tuple(inputs.values())


def _timm(name: str, words: Mapping[str, Any], size: int) -> Source:
    package = importlib.import_module("timm")
    return package.create_model(name, num_classes=29, **words), (torch.randn(1, 3, size, size),)


def _torchvision(name: str, size: int) -> Source:
    models = importlib.import_module("torchvision.models")
    room, _, last = name.rpartition(".")
    maker = getattr(getattr(models, room) if room else models, last)
    words = {"weights_backbone": None} if room else {"init_weights": True} if last == "googlenet" else {}
    return First(maker(weights=None, **words)), (torch.randn(1, 3, size, size),)


def models() -> dict[str, Callable[[], Source]]:
    """By name, of the packages that are installed; seeded."""

    def seeded(build: Callable[..., Source], name: str, row: tuple[Any, ...]) -> Callable[[], Source]:
        def made() -> Source:
            torch.manual_seed(sum(map(ord, name)))
            module, inputs = build(*row)
            return settled(module), inputs

        return made

    found: dict[str, Callable[[], Source]] = {}
    for package, build, rows in (
        ("transformers", _transformers, TRANSFORMERS),
        ("timm", _timm, TIMM),
        ("torchvision", _torchvision, TORCHVISION),
    ):
        if importlib.util.find_spec(package) is not None:
            found |= {f"{package}.{name}": seeded(build, name, row) for name, row in rows.items()}
    return found
