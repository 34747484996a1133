"""The compiler's entry point for trainings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from buda_emu.compiler.compilation import Compilation, within_memory
from buda_emu.compiler.mixed import wide_df
from buda_emu.compiler.options import CompileOptions, OptionWords, with_words, without_sizes
from buda_emu.compiler.train.activation_memory import fitted
from buda_emu.compiler.train.choices import Choices, sums_df
from buda_emu.compiler.train.probabilities import probabilities
from buda_emu.compiler.train.programs import training_graph
from buda_emu.compiler.train.training import CompiledTraining


@within_memory()
def compile_training(
    source: Any,
    inputs: Sequence[Any] | None = None,
    *,
    loss: Any,
    optimizer: str = "sgd",
    learning_rate: Any = 0.01,
    optimizer_options: Mapping[str, float] | None = None,
    optimizer_df: str = "",
    target: Any = None,
    microbatches: int = 1,
    activations_mib: float | None = None,
    chip_softmax: bool = False,
    options: CompileOptions | None = None,
    **words: Unpack[OptionWords],
) -> CompiledTraining:
    """Compile the training of a torch module (docs/compile/train-a-model.md): forward pass, backward pass and
    optimizer.

    `source`: a torch.nn.Module; `inputs`: example inputs; `loss`: "mse", "cross_entropy", or a function of the module's
    output and a target; `target`: an example, needed for a function and for a module of several outputs; a tuple, if
    the loss takes one.

    `optimizer`: "sgd", "adam" or "adamw", with `optimizer_options` as torch names them; `learning_rate`: a number, or a
    function of the step, counted from 0; `optimizer_df`: "Float32" for master copies of the parameters, gradient sums
    and what the optimizer keeps, "" for the model's format. `microbatches` of a step: its rows are so many times those
    of `inputs`. `activations_mib`: MiB of DRAM for what the backward pass needs of the forward pass; what does not fit
    is computed again; None: what the chip has. `chip_softmax`: the gradient of cross_entropy adds up to 0 on the chip,
    too, and differs from torch's in its last bits.

    `options`, or its fields as keywords, which replace those of `options`: see CompileOptions.

    Raises HostError for a module without inputs, for words that do not exist and for a limit that cannot be kept;
    UnsupportedError and TypeError as `compile` does.
    """
    chosen = without_sizes(with_words(options, words, "compile_training"), "compile_training")
    if not chosen.acc_df:
        chosen = replace(chosen, acc_df=sums_df(chosen.arch, chosen.df))
    compilation = Compilation.of(chosen)
    df = wide_df(optimizer_df, compilation.device)
    choices = Choices.named(loss, optimizer, optimizer_options, learning_rate, microbatches, df, target)
    with compilation.memory.reading():
        graph = training_graph(source, inputs, target, choices)
    if chip_softmax:
        graph = probabilities(graph)
    compilation = replace(compilation, objective=replace(compilation.objective, step=microbatches))
    found, stored = fitted(compilation, graph, max(2, microbatches), activations_mib)
    return CompiledTraining(*found, choices, stored)
