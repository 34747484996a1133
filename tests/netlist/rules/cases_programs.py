"""Cases of the rules on programs."""

from netlist.rules import bases as b
from netlist.rules.cases import Case

CASES = (
    Case(
        "V074",
        b.IN_TURN,
        (
            ("k1", "inputs: [b", "inputs: [a"),
            ("", "input_count: 1\n    k1", "input_count: 2\n    k1"),
            ("", "          b: {rd_ptr_local", "          a: {rd_ptr_local"),
        ),
        "a",
        near=(
            ("k1", "inputs: [b", "inputs: [a"),
            ("", "          b: {rd_ptr_local", "          a: {rd_ptr_local"),
        ),
    ),
    Case(
        "V113",
        b.COPY,
        (("", "[$lp, incwrap,", "[$lp, incrap,"),),
        "incrap",
        near=(("", "[$lp, incwrap,", "[$lp, inc,"),),
    ),
    Case(
        "V116",
        b.COPY,
        (("", "          a: {", "          a: {rd_ptr_local: $lp, rd_ptr_global: $gp}\n          q: {"),),
        "q",
    ),
    Case(
        "V117",
        b.COPY,
        (("", "rd_ptr_global: $gp", "rd_ptr_global: ''"),),
        "''",
        near=(("", "rd_ptr_global: $gp", "rd_ptr_global: "),),
    ),
    Case(
        "V118",
        b.COPY,
        (("", "rd_ptr_local: $lp, ", ""),),
        "a",
        near=(("", "rd_ptr_local: $lp, ", "rd_ptr_local: 0, "),),
    ),
    Case(
        "V118",
        b.COPY,
        (("", "rd_ptr_local: $lp", "rd_ptr_local: $lp, wr_ptr_global: $lp"),),
        "$lp",
        near=(("", "rd_ptr_local: $lp", "rd_ptr_local: $lp, global_wrptr_autoinc: 2"),),
    ),
    Case(
        "V118",
        b.COPY,
        (
            (
                "",
                "          a: {",
                "          o: {rd_ptr_local: $lp, rd_ptr_global: $gp, epilogue: true}\n          a: {",
            ),
        ),
        "true",
        near=(
            (
                "",
                "          a: {",
                "          o: {rd_ptr_local: $lp, rd_ptr_global: $gp, epilogue: false}\n          a: {",
            ),
        ),
    ),
    Case(
        "V119",
        b.ADD,
        (("", ", wr_ptr_global: $z", ""),),
        "b",
        near=(("", ", wr_ptr_global: $z", ", wr_ptr_global: 0"),),
    ),
    Case(
        "V119",
        b.ADD,
        (("", ", wr_ptr_global: $z", ", wr_ptr_global: $z, rd_ptr_local: $z"),),
        "$z",
        near=(("", ", wr_ptr_global: $z", ", wr_ptr_global: $z, global_rdptr_autoinc: 1"),),
    ),
    Case(
        "V120",
        b.COPY,
        (("", "rd_ptr_local: $lp", "rd_ptr_local: $lp, global_rdptr_autoinc: 2"),),
        "2",
        near=(("", "rd_ptr_local: $lp", "rd_ptr_local: $lp, global_rdptr_autoinc: 1"),),
    ),
    Case(
        "V120",
        b.COPY,
        (("", "rd_ptr_local: $lp", "rd_ptr_local: $lp, rd_ptr_autoinc: $z, global_rdptr_autoinc: 0x1"),),
        "0x1",
        near=(("", "rd_ptr_local: $lp", "rd_ptr_local: $lp, rd_ptr_autoinc: 2, global_rdptr_autoinc: 0"),),
    ),
    Case(
        "V121",
        b.COPY,
        (("", "    - var: [$c_one]", "    - param: [$p_m]\n    - var: [$c_one]"),),
        "param",
        near=(("param", "param: [$p_n]", "param: [$p_n, $p_m]"),),
    ),
    Case(
        "V122",
        b.GRADIENT,
        (("", "\n          o: {prologue: true, epilogue: true, zero: $z, rd_ptr_global: $z, wr_ptr_global: $z}", ""),),
        "g",
    ),
    Case(
        "V123",
        b.IN_TURN,
        (
            (
                "",
                "          b: {rd_ptr_local",
                "          a: {rd_ptr_local: $lp, rd_ptr_global: $gp}\n          b: {rd_ptr_local",
            ),
        ),
        "a",
        near=(
            (
                "",
                "          b: {rd_ptr_local",
                "          o: {rd_ptr_local: $lp, rd_ptr_global: $gp}\n          b: {rd_ptr_local",
            ),
        ),
    ),
    Case(
        "V124",
        b.ADD,
        (("", "          a: {rd_ptr_local: $lp, rd_ptr_global: $gp}\n", ""),),
        "g",
        near=(("", "          b: {prologue: true, rd_ptr_global: $z, wr_ptr_global: $z}\n", ""),),
    ),
    Case("V128", b.COPY, (("", "graph_name: g", "graph_name: gg"),), "gg"),
    Case("V128", b.TWO_CHIPS, (("", "graph_name: g1\n        queue_settings:\n", "queue_settings:\n"),), "execute"),
    Case(
        "V177",
        b.COPY,
        (("", "          a: {", "          a: {rd_ptr_local: $lp, rd_ptr_global: $gp}\n          a: {"),),
        "a",
        near=(("", "          a: {", "          o: {rd_ptr_local: $lp, rd_ptr_global: $gp}\n          a: {"),),
    ),
)
