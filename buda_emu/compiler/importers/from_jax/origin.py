"""The function as jax runs it."""

from collections.abc import Container, Sequence
from typing import Any

import jax
import numpy as np

from buda_emu.compiler.graph.graph import Array
from buda_emu.errors import HostError


class JaxOrigin:
    """A function under `jax.jit`."""

    def __init__(self, function: Any) -> None:
        self._function = function

    @property
    def tool(self) -> str:
        """What runs it."""
        return f"jax {jax.__version__}"

    def values(self, inputs: Sequence[Array], wanted: Container[str]) -> tuple[list[Array], dict[str, Array]]:
        """Outputs; inner values are jax's own. Raises HostError where jax refuses the inputs."""
        del wanted
        try:
            found = self._function(*inputs)
        except Exception as error:  # noqa: BLE001 - jax raises many kinds
            raise HostError(f"compare: jax cannot run the function: {error}") from None
        return [np.asarray(item) for item in jax.tree_util.tree_leaves(found)], {}
