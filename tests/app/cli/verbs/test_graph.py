"""`buda-emu graph`: whole pictures of the example netlists and of odd ones, with nothing from elsewhere."""

import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

import buda_emu as be
from buda_emu.app.cli.main import main
from example_netlists import DIRECTORY
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

EXAMPLES = sorted(path.stem for path in DIRECTORY.glob("*.yaml"))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def picture(tmp_path, capsys):
    """Draws a netlist and gives the file's text."""

    def draw(path, *arguments, suffix="svg"):
        file = tmp_path / f"picture.{suffix}"
        assert main(["graph", str(path), "-o", str(file), *arguments]) == 0
        assert capsys.readouterr() == ("", "")
        return file.read_text(encoding="utf-8")

    return draw


def example(name):
    return DIRECTORY / f"{name}.yaml"


def titles(svg):
    """All tooltips of an SVG; parsing it shows that it is well-formed."""
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    return [element.text or "" for element in root.iter(f"{SVG}title")]


STRING = r'"((?:[^"\\]|\\.)*)"'
EDGE = re.compile(rf"\s*{STRING} -> {STRING} \[label={STRING}\];")
NODE = re.compile(rf"\s*{STRING} \[(?:shape=cylinder, |style=dashed, )?label={STRING}\];")
CLUSTER = re.compile(rf"  subgraph {STRING} {{")
OTHER = re.compile(rf"digraph netlist {{|  rankdir=LR;|  (node|edge) \[.*\];|\s*label={STRING};|\s*}}")


def statements(dot):
    """The lines of a DOT file by kind: nodes with their labels, edges, clusters."""
    nodes, edges, clusters, depth = {}, [], [], 0
    for line in dot.splitlines():
        depth += line.endswith("{") - (line.strip() == "}")
        if edge := EDGE.fullmatch(line):
            edges.append((edge[1], edge[2]))
        elif node := NODE.fullmatch(line):
            nodes[node[1]] = node[2]
        elif cluster := CLUSTER.fullmatch(line):
            clusters.append(cluster[1])
        else:
            assert OTHER.fullmatch(line), line
    assert depth == 0
    assert {name for edge in edges for name in edge} <= set(nodes)
    return nodes, edges, clusters


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_op_and_queue_is_in_the_svg(name, picture):
    netlist = be.load(example(name))
    tips = titles(picture(example(name)))
    for op_name, one in netlist.ops.items():
        assert any(tip.startswith(f"{op_name} ({one.type})\n") for tip in tips), op_name
    for queue_name, one in netlist.queues.items():
        assert any(tip.startswith(f"{one.type} {queue_name}\n") for tip in tips), queue_name
    for one in netlist.ops.values():
        assert all(f"{source} -> {one.name}" in tips for source in one.inputs)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_svg_needs_nothing_else(name, picture):
    svg = picture(example(name))
    root = ElementTree.fromstring(svg)
    assert not {element.tag for element in root.iter()} & {
        f"{SVG}{tag}" for tag in ("script", "image", "foreignObject")
    }
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    for element in root.iter():
        for key, value in element.attrib.items():
            assert not key.startswith("on")
            if key.endswith("href"):
                assert value.removeprefix("#") in ids
            assert all(target in ids for target in re.findall(r"url\(#?([^)]*)\)", value))
    assert re.findall(r"https?://[^\"' ]*", svg) == ["http://www.w3.org/2000/svg"]
    assert "@import" not in svg
    assert "url(" not in "".join(element.text or "" for element in root.iter(f"{SVG}style"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_op_and_queue_is_in_the_dot(name, picture):
    netlist = be.load(example(name))
    nodes, edges, clusters = statements(picture(example(name), suffix="dot"))
    assert set(nodes) == {f"op:{op}" for op in netlist.ops} | {f"queue:{queue}" for queue in netlist.queues}
    assert len(clusters) == len(netlist.graphs)
    wanted = [
        (f"queue:{source}" if source in netlist.queues else f"op:{source}", f"op:{one.name}")
        for one in netlist.ops.values()
        for source in one.inputs
    ]
    wanted += [(f"op:{one.input}", f"queue:{one.name}") for one in netlist.queues.values() if not one.host_fed]
    assert sorted(edges) == sorted(wanted)


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
@pytest.mark.parametrize("name", EXAMPLES)
def test_graphviz_takes_the_dot(name, picture):
    dot = picture(example(name), suffix="dot")
    done = subprocess.run(["dot", "-Tplain"], input=dot, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    drawn = [line.split()[1].strip('"') for line in done.stdout.splitlines() if line.startswith("node ")]
    assert sorted(drawn) == sorted(statements(dot)[0])


def test_epochs_and_chips(picture):
    whole = titles(picture(example("two_chips")))
    one = titles(picture(example("two_chips"), "--chip", "1"))
    netlist = be.load(example("two_chips"))
    for name, one_op in netlist.ops.items():
        on_chip = any(tip.startswith(f"{name} (") and "cores from" in tip for tip in one)
        assert on_chip is (one_op.target_device == 1), name
        assert any(tip.startswith(f"{name} (") for tip in whole)
    epochs = [temporal.id for temporal in be.load(example("training")).temporal_graphs]
    assert len(epochs) > 1
    _, _, clusters = statements(picture(example("training"), "--epoch", str(epochs[1]), suffix="dot"))
    assert clusters == [f"cluster_{name}" for name in be.load(example("training")).temporal_graphs[1].graphs]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epoch", "7"], "buda-emu: there is no epoch 7; those of the netlist: 0\n"),
        (["--chip", "3"], "buda-emu: there is no chip 3; those of the netlist: 0, 1\n"),
        (["-o", "nowhere/x.svg"], "buda-emu: "),
    ],
)
def test_absent_epochs_chips_and_formats_are_refused(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["graph", str(example("two_chips")), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(words)


def test_a_broken_netlist_is_not_drawn(tmp_path, capsys):
    path = tmp_path / "net.yaml"
    path.write_text("graphs: [")
    assert main(["graph", str(path), "-o", str(tmp_path / "x.svg")]) == 2
    assert "error[V" in capsys.readouterr().err
    assert [item.name for item in tmp_path.iterdir()] == ["net.yaml"]


def test_standard_output_and_formats(picture, capsys):
    path = str(example("softmax"))
    assert main(["graph", path]) == 0
    assert capsys.readouterr().out == picture(path)
    assert main(["graph", path, "--format", "dot"]) == 0
    assert capsys.readouterr().out == picture(path, "--format", "dot", suffix="gv")
    assert picture(path, suffix="dot") == picture(path, "--format", "dot")
    assert picture(path, suffix="xml") == picture(path)
    assert picture(path, "--format", "svg", suffix="dot") == picture(path)


ODD = ['"<&>"', "'\"quote\"'", '"back\\\\slash"', '"ünïcode ☃"', '"tab\\there"']


@pytest.mark.parametrize("name", ODD)
def test_names_that_want_escaping(name, picture, tmp_path):
    path = tmp_path / "net.yaml"
    body = text(
        [queue("a"), queue("o", name)],
        [graph("g", op(name, "nop", ["a"]))],
        [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
    )
    path.write_text(body, encoding="utf-8")
    netlist = be.load(path)
    (plain,) = netlist.ops
    tips = titles(picture(path))
    assert any(tip.startswith(f"{plain} (nop)".replace("\t", "?")) for tip in tips)
    nodes, edges, _ = statements(picture(path, suffix="dot"))
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "?")
    assert f"op:{escaped}" in nodes
    assert edges == [("queue:a", f"op:{escaped}"), (f"op:{escaped}", "queue:o")]


def test_a_picture_of_another_kind_is_refused(tmp_path, root, capsys):
    net = str(root / "netlists" / "matmul.yaml")
    assert main(["graph", net, "-o", str(tmp_path / "x.png")]) == 2
    assert "x.png: pictures end in .svg or .dot, not .png; or give --format" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    assert main(["graph", net, "-o", str(tmp_path / "x.png"), "--format", "svg"]) == 0
    assert main(["graph", net, "-o", str(tmp_path / "none" / "x.svg")]) == 2
    assert f"{tmp_path / 'none' / 'x.svg'}: there is no folder" in capsys.readouterr().err


def test_streams_stand_on_each_core_with_their_limits(picture):
    svg = picture(example("attention"), "--streams")
    tips = [tip for tip in titles(svg) if tip.startswith("core [")]
    assert len(tips) == 26 + 6  # as `buda-emu route` counts cores
    assert "extra streams: 5 of 24" in next(tip for tip in tips if tip.startswith("core [3, 0] of chip 0"))
    assert "5 of 24, L1 12 %" in svg
    assert "bars: the same two" in svg
    assert svg.count('class="bg-used"') == 2 * len(tips)
    one = picture(example("attention"), "--streams", "--epoch", "1")
    assert len([tip for tip in titles(one) if tip.startswith("core [")]) == 6
    plain = picture(example("attention"))
    assert "of 24" not in plain
    assert "bg-track" not in plain


def test_streams_in_dot_are_those_of_the_core_that_needs_most(picture):
    assert "extra streams 5 of 24, L1 12 %" in picture(example("attention"), "--streams", suffix="dot")
    assert "extra streams" not in picture(example("attention"), suffix="dot")


def test_what_cannot_be_routed_is_said_where_streams_are_asked_for(tmp_path, capsys, monkeypatch):
    assert main(["graph", str(example("two_chips")), "--streams", "-o", str(tmp_path / "none.svg")]) == 3
    assert "no pipes are made of this ethernet_datacopy" in capsys.readouterr().err
    assert not (tmp_path / "none.svg").exists()
    monkeypatch.setattr("buda_emu.performance.routing.pipes.core_use.EXTRA_STREAMS", range(0))
    assert main(["graph", str(example("softmax")), "--streams", "-o", str(tmp_path / "refused.svg")]) == 0
    assert "buda-emu graph: epoch 0 cannot be routed: softmax: core [0, 0] needs 3 streams" in capsys.readouterr().err
    assert "of 24, L1" not in (tmp_path / "refused.svg").read_text(encoding="utf-8")
