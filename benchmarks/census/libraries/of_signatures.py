"""Models that are built by the names of their arguments: vit_pytorch, monai, and models and blocks of diffusers."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Final

import torch
from torch import Tensor, nn

from . import Built, LibrarySource, Outputs, check_size
from .shrinking import shrink_words

_ARGUMENTS: Final[Mapping[str, Any]] = {
    # widths and counts
    "dim": 48, "depth": 2, "cls_depth": 1, "heads": 3, "mlp_dim": 80, "dim_head": 16, "num_classes": 10, "classes": 10,
    "sm_dim": 32, "lg_dim": 48, "spatial_depth": 1, "temporal_depth": 1, "hidden_size": 48, "num_heads": 3,
    "num_layers": 2, "hidden_channels": (16, 24), "latent_size": 12, "num_channels": 8, "embedding_dim": 48,
    "embed_dim": 48, "num_attention_heads": 3, "attention_head_dim": 16, "time_embed_dim": 48, "dim_in": 48,
    "dim_out": 40, "in_dim": 32, "mid_channels": 32, "inp_channels": 32, "channels": 32, "conditioning_dim": 48,
    "conditioning_embedding_dim": 48, "pooled_projection_dim": 48, "inner_dim": 80, "temb_channels": 48,
    "prev_output_channel": 32, "cross_attention_dim": 48, "num_domains": 2, "mlp_mult": 2, "num_residual_streams": 2,
    "query_dim": 48, "context_dim": 48, "n_heads": 3, "d_head": 16, "in_features": 48, "out_dim": 40, "num_groups": 8,
    "eps": 1e-5, "norm_eps": 1e-5, "norm_elementwise_affine": True, "num_hierarchies": 2, "block_repeats": (1, 1),
    "num_slots": 4, "sr_ratio": 2, "act_fn": "gelu", "resolution_idx": 0, "time_mix_inner_dim": 48, "bias": True,
    # images and pictures with depth
    "image_size": 64, "patch_size": 16, "image_patch_size": 16, "frames": 4, "frame_patch_size": 2,
    "freq_patch_size": 8,
    "img_size": (32, 32), "seq_len": 64, "spatial_dims": 2, "in_channels": 32, "out_channels": 32, "in_channel": 32,
    "out_channel": 32, "kernel_size": 3, "stride": 1, "strides": (2, 2), "upsample_kernel_size": 2,
    "norm_name": "batch",
    "in_shape": (1, 32, 32), "out_shape": (3,), "num_channel_initial": 8, "extract_levels": (0, 1), "label_nc": 3,
    "norm_nc": 32, "inplanes": 32, "planes": 16, "groups": 1, "reduction": 4, "num_d": 2, "num_layers_d": 2,
    "layers": (1, 1, 1, 1), "block_inplanes": (16, 24, 32, 40), "block": "basic", "conv_out_channels": 8,
    "ffn_expansion_factor": 2.0, "model_name": "efficientnet-b0", "backbone": "efficientnet-b0", "ndim": 2,
    "input_shape": (64, 64), "num_tokens": 64, "max_seq_len": 32, "attn_layers_dim": 48, "attn_layers_depth": 2,
    "attn_layers_heads": 3, "input_image_size": (32, 32), "latent_shape": 12, "start_shape": (8, 4, 4),
    "n_chns_1": 16, "n_chns_2": 16, "n_chns_3": 32, "encode_channels": (16, 24), "decode_channels": (24, 16),
    "normalized_shape": 48, "num_embed": 16, "height": 4, "width": 4, "reduction_factor": (8, 4, 2, 1),
}  # fmt: skip
"""By name of an argument that a class requires, a small value."""
_CHANNELS_OF: Final = {"vit_pytorch": 3, "monai": 32, "diffusers": 32}
_OPTIONAL: Final = ("temb", "encoder_hidden_states")
"""Names of inputs that a block may be built to need, whatever its signature says."""
_ROOMS: Final = {
    "monai": ("monai.networks.nets", "monai.networks.blocks"),
    "diffusers": (
        "diffusers.models.unets.unet_2d_blocks", "diffusers.models.unets.unet_1d_blocks", "diffusers.models.resnet",
        "diffusers.models.attention", "diffusers.models.downsampling", "diffusers.models.upsampling",
        "diffusers.models.embeddings", "diffusers.models.normalization", "diffusers.models.activations",
    ),
}  # fmt: skip
"""Modules whose classes are built by the names of their arguments."""


class BySignature(LibrarySource):
    """The classes of some modules that require no argument but those of the table."""

    library: str = ""

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield the classes by module, each once."""
        seen: set[type[Any]] = set()
        for room in self.rooms():
            try:
                module = importlib.import_module(room)
            except ImportError:  # one that needs a further package
                continue
            for name, value in sorted(vars(module).items()):
                if not inspect.isclass(value) or not issubclass(value, nn.Module) or value in seen:
                    continue
                if value.__module__.startswith(self.library) and self.takes(module, value):
                    seen.add(value)
                    yield value.__module__.rpartition(".")[2], f"{room}:{name}"

    def rooms(self) -> Iterator[str]:
        """Yield the modules to search."""
        yield from _ROOMS[self.library]

    def takes(self, module: Any, kind: type[nn.Module]) -> bool:  # noqa: ARG002 - subclasses read the module
        """Return whether all required arguments of a class are in the table."""
        return all(name in _ARGUMENTS for name in required_arguments(kind))

    def build(self, name: str) -> Built:
        """Return the class with the values of the table, and the first inputs that it runs with."""
        room, _, class_name = name.partition(":")
        kind = getattr(importlib.import_module(room), class_name)
        words = {argument: _ARGUMENTS[argument] for argument in required_arguments(kind)}
        if words.get("strides") == (2, 2) and "channels" in words:
            words["channels"] = (8, 16, 24) if "kernel_size" not in words else (8, 16)
        return with_inputs(kind(**words), self.library)


class VitPytorch(BySignature):
    """One module for each architecture."""

    library = "vit_pytorch"

    def rooms(self) -> Iterator[str]:
        """Yield the modules of the package."""
        package = importlib.import_module("vit_pytorch")
        for entry in pkgutil.iter_modules(package.__path__):
            yield f"vit_pytorch.{entry.name}"

    def takes(self, module: Any, kind: type[nn.Module]) -> bool:
        """Return whether it is the architecture that the module is named after."""
        is_model = kind.__module__ == module.__name__ and kind.__name__ not in (
            "Attention",
            "FeedForward",
            "Transformer",
        )
        return is_model and super().takes(module, kind)


class Monai(BySignature):
    """Networks and blocks for medical images."""

    library = "monai"


class Diffusers(BySignature):
    """Blocks by the names of their arguments, then whole models with their default configuration made small."""

    library = "diffusers"

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield blocks, then models."""
        yield from super().names()
        package = importlib.import_module("diffusers")
        for name in sorted(dir(package)):
            kind = getattr(package, name, None)
            if inspect.isclass(kind) and issubclass(kind, package.ModelMixin) and hasattr(kind, "load_config"):
                yield name, f"diffusers:{name}"

    def build(self, name: str) -> Built:
        """Return a block, or a model in small."""
        room, _, class_name = name.partition(":")
        if room != "diffusers":
            return super().build(name)
        kind = getattr(importlib.import_module(room), class_name)
        parameters = inspect.signature(kind.__init__).parameters
        defaults = {key: entry.default for key, entry in parameters.items() if entry.default is not entry.empty}
        return with_inputs(kind(**shrink_words(defaults)), self.library)


def required_arguments(kind: type[nn.Module]) -> list[str]:
    """Return the names of the arguments without a default."""
    return [name for name, parameter in inspect.signature(kind).parameters.items() if _has_no_default(parameter)]


def _has_no_default(parameter: inspect.Parameter) -> bool:
    """Return whether an argument must be given by name or place."""
    named = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return named and parameter.default is parameter.empty


def with_inputs(model: nn.Module, library: str) -> Built:
    """Return the model with the first inputs that it runs with: images with or without depth, sequences, vectors.
    Raises the first error of those that it refuses."""
    model = model.eval()
    check_size(sum(parameter.numel() for parameter in model.parameters()))
    parameters = inspect.signature(model.forward).parameters
    required = [name for name, entry in parameters.items() if _has_no_default(entry)][1:]
    optional = [name for name in _OPTIONAL if name in parameters and name not in required]
    problem: Exception = ValueError("no inputs")
    choices = dict.fromkeys(((*required, *optional), tuple(required)))
    for number, (names, first) in enumerate(product(choices, _first_inputs(model, library))):
        inputs = [first, *(_further_input(name, first) for name in names)]
        called = Outputs(model, ["", *names])
        try:
            with torch.no_grad():
                called(*inputs)
        except Exception as error:  # noqa: BLE001 - as each model refuses inputs in its own way
            problem = problem if number else error
        else:
            return called, tuple(inputs)
    raise problem


def _first_inputs(model: nn.Module, library: str) -> Iterator[Tensor]:
    """Yield first inputs to try: images, sequences, words, vectors and volumes."""
    config = getattr(model, "config", {})
    channels = getattr(model, "in_channels", None) or (config.get("in_channels") if hasattr(config, "get") else None)
    counts = dict.fromkeys((channels if isinstance(channels, int) else _CHANNELS_OF[library], 32, 3, 1, 4))
    for count in counts:
        yield torch.randn(1, count, 64, 64) if library == "vit_pytorch" else torch.randn(1, count, 32, 32)
    yield torch.randn(1, 19, 48)
    yield torch.randint(3, 60, (1, 19))
    yield torch.randn(1, 48)
    yield torch.randn(1, 32, 16)
    for count in counts:
        yield torch.randn(1, count, 4, 64, 64) if library == "vit_pytorch" else torch.randn(1, count, 16, 16, 16)
    yield torch.randn(1, 224, 224, 3).movedim(-1, 1).contiguous()
    yield torch.randn(1)


def _further_input(name: str, first: Tensor) -> Tensor:
    """Return an input beside the first, by its name."""
    if name in ("temb", "emb", "t", "time_emb", "conditioning_embedding", "pooled_projection"):
        return torch.randn(1, 48)
    if name in ("timestep", "timesteps", "guidance"):
        return torch.full((1,), 7.0)
    if name in ("class_labels", "labels"):
        return torch.full((1,), 2)
    if name in ("encoder_hidden_states", "context", "objs", "text_embeds"):
        return torch.randn(1, 11, 48)
    return torch.randn(first.shape)


SOURCES: Mapping[str, type[LibrarySource]] = {"vit_pytorch": VitPytorch, "monai": Monai, "diffusers": Diffusers}
