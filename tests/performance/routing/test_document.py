"""What `route` allocated, as YAML."""

import yaml

from buda_emu.performance.routing.streams.model import as_yaml
from buda_emu.performance.routing.streams.route import route
from small_pipes import Pipes

TEXT = """graph: small
arch: grayskull
refusals: []
cores:
  - core: [0, 0, 0]
    ops: [from]
    extra_streams: 1  # of 24
    multicast_streams: 0  # of 3
    kernel_inputs: 0  # of 24
    kernel_outputs: 1  # of 24
    l1_bytes: 16640  # of 839616
    stream_bytes: 16640
    streams:
      24: {kind: packer, op: from, operand: 16, pipes: [1000000000000], buffer_bytes: 16640}
      40: {kind: packer, op: from, operand: 16, pipes: [1001000000000], writes_queues: 1}
  - core: [0, 0, 1]
    ops: ['to: 1']
    extra_streams: 0  # of 24
    multicast_streams: 0  # of 3
    kernel_inputs: 1  # of 24
    kernel_outputs: 0  # of 24
    l1_bytes: 16640  # of 839616
    stream_bytes: 16640
    streams:
      8: {kind: unpacker, op: 'to: 1', operand: 0, pipes: [1000000000000], buffer_bytes: 16640}
"""


def _pipes() -> Pipes:
    pipes = Pipes()
    packer = pipes.packer(0, 0)
    pipes.pipe([packer], [pipes.unpacker(0, 1, op="to: 1")], (0, 1))
    pipes.pipe([packer], [pipes.queue()], (0, 0))
    return pipes


def test_streams_by_core_with_their_pipes() -> None:
    text = as_yaml(route(_pipes().graph, "grayskull"), "small", "grayskull")
    assert text == TEXT
    assert yaml.safe_load(text)["cores"][1]["streams"][8]["op"] == "to: 1"


def test_refusals_with_core_number_and_limit() -> None:
    pipes = _pipes()
    packer = pipes.buffers[0].id
    for column in range(24):
        pipes.pipe([packer], [pipes.unpacker(1 + column // 8, column % 8)], (1, column % 8))
    found = yaml.safe_load(as_yaml(route(pipes.graph, "wormhole_b0"), "small", "wormhole_b0"))["refusals"]
    assert [{key: refusal[key] for key in ("what", "core", "number", "limit")} for refusal in found] == [
        {"what": "extra_streams", "core": [0, 0, 0], "number": 25, "limit": 24}
    ]


def test_nothing_allocated_and_words_that_yaml_would_not_read_as_text() -> None:
    pipes = Pipes()
    pipes.pipe([7], [pipes.unpacker(0, 1)], (0, 1))
    found = yaml.safe_load(as_yaml(route(pipes.graph, "grayskull"), "no", "grayskull"))
    assert (found["graph"], found["cores"], found["refusals"][0]["what"]) == ("no", [], "pipe_graph")
    assert "core" not in found["refusals"][0]


def test_names_that_no_text_file_can_hold_are_escaped() -> None:
    for name in ("\x1b]0;title\x07", "a\nrefusals: []", 'say "no"\\\x00', "\u202eturned", "d\x9b8m", "fine: 'x'"):
        text = as_yaml(route(_pipes().graph, "grayskull"), name, "grayskull")
        assert yaml.safe_load(text)["graph"] == name
        assert all(line.isprintable() for line in text.splitlines())
