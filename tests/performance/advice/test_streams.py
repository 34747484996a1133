"""Moves for a DRAM channel that much goes through: other channels, narrower formats."""

import re

import pytest

import buda_emu as be
from buda_emu.netlist.load import check_bytes
from buda_emu.performance.advice.evaluate import Evaluator
from buda_emu.performance.advice.moves import buffers as channels
from buda_emu.performance.advice.moves import precision as formats
from buda_emu.performance.advice.moves.move import Situation, Target, streams
from buda_emu.performance.timing.transfers.flows import channel_name, channel_of
from shared_files import ROOT


def crowded(name):
    """An example with all queues of a chip in its channel 0; nothing is loaded once but sums that begin at zero."""
    numbers = iter(range(10_000))
    text = (ROOT / f"netlists/{name}.yaml").read_text()
    text = re.sub(r"prologue: true(?!.*zero: \$)", "prologue: false", text)
    return re.sub(r"\[\d, 0x[0-9a-f]+\]", lambda _: f"[0, {0x10000000 + 0x100000 * next(numbers):#x}]", text)


def situation(text, chip, epoch=0):
    netlist = check_bytes(text.encode(), "net.yaml").netlist
    evaluator = Evaluator(netlist, list(netlist.programs.values()), {"$p_loop_count": "1", "p_loop_count": "1"})
    return Situation(evaluator, evaluator.start, epoch, Target("memory", channel_name(0, chip), 1.0))


def carried(here, edits):
    """Bytes of each channel of the target's chip, with these edits."""
    after = here.evaluator.with_edits(here.variant, edits)
    chip = channel_of(here.target.name)[1]
    found = dict.fromkeys(range(here.evaluator.chip.dram_channels), 0.0)
    for edge in after.reports[here.epoch].edges:
        if edge.memory == "dram" and edge.chip == chip:
            for channel, size in edge.memory_bytes.items():
                found[channel] += size
    return list(found.values())


@pytest.mark.parametrize(("number", "chip"), [(0, 0), (11, 0), (3, 1), (0, 12)])
def test_the_name_of_a_channel_is_read_as_it_is_written(number, chip):
    assert channel_of(channel_name(number, chip)) == (number, chip)
    assert channel_of(f"{channel_name(number, chip)}: a > b") == (number, chip)


@pytest.mark.parametrize("name", ["host link", "a > b", "DRAM channel", "DRAM channel 1x", "op DRAM channel 1"])
def test_what_is_no_channel(name):
    assert channel_of(name) is None


@pytest.mark.parametrize(("name", "chip"), [("attention", 0), ("two_chips", 0), ("two_chips", 1)])
def test_a_crowded_channel_is_spread_over_those_of_its_chip(name, chip):
    here = situation(crowded(name), chip)
    before = carried(here, ())
    assert sorted(before)[:-1] == [0.0] * (len(before) - 1)  # all in one
    found = list(channels.OTHER_CHANNELS.proposals(here))
    assert found
    queues = here.variant.netlist.queues
    for proposal in found:
        assert all(queues[edit.name].target_device == chip for edit in proposal.edits)
        after = carried(here, proposal.edits)
        assert sum(after) == pytest.approx(sum(before))
        assert max(after) == pytest.approx(max(before) - proposal.gain)
    best = max(found, key=lambda proposal: proposal.gain)
    sizes = {}
    for edge, size in streams(here):
        queue = edge.source if edge.operand >= 0 else edge.target
        sizes[queue] = sizes.get(queue, 0.0) + size
    assert max(carried(here, best.edits)) <= max(*sizes.values(), sum(before) / len(before) * 1.5)
    assert ("more queue" in best.sentence) == (name == "attention")  # of two chips one weight is most of it


def test_what_carries_alike_stays():
    here = situation(crowded("attention"), 0)
    best = max(channels.OTHER_CHANNELS.proposals(here), key=lambda proposal: proposal.gain)
    spread = here.evaluator.with_edits(here.variant, best.edits)
    again = Situation(here.evaluator, spread, 0, here.target)
    assert all(proposal.gain < best.gain / 4 for proposal in channels.OTHER_CHANNELS.proposals(again))


def test_the_widest_streams_of_a_channel_are_narrowed_first():
    here = situation(crowded("attention"), 0)
    found = list(formats.NARROWER_FORMAT.proposals(here))
    sizes = {edge.source if edge.operand >= 0 else edge.target: size for edge, size in reversed(streams(here))}
    assert [proposal.target for proposal in found][:2] == [
        name for name in sizes if here.variant.netlist.queues[name].df == "Float16_b"
    ][::-1][:2]
    for proposal in found:
        assert sum(carried(here, proposal.edits)) < sum(carried(here, ()))


def test_both_are_taken_for_an_epoch_that_reads_one_crowded_channel(tmp_path):
    path = tmp_path / "net.yaml"
    path.write_text(crowded("training"))
    found = be.advise(path, moves=["channel", "format"])
    assert found.after.slowest < 0.8 * found.before.slowest
    assert {proposal.move for proposal, _ in found.found.taken} == {"channel", "format"}
