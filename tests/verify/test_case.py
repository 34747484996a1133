"""A netlist whose program stops: the test's result says so in words and as data."""

import json

from buda_emu.verify.case import Case, run_case
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

NETLIST = text(
    [queue("a"), queue("q", "n", entries=1)],
    [graph("g", op("n", "nop", ["a"]))],
    [program("p", "var: {$rd: 0}", "loop: 2", execute("g", fifo_settings("a", "$rd", "$rd")),
             "varinst: [$rd, incwrap, 1, 8]", "endloop")],
)  # fmt: skip


def test_the_result_has_the_text_and_the_data():
    result = run_case(Case("net.yaml", "net.yaml", NETLIST.encode()))
    assert result.status == "stopped"
    assert "push to a full queue" in result.message
    assert "likely cause: no op reads q" in result.message
    stopped = json.loads(json.dumps(result.stopped))
    assert (stopped["kind"], stopped["program"], stopped["queue"]["name"]) == ("full", "p", "q")
    assert stopped["loops"][0]["round"] == 2
