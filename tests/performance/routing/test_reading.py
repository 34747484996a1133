"""The vendor's `pipegen.yaml` as a pipe graph."""

import pytest

from buda_emu.performance.routing.pipes.model import NO_CORE
from pipe_reading import PipeGraphError, read

TEXT = """graph_name: test
---
buffer_100:  # Op: a
  md_op_name: a
  buffer_type: packer
  id: 16
  uniqid: 100
  chip_id: [0]
  core_coordinates: [2, 3]
  dram_addr: 0x20
  is_scatter: 1
---
buffer_200:
  uniqid: 200
  core_coordinates: [255, 255]
---
pipe_300:  # Op: b, input 0
  id: 300
  input_list: [100, 104]
  output_list: [[200], [200, 201]]
  mcast_core_rc: [[0, 1, 2], [0, 1, 3]]
  output_padding_list: [0, 0]
  ethernet_pipe: 1
---
pipe_301:
  id: 301
  input_list: [100]
  output_list: [200]
  mcast_core_rc: [0, 1, 2]
"""


def test_blocks_become_buffers_and_pipes() -> None:
    graph = read(TEXT)
    first, second = graph.buffers
    many, one = graph.pipes
    assert (graph.name, first.id, first.operand, first.op, first.buffer_type) == ("test", 100, 16, "a", "packer")
    assert (first.chip, first.row, first.column, first.dram_addr, first.is_scatter) == (0, 2, 3, 0x20, True)
    assert (second.row, second.column, second.operand) == (NO_CORE, NO_CORE, -1)
    assert (many.inputs, many.outputs, many.output_padding) == ((100, 104), ((200,), (200, 201)), (0, 0))
    assert (many.mcast_core_rc, many.ethernet_pipe) == (((0, 1, 2), (0, 1, 3)), True)
    assert (one.outputs, one.mcast_core_rc, one.ethernet_pipe) == (((200,),), ((0, 1, 2),), False)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("  is_scatter: 1", "  is_scattered: 1", "line 3: unknown key 'is_scattered'"),
        ("  is_scatter: 1", "  is_scatter", "is no 'key: value'"),
        ("  dram_addr: 0x20", "  dram_addr: north", "north"),
        ("core_coordinates: [255, 255]", "core_coordinates: [255]", "line 13"),
        ("output_list: [200]", "output_list: 200", "is not a list"),
        ("[[200], [200, 201]]", "[[200], [200, 201]", "not a list of lists"),
        ("pipe_301:", "tube_301:", "begins no buffer"),
        ("  uniqid: 200", "  id: 3", "id"),
    ],
)
def test_what_is_no_such_file_is_said_with_its_place(old: str, new: str, said: str) -> None:
    assert old in TEXT
    with pytest.raises(PipeGraphError, match=r"x\.yaml, block at line") as error:
        read(TEXT.replace(old, new), "x.yaml")
    assert said in str(error.value)
