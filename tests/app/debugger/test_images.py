"""Device images of compiled models: names are the model's own, and ops stand beside the nodes they were made of."""

import pytest

import buda_emu as be
from buda_emu.app.debugger.console.console import Console
from buda_emu.app.debugger.console.execute import execute
from buda_emu.support.errors import HostError
from debug_sessions import session

torch = pytest.importorskip("torch")


class TwoLayers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(64, 96), torch.nn.Linear(96, 32)

    def forward(self, tokens):
        return torch.softmax(self.down(torch.relu(self.up(tokens))), -1)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    torch.manual_seed(0)
    compiled = be.compile(TwoLayers(), [torch.randn(1, 32, 64)])
    _, path = compiled.save(tmp_path_factory.mktemp("image"))
    return str(path)


def answer_text(console, line):
    return "\n".join(execute(console, line).lines)


def test_nodes_stand_beside_ops(image):
    with session(image) as run:
        console = Console(run)
        ops = execute(console, "info ops").data["ops"]
        nodes = {row["name"]: row["node"] for row in ops}
        assert all(nodes.values())
        assert "down" in nodes["down"].split(", ")
        answer_text(console, "break node down")
        stop = answer_text(console, "continue")
        assert stop.startswith("breakpoint 1: node down, op down")
        assert f"of {nodes['down']})" in stop
        listed = execute(console, "list").data["source"]
        assert [row["node"] for row in listed if row["here"]] == [nodes["down"]]
        assert f"[{nodes['down']}] " in answer_text(console, "list down")
        with pytest.raises(HostError, match="did you mean 'softmax'"):
            answer_text(console, "break node sofmax")


def test_inputs_and_outputs_have_the_models_names(image):
    with session(image) as run:
        console = Console(run)
        labels = run.names.labels
        assert set(labels) >= {"tokens"}
        assert run.tensor("tokens").of.name == labels["tokens"]
        answer_text(console, "watch tokens")
        answer_text(console, "delete")
        run.cont()
        out = next(label for label in labels if label != "tokens")
        assert run.evaluate(f"max('{out}') <= 1 and min('{out}') >= 0")
        assert run.image.netlist_text().decode().splitlines() == list(run.names.lines)
