"""The implementations of op types, for one way of computing."""

from collections.abc import Callable
from importlib import import_module
from typing import Generic, Literal, TypeVar

from buda_emu.errors import InternalError, UnsupportedError
from buda_emu.spec.ops import OP_TYPES

T = TypeVar("T")


class Registry(Generic[T]):
    """Implementations by op type. `module` is the field of a declaration that names the file of one.

    It is imported when such an op is first used, so that a run loads and compiles only the kernels it needs. `how` is
    added to what is said of a type that is not there.
    """

    def __init__(self, module: Literal["op", "device"], how: str = "") -> None:
        self._module = module
        self._how = how
        self._found: dict[str, T] = {}  # filled as modules are imported, read-only afterwards

    def implements(self, *types: str) -> Callable[[type[T]], type[T]]:
        """Class decorator: an instance of the class is the implementation of these op types."""

        def register(cls: type[T]) -> type[T]:
            instance = cls()
            for name in types:
                if name in self._found:
                    raise InternalError(f"op type {name} is implemented twice{self._how}")
                self._found[name] = instance
            return cls

        return register

    def __getitem__(self, type: str) -> T:
        """The implementation. Raises UnsupportedError for an unknown word, or one that the reference refuses."""
        found = self._found.get(type)
        if found is not None:
            return found
        op_type = OP_TYPES.get(type)
        module: str = getattr(op_type, self._module, "")
        if not module:
            raise UnsupportedError(f"op type {type!r} cannot be run{self._how}")
        import_module(module)
        if type not in self._found:
            raise InternalError(f"op type {type} has no implementation{self._how}")
        return self._found[type]
