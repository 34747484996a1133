"""Stable Diffusion whole: its text encoder, its U-Net in a loop with the scheduler on the host, its decoder of images.
The parts are those of the libraries; the loop is that of the pipeline of diffusers, with guidance."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .models import Called

GUIDANCE = 7.5
"""The factor by which a step follows the prompt beyond the prediction without it."""
Part = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Diffusion:
    """The parts of Stable Diffusion. `text` turns tokens [1, n] into states, `unet` latents, time and states into
    noise, and `decoder` latents into an image. `scheduler` makes a new scheduler for a number of steps, and `scale`
    is the factor by which the decoder's latents are divided."""

    text: nn.Module
    unet: nn.Module
    decoder: nn.Module
    scheduler: Callable[[int], Any]
    scale: float

    def image(self, parts: Sequence[Part], prompts: Sequence[Tensor], latents: Tensor, steps: int) -> np.ndarray:
        """Return the image [1, 3, height, width] that noise [1, 4, h, w] becomes in some steps. `parts` compute what
        `text`, `unet` and `decoder` do; `prompts` are the tokens of the prompt and those of the empty prompt."""
        text, unet, decoder = parts
        states = [_tensor(text(tokens)) for tokens in prompts]
        scheduler = self.scheduler(steps)
        latents = latents * scheduler.init_noise_sigma
        for time in scheduler.timesteps:
            model_input = scheduler.scale_model_input(latents, time)
            with_prompt, without_prompt = (_tensor(unet(model_input, time[None], state)) for state in states)
            latents = scheduler.step(
                without_prompt + GUIDANCE * (with_prompt - without_prompt), time, latents
            ).prev_sample
        return _tensor(decoder(latents / self.scale)).numpy()


class Decoded(nn.Module):
    """The half of an autoencoder that turns latents into images."""

    def __init__(self, vae: Any) -> None:
        super().__init__()
        self.vae = vae

    def forward(self, latents: Tensor) -> Tensor:
        """Return the image [1, 3, height, width] of some latents."""
        return self.vae.decode(latents, return_dict=False)[0]


def diffusion(size: int, width: int, layers: int, words: int, places: int) -> Diffusion:
    """Return a Stable Diffusion with random weights: latents of `size` places on a side, `width` channels (twice as
    many in the lower half), `layers` layers of text, a vocabulary of `words`, and prompts of `places` tokens."""
    diffusers = importlib.import_module("diffusers")
    transformers = importlib.import_module("transformers")
    config = transformers.CLIPTextConfig(
        vocab_size=words,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        max_position_embeddings=places,
        bos_token_id=0,
        eos_token_id=words - 1,
    )
    config._attn_implementation = "eager"
    unet = diffusers.UNet2DConditionModel(
        sample_size=size,
        block_out_channels=(width, 2 * width),
        layers_per_block=1,
        cross_attention_dim=width,
        attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )
    vae = diffusers.AutoencoderKL(
        block_out_channels=(width, width),
        latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )

    def make_scheduler(steps: int) -> Any:
        pndm = diffusers.PNDMScheduler(
            beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", skip_prk_steps=True, steps_offset=1
        )
        pndm.set_timesteps(steps)
        return pndm

    return Diffusion(
        text=Called(transformers.CLIPTextModel(config), "input_ids").eval(),
        unet=Called(unet, "sample", "timestep", "encoder_hidden_states").eval(),
        decoder=Decoded(vae).eval(),
        scheduler=make_scheduler,
        scale=vae.config.scaling_factor,
    )


def _tensor(output: Any) -> Tensor:
    """Return the output of a module as it is, or the only output of a compiled model as a tensor."""
    return output if isinstance(output, Tensor) else torch.from_numpy(np.asarray(output[0]))
