"""Where an output became all zero or not finite."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.run_netlist import run_netlist
from small_netlists import execute, fifo_settings, graph, op, program, queue, text


def netlist(tmp_path, *ops):
    last = ops[-1].split(":")[0].strip()
    path = tmp_path / "net.yaml"
    path.write_text(
        text(
            [queue("x"), queue("y"), queue("out", last)],
            [graph("g", *ops)],
            [program("run", "var: {$c_zero: 0}", execute("g", fifo_settings("x"), fifo_settings("y")))],
        )
    )
    return be.load(path)


def began(net, tmp_path, **inputs):
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", np.full((1, 32, 32), value, np.float32))
    return run_netlist(net, inputs=folder, precision="ideal").outputs[0].began


CHAIN = (
    op("root", "square", ["x"]), op("moved", "nop", ["root"], loc=(0, 1)), op("sum", "add", ["moved", "y"], loc=(0, 2)),
    op("product", "multiply", ["sum", "y"], loc=(0, 3)), op("last", "nop", ["product"], loc=(0, 4)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (4, 1, ""),  # all is well
        (1e30, 1, "op root"),  # the square of a large number
        (4, np.inf, "queue y"),
        (4, -16, "op sum"),  # 16 - 16
        (4, 0, "queue y"),
    ],
)
def test_where_it_began(x, y, expected, tmp_path):
    assert began(netlist(tmp_path, *CHAIN), tmp_path, x=x, y=y) == expected


def test_the_table_says_it(tmp_path, capsys):
    from buda_emu.app.cli.main import main

    net = netlist(tmp_path, *CHAIN)
    began(net, tmp_path, x=1e30, y=1)
    assert main(["run", net.path, "--inputs", str(tmp_path / "in"), "--threads", "1"]) == 0
    assert "1024 not finite (began in op root)" in capsys.readouterr().out
