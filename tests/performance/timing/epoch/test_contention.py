"""Who shares a channel or link, and what spreading its load would bring."""

import re

import pytest

import buda_emu as be
from buda_emu.performance.timing.epoch.critical import Contention, User, contention
from conftest import corpus_files
from example_netlists import DIRECTORY

SLOW = {"dram_gbps": 0.5}  # whatever reads queues is held back by its channel


def of(epoch, name, channels=8):
    return contention(epoch.timing, epoch.edges, epoch.paths, name, channels)


@pytest.mark.parametrize("path", sorted(DIRECTORY.glob("*.yaml")), ids=lambda path: path.stem)
def test_shares_are_the_whole_and_cycles_those_of_the_model(path):
    for epoch in be.perf(path).epochs:
        for item in (*epoch.timing.shared.memory, *epoch.timing.shared.links):
            found = of(epoch, item.name)
            if found is None:
                assert item.cycles == 0
                continue
            assert sum(user.share for user in found.users) == pytest.approx(1)
            assert [user.share for user in found.users] == sorted((user.share for user in found.users), reverse=True)
            assert found.cycles == item.cycles
            ends = {f"{edge.source} > {edge.target}" for edge in epoch.edges}
            assert {user.name for user in found.users} <= ends
        assert of(epoch, epoch.timing.ops[0].op) is None


def test_the_sentence_names_queues_readers_and_what_spreading_would_bring():
    epoch = be.perf(DIRECTORY / "attention.yaml", what_if=SLOW).epochs[0]
    assert epoch.bottleneck.kind == "memory"
    users = of(epoch, epoch.bottleneck.name).users
    sentence = epoch.bottleneck.sentence
    assert f"it carries {users[0].name} {100 * users[0].share:.0f} %" in sentence
    assert "channels it would work" in sentence
    assert "% fewer cycles" in sentence
    assert sentence.endswith(" (hypothetical: dram_gbps 0.5)")


def in_one_channel(text):
    """A netlist with all its queues in channel 0."""
    numbers = iter(range(10_000))
    return re.sub(r"\[\d, 0x[0-9a-f]+\]", lambda _: f"[0, {0x10000000 + 0x100000 * next(numbers):#x}]", text)


def test_no_more_is_promised_than_spreading_brings(tmp_path):
    """A netlist whose queues lie in one channel, and the same with them in several."""
    narrow = tmp_path / "narrow.yaml"
    narrow.write_text(in_one_channel((DIRECTORY / "attention.yaml").read_text()))
    before, after = (be.perf(path, what_if=SLOW).epochs[0] for path in (narrow, DIRECTORY / "attention.yaml"))
    assert len(before.timing.shared.memory) == 1 < len(after.timing.shared.memory)
    found = of(before, before.bottleneck.name)
    assert before.pace > after.pace >= 0.999 * max(found.spread, found.rest[1])


def test_words():
    users = tuple(User(f"q{number} > a", share) for number, share in enumerate((0.5, 0.3, 0.1, 0.1)))
    memory = Contention("DRAM channel 0", 800, users, 8, 100, ("a", 400))
    assert memory.sentence(800) == (
        "it carries q0 > a 50 %, q1 > a 30 %, q2 > a 10 % and 1 more; spread alike over 8 channels it would work 100 "
        "cycles, and a, 400 cycles, would set the pace: at best 50 % fewer cycles"
    )
    assert memory.sentence(None).endswith("spread alike over 8 channels it would work 100 cycles")
    link = Contention("NoC 0 1-1 right, chip 0", 800, users[:1], 1, None, ("a", 600))
    assert link.sentence(800) == (
        "it carries q0 > a 50 %; with less to carry, and a, 600 cycles, would set the pace: at best 25 % fewer cycles"
    )


@pytest.mark.parametrize("path", corpus_files("netlists/**/t5_wormhole_b0.yaml"))
def test_a_single_input_has_a_reason_too(path):
    epoch = be.perf(path).epochs[0]
    assert epoch.timing.inputs == 1
    assert re.search(r"it carries \S+ > \S+ \d+ %", epoch.bottleneck.sentence)


def test_a_smaller_grid_is_hypothetical():
    found = be.perf(DIRECTORY / "attention.yaml", grid=(8, 8))
    assert found.run.assumed == "grid 8x8"
    assert found.epochs[0].bottleneck.sentence.endswith(" (hypothetical: grid 8x8)")
    assert be.perf(DIRECTORY / "attention.yaml").run.assumed == ""
