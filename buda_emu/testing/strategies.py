"""Generated netlists as a strategy of Hypothesis (`pip install hypothesis`), for property tests of other backends."""

from collections.abc import Sequence

from hypothesis import strategies as st

from buda_emu.testing.generator.netlist import GENERATED, Budget, Generated, generate


def netlists(
    *, arch: str = "wormhole_b0", budget: Budget | None = None, op_types: Sequence[str] = GENERATED
) -> "st.SearchStrategy[Generated]":
    """Return a Hypothesis strategy that draws valid netlists (`Generated`: `text`, and `netlist` as `buda_emu.load`
    reads it). Every choice is Hypothesis' own, so that it shrinks a failing netlist; `buda_emu.reduce` goes on from
    there. A draw raises HostError for an unknown op type."""
    random = st.randoms(use_true_random=False, note_method_calls=False)
    return random.map(lambda source: generate(source, arch=arch, budget=budget, op_types=op_types))
