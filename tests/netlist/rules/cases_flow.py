"""Cases of what programs do when they run."""

from netlist.rules import bases as b
from netlist.rules.cases import Case, Edit

AGAIN = "    - execute: {graph_name: g0, queue_settings: {a: {rd_ptr_local: $lp, rd_ptr_global: $gp}}}\n"
RAM = "b: {prologue: true, rd_ptr_global: $z, wr_ptr_global: $z}"
LOOP = "    - loop: $p_n\n"
LOCAL = "          b: {rd_ptr_local: $lp"
LOCAL_VARIABLE = "    - var: [$t]\n    - varinst: [$t, set, $t]\n"
PROLOGUE: Edit = ("", "a: {rd_ptr_local", "a: {prologue: true, rd_ptr_local")
G0, G1 = (f"    - execute:\n        graph_name: {name}\n" for name in ("g0", "g1"))
ZEROS = "{rd_ptr_local: 0, rd_ptr_global: 0}"
DECLARED: Edit = ("", "[$z, $c_one]", "[$z, $c_one, $t]")
BEHIND = "    - varinst: [$t, add, $t, 1]\n"
POPS = ", rd_ptr_autoinc: 0, global_rdptr_autoinc: "
COUNTED = "[$lp, incwrap, $c_one, 4]"
WRAPPED = "[$gp, incwrap, $c_one, 4]"
# g1 before g0, each with its settings
EXCHANGED: tuple[Edit, ...] = (
    ("", "graph_name: g0", "graph_name: g9"),
    ("", "graph_name: g1", "graph_name: g0"),
    ("", "graph_name: g9", "graph_name: g1"),
    ("", "          a: {", "          x: {"),
    ("", "          b: {", "          a: {"),
    ("", "          x: {", "          b: {"),
    ("", "          c: {", "          y: {"),
    ("", "          d: {", "          c: {"),
    ("", "          y: {", "          d: {"),
)


def replaced(old: str, new: str) -> tuple[Edit, ...]:
    """An edit of the whole text."""
    return (("", old, new),)


TWO_INPUTS: tuple[Edit, ...] = (("", "input_count: 1", "input_count: 2"), ("", COUNTED, "[$lp, incwrap, 2, 4]"))

CASES: tuple[Case, ...] = (
    Case("V270", b.COPY, replaced("[$lp, incwrap, $c_one", "[$lp, incwrap, $c_on"), "$c_on"),
    Case("V270", b.COPY, replaced("{rd_ptr_local: $lp", "{rd_ptr_local: $lp, prologue: $no"), "$no"),
    Case("V270", b.COPY, replaced(LOOP, "    - loop: $n\n"), "$n", near=replaced(LOOP, "    - loop: $c_one\n")),
    Case("V270", b.COPY, replaced("set, 1]\n", "set, 1]\n    - varinst: [$c_two, inc, 1]\n"), "$c_two"),
    Case("V271", b.COPY, replaced(COUNTED, "[$lp, incwrap, $c_one, four]"), "four"),
    Case("V271", b.COPY, replaced(COUNTED, "[$lp, inc, $c_one, 4]"), "varinst"),
    Case("V271", b.COPY, replaced(COUNTED, "[$lp, incwrap, $c_one, 0]"), "varinst"),
    Case("V271", b.COPY, replaced(COUNTED, "[lp, incwrap, $c_one, 4]"), "varinst"),
    Case("V271", b.COPY, replaced("[$c_one]", "[$c_one, two]"), "two"),
    Case("V271", b.COPY, replaced("{rd_ptr_local: $lp", "{rd_ptr_local: $lp, prologue: perhaps"), "perhaps"),
    Case("V272", b.COPY, replaced("[$c_one]", "[$c_one, $lp]"), "$lp"),
    Case("V272", b.COPY, replaced(LOOP, f"    - loop: 2\n{LOCAL_VARIABLE}"), "$t", near=replaced(
        LOOP, f"    - loop: 1\n{LOCAL_VARIABLE}")),
    Case("V273", b.COPY, replaced("    - endloop\n", "    - endloop\n    - endloop\n"), "endloop"),
    Case("V274", b.COPY, replaced(LOOP, "    - loop: 0\n"), "0", near=replaced(LOOP, "    - loop: 1\n")),
    Case("V274", b.COPY, replaced(LOOP, "    - loop: $gp\n"), "$gp", near=replaced(LOOP, "    - loop: $c_one\n")),
    Case("V275", b.ADD, replaced(RAM, RAM.replace("true", "true, global_wrptr_autoinc: 1")), "1", near=replaced(
        RAM, RAM.replace("true", "false, global_wrptr_autoinc: 1"))),
    Case("V275", b.ADD, replaced(RAM, RAM.replace("rd_ptr_global: $z", "rd_ptr_global: 1")), "1"),
    Case("V275", b.ADD, replaced(RAM, RAM.replace("true", "$p_n")), "$p_n"),
    Case("V275", b.COPY, replaced("{rd_ptr_local: $lp", "{rd_ptr_local: -1, rd_ptr_autoinc: $lp"), "-1"),
    Case("V275", b.ADD, replaced(RAM, RAM.replace("prologue", "zero")), "true"),
    Case("V276", b.COPY, replaced("    - endloop\n", ""), "loop"),
    Case("V277", b.COPY, replaced(LOOP, f"    - loop: 2\n    - endloop\n{LOOP}"), "loop"),
    Case("V278", b.COPY, replaced(LOOP, f"    - varinst: [$ne, set, 1]\n{LOOP}"), "$ne", near=replaced(
        LOOP, f"    - var: [$ne]\n    - varinst: [$ne, set, 1]\n{LOOP}")),
    Case("V279", b.COPY, replaced("[$c_one]", "[$c_one, $x]"), "$x", near=replaced("[$c_one]", "[$c_one, $c_x]")),
    Case("V280", b.ADD, (*replaced(f"          {RAM}\n", ""), *replaced("[$z, ", "[")), "g"),
    Case("V281", b.COPY, replaced("          a: {", f"          o: {ZEROS}\n          a: {{"), "o"),
    Case("V282", b.IN_TURN, EXCHANGED, "g1"),
    Case("V282", b.IN_TURN, replaced(LOCAL, "          b: {rd_ptr_local: 1"), "g1", near=replaced(
        LOCAL, "          b: {rd_ptr_local: 4")),
    Case("V282", b.IN_TURN, replaced(LOCAL, f"{LOCAL}{POPS}2"), "g1", near=replaced(LOCAL, f"{LOCAL}{POPS}1")),
    Case("V283", b.IN_TURN, replaced(LOOP, f"{LOOP}{AGAIN}{AGAIN}"), "g0", near=replaced(LOOP, f"{LOOP}{AGAIN}")),
    Case("V284", b.COPY, replaced(LOOP, "    - loop: 2000000000\n"), "2000000000", near=replaced(
        LOOP, "    - loop: 2000000\n")),
    Case("V284", b.COPY, (*replaced(LOOP, "    - loop: 1000000\n    - loop: 10\n"), *replaced(
        "    - endloop\n", "    - endloop\n    - endloop\n")), "10"),
    Case("V285", b.COPY, replaced(LOOP, f"{LOOP}{LOCAL_VARIABLE}"), "$t", near=replaced(
        LOOP, f"{LOOP}{LOCAL_VARIABLE}".replace("var", "staticvar", 1))),
    Case("V286", b.COPY, replaced(WRAPPED, "[$gp, incwrap, $c_one, 2]"), "2", near=replaced(
        WRAPPED, "[$gp, incwrap, $c_one, 8]")),
    Case("V286", b.COPY, replaced(COUNTED, "[$lp, incwrap, $c_one, 3]"), "3", near=replaced(
        COUNTED, "[$lp, incwrap, $c_one, 2]")),
    Case("V293", b.COPY, replaced(COUNTED, "[$lp, incwrap, 2, 4]"), "2"),
    Case("V293", b.COPY, replaced(COUNTED, "[$lp, inc, 3]"), "3", near=replaced(COUNTED, "[$lp, inc, 1]")),
    Case("V293", b.COPY, TWO_INPUTS, "$c_one", near=(*TWO_INPUTS, *replaced(WRAPPED, "[$gp, incwrap, 2, 4]"))),
    Case("V293", b.COPY, replaced("[$c_one, set, 1]", "[$c_one, set, 0]"), "$c_one"),
    Case("V287", b.ADD, replaced("    - endloop\n", "    - varinst: [$z, inc, 1]\n    - endloop\n"), "varinst",
        near=replaced("    - endloop\n", "    - varinst: [$z, incwrap, 1, 1]\n    - endloop\n")),
    Case("V288", b.COPY, (("a", "0x10100000", "0x10100010"),), "[0, 0x10100010]", near=(
        ("a", "0x10100000", "0x10100020"),)),
    Case("V289", b.ADD, replaced(RAM, RAM.replace("true", "true, zero: true")), "true"),
    Case("V290", b.IN_TURN, replaced(f"{LOCAL}, rd_ptr_global: $gp", f"{LOCAL}, rd_ptr_global: 0"), "0"),
    Case("V290", b.COPY, replaced("    - varinst: [$gp, incwrap, $c_one, 4]\n", ""), "$gp", near=(
        *replaced("    - varinst: [$gp, incwrap, $c_one, 4]\n", ""), *replaced("{$lp: 0, $gp: 0}", "{$lp: 0}"),
        *replaced("[$p_n]", "[$p_n, $gp]"))),
    Case("V291", b.ADD, (DECLARED, *replaced("    - endloop\n", f"    - endloop\n{BEHIND}")), "varinst",
        near=(DECLARED, *replaced("    - endloop\n", f"{BEHIND}    - endloop\n"))),
    Case("V291", b.ADD, replaced("    - endloop\n", "    - endloop\n    - var: [$c_two]\n"), "var"),
    Case("V292", b.COPY, (PROLOGUE, *replaced(COUNTED, "[$lp, incwrap, 2, 4]")), "2",
        near=(PROLOGUE, *replaced(COUNTED, "[$lp, incwrap, 1, 4]"))),
    Case("V126", b.TWO_CHIPS, (*replaced(G0, f"    - loop: 2\n{G0}"), *replaced(G1, f"    - endloop\n{G1}")), "g0",
        near=(*replaced(G0, f"    - loop: 1\n{G0}"), *replaced(G1, f"    - endloop\n{G1}"))),
)  # fmt: skip
