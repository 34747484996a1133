"""Random walks over public netlists: what was seen on the way is there again, whichever way one comes."""

import random
import warnings

import pytest

from buda_emu.app.debugger.inspection import chain_lines, trace_provenance
from buda_emu.app.debugger.machine.stop import START
from buda_emu.support.errors import BudaError, NetlistWarning
from debug_sessions import TRAINING, TWO_CHIPS, session, state
from shared_files import CORPUS

PATHS = sorted((path for path in CORPUS.glob("netlists/**/*.yaml")), key=lambda path: (path.stat().st_size, path))
SAMPLE = [str(path) for path in random.Random(0).sample(PATHS[: len(PATHS) * 3 // 4], min(40, len(PATHS) // 2))]


def walked(path, precision, seed):
    """Whether it could be: some need more memory, or are not emulated as the chip."""
    rng = random.Random(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NetlistWarning)
        try:
            run = session(path, precision=precision)
            entered = run.__enter__()
        except BudaError:
            return False
    try:
        seen = []
        try:
            for _ in range(25):
                entered.go(rng.choice(["next", "next", "step", "input", "epoch", "finish"]))
                seen.append((entered.stop.position, state(entered)))
                if entered.engine.ended:
                    break
        except BudaError:  # not emulated: it ends the run, and not in a ProgramError
            return False
        for position, held in rng.sample(seen, min(4, len(seen))):
            entered.seek(position)
            assert (entered.stop.position, state(entered)) == (position, held)
        while entered.stop.position > START:
            entered.back("epoch")
        position, held = seen[-1]
        entered.seek(position)
        assert state(entered) == held
        for queue in entered.netlist.queues.values():
            if entered.engine.channels[queue.name].view.label(0):
                assert list(chain_lines(trace_provenance(entered.engine, entered.names, queue.name, 0)))
        return True
    finally:
        run.__exit__(None, None, None)


@pytest.mark.parametrize("path", [TRAINING, TWO_CHIPS])
@pytest.mark.parametrize("seed", range(3))
def test_walks(path, seed):
    assert walked(path, "format", seed)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["format", "device"])
def test_walks_over_the_corpus(corpus, precision):
    assert sum(walked(path, precision, seed) for seed, path in enumerate(SAMPLE)) > len(SAMPLE) // 2
