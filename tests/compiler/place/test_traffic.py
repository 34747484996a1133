"""Bytes that DRAM moves for a queue."""

from dataclasses import replace

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.lower.lower import lower
from buda_emu.compiler.pipeline import core_graph
from buda_emu.compiler.place.blocks import size_of_tile
from buda_emu.compiler.place.channels import Phase, traffic_by_phase
from buda_emu.compiler.search.placer import place
from buda_emu.compiler.target import Target
from fused_tiles import fuse


def test_an_input_is_read_once_by_each_op_and_what_stays_in_l1_once_a_round():
    b = Builder(Graph("g"), decompose=False)
    x = b.input("x", (64, 96), "float32")
    product = b.matmul(x, b.constant(np.random.default_rng(0).standard_normal((96, 96), np.float32)))
    b.graph.outputs = [Output("y", b.add(b.exp(product), x).name, "float32")]
    target = Target.from_names("wormhole_b0", "Float16_b", "HiFi3")
    found = place(fuse(lower(core_graph(b.graph), target), target), target)
    assert found.epochs == 1
    readers = {}
    for placed in found.ops.values():
        for use in placed.op.uses:
            readers.setdefault(use.source, []).append(placed)
    size = size_of_tile("Float16_b", target.arch.alignment)
    assert len(readers["x"]) == 2
    assert traffic_by_phase(found, found.queues["x"], readers) == {Phase(0): 2 * 2 * 3 * size}
    (weights,) = (queue for queue in found.queues.values() if queue.role == "constant")
    name = weights.tensor
    assert traffic_by_phase(found, weights, readers) == {Phase(0): 3 * 3 * size}
    readers[name] = [replace(placed, held=frozenset([name])) for placed in readers[name]]
    inputs = found.count(readers[name][0].op.program)
    assert traffic_by_phase(found, weights, readers) == {Phase(0, once=True): 3 * 3 * size / inputs}
    (output,) = (queue for queue in found.queues.values() if queue.role == "output")
    assert traffic_by_phase(found, output, readers) == {}  # in the host's memory
    assert traffic_by_phase(found, replace(output, loc="dram"), readers) == {Phase(0): 2 * 3 * size}
