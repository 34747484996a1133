"""Thousands of images with a spoilt document inside: each verb ends in a result or a documented error, in bounded time
and memory, and what `check` takes all others take."""

import json
import random
import resource
import signal
import warnings
from contextlib import contextmanager
from math import prod

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.cli.main import main
from buda_emu.support.errors import BudaError, InternalError
from buda_emu.testing.verify.runs.collect import Case, Settings
from buda_emu.testing.verify.runs.run_case import run_case
from image_documents import bases, spoilt
from small_images import tar_bytes

QUICK, MANY = 300, 10_000
SECONDS = 60  # of processor time that one image may take, on any machine: ten million instructions are not refused
LIMIT = 256 << 20  # bytes of tensors that are allowed
MEMORY = LIMIT + (256 << 20)  # bytes by which the process may grow
OWN = ("--no-cache", "--quiet", "--memory-limit", str(LIMIT))
VERBS = (
    ("run", "--threads", "1", *OWN), ("run", "--precision", "ideal", "--threads", "1", *OWN),
    ("test",), ("numerics", "--threads", "1", *OWN), ("perf", "--quiet"), ("graph",),
)  # fmt: skip
CODES = (0, 2, 3, 4)
STATUS = {"passed": 0, "failed": 0, "skipped": 0, "rejected": 2, "unsupported": 3, "stopped": 4, "error": 101}
pytestmark = pytest.mark.filterwarnings("ignore::buda_emu.NetlistWarning")


class TooLong(BaseException):
    """No error that anybody handles."""


@contextmanager
def limited(seconds):
    """Fails what takes more of the processor."""

    def stop(number, frame):
        raise TooLong(f"took more than {seconds} seconds")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def opened(path):
    """Whether the library takes an image: opens it, reads its tensors, and takes inputs in the host's shape."""
    try:
        image = be.load_image(path)
        for name in image.tensors:
            image.tensor(name)
        with image.emulator(threads=1, memory_limit=LIMIT) as emulator:
            assert emulator.netlist is image.for_inputs
        state = image.metadata.compiled_graph_state
        transforms = state.ordered_input_runtime_tensor_transforms
        for place, (name, shape) in enumerate(zip(state.ordered_input_names, state.ordered_input_shapes, strict=False)):
            fits = 4 * prod(shape) <= LIMIT
            # With a transform it is the shape of something else.
            if fits and (not transforms or transforms[place].type == "NoTransform"):
                image.host_input(name, np.zeros(shape, np.float32))
    except InternalError:
        raise
    except BudaError as error:
        return not str(error).strip()  # one that says nothing is none
    return True


def verdict_of(path):
    """What `buda-emu test` does in a process of its own; the exit code that its verdict stands for."""
    settings = Settings(precision="format", machine={"memory_limit": LIMIT}, cache=False)
    result = run_case(Case(str(path), str(path), settings=settings))
    print(result.message)
    return STATUS[result.status]


def judge(path, verb, capsys):
    """Run `check`, the library and one verb on an image; returns the verb's exit code."""
    with limited(SECONDS), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        checked = main(["check", "--no-cache", str(path)])
        findings = capsys.readouterr()
        taken = opened(path)
        code = verdict_of(path) if verb[0] == "test" else main([verb[0], str(path), *verb[1:]])
        shown = capsys.readouterr()
    text = findings.out + findings.err + shown.out + shown.err
    assert checked in (0, 2), text
    assert code in CODES, text
    assert "Traceback" not in text, text
    assert "RuntimeWarning" not in text, text
    if checked == 2:
        assert not taken, text
        assert code == 2, text
        assert "error[" in findings.out + findings.err, text
    elif "image-pickle" not in findings.out:
        assert taken, text
        assert code in (0, 3, 4), text
    return code


def fuzz(seeds, folder, capsys, record_property):
    images = list(bases(folder / "bases").values())
    path, counts, peak = folder / "m.tti", {}, 0
    for verb in VERBS:  # kernels, and what stays in memory
        for contents in images:
            path.write_bytes(tar_bytes(contents))
            assert judge(path, verb, capsys) == 0
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in seeds:
        stream = random.Random(seed)
        contents = images[seed % len(images)]
        path.unlink()
        path.write_bytes(tar_bytes(spoilt(stream, contents, seed // len(images))))
        verb = VERBS[stream.randrange(len(VERBS))]
        try:
            code = judge(path, verb, capsys)
        except BaseException as error:
            error.add_note(f"seed {seed}: {' '.join(verb)}")
            raise
        counts[f"{verb[0]} {code}"] = counts.get(f"{verb[0]} {code}", 0) + 1
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start
        assert peak << 10 < MEMORY, f"seed {seed}: {peak} KiB more than before"
    record_property("outcomes", json.dumps(counts))
    print(f"{sum(counts.values())} images: {dict(sorted(counts.items()))}, {peak >> 10} MiB more than before")
    return counts


def test_images_with_a_spoilt_document(tmp_path, capsys, record_property):
    counts = fuzz(range(QUICK), tmp_path, capsys, record_property)
    assert sum(count for key, count in counts.items() if key.endswith(" 2")) > QUICK // 4  # both sides are tried
    assert sum(count for key, count in counts.items() if key.endswith(" 0")) > QUICK // 10


@pytest.mark.slow
def test_ten_thousand_images_with_a_spoilt_document(tmp_path, capsys, record_property):
    assert sum(fuzz(range(QUICK, QUICK + MANY), tmp_path, capsys, record_property).values()) == MANY
