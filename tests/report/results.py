"""Real results for the tests of reports: netlists of every fate."""

from functools import cache

from buda_emu.testing.verify.result import CaseResult, TestRun
from buda_emu.testing.verify.runs.collect import Case, Settings
from buda_emu.testing.verify.runs.run_case import run_case
from shared_files import ROOT
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

PICTURES = Settings("format", per_op=True, detail=True)
ODD_NAME = 'odd <b>&"name" | `x`.yaml'


def nop(df="Float16_b", *, broken=False, compare="Exact"):
    """A netlist whose output loses bits: its inputs are float32, its output is not."""
    config = f"test-config: {{comparison-config: {{type: {compare}}}, stimulus-config: {{type: Uniform, "
    body = text(
        [queue("a"), queue("o", "n", df=df)],
        [graph("g", op("n", "nop", ["a"], out_df=df))],
        [
            program(
                "p", "var: {$c_zero: 0}", *(["loop: 0", "endloop"] if broken else []), execute("g", fifo_settings("a"))
            )
        ],
    )
    return body + config + "uniform_lower_bound: 0, uniform_upper_bound: 1}}\n"


def case(name, content=None, settings=PICTURES):
    """The result of one netlist."""
    return run_case(Case(name, str(ROOT / name), content.encode() if content is not None else None, settings=settings))


@cache
def finished_run() -> TestRun:
    """Passed, failed, rejected, stopped and crashed netlists, one of them with a name that wants escaping."""
    cases = (
        case("netlists/attention.yaml"),
        case("netlists/two_chips.yaml"),
        case("lossy.yaml", nop()),
        case(ODD_NAME, nop().replace("Float16_b", "Float99")),
        case("stopped.yaml", nop(broken=True)),
        CaseResult("crashed.yaml", "crashed", "its worker process died (signal SIGKILL)", command="buda-emu test it"),
    )
    assert [item.status for item in cases] == ["passed", "passed", "failed", "rejected", "stopped", "crashed"]
    settings = {"paths": ["netlists"], "precision": "format", "expected": "ideal", "threshold": 0.99, "seed": 0}
    return TestRun(cases, "1.2.3", 4.5, {**settings, "arch": None})
