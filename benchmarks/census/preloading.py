"""Imported by the server of the processes once, so that no process has to: the compiler, torch, and what most models of
the libraries import. A tiny model is compiled and run, which loads the rest of torch and the kernels."""

import importlib
import importlib.util
import warnings
from typing import Final

import torch

import buda_emu as be

from .libraries import declare_missing_operators, installed_libraries
from .offline import stay_offline

_MODULES: Final = (
    "torchvision.models", "timm.models", "transformers.modeling_utils", "transformers.generation",
    "transformers.models.auto.modeling_auto", "transformers.models.bert.modeling_bert",
    "transformers.models.llama.modeling_llama", "diffusers.models", "monai.networks.nets", "onnxruntime",
)  # fmt: skip


def preload() -> None:
    """Import and compile."""
    stay_offline()
    declare_missing_operators()
    torch.set_num_threads(1)  # a process with threads cannot be forked
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in (*installed_libraries(), *_MODULES):
            if importlib.util.find_spec(name.partition(".")[0]) is not None:
                importlib.import_module(name)
        be.compile(torch.nn.Linear(4, 4), (torch.ones(1, 4),), effort="low")(torch.ones(1, 4))


preload()
