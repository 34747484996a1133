"""What is declared of softsign. This file imports no numpy, so that `buda-emu check` need not."""

from buda_emu.spec.ops import OpType

SOFTSIGN = OpType(
    "softsign",
    "softsign",
    (1, 1),
    "x / (1 + |x|)",
    op="softsign.op",
    traits=("tile by tile", "keeps shape"),
    costs_as="reciprocal",
    drawn_as="sfpu",
)
