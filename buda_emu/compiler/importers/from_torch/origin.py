"""The exported program as torch runs it, value by value."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

import torch

from buda_emu.compiler.graph.graph import Array
from buda_emu.errors import HostError


class TorchOrigin:
    """An ExportedProgram after its decompositions. `names`: of its nodes in the imported graph."""

    def __init__(self, program: Any, names: Mapping[Any, str]) -> None:
        self._program = program
        self._names = names

    @property
    def tool(self) -> str:
        """What runs it."""
        return f"torch {torch.__version__}"

    def values(self, inputs: Sequence[Array], wanted: Container[str]) -> tuple[list[Array], dict[str, Array]]:
        """Outputs and inner values. Raises HostError where torch refuses the inputs."""
        seen: dict[str, Array] = {}
        module = self._program.module(check_guards=False)
        names = {node.name: name for node, name in self._names.items()}
        walk = _Walk(module, names, wanted, seen)
        try:
            with torch.no_grad():
                found = walk.run(*(torch.from_numpy(item.copy()) for item in inputs))
        except Exception as error:  # noqa: BLE001 - torch raises many kinds
            raise HostError(f"compare: torch cannot run the model: {error}") from None
        return [array_of(item) for item in _leaves(found)], seen


def _leaves(items: Any) -> list[Any]:
    """Tensors in lists and dictionaries, in their order."""
    if isinstance(items, torch.Tensor):
        return [items]
    inner = items.values() if isinstance(items, dict) else items if isinstance(items, (list, tuple)) else ()
    return [leaf for item in inner for leaf in _leaves(item)]


class _Walk(torch.fx.Interpreter):
    def __init__(self, module: Any, names: Mapping[str, str], wanted: Container[str], seen: dict[str, Array]) -> None:
        super().__init__(module)
        self._names, self._wanted, self._seen = names, wanted, seen

    def run_node(self, n: Any) -> Any:
        found = super().run_node(n)
        name = self._names.get(n.name)
        if name is not None and name in self._wanted and isinstance(found, torch.Tensor):
            self._seen[name] = array_of(found)
        return found


def array_of(tensor: Any) -> Array:
    """The tensor's own memory, transposed or not; numpy has no bfloat16."""
    plain = tensor.detach().cpu()
    return (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy()
