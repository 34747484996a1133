"""The models that generate text, as programs with caches: an encoder that runs once, and a decoder that takes a window
of 32 tokens and what the caches hold of earlier ones (docs/compile/generate.md). Layers are the library's own; what
stands here is how they are called."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

import buda_emu as be

WINDOW = 32
DEEP = 24
"""Layers of a T5 with which the original itself is no longer the same in float32 and float64, if scores are 16 times as
large: PCC 0.955. If they are 9 times as large it is 0.9999999 (FLAN-T5: 0.999997)."""
FAR = -1e9
Caches = tuple[Tensor, ...]
Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True, slots=True)
class Generation:
    """A model cut into programs: `decode` and perhaps `encode`, whose input is `source`. `scores` is the original
    without caches: it maps tokens [1, n] to scores [1, n, words]."""

    programs: dict[str, be.Program]
    scores: Callable[[Tensor], Tensor]
    prompt: Sequence[int]
    source: tuple[Tensor, ...] = ()

    @torch.no_grad()
    def greedy(self, count: int) -> list[int]:
        """Return the tokens that the original generates: each time the likeliest one, with all tokens computed anew."""
        tokens = list(self.prompt)
        for _ in range(count):
            tokens.append(int(self.scores(torch.tensor([tokens]))[0, -1].argmax()))
        return tokens[len(self.prompt) :]


class Past:
    """The caches of a decoder in the classes of transformers: keys and values of earlier windows, to which those of the
    present window are appended, and beside them the encoder's keys and values (`source_caches`)."""

    def __init__(self, own_caches: Caches, source_caches: Caches = ()) -> None:
        utils = importlib.import_module("transformers.cache_utils")

        class Layer(utils.DynamicLayer):
            """A cache of one layer that stores the new keys and values apart from the earlier ones."""

            def __init__(self, keys: Tensor, values: Tensor) -> None:
                super().__init__()
                self.keys = keys
                self.values = values
                self.is_initialized = True
                self.new: Caches = ()

            def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> Caches:
                """Store new keys and values, and return all of them, concatenated along the dimension of tokens."""
                self.new = key_states, value_states
                return torch.cat([self.keys, key_states], 2), torch.cat([self.values, value_states], 2)

        def cache(tensors: Caches) -> Any:
            return utils.Cache(layers=[Layer(*pair) for pair in zip(tensors[::2], tensors[1::2], strict=True)])

        self.own = self.cache = cache(own_caches)
        if source_caches:
            self.cache = utils.EncoderDecoderCache(self.own, cache(source_caches))
            self.cache.is_updated = dict.fromkeys(range(len(self.own.layers)), True)

    def new(self) -> Caches:
        """Return keys and values of the present window, layer by layer, which go into the caches' slot of the
        window."""
        return tuple(chain.from_iterable(layer.new for layer in self.own.layers))


class Decoder(nn.Module):
    """A decoder that takes a window of tokens, their positions and the caches, and returns scores and the keys and
    values of the window. The first `source_caches` caches are the encoder's. A subclass computes the scores."""

    def __init__(self, model: Any, length: int, source_caches: int = 0) -> None:
        super().__init__()
        self.model = model
        self.length = length
        self.source_caches = source_caches

    def forward(self, tokens: Tensor, positions: Tensor, *caches: Tensor) -> tuple[Tensor, ...]:
        """Return scores [1, window, words], then keys and values by layer."""
        past = Past(caches[self.source_caches :], caches[: self.source_caches])
        earlier = torch.where(torch.arange(self.length) < positions[:, :1], 0.0, FAR)[:, None, None]
        within = torch.full((WINDOW, WINDOW), FAR).triu(1)[None, None]
        mask = torch.cat([earlier.expand(1, 1, WINDOW, self.length), within], 3)
        return self.scores(tokens, positions, mask, past), *past.new()

    def scores(self, tokens: Tensor, positions: Tensor, mask: Tensor, past: Past) -> Tensor:
        """Return the score of each word for each token of the window. `mask`: [1, 1, window, length + window]."""
        raise NotImplementedError


class T5Decoder(Decoder):
    """The decoder of T5. Its layers add a bias of positions to the mask; for earlier tokens it depends on the window's
    positions."""

    rows: Tensor
    near: Tensor

    def __init__(self, model: Any, length: int, source_caches: int) -> None:
        super().__init__(model, length, source_caches)
        attention = model.decoder.block[0].layer[0].SelfAttention
        bias = attention.compute_bias(length, length)[0].detach()  # heads, queries, keys
        self.register_buffer("rows", bias.permute(1, 0, 2).contiguous())
        self.register_buffer("near", bias[None, :, :WINDOW, :WINDOW].contiguous())

    def scores(self, tokens: Tensor, positions: Tensor, mask: Tensor, past: Past) -> Tensor:
        """Return the scores; see `Decoder.scores`."""
        decoder = self.model.decoder
        cross = None
        bias = torch.cat([self.rows[positions[0]].permute(1, 0, 2)[None], self.near], 3) + mask
        x = decoder.embed_tokens(tokens)
        for block in decoder.block:
            x, bias, cross = block(x, None, bias, x, None, cross, cache=past.cache)
        x = decoder.final_layer_norm(x)
        if self.model.config.scale_decoder_outputs:
            x = x * self.model.model_dim**-0.5
        return self.model.lm_head(x)


class WhisperDecoder(Decoder):
    """The library's decoder of Whisper, unchanged."""

    def scores(self, tokens: Tensor, positions: Tensor, mask: Tensor, past: Past) -> Tensor:
        """Return the scores; see `Decoder.scores`."""
        decoder = self.model.model.decoder
        placeholder = torch.zeros(
            1, 1, decoder.config.d_model
        )  # only says that there is a source: keys lie in the caches
        outputs = decoder(
            tokens, mask, placeholder, cache=past.cache, position_ids=positions, use_cache=True, return_dict=True
        )
        return self.model.proj_out(outputs.last_hidden_state)


class FalconDecoder(Decoder):
    """The library's model of Falcon, unchanged."""

    def scores(self, tokens: Tensor, positions: Tensor, mask: Tensor, past: Past) -> Tensor:
        """Return the scores; see `Decoder.scores`."""
        return self.model(
            tokens, attention_mask=mask, position_ids=positions, cache=past.cache, use_cache=True, return_dict=True
        ).logits


class Encoder(nn.Module):
    """An encoder that returns keys and values of the source for each cross attention of the decoder."""

    def __init__(self, encoder: nn.Module, projections: Sequence[tuple[nn.Module, nn.Module]], heads: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = heads
        self.projections = nn.ModuleList(nn.ModuleList(pair) for pair in projections)

    def forward(self, source: Tensor) -> tuple[Tensor, ...]:
        """Return keys and values [1, heads, places, size], attention by attention."""
        x = self.encoder(source, return_dict=False)[0]
        projections = chain.from_iterable(pair.children() for pair in self.projections.children())
        projected = [projection(x) for projection in projections]
        return tuple(tensor.reshape(1, tensor.shape[1], self.heads, -1).transpose(1, 2) for tensor in projected)


def sharpen(module: Module, scores: float = 4) -> Module:
    """Make the matrices of a module larger and its embeddings smaller, so that tokens differ and depend on what layers
    compute. `scores` is the factor of the matrices of queries and keys; attention amplifies rounding errors with it."""
    with torch.no_grad():
        for part in _parts_with_weights(module):
            part.weight.mul_(0.3 if isinstance(part, nn.Embedding) else 4)
        for name, part in module.named_modules():
            if scores != 4 and isinstance(part, nn.Linear) and name.endswith((".q", ".k")):
                part.weight.mul_(scores / 4)
    return module.eval()


def _parts_with_weights(module: nn.Module) -> list[nn.Embedding | nn.Linear | nn.Conv1d]:
    """Return the parts of a module that have weights, one for each weight. Some models share an embedding's weights
    with the last product; such weights count as the embedding's."""
    parts: dict[int, nn.Embedding | nn.Linear | nn.Conv1d] = {}
    for part in module.modules():
        if isinstance(part, nn.Embedding):
            parts.setdefault(id(part.weight), part)
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Conv1d):
            parts.setdefault(id(part.weight), part)
    return list(parts.values())


def _caches(layers: int, heads: int, length: int, size: int) -> Caches:
    """Return empty caches: keys and values [1, heads, length, size] for each layer."""
    return tuple(torch.zeros(1, heads, length, size) for _ in range(2 * layers))


def _decode(decoder: Decoder, source_caches: Caches, own_caches: Caches) -> be.Program:
    """Return the program of a decoder. Torch's exporter numbers the tensors of `*caches` in their order, and the keeps
    name them so."""
    window = torch.zeros(1, WINDOW, dtype=torch.int64), torch.arange(WINDOW)[None]
    keeps = {number + 1: f"caches_{len(source_caches) + number}" for number in range(len(own_caches))}
    return be.Program(decoder, (*window, *source_caches, *own_caches), keeps)


def _encode_and_decode(encoder: Encoder, decoder: Decoder, source: Tensor, own_caches: Caches) -> dict[str, be.Program]:
    """Return the programs of an encoder and its decoder."""
    with torch.no_grad():
        source_caches = tuple(torch.zeros_like(tensor) for tensor in encoder(source))
    keeps = {number: f"caches_{number}" for number in range(len(source_caches))}
    return {"encode": be.Program(encoder, (source,), keeps), "decode": _decode(decoder, source_caches, own_caches)}


def _scores(model: nn.Module, **words: Any) -> Callable[[Tensor], Tensor]:
    """Return a function from tokens to the scores of the original, which takes further arguments from `words`."""
    return lambda tokens: model(decoder_input_ids=tokens, use_cache=False, **words).logits


def t5(length: int = 64, places: int = 64, **words: Any) -> Generation:
    """Return a T5 or FLAN-T5 as programs; `words` are arguments of the library's T5Config."""
    package = importlib.import_module("transformers")
    config = package.T5Config(**words)
    config._attn_implementation = "eager"
    model = sharpen(package.T5ForConditionalGeneration(config), 3 if config.num_layers >= DEEP else 4)
    source = torch.randint(0, config.vocab_size, (1, places))
    attentions = [block.layer[1].EncDecAttention for block in model.decoder.block]
    encoder = Encoder(model.encoder, [(attention.k, attention.v) for attention in attentions], config.num_heads).eval()
    decoder = T5Decoder(model, length, 2 * len(attentions)).eval()
    own_caches = _caches(len(attentions), config.num_heads, length, config.d_kv)
    with torch.no_grad():
        hidden = model.encoder(source, return_dict=True)
    programs = _encode_and_decode(encoder, decoder, source, own_caches)
    return Generation(programs, _scores(model, encoder_outputs=hidden), [0], (source,))


def whisper(length: int = 448, **words: Any) -> Generation:
    """Return a Whisper as programs; `words` are arguments of the library's WhisperConfig."""
    package = importlib.import_module("transformers")
    config = package.WhisperConfig(**words)
    config._attn_implementation = "eager"
    model = sharpen(package.WhisperForConditionalGeneration(config))
    sound = torch.randn(1, config.num_mel_bins, 2 * config.max_source_positions)
    attentions = [layer.encoder_attn for layer in model.model.decoder.layers]
    heads = config.decoder_attention_heads
    encoder = Encoder(
        model.model.encoder, [(attention.k_proj, attention.v_proj) for attention in attentions], heads
    ).eval()
    decoder = WhisperDecoder(model, length, 2 * len(attentions)).eval()
    own_caches = _caches(len(attentions), heads, length, config.d_model // heads)
    with torch.no_grad():
        hidden = model.model.encoder(sound, return_dict=True)
    programs = _encode_and_decode(encoder, decoder, sound, own_caches)
    return Generation(programs, _scores(model, encoder_outputs=hidden), [config.decoder_start_token_id], (sound,))


def falcon(length: int = 128, **words: Any) -> Generation:
    """Return a Falcon as programs; `words` are arguments of the library's FalconConfig."""
    package = importlib.import_module("transformers")
    config = package.FalconConfig(**words)
    config._attn_implementation = "eager"
    model = sharpen(package.FalconForCausalLM(config))
    heads = 1 if config.multi_query and not config.new_decoder_architecture else config.num_attention_heads
    own_caches = _caches(config.num_hidden_layers, heads, length, config.hidden_size // config.num_attention_heads)
    prompt = torch.randint(0, config.vocab_size, (20,)).tolist()
    programs = {"decode": _decode(FalconDecoder(model, length).eval(), (), own_caches)}
    return Generation(programs, lambda tokens: model(tokens, use_cache=False).logits, prompt)
