"""A module, a loss and an optimizer become a netlist of programs run_fwd_0, run_bwd_0 and run_opt_0 (FRONTEND 6)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Node, Output
from buda_emu.compiler.train.choices import GRADIENT, MASTER, NUMBER, OPTIMIZE, Choices
from buda_emu.compiler.train.joint import joint_graph
from buda_emu.compiler.train.optimizers import Numbers, Optimizer
from buda_emu.errors import HostError


def training_graph(module: Any, inputs: Sequence[Any] | None, target: Any, choices: Choices) -> Graph:
    """The graph of all three programs. Raises HostError, UnsupportedError."""
    if inputs is None:
        raise HostError("compile: training needs example inputs: compile_training(module, (tensor, ...), loss=...)")
    graph = joint_graph(module, inputs, target, choices)
    add_optimizer(graph, choices.optimizer, choices.options, choices.df)
    return graph


def add_optimizer(graph: Graph, optimizer: Optimizer, options: Numbers, df: str = "") -> None:
    """The program that changes each parameter by the sum of its gradients. It reads states alone, so it may run once
    for many microbatches. With `df` all that it reads is kept in that format, the parameter as a copy beside the one
    that the model reads."""
    b = Builder(graph, decompose=False)
    numbers = {
        name: b.state(NUMBER + name, np.float32(value), df=df)
        for name, value in optimizer.numbers(0.0, 1, options).items()
    }
    initial = {node.attrs["label"]: node for node in graph if node.op == "state"}
    for output in [output for output in graph.outputs if output.accumulate]:
        name = output.state.removeprefix(GRADIENT)
        b.scope = b.source = f"optimizer.{name}"
        shape = initial[name].shape
        copies = [name, name + MASTER] if df else [name]
        p = b.state(copies[-1], initial[name].attrs["initial"], df=df)
        g = b.state(output.state, np.zeros(shape, np.float32), df=df)
        kept: dict[str, Node] = {
            key: b.state(f"{name}.{key}", np.zeros(shape, np.float32), df=df) for key in optimizer.kept(options)
        }
        after, changed = optimizer.update(b, p, g, kept, numbers, options)
        values = [(copy, after) for copy in copies] + [(f"{name}.{key}", value) for key, value in changed.items()]
        for label, value in values:
            graph.outputs.append(Output(label, value.name, "float32", OPTIMIZE, label))
