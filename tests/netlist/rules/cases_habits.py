"""Cases of what nothing refuses and hardly anybody means."""

from netlist.rules import bases as b
from netlist.rules.cases import Case

INPUTS = "inputs: [x, sp]"
WRAP = ("", "[$gp, incwrap, $c_one, 4]", "[$gp, incwrap, $c_one, 6]")

CASES: tuple[Case, ...] = (
    Case(  # a result queue
        "V208", b.COPY, (("", "input_count: 1", "input_count: 2"), ("o", "entries: 2", "entries: 1")), "1",
        near=(("", "input_count: 1", "input_count: 2"),),
    ),
    Case(  # a streamed queue: batches of 2 do not divide 3 entries
        "V208", b.COPY, (("", "input_count: 1", "input_count: 2"), ("a", "entries: 2", "entries: 3"), WRAP), "3",
        near=(
            ("", "input_count: 1", "input_count: 2"), ("a", "entries: 2", "entries: 3"), WRAP,
            ("", "a: {rd_ptr_local", "a: {prologue: true, rd_ptr_local"),
        ),
    ),
    Case("V211", b.COPY, (("a", "entries: 2", "entries: 4, entries: 2"),), "entries"),
    Case(
        "V211", b.COPY, (("o", "entries: 2", "grid_size: [2, 2], entries: 2"),), "grid_size",
        near=(("o", "entries: 2", "entries: 2, layout: tilized"),),
    ),
    Case("V209", b.SOFTMAX, (("mu", INPUTS, "inputs: [x, rd]"),), "rd"),
    Case("V209", b.SOFTMAX, (("mu", INPUTS, "inputs: [rd, x]"),), "rd", near=(("mu", INPUTS, "inputs: [rc, rd]"),)),
    Case(  # through an op that leaves every element in its place
        "V209", b.SOFTMAX, (("mu", INPUTS, "inputs: [x, rc]"),), "rc", near=(("mu", INPUTS, "inputs: [x, b]"),),
    ),
    Case(  # times a constant all is well, until it is repeated over the columns
        "V209", b.SOFTMAX,
        (
            ("mu", INPUTS, "inputs: [w, rd], input_1_tms: [broadcast: {c: 2}]"),
            *((name, "ublock: [1, 1]", "ublock: [1, 2]") for name in ("mu", "o", "w", "pl", "q")),
        ),
        "rd",
        near=(("mu", INPUTS, "inputs: [b, rd]"),),
    ),
)  # fmt: skip
