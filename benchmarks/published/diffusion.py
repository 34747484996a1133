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
"""How far beyond what is seen without the prompt a step goes."""
Part = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Diffusion:
    """`text`: tokens [1, n] to states; `unet`: latents, time and states to noise; `decoder`: latents to an image;
    `scheduler` makes a new one, told the number of steps. `scale`: of the latents as the decoder takes them."""

    text: nn.Module
    unet: nn.Module
    decoder: nn.Module
    scheduler: Callable[[int], Any]
    scale: float

    def image(self, parts: Sequence[Part], prompts: Sequence[Tensor], latents: Tensor, steps: int) -> np.ndarray:
        """An image [1, 3, height, width] of noise [1, 4, h, w], by parts that compute what `text`, `unet` and `decoder`
        do. `prompts`: the tokens of the prompt, and those of none."""
        text, unet, decoder = parts
        states = [_tensor(text(tokens)) for tokens in prompts]
        scheduler = self.scheduler(steps)
        latents = latents * scheduler.init_noise_sigma
        for time in scheduler.timesteps:
            given = scheduler.scale_model_input(latents, time)
            told, free = (_tensor(unet(given, time[None], item)) for item in states)
            latents = scheduler.step(free + GUIDANCE * (told - free), time, latents).prev_sample
        return _tensor(decoder(latents / self.scale)).numpy()


class Decoded(nn.Module):
    """The half of an autoencoder that makes images."""

    def __init__(self, vae: Any) -> None:
        super().__init__()
        self.vae = vae

    def forward(self, latents: Tensor) -> Tensor:
        """[1, 3, height, width]."""
        return self.vae.decode(latents, return_dict=False)[0]


def diffusion(size: int, width: int, layers: int, words: int, places: int) -> Diffusion:
    """One with random weights: latents of `size` places on a side, `width` channels at first and twice as many below,
    so many layers of text, words, and tokens of a prompt."""
    library = importlib.import_module("diffusers")
    text = importlib.import_module("transformers")
    config = text.CLIPTextConfig(
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
    unet = library.UNet2DConditionModel(
        sample_size=size,
        block_out_channels=(width, 2 * width),
        layers_per_block=1,
        cross_attention_dim=width,
        attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )
    vae = library.AutoencoderKL(
        block_out_channels=(width, width),
        latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )

    def scheduler(steps: int) -> Any:
        made = library.PNDMScheduler(
            beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", skip_prk_steps=True, steps_offset=1
        )
        made.set_timesteps(steps)
        return made

    return Diffusion(
        Called(text.CLIPTextModel(config), "input_ids").eval(),
        Called(unet, "sample", "timestep", "encoder_hidden_states").eval(),
        Decoded(vae).eval(),
        scheduler,
        vae.config.scaling_factor,
    )


def _tensor(found: Any) -> Tensor:
    """What a module gives, or the only output of a compiled one."""
    return found if isinstance(found, Tensor) else torch.from_numpy(np.asarray(found[0]))
