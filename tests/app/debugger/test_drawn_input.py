"""Drawn expressions, commands and requests: each is answered or refused, and the session goes on."""

import os
import random

import numpy as np
import pytest

from buda_emu.app.debugger.console.console import Console
from buda_emu.app.debugger.console.execute import execute
from buda_emu.app.debugger.dap.adapter import HANDLERS
from buda_emu.support.errors import BudaError, Exit, HostError
from dap_client import Here
from debug_sessions import TRAINING, session
from drawn_debugging import arguments, command, expression

SEEDS = [pytest.param(seed, marks=() if seed < 3 else pytest.mark.slow) for seed in range(60)]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_drawn_expression_is_more_than_refused(seed):
    chance = random.Random(seed)
    values, longest = 0, 0
    with session(TRAINING) as run:
        run.break_at("a")
        run.cont()
        for _ in range(150):
            try:
                run.evaluate(expression(chance))
                values += 1
            except HostError as error:
                longest = max(longest, len(str(error)))
    assert values > 5
    assert longest < 12_000  # a name is said whole, a text of thousands of operators is not


@pytest.mark.parametrize("seed", SEEDS)
def test_no_drawn_command_is_more_than_refused(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chance = random.Random(seed)
    with session(TRAINING) as run:
        run.break_at("a")
        run.cont()
        console = Console(run)
        for _ in range(80):
            try:
                execute(console, command(chance))
            except BudaError as error:
                assert error.exit_code != Exit.INTERNAL, str(error)  # noqa: PT017


@pytest.mark.parametrize("seed", SEEDS)
def test_no_drawn_request_ends_a_session(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chance = random.Random(seed)
    commands = sorted(set(HANDLERS) - {"disconnect", "terminate", "initialize", "launch"})
    with Here() as client:
        client.launch(TRAINING, functions=[{"name": "op a"}])
        client.event("stopped")
        for _ in range(80):
            request = chance.choice((*commands, "evaluate", "evaluate"))
            found = client.answer(client.begin(request, **arguments(chance)))
            assert "internal error" not in found.get("message", ""), request
        assert client.ask("threads")["threads"] == [{"id": 1, "name": "chip 0"}]


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "link to a device", "nothing", "large"])
@pytest.mark.parametrize("words", ["write x[0] {}", "diff x[0] {}"])
def test_only_regular_files_of_a_bounded_size_are_read(tmp_path, monkeypatch, kind, words):
    path = tmp_path / "values.npy"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device" | "link to a device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "large":
            np.save(path, np.zeros(4096, np.float32))
            monkeypatch.setattr("buda_emu.emulator.inputs.numpy_files.default_memory_limit", lambda: 4096)
    with session(TRAINING) as run:
        run.break_at("a")
        run.cont()
        with pytest.raises(HostError) as refused:
            execute(Console(run), words.format(path))
    assert str(path) in str(refused.value)
