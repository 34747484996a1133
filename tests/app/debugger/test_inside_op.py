"""The steps inside an op are those that the run took: what the last one packs is what the op gave."""

import pytest

from buda_emu.app.debugger.inside_op import trace_inside_op
from buda_emu.support.errors import HostError
from debug_sessions import ATTENTION, TRAINING, TWO_CHIPS, session


def inside_or_sum(run, op):
    return None if op.gradient_op else trace_inside_op(run, op.name, (0, 0, 0))[1]


@pytest.mark.parametrize("path", [ATTENTION, TRAINING, TWO_CHIPS])
def test_the_trace_of_every_tile_ends_in_the_result_of_the_run(path):
    seen = 0
    with session(path, precision="device") as run:
        while run.next().reason != "end":
            if not run.stop.position.in_epoch:
                continue
            op, position = run.engine.op_now, run.stop.position
            assert position.step % 2 or inside_or_sum(run, op) is None  # it has not run yet
            run.seek(position._replace(step=position.step + 1))
            if op.gradient_op:
                with pytest.raises(HostError, match="adds to a sum"):
                    trace_inside_op(run, op.name, (0, 0, 0))
                continue
            depth, rows, columns = op.blocking.shape
            for tile in ((0, 0, 0), (depth - 1, rows - 1, columns - 1)):
                steps, equal = trace_inside_op(run, op.name, tile)
                assert equal, (op.name, tile)
                if op.type == "ethernet_datacopy":  # tiles go from L1 to L1 as they lie
                    assert not steps
                    continue
                assert steps[-1].unit == "packer"
                assert any(step.unit == "unpacker" for step in steps)
                seen += 1
    assert seen > 4


def test_phases_spills_and_the_sfpu_are_traced():
    with session(TRAINING, precision="device") as run:
        run.break_at("h")
        run.cont()
        steps, _ = trace_inside_op(run, "h", (0, 0, 0))
        told = [step.what for step in steps]
        assert sum("MVMUL of inner tile 0" in what for what in told) == 4  # HiFi4
        assert any("phase 3 of HiFi4" in what for what in told)
        assert [step.unit for step in steps].count("packer") == 2  # one spill, one result
        with pytest.raises(HostError, match="h, which the op reads, has not run"):
            trace_inside_op(run, "a", (0, 0, 0))
        run.next()
        steps, _ = trace_inside_op(run, "a", (0, 0, 0))
        assert any(step.unit == "SFPU" and step.what == "gelu" for step in steps)


def test_other_precisions_have_no_steps():
    with session(TRAINING) as run:
        run.next(7)
        with pytest.raises(HostError, match="precision device"):
            trace_inside_op(run, "h", (0, 0, 0))
