"""What a user prints is short and readable: no dump of everything below it."""

import pytest

import buda_emu as be
from buda_emu.app.api.run_netlist import run_netlist
from buda_emu.app.api.sweep import sweep
from shared_files import ROOT

PATH = str(ROOT / "netlists/matmul.yaml")


def shown():
    """Results of all functions, and the parts of them that users look at first, by name."""
    netlist = be.load(PATH)
    tested, modelled, report = be.test(PATH), be.perf(PATH), run_netlist(netlist)
    advice = be.advise(PATH)
    yield from {
        "check": be.check(PATH),
        "netlist": netlist,
        "graph": netlist.graphs["multiply"],
        "tested": tested,
        "run of tests": tested.run,
        "case": tested.cases[0],
        "output": tested.cases[0].outputs[0],
        "perf": modelled,
        "run of perf": modelled.run,
        "epoch": modelled.epochs[0],
        "numerics": be.numerics(PATH),
        "advice": advice,
        "tried": advice.ranked[0],
        "report": report,
        "point": sweep(PATH, {"clock": [1000]})[0],
        "point without figures": sweep(PATH, {"grid": ["1x1"]})[0],
    }.items()
    with be.debug(PATH) as session:
        yield "breakpoint", session.break_at("product")
        yield "stop", session.cont()
        yield "tensor", session.tensor("activations")
        yield "result", (session.next(), session.tensor("op:product"))[1]


def test_what_users_print_is_short():
    for name, value in shown():
        assert len(repr(value)) < 200, name
        assert repr(value).startswith("<"), name
        assert "\n" not in repr(value), name
    netlist = be.load(PATH)
    assert str(netlist.queues["out"]) == "queue out: 2 entries of Float16_b 1x128x192, from product"
    described = "op product of graph multiply: matmul(activations, weights, bias) on 2x1 cores, Float16_b"
    assert str(netlist.ops["product"]) == described


@pytest.mark.parametrize("count", [1, 30])
def test_a_check_prints_its_findings_one_a_line(tmp_path, count):
    path = tmp_path / "net.yaml"
    lines = (ROOT / "netlists/matmul.yaml").read_text().replace("type: matmul", "type: matmull")
    extra = "".join(f"  q{number}: {{input: HOST}}\n" for number in range(count - 1))
    path.write_text(lines.replace("queues:\n", f"queues:\n{extra}", 1))
    result = be.check(path)
    assert repr(result).startswith("<NetlistResult: refused, ")
    first, *findings = str(result).splitlines()
    assert first.startswith("refused, ")
    assert findings[0].startswith(f"{path}:")
    assert len(findings) == min(len(result.diagnostics), 20) + (len(result.diagnostics) > 20)
    assert "error[V051]: op product: unknown op type 'matmull'" in "".join(map(str, result.diagnostics))
