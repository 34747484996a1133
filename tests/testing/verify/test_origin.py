"""Where an output became all zero or not finite."""

import json

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.run_netlist import run_netlist
from buda_emu.app.cli.main import main
from buda_emu.emulator.inputs.origin import OriginSearch
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
    net = netlist(tmp_path, *CHAIN)
    began(net, tmp_path, x=1e30, y=1)
    assert main(["run", net.path, "--inputs", str(tmp_path / "in"), "--threads", "1"]) == 0
    assert "1024 not finite (began in op root)" in capsys.readouterr().out


SKIPPED = "buda-emu run: skipped, so the op where it began is not known\n"


def second_run_note(words):
    return f"buda-emu run: outputs are {words}; running again to find the op where it began; Ctrl-C skips this\n"


@pytest.mark.parametrize(("x", "words"), [(1e30, "not finite"), (0, "all zero")])
def test_the_second_run_is_announced(x, words, tmp_path, capsys):
    net = netlist(tmp_path, *CHAIN)
    began(net, tmp_path, x=x, y=x)
    assert main(["run", net.path, "--inputs", str(tmp_path / "in"), "--threads", "1"]) == 0
    assert second_run_note(words) in capsys.readouterr().err


def test_ctrl_c_skips_the_second_run_alone(tmp_path, capsys, monkeypatch):
    net = netlist(tmp_path, *CHAIN)
    began(net, tmp_path, x=1e30, y=1)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(OriginSearch, "op_value", interrupted)
    words = ["run", net.path, "--inputs", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--threads", "2"]
    assert main([*words, "--json", str(tmp_path / "r.json")]) == 0
    out, error = capsys.readouterr()
    assert error == second_run_note("not finite") + SKIPPED
    assert "1024 not finite\n" in out
    assert not np.isfinite(np.load(tmp_path / "out" / "out.npy")).any()
    (output,) = json.loads((tmp_path / "r.json").read_text())["outputs"]
    assert (output["not_finite"], output["began"]) == (1024, "")


def test_nobody_is_told_where_it_began_who_reads_no_result(tmp_path, capsys, monkeypatch):
    net = netlist(tmp_path, *CHAIN)
    began(net, tmp_path, x=1e30, y=1)
    words = ["run", net.path, "--inputs", str(tmp_path / "in"), "-q", "--threads", "1"]
    assert main([*words, "--json", str(tmp_path / "r.json")]) == 0
    assert json.loads((tmp_path / "r.json").read_text())["outputs"][0]["began"] == "op root"
    monkeypatch.setattr(OriginSearch, "__init__", None)  # not made
    capsys.readouterr()
    assert main(words) == 0
    assert capsys.readouterr().err == ""


def test_the_second_run_ends_where_all_is_known(tmp_path, monkeypatch):
    """Two programs run the same graph: of what is not finite in the first one, the second one adds nothing."""
    ran = []
    run = be.Emulator.run

    def noted_run(self, name, *more, **named):
        ran.append(name)
        run(self, name, *more, **named)

    monkeypatch.setattr(be.Emulator, "run", noted_run)
    path = tmp_path / "net.yaml"
    body = ("var: {$c_zero: 0}", execute("g", fifo_settings("x"), fifo_settings("y")))
    queues = [queue("x", entries=2), queue("y", entries=2), queue("out", "last", entries=2)]
    path.write_text(text(queues, [graph("g", *CHAIN)], [program("first", *body), program("second", *body)]))
    for x, expected in ((1e30, ["first", "second", "first"]), (0, ["first", "second"] * 2)):
        ran.clear()
        folder = tmp_path / "in"
        folder.mkdir(exist_ok=True)
        np.save(folder / "x.npy", np.full((2, 32, 32), x, np.float32))
        np.save(folder / "y.npy", np.full((2, 32, 32), x / 1e30, np.float32))
        (output,) = run_netlist(be.load(path), inputs=folder, precision="ideal").outputs
        assert output.began in ("op root", "queue y", "queue x")
        assert ran == expected
