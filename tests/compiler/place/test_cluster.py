"""A model over the chips of a cluster's file."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.compilation import Chips, chips_of
from buda_emu.support.errors import HostError

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
LINE = """arch: {4: Wormhole_b0, 7: Wormhole_b0, 9: Wormhole_b0}
chips: {9: [0, 0, 0, 0], 4: [2, 0, 0, 0], 7: [1, 0, 0, 0]}
ethernet_connections:
  - [{chip: 9, chan: 0}, {chip: 7, chan: 8}]
  - [{chip: 4, chan: 1}, {chip: 7, chan: 9}]
chips_with_mmio: [{9: 0}]
harvesting:
  9: {noc_translation: true, harvest_mask: 2}
  7: {noc_translation: true, harvest_mask: 6}
"""


def written(tmp_path, text):
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    return path


def test_chips_follow_their_connections_from_the_host(tmp_path):
    assert chips_of(written(tmp_path, LINE), "wormhole_b0") == Chips((9, 7, 4), 2)
    assert chips_of("3", "wormhole_b0") == 3


def test_a_ring_with_a_ladder_is_walked_whole(tmp_path):
    """Galaxy's chips: 4 x 8, each connected with its neighbours."""
    links = [(row * 8 + c, row * 8 + c + 1) for row in range(4) for c in range(7)]
    links += [(row * 8 + c, row * 8 + c + 8) for row in range(3) for c in range(8)]
    text = "chips: {" + ", ".join(f"{n}: [{n % 8}, {n // 8}, 0, 0]" for n in range(32)) + "}\nethernet_connections:\n"
    text += "".join(f"  - [{{chip: {a}, chan: 0}}, {{chip: {b}, chan: 1}}]\n" for a, b in links)
    found = chips_of(written(tmp_path, text + "chips_with_mmio: [{0: 0}]\n"), "wormhole_b0")
    near = {frozenset(link) for link in links}
    assert found.ids[0] == 0
    assert sorted(found.ids) == list(range(32))
    assert all(frozenset(pair) in near for pair in zip(found.ids, found.ids[1:], strict=False))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("chip: 4, chan: 1", "chip: 9, chan: 1"), "no way from the host through all 3 chips"),
        (("chip: 4, chan: 1", "chip: 5, chan: 1"), "chips that `chips` does not have"),
        (("4: Wormhole_b0", "4: grayskull"), "chips of grayskull, the model is compiled for wormhole_b0"),
        (("chan: 9}]", "chan: 9}, {chip: 9, chan: 2}]"), "3 ends, not two"),
        (("harvest_mask: 6", "mask: 6"), "not a valid cluster file"),
        (("chips: {", "chops: {"), "no map `chips`"),
        (("arch: {4", "arch: [{4"), "a number or a file"),
    ],
)
def test_files_that_describe_no_cluster_for_it(change, said, tmp_path):
    with pytest.raises(HostError, match=said):
        chips_of(written(tmp_path, LINE.replace(*change)), "wormhole_b0")


@pytest.mark.parametrize("chips", ["no/such/file.yaml", 1.5, None, True])
def test_what_is_neither_number_nor_file(chips):
    with pytest.raises(HostError, match=r"neither a number nor the file|a number or a file"):
        chips_of(chips, "wormhole_b0")


def wide_model():
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    held = [numpy_helper.from_array(rng.standard_normal((512, 512), np.float32) / 22, f"w{n}") for n in range(3)]
    nodes = [helper.make_node("MatMul", [f"x{n}", f"w{n}"], [f"x{n + 1}"], name=f"x{n + 1}") for n in range(3)]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [256, 512]) for name in ("x0", "x3"))
    graph = helper.make_graph(nodes, "wide", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_a_model_over_a_cluster_has_its_chips_ids_and_rows(tmp_path):
    pytest.importorskip("onnx")
    model = wide_model()
    one, found = be.compile(model), be.compile(model, chips=written(tmp_path, LINE))
    assert found.check() == ()
    devices = {graph.target_device for graph in found.netlist.graphs.values()}
    assert 9 in devices
    assert devices <= {9, 7, 4}
    assert len(devices) > 1
    assert max(placed.at[0] + placed.blocks.grid[0] for placed in found.placement.ops.values()) <= 8
    x = np.random.default_rng(1).standard_normal((256, 512)).astype(np.float32)
    np.testing.assert_array_equal(found(x)[0], one(x)[0])


def test_caches_over_several_chips_are_refused():
    torch = pytest.importorskip("torch")

    class Sum(torch.nn.Module):
        """Of all it has seen."""

        def forward(self, x, seen):
            return x + seen, x + seen

    example = (torch.zeros(32, 32), torch.zeros(32, 32))
    with pytest.raises(HostError, match="takes one chip"):
        be.compile_programs(be.Program(Sum().eval(), example, keeps={1: "seen"}), chips=2)
