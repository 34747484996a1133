"""The models that generate text, as programs with caches: an encoder that runs once, and a decoder that takes a window
of 32 tokens and what the caches hold of earlier ones (docs/compile/generate.md). Layers are the library's own; what
stands here is how they are called."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    """A model cut into programs, `decode` and perhaps `encode`, which is given `source`. `scores` is the original,
    without caches: tokens [1, n] give scores [1, n, words]."""

    programs: dict[str, be.Program]
    scores: Callable[[Tensor], Tensor]
    prompt: Sequence[int]
    source: tuple[Tensor, ...] = ()

    @torch.no_grad()
    def greedy(self, count: int) -> list[int]:
        """What the original generates: each time the likeliest token, all tokens computed anew."""
        tokens = list(self.prompt)
        for _ in range(count):
            tokens.append(int(self.scores(torch.tensor([tokens]))[0, -1].argmax()))
        return tokens[len(self.prompt) :]


class Past:
    """The caches of a decoder, as transformers asks for them: keys and values of earlier windows, behind which those of
    the present one are put. Beside it what an encoder gave."""

    def __init__(self, own: Caches, given: Caches = ()) -> None:
        utils = importlib.import_module("transformers.cache_utils")

        class Layer(utils.DynamicLayer):
            """Keeps apart what is new."""

            def __init__(self, keys: Tensor, values: Tensor) -> None:
                super().__init__()
                self.keys = keys
                self.values = values
                self.is_initialized = True
                self.new: Caches = ()

            def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> Caches:
                """Both along the dimension of tokens."""
                self.new = key_states, value_states
                return torch.cat([self.keys, key_states], 2), torch.cat([self.values, value_states], 2)

        def cache(tensors: Caches) -> Any:
            return utils.Cache(layers=[Layer(*pair) for pair in zip(tensors[::2], tensors[1::2], strict=True)])

        self.own = self.cache = cache(own)
        if given:
            self.cache = utils.EncoderDecoderCache(self.own, cache(given))
            self.cache.is_updated = dict.fromkeys(range(len(self.own.layers)), True)

    def new(self) -> Caches:
        """What the window's slot is to hold."""
        return tuple(item for layer in self.own.layers for item in layer.new)


class Decoder(nn.Module):
    """A window of tokens and its positions, then the caches: scores, and what the caches are to hold of the window. A
    subclass says what becomes of tokens: `scores`."""

    def __init__(self, model: Any, length: int, given: int = 0) -> None:
        super().__init__()
        self.model = model
        self.length = length
        self.given = given

    def forward(self, tokens: Tensor, positions: Tensor, *caches: Tensor) -> tuple[Tensor, ...]:
        """Scores [1, window, words], keys and values by layer."""
        past = Past(caches[self.given :], caches[: self.given])
        earlier = torch.where(torch.arange(self.length) < positions[:, :1], 0.0, FAR)[:, None, None]
        own = torch.full((WINDOW, WINDOW), FAR).triu(1)[None, None]
        mask = torch.cat([earlier.expand(1, 1, WINDOW, self.length), own], 3)
        return self.scores(tokens, positions, mask, past), *past.new()

    def scores(self, tokens: Tensor, positions: Tensor, mask: Tensor, past: Past) -> Tensor:
        """Of each word, for each token of the window. `mask`: [1, 1, window, length + window]."""
        raise NotImplementedError


class T5Decoder(Decoder):
    """Its layers take the bias of positions beside the mask: that of earlier tokens hangs on the window's positions."""

    rows: Tensor
    near: Tensor

    def __init__(self, model: Any, length: int, given: int) -> None:
        super().__init__(model, length, given)
        attention = model.decoder.block[0].layer[0].SelfAttention
        whole = attention.compute_bias(length, length)[0].detach()  # heads, queries, keys
        self.register_buffer("rows", whole.permute(1, 0, 2).contiguous())
        self.register_buffer("near", whole[None, :, :WINDOW, :WINDOW].contiguous())

    def scores(self, tokens: Tensor, positions: Tensor, mask: Tensor, past: Past) -> Tensor:
        """See Decoder."""
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
    """The library's decoder as it is."""

    def scores(self, tokens: Tensor, positions: Tensor, mask: Tensor, past: Past) -> Tensor:
        """See Decoder."""
        decoder = self.model.model.decoder
        given = torch.zeros(1, 1, decoder.config.d_model)  # only says that there is a source: keys lie in the caches
        found = decoder(tokens, mask, given, cache=past.cache, position_ids=positions, use_cache=True, return_dict=True)
        return self.model.proj_out(found.last_hidden_state)


class FalconDecoder(Decoder):
    """The library's model as it is."""

    def scores(self, tokens: Tensor, positions: Tensor, mask: Tensor, past: Past) -> Tensor:
        """See Decoder."""
        return self.model(
            tokens, attention_mask=mask, position_ids=positions, cache=past.cache, use_cache=True, return_dict=True
        ).logits


class Encoder(nn.Module):
    """The source's keys and values for each attention of the decoder to it."""

    def __init__(self, encoder: nn.Module, projections: Sequence[tuple[nn.Module, nn.Module]], heads: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = heads
        self.projections = nn.ModuleList(nn.ModuleList(pair) for pair in projections)

    def forward(self, source: Tensor) -> tuple[Tensor, ...]:
        """[1, heads, places, size] each."""
        x = self.encoder(source, return_dict=False)[0]
        made = [projection(x) for pair in self.projections.children() for projection in pair.children()]
        return tuple(item.reshape(1, item.shape[1], self.heads, -1).transpose(1, 2) for item in made)


def sharpened(module: Module, scores: float = 4) -> Module:
    """With larger matrices and smaller embeddings, so that tokens hang on what layers compute, and differ. `scores`:
    how much larger those of queries and keys are, by which attention amplifies what rounding does."""
    scaled: dict[int, nn.Embedding | nn.Linear | nn.Conv1d] = {}
    for part in module.modules():  # embeddings first: some share their weights with the last product
        if isinstance(part, nn.Embedding):
            scaled.setdefault(id(part.weight), part)
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Conv1d):
            scaled.setdefault(id(part.weight), part)
    with torch.no_grad():
        for part in scaled.values():
            part.weight.mul_(0.3 if isinstance(part, nn.Embedding) else 4)
        for name, part in module.named_modules():
            if scores != 4 and isinstance(part, nn.Linear) and name.endswith((".q", ".k")):
                part.weight.mul_(scores / 4)
    return module.eval()


def _caches(layers: int, heads: int, length: int, size: int) -> Caches:
    return tuple(torch.zeros(1, heads, length, size) for _ in range(2 * layers))


def _decode(decoder: Decoder, given: Caches, own: Caches) -> be.Program:
    """Torch's exporter names the tensors of `*caches` one after the other."""
    window = torch.zeros(1, WINDOW, dtype=torch.int64), torch.arange(WINDOW)[None]
    keeps = {number + 1: f"caches_{len(given) + number}" for number in range(len(own))}
    return be.Program(decoder, (*window, *given, *own), keeps)


def _both(encoder: Encoder, decoder: Decoder, source: Tensor, own: Caches) -> dict[str, be.Program]:
    with torch.no_grad():
        given = tuple(torch.zeros_like(item) for item in encoder(source))
    keeps = {number: f"caches_{number}" for number in range(len(given))}
    return {"encode": be.Program(encoder, (source,), keeps), "decode": _decode(decoder, given, own)}


def _scores(model: nn.Module, **words: Any) -> Callable[[Tensor], Tensor]:
    return lambda tokens: model(decoder_input_ids=tokens, use_cache=False, **words).logits


def t5(length: int = 64, places: int = 64, **words: Any) -> Generation:
    """T5 and FLAN-T5: `words` are those of the library's T5Config."""
    package = importlib.import_module("transformers")
    config = package.T5Config(**words)
    config._attn_implementation = "eager"
    model = sharpened(package.T5ForConditionalGeneration(config), 3 if config.num_layers >= DEEP else 4)
    source = torch.randint(0, config.vocab_size, (1, places))
    attentions = [block.layer[1].EncDecAttention for block in model.decoder.block]
    encoder = Encoder(model.encoder, [(item.k, item.v) for item in attentions], config.num_heads).eval()
    decoder = T5Decoder(model, length, 2 * len(attentions)).eval()
    own = _caches(len(attentions), config.num_heads, length, config.d_kv)
    with torch.no_grad():
        hidden = model.encoder(source, return_dict=True)
    programs = _both(encoder, decoder, source, own)
    return Generation(programs, _scores(model, encoder_outputs=hidden), [0], (source,))


def whisper(length: int = 448, **words: Any) -> Generation:
    """Whisper: `words` are those of the library's WhisperConfig."""
    package = importlib.import_module("transformers")
    config = package.WhisperConfig(**words)
    config._attn_implementation = "eager"
    model = sharpened(package.WhisperForConditionalGeneration(config))
    sound = torch.randn(1, config.num_mel_bins, 2 * config.max_source_positions)
    attentions = [layer.encoder_attn for layer in model.model.decoder.layers]
    heads = config.decoder_attention_heads
    encoder = Encoder(model.model.encoder, [(item.k_proj, item.v_proj) for item in attentions], heads).eval()
    decoder = WhisperDecoder(model, length, 2 * len(attentions)).eval()
    own = _caches(len(attentions), heads, length, config.d_model // heads)
    with torch.no_grad():
        hidden = model.model.encoder(sound, return_dict=True)
    programs = _both(encoder, decoder, sound, own)
    return Generation(programs, _scores(model, encoder_outputs=hidden), [config.decoder_start_token_id], (sound,))


def falcon(length: int = 128, **words: Any) -> Generation:
    """Falcon: `words` are those of the library's FalconConfig."""
    package = importlib.import_module("transformers")
    config = package.FalconConfig(**words)
    config._attn_implementation = "eager"
    model = sharpened(package.FalconForCausalLM(config))
    heads = 1 if config.multi_query and not config.new_decoder_architecture else config.num_attention_heads
    own = _caches(config.num_hidden_layers, heads, length, config.hidden_size // config.num_attention_heads)
    prompt = torch.randint(0, config.vocab_size, (20,)).tolist()
    programs = {"decode": _decode(FalconDecoder(model, length).eval(), (), own)}
    return Generation(programs, lambda tokens: model(tokens, use_cache=False).logits, prompt)
