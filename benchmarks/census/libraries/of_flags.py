"""x_transformers by each of its switches, and the dense layers of torch_geometric."""

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import torch
from torch import Tensor, nn

from . import Built, LibrarySource, Outputs

_TOKENS: Final = 64


class XTransformers(LibrarySource):
    """A decoder and an encoder with each switch of the library turned over, one at a time."""

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield kinds of layers with a switch."""
        module = importlib.import_module("x_transformers.x_transformers")
        for kind in ("Decoder", "Encoder"):
            yield kind, f"{kind}:plain"
        groups = {"": module.AttentionLayers, "attn_": module.Attention, "wrap_": module.TransformerWrapper}
        for prefix, owner in groups.items():
            for name, parameter in inspect.signature(owner).parameters.items():
                if isinstance(parameter.default, bool) and name not in ("causal", "verbose", "cross_attend"):
                    for kind in ("Decoder", "Encoder"):
                        yield f"{kind} {owner.__name__}", f"{kind}:{prefix}{name}"

    def build(self, name: str) -> Built:
        """Return the layers in a model of words."""
        module = importlib.import_module("x_transformers.x_transformers")
        kind, _, switch = name.partition(":")
        wrapped = switch.startswith("wrap_")
        owner = module.TransformerWrapper if wrapped else module.AttentionLayers
        owner = module.Attention if switch.startswith("attn_") else owner
        words: dict[str, Any] = {}
        if switch != "plain":
            parameter = switch.removeprefix("wrap_").removeprefix("attn_")
            words[switch.removeprefix("wrap_")] = not inspect.signature(owner).parameters[parameter].default
        layers = getattr(module, kind)(dim=48, depth=2, heads=3, attn_dim_head=16, **({} if wrapped else words))
        model = module.TransformerWrapper(
            num_tokens=_TOKENS, max_seq_len=32, attn_layers=layers, **(words if wrapped else {})
        )
        return Outputs(model, ("",)), (torch.randint(0, _TOKENS, (1, 19)),)


class Pooling(nn.Module):
    """A function of torch_geometric that pools nodes, by assignments that a layer computes."""

    def __init__(self, pool: Callable[..., Any]) -> None:
        super().__init__()
        self.pool = pool
        self.assign = nn.Linear(16, 5)

    def forward(self, x: Tensor, adjacency: Tensor) -> Any:
        """Return the pooled nodes and edges, and the losses."""
        return self.pool(x, adjacency, self.assign(x))


class TorchGeometric(LibrarySource):
    """Layers on dense adjacencies, and poolings."""

    LAYERS: Final = ("DenseGCNConv", "DenseGINConv", "DenseGraphConv", "DenseSAGEConv", "DenseGATConv")
    POOLS: Final = ("dense_diff_pool", "dense_mincut_pool", "DMoNPooling")

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield layers and poolings."""
        for name in self.LAYERS:
            yield "dense layer", name
        for name in self.POOLS:
            yield "pooling", name

    def build(self, name: str) -> Built:
        """Return a layer on a graph of 20 nodes."""
        package = importlib.import_module("torch_geometric.nn")
        kind = getattr(package, name)
        adjacency = (torch.rand(1, 20, 20) < 0.3).float()
        inputs = (torch.randn(1, 20, 16), torch.maximum(adjacency, adjacency.mT))
        if name == "DMoNPooling":
            model = kind([16, 16], 5)
        elif name in self.POOLS:
            model = Pooling(kind)
        elif name == "DenseGINConv":
            model = kind(nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 12)))
        else:
            model = kind(16, 12)
        return Outputs(model, ("", "")), inputs


SOURCES: Mapping[str, type[LibrarySource]] = {"x_transformers": XTransformers, "torch_geometric": TorchGeometric}
