"""What is asked of whatever names an op type."""

from typing import TYPE_CHECKING

from buda_emu.spec.ops import OP_TYPES, Trait


class OfOpType:
    """A base of ops, wherever they stand: `type` is a word that may be no op type's."""

    __slots__ = ()
    if TYPE_CHECKING:
        type: str

    def has(self, trait: Trait) -> bool:
        """Whether the op type has a trait."""
        declared = OP_TYPES.find(self.type)
        return declared is not None and trait in declared.traits
