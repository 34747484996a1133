"""Every model class of transformers that its tables of automatic classes name."""

import importlib
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import torch
from torch import Tensor, nn

from zoo.of_transformers import TRANSFORMERS

from . import Built, LibrarySource, Outputs, check_size
from .shrinking import shrink_words

WORDS: Final = 19
"""Tokens of an input."""
_MAKERS = tuple[Callable[[type[Any]], Any], ...]


class Transformers(LibrarySource):
    """Model classes by type of configuration: the base model first, then those with heads."""

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield all classes of all types."""
        tables = importlib.import_module("transformers.models.auto.modeling_auto")
        names = sorted(name for name in vars(tables) if name.endswith("_MAPPING_NAMES") and name.startswith("MODEL_"))
        names.sort(key=lambda name: name != "MODEL_MAPPING_NAMES")
        classes: dict[tuple[str, str], None] = {}
        for table in names:
            for kind, entry in getattr(tables, table).items():
                for class_name in (entry,) if isinstance(entry, str) else entry:
                    classes[kind, class_name] = None
        for kind, class_name in classes:
            yield kind, f"{kind}:{class_name}"

    def build(self, name: str) -> Built:
        """Return the class with the first small configuration in which it runs."""
        class_name = name.partition(":")[2]
        model_class = getattr(importlib.import_module("transformers"), class_name)
        problems: list[Exception] = []
        for make in (_configuration_of_zoo, _small, _narrow, _shallow):
            try:
                config = make(model_class.config_class)
                return _with_inputs(model_class, config)
            except Exception as error:  # noqa: BLE001 - as each class refuses configurations in its own way
                problems.append(error)
        raise next((error for error in problems if not isinstance(error, LookupError)), problems[-1])


@cache
def _words_of_zoo() -> Mapping[str, Mapping[str, Any]]:
    """Return the words of configurations that `zoo/of_transformers.py` lists, by the configuration's class."""
    words: dict[str, Mapping[str, Any]] = {}
    for kind, _, entry, _ in TRANSFORMERS.values():
        words.setdefault(f"{kind}Config", entry)
    return words


def _configuration_of_zoo(config_class: type[Any]) -> Any:
    """Return the configuration that the zoo lists. Raises KeyError if it lists none."""
    return config_class(**_words_of_zoo()[config_class.__name__])


def _small(config_class: type[Any]) -> Any:
    """Return the default configuration with all sizes made small."""
    return config_class(**shrink_words(_default_words(config_class)))


def _narrow(config_class: type[Any]) -> Any:
    """Return the same with the widths of the parts that have configurations of their own, and small widths outside."""
    words = _default_words(config_class)
    inner = {name: shrink_words(value, widths=False) for name, value in words.items() if isinstance(value, dict)}
    return config_class(**{**shrink_words(words), **inner})


def _shallow(config_class: type[Any]) -> Any:
    """Return the default configuration with few layers, words and positions, at its own widths."""
    return config_class(**shrink_words(_default_words(config_class), widths=False))


def _default_words(config_class: type[Any]) -> dict[str, Any]:
    """Return the words of the default configuration that its class takes."""
    words = config_class().to_dict()
    parameters = inspect.signature(config_class.__init__).parameters
    left_out = ("transformers_version", "architectures", "model_type", "torch_dtype", "dtype")
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return {name: value for name, value in words.items() if name not in left_out and (open_ended or name in parameters)}


def _with_inputs(model_class: type[Any], config: Any) -> Built:
    """Return the model, seeded as the process is, with the first inputs that it runs with. Raises the first error of
    those that it refuses."""
    config._attn_implementation = "eager"
    with torch.device("meta"):
        check_size(sum(parameter.numel() for parameter in model_class(config).parameters()))
    model: nn.Module = model_class(config).float().eval()
    parameters = inspect.signature(model.forward).parameters
    constants = {name: value for name, value in (("use_cache", False), ("return_dict", True)) if name in parameters}
    problem: Exception = ValueError(f"no inputs for {', '.join(parameters)}")
    for number, inputs in enumerate(_candidates(model, config, parameters)):
        if model_class.__name__.endswith("ForMultipleChoice"):
            inputs = {name: value[:, None].expand(-1, 2, *value.shape[1:]).clone() for name, value in inputs.items()}
        called = Outputs(model, tuple(inputs), constants)
        try:
            with torch.no_grad():
                called(*inputs.values())
        except Exception as error:  # noqa: BLE001 - as above
            problem = problem if number else error
        else:
            return called, tuple(inputs.values())
    raise problem


def _candidates(model: Any, config: Any, parameters: Mapping[str, Any]) -> Iterator[dict[str, Tensor]]:
    """Yield inputs by name: all kinds that the model takes, then its main one."""
    makers = {name: maker for name, maker in _INPUTS.items() if name in parameters}
    main = getattr(model, "main_input_name", "input_ids")
    required = [name for name, parameter in parameters.items() if _needs_value(parameter)]
    for names in _choices(makers, main, required, _useless_inputs(config, makers, required)):
        for variant in range(3):
            inputs = {name: makers[name](config, variant) for name in names}
            if "input_ids" in inputs and "attention_mask" in inputs:
                inputs["attention_mask"] = torch.ones(inputs["input_ids"].shape, dtype=torch.int64)
            yield inputs


def _needs_value(parameter: inspect.Parameter) -> bool:
    """Return whether an argument has no default and a name."""
    return parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD


def _useless_inputs(config: Any, makers: Collection[str], required: Collection[str]) -> set[str]:
    """Return the inputs that a model would not read: a mask of words without words, inputs of an absent decoder."""
    useless: set[str] = set()
    if "input_ids" not in makers and "attention_mask" not in required:
        useless.add("attention_mask")
    if not getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" not in required:
        useless.update(name for name in makers if name.startswith("decoder_"))
    if "decoder_input_ids" not in makers and "decoder_attention_mask" not in required:
        useless.add("decoder_attention_mask")
    return useless


def _choices(
    makers: Iterable[str], main: str, required: Sequence[str], useless: Collection[str]
) -> Iterator[tuple[str, ...]]:
    """Yield the sets of inputs to try, each once and in the order of the makers, without the useless inputs."""
    optional = ("attention_mask", "pixel_mask", "decoder_attention_mask")
    choices = (
        (main, *required, "decoder_input_ids", *_SEEN_OR_HEARD, *optional),
        (main, *required, "decoder_input_ids", "attention_mask"),
        (main, *required),
        ("input_ids", "attention_mask", *required),
    )
    useful = [name for name in makers if name not in useless]
    sets = dict.fromkeys(tuple(name for name in useful if name in choice) for choice in choices)
    yield from filter(None, sets)


def _size(config: Any, default: int, *names: str) -> int:
    """Return the first of these sizes that a configuration has, or one in it; of a pair its first."""
    inner = [value for value in vars(config).values() if hasattr(value, "to_dict")]
    for holder in (config, *inner):
        for name in names:
            value = getattr(holder, name, None)
            if isinstance(value, list | tuple) and value and isinstance(value[0], int):
                return value[0]
            if isinstance(value, int) and not isinstance(value, bool):
                return value
    return default


def _words(config: Any, variant: int) -> Tensor:
    """Return tokens, behind as many tokens of an image as it has patches, where there is a token for that."""
    length = min(WORDS, _size(config, WORDS, "max_position_embeddings"))
    tokens = torch.randint(3, min(190, _size(config, 190, "vocab_size")), (1, length))
    token = _size(config, -1, "image_token_id", "image_token_index")
    if token < 0 or variant == 2:
        return tokens
    patches = (_size(config, 64, "image_size") // max(1, _size(config, 16, "patch_size"))) ** 2
    merged = max(1, _size(config, 1, "spatial_merge_size", "scale_factor", "downsample_ratio")) ** 2
    count = patches // merged if variant == 0 else patches
    return torch.cat([torch.full((1, count), token), tokens], 1)


def _image(config: Any, variant: int) -> Tensor:
    """Return an image; a film as the second choice."""
    size = _size(config, 64, "image_size", "img_size", "input_size", "vision_config_image_size")
    channels = _size(config, 3, "num_channels", "in_channels", "in_chans")
    frames = _size(config, 4, "num_frames", "frames_per_clip", "num_image_with_embedding")
    shape = {0: (1, channels, size, size), 1: (1, frames, channels, size, size), 2: (1, channels, 64, 64)}[variant]
    return torch.randn(shape)


def _sound(config: Any, variant: int) -> Tensor:
    """Return samples of a sound; frames with bands as the second choice."""
    bands = _size(config, 24, "num_mel_bins", "feature_size", "input_feat_per_channel")
    length = _size(config, 48, "max_length", "max_source_positions")
    return torch.randn({0: (1, 640), 1: (1, length, bands), 2: (1, 1, 4000)}[variant])


def _features(config: Any, variant: int) -> Tensor:
    """Return frames of a sound with bands, in the orders that models take them."""
    bands = _size(config, 24, "num_mel_bins", "feature_projection_input_dim", "input_feat_per_channel", "n_mels")
    length = 2 * _size(config, 24, "max_source_positions")
    return torch.randn({0: (1, bands, length), 1: (1, 40, bands), 2: (1, 1, bands, 64)}[variant])


def _boxes(config: Any, variant: int) -> Tensor:
    """Return boxes of words on a page."""
    count = _words(config, variant).shape[1]
    return torch.cat([torch.randint(low, low + 20, (1, count, 2)) for low in (0, 20)], -1)


def _series(config: Any, variant: int) -> Tensor:
    """Return past values of a series."""
    length = _size(config, 32, "context_length")
    channels = _size(config, 3, "num_input_channels", "input_size")
    return torch.randn({0: (1, length, channels), 1: (1, length), 2: (1, 2 * length)}[variant])


_INPUTS: Final[Mapping[str, Callable[[Any, int], Tensor]]] = {
    "input_ids": _words,
    "attention_mask": lambda config, variant: torch.ones(1, WORDS, dtype=torch.int64),  # noqa: ARG005
    "bbox": _boxes,
    "pixel_values": _image,
    "pixel_values_videos": lambda config, _: _image(config, 1),
    "pixel_mask": lambda config, variant: torch.ones(_image(config, variant).shape[-2:], dtype=torch.int64)[None],
    "input_values": _sound,
    "input_features": _features,
    "past_values": _series,
    "decoder_input_ids": lambda config, variant: torch.randint(3, 190, (1, 13)),  # noqa: ARG005
    "decoder_attention_mask": lambda config, variant: torch.ones(1, 13, dtype=torch.int64),  # noqa: ARG005
    "visual_feats": lambda config, _: torch.randn(1, 5, _size(config, 24, "visual_feat_dim")),
    "visual_pos": lambda config, variant: torch.rand(1, 5, 4),  # noqa: ARG005
    "visual_embeds": lambda config, _: torch.randn(1, 5, _size(config, 24, "visual_embedding_dim")),
    "inputs": lambda config, _: torch.randn(1, 20, _size(config, 32, "d_model")),
    "hidden_states": lambda config, _: torch.randn(1, WORDS, _size(config, 64, "hidden_size", "d_model")),
    "inputs_embeds": lambda config, _: torch.randn(1, WORDS, _size(config, 64, "hidden_size", "d_model")),
}
"""By name of an argument what goes in, in three variants."""
_SEEN_OR_HEARD: Final = ("pixel_values", "input_features", "input_values")


SOURCES = {"transformers": Transformers}
