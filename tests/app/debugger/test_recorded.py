"""A recorded session, on every public netlist and on the corpus' BERT encoder: break on a line, on a NaN, step back
over an epoch boundary, and ask why.
"""

import numpy as np
import pytest

from buda_emu.app.debugger.console.console import Console
from buda_emu.app.debugger.console.execute import execute
from buda_emu.app.debugger.inspection import trace_provenance
from buda_emu.app.debugger.machine.stop import Position
from debug_sessions import session, state
from shared_files import CORPUS, ROOT, needs_corpus

NETLISTS = sorted((ROOT / "netlists").glob("*.yaml"))
BERT = CORPUS / "netlists" / "verif" / "directed_tests" / "netlist_bert_encoder.yaml"


def answer_text(console, line):
    return "\n".join(execute(console, line).lines)


def upstream(netlist, name):
    """What a queue's entries may depend on, by the graph alone."""
    ops, found, ahead = netlist.ops, set(), [name]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            queue = netlist.queues.get(name)
            ahead += ops[name].inputs if name in ops else [queue.input] if queue.input in ops else []
    return found


def recorded(path, precision):
    with session(str(path), precision=precision) as run:
        console = Console(run)
        first = run.engine.topology(next(iter(run.netlist.graphs))).ops[0]
        # a line
        assert answer_text(console, f"break {first.at().line}").startswith(f"breakpoint 1: op {first.name} ")
        assert answer_text(console, "continue").startswith("breakpoint 1: ")
        assert run.engine.op_now.name == first.name
        answer_text(console, "delete")
        # over the end of the epoch and back: bit for bit
        inside, held = run.stop.position, state(run)
        execute(console, "finish")
        after, held_after = run.stop.position, state(run)
        assert after > inside
        answer_text(console, "back")
        assert inside <= run.stop.position < after
        run.seek(inside)
        assert state(run) == held
        run.seek(after)
        assert state(run) == held_after
        # a NaN that somebody put there
        answer_text(console, "run")
        run.seek(inside)
        source = next((name for name in first.inputs if name in run.netlist.queues), None)
        answer_text(console, "break inf")  # of the chip's units a NaN is rare: they give infinities
        assert source is not None
        shape = run.netlist.queues[source].blocking.element_shape
        bad = np.full(shape, np.nan, np.float32)
        run.seek(Position(0))
        for one in range(run.netlist.queues[source].entries):
            if run.engine.channels[source].view.label(one):
                run.write(f"queue:'{source}'[{one}]", bad)
        stop = run.cont()
        if stop.reason == "end":  # formats of blocks have none, and a maximum passes over it
            assert run.netlist.path.endswith(("matmul.yaml", "softmax.yaml"))
            assert all(run.evaluate(f"nan(op:{name}) + inf(op:{name})") == 0 for name in run.netlist.ops)
        else:
            assert (stop.reason, "NaN" in stop.text or precision == "device") == ("breakpoint", True)
            assert source in upstream(run.netlist, run.engine.op_now.name)
        # why
        answer_text(console, "delete")
        run.seek(Position(0))
        run.seek(Position(1))
        assert run.cont().reason == "end"
        outputs = [
            q for q in run.netlist.queues.values() if not q.host_fed and run.engine.channels[q.name].view.label(0)
        ]
        assert outputs
        for queue in outputs:
            entries = trace_provenance(run.engine, run.names, queue.name, 0)
            named = {entry.queue for entry in entries} | {op for entry in entries for op in entry.through}
            assert named <= upstream(run.netlist, queue.name)
            assert entries[0].op == queue.input or entries[0].op == ""
            leaves = {entry.queue for entry in entries if not entry.reads and not entry.op}
            assert leaves
            for leaf in leaves:
                assert run.netlist.queues[leaf].host_fed or run.netlist.queues[leaf].is_ram


@pytest.mark.parametrize("path", NETLISTS, ids=lambda path: path.name)
def test_on_public_netlists(path):
    recorded(path, "format")


@pytest.mark.slow
@pytest.mark.parametrize("path", NETLISTS, ids=lambda path: path.name)
def test_on_public_netlists_as_the_chip_computes(path):
    recorded(path, "device")


@needs_corpus
def test_on_the_bert_encoder():
    recorded(BERT, "format")
