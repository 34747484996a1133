"""The models that the search is measured with, small ones first."""

import importlib.util
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import torch

import buda_emu as be
from conditions import SHARED
from zoo import small

CORPUS: Final = (
    "mlp", "lenet", "resnet", "mobilenet", "bert", "gpt", "vit", "llama", "t5", "whisper", "unet", "dlrm",
)  # fmt: skip
"""Models of `compile/models.py` in the shared material."""
QUICK: Final = (
    "mobilenet_v1", "resnet50", "mobilenet_v2", "mobilenet_v3", "vit_base", "bert_large", "vovnet", "openpose",
    "yolov5s", "unet", "inception_v4", "hrnet",
)  # fmt: skip
SLOW: Final = ("t5_large", "whisper_small", "flan_t5_large", "stable_diffusion", "falcon_7b")
"""Published models, about by the time that they take; `deit_base` is `vit_base` again."""
Case = Callable[[], object]


def _compile_corpus_model(name: str, **options: Any) -> None:
    """Compile a model of the shared corpus."""
    specification = importlib.util.spec_from_file_location("corpus_models", SHARED / "compile" / "models.py")
    assert specification is not None
    assert specification.loader is not None
    models = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(models)
    be.compile(*models.build(name), **options).check(strict=True)


def _compile_published_model(name: str, board: str) -> None:
    """Compile a published model for a board, at the settings of its column. Raises HostError if its library is not
    installed."""
    from published.extras import require_library
    from published.generation import Generation
    from published.models import MODELS

    model = MODELS[name]
    require_library(model.package)
    settings = model.settings(board)
    options: dict[str, Any] = {"board": board, "df": settings.df, "fidelity": settings.fidelity}
    source = model.source()
    if isinstance(source, Generation):
        be.compile_programs(source.programs, **options)
        return
    module, inputs = source
    program = torch.export.export(module, inputs).run_decompositions({})
    be.compile(program, microbatch=settings.microbatch, **options)


def _compile_generation(name: str, layers: int) -> None:
    """Compile GPT-2 small or T5-small with so many layers as programs with caches."""
    import generating

    {"gpt2": generating.gpt2, "t5": generating.t5}[name](layers)


def _compile_training(name: str, **options: Any) -> None:
    """Compile the training of a small model by the sum of its outputs' squares."""
    module, inputs = small.MODELS[name]()
    be.compile_training(module.train(), inputs, loss="mse", **options)


def _cases() -> Mapping[str, Case]:
    """Return all cases by name, in the order in which they are measured."""
    cases: dict[str, Case] = {}
    for name in CORPUS:
        cases[f"{name}, rounds of 64"] = partial(_compile_corpus_model, name)
        cases[f"{name}, one input"] = partial(_compile_corpus_model, name, objective="latency")
    for name in ("odd_convolutions", "mixer"):
        cases[f"training of {name}"] = partial(_compile_training, name, microbatches=4)
    for name in ("bert", "resnet", "vit"):
        cases[f"{name}, pipeline of 2 chips"] = partial(_compile_corpus_model, name, chips=2, microbatch=1)
    for name in QUICK[:4]:
        cases[f"{name} n150"] = partial(_compile_published_model, name, "n150")
    cases["GPT-2, 2 layers"] = partial(_compile_generation, "gpt2", 2)
    cases["T5-small, 2 layers"] = partial(_compile_generation, "t5", 2)
    for name in QUICK[4:]:
        cases[f"{name} n150"] = partial(_compile_published_model, name, "n150")
    for name in QUICK:
        cases[f"{name} e150"] = partial(_compile_published_model, name, "e150")
    cases["mobilenet_v1 n300"] = partial(_compile_published_model, "mobilenet_v1", "n300")
    cases["GPT-2"] = partial(_compile_generation, "gpt2", 12)
    cases["T5-small"] = partial(_compile_generation, "t5", 6)
    for board in ("n150", "e150"):
        for name in SLOW:
            cases[f"{name} {board}"] = partial(_compile_published_model, name, board)
    return cases


CASES: Final = _cases()
